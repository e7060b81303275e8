package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"goblin/gateway/bridge"
	"goblin/gateway/cli"
	"goblin/gateway/config"
	"goblin/gateway/daemon"
	"goblin/gateway/logs"
	"goblin/gateway/stack"
)

// DefaultListen is the default address of Serve.
const DefaultListen = "127.0.0.1:7331"

// supersetAttempts limits the tries of a client with fewer variables before it starts its
// own daemon.
const supersetAttempts = 20

// Stdio serves one client, through the daemon unless standalone. profile selects its
// view; "" selects it by the client's name.
func (p *Process) Stdio(ctx context.Context, standalone bool, profile string) error {
	kind := logToStderr
	if standalone {
		kind = noSocket
	}
	s, err := p.prepare(p.App.Load, kind)
	if err != nil {
		return err
	}
	defer s.close()
	if err := hasProfile(s.cfg, profile); err != nil {
		return err
	}
	if p.App.InTTY {
		p.App.Warn("serving MCP on stdin and stdout, which is meant for clients; press Ctrl-D to stop")
	}
	in, out := p.Streams()
	if !standalone {
		return p.bridge(ctx, s, profile, in, out)
	}
	i, err := stack.New(stack.Options{
		Config: s.cfg, Version: p.App.Version.Version, Logger: s.logger, Mask: p.App.Mask(), Pins: s.pins, NoPinsReason: s.noPins, CallApprovals: p.App.CallApprovalsPath(s.cfg), Toggles: p.App.TogglesPath(s.cfg), Usage: p.App.UsagePath(s.cfg), Recordings: p.recordings(s.cfg), Saved: p.App.SavedDir(s.cfg), Logins: p.App.LoginsDir(), Resolve: p.App.Secrets().Resolve, Secrets: p.App.Secrets(), Catalog: p.App.ListCacheDir(), Extend: p.Extend,
		Runtime: s.endpoint.Dir, Rules: p.Rules,
	})
	if err != nil {
		return err
	}
	return runWith(ctx, i, func(ctx context.Context) error { return i.ServeStdio(ctx, profile, in, out) })
}

func (p *Process) bridge(ctx context.Context, s *setup, profile string, in io.Reader, out io.Writer) error {
	exe, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program to start the daemon: %w", err)
	}
	args := []string{"daemon"}
	if s.cfg.Demo {
		args = append(args, "--demo")
	} else {
		args = append(args, "--config", s.cfg.Path)
	}
	lines := logs.NewLimiter(s.logger.Handler(), p.App.Mask().String)
	defer lines.Close() //nolint:errcheck // reports skipped lines

	var superset *daemon.Endpoint            // of the last daemon, if that had more variables
	var last atomic.Pointer[daemon.Endpoint] // nil before the first daemon
	err = bridge.Run(ctx, bridge.Options{
		Alive: func(ctx context.Context) error { return daemon.CheckAlive(ctx, *last.Load()) },
		Connect: func(ctx context.Context) (net.Conn, error) {
			// The file may name other variables now, which changes the next daemon's
			// place. If it is missing, starting a daemon gives the best error.
			place, err := p.App.FindDaemon(s.cfg.Path)
			if err != nil {
				place = s.endpoint
			}
			place.Profile = profile
			if superset != nil { // a client with these variables starts the next one
				if c := dialSoon(ctx, *superset, daemon.KindMCP, supersetAttempts); c != nil {
					last.Store(superset)
					return c, nil
				}
			}
			c, err := daemon.DialOrStart(ctx, place, daemon.KindMCP, exe, args, nil)
			superset = nil
			if err != nil {
				return nil, err
			}
			// A later daemon may be a newer build, which replaced this one on disk.
			if c.OtherBuild != nil && last.Load() == nil {
				p.App.Warn("%v; it serves this client until you run \"%s\"", c.OtherBuild, p.App.CommandLine("stop"))
			}
			last.Store(&c.Endpoint)
			if c.Endpoint.Socket != place.Socket {
				superset = &c.Endpoint
			}
			return c.UnixConn, nil
		},
		In: in, Out: out, Frame: s.cfg.Gateway.Limits.Frame, Logger: slog.New(lines),
	})
	if err != nil {
		return cli.Fail(cli.CodeConnect, "%w; \"goblin stdio --standalone\" works without a daemon", err)
	}
	return nil
}

func runWith(ctx context.Context, i *stack.Stack, use func(ctx context.Context) error) error {
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	using, leave := context.WithCancel(ctx)
	defer leave()
	defer context.AfterFunc(i.Stopping(), leave)() // the daemon was stopped
	ended := make(chan error, 1)
	go func() { ended <- i.Run(running) }()
	err := use(using)
	stop()
	return errors.Join(err, <-ended)
}

func hasProfile(cfg *config.Config, profile string) error {
	if _, ok := cfg.Profile(profile); !ok && profile != "" {
		return cli.Fail(cli.CodeConfig, "no profile %q%s", profile, cfg.SuggestProfile(profile))
	}
	return nil
}

// Serve runs the daemon in the foreground without a UI. listen is the HTTP address; ""
// means the config's. profile applies to HTTP clients without a profile in their URL.
// record is the folder of a recording, or "".
func (p *Process) Serve(ctx context.Context, listen, profile, record string) error {
	s, err := p.prepare(p.App.Load, logToStderr)
	if err != nil {
		return err
	}
	defer s.close()
	if err := hasProfile(s.cfg, profile); err != nil {
		return err
	}
	by := ""
	switch {
	case listen != "":
		by = "--listen"
	case s.cfg.Gateway.Listen != "":
		listen, by = s.cfg.Gateway.Listen, "gateway.listen"
	default:
		listen = DefaultListen
	}
	if missing := s.cfg.Gateway.NoToken; missing.Text != "" {
		return &config.Errors{Problems: []config.Problem{missing}}
	}
	if err := config.CheckListen(listen, s.cfg.Gateway.AuthToken); err != nil {
		return cli.Fail(cli.CodeConfig, "%w", err)
	}
	h, err := p.daemon(s, func(o *stack.Options) {
		o.Listen, o.ListenSource, o.HTTPRequired, o.Profile, o.Record = listen, by, true, profile, record
		o.Rules = p.Rules
	})
	var other *daemon.RunningError
	switch {
	case errors.As(err, &other):
		return fmt.Errorf("a daemon for this config is already running (pid %d); stop it with \"%s\"", other.PID, p.App.CommandLine("stop"))
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%w; choose another address with --listen", err)
	case err != nil:
		return err
	}
	p.onHangup(h.ReloadNow)
	p.App.Warn("serving %s (pid %d); press Ctrl-C to stop", h.Address(), os.Getpid())
	return h.Run(ctx)
}

// Background runs the daemon without a terminal, for the config or the demo. A running
// daemon is not an error.
func (p *Process) Background(ctx context.Context, demo bool) error {
	load := p.App.Load
	if demo {
		load = func() (*config.Config, error) { return p.App.LoadFile("") }
	}
	s, err := p.prepare(load, logToFile)
	if err != nil {
		return err
	}
	defer s.close()
	h, err := p.daemon(s, func(o *stack.Options) {
		o.Linger = max(s.cfg.Gateway.Linger, time.Nanosecond) // 0 would mean forever
	})
	if _, ok := errors.AsType[*daemon.RunningError](err); ok {
		return nil // several clients started one at once
	}
	if err != nil {
		return err
	}
	p.onHangup(h.ReloadNow)
	return h.Run(ctx)
}
