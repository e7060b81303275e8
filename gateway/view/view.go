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
// A view is the catalog without hidden entries, which are unknown to the client in every
// request. Lists may contain less: a profile can make tools searchable only. Views are
// immutable and shared by all clients of a profile. They are built at the first use after
// a change; later uses cost one pointer load. The package must not know about requests
// beyond their session and client, and sends nothing.
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

// FullProfile is requested instead of a profile by clients that see everything,
// regardless of profiles.
const FullProfile = "*"

// Views holds the views of one registry. Create it with [New].
type Views struct {
	registry *registry.Registry
	servers  *servers.Manager
	set      atomic.Pointer[viewSet]

	namespaces map[config.Namespace]*namespace // namespaces that profiles can choose

	writeMu       sync.Mutex // guards the fields below
	config        *config.Config
	disabled      []state.ToggleEntry
	hiddenServers []string
}

// viewSet is the immutable set of the views of one config.
type viewSet struct {
	profiles    map[string]*view
	clients     []config.ClientRule
	defaultView *view       // for clients without a profile
	full        *view       // for FullProfile
	missing     *view       // for clients of a deleted profile: empty
	disabled    disabledSet // entries disabled for all clients
	off         []state.ToggleEntry
}

// New returns the views of a config. servers may be nil until the first Find.
func New(r *registry.Registry, servers *servers.Manager, cfg *config.Config) *Views {
	v := &Views{registry: r, servers: servers, namespaces: map[config.Namespace]*namespace{
		config.NamespaceURI: {}, config.NamespaceFlat: {flat: true},
	}}
	v.set.Store(&viewSet{missing: v.newView(emptyFilter{}), full: v.newView(newFullFilter(cfg))})
	v.Apply(cfg)
	return v
}

// Apply replaces the views by those of an edited config. Views of unchanged profiles keep
// their list versions.
func (v *Views) Apply(cfg *config.Config) {
	v.writeMu.Lock()
	defer v.writeMu.Unlock()
	v.config = cfg
	v.makeLocked()
}

// SetDisabled hides the given entries, and no longer those of the previous call. It hides
// all entries of the hidden servers; see [state.ToggleStore.Hidden].
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

// Config returns the config of the current views.
func (v *Views) Config() *config.Config {
	v.writeMu.Lock()
	defer v.writeMu.Unlock()
	return v.config
}

// Has reports whether a profile exists.
func (v *Views) Has(profile string) bool { return v.set.Load().profiles[profile] != nil }

// For returns the part of the catalog that a request's client sees.
func (v *Views) For(x *downstream.Request) *registry.Snapshot {
	return v.view(x).snapshot(v.registry).visible
}

// ListsFor returns the part of the catalog that lists for a request's client contain.
// Tools that are searchable only are missing.
func (v *Views) ListsFor(x *downstream.Request) *registry.Snapshot {
	return v.view(x).snapshot(v.registry).lists
}

func (v *Views) view(x *downstream.Request) *view {
	x = x.Outer()
	set := v.set.Load()
	if len(set.clients) == 0 { // the client's name does not matter
		return set.forClient(x.Session(), "")
	}
	return set.forClient(x.Session(), x.ClientName())
}

// ForSession returns the part of the catalog that a session's client sees, or all clients
// that share the session. For nil it returns everything.
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

// ListsForClient is [Views.ListsFor] for one named client of a shared session.
func (v *Views) ListsForClient(s *downstream.Session, name string) *registry.Snapshot {
	return v.set.Load().forClient(s, name).snapshot(v.registry).lists
}

// Full returns the lists without filters of profiles.
func (v *Views) Full() *registry.Snapshot { return v.set.Load().full.snapshot(v.registry).lists }

// Version is the version of a list in one view. Versions of different views are
// unrelated.
type Version struct {
	view string
	n    uint64
}

// ListVersion returns the version of a list.
func ListVersion(seen *registry.Snapshot, k registry.Kind) Version {
	return Version{Key(seen), seen.Version(k)}
}

// Key returns the name of the view of a catalog. List versions continue within one name.
func Key(seen *registry.Snapshot) string {
	switch c := seen.Visibility().(type) {
	case *profileFilter:
		return c.name
	case *listFilter:
		return c.name
	}
	return FullProfile // emptyFilter
}

// All yields the lists of each view: the full one, the default one and each profile.
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

// MaxResult returns the maximum text of a tool result for a request's client, in bytes; 0
// means no limit. server is the limit of the server's config. A profile's limit replaces
// it. The UI and commands have no limit.
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

// Profile returns the profile of a session's client, or "". A requested profile may no
// longer exist.
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

// view is the catalog as one profile shows it.
type view struct {
	filter     registry.Visibility
	listFilter registry.Visibility // nil: lists contain everything visible
	namespace  *namespace          // nil: that of the gateway

	mu     sync.Mutex
	latest atomic.Pointer[snapshot]
}

// snapshot is a view of one catalog. catalog is nil if another filter made it.
type snapshot struct{ catalog, visible, lists *registry.Snapshot }

// newView returns a view whose list versions continue those of the registry.
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

// replace returns the view for a filter. Its list versions continue those of was.
func (v *Views) replace(was *view, c *profileFilter) *view {
	if before, ok := was.filter.(*profileFilter); ok && before.equal(c) {
		return was
	}
	next, before := v.newView(c), was.snapshot(v.registry)
	next.latest.Store(&snapshot{visible: before.visible, lists: before.lists})
	return next
}

// snapshot returns the view of the current catalog.
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

// namespace caches the catalog in one namespace, for all profiles that choose it.
type namespace struct {
	flat bool

	mu               sync.Mutex
	catalog, renamed *registry.Snapshot // latest catalog, and its form in this namespace
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

// emptyFilter hides everything.
type emptyFilter struct{}

func (emptyFilter) Server(string) bool                                  { return false }
func (emptyFilter) Overrides(string) *definition.Set                    { return nil }
func (emptyFilter) All(string, registry.Kind) bool                      { return false }
func (emptyFilter) Has(string, registry.Kind, string) bool              { return false }
func (n emptyFilter) WithLists([registry.Kinds]int) registry.Visibility { return n }
