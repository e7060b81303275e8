package registry

import (
	"cmp"
	"slices"
)

// ClearServer removes all of a server's invocations and returns their number.
func (c *Contents) ClearServer(server string) int {
	n := c.removeFunc(server, func(*content) bool { return true })
	c.registry.logRemoved(server, "cleared", n, "")
	return n
}

// Stats returns the number and size of the cached entries.
func (c *Contents) Stats() (entries int, bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.recent.Len(), c.bytes
}

// All returns all invocations, newest first. It does not count as a use.
func (c *Contents) All() []*Invocation {
	c.mu.Lock()
	out := make([]*Invocation, 0, c.recent.Len())
	for e := c.recent.Front(); e != nil; e = e.Next() {
		out = append(out, e.Value.(*content).inv)
	}
	c.mu.Unlock()
	slices.SortFunc(out, func(a, b *Invocation) int { return cmp.Compare(b.Seq, a.Seq) })
	return out
}
