package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"syscall"

	"goblin/gateway/cli"
	"goblin/gateway/config"
	"goblin/gateway/replay"
	"goblin/gateway/stack"
	"goblin/registry"
)

// Replay selects a recording whose servers answer instead of real ones.
type Replay struct {
	Recording string // a file or folder; "" replays none
	Fast      bool   // without the recorded waits
	Rules     string // a file of rules, or ""
	Missing   string // "fail" or "pass"
}

// Values of [Replay.Missing].
const (
	MissingFails  = "fail" // requests that were not recorded fail
	MissingPasses = "pass" // the config's real servers answer them
)

// replaying returns a gateway over a recording. It has no socket, and no state files
// except for disabled entries if real servers may get requests.
func (p *Process) replaying(r Replay, profile string, change func(*stack.Options)) (*stack.Stack, io.Closer, error) {
	if r.Rules != "" {
		if _, err := replay.ReadRules(r.Rules); err != nil {
			return nil, nil, err
		}
	}
	setup := replay.Setup{Recording: r.Recording, Fast: r.Fast, Rules: r.Rules}
	var err error
	if setup.Program, err = os.Executable(); err != nil {
		return nil, nil, fmt.Errorf("find this program: %w", err)
	}
	toggles := ""
	if r.Missing == MissingPasses {
		if setup.Real, err = p.App.Load(); err != nil {
			return nil, nil, err
		}
		toggles = p.App.TogglesPath(setup.Real)
	}
	cfg, err := replay.NewConfig(setup)
	if err != nil {
		return nil, nil, err
	}
	if err := hasProfile(cfg, profile); err != nil {
		return nil, nil, err
	}
	p.App.MaskSecrets(cfg)
	logger, log, err := p.App.Logger(cfg, p.App.Err)
	if err != nil {
		return nil, nil, err
	}
	o := stack.Options{Config: cfg, Version: p.App.Version.Version, Logger: logger, Mask: p.App.Mask(), Toggles: toggles, Resolve: p.App.Secrets().Resolve, Extend: p.Extend}
	if change != nil {
		change(&o)
	}
	i, err := stack.New(o)
	if err != nil {
		return nil, nil, errors.Join(err, log.Close())
	}
	return i, log, nil
}

// ReplayStdio serves one client from a recording.
func (p *Process) ReplayStdio(ctx context.Context, r Replay, profile string) error {
	i, log, err := p.replaying(r, profile, nil)
	if err != nil {
		return err
	}
	defer log.Close() //nolint:errcheck // there is no place to report it
	in, out := p.Streams()
	return runWith(ctx, i, func(ctx context.Context) error {
		defer p.showStderr(i)()
		return i.ServeStdio(ctx, profile, in, out)
	})
}

// ReplayHTTP serves clients over HTTP from a recording, at [DefaultListen] if listen is
// "".
func (p *Process) ReplayHTTP(ctx context.Context, r Replay, listen, profile string) error {
	source := "--listen"
	if listen == "" {
		listen, source = DefaultListen, ""
	}
	if err := config.CheckListen(listen, ""); err != nil {
		return cli.Fail(cli.CodeConfig, "%w", err)
	}
	i, log, err := p.replaying(r, profile, func(o *stack.Options) {
		o.HTTP, o.Listen, o.ListenSource, o.HTTPRequired, o.Profile = true, listen, source, true, profile
	})
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%w; choose another address with --listen", err)
	case err != nil:
		return err
	}
	defer log.Close() //nolint:errcheck // there is no place to report it
	defer p.showStderr(i)()
	p.App.Warn("replaying at %s (pid %d); press Ctrl-C to stop", i.Address(), os.Getpid())
	return i.Run(ctx)
}

// showStderr prints the stderr of replayed servers, which report requests that were not
// recorded, until stop is called.
func (p *Process) showStderr(i *stack.Stack) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var printing sync.WaitGroup
	printing.Go(func() {
		changes := i.Registry().Watch(ctx, registry.Logs)
		next := uint64(1)
		for open := true; open; {
			for _, line := range i.Registry().Logs().Window(next, -1) {
				next = line.Seq + 1
				if line.Source == registry.SourceStderr {
					p.App.Warn("%s: %s", line.Server, line.Text)
				}
			}
			_, open = <-changes
		}
	})
	return func() {
		cancel()
		printing.Wait()
	}
}

// ReplayServer serves one recorded server on stdin and stdout.
func (p *Process) ReplayServer(ctx context.Context, r Replay, server string) error {
	var rules *replay.Rules
	if r.Rules != "" {
		var err error
		if rules, err = replay.ReadRules(r.Rules); err != nil {
			return err
		}
	}
	s, err := replay.Load(r.Recording, server, rules)
	if err != nil {
		return err
	}
	defer s.Close() //nolint:errcheck // removes a temporary file
	in, out := p.Streams()
	o := replay.Options{In: in, Out: out, Fast: r.Fast, Log: slog.New(slog.NewTextHandler(p.App.Err, &slog.HandlerOptions{ReplaceAttr: withoutTime}))}
	if r.Missing == MissingPasses {
		cfg, err := p.App.Load()
		if err != nil {
			return err
		}
		var real *replay.RealServer
		o.Connect = func(ask replay.AskFunc) (replay.Real, error) {
			found, err := replay.ConnectReal(ctx, replay.RealOptions{
				Config: cfg, Server: server, Version: p.App.Version.Version, Logins: p.App.LoginsDir(), Resolve: p.App.Secrets().Resolve,
				Log: o.Log, Ask: ask,
			})
			real = found
			return found, err
		}
		defer func() {
			if real != nil {
				real.Close()
			}
		}()
	}
	return s.Serve(ctx, o)
}

func withoutTime(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && a.Key == slog.TimeKey {
		return slog.Attr{} // the journal of the gateway has it
	}
	return a
}
