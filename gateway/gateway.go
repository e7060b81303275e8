package gateway

import (
	"context"
	"log/slog"
	"sync"

	"goblin/gateway/config"
	"goblin/gateway/downstream"
	"goblin/gateway/inflight"
	"goblin/gateway/intercept"
	"goblin/gateway/notify"
	"goblin/gateway/serverreq"
	"goblin/gateway/servers"
	"goblin/gateway/state"
	"goblin/gateway/tasks"
	"goblin/gateway/telemetry"
	"goblin/gateway/tracing"
	"goblin/gateway/upstream"
	"goblin/gateway/view"
	"goblin/registry"
	"goblin/registry/rawjson"
)

// Options configures a Gateway.
type Options struct {
	servers.Options
	Meter  *telemetry.Meter // may be nil
	Tracer *tracing.Tracer  // may be nil
	// CallApprovals are the calls that may pass rules; nil keeps them in memory.
	CallApprovals *state.CallApprovalStore
}

// Gateway serves the registry's catalog to any number of sessions.
type Gateway struct {
	o          Options
	reg        *registry.Registry
	log        *slog.Logger
	metrics    *telemetry.Metrics
	journal    *telemetry.Journal
	mask       *config.Mask
	serverInfo []byte

	Servers *servers.Manager

	Views    *view.Views
	clients  inflight.Clients
	calls    *inflight.Table
	Pending  inflight.Pending
	Notifier *notify.Notifier
	ask      *serverreq.Router
	tasks    *tasks.Tasks
	relays   *extensionRelays
	Rules    *intercept.Gate
	logins   *serverreq.Logins
	results  *ResultStore

	projects downstream.Projects

	work sync.WaitGroup // outlive their request
}

// New prepares a Gateway. Sessions may open; servers start with Run.
func New(o Options) *Gateway {
	g := &Gateway{
		mask:    o.Mask,
		journal: &telemetry.Journal{Registry: o.Registry, Metrics: o.Metrics, Mask: o.Mask, Meter: o.Meter},
		o:       o, reg: o.Registry, log: o.Logger, metrics: o.Metrics,
		serverInfo: ServerInfo(o.Version),
	}
	g.Rules = newGate(g)
	g.calls, g.results = inflight.NewTable(), NewResultStore(o.Memory)
	g.Pending = inflight.Pending{Table: g.calls, Clients: &g.clients, Journal: g.journal, Stops: g.Rules.EachStop}
	g.ask = serverreq.New(serverreq.Options{Journal: g.journal, Logger: o.Logger, Calls: g.calls, Clients: &g.clients, Roots: o.Config.Gateway.Roots})
	g.Servers = servers.New(o.Options, servers.Hooks{
		Handler:       serverHandler{g},
		OnListChanged: func(server string, kind registry.Kind) { g.Notifier.ListChanged(server, kind) },
		OnConnectionChanged: func(server string, unitOf func(*downstream.Session) string) {
			g.Notifier.ConnectionChanged(server, unitOf)
		},
		NoProject:   func(s *downstream.Session) string { return g.projects.NoProjectReason(s) },
		Subscribers: func(server string) int { return g.Notifier.Subscriptions(server) },
		Busy:        func(s *upstream.Server) bool { return g.calls.Busy(s) || g.tasks.HasOpenTask(s) },
	})
	g.projects.OnJoin = g.Servers.JoinProject
	g.Views = view.New(o.Registry, g.Servers, o.Config)
	g.journal.Profile = g.Views.Profile
	g.tasks = tasks.New(tasks.Options{Registry: o.Registry, Journal: g.journal, Logger: o.Logger, Servers: g.Servers, Calls: g.calls, Ask: g.ask, Views: g.Views})
	g.logins = serverreq.NewLogins(g.Servers, g.ask)
	g.relays = newRelays(relayOptions{Registry: o.Registry, Servers: g.Servers, Tasks: g.tasks, Logger: o.Logger, Views: g.Views})
	g.Notifier = notify.New(notify.Options{
		Registry: o.Registry, Metrics: o.Metrics, Journal: g.journal, Logger: o.Logger, Mask: o.Mask,
		Servers: g.Servers, Requests: g.calls, Clients: &g.clients, Visibility: g.Views,
	})
	return g
}

