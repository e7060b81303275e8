package timing

import "time"

// FetchPacer delays fetches that follow each other closely. Not safe for concurrent use.
type FetchPacer struct {
	last  time.Time
	delay time.Duration
}

// FetchEnded records the end of a fetch.
func (p *FetchPacer) FetchEnded() { p.last = time.Now() }

// Next returns the delay before the next fetch. It grows from shortest to longest while
// fetches follow each other within longest.
func (p *FetchPacer) Next(shortest, longest time.Duration) time.Duration {
	if p.delay == 0 || time.Since(p.last) >= longest {
		p.delay = shortest
	} else {
		p.delay = min(2*p.delay, longest)
	}
	return p.delay
}
