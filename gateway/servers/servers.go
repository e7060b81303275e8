// Package servers starts, restarts, replaces and stops the configured servers.
//
// It knows nothing of what is under way at a server, or watched there, but what its
// [Hooks] answer. All methods may be called from any goroutine; Conn and
// AwaitLists block for as long as startup_wait and the server's timeout say,
// AwaitAttempts for as long as handshake_wait does. None of the others waits for a
// server.
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

// Options configure a Manager. Mask may be nil.
type Options struct {
	Config    *config.Config
	Registry  *registry.Registry
	Metrics   *telemetry.Metrics
	Logger    *slog.Logger
	Version   string
	Mask      *config.Mask        // hides secrets in errors, logs and journals; nil hides nothing
	Children  *childproc.Registry // records child processes; nil records none
	Pins      *state.PinStore     // remembers the tools that the user approved; nil lets all through
	Catalog   *state.ListCache    // remembers lists of servers; nil remembers none
	WriteOnly bool                // Catalog is not read, and written by [Manager.SaveLists] alone
	Memory    *memlimit.Pool      // bounds what servers make the process hold; nil bounds nothing
	Logins    string              // the folder of logins at remote servers; "" knows none
	Resolve   config.Resolver     // gives the values of references; nil has none
	Only      []string            // the servers to start; nil starts all that are enabled
}

// Hooks connect a Manager to the gateway that uses it. None may be nil, except when Run
// is not called.
type Hooks struct {
	Handler upstream.Handler // gets what servers send by themselves
	// OnListChanged is called when a server said that a list changed, and the list was
	// fetched again. It must not block.
	OnListChanged func(server string, kind registry.Kind)
	// OnConnectionChanged is called when sessions may be served over another connection to a server
	// than before: that of the unit which unitOf names, "" for the shared one.
	OnConnectionChanged func(server string, unitOf func(*downstream.Session) string)
	// NoProject says why a session is in no project.
	NoProject func(*downstream.Session) string
	// Busy reports whether anything is under way at a server.
	Busy func(*upstream.Server) bool
	// Subscribers is how many watch resources of a server.
	Subscribers func(server string) int
}

// Manager is the servers of a config.
type Manager struct {
	o       Options
	hooks   Hooks
	log     *slog.Logger
	created time.Time
	since   atomic.Int64  // when servers were started last, in Unix ns
	edits   atomic.Uint64 // see Epoch
	// handshakes returns when waits of handshakes end; the first call begins them.
	handshakes func() time.Time
	work       sync.WaitGroup
	// saving is over when what servers listed is on disk.
	saving sync.WaitGroup

	projects     projectSessions
	projectLimit upstream.Projects // of processes for projects

	servers atomic.Pointer[serverTable] // replaced under mu, never changed

	mu  sync.Mutex
	run context.Context // set while Run runs
}

// serverTable holds the servers of one state of the config. It is immutable.
type serverTable struct {
	named map[string]*Server
	all   []*Server // in config order
}

func (t *serverTable) add(s *Server) {
	t.named[s.Name()] = s
	t.all = append(t.all, s)
}

// Server is a server with the goroutine that runs it.
type Server struct {
	*upstream.Server
	sink         *sink
	defined      config.Server // in the config
	stop         context.CancelFunc
	done         chan struct{}
	usage        usage
	retryingPins atomic.Bool // its tools are to be listed again, since they could not be pinned
}

// New prepares the servers, which start with [Manager.Run].
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

// Run starts the servers and calls serve, which returns when ctx ends. Run returns
// when every connection is closed and every child process gone.
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

// newServer creates the server of a definition. replaces is set if the registry has entries of an older
// server with that name.
func (f *Manager) newServer(defined config.Server, replaces bool) *Server {
	s := defined
	if s.Type == config.Stdio && s.Cwd == "" && !f.o.Config.Demo {
		// A daemon is shared by clients of many folders: which of them came
		// first must not decide where a server runs.
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
		StartAsleep: asleep, Digests: f.digests(s.Name),
	})}
	out.denied = b.Server.DeniedNames
	f.o.Metrics.SetConnected(s.Name, false)
	f.o.Registry.SetUnlistedAllowed(s.Name, s.OpenResources)
	if known != nil {
		out.SetState(s.Name, *known)
	}
	if b.PerProject() && !s.Disabled && s.Problem == "" {
		b.ShowWait() // nobody waits for its lists, and some look at its state at once
	}
	return b
}

// resolve is a definition with the values of its references, which are hidden from then on.
func (f *Manager) resolve(ctx context.Context, s *config.Server) (*config.Server, error) {
	now, err := s.Resolve(ctx, f.o.Resolve)
	f.o.Mask.AddServerSecrets(now)
	if err != nil {
		return nil, fmt.Errorf("is not started: %w; then run: %s", err, termtext.Goblin("restart", s.Name))
	}
	return now.Server, nil
}

// startLocked begins to run a server.
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

// Restart closes a server's connections and opens them anew at once. It
// fails when there is no such server, or when it is not to run at all.
func (f *Manager) Restart(name string) error {
	b := f.Get(name)
	if b == nil {
		return &UnknownError{Name: name, Known: f.Names()}
	}
	return b.Restart()
}

// SetEnabled turns a server on or off for as long as the Manager runs; it
// does not wait. One that is off is as if the config disabled it, but that its
// subscriptions come back with it. It fails when there is no such server, or
// when the one to turn on cannot run.
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

// UnknownError is a server name that the config does not have.
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

