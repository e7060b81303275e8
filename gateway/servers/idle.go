package servers

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"goblin/gateway/config"
)

// Limits of the interval between idle checks, which is a quarter of the shortest
// idle_timeout.
const (
	minIdleCheck = 20 * time.Millisecond
	maxIdleCheck = 15 * time.Second
	settleTime   = time.Second // check interval with lazy servers
)

// usage records the use of a server. Only watchIdle accesses it.
type usage struct {
	uses       uint64
	at         time.Time // last use or subscription
	called     time.Time // last use
	subscribed bool      // shown as kept running by subscriptions
}

func (f *Manager) idlePolicy(s *config.Server) (start config.Start, idle time.Duration) {
	g := &f.o.Config.Gateway
	start = cmp.Or(s.Start, g.Start)
	if s.Isolation == config.PerProject {
		return config.EagerStart, 0 // runs as long as its clients
	}
	if s.Rebuilt() {
		return config.EagerStart, 0 // its lists are compared after each build
	}
	if s.Type != config.Stdio {
		return start, 0
	}
	return start, max(cmp.Or(s.IdleTimeout, g.IdleTimeout), 0)
}

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

func (f *Manager) stopIfIdle(b *Server, now time.Time) {
	start, limit := f.idlePolicy(&b.defined)
	uses, idle := b.Idle()
	listed := start == config.LazyStart && b.defined.Type == config.Stdio && uses == 0 // only listed so far
	if limit == 0 && !listed {
		return
	}
	u := &b.usage
	if u.at.IsZero() || uses != u.uses || !idle || f.hooks.Busy(b.Server) {
		u.uses, u.at, u.called = uses, now, now
	}
	subscribers := f.hooks.Subscribers(b.Name())
	if subscribers > 0 {
		u.at = now
	}
	if subscribed := subscribers > 0 && now.Sub(u.called) >= limit; subscribed != u.subscribed {
		u.subscribed = subscribed
		b.setSubscribed(subscribed, subscribers)
	}
	if listed {
		limit = 0
	}
	if now.Sub(u.at) >= limit && subscribers == 0 && idle {
		b.Sleep(uses)
		u.at = time.Time{} // a start before the next check counts as a use
	}
}

// setSubscribed sets whether the UI shows that subscriptions keep a server running.
func (s *Server) setSubscribed(subscribed bool, subscribers int) {
	why := ""
	if subscribed {
		why = fmt.Sprintf("%d subscriptions", subscribers)
		if subscribers == 1 {
			why = "1 subscription"
		}
	}
	s.Server.SetKeepAwake(why)
}
