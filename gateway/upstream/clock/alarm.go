package clock

import (
	"sync"
	"sync/atomic"
	"time"
)

// Alarm is one timer for the deadlines of many: it is set to the earliest, as seldom as
// possible, since hardly anything comes that far.
type Alarm struct {
	// soon is next for those who need not wait for mu; 0 when it is not set.
	soon  atomic.Int64
	mu    sync.Mutex
	timer *time.Timer
	next  time.Time // when it fires; zero when it is not set
	over  bool
}

// Expect makes sure that ring, which is always the same, is called no later than a
// deadline; zero is none. ring has to call Rung first, and Expect for what is left.
func (a *Alarm) Expect(deadline time.Time, ring func()) {
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
		a.timer = time.AfterFunc(left, ring)
	} else {
		a.timer.Reset(left)
	}
}

// Rung notes that the timer has fired.
func (a *Alarm) Rung() {
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