// ServerInfo returns Goblin's name and version as a raw object.
func ServerInfo(version string) []byte {
	return rawjson.Object("name", "goblin", "title", "Goblin", "version", version)
}

// RegistryOptions returns the options of the catalog.
func RegistryOptions(cfg *config.Config) registry.Options {
	names := make([]string, len(cfg.Servers))
	for i, s := range cfg.Servers {
		names[i] = s.Name
	}
	return registry.Options{
		Servers:    names,
		Overrides:  cfg.Overrides(),
		Own:        config.OwnTools(),
		Flat:       cfg.Gateway.Namespace == config.NamespaceFlat,
		MaxName:    cfg.Gateway.MaxName,
		PageSize:   cfg.Gateway.PageSize,
		MaxEntries: cfg.Gateway.Limits.Entries,
		Repair:     true,
	}
}

// Run starts the servers and serves until ctx is done. It returns when all connections
// are closed and all child processes have exited.
func (g *Gateway) Run(ctx context.Context) {
	g.Servers.Run(ctx, func() { g.Notifier.Run(ctx) })
	g.logins.Close()
	g.Notifier.Wait()
	g.ask.Wait()
	g.tasks.Wait()
	g.work.Wait()
}

// AddSink adds a sink of all requests and notifications until remove is called.
func (g *Gateway) AddSink(s telemetry.Sink) (remove func()) { return g.journal.AddSink(s) }

// Apply applies an edited config; see [servers.Manager.Apply]. Subscriptions at removed
// servers, and denied ones, are inactive until a later config permits them.
func (g *Gateway) Apply(cfg *config.Config) servers.Change {
	g.ask.SetRoots(cfg.Gateway.Roots)
	did := g.Servers.Apply(cfg)
	g.Views.Apply(cfg)
	g.Notifier.VisibilityChanged()
	g.Notifier.ServersRemoved(did.Removed)
	for _, name := range did.Removed {
		if g.o.Pins != nil {
			g.o.Pins.Forget(name)
		}
	}
	return did
}

// SetDisabled hides exactly these entries, and all entries of hidden servers.
func (g *Gateway) SetDisabled(off []state.ToggleEntry, hidden ...string) {
	g.Views.SetDisabled(off, hidden...)
	g.Notifier.VisibilityChanged()
}

// Sessions returns the open sessions, oldest first.
func (g *Gateway) Sessions() []*downstream.Session { return g.clients.All() }

// SessionOpened implements [downstream.Handler].
func (g *Gateway) SessionOpened(s *downstream.Session) {
	g.clients.Open(s)
	g.Notifier.SessionOpened(s)
	g.showSession(s)
	g.metrics.AddSessions(s.Transport(), 1)
	g.log.Debug("session opened", "session", s.ID(), "transport", s.Transport())
}

// SessionClosed implements [downstream.Handler].
func (g *Gateway) SessionClosed(s *downstream.Session) {
	g.clients.Close(s)
	g.Rules.UIClosed()
	g.Rules.SessionClosed(s.ID())
	g.reg.DropSession(s.ID())
	g.metrics.AddSessions(s.Transport(), -1)
	g.log.Debug("session closed", "session", s.ID(), "client", s.Name())
	g.tasks.Release(s)
	g.results.Drop(s.ID())
	g.ask.SessionClosed(s)
	g.projects.Forget(s)
	g.work.Go(func() {
		g.Notifier.SessionClosed(s)
		g.Servers.ReleaseSession(s)
		if s.Level() != downstream.LevelUnset {
			g.Notifier.LevelsChanged()
		}
	})
}
