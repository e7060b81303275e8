// Package gateway makes one MCP server of many: it dispatches clients'
// requests, routes them by the registry's tables, relays what backends ask
// and announce to the clients whom it concerns, and counts references to
// subscriptions.
//
// It stands between gateway/downstream (client sessions) and gateway/upstream
// (connections to servers) and is the handler of both; it knows neither their
// transports nor any screen, and it never decodes what it only passes on.
//
// Requests run in goroutines of the session that sent them and may block.
// What backends send arrives on their read loops and is only queued. Results
// and definitions are the server's bytes but for names and URIs (see
// rewrite.go). Notifications of changed lists are coalesced per session, all
// others of a request stand before its answer on its own stream.
package gateway

import (
	"context"
	"log/slog"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"goblin/gateway/call"
	"goblin/gateway/config"
	"goblin/gateway/downstream"
	"goblin/gateway/fleet"
	"goblin/gateway/journal"
	"goblin/gateway/memory"
	"goblin/gateway/metrics"
	"goblin/gateway/orphans"
	"goblin/gateway/pins"
	"goblin/gateway/upstream"
	"goblin/registry"
	"goblin/registry/rawjson"
)

// Options are what a Gateway is made from. Mask and Only may be nil.
type Options struct {
	Config   *config.Config
	Registry *registry.Registry
	Metrics  *metrics.Metrics
	Logger   *slog.Logger
	Version  string
	// Mask hides the config's secrets in what goes into errors, logs and
	// journals; nil hides nothing.
	Mask *config.Mask
	// Children records child processes; nil records none.
	Children *orphans.Record
	// Pins remember the tools that the user approved; nil lets all through.
	Pins *pins.Store
	// Memory bounds what servers, and whoever else shares it, make the process hold;
	// nil bounds nothing.
	Memory *memory.Account
	// Only names the servers to start; nil starts all that are enabled.
	Only []string
}

// Gateway serves the registry's catalog to any number of sessions.
type Gateway struct {
	o       Options
	reg     *registry.Registry
	log     *slog.Logger
	metrics *metrics.Metrics
	journal *journal.Journal
	mask    *config.Mask
	roots   atomic.Pointer[[]config.Root]
	// serverInfo is Goblin's name and version as a raw object.
	serverInfo []byte

	// Servers are those of the config.
	Servers *fleet.Fleet

	mu      sync.RWMutex
	clients map[*downstream.Session]*client

	calls         *call.Table
	levels        levels
	subscriptions subscriptions
	listens       listens
	elicitations  elicitations
	said          said
	tokens        tokens
	tasks         tasks
	rootNews      rootNews
	screened      atomic.Int64 // screens whose users can be asked

	work sync.WaitGroup // goroutines that outlive the request that caused them
}

// New prepares a Gateway. Sessions may be opened at once; servers start with
// [Gateway.Run].
func New(o Options) *Gateway {
	g := &Gateway{
		mask:    o.Mask,
		journal: &journal.Journal{Registry: o.Registry, Metrics: o.Metrics, Mask: o.Mask},
		o:       o, reg: o.Registry, log: o.Logger, metrics: o.Metrics,
		serverInfo: ServerInfo(o.Version),
		clients:    make(map[*downstream.Session]*client),
	}
	g.roots.Store(&o.Config.Gateway.Roots)
	g.calls = call.NewTable()
	g.levels.init()
	g.said.init()
	g.subscriptions.init()
	g.tasks.init()
	g.Servers = fleet.New(fleet.Options{
		Config: o.Config, Registry: o.Registry, Metrics: o.Metrics, Logger: o.Logger, Version: o.Version, Mask: o.Mask,
		Children: o.Children, Pins: o.Pins, Memory: o.Memory, Only: o.Only,
		Handler: relay{g}, Announced: g.said.again, Moved: g.subscriptions.move,
		Busy: func(s *upstream.Server) bool { return g.calls.Busy(s) || g.tasksOpen(s) },
	})
	return g
}

// ServerInfo is Goblin's name and version as clients get them, a raw object.
func ServerInfo(version string) []byte {
	return rawjson.Object("name", "goblin", "title", "Goblin", "version", version)
}

