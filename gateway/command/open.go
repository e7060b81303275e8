package command

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"goblin/gateway/childproc"
	"goblin/gateway/cli"
	"goblin/gateway/config"
	"goblin/gateway/daemon"
	"goblin/gateway/stack"
)

// Gateway is a running gateway that a command asks.
type Gateway interface {
	daemon.Gateway
	// Connect opens a client connection that sees what a profile shows, or, if that is "",
	// everything: MCP, one message per line.
	Connect(ctx context.Context, profile string) (net.Conn, error)
	// IsDaemon reports whether it is the daemon's and goes on without us.
	IsDaemon() bool
	// Close ends a gateway of our own with all its children.
	Close() error
}

// Open finds the running daemon of a config, or else starts a gateway in this
// process with only the servers that are named (nil: all that are enabled).
func Open(ctx context.Context, a *App, cfg *config.Config, only []string) (Gateway, error) {
	place, err := a.Place(cfg.Path)
	if err == nil {
		// An unsafe folder for sockets is no obstacle to working alone.
		h := daemonGateway{daemon.Remote{Place: place}}
		_, err := h.Status(ctx)
		switch {
		case err == nil:
			return h, nil
		case !errors.Is(err, daemon.ErrNotRunning):
			return nil, cli.Fail(cli.CodeConnect, "ask the running daemon: %w", err)
		}
	}
	return openLocal(a, cfg, only, place.Dir, a.Catalog())
}

type daemonGateway struct{ daemon.Remote }

func (h daemonGateway) IsDaemon() bool { return true }
func (h daemonGateway) Close() error   { return nil }

func (h daemonGateway) Connect(ctx context.Context, profile string) (net.Conn, error) {
	h.Place.Profile = seenBy(profile)
	return daemon.Dial(ctx, h.Place, daemon.KindMCP)
}

// local is a gateway in this process, for the time of one command.
type local struct {
	daemon.Gateway
	instance *stack.Instance
	stop     context.CancelFunc
	ended    chan error
	runtime  string // in which children are recorded; "" for nowhere
	log      interface{ Close() error }
}

// openLocal starts a gateway in this process. Children are recorded in the folder runtime,
// lists are cached for the next daemon in the folder catalog; "" does neither.
func openLocal(a *App, cfg *config.Config, only []string, runtime, catalog string) (Gateway, error) {
	logger, log, err := a.quiet(cfg)
	if err != nil {
		return nil, err
	}
	// Nobody else is kept waiting, so a list waits for as long as a server may
	// take to start, and to be ended when it did not.
	own := *cfg
	own.Gateway.HandshakeWait = 0
	own.Gateway.StartupWait = max(own.Gateway.StartupWait, longestStart(cfg, only)+5*time.Second)
	pinned, unpinned := a.Pins(cfg)
	folder, _ := os.Getwd() // where there is none, there is no project
	i, err := stack.New(stack.Options{Config: &own, Version: a.Version.Version, Logger: logger, Only: only, Pins: pinned, NoPins: unpinned, Off: a.Off(cfg), Usage: a.Usage(cfg), Logins: a.Logins(), Resolve: a.Secrets().Resolve, Catalog: catalog, Records: true, Runtime: runtime, HandsOver: true, Folder: folder, Extend: a.Extend})
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	ctx, stop := context.WithCancel(context.Background())
	l := &local{Gateway: i, instance: i, stop: stop, ended: make(chan error, 1), log: log, runtime: runtime}
	go func() { l.ended <- i.Run(ctx) }()
	return l, nil
}

// longestStart is the longest startup_timeout of the servers in only.
func longestStart(cfg *config.Config, only []string) time.Duration {
	var longest time.Duration
	for i := range cfg.Servers {
		if s := &cfg.Servers[i]; startable(s) && (only == nil || slices.Contains(only, s.Name)) {
			longest = max(longest, s.StartupTimeout)
		}
	}
	return longest
}

func (l *local) IsDaemon() bool { return false }

func (l *local) Connect(ctx context.Context, profile string) (net.Conn, error) {
	return l.instance.Connect(ctx, seenBy(profile)), nil
}

// patient is how long the user of a command waits for the servers' end.
const patient = 200 * time.Millisecond

func (l *local) Close() error {
	l.instance.SaveLists()
	l.stop()
	select {
	case err := <-l.ended:
		return errors.Join(err, l.log.Close())
	case <-time.After(patient):
	}
	self, err := os.Executable()
	if err == nil {
		err = l.instance.HandOver(exec.Command(self, reapName, l.runtime))
	}
	if err == nil {
		return nil // what is left ends after this process
	}
	return errors.Join(<-l.ended, l.log.Close())
}

const reapName = "end-children"

// reap is the command of the process that ends the children of another command.
func (a *App) reap() *cobra.Command {
	return &cobra.Command{
		Use:    reapName + " FOLDER",
		Hidden: true,
		Short:  "End the servers that a command has left",
		Long: `Wait until standard input ends, which it does with the command that has left
servers behind, and end those that have not ended by themselves two seconds later.
Commands start this one themselves; there is no need to type it.`,
		Example:     "  goblin " + reapName + " /run/user/1000/goblin",
		Annotations: cli.WithoutConfig(),
		Args:        oneArg("the folder in which they are recorded"),
		Run:         func(_ *cobra.Command, args []string) { childproc.Reap(args[0], a.In) },
	}
}
