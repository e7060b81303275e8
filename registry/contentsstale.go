package registry

import (
	"iter"
	"time"

	"goblin/registry/cache"
	"goblin/registry/names"
)

// Bounds of how far up an update of a URI is followed: servers choose the
// URIs, and the work is their length times their depth.
const (
	maxDepth   = 64
	maxDeepURI = 8 << 10
)

// ParentURIs yields the URIs whose watchers care for an update of uri: those above
// it, nearest first, with and without the final slash (spec: an update may
// name a sub-resource of what was subscribed to). It yields at most 64 levels,
// and none of a URI over 8 KiB.
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

// markLocked makes an invocation stale and reports whether it was not, for
// that reason, before: of many updates only the first makes a copy.
func (n *content) markLocked(reason string) bool {
	if n.inv.Stale && n.inv.StaleReason == reason {
		return false
	}
	inv := *n.inv
	inv.outdate(reason)
	n.inv = &inv
	return true
}

func (i *Invocation) outdate(reason string) { i.Stale, i.StaleReason = true, reason }

// updated marks what an update of a URI concerns, and returns how many. It is
// remembered for what is on the way.
func (c *Contents) updated(server, uri string, now time.Time) (marked int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	past, s := c.pastLocked(server), c.servers[server]
	mark := func(uri string) {
		past.updated.Record(hashKey(uri), now)
		if s == nil {
			return
		}
		for _, n := range s.byURI[uri] {
			if n.markLocked(StaleUpdated) {
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

func (c *Contents) pastLocked(server string) *past {
	p := c.past[server]
	if p == nil {
		if c.past == nil {
			c.past = map[string]*past{}
		}
		p = &past{}
		c.past[server] = p
	}
	return p
}

// lose marks all of a server whose connection is gone.
func (c *Contents) lose(server string, now time.Time) (marked int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lost == nil {
		c.lost = map[string]time.Time{}
	}
	c.lost[server] = now
	if s := c.servers[server]; s != nil {
		for _, n := range s.byKey {
			if n.markLocked(StaleLost) {
				marked++
			}
		}
	}
	return marked
}

// overtakenLocked marks an invocation that is not stored yet, if what would
// have marked it happened while its answer was on the way.
func (c *Contents) overtakenLocked(n *content) {
	if n.uri != "" {
		p := c.past[n.inv.Server]
		row, _ := c.registry.Subscription(n.inv.Server, n.uri) // which knows for longer
		if p != nil && p.updated.SeenAfter(hashKey(n.uri), n.inv.Time) || row.LastUpdate.After(n.inv.Time) {
			n.inv.outdate(StaleUpdated)
		}
	}
	if c.lost[n.inv.Server].After(n.inv.Time) {
		n.inv.outdate(StaleLost)
	}
}

// leftLocked reports whether an invocation is of something that left its list
// after it was asked for, so that no later list would drop it.
func (c *Contents) leftLocked(inv *Invocation) bool {
	p := c.past[inv.Server]
	if p == nil || inv.Kind == Tool {
		return false
	}
	if p.left.SeenAfter(entryHash(inv.Kind, inv.Name), inv.Time) {
		return true
	}
	if !p.left.DroppedUntil.After(inv.Time) && !(inv.Kind == Resource && p.unlisted[Template].After(inv.Time)) {
		return false
	}
	t := c.registry.Load().table(inv.Server)
	budget := names.MatchBudget(maxSteps)
	return t != nil && !t.reaches(inv.Kind, inv.Name, &budget)
}

// reaches reports whether an entry is listed or, of resources, can be read
// without. It may be false by mistake when the budget is spent.
func (t *table) reaches(kind Kind, name string, budget *names.MatchBudget) bool {
	if t.runs[kind].name(hashKey(name), name) != nil {
		return true
	}
	return kind == Resource && (t.open || t.learned != nil && t.learned.Has(name) || t.runs[Template].template(name, budget) != nil)
}

// forget drops all of a server that left.
func (c *Contents) forget(server string) int {
	c.mu.Lock()
	delete(c.lost, server)
	delete(c.past, server)
	c.mu.Unlock()
	return c.remove(server, func(*content) bool { return true })
}

// hide drops what cannot be reached while a server's entries are hidden.
func (c *Contents) hide(server string) int {
	return c.remove(server, func(n *content) bool { return n.inv.Kind != Tool })
}

// relisted drops what a list that came in place of was does not have any
// more, and remembers it for what is on the way. t is the table that holds the
// new one.
func (c *Contents) relisted(t *table, kind Kind, was *run, now time.Time) int {
	if kind == Tool || was == nil {
		return 0
	}
	run := t.runs[kind]
	c.leave(t.name, kind, was, run, now)
	budget := names.MatchBudget(maxSteps) // for all: the lock is held
	return c.remove(t.name, func(n *content) bool {
		name := n.inv.Name
		hash := hashKey(name)
		switch {
		case n.inv.Kind == kind:
			return was.name(hash, name) != nil && run.name(hash, name) == nil
		case n.inv.Kind == Resource && kind == Template:
			// It was read as it is, but only the template said that it can be.
			return (was.template(name, &budget) != nil || budget.IsSpent()) && !t.reaches(Resource, name, &budget)
		}
		return false
	})
}

// leave notes what of a list another one lacks.
func (c *Contents) leave(server string, kind Kind, was, is *run, now time.Time) {
	gone, all := left(kind, was, is)
	if len(gone) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.pastLocked(server)
	p.unlisted[kind] = now
	for _, hash := range gone {
		p.left.Record(hash, now)
	}
	if !all {
		p.left.DroppedUntil = now // the others are told by their absence
	}
}

// left returns the hashes of what of a list another one lacks; all is false if
// it is too much for [cache.LastSeen]. Both lists are in the order of Listed.
func left(kind Kind, was, is *run) (gone []uint64, all bool) {
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

// outdated marks contents that were read before as stale, after an update of their server.
func (r *Registry) outdated(server, uri string, now time.Time) {
	if n := r.contents.updated(server, uri, now); n > 0 {
		r.marked(server, n, StaleUpdated+": "+r.short(uri))
		r.feed.publish(Cached)
	}
}

// past notes the latest events of a server's entries.
type past struct {
	left    cache.LastSeen // entries that left a list, by entryHash
	updated cache.LastSeen // URIs that the server said had changed, and those above them, by hashKey
	// unlisted is when a list lost an entry last, by kind.
	unlisted [Kinds]time.Time
}

func entryHash(kind Kind, name string) uint64 {
	return hashKey(name) ^ uint64(kind+1)*0x9e3779b97f4a7c15
}
