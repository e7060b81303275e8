package servers

import (
	"context"
	"maps"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"goblin/gateway/config"
	"goblin/gateway/oauth"
	"goblin/gateway/upstream"
	"goblin/registry"
)

// drainLimit is the maximum time for calls in flight at a replaced or removed server.
const drainLimit = 30 * time.Second

// Change lists the servers that [Manager.Apply] touched, in config order.
type Change struct{ Added, Changed, Removed []string }

// Empty reports whether Apply touched no server.
func (c Change) Empty() bool { return len(c.Added)+len(c.Changed)+len(c.Removed) == 0 }

// Apply applies an edited config. Servers with an unchanged definition keep running. A
// removed server leaves the catalog at once. A changed server is replaced at once. Its
// entries stay until the new one has listed, except entries that the config now denies.
// Calls in flight may continue for drainLimit; Apply doesn't wait for them.
func (f *Manager) Apply(cfg *config.Config) (did Change) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.edits.Add(1)
	defer f.edits.Add(1)
	now := f.servers.Load().named
	removed := maps.Clone(now)
	names := make([]string, len(cfg.Servers))
	unchanged := make(map[string]bool)
	var moved []string
	for i, s := range cfg.Servers {
		names[i] = s.Name
		delete(removed, s.Name)
		switch b := now[s.Name]; {
		case b == nil:
			did.Added = append(did.Added, s.Name)
			moved = append(moved, s.Name) // sessions of an earlier server of this name
		case !b.defined.Equal(&s) || b.defined.Problem != s.Problem:
			did.Changed = append(did.Changed, s.Name)
			f.invalidateLogin(b, &s)
			f.retireLocked(b)
			if b.defined.Isolation != s.Isolation {
				moved = append(moved, s.Name)
			}
		default:
			unchanged[s.Name] = true
		}
	}
	for name, b := range removed {
		did.Removed = append(did.Removed, name)
		if f.o.Catalog != nil {
			f.o.Catalog.Forget(name)
		}
		f.retireLocked(b)
	}
	f.o.Registry.SetServers(names, cfg.Overrides())
	if len(unchanged) < len(names) {
		f.since.Store(time.Now().UnixNano())
	}
	next := &serverTable{named: make(map[string]*Server)}
	for _, s := range cfg.Servers {
		b := now[s.Name]
		if !unchanged[s.Name] {
			b = f.replace(b, s)
		}
		next.add(b)
	}
	f.servers.Store(next)
	for _, name := range moved {
		f.hooks.OnConnectionChanged(name, next.named[name].IsolationUnit)
	}
	for _, b := range next.all {
		if !unchanged[b.Name()] && f.run != nil {
			f.startLocked(b)
		}
	}
	return did
}

// old may be nil.
func (f *Manager) replace(old *Server, s config.Server) *Server {
	b := f.newServer(s, old != nil)
	if old != nil && old.sink.identity == b.sink.identity && (old.Listed() || old.sink.hasCache.Load()) {
		for kind := range b.sink.listed {
			b.sink.listed[kind] = true // listed entries are newer than cached ones
		}
		b.sink.cachedDenied = deniedNames(old.DeniedNames)
	}
	if old != nil && !sameFilters(&old.defined, &s) {
		f.o.Registry.Retain(s.Name, b.Permits)
	}
	if s.Disabled || s.Problem != "" {
		f.o.Registry.SetVisible(s.Name, false)
	}
	return b
}

func sameFilters(a, b *config.Server) bool {
	return reflect.DeepEqual([]config.Filter{a.Tools, a.Prompts, a.Resources}, []config.Filter{b.Tools, b.Prompts, b.Resources})
}

func (f *Manager) retireLocked(b *Server) {
	b.sink.close()
	if b.stop == nil {
		return
	}
	ctx := f.run
	f.work.Go(func() {
		if ctx != nil {
			f.drain(ctx, b)
		}
		b.stop()
		<-b.done
	})
}

// drainInterval is drain's polling interval, and the maximum delay from selecting a
// server to sending the request.
const drainInterval = 100 * time.Millisecond

func (f *Manager) drain(ctx context.Context, b *Server) {
	limit := time.After(drainLimit)
	look := time.NewTicker(drainInterval)
	defer look.Stop()
	for {
		select {
		case <-look.C:
			if !f.hooks.Busy(b.Server) {
				return
			}
		case <-limit:
			f.log.Warn("calls cancelled: the config changed their server", "server", b.Name(), "after", drainLimit)
			return
		case <-ctx.Done():
			return
		}
	}
}

// sink passes lists, state and metrics of a server on until the server is replaced.
type sink struct {
	*registry.Registry
	manager    *Manager
	authorizer *oauth.Authorizer // nil if the server has no login

	identity string
	hasCache atomic.Bool
	loaded   chan struct{} // closed when cached lists are loaded or unusable; nil without

	denied       func(registry.Kind) []string // names denied in the server's lists
	cachedDenied [][]string
	hasListed    [registry.Kinds]atomic.Bool // by the server itself

	fetchedMu sync.Mutex
	fetched   map[int][][]byte // not saved yet; guarded by fetchedMu

	listMu sync.Mutex           // held while a cached or new list is published
	listed [registry.Kinds]bool // by the server itself; guarded by listMu

	stateMu sync.Mutex // guards the next two
	state   registry.ServerState
	account *registry.Account // nil without a login

	mu     sync.RWMutex // read-locked during writes
	closed bool
}

func (o *sink) write(do func()) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	if !o.closed {
		do()
	}
}

func (o *sink) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
}

// SetList implements [upstream.Catalog].
func (o *sink) SetList(server string, kind registry.Kind, items [][]byte) (problems []registry.Problem) {
	o.stageList(server, kind, items)
	o.listMu.Lock()
	defer o.listMu.Unlock()
	o.listed[kind] = true
	o.hasListed[kind].Store(true)
	return o.setList(server, kind, items)
}

func (o *sink) setList(server string, kind registry.Kind, items [][]byte) (problems []registry.Problem) {
	o.write(func() {
		if (kind == registry.Tool || kind == registry.Skill) && o.manager.o.Pins != nil {
			problems = o.Registry.SetApprovedList(server, kind, items, func(all []registry.Definition) []bool { return o.manager.checkPins(server, kind, all) })
			return
		}
		problems = o.Registry.SetList(server, kind, items)
	})
	return problems
}

// ServesSkills implements [upstream.Catalog].
func (o *sink) ServesSkills(server string, serves bool) {
	o.write(func() { o.Registry.ServesSkills(server, serves) })
}

// SetVisible implements [upstream.Catalog].
func (o *sink) SetVisible(server string, visible bool) {
	o.write(func() { o.Registry.SetVisible(server, visible) })
}

// observe returns hooks that update metrics and report list changes until the server is
// replaced.
func (f *Manager) observe(o *sink) upstream.Hooks {
	return upstream.Hooks{
		ConnectionChanged: func(server string, up bool) { o.write(func() { f.o.Metrics.SetConnected(server, up) }) },
		Restarted:         func(server string) { o.write(func() { f.o.Metrics.AddRestart(server) }) },
		ListChanged:       func(server string, kind registry.Kind) { o.write(func() { f.hooks.OnListChanged(server, kind) }) },
	}
}
