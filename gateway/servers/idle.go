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
	minIdleCheck = 20 * time.Millisecond
	maxIdleCheck = 15 * time.Second
	settleTime   = time.Second // where one is to stop that has listed
)

// usage records when a server was used. It belongs to watchIdle.
type usage struct {
	uses       uint64    // of its connection, at the last look
	at         time.Time // when it was used last, or watched
	called     time.Time // when it was used last
	subscribed bool      // it is shown that it is watched only
}

// idlePolicy returns when a server starts, and after how long without use it stops; 0 for never.
func (f *Manager) idlePolicy(s *config.Server) (start config.Start, idle time.Duration) {
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
		pause := maxIdleCheck
		for _, b := range f.All() {
			start, idle := f.idlePolicy(&b.defined)
			if idle > 0 {
				pause = min(pause, max(idle/4, minIdleCheck))
			}
			if start == config.LazyStart {
				pause = min(pause, settleTime)
			}
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
		for _, b := range f.All() {
			f.stopIfIdle(b, time.Now())
		}
	}
}

// stopIfIdle stops a server that was idle for long enough.
func (f *Manager) stopIfIdle(b *Server, now time.Time) {
	start, limit := f.idlePolicy(&b.defined)
	uses, idle := b.Idle()
	listed := start == config.LazyStart && b.defined.Type == config.Stdio && uses == 0 // and no more
	if limit == 0 && !listed {
		return
	}
	u := &b.usage
	if u.at.IsZero() || uses != u.uses || !idle || f.hooks.Busy(b.Server) {
		u.uses, u.at, u.called = uses, now, now
	}
	watched := f.hooks.Subscribers(b.Name())
	if watched > 0 {
		u.at = now
	}
	if held := watched > 0 && now.Sub(u.called) >= limit; held != u.subscribed {
		u.subscribed = held
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
