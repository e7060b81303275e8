// Package stack assembles one running gateway: registry, servers, socket, HTTP and
// reload.
//
// It owns the lifetimes of its parts. It must not know flags or terminals; UIs act
// through a [Client].
//
// [New] acquires exclusive resources: lock, socket and address. [Stack.Run] starts
// everything and returns after everything has stopped, including child processes. In
// between, all other methods are safe for concurrent use.
package stack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"goblin/gateway"
	"goblin/gateway/callstore"
	"goblin/gateway/childproc"
	"goblin/gateway/config"
	"goblin/gateway/daemon"
	"goblin/gateway/devloop"
	"goblin/gateway/downstream"
	"goblin/gateway/filewatch"
	"goblin/gateway/logs"
	"goblin/gateway/memlimit"
	"goblin/gateway/secrets"
	"goblin/gateway/servers"
	"goblin/gateway/state"
	"goblin/gateway/telemetry"
	"goblin/gateway/tracing"
	"goblin/gateway/view"
	"goblin/registry"
	"goblin/registry/rule"
)

// Options configures a Stack.
type Options struct {
	Config  *config.Config
	Version string
	Getenv  func(name string) string // nil: os.Getenv
	Logger  *slog.Logger
	Log     string   // for [daemon.Status], or ""
	Only    []string // nil: all enabled servers
	// Mask hides secrets, also in the log; nil: the config's.
	Mask     *config.Mask
	Endpoint *daemon.Endpoint // nil: no socket
	// FindEndpoint returns the endpoint of an edited config; nil: it never changes.
	FindEndpoint func() (daemon.Endpoint, error)
	HTTP         bool // serve HTTP if an address is set
	// Listen replaces gateway.listen if set. ListenSource names its origin in errors, or
	// is "".
	Listen, ListenSource string
	// Profile applies to HTTP clients whose URL has none; "": the config decides.
	Profile string
	// HTTPRequired makes New fail if the address is taken, and Run return if HTTP fails.
	// Otherwise, these are logged.
	HTTPRequired bool
	// Pins is the file of approved tools; "": none.
	Pins string
	// NoPinsReason explains an empty Pins although the config needs the file. With strict
	// pinning New returns it, otherwise it is logged.
	NoPinsReason error
	// CallApprovals is the file of approved calls that rules stop; "": not saved.
	CallApprovals string
	// Toggles is the file of disabled entries; "": not saved.
	Toggles string
	// Usage is the file of usage counters; "": not saved.
	Usage string
	// Recordings is the default folder of recordings. If it is "", only the user starts a
	// recording, in the config's folder.
	Recordings string
	// Record is the folder of a recording that starts with the stack, whatever the config
	// says; "": none.
	Record string
	// Saved is the folder of saved calls; "": none.
	Saved string
	// Logins is the folder of logins; "": none.
	Logins string
	// Rules come before those of the config.
	Rules []*rule.Rule
	// Resolve resolves the config's references; nil: none.
	Resolve config.Resolver
	// Secrets stores secrets that the UI sets; nil: none.
	Secrets *secrets.Store
	// Catalog is the folder of cached lists; "": none.
	Catalog string
	// CacheListsOnExit uses Catalog only in [Stack.SaveLists].
	CacheListsOnExit bool
	// Runtime is the folder that records child processes, so that the next start stops
	// leftovers; "": none.
	Runtime string
	// HandOverChildren lets children outlive this process, for [Stack.HandOver].
	HandOverChildren bool
	// Folder is the working folder of a command, whose project the servers use from the
	// start; "": none.
	Folder string
	// Terminal returns the terminal that started the process, or "", and whether it was
	// closed. It may be nil.
	Terminal func() (name string, gone bool)
	// Screen serves UIs on the socket; nil: refused.
	Screen func(ctx context.Context, c net.Conn, r io.Reader)
	// Linger is the lifetime without sessions and UIs; 0: unlimited.
	Linger time.Duration
	// Extend adds features such as Goblin's own tools. New calls it once. It may be nil.
	Extend ExtendFunc
}

