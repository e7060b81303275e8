package registry

import (
	"bytes"
	"container/list"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"goblin/registry/names"
)

// Limits of the content cache, in bytes.
const (
	maxContents = 64 << 20
	maxContent  = 16 << 20 // of one invocation
	// contentOverhead is the approximate memory of an invocation without its texts, in
	// bytes.
	contentOverhead = 512
)

// Values of Invocation.StaleReason.
const (
	StaleUpdated = "updated"         // the server sent an update
	StaleLost    = "connection lost" // the connection of the request was lost
)

// Invocation is a request that a UI made, with its outcome. It is immutable once cached:
// changes replace it by a copy, so equal pointers mean equal state.
type Invocation struct {
	Seq         uint64 // set by Put in call order; copies keep it
	Kind        Kind
	Server      string
	Name        string          // original: URI, URI template, prompt or tool
	Listed      string          // the requested listed URI or name
	Expanded    string          // of a template: the expanded listed URI
	Params      json.RawMessage // arguments of a tool or prompt, variables of a template
	Meta        json.RawMessage // _meta sent
	Result      json.RawMessage // as received; nil after an error
	Success     bool
	Error       string    // at most 16 KiB
	ErrorCode   int       // of a JSON-RPC error
	Cancelled   bool      // before the answer; never passed to Put
	Time        time.Time // time of the request; Put sets a zero Time
	Duration    time.Duration
	Stale       bool   // the server's content may have changed since
	StaleReason string // [StaleUpdated] or [StaleLost], the later of the two
}

type content struct {
	inv     *Invocation
	uri     string // original URI whose updates affect it, or ""
	size    int64
	element *list.Element
}

type contentKey struct {
	kind Kind
	name string
}

type serverContents struct {
	byKey map[contentKey]*content
	// byURI finds the contents that an update affects: a resource and templates expanded
	// to its URI.
	byURI map[string][]*content
}

// Contents caches the last request of UIs for each resource, template, prompt and tool,
// never requests of clients. A resource and its URI as a template expansion are separate.
// It holds at most 64 MiB and evicts the least recently used. It is safe for concurrent
// use.
//
// Contents are removed with their list entry, or when their server becomes hidden. Only
// disabling or removing the server removes results of tools.
//
// An update marks contents of its URI and parents as stale, if one of them has a
// subscription (see [Registry.ResourceUpdated]). A lost connection marks all contents of
// the server. Stale contents stay available until they are read again.
type Contents struct {
	registry *Registry
	max      int64 // bytes

	mu             sync.Mutex
	servers        map[string]*serverContents
	recent         list.List                // of *content, most recent first
	connectionLost map[string]time.Time     // by server
	recentEvents   map[string]*recentEvents // by configured server
	bytes          int64
	seq            uint64
}

// Contents returns the content cache.
func (r *Registry) Contents() *Contents { return &r.contents }

// Put caches a copy of inv and of its bytes, replaces the previous invocation, and
// returns the copy. It returns the copy without caching it in these cases:
//   - it is larger than 16 MiB
//   - its server was removed or disabled
//   - its server is hidden and it is not a tool
//   - its entry was removed from the list after inv.Time
//
// Put marks the copy as stale if its URI had a subscribed update, or its connection was
// lost, after inv.Time.
func (c *Contents) Put(inv *Invocation) *Invocation {
	kept := *inv
	kept.Stale, kept.StaleReason = false, ""
	kept.Error = cutString(kept.Error, maxLogText)
	if kept.Time.IsZero() {
		kept.Time = c.registry.opt.Now()
	}
	size := kept.size()
	if size > maxContent || kept.Kind >= Kinds {
		return c.rejectPut(&kept, size)
	}
	// Strings of the catalog would keep a whole list in memory.
	for _, f := range []*string{&kept.Name, &kept.Listed, &kept.Expanded} {
		*f = strings.Clone(*f)
	}
	kept.Params, kept.Meta, kept.Result = bytes.Clone(kept.Params), bytes.Clone(kept.Meta), bytes.Clone(kept.Result)
	n := &content{inv: &kept, size: size, uri: c.resourceURI(&kept)}

	c.mu.Lock()
	c.seq++
	kept.Seq = c.seq
	if !c.registry.cachesContents(kept.Kind, kept.Server) || c.removedSinceLocked(&kept) {
		c.mu.Unlock()
		return &kept
	}
	c.markIfOutdatedLocked(n)
	replaced := c.removeLocked(kept.Server, contentKey{kept.Kind, kept.Name})
	c.insertLocked(n)
	evicted := c.evictLocked()
	c.mu.Unlock()

	c.registry.logStored(&kept, replaced)
	c.registry.logEvicted(evicted)
	c.registry.feed.publish(Cached)
	return &kept
}

