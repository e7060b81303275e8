package timing

import (
	"sync"
	"sync/atomic"
	"time"
)

// Alarm is one timer for many deadlines. It is set to the earliest and rarely reset,
// since few deadlines pass.
type Alarm struct {
	// OnFire is called when the earliest deadline passed. It must call Fired first, then
	// Expect for the remaining deadlines. Set it before the first Expect.
	OnFire func()

	// nextNano is next in Unix nanoseconds for lock-free reads, or 0.
	nextNano atomic.Int64
	mu       sync.Mutex
	timer    *time.Timer
	next     time.Time // zero if not set
	stopped  bool
}

// Expect makes the alarm fire no later than a deadline. It ignores a zero deadline.
func (a *Alarm) Expect(deadline time.Time) {
	if deadline.IsZero() {
		return
	}
	if soon := a.nextNano.Load(); soon != 0 && deadline.UnixNano() >= soon {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stopped || !a.next.IsZero() && !deadline.Before(a.next) {
		return
	}
	a.next = deadline
	a.nextNano.Store(deadline.UnixNano())
	if left := time.Until(deadline); a.timer == nil {
		a.timer = time.AfterFunc(left, a.OnFire)
	} else {
		a.timer.Reset(left)
	}
}

// Fired records that the timer fired.
func (a *Alarm) Fired() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.next = time.Time{}
	a.nextNano.Store(0)
}

// Stop prevents the alarm from firing again.
func (a *Alarm) Stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stopped = true
	if a.timer != nil {
		a.timer.Stop()
	}
}
