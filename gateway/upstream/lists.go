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

type listKind struct {
	kind       registry.Kind
	capability string // path, separated by spaces
	method     string
	member     string // of the result
	key        string // of an item: its name, URI or template
	optional   bool   // servers may lack the method
}

var listKinds = [registry.Kinds]listKind{
	{registry.Tool, "tools", "tools/list", "tools", "name", false},
	{registry.Prompt, "prompts", "prompts/list", "prompts", "name", false},
	{registry.Resource, "resources", "resources/list", "resources", "uri", false},
	{registry.Template, "resources", "resources/templates/list", "resourceTemplates", "uriTemplate", true},
	{registry.Skill, "extensions " + extensions.Skills, "skills/list", "skills", "uri", false},
}

// Permits reports whether the config permits an entry or unlisted URI of the server, by
// its original name. It doesn't block.
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

// maxDenied limits the stored names of denied entries per list.
const maxDenied = 1000

// DeniedNames returns up to 1000 names in the server's last list that the config denies.
// Callers must not modify them.
func (s *Server) DeniedNames(kind registry.Kind) []string {
	if names := s.denied[kind].Load(); names != nil {
		return *names
	}
	return nil
}

// lists keeps the lists of one connection current. Each kind has its own goroutine, so
// that a hanging kind doesn't block others.
type lists struct {
	srv       *Server
	link      *link
	wake      [registry.Kinds]chan struct{} // capacity one: kind is dirty
	announced [registry.Kinds]atomic.Bool   // list_changed arrived
	skills    *timing.FetchGate
	// other is the process that last announced a change of a kind, or nil for link.
	other [registry.Kinds]atomic.Pointer[link]
}

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
		return // a unit's lists are not the catalog
	case ls.link.streamOpen.Load():
		return // same server over HTTP, already announced
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
			ls.handleChange(l, registry.Skill) // skill files are resources
		}
	}
}

// isSharedModern reports whether l is the shared modern connection beside a legacy one.
func (l *link) isSharedModern() bool { return l.info.Load().SecondEra && l.Unit() == "" }

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

// relist fetches the lists again, because notifications may have been lost.
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

// RelistPinned fetches tools and skills again.
func (s *Server) RelistPinned() {
	if ls := s.lists.Load(); ls != nil {
		ls.markDirty(registry.Tool)
		ls.markDirty(registry.Skill)
	}
}

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

const (
	maxRetries = 5
	retryPause = 2 * time.Second
)

// follow keeps the list of one kind current. It calls first after the first attempt.
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
		return // and its notifications are ignored
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

func (ls *lists) gate(k registry.Kind, source *link) *timing.FetchGate {
	switch {
	case k == registry.Skill && ls.srv.verifiesLists():
		return ls.skills
	case k == registry.Tool && !ls.srv.isPerProject() && source == ls.link:
		return ls.link.tools
	}
	return nil
}

// fetch returns the size in bytes; ok is false if a retry makes sense.
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
		return 0, true // the next connection fetches it
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
				return 0, unknown // the previous list stays
			}
		}
	}
	if err == nil {
		s.setListError(g, "")
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

func (ls *lists) digests(k registry.Kind, c *timing.FetchGate, kept [][]byte) map[string]string {
	switch {
	case k != registry.Tool:
	case c == nil:
		ls.link.tools.Compare() // the link's own tools may differ
	case ls.srv.verifiesLists():
		return ls.srv.opt.Digests(k, kept)
	}
	return nil
}

// fetchOwnTools fetches the link's tools for waiting calls if the catalog has those of
// another process.
func (ls *lists) fetchOwnTools() {
	l := ls.link
	if ls.srv.isPerProject() || !ls.srv.verifiesLists() && !l.awaited.Load() || !l.tools.HasWaiters() {
		return
	}
	n := l.tools.Begin()
	digests, err := l.fetchDigests()
	if l.ctx.Err() == nil {
		l.tools.EndCompared(n, digests, err)
	}
}

// permittedItems overwrites items.
func (s *Server) permittedItems(g *listKind, items [][]byte) [][]byte {
	kept, denied := s.filterItems(g, items)
	s.denied[g.kind].Store(&denied)
	return kept
}

func (s *Server) filterItems(g *listKind, items [][]byte) (kept [][]byte, denied []string) {
	kept = items[:0]
	for _, item := range items {
		// The registry drops and reports names that are too long, so skip matching them.
		if name, ok := rawjson.String(rawjson.Get(item, g.key)); !ok || len(name) > registry.MaxURI || s.Permits(g.kind, name) {
			kept = append(kept, item)
		} else if len(denied) < maxDenied {
			denied = append(denied, name)
		}
	}
	return kept, denied
}

func (s *Server) reportListFailure(g *listKind, err error) {
	reason := errorReason(err)
	s.note(slog.LevelWarn, fmt.Sprintf("%s failed: %v", g.method, reason))
	s.setListError(g, reason)
	if s.opt.Hooks.ListFailed != nil {
		s.opt.Hooks.ListFailed(s.cfg.Name, g.method, err)
	}
}

// setListError makes a failed list the server's last error. It removes that error if
// reason is "".
func (s *Server) setListError(g *listKind, reason string) {
	prefix := g.method + " failed: "
	s.stateMu.Lock()
	known := s.state.LastError
	s.stateMu.Unlock()
	switch {
	case reason != "" && known == "":
		s.setState(func(st *registry.ServerState) { st.LastError = prefix + reason })
	case reason == "" && strings.HasPrefix(known, prefix):
		s.setState(func(st *registry.ServerState) { st.LastError = "" })
	}
}

func errorReason(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Text()
	}
	return err.Error()
}

