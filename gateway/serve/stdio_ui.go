package serve

import (
	"cmp"
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"goblin/gateway/cli"
	"goblin/gateway/daemon"
	"goblin/gateway/remoteui"
)

// Controlling is the path of the process's controlling terminal.
const Controlling = "/dev/tty"

// Beside serves MCP on stdin and stdout and shows the UI on the terminal at path. The UI
// cannot disturb the client: the process never stops for terminal access, and the UI
// waits until it is in the foreground. The UI stays open after the client disconnects,
// until the user quits.
func (p *Process) Beside(ctx context.Context, path string) error {
	stayRunning()
	tty, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return cli.Fail(cli.CodeUsage, "no terminal for the UI: %w; set one with --tui-tty or omit --tui", err)
	}
	defer tty.Close()
	if _, ok := cli.IsTerminal(tty); !ok {
		return cli.Fail(cli.CodeUsage, "%s is not a terminal; set one with --tui-tty", path)
	}
	if p.App.InTTY && path == Controlling {
		return cli.Fail(cli.CodeUsage, "--tui requires MCP on stdin, but stdin is a terminal; omit it or set another terminal with --tui-tty")
	}
	s, err := p.prepare(p.App.Load, logToFile)
	if err != nil {
		return err
	}
	defer s.close()
	s.tty = tty
	h, c, shown := p.becomeOrDial(ctx, s)
	if _, other := errors.AsType[*daemon.BuildError](shown); shown != nil && !other {
		return shown
	}
	t := p.terminal(tty, tty, cmp.Or(p.Theme, s.cfg.TUI.Theme))
	var behind sync.Once
	t.Steady, t.OnBackground = true, func() {
		behind.Do(func() {
			p.App.Warn("the UI waits until goblin is in the foreground; the client is served meanwhile")
		})
	}
	in, out := p.Streams()
	if h != nil {
		return p.watch(ctx, h, t, func(ctx context.Context) error { return h.ServeStdio(ctx, "", in, out) })
	}

	using, end := context.WithCancel(ctx)
	defer end()
	var bridged error
	var bridging sync.WaitGroup
	left := make(chan struct{}) // closed when the client disconnects
	bridging.Go(func() {
		defer close(left)
		bridged = p.bridge(using, s, "", in, out)
	})
	if shown == nil {
		shown = p.follow(ctx, s, c, t)
	}
	if shown != nil && ctx.Err() == nil {
		p.App.Warn("%v; still serving the client", shown)
		select {
		case <-left:
		case <-ctx.Done():
		}
	}
	end()
	bridging.Wait()
	return bridged
}

// follow shows the UI of the bridge's daemon, and of the next daemon when that one stops.
func (p *Process) follow(ctx context.Context, s *setup, c net.Conn, t remoteui.Terminal) error {
	for {
		err := p.relay(ctx, c, t)
		if err == nil || ctx.Err() != nil || !errors.Is(err, ErrStopped) && cli.ExitCode(err) != cli.CodeConnect {
			return err
		}
		if c = dialSoon(ctx, s.endpoint, daemon.KindScreen, attempts); c == nil {
			return err
		}
	}
}

// dialSoon connects to the daemon that another bridge finds or starts, or returns nil.
func dialSoon(ctx context.Context, place daemon.Endpoint, kind string, attempts int) net.Conn {
	for range attempts {
		c, err := daemon.Dial(ctx, place, kind)
		if err == nil {
			return c
		}
		select {
		case <-time.After(attemptPause):
		case <-ctx.Done():
			return nil
		}
	}
	return nil
}
