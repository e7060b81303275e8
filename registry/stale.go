package registry

import (
	"iter"
	"time"
)

// Bounds of how far up an update of a URI is followed: servers choose the
// URIs, and the work is their length times their depth.
const (
	maxDepth   = 64
	maxDeepURI = 8 << 10
)

// Above yields the URIs whose watchers care for an update of uri: those above
// it, nearest first, with and without the final slash (spec: an update may
// name a sub-resource of what was subscribed to). It yields at most 64 levels,
// and none of a URI over 8 KiB.
func Above(uri string) iter.Seq[string] {
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
func (n *content) markLocked(reason string, now time.Time) bool {
	if n.inv.Stale && n.inv.StaleReason == reason {
		return false
	}
	inv := *n.inv
	inv.outdate(reason, now)
	n.inv = &inv
	return true
}

func (i *Invocation) outdate(reason string, now time.Time) {
	i.Stale, i.StaleReason = true, reason
	if reason == StaleUpdated && i.Touched.IsZero() {
		i.Touched = now
	}
}

// updated marks what an update of a URI concerns, and returns how many.
func (c *Contents) updated(server, uri string, now time.Time) (marked int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.servers[server]
	if s == nil || len(s.byURI) == 0 {
		return 0
	}
	mark := func(uri string) {
		for _, n := range s.byURI[uri] {
			if n.markLocked(StaleUpdated, now) {
				marked++
			}
		}
	}
	mark(uri)
	for parent := range Above(uri) {
		mark(parent)
	}
	return marked
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
			if n.markLocked(StaleLost, now) {
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
		if row, ok := c.registry.Subscription(n.inv.Server, n.uri); ok && row.LastUpdate.After(n.inv.Time) {
			n.inv.outdate(StaleUpdated, row.LastUpdate)
		}
	}
	if c.lost[n.inv.Server].After(n.inv.Time) {
		n.inv.outdate(StaleLost, time.Time{})
	}
}

// forget drops all of a server that left.
func (c *Contents) forget(server string) int {
	c.mu.Lock()
	delete(c.lost, server)
	c.mu.Unlock()
	return c.remove(server, func(*content) bool { return true })
}

// hide drops what cannot be reached while a server's entries are hidden.
func (c *Contents) hide(server string) int {
	return c.remove(server, func(n *content) bool { return n.inv.Kind != Tool })
}

// relisted drops what a list that came in place of was does not have any
// more. t is the table that holds the new one.
func (c *Contents) relisted(t *table, kind Kind, was *run) int {
	if kind == Tool || was == nil {
		return 0
	}
	run := t.runs[kind]
	return c.remove(t.name, func(n *content) bool {
		name := n.inv.Name
		hash := hashKey(name)
		switch {
		case n.inv.Kind == kind:
			return was.name(hash, name) != nil && run.name(hash, name) == nil
		case n.inv.Kind == Resource && kind == Template:
			// It was read as it is, but only the template said that it can be.
			return t.runs[Resource].name(hash, name) == nil && was.template(name) != nil &&
				run.template(name) == nil && !t.open && (t.learned == nil || !t.learned.has(name))
		}
		return false
	})
}

// Updated notes that a server said that a URI changed: what is cached of it,
// and of the URIs above it, becomes stale. Unlike [Registry.Touched] it takes
// the word of a server that nobody subscribed to.
func (r *Registry) Updated(server, uri string) { r.outdated(server, uri, r.opt.Now()) }

func (r *Registry) outdated(server, uri string, now time.Time) {
	if n := r.contents.updated(server, uri, now); n > 0 {
		r.marked(server, n, StaleUpdated+": "+r.short(uri))
		r.feed.publish(Cached)
	}
}
