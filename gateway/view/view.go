// Package view decides which entries of the catalog each client sees.
//
// Four checks decide in this order: the filters of the config, when lists are fetched
// (upstream.Server.Permits); approval of changed tools (servers, pinned.go); then, here,
// the user's disabled entries and the profile (profileFilter.Has). Each request is checked again
// by permitted in find.go and by acquireConn in package gateway. hidden.go explains the result.
//
// A view is a catalog narrowed to a profile of the config and to what the user has not
// turned off: what is not in it is unknown, by every name and to everything that asks
// about it. What lists have may be less: tools that are to be found by searches. Whether
// Goblin's own tools are needed is decided with each view. Views are immutable, made when
// somebody looks after a change, and shared by all clients of the profile; looking at one
// that is made costs a load of a pointer. It knows who asks by sessions and exchanges; it
// must not know what is asked, nor send anything.
//
// A profile is no lock: a client that may use Goblin may ask for another one. What nobody
// is to have is left out by the filters of servers.
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

// FullProfile is requested instead of a profile by clients that see everything, whatever
// profiles the config has for others.
const FullProfile = "*"

// Views has the views of one registry. Make it with [New].
type Views struct {
	registry *registry.Registry
	servers  *servers.Manager
	set      atomic.Pointer[viewSet]

	namespaces map[config.Namespace]*namespace // those that profiles can name

	writeMu       sync.Mutex // guards the next three
	config        *config.Config
	disabled      []state.ToggleEntry
	hiddenServers []string
}

// viewSet has the views of one config. It is immutable.
type viewSet struct {
	profiles    map[string]*view
	clients     []config.ClientRule
	defaultView *view       // of clients that get no profile
	full        *view       // of those who see everything
	missing     *view       // of clients whose profile no longer exists: nothing
	disabled    disabledSet // entries disabled for all clients
	off         []state.ToggleEntry
}

// New makes the views of a config. Servers may be nil until the first Find.
func New(r *registry.Registry, servers *servers.Manager, cfg *config.Config) *Views {
	v := &Views{registry: r, servers: servers, namespaces: map[config.Namespace]*namespace{
		config.NamespaceURI: {}, config.NamespaceFlat: {flat: true},
	}}
	v.set.Store(&viewSet{missing: v.newView(emptyFilter{}), full: v.newView(newFullFilter(cfg))})
	v.Apply(cfg)
	return v
}

// Apply makes the views those of an edited config. What clients have listed of a profile
// that is the same by now stays what they have.
func (v *Views) Apply(cfg *config.Config) {
	v.writeMu.Lock()
	defer v.writeMu.Unlock()
	v.config = cfg
	v.makeLocked()
}

// SetDisabled makes the views lack what is off, and nothing else that was. They lack everything
// of hidden servers, see [state.ToggleStore.Hidden].
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

// Config returns the config from which the views were made.
func (v *Views) Config() *config.Config {
	v.writeMu.Lock()
	defer v.writeMu.Unlock()
	return v.config
}

// Has reports whether there is such a profile.
func (v *Views) Has(profile string) bool { return v.set.Load().profiles[profile] != nil }

// For returns the part of the catalog that the client of a request sees.
func (v *Views) For(x *downstream.Request) *registry.Snapshot {
	return v.view(x).snapshot(v.registry).visible
}

// ListsFor returns the part of that which lists contain: tools that are to be found by searches
// are left out.
func (v *Views) ListsFor(x *downstream.Request) *registry.Snapshot {
	return v.view(x).snapshot(v.registry).lists
}

func (v *Views) view(x *downstream.Request) *view {
	x = x.Outer()
	set := v.set.Load()
	if len(set.clients) == 0 { // then who it is need not be read
		return set.forClient(x.Session(), "")
	}
	return set.forClient(x.Session(), x.ClientName())
}

// ForSession is [Views.For] for the client of a session, or for the clients that share it;
// everything for nil.
func (v *Views) ForSession(s *downstream.Session) *registry.Snapshot {
	if s == nil {
		return v.registry.Load()
	}
	return v.set.Load().forClient(s, s.Name()).snapshot(v.registry).visible
}

// ListsForSession is [Views.ListsFor] for them.
func (v *Views) ListsForSession(s *downstream.Session) *registry.Snapshot {
	return v.ListsForClient(s, s.Name())
}

// ListsForClient is [Views.ListsFor] for one of the clients that share a session, by its name.
func (v *Views) ListsForClient(s *downstream.Session, name string) *registry.Snapshot {
	return v.set.Load().forClient(s, name).snapshot(v.registry).lists
}

// Full returns the lists without any filter of profiles.
func (v *Views) Full() *registry.Snapshot { return v.set.Load().full.snapshot(v.registry).lists }

// Version is that of a list in what clients see. Those of two profiles have nothing to do
// with each other.
type Version struct {
	view string
	n    uint64
}

// ListVersion is the version of a list.
func ListVersion(seen *registry.Snapshot, k registry.Kind) Version {
	return Version{Key(seen), seen.Version(k)}
}

// Key tells what profiles show apart: of one, versions of lists go on.
func Key(seen *registry.Snapshot) string {
	switch c := seen.Visibility().(type) {
	case *profileFilter:
		return c.name
	case *listFilter:
		return c.name
	}
	return FullProfile // nothing
}

// All yields the lists that clients can see: of everything, and of each profile.
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

// MaxResult is how much text of a tool's result the client of a request gets at a time, in
// bytes, if its server's config says so much; 0 for all of it. A profile wins over servers,
// and screens and commands get all.
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
	return max(0, server) // off is less
}

// forClient returns the view of a client.
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

// Profile names the profile of a session's client, "" for none: it may not be there any
// more.
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

// view is a profile with the catalog as it shows it.
type view struct {
	filter     registry.Visibility
	listFilter registry.Visibility // filter of the lists; nil: all
	namespace  *namespace          // of the profile; nil: the gateway's

	mu     sync.Mutex
	latest atomic.Pointer[snapshot]
}

// snapshot is a view of one catalog, which is nil if another filter made it.
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

// replace returns the view for a filter, which continues the list versions of was.
func (v *Views) replace(was *view, c *profileFilter) *view {
	if before, ok := was.filter.(*profileFilter); ok && before.equal(c) {
		return was
	}
	next, before := v.newView(c), was.snapshot(v.registry)
	next.latest.Store(&snapshot{visible: before.visible, lists: before.lists})
	return next
}

// snapshot returns the current catalog as the view shows it.
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

// namespace caches the catalog in one namespace, which all profiles that name it share.
type namespace struct {
	flat bool

	mu               sync.Mutex
	catalog, renamed *registry.Snapshot // the latest catalog, and the same in this namespace
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