// Stack is one running gateway.
type Stack struct {
	o             Options
	limiter       *logs.Limiter // of o.Logger
	registry      *registry.Registry
	gateway       *gateway.Gateway
	metrics       *telemetry.Metrics
	memory        *memlimit.Pool
	parkedCalls   *downstream.ParkedCalls
	children      *childproc.Registry // nil without Runtime
	listener      *daemon.Listener    // nil without Endpoint
	http          *downstream.HTTP    // nil without an address
	address       net.Listener        // of http
	started       time.Time
	extension     Extension
	toggles       *state.ToggleStore
	meter         *telemetry.Meter
	traces        traces
	recordings    recordings
	builds        *devloop.Manager
	saved         savedCalls
	pinStore      *state.PinStore        // nil if tools are not pinned
	pinsError     error                  // why tools are not pinned, or nil
	httpError     error                  // why HTTP is missing
	callsError    atomic.Pointer[error]  // from approved calls
	togglesError  atomic.Pointer[error]  // from disabled entries
	pinsReadError atomic.Pointer[error]  // from pinned tools
	skipped       atomic.Pointer[string] // invalid entries logged last
	editWarning   atomic.Pointer[string] // about an edit of the config
	notifyMu      sync.Mutex
	stop          context.CancelFunc
	stopped       context.Context // ends when Run must return

	serving sync.WaitGroup // see addSession
	sockets atomic.Int64   // sessions on the socket
	screens sync.Map       // *downstream.Session: func() daemon.Screen

	mu      sync.Mutex
	closing bool // addSession must fail

	reloadMu      sync.Mutex
	servedConfig  *config.Config // config in use; guarded by reloadMu
	configInvalid bool           // guarded by reloadMu
	envFiles      chan string    // the current env_file; sent to under reloadMu

	touchInterval time.Duration // shorter in tests
}

