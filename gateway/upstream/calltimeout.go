package upstream

import (
	"errors"
	"time"
)

// errExpired is the outcome of a call whose time is over.
var errExpired = errors.New("no answer in time")

// expire ends the calls whose time is over, and sets the alarm for the others:
// progress or a question to a human may have moved their deadlines.
func (l *link) expire() {
	l.expiry.Fired()
	now, next := time.Now(), time.Time{}
	for id, c := range l.calls.All() {
		over, silent, at := c.clock.Check(now)
		if over {
			l.calls.Fail(id, errExpired)
		}
		if silent {
			l.doubt()
		}
		if next.IsZero() || !at.IsZero() && at.Before(next) {
			next = at
		}
	}
	l.expiry.Expect(next)
}
