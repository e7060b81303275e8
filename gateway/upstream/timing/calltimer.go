// Package timing provides call timeouts, retry delays and the ages of lists.
//
// Unless stated otherwise, methods are safe for concurrent use. Only [FetchGate.Await]
// blocks.
package timing

import (
	"sync"
	"time"
)

// CallTimer measures the time of a call. Its limit is extended by progress and paused
// while users are asked. It also detects a silent server. The zero value is not started.
type CallTimer struct {
	mu       sync.Mutex
	limit    time.Duration
	deadline time.Time
	last     time.Time // progress doesn't extend beyond it
	pauses   int
	left     time.Duration // until the deadline, while paused
	// silence is the time without messages after which the server is checked, or 0. It is
	// for connections that can break unnoticed.
	silence    time.Duration
	silenceEnd time.Time // end of the current silence limit
	retryDelay time.Duration
}

// Limit returns the maximum duration of the call, or 0.
func (c *CallTimer) Limit() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.limit
}

// Start starts the timer and returns the time of its next check, or zero. whole limits
// the extension by progress. A call that is sent again continues with its remaining time.
func (c *CallTimer) Start(limit, silence, whole time.Duration) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if c.last.IsZero() {
		c.limit, c.left, c.silence = limit, limit, silence
		c.last = now.Add(whole)
		c.restartLocked(now, limit)
	} else if c.silence > 0 {
		c.silenceEnd = now.Add(c.silence)
	}
	return c.nextLocked()
}

const minRetryDelay, maxRetryDelay = 200 * time.Millisecond, 5 * time.Second

// RetryDelay returns the delay before a call that the server postponed is sent again. It
// doubles each time, within the remaining time.
func (c *CallTimer) RetryDelay() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.retryDelay = min(max(2*c.retryDelay, minRetryDelay), maxRetryDelay)
	if c.deadline.IsZero() || c.pauses > 0 {
		return c.retryDelay
	}
	return min(c.retryDelay, time.Until(c.deadline))
}

func (c *CallTimer) restartLocked(now time.Time, limit time.Duration) {
	if c.limit > 0 {
		c.deadline = now.Add(limit)
	}
	if c.silence > 0 {
		c.silenceEnd = now.Add(c.silence)
	}
}

func (c *CallTimer) nextLocked() time.Time {
	if c.deadline.IsZero() || !c.silenceEnd.IsZero() && c.silenceEnd.Before(c.deadline) {
		return c.silenceEnd
	}
	return c.deadline
}

// Pause stops the timer while a user is asked. Each Pause needs one Resume.
func (c *CallTimer) Pause() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pauses == 0 {
		c.left = time.Until(c.deadline)
	}
	c.pauses++
}

// Resume undoes one Pause.
func (c *CallTimer) Resume() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pauses == 0 {
		return
	}
	if c.pauses--; c.pauses == 0 {
		c.restartLocked(time.Now(), c.left)
	}
}

// Extend restarts the limit after the server reported progress.
func (c *CallTimer) Extend() {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	c.left = min(c.limit, c.last.Sub(now))
	c.restartLocked(now, c.left)
}

const minRecheck = 20 * time.Millisecond

// Check reports whether the call timed out and whether the server was silent too long. It
// returns the time of the next check, or zero.
func (c *CallTimer) Check(now time.Time) (over, silent bool, next time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.pauses > 0:
		if c.deadline.IsZero() && c.silenceEnd.IsZero() {
			return false, false, time.Time{}
		}
		wait := c.left
		if c.deadline.IsZero() {
			wait = c.silence
		}
		return false, false, now.Add(max(wait, minRecheck))
	case !c.deadline.IsZero() && !now.Before(c.deadline):
		return true, false, time.Time{}
	case !c.silenceEnd.IsZero() && !now.Before(c.silenceEnd):
		silent = true
		c.silenceEnd = now.Add(c.silence)
	}
	return false, silent, c.nextLocked()
}
