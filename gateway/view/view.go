// Package view decides which entries of the catalog each client sees.
//
// Four checks decide, in this order:
//  1. the filters of the config, when lists are fetched (upstream.Server.Permits)
//  2. the approval of changed tools (servers, pinned.go)
//  3. the user's disabled entries (here)
//  4. the profile (profileFilter.Has)
//
// Each request is checked again by checkPermitted in find.go and by acquireConn in
// package gateway. hidden.go explains the result.
//
// A view is the catalog without hidden entries, which stay unknown in all requests. Lists
// may contain less if a profile makes tools searchable only. Views are immutable, shared
// by all clients of a profile, and built at the first use after a change. The package
// must not know about requests beyond their session and client, and sends nothing.
//
// A profile is not a security boundary, since a client may ask for another one. The
// filters of servers are.
package view

import (
	"cmp"
	"iter"
	"slices"
	"sync"
	"sync/atomic"

	"goblin/gateway/config"
	"goblin/gateway/downstream"
	"goblin/gateway/servers"
	"goblin/gateway/state"
	"goblin/registry"
	"goblin/registry/definition"
)

// FullProfile is requested by clients that see everything.
const FullProfile = "*"

// Views holds the views of one registry. Create it with [New].
type Views struct {
	registry *registry.Registry
	servers  *servers.Manager
	set      atomic.Pointer[viewSet]

	namespaces map[config.Namespace]*namespace

	writeMu       sync.Mutex // guards the fields below
	config        *config.Config
	disabled      []state.ToggleEntry
	hiddenServers []string
}

// viewSet is the immutable set of a config's views.
type viewSet struct {
	profiles    map[string]*view
	clients     []config.ClientRule
	defaultView *view       // for clients without a profile
	full        *view       // for FullProfile
	missing     *view       // for clients of a deleted profile: empty
	disabled    disabledSet // for all clients
	off         []state.ToggleEntry
}

// New returns a config's views. servers may be nil until the first Find.
func New(r *registry.Registry, servers *servers.Manager, cfg *config.Config) *Views {
	v := &Views{registry: r, servers: servers, namespaces: map[config.Namespace]*namespace{
		config.NamespaceURI: {}, config.NamespaceFlat: {flat: true},
	}}
	v.set.Store(&viewSet{missing: v.newView(emptyFilter{}), full: v.newView(newFullFilter(cfg))})
	v.Apply(cfg)
	return v
}

// Apply applies an edited config. Unchanged profiles keep their list versions.
func (v *Views) Apply(cfg *config.Config) {
	v.writeMu.Lock()
	defer v.writeMu.Unlock()
	v.config = cfg
	v.makeLocked()
}

// SetDisabled hides exactly these entries, and all entries of hidden servers; see
// [state.ToggleStore.Hidden].
func (v *Views) SetDisabled(off []state.ToggleEntry, hidden ...string) {
	v.writeMu.Lock()
	defer v.writeMu.Unlock()
	v.disabled, v.hiddenServers = off, hidden
	v.makeLocked()
}

func (v *Views) makeLocked() {
	was := v.set.Load()
	next := &viewSet{profiles: make(map[string]*view, len(v.config.Profiles)), clients: v.config.Clients, missing: was.missing, off: v.disabled}
	for _, p := range v.config.Profiles {
		before := was.profiles[p.Name]
		if p.Name == config.DefaultProfile {
			before = was.defaultView
		}
		next.profiles[p.Name] = v.replace(cmp.Or(before, was.missing), newProfileFilter(v.config, p, v.disabled, v.hiddenServers...))
	}
	next.full = v.replace(was.full, newFullFilter(v.config))
	everybody := newProfileFilter(v.config, config.DefaultView(), v.disabled, v.hiddenServers...)
	if next.defaultView = next.profiles[config.DefaultProfile]; next.defaultView == nil {
		next.defaultView = v.replace(cmp.Or(was.defaultView, was.full), everybody)
	}
	next.disabled = everybody.disabled
	v.set.Store(next)
	for name, n := range v.namespaces {
		if !slices.ContainsFunc(v.config.Profiles, func(p config.Profile) bool { return p.Namespace == name }) {
			n.clear()
		}
	}
	v.registry.NotifyDisabled()
}

// Config returns the config in use.
func (v *Views) Config() *config.Config {
	v.writeMu.Lock()
	defer v.writeMu.Unlock()
	return v.config
}

// Has reports whether a profile exists.
func (v *Views) Has(profile string) bool { return v.set.Load().profiles[profile] != nil }

// For returns the catalog that a request's client sees.
func (v *Views) For(x *downstream.Request) *registry.Snapshot {
	return v.view(x).snapshot(v.registry).visible
}

// ListsFor returns the lists for a request's client, without tools that are searchable
// only.
func (v *Views) ListsFor(x *downstream.Request) *registry.Snapshot {
	return v.view(x).snapshot(v.registry).lists
}

func (v *Views) view(x *downstream.Request) *view {
	x = x.Outer()
	set := v.set.Load()
	if len(set.clients) == 0 { // names do not matter
		return set.forClient(x.Session(), "")
	}
	return set.forClient(x.Session(), x.ClientName())
}

// ForSession returns the catalog that a session's clients see, or everything for nil.
func (v *Views) ForSession(s *downstream.Session) *registry.Snapshot {
	if s == nil {
		return v.registry.Load()
	}
	return v.set.Load().forClient(s, s.Name()).snapshot(v.registry).visible
}

// ListsForSession is [Views.ListsFor] for a session.
func (v *Views) ListsForSession(s *downstream.Session) *registry.Snapshot {
	return v.ListsForClient(s, s.Name())
}

