package registry

import (
	"iter"
	"time"

	"goblin/registry/cache"
	"goblin/registry/names"
)

// Limits for the parents of an updated URI. Servers choose the URIs, and the work is
// length times depth.
const (
	maxDepth   = 64
	maxDeepURI = 8 << 10
)

// ParentURIs yields the parents of uri, nearest first, with and without the final slash.
// Their subscribers are notified too (spec: an update may name a sub-resource of the
// subscribed one). It yields at most 64 levels, and nothing for a URI over 8 KiB.
func ParentURIs(uri string) iter.Seq[string] {
	return func(yield func(string) bool) {
		if len(uri) > maxDeepURI {
			return
		}
		depth := 0
		for i := len(uri) - 1; i > 0 && depth < maxDepth; i-- {
			if uri[i] != '/' {
				continue
			}
			depth++
			if i+1 < len(uri) && !yield(uri[:i+1]) || !yield(uri[:i]) {
				return
			}
		}
	}
}

// markStaleLocked returns false if the invocation was stale for the same reason, so that
// repeated updates do not copy it.
func (n *content) markStaleLocked(reason string) bool {
	if n.inv.Stale && n.inv.StaleReason == reason {
		return false
	}
	inv := *n.inv
	inv.markStale(reason)
	n.inv = &inv
	return true
}

func (i *Invocation) markStale(reason string) { i.Stale, i.StaleReason = true, reason }

// markUpdated marks contents that an update of a URI affects, and returns their number.
// It records the update for requests in flight.
func (c *Contents) markUpdated(server, uri string, now time.Time) (marked int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	past, s := c.eventsLocked(server), c.servers[server]
	mark := func(uri string) {
		past.updated.Record(hashKey(uri), now)
		if s == nil {
			return
		}
		for _, n := range s.byURI[uri] {
			if n.markStaleLocked(StaleUpdated) {
				marked++
			}
		}
	}
	mark(uri)
	for parent := range ParentURIs(uri) {
		mark(parent)
	}
	return marked
}

func (c *Contents) eventsLocked(server string) *recentEvents {
	p := c.recentEvents[server]
	if p == nil {
		if c.recentEvents == nil {
			c.recentEvents = map[string]*recentEvents{}
		}
		p = &recentEvents{}
		c.recentEvents[server] = p
	}
	return p
}

func (c *Contents) markLost(server string, now time.Time) (marked int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.connectionLost == nil {
		c.connectionLost = map[string]time.Time{}
	}
	c.connectionLost[server] = now
	if s := c.servers[server]; s != nil {
		for _, n := range s.byKey {
			if n.markStaleLocked(StaleLost) {
				marked++
			}
		}
	}
	return marked
}

// markIfOutdatedLocked marks a new invocation as stale if its resource was updated, or
// its connection lost, after the request.
func (c *Contents) markIfOutdatedLocked(n *content) {
	if n.uri != "" {
		p := c.recentEvents[n.inv.Server]
		row, _ := c.registry.Subscription(n.inv.Server, n.uri) // covers a longer time
		if p != nil && p.updated.SeenAfter(hashKey(n.uri), n.inv.Time) || row.LastUpdate.After(n.inv.Time) {
			n.inv.markStale(StaleUpdated)
		}
	}
	if c.connectionLost[n.inv.Server].After(n.inv.Time) {
		n.inv.markStale(StaleLost)
	}
}

// removedSinceLocked reports whether the entry was removed from its list after the
// request. Then no later list would drop its invocation.
func (c *Contents) removedSinceLocked(inv *Invocation) bool {
	p := c.recentEvents[inv.Server]
	if p == nil || inv.Kind == Tool {
		return false
	}
	if p.removed.SeenAfter(entryHash(inv.Kind, inv.Name), inv.Time) {
		return true
	}
	if !p.removed.DroppedUntil.After(inv.Time) && !(inv.Kind == Resource && p.lastRemoval[Template].After(inv.Time)) {
		return false
	}
	t := c.registry.Load().table(inv.Server)
	budget := names.MatchBudget(maxSteps)
	return t != nil && !t.isReachable(inv.Kind, inv.Name, &budget)
}

// isReachable may wrongly return false if the budget is spent.
func (t *table) isReachable(kind Kind, name string, budget *names.MatchBudget) bool {
	if t.runs[kind].name(hashKey(name), name) != nil {
		return true
	}
	return kind == Resource && (t.open || t.links != nil && t.links.Has(name) || t.runs[Template].template(name, budget) != nil)
}

func (c *Contents) removeServer(server string) int {
	c.mu.Lock()
	delete(c.connectionLost, server)
	delete(c.recentEvents, server)
	c.mu.Unlock()
	return c.removeFunc(server, func(*content) bool { return true })
}

func (c *Contents) removeHidden(server string) int {
	return c.removeFunc(server, func(n *content) bool { return n.inv.Kind != Tool })
}

// removeUnlisted removes contents whose entries are missing from the new list in t, and
// records them for requests in flight.
func (c *Contents) removeUnlisted(t *table, kind Kind, was *run, now time.Time) int {
	if kind == Tool || was == nil {
		return 0
	}
	run := t.runs[kind]
	c.recordRemovals(t.name, kind, was, run, now)
	budget := names.MatchBudget(maxSteps) // for all: the lock is held
	return c.removeFunc(t.name, func(n *content) bool {
		name := n.inv.Name
		hash := hashKey(name)
		switch {
		case n.inv.Kind == kind:
			return was.name(hash, name) != nil && run.name(hash, name) == nil
		case n.inv.Kind == Resource && kind == Template:
			// Only the template made this URI readable.
			return (was.template(name, &budget) != nil || budget.IsSpent()) && !t.isReachable(Resource, name, &budget)
		}
		return false
	})
}

func (c *Contents) recordRemovals(server string, kind Kind, was, is *run, now time.Time) {
	gone, complete := removedEntries(kind, was, is)
	if len(gone) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.eventsLocked(server)
	p.lastRemoval[kind] = now
	for _, hash := range gone {
		p.removed.Record(hash, now)
	}
	if !complete {
		p.removed.DroppedUntil = now // other entries are compared with the list
	}
}

// removedEntries returns the hashes of the removed entries. complete is false if
// [cache.LastSeen] cannot hold them all. Both lists are sorted by Listed.
func removedEntries(kind Kind, was, is *run) (gone []uint64, complete bool) {
	var entries []Entry
	if is != nil {
		entries = is.entries
	}
	for i := range was.entries {
		e := &was.entries[i]
		for len(entries) > 0 && entries[0].Listed < e.Listed {
			entries = entries[1:]
		}
		if len(entries) > 0 && entries[0].Listed == e.Listed && entries[0].Name == e.Name ||
			is.name(hashKey(e.Name), e.Name) != nil { // under another listed name
			continue
		}
		if len(gone) == cache.MaxLastSeen {
			return gone, false
		}
		gone = append(gone, entryHash(kind, e.Name))
	}
	return gone, true
}

func (r *Registry) markContentsUpdated(server, uri string, now time.Time) {
	if n := r.contents.markUpdated(server, uri, now); n > 0 {
		r.logStale(server, n, StaleUpdated+": "+r.shortName(uri))
		r.feed.publish(Cached)
	}
}

type recentEvents struct {
	removed cache.LastSeen // removed entries, by entryHash
	updated cache.LastSeen // updated URIs and their parents, by hashKey
	// time of the last removal, by kind
	lastRemoval [Kinds]time.Time
}

func entryHash(kind Kind, name string) uint64 {
	return hashKey(name) ^ uint64(kind+1)*0x9e3779b97f4a7c15
}
