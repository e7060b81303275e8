// Backoff says how long to wait before a server is connected to again: growing,
// jittered delays. It knows nothing of servers; a Backoff belongs to one goroutine.

package timing

import (
	"time"

	"github.com/cenkalti/backoff/v5"
)

// Backoff are the delays before the next attempt: after one that Failed, and after a
// connection that was Lost soon. The second grow slowly, as the server does work in
// between.
type Backoff struct{ Failed, Lost backoff.ExponentialBackOff }

// DefaultBackoff are those that servers get.
func DefaultBackoff() Backoff {
	return Backoff{
		Failed: backoff.ExponentialBackOff{
			InitialInterval: 200 * time.Millisecond, RandomizationFactor: 0.2, Multiplier: 1.6, MaxInterval: 30 * time.Second,
		},
		Lost: backoff.ExponentialBackOff{
			InitialInterval: 150 * time.Millisecond, RandomizationFactor: 0.2, Multiplier: 1.25, MaxInterval: 30 * time.Second,
		},
	}
}

// Next is the delay after a connection that was up for so long, zero when the attempt
// failed. One that was up for settled begins anew.
func (p *Backoff) Next(up, settled time.Duration) time.Duration {
	switch {
	case up == 0:
		return p.Failed.NextBackOff()
	case up >= settled:
		p.Reset()
	}
	return p.Lost.NextBackOff()
}

// Reset begins anew with short delays.
func (p *Backoff) Reset() {
	p.Failed.Reset()
	p.Lost.Reset()
}
