package upstream

import (
	"context"
	"fmt"

	"goblin/gateway/upstream/timing"
	"goblin/registry"
	"goblin/registry/termtext"
)

// With [Options.VerifyLists], all tool calls wait until their connection has listed its
// tools. They wait again after each sign of a change. The caller compares the
// definition's digest with the approved one. Without this option, only callers of
// [Server.AwaitTools] wait, and that fetches the list if necessary.

func (s *Server) verifiesLists() bool { return s.opt.VerifyLists }

// invalidateTools makes callers of AwaitTools wait for the connection's next list of
// tools. With [Options.VerifyLists] it fetches that list.
func (l *link) invalidateTools() {
	if !listKinds[registry.Tool].offered(l.Info()) {
		return
	}
	l.tools.Invalidate()
	if l.srv.verifiesLists() {
		l.relistTools()
	}
}

func (l *link) relistTools() {
	l.tools.Expect()
	select {
	case l.refetchTools <- struct{}{}:
	default:
	}
	if ls := l.srv.lists.Load(); ls != nil && ls.link == l {
		ls.markDirty(registry.Tool)
	}
}

// toolsChanged handles tools/list_changed. Over HTTP it affects all connections, since
// they reach the same server.
func (s *Server) toolsChanged(l *link) {
	l.invalidateTools()
	if l.wire.isLocal() {
		return
	}
	s.mu.Lock()
	others := []*link{s.conn}
	for _, units := range []map[string]*unit{s.units, s.modernUnits} {
		for _, u := range units {
			others = append(others, u.conn)
		}
	}
	s.mu.Unlock()
	for _, other := range others {
		if other != nil && other != l {
			other.invalidateTools()
		}
	}
}

// followTools fetches the tools of a connection whose lists are not the catalog until the
// connection closes.
func (l *link) followTools() {
	var p timing.FetchPacer
	for {
		n := l.tools.Begin()
		digests, err := l.fetchDigests()
		if l.ctx.Err() != nil {
			return
		}
		l.tools.End(n, digests, err)
		p.FetchEnded()
		select {
		case <-l.refetchTools:
		case <-l.ctx.Done():
			return
		}
		if sleep(l.ctx, p.Next(l.srv.tune.debounce, l.srv.tune.maxDebounce)) != nil {
			return
		}
	}
}

func (l *link) fetchDigests() (map[string]string, error) {
	s, g := l.srv, &listKinds[registry.Tool]
	if !g.offered(l.Info()) {
		return nil, nil
	}
	items, _, _, err := l.fetchPages(l.ctx, g, func(size int64) bool { return size > s.tune.listBytes })
	if err != nil {
		return nil, err
	}
	kept, _ := s.filterItems(g, items)
	return s.opt.Digests(registry.Tool, kept), nil
}

// AwaitTools waits until a connection has a current list of its tools. It returns nil
// when the connection closes.
func (s *Server) AwaitTools(ctx context.Context, conn Conn) error {
	l, ok := conn.(*link)
	if !ok || !listKinds[registry.Tool].offered(l.Info()) {
		return nil
	}
	l.awaited.Store(true)
	if l.ownTools.Load() {
		l.startFollowing()
		if !s.verifiesLists() && l.Info().Era == Modern {
			l.tools.Invalidate() // it did not subscribe to changes
		}
	}
	return s.uncheckedError(ctx, registry.Tool, l.tools.Await(ctx, l.done, l.relistTools))
}

// startFollowing starts followTools once.
func (l *link) startFollowing() {
	l.follow.Do(func() { l.spawn(l.followTools) })
}

// AwaitSkills is AwaitTools for skills, on the connection whose lists are the catalog. It
// needs [Options.VerifyLists].
func (s *Server) AwaitSkills(ctx context.Context) error {
	ls := s.lists.Load()
	if ls == nil || !s.verifiesLists() {
		return nil
	}
	return s.uncheckedError(ctx, registry.Skill, ls.skills.Await(ctx, ls.link.done, func() { ls.markDirty(registry.Skill) }))
}

// uncheckedError returns the Error of a call whose server did not list. It returns nil
// for nil, and the cause of ctx if that is done.
func (s *Server) uncheckedError(ctx context.Context, kind registry.Kind, err error) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	e := s.newError(errorCode(err), fmt.Sprintf("%s failed, so %s: %s",
		listKinds[kind].method, s.Unchecked(kind), errorReason(err)), err)
	e.Fix = "fix the server, then run: " + termtext.Goblin("restart", s.cfg.Name)
	return e
}

// Unchecked states what cannot be checked without a list.
func (s *Server) Unchecked(kind registry.Kind) string {
	if s.verifiesLists() {
		return fmt.Sprintf("approvals of its %ss cannot be checked (gateway.pin: strict)", kind)
	}
	return fmt.Sprintf("rules about its %ss cannot be applied", kind)
}

// Digest returns the digest of a tool in a connection's last list, or "", and whether the
// list is current. It needs [Options.VerifyLists].
func (s *Server) Digest(conn Conn, tool string) (digest string, current bool) {
	l, ok := conn.(*link)
	if !ok {
		return "", false
	}
	return l.tools.Digest(tool), l.tools.IsCurrent()
}

// ListsTool reports whether a connection's last list has the tool with that digest, or is
// the catalog itself. Call AwaitTools before.
func (s *Server) ListsTool(conn Conn, tool, digest string) bool {
	l, ok := conn.(*link)
	if !ok {
		return false
	}
	return !l.ownTools.Load() && l.tools.IsCurrent() || l.tools.Digest(tool) == digest
}
