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
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"goblin/gateway/call"
	"goblin/gateway/config"
	"goblin/gateway/downstream"
	"goblin/gateway/journal"
	"goblin/gateway/jsonrpc"
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
	since   atomic.Int64 // when servers were started last, in Unix ns
	roots   atomic.Pointer[[]config.Root]
	// serverInfo is Goblin's name and version as a raw object.
	serverInfo []byte

	mu      sync.RWMutex
	run     context.Context // set while Run runs
	edits   atomic.Uint64   // counts those of the config; what is listed fits the last
	servers map[string]*backend
	order   []string
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

// backend is a server with the goroutine that runs it.
type backend struct {
	*upstream.Server
	out     *outlet
	defined config.Server // in the config
	stop    context.CancelFunc
	done    chan struct{}
	repins  atomic.Bool // its tools are to be listed again, since they could not be pinned
}

// New prepares a Gateway. Sessions may be opened at once; servers start with
// [Gateway.Run].
func New(o Options) *Gateway {
	g := &Gateway{
		mask:    o.Mask,
		journal: &journal.Journal{Registry: o.Registry, Metrics: o.Metrics, Mask: o.Mask},
		o:       o, reg: o.Registry, log: o.Logger, metrics: o.Metrics,
		serverInfo: ServerInfo(o.Version),
		servers:    make(map[string]*backend),
		clients:    make(map[*downstream.Session]*client),
	}
	g.since.Store(time.Now().UnixNano())
	g.roots.Store(&o.Config.Gateway.Roots)
	g.calls = call.NewTable()
	g.levels.init()
	g.said.init()
	g.subscriptions.init()
	g.tasks.init()
	for i := range o.Config.Servers {
		s := o.Config.Servers[i]
		if o.Only == nil || slices.Contains(o.Only, s.Name) {
			g.order = append(g.order, s.Name)
			g.add(s, false)
		}
	}
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
	g.mu.Lock()
	g.run = ctx
	for _, name := range g.order {
		g.start(ctx, g.servers[name])
	}
	g.mu.Unlock()

	g.notifyChanges(ctx)

	g.mu.Lock()
	g.run = nil
	running := make([]*backend, 0, len(g.servers))
	for _, b := range g.servers {
		running = append(running, b)
	}
	g.mu.Unlock()
	for _, b := range running {
		if b.done != nil {
			<-b.done
		}
	}
	g.work.Wait()
}

// declared is what backends are told that clients can do. Each client's own
// capabilities decide when one is really asked.
var declared = []byte(`{"elicitation":{"form":{},"url":{}},"roots":{"listChanged":true},"sampling":{"context":{},"tools":{}}}`)

// add makes the backend of a server that the registry knows. replaces says that
// the registry has entries of one that it takes the place of.
func (g *Gateway) add(defined config.Server, replaces bool) *backend {
	s := defined
	if s.Type == config.Stdio && s.Cwd == "" && !g.o.Config.Demo {
		// A host is shared by clients of many folders: which of them came
		// first must not decide where a server runs.
		s.Cwd = filepath.Dir(g.o.Config.Path)
	}
	out := &outlet{Registry: g.reg, gateway: g}
	b := &backend{out: out, defined: defined, Server: upstream.NewServer(s, upstream.Options{
		Handler: relay{g}, Registry: out, Logger: g.log, Version: g.o.Version, Capabilities: declared,
		Limits:      g.o.Config.Gateway.Limits,
		Redact:      g.mask.String,
		ListChanged: g.o.Config.Gateway.ListChanged,
		Observe:     g.observe(out),
		Children:    g.o.Children,
		Memory:      g.o.Memory,
		Replaces:    replaces,
	})}
	g.servers[s.Name] = b
	g.metrics.Up(s.Name, false)
	g.reg.OpenServer(s.Name, s.OpenResources)
	return b
}

func (g *Gateway) start(ctx context.Context, b *backend) {
	ctx, b.stop = context.WithCancel(ctx)
	b.done = make(chan struct{})
	go func() {
		defer close(b.done)
		b.Run(ctx)
	}()
}

// RestartServer closes a server's connections and opens them anew at once. It
// fails when there is no such server, or when it is not to run at all.
func (g *Gateway) RestartServer(name string) error {
	b := g.server(name)
	if b == nil {
		return &UnknownServerError{Name: name, Known: g.ServerNames()}
	}
	return b.Restart()
}

