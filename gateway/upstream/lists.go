package upstream

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"goblin/gateway/extensions"
	"goblin/gateway/jsonrpc"
	"goblin/gateway/upstream/timing"
	"goblin/registry"
	"goblin/registry/rawjson"
	"goblin/registry/termtext"
)

// listKind holds the differences between the kinds of lists.
type listKind struct {
	kind       registry.Kind
	capability string // its path, with blanks between
	method     string
	member     string // of the result
	key        string // of an item: its name, URI or template
	optional   bool   // servers of the capability may lack the method
}

var listKinds = [registry.Kinds]listKind{
	{registry.Tool, "tools", "tools/list", "tools", "name", false},
	{registry.Prompt, "prompts", "prompts/list", "prompts", "name", false},
	{registry.Resource, "resources", "resources/list", "resources", "uri", false},
	{registry.Template, "resources", "resources/templates/list", "resourceTemplates", "uriTemplate", true},
	{registry.Skill, "extensions " + extensions.Skills, "skills/list", "skills", "uri", false},
}

// Permits reports whether the config lets clients have an entry of the server, or
// a URI that it does not list, by the server's own name. It does not block.
func (s *Server) Permits(kind registry.Kind, name string) bool {
	switch kind {
	case registry.Tool:
		return s.cfg.Tools.Match(name)
	case registry.Prompt:
		return s.cfg.Prompts.Match(name)
	case registry.Template:
		return s.uris.MatchTemplate(name)
	default:
		return s.uris.Match(name)
	}
}

// maxDenied bounds the names of what is left out that are kept of a list.
const maxDenied = 1000

// DeniedNames are names of what the server listed last, or the first thousand, that the config
// leaves out. They are not to be changed.
func (s *Server) DeniedNames(kind registry.Kind) []string {
	if names := s.denied[kind].Load(); names != nil {
		return *names
	}
	return nil
}

// lists keeps the lists of one connection up to date: one goroutine per kind
// fetches, so that a kind that hangs holds up none of the others.
type lists struct {
	srv  *Server
	link *link
	wake [registry.Kinds]chan struct{} // capacity one: the kind is dirty
	// announced says of a kind that the server itself said that it is dirty.
	announced [registry.Kinds]atomic.Bool
	skills    *timing.FetchGate // of the list of skills
	// other is the process beside link's that a kind is fetched from because
	// it was the last that announced a change; nil for link's.
	other [registry.Kinds]atomic.Pointer[link]
}

// source is the connection that a kind is fetched from.
func (ls *lists) source(k registry.Kind) *link {
	if l := ls.other[k].Load(); l != nil && l.Err() == nil {
		return l
	}
	return ls.link
}

func newLists(s *Server, l *link) *lists {
	ls := &lists{srv: s, link: l, skills: timing.NewFetchGate()}
	for i := range ls.wake {
		ls.wake[i] = make(chan struct{}, 1)
	}
	return ls
}

func (ls *lists) markDirty(k registry.Kind) {
	select {
	case ls.wake[k] <- struct{}{}:
	default:
	}
}

// listChanged takes a notice of the backend. It runs on the read loop.
func (s *Server) listChanged(l *link, method string) {
	if method == "notifications/tools/list_changed" {
		s.toolsChanged(l)
	}
	ls := s.lists.Load()
	switch {
	case ls == nil:
		return
	case ls.link == l:
	case !l.isSharedModern():
		return // the connection of a unit: its lists are not the catalog
	case ls.link.streamOpen.Load():
		return // of the same server
	}
	on := s.opt.ListChanged
	switch method {
	case "notifications/tools/list_changed":
		if on.Tools {
			ls.handleChange(l, registry.Tool)
		}
	case "notifications/prompts/list_changed":
		if on.Prompts {
			ls.handleChange(l, registry.Prompt)
		}
	case "notifications/resources/list_changed":
		if on.Resources {
			ls.handleChange(l, registry.Resource)
			ls.handleChange(l, registry.Template)
			if listKinds[registry.Skill].offered(ls.link.Info()) {
				ls.skills.Invalidate()
			}
			ls.handleChange(l, registry.Skill) // whose files are resources
		}
	}
}

// isSharedModern reports whether l is the modern connection that all clients share beside a legacy one.
func (l *link) isSharedModern() bool { return l.info.Load().SecondEra && l.Unit() == "" }

// handleChange handles a list_changed notification of a connection.
func (ls *lists) handleChange(l *link, k registry.Kind) {
	switch {
	case l == ls.link:
		ls.other[k].Store(nil)
	case l.wire.isLocal():
		ls.other[k].Store(l)
	}
	ls.announced[k].Store(true)
	ls.markDirty(k)
}

