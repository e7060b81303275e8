package downstream

import (
	"sync"
	"time"
)

// Notifications without a key are chatter: log lines, and what only a server
// and its clients know. A client that does not read as fast as they come is
// spared them, or a talkative server would cost it its session.
const (
	// chatterStops is the part of limits.unsent above which a client gets none,
	// chatterGoesOn the part of that below which it gets them again.
	chatterStops  = 4
	chatterGoesOn = 4
	// chatterTold is how often somebody is told at most.
	chatterTold = time.Second
)

// chatter is what a session was spared.
type chatter struct {
	mu     sync.Mutex
	off    bool
	spared uint64 // since told
	told   time.Time
}

// spare reports whether a notification without a key is left out, as so many
// bytes wait for the client.
func (s *Session) spare(unsent int64) bool {
	most := s.opt.Limits.Unsent / chatterStops
	if s.stateless { // each request is a client of its own
		return unsent > most
	}
	off, spared := s.chatter.next(max(unsent, s.base.unsent()), most)
	if spared > 0 && s.opt.Spared != nil {
		s.opt.Spared(s, spared)
	}
	return off
}

// next decides on a notification; spared is what is to be told of those before.
func (c *chatter) next(unsent, most int64) (off bool, spared uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case unsent > most:
		c.off = true
	case unsent <= most/chatterGoesOn:
		c.off = false
	}
	if c.off {
		c.spared++
		return true, 0
	}
	if c.spared > 0 && time.Since(c.told) >= chatterTold {
		spared, c.spared, c.told = c.spared, 0, time.Now()
	}
	return false, spared
}
