package upstream

import (
	"sync"
	"time"
)

// clock is the time that a call has.
type clock struct {
	mu       sync.Mutex
	limit    time.Duration // 0 for none
	deadline time.Time     // zero without a limit
	last     time.Time     // when no progress extends it any more
	pauses   int
	left     time.Duration // until the deadline, while paused
	// silence is how long the server may say nothing, over a connection that would
	// not tell of its end, until it is asked for a sign of life; 0 for any time.
	silence time.Duration
	quiet   time.Time // when that is over
}

// start starts the time of a call, which no progress makes longer than whole, and returns
// when it is to be looked at; zero for never.
func (c *clock) start(limit, silence, whole time.Duration) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	c.limit, c.left, c.silence = limit, limit, silence
	c.deadline, c.last, c.quiet = time.Time{}, now.Add(whole), time.Time{}
	c.againLocked(now, limit)
	return c.nextLocked()
}

// againLocked lets the call take so long from now on, and the server be silent anew.
func (c *clock) againLocked(now time.Time, limit time.Duration) {
	if c.limit > 0 {
		c.deadline = now.Add(limit)
	}
	if c.silence > 0 {
		c.quiet = now.Add(c.silence)
	}
}

func (c *clock) nextLocked() time.Time {
	if c.deadline.IsZero() || !c.quiet.IsZero() && c.quiet.Before(c.deadline) {
		return c.quiet
	}
	return c.deadline
}

// Pause stops the time of the call until as many calls of Resume: a human is being
// asked.
func (c *Call) Pause() {
	c.clock.mu.Lock()
	defer c.clock.mu.Unlock()
	if c.clock.pauses == 0 {
		c.clock.left = time.Until(c.clock.deadline)
	}
	c.clock.pauses++
}

// Resume undoes one Pause.
func (c *Call) Resume() {
	c.clock.mu.Lock()
	defer c.clock.mu.Unlock()
	if c.clock.pauses == 0 {
		return
	}
	if c.clock.pauses--; c.clock.pauses == 0 {
		c.clock.againLocked(time.Now(), c.clock.left)
	}
}

// extend starts the time anew, because the server has shown that it works.
func (c *clock) extend() {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	c.left = min(c.limit, c.last.Sub(now))
	c.againLocked(now, c.left)
}

// minRecheck is how closely the end of a pause is watched.
const minRecheck = 20 * time.Millisecond

// look says whether the time is over, or the server was silent for long, and when to look
// again; zero for never.
func (c *clock) look(now time.Time) (over, silent bool, next time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.pauses > 0:
		if c.deadline.IsZero() && c.quiet.IsZero() {
			return false, false, time.Time{}
		}
		wait := c.left
		if c.deadline.IsZero() {
			wait = c.silence
		}
		return false, false, now.Add(max(wait, minRecheck))
	case !c.deadline.IsZero() && !now.Before(c.deadline):
		return true, false, time.Time{}
	case !c.quiet.IsZero() && !now.Before(c.quiet):
		silent = true
		c.quiet = now.Add(c.silence)
	}
	return false, silent, c.nextLocked()
}
