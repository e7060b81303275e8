package registry

import (
	"fmt"
	"log/slog"
	"maps"
	"math"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"goblin/registry/definition"
	"goblin/registry/names"
	"goblin/registry/termtext"
)

// Options configures the catalog. Zero values mean defaults.
type Options struct {
	// Servers are the names of all configured servers in the config's order, including
	// disabled ones. Listed names depend on nothing else.
	Servers []string
	// Overrides replace parts of a server's definitions for clients, by server.
	Overrides map[string]*definition.Set
	// Own are the names of all of Goblin's own tools, including disabled ones. No
	// server's tool can be listed or called under them.
	Own        []string
	Flat       bool // list flat ids instead of mcp:// URIs
	MaxName    int  // bytes of a listed tool name, 24 to 128, default 51
	PageSize   int  // entries per page, default 1000
	MaxEntries int  // per server and kind, default 1,000,000
	// Repair changes definitions that client SDKs refuse, see [goblin/registry/repair].
	Repair bool
	Now    func() time.Time // default time.Now
	// Redact is applied to the registry's own log records, which quote names and errors
	// of servers. It may be nil.
	Redact  func(string) string
	Traffic TrafficLimits
	// CompleteBodies may replace the bodies of a record that [TrafficJournal.Record]
	// returns. It may block, and may be nil.
	CompleteBodies func(*TrafficRecord)
}

// Registry is the catalog. Create it with [New].
type Registry struct {
	opt  Options
	snap atomic.Pointer[Snapshot]
	feed feed

	mu    sync.Mutex              // held while building a snapshot
	rules map[string]*listingRule // of the configured servers
	order []string                // in the order of States

	notice        atomic.Pointer[string]
	mistakes      atomic.Pointer[[]Mistake]
	colors        atomic.Pointer[map[string]termtext.StyleColor]
	ruleState     atomic.Pointer[RuleState]
	states        stateTable
	subscriptions subscriptionTable
	pinned        unapprovedTable
	repairs       repairTable
	builds        buildTable
	sessions      sessionTable
	contents      Contents
	latencies     ServerLatency
	events        rateGates
	logs          LogJournal
	traffic       TrafficJournal
	changes       ListChangeJournal
}

