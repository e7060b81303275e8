// Package stack assembles one running gateway: registry, servers, socket, HTTP and reload.
//
// It wires the parts and owns their lifetimes; it knows nothing of flags and terminals,
// and of screens only that they act through a [Client], as clients do.
//
// [New] takes what only one process may have (lock, socket, address), [Stack.Run]
// starts everything and returns when all of it is gone, child processes
// included. The other methods may be called from any goroutine between.
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
	"goblin/gateway/childproc"
	"goblin/gateway/config"
	"goblin/gateway/daemon"
	"goblin/gateway/downstream"
	"goblin/gateway/filewatch"
	"goblin/gateway/logs"
	"goblin/gateway/memlimit"
	"goblin/gateway/servers"
	"goblin/gateway/state"
	"goblin/gateway/telemetry"
	"goblin/gateway/view"
	"goblin/registry"
)

// Options say what a Stack serves.
type Options struct {
	Config  *config.Config
	Version string
	Logger  *slog.Logger
	Log     string   // the file that Logger writes to, for [daemon.Status]; "" for none
	Only    []string // servers to start; nil for all that are enabled
	// Mask hides secrets, also in what Logger writes; nil for one of the config.
	Mask     *config.Mask
	Endpoint *daemon.Endpoint // where the daemon's socket is; nil for none
	// FindEndpoint returns the daemon's endpoint after an edit of the config. If it is nil, the endpoint never
	// changes.
	FindEndpoint func() (daemon.Endpoint, error)
	HTTP         bool // serve Listen, if that or gateway.listen is set
	// Listen replaces gateway.listen, if it is set. ListenSource names it in errors,
	// such as the flag that it is the value of; "" for nothing to name.
	Listen, ListenSource string
	// Profile is shown to clients over HTTP whose URL names none; "" for what the config
	// says.
	Profile string
	// HTTPRequired makes an address that is taken an error of New, and an
	// endpoint that fails later the end of Run; otherwise either is logged and
	// the rest goes on.
	HTTPRequired bool
	// Pins is the file in which approved tools are remembered; "" for none.
	Pins string
	// NoPinsReason is why there is none although the config wants one: an error of New
	// where tools are to be withheld; otherwise it is told and the rest goes on.
	NoPinsReason error
	// Toggles is the file of what the user turned off; "" keeps that in this process alone.
	Toggles string
	// Usage is the file of what calls came to; "" counts in this process alone.
	Usage string
	// Logins is the folder of logins at remote servers; "" knows none.
	Logins string
	// Resolve gives the values of references of the config; nil has none.
	Resolve config.Resolver
	// Catalog is the folder in which lists of servers are remembered; "" for none.
	Catalog string
	// CacheListsOnExit has lists neither read from Catalog nor written while it runs, but by
	// [Stack.SaveLists].
	CacheListsOnExit bool
	// Runtime is the folder in which child processes are recorded, so that the
	// next start ends those that are left if this process is killed; "" for none.
	Runtime string
	// HandOverChildren makes child processes outlive this one, which [Stack.HandOver] needs.
	HandOverChildren bool
	// Folder is where what the instance is for is done, "" for nowhere: the servers of
	// projects run in its project from the beginning.
	Folder string
	// Terminal is the one that the process was started from, and whether that is gone by
	// now; nil and "": none.
	Terminal func() (name string, gone bool)
	// Screen serves a screen that connects over the socket; nil refuses it.
	Screen func(ctx context.Context, c net.Conn, r io.Reader)
	// Linger is how long a daemon without sessions and screens goes on; 0 stands for ever.
	Linger time.Duration
	// Extend adds what the gateway itself does not know, such as tools of
	// Goblin's own; New calls it once, before the first client is served. May be nil.
	Extend ExtendFunc
}

// Stack is one running gateway.
type Stack struct {
	o             Options
	limiter       *logs.Limiter // the handler of o.Logger
	registry      *registry.Registry
	gateway       *gateway.Gateway
	metrics       *telemetry.Metrics
	memory        *memlimit.Pool
	parkedCalls   *downstream.ParkedCalls
	children      *childproc.Registry // nil without Runtime
	listener      *daemon.Listener    // nil without Place
	http          *downstream.HTTP    // nil without an address
	address       net.Listener        // of http
	started       time.Time
	extension     Extension
	toggles       *state.ToggleStore
	meter         *telemetry.Meter
	pinStore      *state.PinStore        // nil: tools are not
	pinsError     error                  // why tools are not; nil: they are
	httpError     error                  // why there is no HTTP although it is wanted
	togglesError  atomic.Pointer[error]  // why what is off could not be read
	pinsReadError atomic.Pointer[error]  // why the pinned tools could not be read
	skipped       atomic.Pointer[string] // entries of what is off that were skipped, as logged last
	editWarning   atomic.Pointer[string] // what an edit of the config could not do
	notifyMu      sync.Mutex
	stop          context.CancelFunc
	stopped       context.Context // ends when Run is to return

	serving sync.WaitGroup // sessions on streams; see addSession
	sockets atomic.Int64   // sessions on the socket
	screens sync.Map       // *downstream.Session: func() daemon.Screen

	mu      sync.Mutex
	closing bool // Run waits for serving or has done so

	reloadMu      sync.Mutex
	servedConfig  *config.Config // whose servers are served; guarded by reloadMu
	configInvalid bool           // the file could not be taken; guarded by reloadMu
	envFiles      chan string    // the env_file that the file names by now; sent to under reloadMu

	touchInterval time.Duration // shorter in tests
}

