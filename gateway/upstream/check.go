package upstream

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"goblin/registry"
)

// With [Options.Digests], calls of a tool wait until the connection that carries them has
// listed its tools, and again after each sign that the list may have changed. The caller
// compares the digest of the definition with the approved one.

// check tracks whether the list that a connection sent last is current.
type check struct {
	current atomic.Bool // no call has to wait or be compared

	mu      sync.Mutex
	wanted  uint64            // number of the last fetch that is needed
	done    uint64            // number of the last fetch that ended
	err     error             // why that fetch failed
	digests map[string]string // of the definitions of the last list, by name
	changed chan struct{}     // closed and replaced when done changes
}

func newCheck() *check { return &check{wanted: 1, changed: make(chan struct{})} }

// outdate makes later calls wait for a fetch that begins from now on.
func (c *check) outdate() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.current.Store(false)
	c.wanted++
}

// begin returns the number for a fetch that begins now. c may be nil.
func (c *check) begin() uint64 {
	if c == nil {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.wanted
}

// end records the result of a fetch. c may be nil.
func (c *check) end(n uint64, digests map[string]string, err error) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done, c.digests, c.err = n, digests, err
	c.current.Store(err == nil && c.done == c.wanted)
	close(c.changed)
	c.changed = make(chan struct{})
}

// await waits for the end of the fetch that is needed now, of over or of ctx. After a failed
// fetch it calls again, which has to cause another one.
func (c *check) await(ctx context.Context, over <-chan struct{}, again func()) error {
	if c.current.Load() {
		return nil
	}
	c.mu.Lock()
	failed := c.done == c.wanted && c.err != nil
	if failed {
		c.wanted++
	}
	needed := c.wanted
	c.mu.Unlock()
	if failed {
		again()
	}
	for {
		c.mu.Lock()
		done, err, changed := c.done, c.err, c.changed
		c.mu.Unlock()
		if done >= needed {
			return err
		}
		select {
		case <-changed:
		case <-over:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// checked reports whether calls wait for lists.
func (s *Server) checked() bool { return s.opt.Digests != nil }

// outdate makes calls over a connection wait for its next list of tools, and fetches that.
// It does nothing without [Options.Digests].
func (l *link) outdate() {
	if l.srv.checked() && listings[registry.Tool].offered(l.Info()) {
		l.tools.outdate()
		l.relistTools()
	}
}

// relistTools has the tools of a connection fetched again. It does not wait.
func (l *link) relistTools() {
	select {
	case l.retool <- struct{}{}:
	default:
	}
	if ls := l.srv.lists.Load(); ls != nil && ls.link == l {
		ls.mark(registry.Tool)
	}
}

// outdateTools takes a notice of a connection that its tools changed. Over HTTP all
// connections reach the same server.
func (s *Server) outdateTools(l *link) {
	if !s.checked() {
		return
	}
	l.outdate()
	if l.wire.local() {
		return
	}
	s.mu.Lock()
	others := []*link{s.conn}
	for _, units := range []map[string]*unit{s.units, s.twins} {
		for _, u := range units {
			others = append(others, u.conn)
		}
	}
	s.mu.Unlock()
	for _, other := range others {
		if other != nil && other != l {
			other.outdate()
		}
	}
}

// followTools fetches the tools of a connection whose lists are not the catalog, until the
// connection ends.
func (l *link) followTools() {
	var p pace
	for {
		n := l.tools.begin()
		digests, err := l.inspect()
		if l.ctx.Err() != nil {
			return
		}
		l.tools.end(n, digests, err)
		p.last = time.Now()
		select {
		case <-l.retool:
		case <-l.ctx.Done():
			return
		}
		if sleep(l.ctx, p.next(&l.srv.tune)) != nil {
			return
		}
	}
}

// inspect fetches the tools of a connection and returns the digests of their definitions.
func (l *link) inspect() (map[string]string, error) {
	s, g := l.srv, &listings[registry.Tool]
	if !g.offered(l.Info()) {
		return nil, nil
	}
	items, _, _, err := l.pages(l.ctx, g, func(size int64) bool { return size > s.tune.lists })
	if err != nil {
		return nil, err
	}
	kept, _ := s.allowed(g, items)
	return s.opt.Digests(registry.Tool, kept), nil
}

// AwaitTools waits until a connection has listed its tools, as they are now. It returns nil
// at once without [Options.Digests], and when the connection ends.
func (s *Server) AwaitTools(ctx context.Context, conn Conn) error {
	l, ok := conn.(*link)
	if !ok || !s.checked() {
		return nil
	}
	return s.unchecked(ctx, registry.Tool, l.tools.await(ctx, l.done, l.relistTools))
}

// AwaitSkills is AwaitTools for the skills of the connection whose lists are the catalog.
func (s *Server) AwaitSkills(ctx context.Context) error {
	ls := s.lists.Load()
	if ls == nil || !s.checked() {
		return nil
	}
	return s.unchecked(ctx, registry.Skill, ls.skills.await(ctx, ls.link.done, func() { ls.mark(registry.Skill) }))
}

// unchecked returns the Error of a call whose server did not list; nil if err is nil, and
// the cause of ctx if that ended.
func (s *Server) unchecked(ctx context.Context, kind registry.Kind, err error) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	e := s.failure(codeOf(err), fmt.Sprintf("%s failed, so it is unknown whether its %ss are as approved (gateway.pin: strict): %s",
		listings[kind].method, kind, reasonOf(err)), err)
	e.Fix = "fix the server, then run: goblin restart " + s.cfg.Name
	return e
}

// Digest returns the digest of a tool in the last list of a connection, "" if that list
// lacks the tool. It needs [Options.Digests].
func (s *Server) Digest(conn Conn, tool string) string {
	l, ok := conn.(*link)
	if !ok {
		return ""
	}
	l.tools.mu.Lock()
	defer l.tools.mu.Unlock()
	return l.tools.digests[tool]
}

// AwaitCatalog waits until the tools of the connection whose lists are the catalog were
// fetched once, or could not be. It returns when ctx ends.
func (s *Server) AwaitCatalog(ctx context.Context) {
	for {
		s.mu.Lock()
		changed := s.changed
		s.mu.Unlock()
		if ls := s.lists.Load(); ls != nil {
			select {
			case <-ls.tooled:
			case <-ls.link.done:
			case <-ctx.Done():
			}
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}