// ListsForClient is [Views.ListsFor] for a named client of a shared session.
func (v *Views) ListsForClient(s *downstream.Session, name string) *registry.Snapshot {
	return v.set.Load().forClient(s, name).snapshot(v.registry).lists
}

// Full returns the lists without profiles.
func (v *Views) Full() *registry.Snapshot { return v.set.Load().full.snapshot(v.registry).lists }

// Version is a list version within one view.
type Version struct {
	view string
	n    uint64
}

// ListVersion returns the version of a list.
func ListVersion(seen *registry.Snapshot, k registry.Kind) Version {
	return Version{Key(seen), seen.Version(k)}
}

// Key returns the name of a view. List versions continue within a name.
func Key(seen *registry.Snapshot) string {
	switch c := seen.Visibility().(type) {
	case *profileFilter:
		return c.name
	case *listFilter:
		return c.name
	}
	return FullProfile // emptyFilter
}

// All yields the lists of each view.
func (v *Views) All() iter.Seq[*registry.Snapshot] {
	return func(yield func(*registry.Snapshot) bool) {
		set := v.set.Load()
		if !yield(set.full.snapshot(v.registry).lists) || !yield(set.defaultView.snapshot(v.registry).lists) {
			return
		}
		for _, one := range set.profiles {
			if one != set.defaultView && !yield(one.snapshot(v.registry).lists) {
				return
			}
		}
	}
}

// MaxResult returns the maximum text of a tool result in bytes, or 0 without limit.
// server is the server's limit, which a profile's replaces. The UI and commands have
// none.
func (v *Views) MaxResult(x *downstream.Request, server int64) int64 {
	set, s, name := v.set.Load(), x.Session(), ""
	if s.IsScreen() || s.Profile() == FullProfile {
		return 0
	}
	if len(set.clients) > 0 {
		name = x.ClientName()
	}
	if c, ok := set.forClient(s, name).filter.(*profileFilter); ok && c.profile.MaxResult != 0 {
		server = c.profile.MaxResult
	}
	return max(0, server) // negative values disable the limit
}

func (t *viewSet) forClient(s *downstream.Session, client string) *view {
	switch asked := s.Profile(); {
	case asked == FullProfile, s.IsScreen():
		return t.full
	case asked != "":
		return cmp.Or(t.profiles[asked], t.missing)
	}
	for _, rule := range t.clients {
		if config.Glob(rule.Glob, client) {
			return t.profiles[rule.Profile]
		}
	}
	return t.defaultView
}

// Profile returns the requested or assigned profile, or "". It may no longer exist.
func (v *Views) Profile(s *downstream.Session) string {
	set := v.set.Load()
	switch asked := s.Profile(); {
	case asked == FullProfile, s.IsScreen():
		return ""
	case asked != "":
		return asked
	}
	return set.forClient(s, s.Name()).filter.(*profileFilter).profile.Name
}

// view is a profile's catalog.
type view struct {
	filter     registry.Visibility
	listFilter registry.Visibility // nil: lists have everything visible
	namespace  *namespace          // nil: that of the gateway

	mu     sync.Mutex
	latest atomic.Pointer[snapshot]
}

// snapshot is a view of a catalog, which is nil if another filter made it.
type snapshot struct{ catalog, visible, lists *registry.Snapshot }

// newView continues the registry's list versions.
func (v *Views) newView(c registry.Visibility) *view {
	one, now := &view{filter: c}, v.registry.Load()
	if c, ok := c.(*profileFilter); ok {
		if c.lists != nil {
			one.listFilter = c.lists
		}
		one.namespace = v.namespaces[c.profile.Namespace]
	}
	one.latest.Store(&snapshot{visible: now, lists: now})
	return one
}

// replace returns a view that continues the list versions of was.
func (v *Views) replace(was *view, c *profileFilter) *view {
	if before, ok := was.filter.(*profileFilter); ok && before.equal(c) {
		return was
	}
	next, before := v.newView(c), was.snapshot(v.registry)
	next.latest.Store(&snapshot{visible: before.visible, lists: before.lists})
	return next
}

func (v *view) snapshot(r *registry.Registry) *snapshot {
	now := r.Load()
	if m := v.latest.Load(); m.catalog == now {
		return m
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	now = r.Load()
	before := v.latest.Load()
	if before.catalog == now {
		return before
	}
	whole := now
	if v.namespace != nil {
		whole = v.namespace.load(now)
	}
	m := &snapshot{catalog: now, visible: whole.Narrow(v.filter, before.visible)}
	m.lists = m.visible
	if v.listFilter != nil {
		m.lists = m.visible.Narrow(v.listFilter, before.lists)
	}
	v.latest.Store(m)
	return m
}

// namespace caches the catalog in a namespace for all profiles.
type namespace struct {
	flat bool

	mu               sync.Mutex
	catalog, renamed *registry.Snapshot // latest catalog, and in this namespace
}

func (n *namespace) load(now *registry.Snapshot) *registry.Snapshot {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.catalog != now {
		n.catalog, n.renamed = now, now.InNamespace(n.flat, n.renamed)
	}
	return n.renamed
}

func (n *namespace) clear() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.catalog, n.renamed = nil, nil
}

type emptyFilter struct{}

func (emptyFilter) Server(string) bool                                  { return false }
func (emptyFilter) Overrides(string) *definition.Set                    { return nil }
func (emptyFilter) All(string, registry.Kind) bool                      { return false }
func (emptyFilter) Has(string, registry.Kind, string) bool              { return false }
func (n emptyFilter) WithLists([registry.Kinds]int) registry.Visibility { return n }
