// Package views decides what of the catalog each client sees, and finds names in that.
//
// A view is a catalog narrowed to a profile of the config and to what the user has not
// turned off: what is not in it is unknown, by every name and to everything that asks
// about it. Views are immutable, made when
// somebody looks after a change, and shared by all clients of the profile; looking at one
// that is made costs a load of a pointer. It knows who asks by sessions and exchanges; it
// must not know what is asked, nor send anything.
//
// A profile is no lock: who may use Goblin may ask for another one. What nobody is to
// have is left out by the filters of servers.
package views

import (
	"cmp"
	"iter"
	"sync"
	"sync/atomic"

	"goblin/gateway/config"
	"goblin/gateway/downstream"
	"goblin/gateway/fleet"
	"goblin/gateway/switches"
	"goblin/registry"
)

// Whole is asked for instead of a profile by those who are to see everything, whatever
// the config gives to others: commands of the shell. No profile can have this name.
const Whole = "*"

// Views has the views of one registry. Make it with [New].
type Views struct {
	registry *registry.Registry
	servers  *fleet.Fleet
	set      atomic.Pointer[set]

	writing sync.Mutex // guards the next two
	config  *config.Config
	off     []switches.Switch
}

// set are the views of one config. It is immutable.
type set struct {
	named   map[string]*view
	clients []config.ClientRule
	others  *view // of clients that get no profile; nil: they see everything
	gone    *view // of clients whose profile is not there any more: nothing
	off     []switches.Switch
}

// New makes the views of a config. Servers may be nil until the first Find.
func New(r *registry.Registry, servers *fleet.Fleet, cfg *config.Config) *Views {
	v := &Views{registry: r, servers: servers}
	v.set.Store(&set{gone: &view{choice: none{}}})
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

// Switch makes the views lack what is off, and nothing else that was.
func (v *Views) Switch(off []switches.Switch) {
	v.writing.Lock()
	defer v.writing.Unlock()
	v.off = off
	v.makeLocked()
}

func (v *Views) makeLocked() {
	was := v.set.Load()
	next := &set{named: make(map[string]*view, len(v.config.Profiles)), clients: v.config.Clients, gone: was.gone, off: v.off}
	for _, p := range v.config.Profiles {
		before := was.named[p.Name]
		if p.Name == config.DefaultProfile {
			before = was.others
		} else if before == nil {
			before = was.gone
		}
		next.named[p.Name] = before.follow(v.registry, newChoice(v.config, p, v.off))
	}
	next.others = next.named[config.DefaultProfile]
	everything := newChoice(v.config, config.Everything(), v.off)
	if next.others == nil && (!everything.off.empty() || was.others != nil) {
		// Also when nothing is off any more: versions of lists go on.
		next.others = was.others.follow(v.registry, everything)
	}
	v.set.Store(next)
}

// Has reports whether there is such a profile.
func (v *Views) Has(profile string) bool { return v.set.Load().named[profile] != nil }

// Of is what the client of a request sees.
func (v *Views) Of(x *downstream.Exchange) *registry.Snapshot {
	x = x.Outer()
	set := v.set.Load()
	if len(set.clients) == 0 { // then who it is need not be read
		return v.see(set, x.Session(), "")
	}
	return v.see(set, x.Session(), x.Client().Name)
}

// OfSession is what the client of a session sees that has one, or the clients that have it
// in common.
func (v *Views) OfSession(s *downstream.Session) *registry.Snapshot {
	return v.see(v.set.Load(), s, s.Name())
}

// Version is that of a list in what clients see. Those of two profiles have nothing to do
// with each other.
type Version struct {
	view string
	n    uint64
}

// VersionOf is the version of a list.
func VersionOf(seen *registry.Snapshot, k registry.Kind) Version {
	return Version{Name(seen), seen.Version(k)}
}

// Name tells what profiles show apart: of one, versions of lists go on.
func Name(seen *registry.Snapshot) string {
	switch c := seen.Choice().(type) {
	case none:
		return Whole
	case *choice:
		if c.profile.Name != config.DefaultProfile { // it goes on where there was none
			return c.profile.Name
		}
	}
	return ""
}

// All yields what clients can see: everything, and each profile.
func (v *Views) All() iter.Seq[*registry.Snapshot] {
	return func(yield func(*registry.Snapshot) bool) {
		if !yield(v.registry.Load()) {
			return
		}
		set := v.set.Load()
		for _, one := range set.named {
			if !yield(one.load(v.registry)) {
				return
			}
		}
		if set.others != nil && set.named[config.DefaultProfile] == nil {
			yield(set.others.load(v.registry))
		}
	}
}

// MaxResult is how much text of a tool's result the client of a request gets at a time, in
// bytes, if its server's config says so much; 0 for all of it. A profile wins over servers,
// and screens and commands get all.
func (v *Views) MaxResult(x *downstream.Exchange, server int64) int64 {
	set, s, name := v.set.Load(), x.Session(), ""
	if s.IsScreen() || s.Profile() == Whole {
		return 0
	}
	if len(set.clients) > 0 {
		name = x.Client().Name
	}
	if one := set.of(s, name); one != nil {
		if c, ok := one.choice.(*choice); ok && c.profile.MaxResult != 0 {
			server = c.profile.MaxResult
		}
	}
	return max(0, server) // off is less
}

func (v *Views) see(set *set, s *downstream.Session, client string) *registry.Snapshot {
	return set.of(s, client).load(v.registry)
}

// of is the view of a client, nil for everything.
func (t *set) of(s *downstream.Session, client string) *view {
	switch asked := s.Profile(); {
	case asked == Whole, s.IsScreen():
		return nil
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
	case asked == Whole, s.IsScreen():
		return ""
	case asked != "":
		return asked
	}
	if one := set.of(s, s.Name()); one != nil {
		return one.choice.(*choice).profile.Name
	}
	return ""
}

// view is a profile with the catalog as it shows it. A nil one shows everything.
type view struct {
	choice registry.Choice

	making sync.Mutex
	last   atomic.Pointer[made]
}

// made is what was made of a snapshot, which is nil if another choice made it.
type made struct{ of, is *registry.Snapshot }

// follow is the view for a choice, after v, which may be nil.
func (v *view) follow(r *registry.Registry, c *choice) *view {
	if v != nil {
		if was, ok := v.choice.(*choice); ok && was.equal(c) {
			return v
		}
	}
	next := &view{choice: c}
	next.last.Store(&made{is: v.load(r)}) // versions go on from it
	return next
}

// load is the catalog as the view shows it now.
func (v *view) load(r *registry.Registry) *registry.Snapshot {
	now := r.Load()
	if v == nil {
		return now
	}
	if m := v.last.Load(); m != nil && m.of == now {
		return m.is
	}
	v.making.Lock()
	defer v.making.Unlock()
	now = r.Load()
	var before *registry.Snapshot
	if m := v.last.Load(); m != nil {
		if m.of == now {
			return m.is
		}
		before = m.is
	}
	is := v.narrow(now, before)
	v.last.Store(&made{now, is})
	return is
}

func (v *view) narrow(now, before *registry.Snapshot) *registry.Snapshot {
	if c, ok := v.choice.(*choice); ok {
		return c.narrow(now, before)
	}
	return now.Narrow(v.choice, before)
}

// none is the choice of nothing at all.
type none struct{}

func (none) Server(string) bool                     { return false }
func (none) All(string, registry.Kind) bool         { return false }
func (none) Has(string, registry.Kind, string) bool { return false }