// New prepares a Stack. It returns *[daemon.RunningError] if another process serves this
// config.
func New(o Options) (*Stack, error) {
	if o.Mask == nil {
		o.Mask = config.NewMask(o.Config)
	}
	mask, options := o.Mask, gateway.RegistryOptions(o.Config)
	options.Redact = mask.String
	reg := registry.New(options)
	reg.SetStyleColors(o.Config.TUI.Colors)
	lines := logs.NewLimiter(&journal{next: o.Logger.Handler(), logs: reg.Logs(), redact: mask.String}, mask.String)
	o.Logger = slog.New(lines)
	i := &Stack{
		o: o, limiter: lines, started: time.Now(), metrics: telemetry.NewMetrics(), registry: reg, servedConfig: o.Config,
		memory:        memlimit.New(memlimit.Limit(o.Config.Gateway.Limits.Frame)),
		touchInterval: touchInterval, envFiles: make(chan string, 1),
	}
	i.saved = savedCalls{Store: callstore.Store{Folder: o.Saved}, wanted: make(chan struct{}, 1)}
	i.parkedCalls = downstream.NewParkedCalls(0, i.memory)
	i.stopped, i.stop = context.WithCancel(context.Background())
	if err := i.registry.AddResource(registry.ServersResource(i.registry)); err != nil {
		return nil, fmt.Errorf("list Goblin's own resources: %w", err)
	}
	if o.Runtime != "" {
		if i.children = childproc.New(o.Runtime, o.Logger); i.children != nil {
			i.children.OutliveExit = o.HandOverChildren
		}
	}
	i.builds = i.newBuilds()
	var err error
	if i.pinStore, err = i.pins(); err != nil {
		return nil, err
	}
	i.applyBuilds(o.Config)
	i.toggles, err = state.OpenToggles(o.Toggles)
	i.reportToggles(err)
	i.notify()
	i.meter = telemetry.OpenMeter(telemetry.MeterOptions{Path: o.Usage, Logger: i.o.Logger, Listed: i.listedTools})
	i.metrics.SetUsage(i.meter.ForEach)
	i.traces.tracer = tracing.New(tracing.Options{Version: o.Version, Mask: mask, Logger: i.o.Logger})
	approvals, err := state.OpenCallApprovals(o.CallApprovals)
	i.report(&i.callsError, err, "approvals")
	i.gateway = gateway.New(gateway.Options{CallApprovals: approvals, Meter: i.meter, Tracer: i.traces.tracer, Options: servers.Options{
		Config: o.Config, Registry: i.registry, Metrics: i.metrics,
		Logger: i.o.Logger, Version: o.Version, Only: o.Only,
		Mask: mask, Pins: i.pinStore, Logins: o.Logins, Resolve: o.Resolve, Children: i.children, Memory: i.memory, Catalog: CachedLists(o.Catalog, o.Config, i.o.Logger), WriteOnly: o.CacheListsOnExit,
		AwaitStart: i.builds.AwaitBuild,
	}})
	i.gateway.Rules.Set(registry.RuleFromFlag, o.Rules)
	i.applyRules(o.Config)
	i.gateway.SetDisabled(i.toggles.Disabled(), i.toggles.Hidden()...)
	if folder := downstream.ProjectOf(o.Folder); folder != "" {
		i.gateway.Servers.PinProject(folder)
	}
	if o.Extend != nil {
		if i.extension, err = o.Extend(i); err != nil {
			return nil, fmt.Errorf("extend the gateway: %w", err)
		}
	}
	if o.Endpoint != nil {
		l, err := daemon.Listen(*o.Endpoint)
		if err != nil {
			return nil, err
		}
		i.listener = l
		if o.Linger > 0 {
			l.SetLinger(o.Linger, func() bool { return i.http != nil && i.http.Sessions() > 0 })
		}
	}
	err = i.listenHTTP()
	if err == nil {
		if err = i.startRecordings(); err != nil && i.address != nil {
			err = errors.Join(err, i.address.Close())
		}
	}
	if err != nil {
		if i.listener != nil {
			err = errors.Join(err, i.listener.Close())
		}
		return nil, err
	}
	i.applyTraces(o.Config)
	return i, nil
}

// pins opens the store of approved tools if wanted. Without it, only strict pinning
// fails.
func (i *Stack) pins() (*state.PinStore, error) {
	wanted := i.o.Config.Gateway.Pin
	switch {
	case wanted == config.PinOff:
		i.pinsError = errors.New("nothing to approve: gateway.pin is off")
		return nil, nil
	case i.o.Pins == "" && i.o.NoPinsReason == nil || i.o.Config.Demo:
		i.pinsError = errors.New("nothing to approve: demo tools are not pinned")
		return nil, nil
	}
	var store *state.PinStore
	err := i.o.NoPinsReason
	if err == nil {
		store, err = state.OpenPins(i.o.Pins)
	}
	if store != nil && wanted == config.PinStrict {
		err = store.Writable() // strict pinning must save approvals
	}
	switch {
	case err == nil:
		i.reportPins(store)
		return store, nil
	case wanted == config.PinStrict:
		return nil, err
	}
	i.o.Logger.Error("changed tools are not detected", "err", err)
	until := ""
	if store != nil { // unreadable; unused until restart
		until = " until the file is repaired and Goblin restarted"
	}
	i.pinsError = fmt.Errorf("changed tools are not detected%s: %w", until, err)
	return nil, nil
}

// CachedLists returns a config's store of cached lists, or nil if disabled.
func CachedLists(folder string, cfg *config.Config, logger *slog.Logger) *state.ListCache {
	path, err := config.Canonical(cfg.Path)
	if folder == "" || cfg.Demo || cfg.Gateway.Remember == 0 || err != nil {
		return nil
	}
	return state.NewListCache(folder, path, cfg.Gateway.Remember, logger)
}

