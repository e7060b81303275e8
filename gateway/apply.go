package gateway

import (
	"context"
	"reflect"
	"sync"
	"time"

	"goblin/gateway/config"
	"goblin/gateway/upstream"
	"goblin/registry"
)

// drainLimit is how long calls at a server that was replaced or removed may
// still take.
const drainLimit = 30 * time.Second

// Change is what [Gateway.Apply] did, as names of servers in config order.
type Change struct{ Added, Changed, Removed []string }

// Empty reports whether nothing changed.
func (c Change) Empty() bool { return len(c.Added)+len(c.Changed)+len(c.Removed) == 0 }

// Apply makes the servers those of an edited config, and the roots those that
// it offers. Servers whose definition is the same go on as they are. One that
// is gone leaves the catalog at once; what sessions subscribed to there counts
// again if a later config has it back. One that changed keeps its entries and
// subscriptions until its successor, which starts at once, has listed, but for
// what the config denies now: such entries leave at once, and subscriptions rest
// until a later config allows them. Calls under way at either go on for
// drainLimit. Apply does not wait for them.
func (g *Gateway) Apply(cfg *config.Config) Change {
	did := g.apply(cfg)
	g.subscriptions.show.Lock() // or a session that ends now shows a row of theirs
	defer g.subscriptions.show.Unlock()
	for _, name := range did.Removed {
		g.metrics.Forget(name)
		if g.o.Pins != nil {
			g.o.Pins.Forget(name)
		}
	}
	return did
}

func (g *Gateway) apply(cfg *config.Config) (did Change) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if was := g.roots.Swap(&cfg.Gateway.Roots); !reflect.DeepEqual(*was, cfg.Gateway.Roots) {
		units := []string{""}
		for _, l := range g.calls.Links() { // whose client has none gets these
			units = append(units, l.Conn.Unit())
		}
		g.rootsChangedFor(units...)
	}
	old := g.servers
	g.servers, g.order = make(map[string]*backend), nil
	names, fresh := make([]string, len(cfg.Servers)), []config.Server(nil)
	replaced := make(map[string]*backend)
	for i, s := range cfg.Servers {
		names[i] = s.Name
		b := old[s.Name]
		switch {
		case b == nil:
			did.Added = append(did.Added, s.Name)
			fresh = append(fresh, s)
			g.subscriptions.move(s.Name, s.Isolation == config.PerSession) // those of an earlier one
		case !b.defined.Equal(&s) || b.defined.Problem != s.Problem:
			did.Changed = append(did.Changed, s.Name)
			replaced[s.Name] = b
			fresh = append(fresh, s)
			g.retire(b)
			if b.defined.Isolation != s.Isolation {
				g.subscriptions.move(s.Name, s.Isolation == config.PerSession)
			}
		default:
			g.servers[s.Name] = b
		}
		delete(old, s.Name)
		g.order = append(g.order, s.Name)
	}
	for name, b := range old {
		did.Removed = append(did.Removed, name)
		g.retire(b)
	}
	g.reg.SetServers(names)
	if len(fresh) > 0 {
		g.since.Store(time.Now().UnixNano())
	}
	for _, s := range fresh {
		b := g.add(s, replaced[s.Name] != nil)
		if o := replaced[s.Name]; o != nil && !sameFilters(&o.defined, &s) {
			g.reg.Retain(s.Name, b.Permits)
		}
		if s.Disabled || s.Problem != "" {
			g.reg.SetVisible(s.Name, false)
		}
		if g.run != nil {
			g.start(g.run, b)
		}
	}
	g.edits.Add(1)
	return did
}

func sameFilters(a, b *config.Server) bool {
	return reflect.DeepEqual([]config.Filter{a.Tools, a.Prompts, a.Resources}, []config.Filter{b.Tools, b.Prompts, b.Resources})
}

// retire makes a backend end with its calls. g.mu is held.
func (g *Gateway) retire(b *backend) {
	b.out.retire()
	if b.stop == nil { // it was never started
		return
	}
	ctx := g.run
	g.work.Go(func() {
		if ctx != nil {
			g.drain(ctx, b)
		}
		b.stop()
		<-b.done
	})
}

// drainPause is how often drain looks, and how long a request may take from
// the choice of a server to its being under way there.
const drainPause = 100 * time.Millisecond

// drain returns when nothing is under way at a backend any more, at the latest
// after drainLimit.
func (g *Gateway) drain(ctx context.Context, b *backend) {
	limit := time.NewTimer(drainLimit)
	defer limit.Stop()
	look := time.NewTicker(drainPause)
	defer look.Stop()
	for {
		select {
		case <-look.C:
			if !g.calls.Busy(b.Server) && !g.tasksOpen(b.Server) {
				return
			}
		case <-limit.C:
			g.log.Warn("Calls cut off: the config changed their server", "server", b.Name(), "after", drainLimit)
			return
		case <-ctx.Done():
			return
		}
	}
}

// outlet is where a backend's lists, state and figures go until it is
// replaced.
type outlet struct {
	*registry.Registry
	gateway *Gateway

	mu     sync.RWMutex // read-locked while something is written
	closed bool
}

func (o *outlet) write(do func()) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	if !o.closed {
		do()
	}
}

// retire closes the outlet: what the backend still says has no effect on the
// catalog.
func (o *outlet) retire() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
}

// SetList implements [upstream.Catalog].
func (o *outlet) SetList(server string, kind registry.Kind, items [][]byte) (problems []registry.Problem) {
	o.write(func() {
		if kind == registry.Tool && o.gateway.o.Pins != nil {
			problems = o.Registry.SetTools(server, items, func(tools []registry.Definition) []bool { return o.gateway.pin(server, tools) })
			return
		}
		problems = o.Registry.SetList(server, kind, items)
	})
	return problems
}

// SetVisible implements [upstream.Catalog].
func (o *outlet) SetVisible(server string, visible bool) {
	o.write(func() { o.Registry.SetVisible(server, visible) })
}

// SetState implements [upstream.Catalog].
func (o *outlet) SetState(server string, state registry.ServerState) {
	o.write(func() { o.Registry.SetState(server, state) })
}

// observe gives the figures of a backend to metrics, until it is replaced.
func (g *Gateway) observe(o *outlet) upstream.Observe {
	return upstream.Observe{
		Up:        func(server string, up bool) { o.write(func() { g.metrics.Up(server, up) }) },
		Restarted: func(server string) { o.write(func() { g.metrics.Restart(server) }) },
		Announced: func(server string, kind registry.Kind) { o.write(func() { g.said.again(server, kind) }) },
	}
}
