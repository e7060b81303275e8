// Package servers starts, restarts, replaces and stops the configured servers.
//
// It learns about calls in flight and subscriptions only through its [Hooks]. All methods
// are safe for concurrent use. Conn and AwaitLists block up to startup_wait and the
// server's timeout, AwaitAttempts up to handshake_wait. Login, Logout, RefreshSkills,
// VerifiedConn and other methods named Await block too. The rest don't wait for servers.
package servers

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"goblin/gateway/childproc"
	"goblin/gateway/config"
	"goblin/gateway/downstream"
	"goblin/gateway/extensions"
	"goblin/gateway/jsonrpc"
	"goblin/gateway/memlimit"
	"goblin/gateway/state"
	"goblin/gateway/telemetry"
	"goblin/gateway/upstream"
	"goblin/registry"
	"goblin/registry/rawjson"
	"goblin/registry/termtext"
)

// Options configures a Manager.
type Options struct {
	Config    *config.Config
	Registry  *registry.Registry
	Metrics   *telemetry.Metrics
	Logger    *slog.Logger
	Version   string
	Mask      *config.Mask        // hides secrets; may be nil
	Children  *childproc.Registry // records child processes; may be nil
	Pins      *state.PinStore     // approved tools; nil approves all
	Catalog   *state.ListCache    // cached lists; may be nil
	WriteOnly bool                // Catalog is not read, and only [Manager.SaveLists] writes it
	Memory    *memlimit.Pool      // limits memory used for servers; may be nil
	Logins    string              // folder of OAuth logins; "" disables them
	Resolve   config.Resolver     // resolves references; may be nil
	Only      []string            // servers to start; nil starts all enabled ones
	// AwaitStart blocks until a server that is rebuilt may start, or ctx is done; may be nil.
	AwaitStart func(ctx context.Context, server string)
}

// Hooks connects a Manager to the gateway. All are required, unless Run is never called.
type Hooks struct {
	Handler upstream.Handler // handles requests and notifications from servers
	// OnListChanged is called after a server changed a list and the list was fetched
	// again. It must not block.
	OnListChanged func(server string, kind registry.Kind)
	// OnConnectionChanged is called when sessions may now use another connection to a
	// server. unitOf returns the unit of a session's connection, or "" if it is shared.
	OnConnectionChanged func(server string, unitOf func(*downstream.Session) string)
	// NoProject returns the reason why a session has no project.
	NoProject func(*downstream.Session) string
	// Busy reports whether a server has requests in flight.
	Busy func(*upstream.Server) bool
	// Subscribers returns the number of subscribers to a server's resources.
	Subscribers func(server string) int
}

// Manager manages the servers of a config.
type Manager struct {
	o       Options
	hooks   Hooks
	log     *slog.Logger
	created time.Time
	since   atomic.Int64 // last start of servers, in Unix ns
	edits   atomic.Uint64
	// handshakes returns the deadline of handshake_wait; the first call starts it.
	handshakes func() time.Time
	work       sync.WaitGroup
	// saving waits until lists are on disk.
	saving sync.WaitGroup

	projects     projectSessions
	projectLimit upstream.Projects

	servers atomic.Pointer[serverTable] // immutable; replaced under mu

	mu  sync.Mutex
	run context.Context // nil before Run
}

// serverTable holds the servers of one version of the config. It is immutable.
type serverTable struct {
	named map[string]*Server
	all   []*Server // in config order
}

func (t *serverTable) add(s *Server) {
	t.named[s.Name()] = s
	t.all = append(t.all, s)
}

// Server is a server and the goroutine that runs it.
type Server struct {
	*upstream.Server
	sink         *sink
	defined      config.Server
	stop         context.CancelFunc
	done         chan struct{}
	usage        usage
	retryingPins atomic.Bool // relisting is scheduled because pins could not be saved
}

// New creates the servers. [Manager.Run] starts them.
func New(o Options, hooks Hooks) *Manager {
	f := &Manager{o: o, hooks: hooks, log: o.Logger}
	f.projectLimit.Limit = o.Config.Gateway.Limits.Projects
	f.handshakes = sync.OnceValue(func() time.Time { return time.Now().Add(o.Config.Gateway.HandshakeWait) })
	first := &serverTable{named: make(map[string]*Server)}
	f.created = time.Now()
	f.since.Store(f.created.UnixNano())
	for _, s := range o.Config.Servers {
		if o.Only == nil || slices.Contains(o.Only, s.Name) {
			first.add(f.newServer(s, false))
		}
	}
	f.servers.Store(first)
	return f
}