// relist fetches again what is fetched over a connection, because notices may
// have been lost.
func (s *Server) relist(l *link) {
	l.invalidateTools()
	ls := s.lists.Load()
	if ls == nil || ls.link != l && !l.isSharedModern() {
		return
	}
	for k := range ls.wake {
		if !l.wire.isLocal() || ls.source(registry.Kind(k)) == l {
			ls.markDirty(registry.Kind(k))
		}
	}
}

// relistEnded fetches lists again that came from a process which has ended.
func (s *Server) relistEnded(l *link) {
	ls := s.lists.Load()
	if ls == nil {
		return
	}
	for k := range ls.other {
		if ls.other[k].CompareAndSwap(l, nil) {
			ls.markDirty(registry.Kind(k))
		}
	}
}

// RelistPinned fetches the tools and skills again, as after a notice of the server.
func (s *Server) RelistPinned() {
	if ls := s.lists.Load(); ls != nil {
		ls.markDirty(registry.Tool)
		ls.markDirty(registry.Skill)
	}
}

// run fetches all lists, and again what changes, until ctx ends.
func (ls *lists) run(ctx context.Context) {
	var all, first sync.WaitGroup
	first.Add(len(listKinds))
	for i := range listKinds {
		all.Go(func() { ls.follow(ctx, &listKinds[i], first.Done) })
	}
	first.Wait()
	if ctx.Err() == nil && ls.link.Err() == nil {
		ls.srv.allListed(ls.link)
	}
	all.Wait()
}

// Attempts to fetch a list that failed without the server saying that it has
// none.
const (
	maxRetries = 5
	retryPause = 2 * time.Second
)

// follow keeps the list of one kind. first is called after the first attempt.
func (ls *lists) follow(ctx context.Context, g *listKind, first func()) {
	s := ls.srv
	offered := g.offered(ls.link.Info())
	if g.kind == registry.Skill {
		s.opt.Registry.ServesSkills(s.cfg.Name, offered)
	}
	if !offered {
		if s.known[g.kind] {
			s.known[g.kind] = false
			s.opt.Registry.SetList(s.cfg.Name, g.kind, nil)
		}
		s.listBytes[g.kind].Store(0)
		c := ls.gate(g.kind, ls.link)
		c.End(c.Begin(), nil, nil)
		first()
		return // and its notices are ignored: it said that it has no such thing
	}
	failures, size := 0, 0
	fetch := func() {
		announced := ls.announced[g.kind].Swap(false)
		var ok bool
		if size, ok = ls.fetch(ctx, g); !ok {
			failures++
			return
		}
		failures = 0
		if announced && s.opt.Hooks.ListChanged != nil {
			s.opt.Hooks.ListChanged(s.cfg.Name, g.kind)
		}
	}
	fetch()
	first()
	registry.FreeAfterList(size)
	var p timing.FetchPacer
	for {
		var retry <-chan time.Time
		if failures > 0 && failures <= maxRetries {
			retry = time.After(retryPause << (failures - 1))
		}
		select {
		case <-ctx.Done():
			return
		case <-retry:
		case <-ls.wake[g.kind]:
			if sleep(ctx, p.Next(s.tune.debounce, s.tune.maxDebounce)) != nil {
				return
			}
			select {
			case <-ls.wake[g.kind]:
			default:
			}
		}
		fetch()
		registry.FreeAfterList(size)
		p.FetchEnded()
	}
}

// gate returns the gate for a fetch of a kind from source, or nil.
func (ls *lists) gate(k registry.Kind, source *link) *timing.FetchGate {
	switch {
	case !ls.srv.verifiesLists():
	case k == registry.Skill:
		return ls.skills
	case k == registry.Tool && !ls.srv.isPerProject() && source == ls.link:
		return ls.link.tools
	}
	return nil
}

