package servers

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"goblin/gateway/config"
)

// Servers that nobody uses are looked for four times in their idle_timeout, but not more
// and not less often than this.
const (
	oftenest = 20 * time.Millisecond
	seldom   = 15 * time.Second
	settles  = time.Second // where one is to stop that has listed
)

// use tracks when a server was used; it belongs to watchIdle.
type use struct {
	uses   uint64    // of its connection, at the last look
	at     time.Time // when it was used last, or watched
	called time.Time // when it was used last
	held   bool      // it is shown that it is watched only
}

// sleeps says when a server starts, and without how long a use it stops; 0 for never.
func (f *Manager) sleeps(s *config.Server) (start config.Start, idle time.Duration) {
	g := &f.o.Config.Gateway
	start = cmp.Or(s.Start, g.Start)
	if s.Isolation == config.PerProject {
		return config.EagerStart, 0 // with its clients
	}
	if s.Type != config.Stdio {
		return start, 0
	}
	return start, max(cmp.Or(s.IdleTimeout, g.IdleTimeout), 0)
}

// watchIdle stops servers that nobody has used for long enough, until ctx ends.
func (f *Manager) watchIdle(ctx context.Context) {
	for {
		pause := seldom
		for _, b := range f.All() {
			start, idle := f.sleeps(&b.defined)
			if idle > 0 {
				pause = min(pause, max(idle/4, oftenest))
			}
			if start == config.LazyStart {
				pause = min(pause, settles)
			}
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
		for _, b := range f.All() {
			f.rest(b, time.Now())
		}
	}
}

// rest stops a server if it is time.
func (f *Manager) rest(b *Server, now time.Time) {
	start, limit := f.sleeps(&b.defined)
	uses, idle := b.Idle()
	listed := start == config.LazyStart && b.defined.Type == config.Stdio && uses == 0 // and no more
	if limit == 0 && !listed {
		return
	}
	u := &b.use
	if u.at.IsZero() || uses != u.uses || !idle || f.hooks.Busy(b.Server) {
		u.uses, u.at, u.called = uses, now, now
	}
	watched := f.hooks.Subscribers(b.Name())
	if watched > 0 {
		u.at = now
	}
	if held := watched > 0 && now.Sub(u.called) >= limit; held != u.held {
		u.held = held
		b.SetSubscribed(held, watched)
	}
	if listed {
		limit = 0
	}
	if now.Sub(u.at) >= limit && watched == 0 && idle {
		b.Sleep(uses)
	}
}

// SetSubscribed shows that a server is kept running by subscribers to its resources.
func (s *Server) SetSubscribed(held bool, watched int) {
	why := ""
	if held {
		why = fmt.Sprintf("%d subscriptions", watched)
		if watched == 1 {
			why = "1 subscription"
		}
	}
	s.Server.SetKeepAwake(why)
}
