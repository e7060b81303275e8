// Package view decides which entries of the catalog each client sees.
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

// WholeProfile is asked for instead of a profile by clients that are to see everything, whatever
// the config gives to others: commands of the shell. No profile can have this name.
const WholeProfile = "*"

// Views has the views of one registry. Make it with [New].
type Views struct {
	registry *registry.Registry
	servers  *servers.Manager
	set      atomic.Pointer[set]

	in map[config.Namespace]*namespace // those that profiles can name

	writing sync.Mutex // guards the next three
	config  *config.Config
	off     []state.ToggleEntry
	hidden  []string
}

// set are the views of one config. It is immutable.
type set struct {
	named   map[string]*view
	clients []config.ClientRule
	others  *view // of clients that get no profile
	whole   *view // of those who see everything
	gone    *view // of clients whose profile is not there any more: nothing
	all     off   // what is off for all clients
	off     []state.ToggleEntry
}

// New makes the views of a config. Servers may be nil until the first Find.
func New(r *registry.Registry, servers *servers.Manager, cfg *config.Config) *Views {
	v := &Views{registry: r, servers: servers, in: map[config.Namespace]*namespace{
		config.NamespaceURI: {}, config.NamespaceFlat: {flat: true},
	}}
	v.set.Store(&set{gone: v.newView(none{}), whole: v.newView(whole(cfg))})
	v.Apply(cfg)
	return v
}

// Apply makes the views those of an edited config. What clients have listed of a profile
// that is the same by now stays what they have.
func (v *Views) Apply(cfg *config.Config) {
	v.writing.Lock()
	defer v.writing.Unlock()
	v.config = cfg
	v.makeLocked()
}

// SetDisabled makes the views lack what is off, and nothing else that was. They lack everything
// of hidden servers, see [switches.Store.Hidden].
func (v *Views) SetDisabled(off []state.ToggleEntry, hidden ...string) {
	v.writing.Lock()
	defer v.writing.Unlock()
	v.off, v.hidden = off, hidden
	v.makeLocked()
}

func (v *Views) makeLocked() {
	was := v.set.Load()
	next := &set{named: make(map[string]*view, len(v.config.Profiles)), clients: v.config.Clients, gone: was.gone, off: v.off}
	for _, p := range v.config.Profiles {
		before := was.named[p.Name]
		if p.Name == config.DefaultProfile {
			before = was.others
		}
		next.named[p.Name] = v.follow(cmp.Or(before, was.gone), newChoice(v.config, p, v.off, v.hidden...))
	}
	next.whole = v.follow(was.whole, whole(v.config))
	everybody := newChoice(v.config, config.DefaultView(), v.off, v.hidden...)
	if next.others = next.named[config.DefaultProfile]; next.others == nil {
		next.others = v.follow(cmp.Or(was.others, was.whole), everybody)
	}
	next.all = everybody.off
	v.set.Store(next)
	for name, n := range v.in {
		if !slices.ContainsFunc(v.config.Profiles, func(p config.Profile) bool { return p.Namespace == name }) {
			n.forget()
		}
	}
	v.registry.NotifyDisabled()
}

// Config returns the config from which the views were made.
func (v *Views) Config() *config.Config {
	v.writing.Lock()
	defer v.writing.Unlock()
	return v.config
}

// Has reports whether there is such a profile.
func (v *Views) Has(profile string) bool { return v.set.Load().named[profile] != nil }

// For returns the part of the catalog that the client of a request sees.
func (v *Views) For(x *downstream.Request) *registry.Snapshot { return v.view(x).load(v.registry).is }

// ListsFor returns the part of that which lists contain: tools that are to be found by searches
// are left out.
func (v *Views) ListsFor(x *downstream.Request) *registry.Snapshot {
	return v.view(x).load(v.registry).lists
}

func (v *Views) view(x *downstream.Request) *view {
	x = x.Outer()
	set := v.set.Load()
	if len(set.clients) == 0 { // then who it is need not be read
		return set.of(x.Session(), "")
	}
	return set.of(x.Session(), x.ClientName())
}

// ForSession is [Views.For] for the client of a session, or for the clients that share it;
// everything for nil.
func (v *Views) ForSession(s *downstream.Session) *registry.Snapshot {
	if s == nil {
		return v.registry.Load()
	}
	return v.set.Load().of(s, s.Name()).load(v.registry).is
}

// ListsForSession is [Views.ListsFor] for them.
func (v *Views) ListsForSession(s *downstream.Session) *registry.Snapshot {
	return v.ListsForClient(s, s.Name())
}