// New returns a registry of the configured servers, each visible, without lists and in
// [StateStopped].
func New(o Options) *Registry {
	if o.MaxName == 0 {
		o.MaxName = names.DefaultNameLen
	}
	if o.PageSize <= 0 {
		o.PageSize = 1000
	}
	if o.MaxEntries <= 0 {
		o.MaxEntries = 1_000_000
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	r := &Registry{opt: o}
	r.order = serverNames(o.Servers)
	r.rules = newListingRules(r.order, o.MaxName, o.Overrides)
	r.logs.feed, r.logs.ring.Max = &r.feed, maxLogRecords
	r.traffic.feed, r.traffic.ring.Max = &r.feed, o.Traffic.withDefaults().Requests
	r.traffic.limits, r.traffic.complete = o.Traffic.withDefaults(), o.CompleteBodies
	r.traffic.latencies = &r.latencies
	r.changes.feed, r.changes.ring.Max = &r.feed, maxListChanges
	r.contents.registry, r.contents.max = r, maxContents
	s := &Snapshot{pinned: &r.pinned, flat: o.Flat, repair: o.Repair, pageSize: o.PageSize, own: slices.Clone(o.Own), tables: []*table{{name: Local}}}
	for _, name := range o.Own {
		if cut := ownToolName(name, o.MaxName); cut != name {
			s.own = append(s.own, cut)
		}
	}
	for _, name := range r.order {
		s.tables = append(s.tables, r.newTable(name))
		r.states.update(name, ServerState{State: StateStopped}, o.Now)
	}
	s.dir = newDirectory(s.tables, r.order, o.MaxName)
	r.snap.Store(s)
	return r
}

func serverNames(nameList []string) []string {
	kept := make([]string, 0, len(nameList))
	for _, s := range nameList {
		if s != "" && s != Local && !slices.Contains(kept, s) {
			kept = append(kept, s)
		}
	}
	return kept
}

func (r *Registry) newTable(server string) *table {
	r.latencies.Track(server)
	return &table{name: server, rule: r.rules[server], links: newLinkCache(server)}
}

// Load returns the current snapshot.
func (r *Registry) Load() *Snapshot { return r.snap.Load() }

// SetServers replaces the configured servers, in the config's order. New servers are
// visible and without lists. All data of removed servers is dropped: entries, learned
// links, state, subscription rows and cached contents. Other servers keep their lists;
// their names follow the new set of servers and overrides.
func (r *Registry) SetServers(nameList []string, overrides map[string]*definition.Set) {
	r.mu.Lock()
	defer r.mu.Unlock()
	old := r.Load()
	was := r.order
	r.order = serverNames(nameList)
	if slices.Equal(was, r.order) && reflect.DeepEqual(overrides, r.opt.Overrides) {
		return
	}
	r.opt.Overrides = overrides
	rules := newListingRules(r.order, r.opt.MaxName, overrides)
	for name, u := range rules {
		if known := r.rules[name]; reflect.DeepEqual(known, u) {
			rules[name] = known
		}
	}
	r.rules = rules
	changed := Servers
	for _, name := range was {
		if rules[name] == nil {
			changed |= r.dropServer(name, old.table(name))
		}
	}
	next := *old
	next.tables = []*table{old.tables[0]}
	var renamed []*table
	for _, name := range r.order {
		t := old.table(name)
		switch {
		case t == nil:
			t = r.newTable(name)
			r.states.update(name, ServerState{State: StateStopped}, r.opt.Now)
			r.event(slog.LevelInfo, name, "server added")
		case t.rule != rules[name]:
			u := *t
			u.rule = rules[name]
			t = &u
			renamed = append(renamed, t)
		}
		next.tables = append(next.tables, t)
	}
	next.dir = newDirectory(next.tables, r.order, r.opt.MaxName)
	changed |= next.mergeKinds(changed)
	for _, t := range renamed {
		changed |= r.renameAll(&next, t)
	}
	r.snap.Store(&next)
	r.feed.publish(changed)
}

// dropServer drops all data about a server except for its table, and returns the
// resulting changes.
func (r *Registry) dropServer(name string, t *table) Changes {
	changed := t.visibleLists()
	r.states.drop(name)
	r.latencies.Forget(name)
	r.pinned.drop(name)
	r.repairs.drop(name)
	r.changes.forget(name)
	text := "server removed"
	if n := r.subscriptions.dropServer(name); n > 0 {
		changed |= Subscriptions
		text += ", " + count(uint64(n), "subscription") + " paused"
	}
	r.event(slog.LevelInfo, name, text)
	r.logRemoved(name, "dropped", r.contents.removeServer(name), "server removed")
	return changed
}

func (r *Registry) renameAll(s *Snapshot, t *table) (changed Changes) {
	for _, k := range []Kind{Resource, Template, Prompt, Tool} { // links of tools are names of resources
		changed |= r.rename(s, s.table(t.name), k)
	}
	return changed
}

// SetList replaces a server's list of one kind. items are the raw JSON objects of all
// pages; SetList copies what it keeps. It drops and reports malformed items: not an
// object, a missing, empty or non-string name or URI, an invalid template, a duplicate.
// [ServerState.Repairs] counts changed and dropped items. An unchanged list has no effect
// and notifies no watcher. Lists of unknown servers are ignored.
func (r *Registry) SetList(server string, kind Kind, items [][]byte) []Problem {
	return r.SetApprovedList(server, kind, items, nil)
}

// Definition is a tool or skill as its server defines it. Names are unique in a list.
type Definition struct {
	Name string
	JSON []byte // raw
}

// SetApprovedList is [Registry.SetList] with a filter: admit reports for each valid
// definition whether it is listed. It may be called several times.
func (r *Registry) SetApprovedList(server string, kind Kind, items [][]byte, admit func([]Definition) []bool) []Problem {
	for {
		s := r.Load()
		t := s.table(server)
		if t == nil || t.rule == nil || kind >= Kinds {
			return nil
		}
		c := s.buildOptions(t, kind)
		c.limit = r.opt.MaxEntries
		var refused []Definition
		if admit != nil {
			c.admit = func(all []Definition) []bool {
				admitted := admit(all)
				refused = refusedDefinitions(all, admitted)
				return admitted
			}
		}
		run, ps := build(c, items)
		placed, was, ok := r.setRun(s, t, kind, run)
		if ok {
			changes := r.compareLists(server, kind, was, run, refused)
			if placed != nil {
				r.logListChange(placed, kind, was, changes)
			}
			if r.repairs.set(server, kind, ps.repairs) {
				r.feed.publish(Servers)
			}
			return ps.all()
		}
		// Repeat: another list changed the names meanwhile.
	}
}

// Definitions returns the valid tools or skills of a list without listing them.
func (r *Registry) Definitions(server string, kind Kind, items [][]byte) (all []Definition) {
	s := r.Load()
	t := s.table(server)
	if t == nil || t.rule == nil {
		return nil
	}
	c := s.buildOptions(t, kind)
	c.limit = r.opt.MaxEntries
	c.admit = func(served []Definition) []bool {
		all = served
		return make([]bool, len(served))
	}
	build(c, items)
	return all
}

func (s *Snapshot) buildOptions(t *table, kind Kind) buildOptions {
	return buildOptions{
		kind: kind, rule: t.rule, flat: s.flat, repair: s.repair, limit: math.MaxInt, own: s.ownTool,
		linkedURI: func(uri string) string { return s.listedURI(t, uri) },
	}
}

// setRun sets run, built on snapshot s, as the list of a server. It returns the table
// that holds it and the previous list, or no table and run if nothing changed. ok is false
// if run must be built again.
func (r *Registry) setRun(s *Snapshot, t *table, kind Kind, run *run) (placed *table, was *run, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	old := r.Load()
	now := old.table(t.name)
	if now == nil {
		return nil, run, true // removed meanwhile
	}
	if now.rule != t.rule || kind == Tool &&
		(!maps.Equal(old.tools, s.tools) || s.flat && now.runs[Resource] != t.runs[Resource]) {
		return nil, nil, false
	}
	if now.runs[kind].same(run) {
		return nil, run, true
	}
	next := *old
	next.tables = slices.Clone(old.tables)
	changed := next.replace(kind, now, run)
	if s.flat && kind == Resource {
		// The suffix of a flat id may have changed, and tools link to it.
		changed |= r.rename(&next, next.table(t.name), Tool)
	}
	r.snap.Store(&next)
	r.feed.publish(changed)
	return next.table(t.name), now.runs[kind], true
}

// replace puts run into the table t of s and merges the list again if clients can see a
// difference. The caller must have created s.
func (s *Snapshot) replace(kind Kind, t *table, run *run) Changes {
	was := t.runs[kind]
	u := *t
	u.runs[kind] = run
	s.tables[s.dir.byName[t.name]] = &u
	if u.hidden {
		return 0
	}
	if was.looksLike(run) { // no visible difference
		s.lists[kind].segments = s.mergeKind(kind)
		return 0
	}
	return s.mergeKinds(kind.changes())
}

// rename rebuilds a server's list after its names, links or overrides changed.
func (r *Registry) rename(s *Snapshot, t *table, k Kind) Changes {
	if t.runs[k] == nil {
		return 0
	}
	run, ps := build(s.buildOptions(t, k), t.runs[k].definitions())
	if t.runs[k].same(run) {
		return 0
	}
	for _, p := range ps.all() {
		if p.Level >= slog.LevelWarn {
			r.event(p.Level, p.Server, fmt.Sprintf("%s %q: %s", p.Kind, r.shortName(p.Name), p.Text))
		}
	}
	return s.replace(k, t, run)
}

func (s *Snapshot) mergeKinds(kinds Changes) Changes {
	for k := range Kind(Kinds) {
		if kinds&k.changes() != 0 {
			s.lists[k] = mergedList{version: s.lists[k].version + 1, segments: s.mergeKind(k)}
		}
	}
	return kinds
}

func (s *Snapshot) mergeKind(k Kind) []segment { return merge(s.visibleRuns(k)) }

func (t *table) visibleLists() (kinds Changes) {
	for k := range Kind(Kinds) {
		if !t.hidden && t.runs[k] != nil {
			kinds |= k.changes()
		}
	}
	return kinds
}

// SetVisible sets whether a server's entries are listed; initially they are. The names of
// a hidden server stay reserved. Hiding also removes its cached contents, except for
// results of tools.
func (r *Registry) SetVisible(server string, visible bool) {
	lists, ok := r.changeTable(server, func(t *table) { t.hidden = !visible })
	if !ok {
		return
	}
	if lists != 0 {
		text := "entries hidden"
		if visible {
			text = "entries listed again"
		}
		r.event(slog.LevelInfo, server, text)
	}
	if !visible {
		r.logRemoved(server, "dropped", r.contents.removeHidden(server), "entries hidden")
	}
}

// SetUnlistedAllowed sets whether mcp://server/<anything> resolves even if it is not
// listed.
func (r *Registry) SetUnlistedAllowed(server string, open bool) {
	r.changeTable(server, func(t *table) { t.open = open })
}

// changeTable publishes a snapshot with an edited table of a server. It returns the
// visible lists that changed, and false if the table did not change.
func (r *Registry) changeTable(server string, edit func(*table)) (lists Changes, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	old := r.Load()
	i, ok := old.dir.byName[server]
	if !ok || i == 0 {
		return 0, false
	}
	t := *old.tables[i]
	edit(&t)
	if t == *old.tables[i] {
		return 0, false
	}
	next := *old
	next.tables = slices.Clone(old.tables)
	next.tables[i] = &t
	changed := next.mergeKinds(old.tables[i].visibleLists() ^ t.visibleLists())
	r.snap.Store(&next)
	r.feed.publish(changed)
	return changed, true
}
