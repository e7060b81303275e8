package downstream

import (
	"errors"
	"os"
	"sync"
	"time"
)

// lazyDeadline is the deadline of one direction of a connection. The server moves it
// several times per request, mostly to a later time and before no operation that waits.
// Each move of the system's timer may wake a thread. So the timer moves only before or
// during an operation that it would not end in time. If it ends one too early, the
// operation continues.
type lazyDeadline struct {
	apply func(time.Time) error // sets the timer

	mu      sync.Mutex
	wanted  time.Time // zero: none
	applied time.Time // zero: none
	passed  bool      // applied was already in the past when it was set
	running int       // operations
}

func (d *lazyDeadline) set(t time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.wanted = t
	if d.running > 0 && d.isLateLocked() {
		return d.applyLocked()
	}
	return nil
}

// isLateLocked reports whether the timer would end an operation after wanted.
func (d *lazyDeadline) isLateLocked() bool {
	return !d.wanted.IsZero() && (d.applied.IsZero() || d.wanted.Before(d.applied))
}

func (d *lazyDeadline) applyLocked() error {
	d.applied = d.wanted
	d.passed = !d.wanted.IsZero() && time.Until(d.wanted) <= 0
	return d.apply(d.wanted)
}

// begin prepares the first attempt of an operation. If it fails, the operation does not
// begin.
func (d *lazyDeadline) begin() (err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.isLateLocked() || d.passed {
		err = d.applyLocked()
	}
	if err == nil {
		d.running++
	}
	return err
}

// retry reports whether to continue an operation after err, because the timer ended it
// before the deadline. Otherwise the operation is over.
func (d *lazyDeadline) retry(err error) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil && errors.Is(err, os.ErrDeadlineExceeded) && (d.wanted.IsZero() || time.Until(d.wanted) > 0) && d.applyLocked() == nil {
		return true
	}
	d.running--
	return false
}