const (
	maxReported = 20
	// maxKnown is the maximum number of remembered problems per kind. They prevent
	// repeated logging when a list alternates.
	maxKnown = 1000
)

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
			s.log.Log(journaled, p.Level, "invalid definition", "kind", p.Kind, "name", name, "problem", s.opt.Redact(p.Text))
		}
	}
	if logged > maxReported {
		s.note(slog.LevelWarn, fmt.Sprintf("more than %d %ss with problems; run: %s", maxReported, kind, termtext.Goblin("doctor", s.cfg.Name)))
		s.log.WarnContext(journaled, "more invalid definitions; run: goblin doctor NAME", "kind", kind.String(), "logged", maxReported)
	}
}

// fetchPage has its own timeout per page because progress extends the request's.
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

// minLists is the minimum of the limit for all lists of a server, in bytes, even if
// limits.frame is lower. Pages stay in memory until their list is complete.
const minLists = 128 << 20

// exceedsListLimit reports whether the server's lists exceed their limit together. size
// is the current size of list k being fetched.
func (s *Server) exceedsListLimit(k registry.Kind, size int64) bool {
	weight := &s.listBytes[k]
	weight.Store(max(weight.Load(), size)) // the published list stays until then
	for i := range s.listBytes {
		if registry.Kind(i) != k {
			size += s.listBytes[i].Load()
		}
	}
	return size > s.tune.listBytes
}

// maxEmptyPages limits consecutive pages without new items.
const maxEmptyPages = 50

// fetchPages fetches a whole list within the limits. With an error it returns the items
// so far. complaint names the limit that truncated the list.
func (l *link) fetchPages(ctx context.Context, g *listKind, heavy func(size int64) bool) (items [][]byte, size int64, complaint string, err error) {
	s := l.srv
	cursors := map[string]bool{}
	seed, names := maphash.MakeSeed(), map[uint64]struct{}{}
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
				return items, size, fmt.Sprintf("truncated at %d entries (limits.entries)", s.opt.Limits.Entries), nil
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
			return items, size, "stopped at a repeated nextCursor", nil
		case heavy(size):
			return items, size, fmt.Sprintf("truncated: the server's lists exceed %d MiB in total", s.tune.listBytes>>20), nil
		case page >= s.opt.Limits.Pages:
			return items, size, fmt.Sprintf("truncated after %d pages (limits.pages)", page), nil
		case barren >= maxEmptyPages, time.Since(fruitful) > s.tune.emptyPages && barren > 0:
			return items, size, fmt.Sprintf("stopped after %d pages without new entries", barren), nil
		}
		cursors[string(next)] = true
		params = append(append([]byte(`{"cursor":`), next...), '}')
	}
}

// RefreshSkills fetches outdated skills again. ok is false if the server has no skills.
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

func (g *listKind) offered(info Info) bool { return info.Has(strings.Fields(g.capability)...) }