// ListsForClient is [Views.ListsFor] for one of the clients that share a session, by its name.
func (v *Views) ListsForClient(s *downstream.Session, name string) *registry.Snapshot {
	return v.set.Load().of(s, name).load(v.registry).lists
}

// Whole returns the lists of clients which lack nothing.
func (v *Views) Whole() *registry.Snapshot { return v.set.Load().whole.load(v.registry).lists }

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
	case *choice:
		return c.name
	case *part:
		return c.name
	}
	return WholeProfile // nothing
}

// All yields the lists that clients can see: of everything, and of each profile.
func (v *Views) All() iter.Seq[*registry.Snapshot] {
	return func(yield func(*registry.Snapshot) bool) {
		set := v.set.Load()
		if !yield(set.whole.load(v.registry).lists) || !yield(set.others.load(v.registry).lists) {
			return
		}
		for _, one := range set.named {
			if one != set.others && !yield(one.load(v.registry).lists) {
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
	if s.IsScreen() || s.Profile() == WholeProfile {
		return 0
	}
	if len(set.clients) > 0 {
		name = x.ClientName()
	}
	if c, ok := set.of(s, name).choice.(*choice); ok && c.profile.MaxResult != 0 {
		server = c.profile.MaxResult
	}
	return max(0, server) // off is less
}

// of is the view of a client.
func (t *set) of(s *downstream.Session, client string) *view {
	switch asked := s.Profile(); {
	case asked == WholeProfile, s.IsScreen():
		return t.whole
	case asked != "":
		return cmp.Or(t.named[asked], t.gone)
	}
	for _, rule := range t.clients {
		if config.Glob(rule.Glob, client) {
			return t.named[rule.Profile]
		}
	}
	return t.others
}

// Profile names the profile of a session's client, "" for none: it may not be there any
// more.
func (v *Views) Profile(s *downstream.Session) string {
	set := v.set.Load()
	switch asked := s.Profile(); {
	case asked == WholeProfile, s.IsScreen():
		return ""
	case asked != "":
		return asked
	}
	return set.of(s, s.Name()).choice.(*choice).profile.Name
}

// view is a profile with the catalog as it shows it.
type view struct {
	choice registry.Visibility
	shown  registry.Visibility // what of it lists have; nil: all
	from   *namespace          // that the profile names; nil: the gateway's

	making sync.Mutex
	last   atomic.Pointer[made]
}

// made is a view of one snapshot, which is nil if another choice made it.
type made struct{ of, is, lists *registry.Snapshot }

// newView is a view whose versions of lists go on from those of the registry, or of what
// another one made.
func (v *Views) newView(c registry.Visibility) *view {
	one, now := &view{choice: c}, v.registry.Load()
	if c, ok := c.(*choice); ok {
		if c.lists != nil {
			one.shown = c.lists
		}
		one.from = v.in[c.profile.Namespace]
	}
	one.last.Store(&made{is: now, lists: now})
	return one
}

// follow is the view for a choice, after was.
func (v *Views) follow(was *view, c *choice) *view {
	if before, ok := was.choice.(*choice); ok && before.equal(c) {
		return was
	}
	next, before := v.newView(c), was.load(v.registry)
	next.last.Store(&made{is: before.is, lists: before.lists})
	return next
}

// load is the catalog as the view shows it now.
func (v *view) load(r *registry.Registry) *made {
	now := r.Load()
	if m := v.last.Load(); m.of == now {
		return m
	}
	v.making.Lock()
	defer v.making.Unlock()
	now = r.Load()
	before := v.last.Load()
	if before.of == now {
		return before
	}
	whole := now
	if v.from != nil {
		whole = v.from.load(now)
	}
	m := &made{of: now, is: whole.Narrow(v.choice, before.is)}
	m.lists = m.is
	if v.shown != nil {
		m.lists = m.is.Narrow(v.shown, before.lists)
	}
	v.last.Store(m)
	return m
}

// namespace holds the catalog in one namespace, which all profiles that name it share.
type namespace struct {
	flat bool

	mu     sync.Mutex
	of, is *registry.Snapshot // the last catalog, and the same in this namespace
}

func (n *namespace) load(now *registry.Snapshot) *registry.Snapshot {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.of != now {
		n.of, n.is = now, now.InNamespace(n.flat, n.is)
	}
	return n.is
}

func (n *namespace) forget() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.of, n.is = nil, nil
}

// none is the choice of nothing at all.
type none struct{}

func (none) Server(string) bool                                  { return false }
func (none) Overrides(string) *definition.Set                    { return nil }
func (none) All(string, registry.Kind) bool                      { return false }
func (none) Has(string, registry.Kind, string) bool              { return false }
func (n none) WithLists([registry.Kinds]int) registry.Visibility { return n }
