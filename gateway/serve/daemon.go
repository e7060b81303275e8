package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"runtime/debug"
	"sync/atomic"
	"time"

	"goblin/gateway/cli"
	"goblin/gateway/config"
	"goblin/gateway/daemon"
	"goblin/gateway/remoteui"
	"goblin/gateway/stack"
)

// UIs run in the daemon, one [ShowFunc] each. Their terminals connect through a relay, in
// another process or over a pipe in this one.

// MaxScreens is the maximum number of UIs that connect to a daemon over its socket.
const MaxScreens = 32

// ErrStopped reports that a UI closed because the daemon stopped.
var ErrStopped = errors.New("the daemon was stopped")

const (
	// attempts is the maximum number of tries while a daemon stops.
	attempts     = 50
	attemptPause = 100 * time.Millisecond
)

// Daemon is a gateway with the socket of its config.
type Daemon struct {
	*stack.Stack
	// Theme is the config's theme, for UIs that request none.
	Theme string
	// Images is the config's setting for images.
	Images string
	// Keys are the config's keys by UI action.
	Keys map[string][]string
	// Command is the command for clients that is shown to users.
	Command []string
	// Title names the config in UIs; "" is its file name.
	Title string

	show    ShowFunc
	screens atomic.Int32 // connected over the socket
}

// daemon makes this process the daemon of the setup's config. change may be nil.
func (p *Process) daemon(s *setup, change func(*stack.Options)) (*Daemon, error) {
	exe, err := os.Executable()
	if err != nil {
		exe = "" // shown by name then
	}
	h := &Daemon{Theme: s.cfg.TUI.Theme, Images: s.cfg.TUI.Images, Keys: s.cfg.TUI.Keys, Command: p.App.ClientCommand(s.cfg, exe), Title: p.devTitle(s.cfg), show: p.Show}
	o := stack.Options{
		Config: s.cfg, Version: p.App.Version.Version, Getenv: p.App.Getenv, Logger: s.logger, Log: s.log, Mask: p.App.Mask(), HTTP: true,
		Endpoint: &s.endpoint, FindEndpoint: func() (daemon.Endpoint, error) { return p.App.FindDaemon(s.cfg.Path) },
		Screen: h.showRemote, Pins: s.pins, NoPinsReason: s.noPins, CallApprovals: p.App.CallApprovalsPath(s.cfg), Toggles: p.App.TogglesPath(s.cfg), Usage: p.App.UsagePath(s.cfg), Recordings: p.recordings(s.cfg), Saved: p.App.SavedDir(s.cfg), Logins: p.App.LoginsDir(), Resolve: p.App.Secrets().Resolve, Secrets: p.App.Secrets(), Catalog: p.App.ListCacheDir(), Runtime: s.endpoint.Dir, Extend: p.Extend,
	}
	o.Terminal = p.startedFrom(s.tty)
	if change != nil {
		change(&o)
	}
	if h.Stack, err = stack.New(o); err != nil {
		return nil, err
	}
	return h, nil
}

// recordings returns the folder in which the config's record applies.
func (p *Process) recordings(cfg *config.Config) string {
	return cmp.Or(p.App.RecordingsDir(cfg), cfg.Record.Dir)
}

// startedFrom returns a function for the terminal at tty or at a stream of this process,
// or nil.
func (p *Process) startedFrom(tty *os.File) func() (name string, gone bool) {
	for _, f := range []*os.File{tty, p.In, p.Out, p.Err} {
		if f == nil {
			continue
		}
		if _, ok := cli.IsTerminal(f); ok {
			name := cmp.Or(cli.TerminalName(f), "a terminal")
			return func() (string, bool) {
				_, there := cli.IsTerminal(f)
				return name, !there
			}
		}
	}
	return nil
}

func (h *Daemon) showRemote(ctx context.Context, c net.Conn, r io.Reader) {
	defer h.screens.Add(-1)
	full := h.screens.Add(1) > MaxScreens
	_ = showUI(ctx, h.Logger(), c, r, func(ctx context.Context, conn *remoteui.Conn) error {
		if full {
			return fmt.Errorf("this daemon already shows the maximum of %d UIs", MaxScreens)
		}
		return h.show(ctx, h, conn, false)
	})
}

// showUI shows one UI over a relay. It returns nil when the user quits or the relay
// disconnects, and [ErrStopped] when ctx ends.
func showUI(ctx context.Context, log *slog.Logger, c net.Conn, r io.Reader, show func(context.Context, *remoteui.Conn) error) (err error) {
	conn, err := remoteui.Accept(c, r)
	if err != nil {
		log.Warn("UI refused", "err", err)
		return err
	}
	// Stopping the daemon does not wait for a terminal that accepts no output.
	notified := make(chan struct{})
	unhook := context.AfterFunc(ctx, func() {
		defer close(notified)
		_ = conn.Exit(ErrStopped.Error())
	})
	defer func() {
		if !unhook() {
			<-notified
		}
	}()
	defer func() {
		if p := recover(); p != nil {
			log.Error("UI failed", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = fmt.Errorf("the UI failed: %v", p)
		}
		reason := ""
		if err != nil {
			reason = err.Error()
		}
		_ = conn.Exit(reason) // the relay may have disconnected
	}()
	return stopReason(ctx, show(ctx, conn))
}

func stopReason(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return ErrStopped
	}
	return err
}

// showLocal shows the daemon's own UI, with the errors of showUI.
func (h *Daemon) showLocal(ctx context.Context, t remoteui.Terminal) error {
	return showHere(ctx, h.Logger(), t, func(ctx context.Context, conn *remoteui.Conn) error { return h.show(ctx, h, conn, true) })
}

// showHere shows a UI of this process on its terminal, with the errors of showUI.
func showHere(ctx context.Context, log *slog.Logger, t remoteui.Terminal, show func(context.Context, *remoteui.Conn) error) error {
	near, far := net.Pipe()
	shown := make(chan error, 1)
	go func() { shown <- showUI(ctx, log, far, far, show) }()
	_, err := remoteui.Relay(ctx, near, t)
	failed := <-shown
	// The side that failed first has the cause. The other saw a closed pipe.
	if failed != nil && (err == nil || errors.Is(err, remoteui.ErrConnectionLost)) {
		err = failed
	}
	return stopReason(ctx, err)
}

func (p *Process) becomeOrDial(ctx context.Context, s *setup) (h *Daemon, c net.Conn, err error) {
	for range attempts {
		h, err = p.daemon(s, nil)
		var other *daemon.RunningError
		if !errors.As(err, &other) {
			return h, nil, err
		}
		c, err = daemon.Dial(ctx, s.endpoint, daemon.KindScreen)
		if !errors.Is(err, daemon.ErrNotRunning) {
			if _, other := errors.AsType[*daemon.BuildError](err); other {
				err = cli.Fail(cli.CodeConnect, "%w; stop it with \"%s\" and start again", err, p.App.CommandLine("stop"))
			}
			return nil, c, err
		}
		// The daemon is stopping, and its servers may take a while.
		select {
		case <-time.After(attemptPause):
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
	return nil, nil, err
}
