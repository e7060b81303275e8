package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"goblin/gateway/command"
	"goblin/gateway/host"
	"goblin/gateway/instance"
	"goblin/gateway/screen"
	"goblin/tui"
)

// Screens run in the host, one program each, and are seen through a relay:
// in another process, or in this one, joined by a pipe.

// errStopped is why a screen ends that its user did not leave.
var errStopped = errors.New("the host was stopped")

const (
	// attempts bound how often a host is looked for that ends while it is asked.
	attempts     = 50
	attemptPause = 100 * time.Millisecond

	slowStop = 500 * time.Millisecond // what is longer is told
)

// hosting is a host with what its screens say of it.
type hosting struct {
	*instance.Instance
	about tui.Host
	theme string // for who asks for none
}

// host makes this process the host of the setup's config; change adapts how.
func (m *modes) host(s *setup, change func(*instance.Options)) (*hosting, error) {
	exe, err := os.Executable()
	if err != nil {
		exe = "" // then it is shown by its name
	}
	h := &hosting{theme: s.cfg.TUI.Theme}
	o := instance.Options{
		Config: s.cfg, Version: m.app.Version.Version, Logger: s.logger, Place: &s.place, HTTP: true,
		Screen: func(ctx context.Context, c net.Conn, r io.Reader) { _ = h.screen(ctx, c, r, false) },
	}
	if change != nil {
		change(&o)
	}
	if h.Instance, err = instance.New(o); err != nil {
		return nil, err
	}
	h.about = tui.Host{
		Version: o.Version, Config: h.ConfigName(), Demo: h.Demo(), Address: h.Address(),
		PID: os.Getpid(), Command: m.app.ClientCommand(s.cfg, exe),
	}
	return h, nil
}

// screen shows one screen over a connection to a relay until its user quits
// (nil), the relay is gone (nil), ctx ends ([errStopped]) or it fails. owner
// says that the host ends with it.
func (h *hosting) screen(ctx context.Context, c net.Conn, r io.Reader, owner bool) (err error) {
	log := h.Logger()
	conn, err := screen.Accept(c, r)
	if err != nil {
		log.Warn("Screen refused", "err", err)
		return err
	}
	defer func() {
		if p := recover(); p != nil {
			log.Error("Screen failed", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = fmt.Errorf("the screen failed: %v", p)
		}
		reason := ""
		if err != nil {
			reason = err.Error()
		}
		_ = conn.Exit(reason) // a relay that is gone need not know
	}()
	about := h.about
	about.Owner = owner
	view := tui.New(tui.Options{
		Registry: h.Registry(), Host: about, Logger: log,
		Theme: cmp.Or(conn.Theme(), h.theme), ASCII: conn.ASCII(),
	})
	client, err := h.OpenClient(ctx, "goblin", view.Ask)
	if err != nil {
		return stopped(ctx, err)
	}
	defer client.Close()
	return stopped(ctx, view.Run(ctx, client, conn))
}

// stopped replaces what the end of a host does to a screen by its reason.
func stopped(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return errStopped
	}
	return err
}

// own shows the host's own screen until its user quits (nil), ctx ends
// ([errStopped]) or it fails.
func (h *hosting) own(ctx context.Context, t screen.Terminal) error {
	near, far := net.Pipe()
	shown := make(chan error, 1)
	go func() { shown <- h.screen(ctx, far, far, true) }()
	_, err := screen.Relay(ctx, near, t)
	if failed := <-shown; failed != nil { // says more than what the relay was told
		err = failed
	}
	return stopped(ctx, err)
}