// New prepares a Stack. It fails with *[daemon.RunningError] when another
// process serves this config already.
func New(o Options) (*Stack, error) {
	if o.Mask == nil {
		o.Mask = config.NewMask(o.Config)
	}
	mask, kept := o.Mask, gateway.RegistryOptions(o.Config)
	kept.Redact = mask.String
	reg := registry.New(kept)
	lines := logs.NewLimiter(&journal{next: o.Logger.Handler(), logs: reg.Logs(), redact: mask.String}, mask.String)
	o.Logger = slog.New(lines)
	i := &Stack{
		o: o, limiter: lines, started: time.Now(), metrics: telemetry.NewMetrics(), registry: reg, servedConfig: o.Config,
		memory:        memlimit.New(memlimit.Limit(o.Config.Gateway.Limits.Frame)),
		touchInterval: touchInterval, envFiles: make(chan string, 1),
	}
	i.parkedCalls = downstream.NewParkedCalls(0, i.memory)
	i.stopped, i.stop = context.WithCancel(context.Background())
	if err := i.registry.AddResource(registry.ServersResource(i.registry)); err != nil {
		return nil, fmt.Errorf("list Goblin's own resources: %w", err)
	}
	var err error
	if i.pinStore, err = i.pins(); err != nil {
		return nil, err
	}
	if o.Runtime != "" {
		if i.children = childproc.New(o.Runtime, o.Logger); i.children != nil {
			i.children.OutliveExit = o.HandOverChildren
		}
	}
	i.toggles, err = state.OpenToggles(o.Toggles)
	i.reportToggles(err)
	i.notify()
	i.meter = telemetry.OpenMeter(telemetry.MeterOptions{Path: o.Usage, Logger: i.o.Logger, Listed: i.listedTools})
	i.metrics.SetUsage(i.meter.ForEach)
	i.gateway = gateway.New(gateway.Options{Meter: i.meter, Options: servers.Options{
		Config: o.Config, Registry: i.registry, Metrics: i.metrics,
		Logger: i.o.Logger, Version: o.Version, Only: o.Only,
		Mask: mask, Pins: i.pinStore, Logins: o.Logins, Resolve: o.Resolve, Children: i.children, Memory: i.memory, Catalog: CachedLists(o.Catalog, o.Config, i.o.Logger), WriteOnly: o.CacheListsOnExit,
	}})
	i.gateway.SetDisabled(i.toggles.Disabled(), i.toggles.Hidden()...)
	if folder := downstream.ProjectOf(o.Folder); folder != "" {
		i.gateway.Servers.PinProject(folder)
	}
	if o.Extend != nil {
		var err error
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
	if err := i.listenHTTP(); err != nil {
		if i.listener != nil {
			err = errors.Join(err, i.listener.Close())
		}
		return nil, err
	}
	return i, nil
}

// pins opens what is remembered of tools, if that is wanted. Without it nothing
// can be withheld for certain, but all the rest be done.
func (i *Stack) pins() (*state.PinStore, error) {
	wanted := i.o.Config.Gateway.Pin
	switch {
	case wanted == config.PinOff:
		i.pinsError = errors.New("nothing to approve: gateway.pin is off")
		return nil, nil
	case i.o.Pins == "" && i.o.NoPinsReason == nil || i.o.Config.Demo:
		i.pinsError = errors.New("nothing to approve: the tools of the demo are not pinned")
		return nil, nil
	}
	var store *state.PinStore
	err := i.o.NoPinsReason
	if err == nil {
		store, err = state.OpenPins(i.o.Pins)
	}
	if store != nil && wanted == config.PinStrict {
		err = store.Writable() // without pins, no tool is approved
	}
	switch {
	case err == nil:
		i.reportPins(store)
		return store, nil
	case wanted == config.PinStrict:
		return nil, err
	}
	i.o.Logger.Error("Changed tools go unnoticed", "err", err)
	until := ""
	if store != nil { // it has no pins, and is not used until the next start
		until = " until a repair and a restart"
	}
	i.pinsError = fmt.Errorf("changed tools go unnoticed%s: %w", until, err)
	return nil, nil
}

// CachedLists returns the store of the lists of a config's servers in a folder, or nil if
// there is none.
func CachedLists(folder string, cfg *config.Config, logger *slog.Logger) *state.ListCache {
	path, err := config.Canonical(cfg.Path)
	if folder == "" || cfg.Demo || cfg.Gateway.Remember == 0 || err != nil {
		return nil
	}
	return state.NewListCache(folder, path, cfg.Gateway.Remember, logger)
}

// SaveLists writes what the servers listed, for the next daemon. It needs Options.CacheListsOnExit.
func (i *Stack) SaveLists() { i.gateway.Servers.SaveLists() }

// HandOver has the process that cmd starts end the children that are left when this one has
// ended; it must call [childproc.Reap] for the folder Runtime.
func (i *Stack) HandOver(cmd *exec.Cmd) error { return i.children.HandOver(cmd) }

// notify shows what users are to know of the daemon.
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
	for _, damaged := range []*atomic.Pointer[error]{&i.togglesError, &i.pinsReadError} {
		if err := damaged.Load(); err != nil {
			all = append(all, (*err).Error())
		}
	}
	i.registry.SetNotice(strings.Join(all, "; "))
}