// fetch fetches one list, of so many bytes, and hands it to the registry. It is
// not ok when another attempt makes sense.
func (ls *lists) fetch(ctx context.Context, g *listKind) (size int, ok bool) {
	s := ls.srv
	source := ls.source(g.kind)
	if g.kind == registry.Skill {
		defer s.skills.FetchEnded()
	}
	c := ls.gate(g.kind, source)
	n := c.Begin()
	if c == nil && g.kind == registry.Tool {
		ls.fetchOwnTools()
	}
	weight := &s.listBytes[g.kind]
	listed := weight.Load()
	defer func() { weight.Store(listed) }()
	items, weighs, complaint, err := source.fetchPages(ctx, g, func(size int64) bool { return s.exceedsListLimit(g.kind, size) })
	if ctx.Err() != nil || err != nil && source.Err() != nil {
		return 0, true // it is fetched over the next connection
	}
	if err != nil {
		var rpc errRPC
		unknown := errors.As(err, &rpc) && rpc.object.Code == jsonrpc.CodeMethodNotFound
		if unknown && g.optional {
			items, complaint, err = nil, "", nil
		} else {
			s.reportListFailure(g, err)
			if len(items) == 0 || s.known[g.kind] {
				c.End(n, nil, err)
				return 0, unknown // what was listed before stays
			}
		}
	}
	if complaint != "" {
		s.note(slog.LevelWarn, g.method+": "+complaint)
	}
	if modern := source.Info().Era == Modern; g.kind == registry.Tool && !source.wire.isLocal() && (modern || s.offersBothEras()) {
		items = s.mirror(items, modern)
	}
	kept := s.permittedItems(g, items)
	s.known[g.kind] = len(kept) > 0
	digests := ls.digests(g.kind, c, kept)
	s.reportProblems(g.kind, s.opt.Registry.SetList(s.cfg.Name, g.kind, kept))
	c.End(n, digests, nil)
	s.showEntries(ls.link)
	listed = weighs
	return int(weighs), err == nil
}

// digests returns the digests of the tools that c is about.
func (ls *lists) digests(k registry.Kind, c *timing.FetchGate, kept [][]byte) map[string]string {
	switch {
	case k != registry.Tool || !ls.srv.verifiesLists():
	case c != nil:
		return ls.srv.opt.Digests(k, kept)
	default:
		ls.link.tools.Compare() // its own may be others
	}
	return nil
}

// fetchOwnTools fetches the tools of the link for waiting calls, if the catalog has those of another
// process.
func (ls *lists) fetchOwnTools() {
	l := ls.link
	if !ls.srv.verifiesLists() || ls.srv.isPerProject() || !l.tools.HasWaiters() {
		return
	}
	n := l.tools.Begin()
	digests, err := l.fetchDigests()
	if l.ctx.Err() == nil {
		l.tools.EndCompared(n, digests, err)
	}
}

// permittedItems returns the items of a list that the config permits. It overwrites items.
func (s *Server) permittedItems(g *listKind, items [][]byte) [][]byte {
	kept, denied := s.filterItems(g, items)
	s.denied[g.kind].Store(&denied)
	return kept
}

// filterItems is permittedItems, and also returns names of the denied items.
func (s *Server) filterItems(g *listKind, items [][]byte) (kept [][]byte, denied []string) {
	kept = items[:0]
	for _, item := range items {
		// The registry drops what is too long, and says so: no glob need look at it.
		if name, ok := rawjson.String(rawjson.Get(item, g.key)); !ok || len(name) > registry.MaxURI || s.Permits(g.kind, name) {
			kept = append(kept, item)
		} else if len(denied) < maxDenied {
			denied = append(denied, name)
		}
	}
	return kept, denied
}

// reportListFailure reports that a list could not be fetched.
func (s *Server) reportListFailure(g *listKind, err error) {
	s.note(slog.LevelWarn, fmt.Sprintf("%s failed: %v", g.method, errorReason(err)))
	if s.opt.Hooks.ListFailed != nil {
		s.opt.Hooks.ListFailed(s.cfg.Name, g.method, err)
	}
}

func errorReason(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Text()
	}
	return err.Error()
}

const (
	// maxReported is the maximum number of problems of one list that are logged singly.
	maxReported = 20
	// maxKnown is the maximum number of logged problems that are stored per kind, so that a list that goes
	// back and forth does not log them again.
	maxKnown = 1000
)

// reportProblems logs the problems of a list that were not logged before.
func (s *Server) reportProblems(kind registry.Kind, problems []registry.Problem) {
	was := s.reported[kind]
	if was == nil || len(was) > maxKnown {
		s.reported[kind] = make(map[registry.Problem]bool, len(problems))
	}
	logged := 0
	for _, p := range problems {
		known := was[p]
		s.reported[kind][p] = true
		if known {
			continue
		}
		if logged++; logged > maxReported {
			continue
		}
		name := s.quote(p.Name, 200)
		s.note(p.Level, fmt.Sprintf("%s %q: %s", p.Kind, name, p.Text))
		if p.Level >= slog.LevelWarn || strings.HasPrefix(p.Text, registry.ChangedText) {
			s.log.Log(journaled, p.Level, "odd definition", "kind", p.Kind, "name", name, "problem", s.opt.Redact(p.Text))
		}
	}
	if logged > maxReported {
		s.note(slog.LevelWarn, fmt.Sprintf("more than %d %ss with problems; run: %s", maxReported, kind, termtext.Goblin("doctor", s.cfg.Name)))
		s.log.WarnContext(journaled, "more odd definitions; run: goblin doctor NAME", "kind", kind.String(), "logged", maxReported)
	}
}

