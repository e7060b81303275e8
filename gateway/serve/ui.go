package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"goblin/gateway/cli"
	"goblin/gateway/config"
	"goblin/gateway/daemon"
	"goblin/gateway/remoteui"
)

const slowStop = 500 * time.Millisecond // report a longer stop

// Screen shows the UI on the terminal, as the daemon or connected to the running one. If
// the config is invalid, only a running daemon can show the UI: with its last valid config.
func (p *Process) Screen(ctx context.Context) error {
	s, err := p.prepare(p.App.Load, logToFile)
	if _, invalid := errors.AsType[*config.Errors](err); invalid {
		if c := p.dialDespiteMistakes(ctx); c != nil {
			return p.reportStop(ctx, p.relay(ctx, c, p.terminal(p.In, p.Out, p.Theme)))
		}
		code := p.App.Report(err)
		p.App.Warn("edit the config with \"%s\"", p.App.CommandLine("edit"))
		return &cli.Error{Code: code}
	}
	if err != nil {
		return err
	}
	defer s.close()
	h, c, err := p.becomeOrDial(ctx, s)
	if err != nil {
		return err
	}
	t := p.terminal(p.In, p.Out, cmp.Or(p.Theme, s.cfg.TUI.Theme))
	if h == nil {
		return p.reportStop(ctx, p.relay(ctx, c, t))
	}
	return p.watch(ctx, h, t, nil)
}

// dialDespiteMistakes connects a UI to a running daemon of an invalid config, or returns
// nil.
func (p *Process) dialDespiteMistakes(ctx context.Context) net.Conn {
	path := cmp.Or(p.App.ConfigFlag, p.App.Getenv("GOBLIN_CONFIG"), config.DefaultPath(p.App.Getenv))
	var places []daemon.Endpoint
	if place, err := p.App.FindDaemon(path); err == nil {
		places = []daemon.Endpoint{place}
	} else if place, err = daemon.Find("", p.App.Version.Handshake(), p.App.Getenv); err == nil { // unreadable
		path, _ = config.Canonical(path)
		places = daemon.FindRunning(place.Dir, path, p.App.Version.Handshake())
	}
	for _, place := range places {
		place.Build = p.App.Version.Build
		if c, err := daemon.Dial(ctx, place, daemon.KindScreen); err == nil {
			return c
		}
	}
	return nil
}

// terminal returns the terminal of a UI; "" is the daemon's theme.
func (p *Process) terminal(in, out *os.File, theme string) remoteui.Terminal {
	return remoteui.Terminal{
		In: in, Out: out, Theme: theme, ASCII: p.ASCII,
		Getenv: func(name string) string {
			if value := p.App.Getenv(name); value != "" || name != "TERM" {
				return value
			}
			return "dumb" // unknown terminal
		},
	}
}

func (p *Process) relay(ctx context.Context, c net.Conn, t remoteui.Terminal) error {
	shown, release := p.holdTerminal(ctx, t)
	defer release()
	reason, err := remoteui.Relay(shown, c, t)
	switch {
	case err == nil && reason == ErrStopped.Error():
		return ErrStopped
	case err == nil && reason != "":
		return errors.New(reason)
	case errors.Is(err, remoteui.ErrConnectionLost):
		return cli.Fail(cli.CodeConnect, "the daemon exited, which closed the UI; run goblin again")
	default:
		return err
	}
}

// reportStop returns no error for a stopped daemon or a signal.
func (p *Process) reportStop(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return nil
	case errors.Is(err, ErrStopped):
		p.App.Warn("%v", err)
		return nil
	default:
		return err
	}
}

// watch runs a daemon with its own UI on t and stops both together. beside, if not nil,
// serves a client meanwhile. If the UI fails, the daemon runs until beside returns or,
// without it, until ctx ends. After a lost terminal, a daemon without clients stops,
// since no user would notice it.
func (p *Process) watch(ctx context.Context, h *Daemon, t remoteui.Terminal, beside func(ctx context.Context) error) error {
	p.onHangup(h.ReloadNow)
	var shown error
	var notice *time.Timer
	err := runWith(ctx, h.Stack, func(ctx context.Context) error {
		ctx, end := context.WithCancel(ctx)
		defer end()
		alone := make(chan struct{}) // closed when beside returns
		var served error
		var serving sync.WaitGroup
		if beside != nil {
			serving.Go(func() {
				defer close(alone)
				served = beside(ctx)
			})
		}
		showing, release := p.holdTerminal(ctx, t)
		shown = h.showLocal(showing, t)
		release()
		status, _ := h.Status(ctx) // answered locally
		lost := beside == nil && status.Clients() == 0 && errors.Is(shown, remoteui.ErrTerminalLost)
		if shown != nil && !lost && !errors.Is(shown, ErrStopped) {
			p.App.Warn("%v; still serving %s; press Ctrl-C to stop", shown, clients(status.Clients()))
			select {
			case <-alone:
			case <-ctx.Done():
			}
		}
		notice = time.AfterFunc(slowStop, func() { p.App.Warn("stopping the servers …") })
		end()
		serving.Wait()
		return served
	})
	notice.Stop()
	if errors.Is(shown, ErrStopped) {
		return errors.Join(err, p.reportStop(ctx, shown))
	}
	return err
}

func clients(n int) string {
	if n == 1 {
		return "1 client"
	}
	return fmt.Sprintf("%d clients", n)
}