// SaveLists caches the lists for the next daemon. It needs CacheListsOnExit.
func (i *Stack) SaveLists() { i.gateway.Servers.SaveLists() }

// HandOver makes the process of cmd stop the remaining children. It must call
// [childproc.Reap] for Runtime.
func (i *Stack) HandOver(cmd *exec.Cmd) error { return i.children.HandOver(cmd) }

// notify shows the current warnings to users.
func (i *Stack) notify() {
	i.notifyMu.Lock()
	defer i.notifyMu.Unlock()
	var all []string
	if text := i.editWarning.Load(); text != nil {
		all = append(all, *text)
	}
	if i.pinsError != nil && (i.o.Pins != "" || i.o.NoPinsReason != nil) && !i.o.Config.Demo && i.o.Config.Gateway.Pin != config.PinOff {
		all = append(all, i.pinsError.Error())
	}
	if i.httpError != nil {
		all = append(all, i.httpError.Error())
	}
	if text := i.builds.Notice(); text != "" {
		all = append(all, text)
	}
	for _, damaged := range []*atomic.Pointer[error]{&i.togglesError, &i.pinsReadError, &i.callsError, &i.traces.err, &i.recordings.problem} {
		if err := damaged.Load(); err != nil {
			all = append(all, (*err).Error())
		}
	}
	i.registry.SetNotice(strings.Join(all, "; "))
}

// Run serves until ctx ends, Stop is called, or the daemon has lingered.
func (i *Stack) Run(outer context.Context) error {
	i.logStart()
	ctx, cancel := context.WithCancel(outer)
	defer cancel()
	defer context.AfterFunc(i.stopped, cancel)()

	// Close sessions first, to remove their subscriptions.
	servers, stopServers := context.WithCancel(context.WithoutCancel(ctx))
	defer stopServers()
	var work sync.WaitGroup
	work.Go(func() {
		defer i.children.Close()
		i.children.Sweep(servers) // leftovers may block the servers
		i.gateway.Run(servers)
	})
	work.Go(func() { i.meter.Run(servers) })
	work.Go(func() { i.builds.Run(servers) })
	if i.extension.Run != nil {
		work.Go(func() { i.extension.Run(servers) })
	}

	var edits sync.WaitGroup
	i.watchFiles(ctx, &edits)
	var fronts sync.WaitGroup
	errs := make(chan error, 2)
	if i.listener != nil {
		fronts.Go(func() {
			defer cancel()
			errs <- i.listener.Serve(ctx, daemon.Handlers{
				MCP: i.serveSocket, Screen: i.o.Screen, Control: daemon.NewHandlers(i), Logger: i.o.Logger,
			})
		})
	}
	if i.http != nil {
		fronts.Go(func() {
			if err := i.http.Serve(ctx, i.address); err != nil {
				i.o.Logger.Error("HTTP endpoint failed", "err", err)
				if i.o.HTTPRequired {
					errs <- fmt.Errorf("serve HTTP: %w", err)
					cancel()
				}
			}
		})
	}
	<-ctx.Done()
	why := i.endReason(outer)
	i.stop()
	edits.Wait()
	fronts.Wait()
	i.mu.Lock()
	i.closing = true
	i.mu.Unlock()
	i.serving.Wait()
	if r := i.recordings.current.Load(); r != nil {
		r.AddView() // stopping removes the servers' handshakes
	}
	stopServers()
	work.Wait()
	i.traces.tracer.Close()
	i.closeRecordings()
	if i.listener != nil {
		if err := i.listener.Close(); err != nil {
			i.o.Logger.Warn("lock not released", "err", err)
		}
	}
	close(errs)
	var all error
	for err := range errs {
		all = errors.Join(all, err)
	}
	_ = i.limiter.Close() // reports dropped lines
	i.logEnd(why, all)
	return all
}