// Wake starts a server if it sleeps. It does not wait.
func (f *Manager) Wake(name string) error {
	b := f.Get(name)
	if b == nil {
		return &UnknownError{Name: name, Known: f.Names()}
	}
	b.Wake()
	return nil
}

// Names are the servers in config order.
func (f *Manager) Names() []string {
	var names []string
	for _, s := range f.All() {
		names = append(names, s.Name())
	}
	return names
}

// Get is the server of that name, nil for none.
func (f *Manager) Get(name string) *Server { return f.servers.Load().named[name] }

// All are the servers in config order, which are not to be changed.
func (f *Manager) All() []*Server { return f.servers.Load().all }

// Starting names the servers that have neither listed nor failed to, so that
// lists may still grow.
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

// AwaitLists waits until no server is [Manager.Starting], ctx ends or
// startup_wait after the gateway's start is over, whichever is first.
func (f *Manager) AwaitLists(ctx context.Context) { f.AwaitVisibleLists(ctx, f.o.Registry.Load()) }

// AwaitVisibleLists is AwaitLists for the servers of a catalog alone: nobody waits for what he
// does not see.
func (f *Manager) AwaitVisibleLists(ctx context.Context, seen *registry.Snapshot) {
	left := f.startupWaitLeft()
	if left <= 0 {
		return
	}
	timer := time.After(left)
	for _, b := range f.All() {
		if f.waitsForProject(b) || !seen.HasServer(b.Name()) {
			continue // of the former see AwaitProject
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

// AwaitAttempts waits for servers in a catalog that connect for the first time and have no
// cached lists. It returns when ctx ends or stop is closed, at the latest handshake_wait
// after the first such wait of the fleet began.
func (f *Manager) AwaitAttempts(ctx context.Context, stop <-chan struct{}, seen *registry.Snapshot) {
	var end <-chan time.Time
	for _, b := range f.All() {
		if b.PerProject() || b.sink.hasCache.Load() || !seen.HasServer(b.Name()) {
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

// Epoch counts the beginnings and the ends of edits of the config: it is odd while one is
// under way. A server got between two equal and even ones is that of what was listed
// meanwhile.
func (f *Manager) Epoch() uint64 { return f.edits.Load() }

// Conn is the connection that serves a session's requests to a server, stateless
// ones if modern is set: of their own era where the server offers both. While
// the server makes its first attempt, Conn waits as long as a list would.
func (f *Manager) Conn(ctx context.Context, b *Server, s *downstream.Session, modern bool) (upstream.Conn, error) {
	conn, err := b.Server.Conn()
	known := b.sink.hasCache.Load() || b.Listed()
	if err != nil && ctx.Err() == nil {
		b.Wake()
	}
	if err != nil && known {
		defer downstream.NotifyWaiting(ctx, fmt.Sprintf("Server %q is starting", b.Name()))()
	}
	if b.PerSession() {
		return f.sessionConn(ctx, b, s, modern)
	}
	if b.PerProject() {
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

// sessionConn is Conn of a server with a connection for each session.
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

// startupWaitLeft returns the rest of startup_wait since servers were started.
func (f *Manager) startupWaitLeft() time.Duration {
	return f.o.Config.Gateway.StartupWait - time.Since(time.Unix(0, f.since.Load()))
}

// Shared reports whether all sessions share the connection to a server.
func (s *Server) Shared() bool { return !s.PerSession() && !s.PerProject() }

// IsolationUnit is the isolation unit that a session belongs to at a server, "" where all
// share one connection.
func (s *Server) IsolationUnit(of *downstream.Session) string {
	switch {
	case s.PerSession():
		return of.Unit()
	case s.PerProject():
		return of.Project()
	}
	return ""
}

// PerSession reports whether a server gives each session a connection of its
// own.
func (s *Server) PerSession() bool { return s.defined.Isolation == config.PerSession }

// OmitRoots reports whether a server is to get no roots.
func (f *Manager) OmitRoots(server string) bool {
	b := f.Get(server)
	return b != nil && omitsRoots(&b.defined)
}

func omitsRoots(s *config.Server) bool { return s.RootsSource() == config.NoRoots }

// ClientCapabilities is a client's capabilities as a server is told of them.
func (f *Manager) ClientCapabilities(server string, capabilities []byte) []byte {
	if f.OmitRoots(server) {
		return rawjson.RemoveMember(capabilities, "roots")
	}
	return capabilities
}

// PermitsTarget reports whether the config allows a target now, and the user, if it is a
// tool that has to be approved.
func (s *Server) PermitsTarget(t registry.Target) bool {
	kind := registry.Resource // expansions and links, too
	if t.Entry != nil {
		kind = t.Entry.Kind
	}
	if p := s.sink.Registry.UnapprovedTool(s.Name(), t.Name); kind == registry.Tool && p != nil && p.Hidden {
		return false
	}
	return s.Permits(kind, t.Name)
}

// needsSession is the error for requests that come without a session, nil for
// others. Nothing that they bring tells one client from another: neither the
// connection nor the address, which a proxy shares out, nor the token, of which
// there is one. So there is no connection that would be one client's own.
func needsSession(b *Server, s *downstream.Session) error {
	if !s.Stateless() {
		return nil
	}
	e := jsonrpc.Errorf(jsonrpc.CodeInternal, "Server '%s' has a process for each session (isolation: session), and requests without a session have none; "+
		"connect over stdio, or over HTTP with initialize (up to revision %s), or set isolation: shared", b.Name(), downstream.LatestLegacy)
	e.Data = rawjson.Object("code", "SESSION_REQUIRED", "server", b.Name())
	return e
}
