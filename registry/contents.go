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

// Bounds of the content cache.
const (
	maxContents = 64 << 20
	maxContent  = 16 << 20 // of one invocation
	// contentOverhead is about what an invocation takes besides its texts.
	contentOverhead = 512
)

// The values of Invocation.StaleReason.
const (
	StaleUpdated = "updated"         // the server said that it changed
	StaleLost    = "connection lost" // the connection that it came over is gone
)

// Invocation is one request that a screen made, with its outcome. It is
// immutable once it is in the cache: what changes replaces it by a copy, so
// two pointers that are equal are the same state.
type Invocation struct {
	Seq         uint64 // filled by Put, in the order of the calls; copies keep it
	Kind        Kind
	Server      string
	Name        string          // original: URI, URI template, prompt or tool
	Listed      string          // what was asked for: the listed URI or name
	Expanded    string          // of a template: the expanded listed URI
	Params      json.RawMessage // arguments of a tool or prompt, variables of a template
	Meta        json.RawMessage // _meta sent
	Result      json.RawMessage // as received, nil on an error
	Success     bool
	Error       string    // cut at 16 KiB
	ErrorCode   int       // of a JSON-RPC error
	Cancelled   bool      // before there was an answer; Put gets none that was
	Time        time.Time // when it was asked; when zero Put fills in its own time
	Duration    time.Duration
	Stale       bool   // what the server has may be something else by now
	StaleReason string // [StaleUpdated] or [StaleLost], the later of the two
}

// content is an invocation in the cache.
type content struct {
	inv     *Invocation
	uri     string // the original URI whose updates concern it, "" for none
	size    int64
	element *list.Element // element of Contents.recent
}

type contentKey struct {
	kind Kind
	name string
}

// serverContents is what is cached of one server.
type serverContents struct {
	byKey map[contentKey]*content
	// byURI finds what an update concerns: a resource and every template
	// whose expansion it was.
	byURI map[string][]*content
}

// Contents is the content cache: what screens asked for, never what clients
// did. It keeps the last invocation of every resource, template, prompt and
// tool; the same resource on its own and as an expansion are two. All methods
// hold one mutex for a moment. It is bounded to 64 MiB, of which the least
// recently used leaves first, counted.
//
// What the catalog drops goes, results of tools excepted: a list without a
// resource, template or prompt drops its content; a server that is hidden
// drops all but tools' results, one that is disabled or removed those too. An
// update of a URI, or of one below it, makes the resource and the expansions
// stale if somebody subscribed to the URI or to one above it (see
// [Registry.ResourceUpdated]; others are ignored, whether they come before or after an
// answer), a lost connection all of the server's: they can still be shown
// until they are read again.
type Contents struct {
	registry *Registry
	max      int64 // bytes

	mu             sync.Mutex
	servers        map[string]*serverContents
	recent         list.List                // of *content, most recent first
	connectionLost map[string]time.Time     // by server: when its connection was last lost
	recentEvents   map[string]*recentEvents // by configured server
	bytes          int64
	seq            uint64
}

// Contents returns the content cache.
func (r *Registry) Contents() *Contents { return &r.contents }

// Put stores a copy of inv, with copies of its bytes, in place of the one
// before, and returns the copy. What is over 16 MiB, belongs to a server that
// is gone or disabled or, tools excepted, to one that is hidden is not stored,
// but returned all the same. So is what left its list after inv.Time, while the
// answer was on the way.
//
// A result that was overtaken by an update of its URI that somebody subscribed
// to, or by the end of the connection, is stored as stale.
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
	// Names out of the catalog would keep a whole list's memory alive.
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

// cachesContents reports whether contents of a kind are cached for a server.
func (r *Registry) cachesContents(kind Kind, server string) bool {
	t := r.Load().table(server)
	if t == nil || t.hidden && kind != Tool {
		return false
	}
	state, _ := r.states.get(server)
	return state.State != StateDisabled
}

// rejectPut numbers an invocation that is too large to store. It also removes the previous one,
// which is no longer the last.
func (c *Contents) rejectPut(inv *Invocation, size int64) *Invocation {
	c.mu.Lock()
	c.seq++
	inv.Seq = c.seq
	dropped := c.removeLocked(inv.Server, contentKey{inv.Kind, inv.Name})
	c.mu.Unlock()
	c.registry.eventLimited(&c.registry.events.cache, slog.LevelWarn, inv.Server, fmt.Sprintf("content not kept: %s %s is %s, more than %s",
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

// resourceURI returns the original URI that an invocation read, or "" if it read none.
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

// Last returns the last invocation of something of a server, by its original name,
// nil if there is none. Looking counts as use.
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

// Clear forgets one invocation; false when there was none.
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

// ClearAll forgets all invocations and returns how many.
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

// removeFunc removes the invocations of a server for which match returns true. It returns their
// number.
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

// evictLocked makes room. The invocation put last stays: alone it fits.
func (c *Contents) evictLocked() (n int) {
	for c.bytes > c.max && c.recent.Len() > 1 {
		inv := c.recent.Back().Value.(*content).inv
		c.removeLocked(inv.Server, contentKey{inv.Kind, inv.Name})
		n++
	}
	return n
}