// meet makes this process the host, or else connects to the screen of the
// one that is there.
func (m *modes) meet(ctx context.Context, s *setup) (h *hosting, c net.Conn, err error) {
	for range attempts {
		h, err = m.host(s, nil)
		var other *host.RunningError
		if !errors.As(err, &other) {
			return h, nil, err
		}
		c, err = host.Dial(ctx, s.place, host.KindScreen)
		if !errors.Is(err, host.ErrNoHost) {
			return nil, c, err
		}
		// It is ending; its servers may take a while.
		select {
		case <-time.After(attemptPause):
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
	return nil, nil, err
}

// screen is Goblin on a terminal: the host of its config, or a look at it.
func (m *modes) screen(ctx context.Context) error {
	s, err := m.prepare(m.app.Load, apart)
	if err != nil {
		return err
	}
	defer s.close()
	h, c, err := m.meet(ctx, s)
	if err != nil {
		return err
	}
	t := m.terminal(os.Stdin, os.Stdout, s)
	if h == nil {
		return m.tell(ctx, m.relay(ctx, c, t))
	}
	return m.watch(ctx, h, t, nil)
}

// terminal is the terminal at two files as a screen needs it.
func (m *modes) terminal(in, out *os.File, s *setup) screen.Terminal {
	return screen.Terminal{
		In: in, Out: out, Theme: cmp.Or(m.theme, s.cfg.TUI.Theme), ASCII: m.ascii,
		Getenv: func(name string) string {
			if value := m.app.Getenv(name); value != "" || name != "TERM" {
				return value
			}
			return "dumb" // nothing is known of it
		},
	}
}

// relay shows the screen at the other end of c until its user quits (nil) or
// it ends otherwise.
func (m *modes) relay(ctx context.Context, c net.Conn, t screen.Terminal) error {
	defer m.hold()()
	reason, err := screen.Relay(ctx, c, t)
	switch {
	case err == nil && reason == errStopped.Error():
		return errStopped
	case err == nil && reason != "":
		return errors.New(reason)
	case errors.Is(err, screen.ErrConnectionLost):
		return command.Fail(command.CodeConnect, "the host is gone, and the screen with it; goblin starts the next one")
	default:
		return err
	}
}

// tell says why a screen ended that its user did not leave. A signal's sender
// knows, and a host that somebody stopped is no failure.
func (m *modes) tell(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return nil
	case errors.Is(err, errStopped):
		m.app.Warn("%v", err)
		return nil
	default:
		return err
	}
}

// hold makes whoever ends the process at once wait a moment until the
// terminal is given back; release tells that it is.
func (m *modes) hold() (release func()) {
	given := make(chan struct{})
	m.undo(func() {
		select {
		case <-given:
		case <-time.After(time.Second):
		}
	})
	return func() { close(given) }
}

// watch is a host with its own screen on t, and ends with it. beside, if not
// nil, serves a client meanwhile; if the screen fails, the host goes on until
// it ends, and without it until ctx does.
func (m *modes) watch(ctx context.Context, h *hosting, t screen.Terminal, beside func(ctx context.Context) error) error {
	var shown error
	var notice *time.Timer
	err := together(ctx, h.Instance, func(ctx context.Context) error {
		ctx, end := context.WithCancel(ctx)
		defer end()
		alone := make(chan struct{}) // closed when beside has ended
		var served error
		var serving sync.WaitGroup
		if beside != nil {
			serving.Go(func() {
				defer close(alone)
				served = beside(ctx)
			})
		}
		release := m.hold()
		shown = h.own(ctx, t)
		release()
		if shown != nil && !errors.Is(shown, errStopped) {
			m.app.Warn("%v; goblin still serves %s; Ctrl-C ends it", shown, clients(h.Status().Clients()))
			select {
			case <-alone:
			case <-ctx.Done():
			}
		}
		notice = time.AfterFunc(slowStop, func() { m.app.Warn("stopping the servers …") })
		end()
		serving.Wait()
		return served
	})
	notice.Stop()
	if errors.Is(shown, errStopped) {
		return errors.Join(err, m.tell(ctx, shown))
	}
	return err
}

func clients(n int) string {
	if n == 1 {
		return "1 client"
	}
	return fmt.Sprintf("%d clients", n)
}

// both is MCP on stdin and stdout with the screen on a terminal.
func (m *modes) both(ctx context.Context, path string) error {
	tty, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("there is no terminal to show the servers on: %w; name one with --tui-tty, or leave out --tui", err)
	}
	defer tty.Close()
	if _, ok := command.Terminal(tty); !ok {
		return command.Fail(command.CodeUsage, "%s is not a terminal; name one with --tui-tty", path)
	}
	if m.app.InTTY && path == controlling {
		return command.Fail(command.CodeUsage, "--tui is for MCP on stdin, which is a terminal here; leave it out, or name another terminal with --tui-tty")
	}
	s, err := m.prepare(m.app.Load, apart)
	if err != nil {
		return err
	}
	defer s.close()
	h, c, err := m.meet(ctx, s)
	if err != nil {
		return err
	}
	t := m.terminal(tty, tty, s)
	in, out := m.streams()
	if h != nil {
		return m.watch(ctx, h, t, func(ctx context.Context) error { return h.ServeStdio(ctx, in, out) })
	}

	using, end := context.WithCancel(ctx)
	defer end()
	var bridged error
	var bridging sync.WaitGroup
	left := make(chan struct{}) // closed when the client has
	bridging.Go(func() {
		defer close(left)
		bridged = m.bridge(using, s, in, out)
	})
	shown := m.follow(ctx, s, c, t)
	if shown != nil && ctx.Err() == nil {
		m.app.Warn("%v; the client is served on", shown)
		select {
		case <-left:
		case <-ctx.Done():
		}
	}
	end()
	bridging.Wait()
	return bridged
}

// follow shows the screen of the host that a bridge uses, and of the next one
// when that ends.
func (m *modes) follow(ctx context.Context, s *setup, c net.Conn, t screen.Terminal) error {
	for {
		err := m.relay(ctx, c, t)
		if err == nil || ctx.Err() != nil || !errors.Is(err, errStopped) && command.ExitCode(err) != command.CodeConnect {
			return err
		}
		if c = m.next(ctx, s); c == nil {
			return err
		}
	}
}

// next connects to the screen of the host that a bridge has found or started
// after the last one; nil if there is none for long.
func (m *modes) next(ctx context.Context, s *setup) net.Conn {
	for range attempts {
		c, err := host.Dial(ctx, s.place, host.KindScreen)
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
