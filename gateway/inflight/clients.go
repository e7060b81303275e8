package inflight

import (
	"maps"
	"slices"
	"sync"

	"goblin/gateway/downstream"
	"goblin/gateway/upstream"
)

// Clients is the set of open sessions. It is safe for concurrent use.
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

// Close removes a session.
func (c *Clients) Close(s *downstream.Session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.all, s)
}

// All returns the open sessions, the oldest first.
func (c *Clients) All() []*downstream.Session {
	c.mu.RLock()
	open := slices.Collect(maps.Keys(c.all))
	c.mu.RUnlock()
	slices.SortFunc(open, func(a, b *downstream.Session) int { return a.Started().Compare(b.Started()) })
	return open
}

// Owner returns the only session that uses a connection. It returns nil if the connection
// is shared, or its client is stateless and can't receive messages.
func (c *Clients) Owner(conn upstream.Conn) *downstream.Session {
	if in := c.inUnit(conn.Unit()); len(in) == 1 && in[0].Protocol() != "" {
		return in[0]
	}
	return nil
}

// Using returns the sessions that a connection serves, the oldest first.
func (c *Clients) Using(conn upstream.Conn) []*downstream.Session {
	all := c.All()
	if unit := conn.Unit(); unit != "" {
		all = slices.DeleteFunc(all, func(s *downstream.Session) bool { return !s.UsesUnit(unit) })
	}
	return all
}

// HasUnit reports whether an isolation unit has an open session.
func (c *Clients) HasUnit(unit string) bool { return len(c.inUnit(unit)) > 0 }

func (c *Clients) inUnit(unit string) (found []*downstream.Session) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for s := range c.all {
		if s.UsesUnit(unit) {
			found = append(found, s)
		}
	}
	return found
}

// HasUI reports whether a UI is open.
func (c *Clients) HasUI() bool {
	return slices.ContainsFunc(c.All(), (*downstream.Session).IsScreen)
}
