package timing

import (
	"sync"
	"sync/atomic"
	"time"
)

// Alarm is one timer for the deadlines of many: it is set to the earliest, as seldom as
// possible, since hardly anything comes that far.
type Alarm struct {
	// OnFire is called when the earliest deadline is over. It has to call Rung first, and
	// Expect for what is left. It is set before the first Expect.
	OnFire func()

	// soon is next for readers without mu; 0 when it is not set.
	soon  atomic.Int64
	mu    sync.Mutex
	timer *time.Timer
	next  time.Time // when it fires; zero when it is not set
	over  bool
}

// Expect makes sure that Ring is called no later than a deadline; zero is none.
func (a *Alarm) Expect(deadline time.Time) {
	if deadline.IsZero() {
		return
	}
	if soon := a.soon.Load(); soon != 0 && deadline.UnixNano() >= soon {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over || !a.next.IsZero() && !deadline.Before(a.next) {
		return
	}
	a.next = deadline
	a.soon.Store(deadline.UnixNano())
	if left := time.Until(deadline); a.timer == nil {
		a.timer = time.AfterFunc(left, a.OnFire)
	} else {
		a.timer.Reset(left)
	}
}

// Fired notes that the timer has fired.
func (a *Alarm) Fired() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.next = time.Time{}
	a.soon.Store(0)
}

// Stop lets nothing ring any more.
func (a *Alarm) Stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = true
	if a.timer != nil {
		a.timer.Stop()
	}
}