// RegistryOptions are the options of the registry that serves cfg.
func RegistryOptions(cfg *config.Config) registry.Options {
	names := make([]string, len(cfg.Servers))
	for i, s := range cfg.Servers {
		names[i] = s.Name
	}
	return registry.Options{
		Servers:    names,
		Own:        config.OwnTools(),
		Flat:       cfg.Gateway.Flat,
		PageSize:   cfg.Gateway.PageSize,
		MaxEntries: cfg.Gateway.Limits.Entries,
	}
}

// Run starts the servers and serves until ctx ends; it returns when every
// connection is closed and every child process gone.
func (g *Gateway) Run(ctx context.Context) {
	g.Servers.Run(ctx, func() { g.notifyChanges(ctx) })
	g.work.Wait()
}

// Apply makes the servers those of an edited config, and the roots those that it
// offers; see [fleet.Fleet.Apply]. What sessions subscribed to at a server that is gone
// counts again if a later config has it back; at one that changed it is kept, but for
// what the config denies now: that rests until a later config allows it.
func (g *Gateway) Apply(cfg *config.Config) fleet.Change {
	if was := g.roots.Swap(&cfg.Gateway.Roots); !reflect.DeepEqual(*was, cfg.Gateway.Roots) {
		units := []string{""}
		for _, l := range g.calls.Links() { // whose client has none gets these
			units = append(units, l.Conn.Unit())
		}
		g.rootsChangedFor(units...)
	}
	did := g.Servers.Apply(cfg)
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

// client is what the gateway keeps of a session.
type client struct {
	session *downstream.Session
	since   time.Time
	met     atomic.Bool // a stateless request was noted

	mu    sync.Mutex
	level logLevel // what logging/setLevel asked for; unset before that
	// seen is, per kind, the version of the list that the client knows or was
	// told of, 0 for none.
	seen [registry.Kinds]uint64
}

// listed notes the version of a list that the client got. Only the first
// counts: it is not told of what it has from the start, but of every change
// after that, even if it happened to look before it was told.
func (c *client) listed(k registry.Kind, version uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen[k] == 0 {
		c.seen[k] = version
	}
}

// told notes a version that the client is told of, and reports whether that
// is news.
func (c *client) told(k registry.Kind, version uint64) (news bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	news = c.seen[k] != version
	c.seen[k] = version
	return news
}

func (g *Gateway) client(s *downstream.Session) *client {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.clients[s]
}

func (g *Gateway) allClients() []*client {
	g.mu.RLock()
	defer g.mu.RUnlock()
	all := make([]*client, 0, len(g.clients))
	for _, c := range g.clients {
		all = append(all, c)
	}
	return all
}

// SessionInfo is a client session and when it began.
type SessionInfo struct {
	*downstream.Session
	Since time.Time
}

// Sessions are the open client sessions, the oldest first.
func (g *Gateway) Sessions() []SessionInfo {
	var open []SessionInfo
	for _, c := range g.allClients() {
		open = append(open, SessionInfo{c.session, c.since})
	}
	slices.SortFunc(open, func(a, b SessionInfo) int { return a.Since.Compare(b.Since) })
	return open
}

// Opened implements [downstream.Handler].
func (g *Gateway) Opened(s *downstream.Session) {
	c := &client{session: s, since: time.Now(), level: levelUnset}
	g.mu.Lock()
	g.clients[s] = c
	g.mu.Unlock()
	g.showSession(c)
	g.metrics.Session(s.Transport(), 1)
	g.log.Debug("Session opened", "session", s.ID(), "transport", s.Transport())
}

// Closed implements [downstream.Handler]: what the session held is given back.
func (g *Gateway) Closed(s *downstream.Session) {
	g.mu.Lock()
	c := g.clients[s]
	delete(g.clients, s)
	g.mu.Unlock()
	g.reg.DropSession(s.ID())
	g.metrics.Session(s.Transport(), -1)
	g.log.Debug("Session closed", "session", s.ID(), "client", s.Name())
	g.elicitations.forget(s)
	for _, own := range g.tasks.release(s) {
		g.cancelTask(own)
	}
	g.rootsChanged(s)
	if asksUser(s) {
		g.screened.Add(-1)
	}
	g.work.Go(func() {
		g.releaseSubscriptions(holder{session: s})
		for _, b := range g.Servers.All() {
			if b.PerSession() {
				b.EndUnit(s.Unit())
			}
		}
		if c != nil && c.wants() != levelUnset {
			g.levelsChanged()
		}
	})
}
