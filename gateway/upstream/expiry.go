package upstream

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// errExpired is the outcome of a call whose time is over.
var errExpired = errors.New("no answer in time")

// expiry ends the calls of a connection whose time is over, with one timer for
// all: it is set to the earliest deadline, as seldom as possible, since hardly
// any call comes that far.
type expiry struct {
	// soon is next for those who need not wait for mu; 0 when it is not set.
	soon  atomic.Int64
	mu    sync.Mutex
	timer *time.Timer
	next  time.Time // when it fires; zero when it is not set
	over  bool
}

// expect makes sure that the timer fires no later than a deadline; zero is none.
func (l *link) expect(deadline time.Time) {
	if deadline.IsZero() {
		return
	}
	e := &l.expiry
	if soon := e.soon.Load(); soon != 0 && deadline.UnixNano() >= soon {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.over || !e.next.IsZero() && !deadline.Before(e.next) {
		return
	}
	e.next = deadline
	e.soon.Store(deadline.UnixNano())
	if left := time.Until(deadline); e.timer == nil {
		e.timer = time.AfterFunc(left, l.expire)
	} else {
		e.timer.Reset(left)
	}
}

// expire ends the calls whose time is over, and sets the timer for the others:
// progress or a question to a human may have moved their deadlines.
func (l *link) expire() {
	e := &l.expiry
	e.mu.Lock()
	e.next = time.Time{}
	e.soon.Store(0)
	e.mu.Unlock()
	now, next := time.Now(), time.Time{}
	for id, c := range l.calls.All() {
		over, silent, at := c.clock.Look(now)
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
	l.expect(next)
}

// stop lets no call expire any more.
func (e *expiry) stop() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.over = true
	if e.timer != nil {
		e.timer.Stop()
	}
}