func (r *Registry) cachesContents(kind Kind, server string) bool {
	t := r.Load().table(server)
	if t == nil || t.hidden && kind != Tool {
		return false
	}
	state, _ := r.states.get(server)
	return state.State != StateDisabled
}

// rejectPut also removes the previous invocation, which is outdated.
func (c *Contents) rejectPut(inv *Invocation, size int64) *Invocation {
	c.mu.Lock()
	c.seq++
	inv.Seq = c.seq
	dropped := c.removeLocked(inv.Server, contentKey{inv.Kind, inv.Name})
	c.mu.Unlock()
	c.registry.eventLimited(&c.registry.events.cache, slog.LevelWarn, inv.Server, fmt.Sprintf("content not cached: %s %s is %s, limit %s",
		inv.Kind, c.registry.shortName(inv.Name), byteCount(size), byteCount(maxContent)))
	if dropped {
		c.registry.feed.publish(Cached)
	}
	return inv
}

func (i *Invocation) size() int64 {
	n := contentOverhead
	for _, s := range []string{i.Server, i.Name, i.Listed, i.Expanded, i.Error} {
		n += len(s)
	}
	return int64(n + len(i.Params) + len(i.Meta) + len(i.Result))
}

// resourceURI returns the original URI that an invocation read, or "".
func (c *Contents) resourceURI(inv *Invocation) string {
	switch inv.Kind {
	case Resource:
		return inv.Name
	case Template:
		if server, uri, ours := names.SplitURI(inv.Expanded); ours && server == inv.Server {
			return uri
		}
		if t, err := c.registry.ResolveResource(inv.Expanded); err == nil && t.Server == inv.Server {
			return t.Name
		}
		return inv.Expanded
	}
	return ""
}

// Last returns the last invocation of an entry by its original name, or nil. It counts as
// a use.
func (c *Contents) Last(kind Kind, server, name string) *Invocation {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.servers[server]
	if s == nil {
		return nil
	}
	n := s.byKey[contentKey{kind, name}]
	if n == nil {
		return nil
	}
	c.recent.MoveToFront(n.element)
	return n.inv
}

// Clear removes one invocation and reports whether there was one.
func (c *Contents) Clear(kind Kind, server, name string) bool {
	c.mu.Lock()
	ok := c.removeLocked(server, contentKey{kind, name})
	c.mu.Unlock()
	if ok {
		c.registry.event(slog.LevelInfo, server, fmt.Sprintf("content cleared: %s %s", kind, c.registry.shortName(name)))
		c.registry.feed.publish(Cached)
	}
	return ok
}

// ClearAll removes all invocations and returns their number.
func (c *Contents) ClearAll() int {
	c.mu.Lock()
	n := c.recent.Len()
	c.servers, c.bytes = nil, 0
	c.recent.Init()
	c.mu.Unlock()
	c.registry.logRemoved("", "cleared", n, "")
	return n
}

func (c *Contents) insertLocked(n *content) {
	s := c.servers[n.inv.Server]
	if s == nil {
		s = &serverContents{byKey: map[contentKey]*content{}, byURI: map[string][]*content{}}
		if c.servers == nil {
			c.servers = map[string]*serverContents{}
		}
		c.servers[n.inv.Server] = s
	}
	s.byKey[contentKey{n.inv.Kind, n.inv.Name}] = n
	if n.uri != "" {
		s.byURI[n.uri] = append(s.byURI[n.uri], n)
	}
	n.element = c.recent.PushFront(n)
	c.bytes += n.size
}

func (c *Contents) removeLocked(server string, k contentKey) bool {
	s := c.servers[server]
	if s == nil {
		return false
	}
	n := s.byKey[k]
	if n == nil {
		return false
	}
	delete(s.byKey, k)
	if n.uri != "" {
		rest := slices.DeleteFunc(s.byURI[n.uri], func(o *content) bool { return o == n })
		if len(rest) == 0 {
			delete(s.byURI, n.uri)
		} else {
			s.byURI[n.uri] = rest
		}
	}
	if len(s.byKey) == 0 {
		delete(c.servers, server)
	}
	c.recent.Remove(n.element)
	c.bytes -= n.size
	return true
}

func (c *Contents) removeFunc(server string, match func(*content) bool) (removed int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.servers[server]
	if s == nil {
		return 0
	}
	for k, n := range s.byKey {
		if match(n) {
			c.removeLocked(server, k)
			removed++
		}
	}
	return removed
}

// evictLocked never evicts the newest content, which always fits.
func (c *Contents) evictLocked() (n int) {
	for c.bytes > c.max && c.recent.Len() > 1 {
		inv := c.recent.Back().Value.(*content).inv
		c.removeLocked(inv.Server, contentKey{inv.Kind, inv.Name})
		n++
	}
	return n
}