// SetServerEnabled turns a server on or off for as long as the Gateway runs; it
// does not wait. One that is off is as if the config disabled it, but that its
// subscriptions come back with it. It fails when there is no such server, or
// when the one to turn on cannot run.
func (g *Gateway) SetServerEnabled(name string, on bool) error {
	b := g.server(name)
	if b == nil {
		return &UnknownServerError{Name: name, Known: g.ServerNames()}
	}
	if problem := b.Config().Problem; on && problem != "" {
		return fmt.Errorf("server %q cannot be enabled: %s", name, problem)
	}
	b.SetEnabled(on)
	return nil
}

// UnknownServerError is a server name that the config does not have.
type UnknownServerError struct {
	Name  string
	Known []string
}

func (e *UnknownServerError) Error() string {
	return fmt.Sprintf("Server '%s' not found; the config has %s", e.Name, list(e.Known))
}

// ServerNames are the servers in config order.
func (g *Gateway) ServerNames() []string {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return slices.Clone(g.order)
}

func (g *Gateway) server(name string) *backend {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.servers[name]
}

// backends are the servers in config order.
func (g *Gateway) backends() []*backend {
	g.mu.RLock()
	defer g.mu.RUnlock()
	all := make([]*backend, 0, len(g.order))
	for _, name := range g.order {
		all = append(all, g.servers[name])
	}
	return all
}

// Starting names the servers that have neither listed nor failed to, so that
// lists may still grow.
func (g *Gateway) Starting() []string {
	var names []string
	for _, b := range g.backends() {
		select {
		case <-b.FirstList():
		default:
			names = append(names, b.Name())
		}
	}
	return names
}

// AwaitLists waits until no server is [Gateway.Starting], ctx ends or
// startup_wait after the gateway's start is over, whichever is first.
func (g *Gateway) AwaitLists(ctx context.Context) {
	left := g.patience()
	if left <= 0 {
		return
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	for _, b := range g.backends() {
		select {
		case <-b.FirstList():
		case <-timer.C:
			return
		case <-ctx.Done():
			return
		}
	}
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
		for _, b := range g.backends() {
			if perSession(b) {
				b.EndUnit(s.Unit())
			}
		}
		if c != nil && c.wants() != levelUnset {
			g.levelsChanged()
		}
	})
}

// conn is the connection that serves a session's requests to a server, stateless
// ones if modern is set: of their own era where the server offers both. While
// the server makes its first attempt, conn waits as long as a list would.
func (g *Gateway) conn(ctx context.Context, b *backend, s *downstream.Session, modern bool) (upstream.Conn, error) {
	if perSession(b) {
		if err := needsSession(b, s); err != nil {
			return nil, err
		}
		if modern {
			if own := b.Modern(ctx, s.Unit()); own != nil {
				return own, nil
			}
		}
		return b.Unit(ctx, s.Unit())
	}
	conn, err := b.Conn()
	if left := g.patience(); err != nil && left > 0 {
		patient, cancel := context.WithTimeout(ctx, left)
		defer cancel()
		conn, err = b.Await(patient)
	}
	if err == nil && modern {
		if own := b.Modern(ctx, ""); own != nil {
			return own, nil
		}
	}
	return conn, err
}

// patience is what is left of startup_wait since servers were started.
func (g *Gateway) patience() time.Duration {
	return g.o.Config.Gateway.StartupWait - time.Since(time.Unix(0, g.since.Load()))
}

// perSession reports whether a server gives each session a connection of its
// own.
func perSession(b *backend) bool { return b.Config().Isolation == config.PerSession }

// needsSession is the error for requests that come without a session, nil for
// others. Nothing that they bring tells one client from another: neither the
// connection nor the address, which a proxy shares out, nor the token, of which
// there is one. So there is no connection that would be one client's own.
func needsSession(b *backend, s *downstream.Session) error {
	if !s.Stateless() {
		return nil
	}
	e := jsonrpc.Errorf(jsonrpc.CodeInternal, "Server '%s' has a process for each session (isolation: session), and requests without a session have none; "+
		"connect over stdio, or over HTTP with initialize (up to revision %s), or set isolation: shared", b.Name(), latestLegacy)
	e.Data = rawjson.Object("code", "SESSION_REQUIRED", "server", b.Name())
	return e
}
