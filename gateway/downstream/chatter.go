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
	// chatterOfOne that of one server's notifications above which it gets none of
	// that server, and chatterGoesOn the part of either below which it gets them
	// again.
	chatterStops  = 4
	chatterOfOne  = 16
	chatterGoesOn = 4
	// chatterReport is how often it is logged at most, for each server.
	chatterReport = time.Second
)

// chatters counts the messages that a session was spared, by server.
type chatters struct {
	mu  sync.Mutex
	all map[string]*chatter
}

// chatter counts the messages of one server that a session was spared.
type chatter struct {
	off      bool
	spared   uint64 // since told
	reported time.Time
}

// spare reports whether a notification of a server, "" for one of ours, without a
// key is left out, since so much waits for the client already.
func (s *Session) spare(server string, out carrier) bool {
	most := s.opt.Limits.Unsent / chatterStops
	unsent := out.unsent()
	if s.stateless { // each request is a client of its own
		return unsent > most
	}
	own, mostOwn := int64(0), s.opt.Limits.Unsent/chatterOfOne
	if server != "" {
		own = s.base.waiting(server)
	}
	unsent = max(unsent, s.base.unsent())
	off, spared := s.chatter.next(server, unsent > most || own > mostOwn,
		unsent <= most/chatterGoesOn && own <= mostOwn/chatterGoesOn)
	if spared > 0 && s.opt.OnMissed != nil {
		s.opt.OnMissed(s, server, spared)
	}
	return off
}

// next decides on a notification, for which there is too much, or little; spared is how
// many were dropped before it, to be reported.
func (t *chatters) next(server string, much, little bool) (off bool, spared uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.all[server]
	if c == nil {
		if !much {
			return false, 0
		}
		c = new(chatter)
		if t.all == nil {
			t.all = make(map[string]*chatter)
		}
		t.all[server] = c
	}
	c.off = much || c.off && !little
	if c.off {
		c.spared++
		return true, 0
	}
	if c.spared > 0 && time.Since(c.reported) >= chatterReport {
		spared, c.spared, c.reported = c.spared, 0, time.Now()
	}
	return false, spared
}