// Run starts the servers and calls serve, which must return when ctx is done. Run returns
// when all connections are closed and all child processes have exited.
func (f *Manager) Run(ctx context.Context, serve func()) {
	keeping, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer f.saving.Wait()
	defer stop()
	if f.o.Catalog != nil && !f.o.WriteOnly {
		f.saving.Go(func() { f.o.Catalog.Run(keeping) })
	}
	f.work.Go(func() { f.watchIdle(ctx) })
	f.mu.Lock()
	f.run = ctx
	for _, s := range f.All() {
		f.startLocked(s)
	}
	f.mu.Unlock()

	serve()

	f.mu.Lock()
	f.run = nil
	f.mu.Unlock()
	for _, s := range f.All() {
		if s.done != nil {
			<-s.done
		}
	}
	f.work.Wait()
}

// newServer creates a server from its definition. replaces is set if the registry has
// entries of an older server with that name.
func (f *Manager) newServer(defined config.Server, replaces bool) *Server {
	s := defined
	if s.Type == config.Stdio && s.Cwd == "" && !f.o.Config.Demo {
		// Clients of many folders share a daemon: the first one's folder must not decide
		// where a server runs.
		s.Cwd = filepath.Dir(f.o.Config.Path)
	}
	out := &sink{Registry: f.o.Registry, manager: f, authorizer: f.authorizer(&s)}
	known := f.loadCache(out, &defined)
	out.hasCache.Store(known != nil)
	if known != nil {
		out.loaded = make(chan struct{})
	}
	start, _ := f.idlePolicy(&s)
	asleep := known != nil && start != config.EagerStart
	if asleep {
		known.State = registry.StateSleeping
	}
	b := &Server{sink: out, defined: defined, Server: upstream.NewServer(s, upstream.Options{
		Handler: f.hooks.Handler, Registry: out, Logger: f.log, Version: f.o.Version, Capabilities: extensions.ForClients(!omitsRoots(&s)),
		Limits:      f.o.Config.Gateway.Limits,
		Redact:      f.o.Mask.String,
		ListChanged: f.o.Config.Gateway.ListChanged,
		Hooks:       f.observe(out),
		Children:    f.o.Children,
		Memory:      f.o.Memory,
		EnvNames:    f.o.Config.EnvNames,
		Projects:    &f.projectLimit, Folders: f.folders,
		Resolve:     f.resolve,
		Authorizer:  out.authorizer,
		Replaces:    replaces,
		CachedLists: known, KeepEntries: f.o.Catalog != nil && !f.o.WriteOnly,
		StartAsleep: asleep, Digests: f.digests(s.Name), VerifyLists: f.VerifiesLists(), AwaitStart: f.awaitStart(&s),
	})}
	out.denied = b.Server.DeniedNames
	f.o.Metrics.SetConnected(s.Name, false)
	f.o.Registry.SetUnlistedAllowed(s.Name, s.OpenResources)
	if known != nil {
		out.SetState(s.Name, *known)
	}
	if b.perProject() && !s.Disabled && s.Problem == "" {
		b.ShowWait() // its state is visible at once
	}
	return b
}

// awaitStart returns nil for servers that need not wait.
func (f *Manager) awaitStart(s *config.Server) func(context.Context) {
	if f.o.AwaitStart == nil || !s.Rebuilt() {
		return nil
	}
	return func(ctx context.Context) { f.o.AwaitStart(ctx, s.Name) }
}

func (f *Manager) resolve(ctx context.Context, s *config.Server) (*config.Server, error) {
	now, err := s.Resolve(ctx, f.o.Resolve)
	f.o.Mask.AddServerSecrets(now)
	if err != nil {
		return nil, fmt.Errorf("not started: %w; then run: %s", err, termtext.Goblin("restart", s.Name))
	}
	return now.Server, nil
}

func (f *Manager) startLocked(s *Server) {
	if s.sink.hasCache.Load() {
		f.work.Go(func() { f.listCached(s) })
	}
	s.start(f.run)
}

