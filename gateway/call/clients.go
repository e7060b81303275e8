package call

import (
	"maps"
	"slices"
	"sync"

	"goblin/gateway/downstream"
	"goblin/gateway/upstream"
)

// Clients are the open sessions.
type Clients struct {
	mu  sync.RWMutex
	all map[*downstream.Session]struct{}
}

// Open adds a session.
func (c *Clients) Open(s *downstream.Session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil {
		c.all = make(map[*downstream.Session]struct{})
	}
	c.all[s] = struct{}{}
}

// Close takes a session out.
func (c *Clients) Close(s *downstream.Session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.all, s)
}

// All are the open sessions, the oldest first.
func (c *Clients) All() []*downstream.Session {
	c.mu.RLock()
	open := slices.Collect(maps.Keys(c.all))
	c.mu.RUnlock()
	slices.SortFunc(open, func(a, b *downstream.Session) int { return a.Since().Compare(b.Since()) })
	return open
}

// Owner is the session that a connection belongs to alone; nil when it is shared, or
// a stateless client's, which nothing can be sent to.
func (c *Clients) Owner(conn upstream.Conn) *downstream.Session {
	if s := c.in(conn.Unit()); s != nil && s.Protocol() != "" {
		return s
	}
	return nil
}

// Inhabits reports whether a session of an isolation unit is open.
func (c *Clients) Inhabits(unit string) bool { return c.in(unit) != nil }

func (c *Clients) in(unit string) *downstream.Session {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for s := range c.all {
		if unit != "" && s.Unit() == unit {
			return s
		}
	}
	return nil
}
