package timing

import (
	"time"

	"github.com/cenkalti/backoff/v5"
)

// Backoff provides the delays before connection attempts: after a failed attempt, and
// after a connection that was lost soon. The latter grow more slowly, because the server
// works in between. Not safe for concurrent use.
type Backoff struct{ Failed, Lost backoff.ExponentialBackOff }

// DefaultBackoff returns the delays for servers.
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

// Next returns the next delay. up is the lifetime of the last connection, or zero if the
// attempt failed. A lifetime of at least settled resets the delays.
func (p *Backoff) Next(up, settled time.Duration) time.Duration {
	switch {
	case up == 0:
		return p.Failed.NextBackOff()
	case up >= settled:
		p.Reset()
	}
	return p.Lost.NextBackOff()
}

// Reset restarts with short delays.
func (p *Backoff) Reset() {
	p.Failed.Reset()
	p.Lost.Reset()
}