func (s *Server) start(ctx context.Context) {
	ctx, s.stop = context.WithCancel(ctx)
	s.done = make(chan struct{})
	go func() {
		defer close(s.done)
		if s.sink.authorizer != nil {
			s.updateLogin()
			var following sync.WaitGroup
			following.Go(func() { s.watchLogin(ctx) })
			defer following.Wait()
		}
		s.Run(ctx)
	}()
}

// Restart closes a server's connections and opens them again at once. It returns an error
// for unknown and disabled servers.
func (f *Manager) Restart(name string) error {
	b := f.Get(name)
	if b == nil {
		return &UnknownError{Name: name, Known: f.Names()}
	}
	return b.Restart()
}

// SetEnabled enables or disables a server until the Manager stops. It doesn't block. A
// server that is enabled again keeps its subscriptions. It returns an error for unknown
// servers and for servers that cannot run.
func (f *Manager) SetEnabled(name string, on bool) error {
	b := f.Get(name)
	if b == nil {
		return &UnknownError{Name: name, Known: f.Names()}
	}
	if problem := b.Config().Problem; on && problem != "" {
		return fmt.Errorf("server %q cannot be enabled: %s", name, problem)
	}
	b.Server.SetEnabled(on)
	return nil
}

// UnknownError is the error for a server name that is not in the config.
type UnknownError struct {
	Name  string
	Known []string
}

func (e *UnknownError) Error() string {
	listed := "none"
	if len(e.Known) > 0 {
		listed = strings.Join(e.Known, ", ")
	}
	return fmt.Sprintf("Server '%s' not found; the config has %s", e.Name, listed)
}

// Wake starts an idle server without waiting for it.
func (f *Manager) Wake(name string) error {
	b := f.Get(name)
	if b == nil {
		return &UnknownError{Name: name, Known: f.Names()}
	}
	b.Wake()
	return nil
}

// Names returns the names of the servers in config order.
func (f *Manager) Names() []string {
	var names []string
	for _, s := range f.All() {
		names = append(names, s.Name())
	}
	return names
}

// Get returns a server by name, or nil.
func (f *Manager) Get(name string) *Server { return f.servers.Load().named[name] }

// All returns the servers in config order. Callers must not modify the slice.
func (f *Manager) All() []*Server { return f.servers.Load().all }

// Starting returns the names of servers that neither listed nor failed yet, so lists may
// grow.
func (f *Manager) Starting() []string {
	var names []string
	for _, b := range f.All() {
		select {
		case <-b.FirstList():
		default:
			if !f.waitsForProject(b) {
				names = append(names, b.Name())
			}
		}
	}
	return names
}

// AwaitLists waits until no server is [Manager.Starting], ctx is done, or startup_wait
// after the start has passed.
func (f *Manager) AwaitLists(ctx context.Context) { f.AwaitVisibleLists(ctx, f.o.Registry.Load()) }

// AwaitVisibleLists is AwaitLists for the servers in a catalog only.
func (f *Manager) AwaitVisibleLists(ctx context.Context, seen *registry.Snapshot) {
	left := f.startupWaitLeft()
	if left <= 0 {
		return
	}
	timer := time.After(left)
	for _, b := range f.All() {
		if f.waitsForProject(b) || !seen.HasServer(b.Name()) {
			continue // AwaitProject waits for project servers
		}
		select {
		case <-b.FirstList():
		case <-timer:
			return
		case <-ctx.Done():
			return
		}
	}
}

// AwaitAttempts waits for the first connection attempts of servers in a catalog without
// cached lists. It returns when ctx is done or stop is closed. The limit is
// handshake_wait after the first such wait of the Manager.
func (f *Manager) AwaitAttempts(ctx context.Context, stop <-chan struct{}, seen *registry.Snapshot) {
	var end <-chan time.Time
	for _, b := range f.All() {
		if b.perProject() || b.sink.hasCache.Load() || !seen.HasServer(b.Name()) {
			continue
		}
		select {
		case <-b.Attempted():
			continue
		default:
		}
		if end == nil {
			left := time.Until(f.handshakes())
			if left <= 0 {
				return
			}
			end = time.After(left)
		}
		select {
		case <-b.Attempted():
		case <-end:
			return
		case <-stop:
			return
		case <-ctx.Done():
			return
		}
	}
}

