package timing

import "time"

// FetchPacer delays fetches that follow each other closely.
type FetchPacer struct {
	last  time.Time
	delay time.Duration
}

// FetchEnded notes the end of a fetch.
func (p *FetchPacer) FetchEnded() { p.last = time.Now() }

// Next returns the pause before the next fetch: shortest, or up to longest while fetches
// follow each other within longest.
func (p *FetchPacer) Next(shortest, longest time.Duration) time.Duration {
	if p.delay == 0 || time.Since(p.last) >= longest {
		p.delay = shortest
	} else {
		p.delay = min(2*p.delay, longest)
	}
	return p.delay
}