// watchFiles watches the files that Goblin reads again when they change, until ctx ends.
func (i *Stack) watchFiles(ctx context.Context, edits *sync.WaitGroup) {
	if !i.o.Config.Demo && i.o.Only == nil {
		edits.Go(func() { filewatch.File(ctx, i.o.Config.Path, i.o.Config.File, i.Reload) })
		edits.Go(func() { filewatch.Latest(ctx, i.o.Config.EnvFile, i.envFiles, i.Reload) })
	}
	if i.pinsError == nil {
		edits.Go(func() { filewatch.File(ctx, i.o.Pins, nil, i.pinsChanged) })
	}
	if i.o.Toggles != "" {
		edits.Go(func() { filewatch.File(ctx, i.o.Toggles, nil, i.readToggles) })
	}
	if i.o.CallApprovals != "" {
		edits.Go(func() { filewatch.File(ctx, i.o.CallApprovals, nil, i.callApprovalsChanged) })
	}
	edits.Go(func() { i.saved.watch(ctx, i.registry.SavedCallsChanged) })
	edits.Go(func() { i.touchFiles(ctx) })
	edits.Go(func() { memlimit.FreeOSMemory(ctx, time.Second) })
}

// addSession makes Run wait until serving.Done. It returns false if Run no longer waits.
func (i *Stack) addSession() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.closing {
		i.serving.Add(1)
	}
	return !i.closing
}

func (i *Stack) sessionOptions() downstream.Options {
	l := i.o.Config.Gateway.Limits
	return downstream.Options{
		Handler:  i.gateway,
		Order:    gateway.OrderKey,
		OnMissed: i.gateway.Notifier.NotifyMissed,
		Logger:   i.o.Logger,
		Limits:   downstream.Limits{Frame: l.Frame, Unsent: l.Unsent, Sessions: l.Sessions, Depth: l.Depth},
		Memory:   i.memory,
		Parked:   i.parkedCalls, ServerInfo: gateway.ServerInfo(i.o.Version),
	}
}

// localOptions is for clients in this working directory.
func (i *Stack) localOptions() downstream.Options {
	o := i.sessionOptions()
	o.Location.Folder, _ = os.Getwd() // optional
	return o
}

// ServeStdio serves one client until its input ends. profile may be "".
func (i *Stack) ServeStdio(ctx context.Context, profile string, in io.Reader, out io.Writer) error {
	o := i.localOptions()
	o.Profile = profile
	return i.serve(ctx, o, "stdio", in, out)
}

// serve closes the closers at the end.
func (i *Stack) serve(ctx context.Context, o downstream.Options, transport string, in io.Reader, out io.Writer, closers ...io.Closer) error {
	i.serving.Add(1)
	defer i.serving.Done()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(i.stopped, cancel)()
	o.Closers = closers
	return downstream.ServeStream(ctx, o, transport, in, out)
}

// AllEntries stands for a profile with all entries.
const AllEntries = view.FullProfile

// Connect opens a client connection in this process, with a message per line. profile may
// be [AllEntries].
func (i *Stack) Connect(ctx context.Context, profile string) net.Conn {
	near, far := net.Pipe()
	i.serving.Add(1)
	go func() {
		defer i.serving.Done()
		o := i.localOptions()
		o.Profile = profile
		if err := i.serve(ctx, o, "stdio", far, far, far); err != nil {
			i.o.Logger.Debug("session closed", "err", err)
		}
	}()
	return near
}

// Stopping returns a context that ends when Run is about to return.
func (i *Stack) Stopping() context.Context { return i.stopped }

// Registry returns the catalog with journals and tables.
func (i *Stack) Registry() *registry.Registry { return i.registry }

// Logger returns a logger that also writes into the journal.
func (i *Stack) Logger() *slog.Logger { return i.o.Logger }

// configName returns the absolute path of the config, or "demo".
func (i *Stack) configName() string {
	if i.o.Config.Demo {
		return "demo"
	}
	if path, err := filepath.Abs(i.o.Config.Path); err == nil {
		return path
	}
	return i.o.Config.Path
}