// Epoch counts the starts and ends of config edits, so it is odd during an edit. If it is
// even and unchanged between two calls, no server was replaced meanwhile.
func (f *Manager) Epoch() uint64 { return f.edits.Load() }

// Conn returns the connection for a session's requests to a server. If modern is set, it
// prefers the server's connection of the stateless era. During the server's first
// attempt, Conn waits as long as a list would.
func (f *Manager) Conn(ctx context.Context, b *Server, s *downstream.Session, modern bool) (upstream.Conn, error) {
	conn, err := b.Server.Conn()
	known := b.sink.hasCache.Load() || b.Listed()
	if err != nil && ctx.Err() == nil {
		b.Wake()
	}
	if err != nil && known {
		defer downstream.NotifyWaiting(ctx, fmt.Sprintf("Server %q is starting", b.Name()))()
	}
	if b.perSession() {
		return f.sessionConn(ctx, b, s, modern)
	}
	if b.perProject() {
		return f.projectConn(ctx, b, s, modern)
	}
	if err != nil && known {
		conn, err = b.awaitStart(ctx)
	} else if left := f.startupWaitLeft(); err != nil && left > 0 {
		patient, cancel := context.WithTimeout(ctx, left)
		defer cancel()
		conn, err = b.Await(patient)
	} else if err != nil && b.IsReconnecting() {
		conn, err = b.Await(ctx)
	}
	if err == nil && modern {
		if own := b.Modern(ctx, ""); own != nil {
			return own, nil
		}
	}
	return conn, err
}

func (f *Manager) sessionConn(ctx context.Context, b *Server, s *downstream.Session, modern bool) (upstream.Conn, error) {
	if err := needsSession(b, s); err != nil {
		return nil, err
	}
	if modern {
		if own := b.Modern(ctx, s.Unit()); own != nil {
			return own, nil
		}
	}
	return b.UnitWith(ctx, s.Unit(), extensions.ExtraCapabilities(s.Client().Capabilities))
}

func (f *Manager) startupWaitLeft() time.Duration {
	return f.o.Config.Gateway.StartupWait - time.Since(time.Unix(0, f.since.Load()))
}

// Shared reports whether all sessions share one connection to a server.
func (s *Server) Shared() bool { return !s.perSession() && !s.perProject() }

// IsolationUnit returns a session's isolation unit at a server, or "" if all share one
// connection.
func (s *Server) IsolationUnit(of *downstream.Session) string {
	switch {
	case s.perSession():
		return of.Unit()
	case s.perProject():
		return of.Project()
	}
	return ""
}

// perSession reports whether a server has one connection per session.
func (s *Server) perSession() bool { return s.defined.Isolation == config.PerSession }

// OmitRoots reports whether a server gets no roots.
func (f *Manager) OmitRoots(server string) bool {
	b := f.Get(server)
	return b != nil && omitsRoots(&b.defined)
}

func omitsRoots(s *config.Server) bool { return s.RootsSource() == config.NoRoots }

// ClientCapabilities returns the capabilities of a client that are declared to a server.
func (f *Manager) ClientCapabilities(server string, capabilities []byte) []byte {
	if f.OmitRoots(server) {
		return rawjson.RemoveMember(capabilities, "roots")
	}
	return capabilities
}

// PermitsTarget reports whether the config permits a target and, if required, the user
// approved it.
func (s *Server) PermitsTarget(t registry.Target) bool {
	kind := registry.Resource // also expansions and links
	if t.Entry != nil {
		kind = t.Entry.Kind
	}
	if p := s.sink.Registry.UnapprovedTool(s.Name(), t.Name); kind == registry.Tool && p != nil && p.Hidden {
		return false
	}
	return s.Permits(kind, t.Name)
}

// needsSession returns an error for requests without a session. They share connections,
// proxy addresses and the token, so nothing identifies their client.
func needsSession(b *Server, s *downstream.Session) error {
	if !s.Stateless() {
		return nil
	}
	e := jsonrpc.Errorf(jsonrpc.CodeInternal, "Server '%s' runs one process per session (isolation: session), and this request has no session; "+
		"connect over stdio, or over HTTP with initialize (up to revision %s), or set isolation: shared", b.Name(), downstream.LatestLegacy)
	e.Data = rawjson.Object("code", "SESSION_REQUIRED", "server", b.Name())
	return e
}
