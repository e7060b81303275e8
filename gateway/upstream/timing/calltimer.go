// Package timing provides call timeouts, retry delays and the ages of lists.
//
// It knows neither servers nor calls. All methods may be called from any goroutine, and
// only [FetchGate.Await] blocks.
package timing

import (
	"sync"
	"time"
)

// CallTimer is the time that a call has: a limit that progress extends and that rests while users
// are asked, and how long the server may be silent. Its zero value stands still.
type CallTimer struct {
	mu       sync.Mutex
	limit    time.Duration // 0 for none
	deadline time.Time     // zero without a limit
	last     time.Time     // when no progress extends it any more
	pauses   int
	left     time.Duration // until the deadline, while paused
	// silence is how long the server may say nothing, over a connection that would
	// not tell of its end, until it is asked for a sign of life; 0 for any time.
	silence    time.Duration
	silenceEnd time.Time     // when that is over
	retryDelay time.Duration // the last of [CallTimer.RetryDelay]
}

// Limit is how long the call may take, 0 for any time.
func (c *CallTimer) Limit() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.limit
}

// Start starts the time of a call, which no progress makes longer than whole, and returns
// when it is to be looked at; zero for never. A call that is sent again goes on with what is
// left of its time, however often the server puts it off.
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

// RetryDelay is the wait before a call is sent again that the server put off without a
// question: twice as long each time, and never longer than what is left.
func (c *CallTimer) RetryDelay() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.retryDelay = min(max(2*c.retryDelay, minRetryDelay), maxRetryDelay)
	if c.deadline.IsZero() || c.pauses > 0 {
		return c.retryDelay
	}
	return min(c.retryDelay, time.Until(c.deadline))
}

// restartLocked restarts the call's limit and the silence of its server.
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

// Pause stops the time of the call until as many calls of Resume: a human is being
// asked.
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

// Extend starts the time anew, because the server has shown that it works.
func (c *CallTimer) Extend() {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	c.left = min(c.limit, c.last.Sub(now))
	c.restartLocked(now, c.left)
}

// minRecheck is how closely the end of a pause is watched.
const minRecheck = 20 * time.Millisecond

// Check says whether the time is over, or the server was silent for long, and when to look
// again; zero for never.
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