// fetchPage fetches one page. The request timeout alone would not bound it: progress extends it.
func (l *link) fetchPage(ctx context.Context, g *listKind, params []byte) (jsonrpc.Reply, error) {
	ctx, cancel := context.WithTimeout(ctx, l.srv.tune.pageTimeout)
	defer cancel()
	began := time.Now()
	reply, err := l.Call(&Call{Context: ctx, Method: g.method, Params: params})
	if err == nil {
		l.srv.opt.Registry.RecordLatency(l.srv.cfg.Name, time.Since(began))
	}
	return reply, err
}

// minLists is how many bytes the lists of a server may take together in any case,
// be limits.frame lower. Pages stay in memory until their list is whole.
const minLists = 128 << 20

// exceedsListLimit reports whether the server's lists are too large together, if the list of kind k being
// fetched has size bytes.
func (s *Server) exceedsListLimit(k registry.Kind, size int64) bool {
	weight := &s.listBytes[k]
	weight.Store(max(weight.Load(), size)) // the one that is listed stays until then
	for i := range s.listBytes {
		if registry.Kind(i) != k {
			size += s.listBytes[i].Load()
		}
	}
	return size > s.tune.listBytes
}

// maxEmptyPages is the maximum number of successive pages without new items.
const maxEmptyPages = 50

// fetchPages fetches a list to its end, within bounds. With an error it returns the items that had arrived.
// complaint says where a bound cut the list off.
func (l *link) fetchPages(ctx context.Context, g *listKind, heavy func(size int64) bool) (items [][]byte, size int64, complaint string, err error) {
	s := l.srv
	cursors := map[string]bool{}
	seed, names := maphash.MakeSeed(), map[uint64]struct{}{} // by their hashes
	fruitful, barren := time.Now(), 0
	var params []byte
	for page := 1; ; page++ {
		reply, err := l.fetchPage(ctx, g, params)
		switch {
		case err != nil:
			return items, size, "", err
		case reply.Error != nil:
			return items, size, "", s.rpcError(reply.Error)
		}
		array := reply.Shape.Get(reply.Result, g.member)
		if !rawjson.IsArray(array) {
			return items, size, "", fmt.Errorf("the result has no array %q", g.member)
		}
		if g.kind == registry.Skill && page == 1 {
			s.skills.SetHints(reply.Result)
		}
		fresh := false
		for item := range reply.Shape.Elements(array) {
			if len(items) >= s.opt.Limits.Entries {
				return items, size, fmt.Sprintf("cut at %d entries (limits.entries)", s.opt.Limits.Entries), nil
			}
			key := maphash.Bytes(seed, rawjson.Get(item, g.key))
			if _, dup := names[key]; !dup {
				names[key] = struct{}{}
				fresh = true
			}
			items = append(items, item)
		}
		barren++
		if fresh {
			fruitful, barren = time.Now(), 0
		}
		size += int64(len(reply.Result))
		next := reply.Shape.Get(reply.Result, "nextCursor")
		if next == nil || string(next) == "null" {
			return items, size, "", nil
		}
		switch {
		case !rawjson.IsString(next):
			return items, size, "stopped at a nextCursor that is not a string", nil
		case cursors[string(next)]:
			return items, size, "stopped at a nextCursor that came before", nil
		case heavy(size):
			return items, size, fmt.Sprintf("cut: the lists of the server have more than %d MiB together", s.tune.listBytes>>20), nil
		case page >= s.opt.Limits.Pages:
			return items, size, fmt.Sprintf("cut after %d pages (limits.pages)", page), nil
		case barren >= maxEmptyPages, time.Since(fruitful) > s.tune.emptyPages && barren > 0:
			return items, size, fmt.Sprintf("stopped after %d pages that brought nothing new", barren), nil
		}
		cursors[string(next)] = true
		params = append(append([]byte(`{"cursor":`), next...), '}')
	}
}

// RefreshSkills fetches skills again that may be old; ok is false for a server without any.
func (s *Server) RefreshSkills(ctx context.Context) (h timing.Hints, ok bool) {
	ls := s.lists.Load()
	if ls == nil || !listKinds[registry.Skill].offered(ls.link.Info()) {
		return h, false
	}
	if ls.link.Err() == nil {
		if wait := s.skills.AwaitFresh(func() { ls.markDirty(registry.Skill) }); wait != nil {
			select {
			case <-wait:
			case <-ls.link.done:
			case <-ctx.Done():
			}
		}
	}
	return s.skills.Hints(), true
}

// offered reports whether a server declares that it has such a list.
func (g *listKind) offered(info Info) bool { return info.Has(strings.Fields(g.capability)...) }
