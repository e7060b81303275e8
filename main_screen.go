package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"goblin/gateway/command"
	"goblin/gateway/config"
	"goblin/gateway/host"
	"goblin/gateway/instance"
)

// attempts bound how often a host is looked for that ends while it is asked.
const attempts = 50

// screen is Goblin on a terminal: the host of its config, or a look at it.
func (m *modes) screen(ctx context.Context) error {
	cfg, place, err := m.find()
	if err != nil {
		return err
	}
	file, err := host.OpenLog(place)
	if err != nil {
		return err
	}
	defer file.Close()
	// Log lines would run through the summary.
	logger, log, err := m.app.Logger(cfg, file)
	if err != nil {
		return err
	}
	defer log.Close()
	i, status, err := m.become(ctx, cfg, place, logger)
	if err != nil {
		return err
	}
	name := place.Log
	if cfg.Log.File != "" {
		name = cfg.Log.File
	}
	summary := m.summary(m.app.Out, m.app.Columns, cfg, name)
	if i == nil {
		summary.Host(status)
		return nil
	}
	err = together(ctx, i, func(ctx context.Context) error {
		summary.Live(ctx, i)
		return nil
	})
	if err == nil {
		summary.Goodbye()
	}
	return err
}

// both is MCP on stdin and stdout with the summary on a terminal.
func (m *modes) both(ctx context.Context, path string) error {
	tty, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("there is no terminal to show the servers on: %w; name one with --tui-tty, or leave out --tui", err)
	}
	defer tty.Close()
	columns, ok := command.Terminal(tty)
	if !ok {
		return command.Fail(command.CodeUsage, "%s is not a terminal; name one with --tui-tty", path)
	}
	cfg, place, err := m.find()
	if err != nil {
		return err
	}
	logger, log, err := m.app.Logger(cfg, m.app.Err)
	if err != nil {
		return err
	}
	defer log.Close()
	i, status, err := m.become(ctx, cfg, place, logger)
	if err != nil {
		return err
	}
	summary := m.summary(tty, columns, cfg, cfg.Log.File)
	summary.End = "This ends with the client that started it."
	in, out := m.streams()
	if i == nil {
		summary.Host(status)
		return bridge(ctx, cfg, place, logger, in, out)
	}
	err = together(ctx, i, func(ctx context.Context) error {
		ctx, end := context.WithCancel(ctx)
		var shown sync.WaitGroup
		shown.Go(func() { summary.Live(ctx, i) })
		err := i.ServeStdio(ctx, in, out)
		end()
		shown.Wait()
		return err
	})
	if err == nil {
		summary.Goodbye()
	}
	return err
}

func (m *modes) find() (*config.Config, host.Place, error) {
	cfg, err := m.app.Load()
	if err != nil {
		return nil, host.Place{}, err
	}
	place, err := m.app.Place(cfg)
	return cfg, place, err
}

// become makes this process the host. If there is one already, the instance is
// nil and the status is that host's.
func (m *modes) become(ctx context.Context, cfg *config.Config, place host.Place, logger *slog.Logger) (i *instance.Instance, status instance.Status, err error) {
	for range attempts {
		i, err = instance.New(instance.Options{
			Config: cfg, Version: m.app.Version.Version, Logger: logger, Place: &place, HTTP: true,
		})
		var other *host.RunningError
		if !errors.As(err, &other) {
			return i, status, err
		}
		err = host.Control(ctx, place, instance.OpStatus, nil, &status)
		if !errors.Is(err, host.ErrNoHost) {
			return nil, status, err
		}
		// It is ending; its servers may take a while.
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return nil, status, ctx.Err()
		}
	}
	return nil, status, err
}

func (m *modes) summary(w io.Writer, columns int, cfg *config.Config, log string) *command.Summary {
	exe, err := os.Executable()
	if err != nil {
		exe = "" // then it is shown by its name
	}
	return m.app.Summary(w, columns, cfg, exe, log)
}