// Run serves until ctx ends, somebody asks it to stop, or a detached daemon has
// lingered for its time.
func (i *Stack) Run(outer context.Context) error {
	i.logStart()
	ctx, cancel := context.WithCancel(outer)
	defer cancel()
	defer context.AfterFunc(i.stopped, cancel)()

	// Sessions end before the servers do, so that what they hold can still be
	// given back.
	servers, stopServers := context.WithCancel(context.WithoutCancel(ctx))
	defer stopServers()
	var backends sync.WaitGroup
	backends.Go(func() {
		defer i.children.Close()
		i.children.Sweep(servers) // they may hold what the servers need
		i.gateway.Run(servers)
	})
	backends.Go(func() { i.meter.Run(servers) })
	if i.extension.Run != nil {
		backends.Go(func() { i.extension.Run(servers) })
	}

	var edits sync.WaitGroup
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
	edits.Go(func() { i.touchFiles(ctx) })
	edits.Go(func() { memlimit.FreeOSMemory(ctx, time.Second) })

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
	stopServers()
	backends.Wait()
	if i.listener != nil {
		if err := i.listener.Close(); err != nil {
			i.o.Logger.Warn("Lock not given back", "err", err)
		}
	}
	close(errs)
	var all error
	for err := range errs {
		all = errors.Join(all, err)
	}
	_ = i.limiter.Close() // says what was left out
	i.logEnd(why, all)
	return all
}

// addSession makes Run wait for one more session, until serving.Done. It reports false if Run no longer
// waits.
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

// localOptions are those of clients that are in the folder of this process.
func (i *Stack) localOptions() downstream.Options {
	o := i.sessionOptions()
	o.Location.Folder, _ = os.Getwd() // where there is none, nobody needs it
	return o
}

// ServeStdio serves one client on a pair of streams until its input ends, with what a
// profile shows, if it names one.
func (i *Stack) ServeStdio(ctx context.Context, profile string, in io.Reader, out io.Writer) error {
	o := i.localOptions()
	o.Profile = profile
	return i.serve(ctx, o, "stdio", in, out)
}

// serve serves one client on streams, of which the closers are closed at the end.
func (i *Stack) serve(ctx context.Context, o downstream.Options, transport string, in io.Reader, out io.Writer, closers ...io.Closer) error {
	i.serving.Add(1)
	defer i.serving.Done()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(i.stopped, cancel)()
	o.Closers = closers
	return downstream.ServeStream(ctx, o, transport, in, out)
}

// AllEntries stands for a profile that shows everything.
const AllEntries = view.FullProfile

// Connect opens a client connection inside this process, which sees what a profile shows,
// or [AllEntries]: MCP, a message a line.
func (i *Stack) Connect(ctx context.Context, profile string) net.Conn {
	near, far := net.Pipe()
	i.serving.Add(1)
	go func() {
		defer i.serving.Done()
		o := i.localOptions()
		o.Profile = profile
		if err := i.serve(ctx, o, "stdio", far, far, far); err != nil {
			i.o.Logger.Debug("Session ended", "err", err)
		}
	}()
	return near
}

// Stopping ends when Run is about to return, whatever caused it.
func (i *Stack) Stopping() context.Context { return i.stopped }

// Registry is the catalog, with the journals and tables of what goes on.
func (i *Stack) Registry() *registry.Registry { return i.registry }

// Logger is the one of the options, and writes into the registry's journal,
// too.
func (i *Stack) Logger() *slog.Logger { return i.o.Logger }

// ConfigName is the config as a user knows it: the absolute path of its file,
// or "demo".
func (i *Stack) ConfigName() string {
	if i.o.Config.Demo {
		return "demo"
	}
	if path, err := filepath.Abs(i.o.Config.Path); err == nil {
		return path
	}
	return i.o.Config.Path
}
