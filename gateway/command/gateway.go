package command

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"slices"
	"time"

	"goblin/gateway/cli"
	"goblin/gateway/config"
	"goblin/gateway/daemon"
	"goblin/gateway/stack"
)

// daemonRuns returns true if a daemon runs or its status is unknown.
func daemonRuns(ctx context.Context, place daemon.Endpoint) bool {
	_, err := daemon.Remote{Place: place}.Status(ctx)
	return !errors.Is(err, daemon.ErrNotRunning)
}

// withOwnGateway always uses a gateway in this process, since a running daemon's config
// may differ.
func (a *App) withOwnGateway(ctx context.Context, cfg *config.Config, only []string, do func(g Gateway) error) error {
	place, err := a.FindDaemon(cfg.Path) // without an endpoint, children are not recorded
	catalog := a.ListCacheDir()
	if err == nil && daemonRuns(ctx, place) {
		catalog = "" // only the daemon writes the cache while it runs
	}
	g, err := openLocal(a, cfg, only, place.Dir, catalog, nil)
	if err != nil {
		return err
	}
	return a.useGateway(ctx, g, do)
}

// Gateway is a running gateway that a command queries.
type Gateway interface {
	daemon.Gateway
	// Connect opens an MCP client connection for a profile, or for all entries if profile
	// is "". Each line is one message.
	Connect(ctx context.Context, profile string) (net.Conn, error)
	// IsDaemon reports whether the gateway belongs to the daemon and outlives the
	// command.
	IsDaemon() bool
	// Close stops a gateway in this process and its children.
	Close() error
}

// Open returns the running daemon of a config. Without one, it starts a gateway in this
// process with the servers in only, by default all enabled ones.
func Open(ctx context.Context, a *App, cfg *config.Config, only []string) (Gateway, error) {
	place, err := a.FindDaemon(cfg.Path)
	if err == nil {
		// With an unsafe socket folder, a local gateway still works.
		h := daemonGateway{daemon.Remote{Place: place}}
		_, err := h.Status(ctx)
		switch {
		case err == nil:
			return h, nil
		case !errors.Is(err, daemon.ErrNotRunning):
			return nil, cli.Fail(cli.CodeConnect, "ask the running daemon: %w", err)
		}
	}
	return openLocal(a, cfg, only, place.Dir, a.ListCacheDir(), nil)
}

type daemonGateway struct{ daemon.Remote }

func (h daemonGateway) IsDaemon() bool { return true }
func (h daemonGateway) Close() error   { return nil }

func (h daemonGateway) Connect(ctx context.Context, profile string) (net.Conn, error) {
	h.Place.Profile = profileOrEvery(profile)
	return daemon.Dial(ctx, h.Place, daemon.KindMCP)
}

// localGateway stops with the command.
type localGateway struct {
	daemon.Gateway
	instance *stack.Stack
	stop     context.CancelFunc
	ended    chan error
	runtime  string // folder of the child records; "" records none
	records  bool   // writes a recording, which only Run finishes
	log      interface{ Close() error }
}

// openLocal records children in the folder runtime and caches lists in the folder
// catalog; "" disables either. change may be nil.
func openLocal(a *App, cfg *config.Config, only []string, runtime, catalog string, change func(*stack.Options)) (Gateway, error) {
	logger, log, err := a.quietLogger(cfg)
	if err != nil {
		return nil, err
	}
	// No other client waits for this gateway. A list waits until a server has started, or
	// has been stopped after its startup timeout.
	own := *cfg
	own.Gateway.HandshakeWait = 0
	own.Gateway.StartupWait = max(own.Gateway.StartupWait, longestStart(cfg, only)+5*time.Second)
	pinned, unpinned := a.PinsPath(cfg)
	folder, _ := os.Getwd() // without it, there is no project
	o := stack.Options{Config: &own, Version: a.Version.Version, Logger: logger, Only: only, Pins: pinned, NoPinsReason: unpinned, CallApprovals: a.CallApprovalsPath(cfg), Toggles: a.TogglesPath(cfg), Usage: a.UsagePath(cfg), Logins: a.LoginsDir(), Resolve: a.Secrets().Resolve, Catalog: catalog, CacheListsOnExit: true, Runtime: runtime, HandOverChildren: true, Folder: folder, Extend: a.Extend}
	if change != nil {
		change(&o)
	}
	i, err := stack.New(o)
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	ctx, stop := context.WithCancel(context.Background())
	l := &localGateway{Gateway: i, instance: i, stop: stop, ended: make(chan error, 1), log: log, runtime: runtime, records: o.Record != ""}
	go func() { l.ended <- i.Run(ctx) }()
	return l, nil
}

// longestStart returns the longest startup_timeout of the servers in only; nil means all.
func longestStart(cfg *config.Config, only []string) time.Duration {
	var longest time.Duration
	for i := range cfg.Servers {
		if s := &cfg.Servers[i]; canStart(s) && (only == nil || slices.Contains(only, s.Name)) {
			longest = max(longest, s.StartupTimeout)
		}
	}
	return longest
}

func (l *localGateway) IsDaemon() bool { return false }

func (l *localGateway) Connect(ctx context.Context, profile string) (net.Conn, error) {
	return l.instance.Connect(ctx, profileOrEvery(profile)), nil
}

// closeTimeout limits how long a command waits for its servers to exit.
const closeTimeout = 200 * time.Millisecond

func (l *localGateway) Close() error {
	l.instance.SaveLists()
	l.stop()
	if l.records || l.runtime == "" {
		return errors.Join(<-l.ended, l.log.Close())
	}
	select {
	case err := <-l.ended:
		return errors.Join(err, l.log.Close())
	case <-time.After(closeTimeout):
	}
	self, err := os.Executable()
	if err == nil {
		err = l.instance.HandOver(exec.Command(self, reapName, l.runtime))
	}
	if err == nil {
		return nil // the helper process stops the remaining servers
	}
	return errors.Join(<-l.ended, l.log.Close())
}

// openProfile uses the whole config, because listed names depend on all servers.
func (a *App) openProfile(ctx context.Context, part *config.Config, only []string) (Gateway, error) {
	if only == nil {
		only = append([]string{}, serverNames(part)...)
	}
	g, err := a.openGateway(ctx, a.wholeConfig, only)
	if err != nil {
		return nil, err
	}
	return &profileGateway{g, a.profile}, nil
}

// withGateway calls do with the running daemon, or with a gateway in this process. That
// has the servers in only; nil means all.
func (a *App) withGateway(ctx context.Context, cfg *config.Config, only []string, do func(g Gateway) error) error {
	g, err := a.open(ctx, cfg, only)
	if err != nil {
		return err
	}
	return a.useGateway(ctx, g, do)
}

// useGateway reports slow servers on stderr meanwhile.
func (a *App) useGateway(ctx context.Context, g Gateway, do func(g Gateway) error) error {
	stop := a.reportWhileWaiting(ctx, g)
	err := do(g)
	stop()
	return errors.Join(err, g.Close())
}

func (a *App) open(ctx context.Context, cfg *config.Config, only []string) (Gateway, error) {
	if a.profile != "" {
		return a.openProfile(ctx, cfg, only)
	}
	return a.openGateway(ctx, cfg, only)
}

func (a *App) openGateway(ctx context.Context, cfg *config.Config, only []string) (Gateway, error) {
	if a.Open != nil {
		return a.Open(ctx, a, cfg, only)
	}
	return Open(ctx, a, cfg, only)
}
