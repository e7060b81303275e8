package command

import (
	"cmp"
	"context"
	"strings"
	"time"

	"goblin/registry"
)

// A command waits silently for terminalDelay on a terminal, otherwise for longDelay. It
// repeats the report every longDelay, because downloads may take minutes.
const (
	terminalDelay = 2 * time.Second
	longDelay     = 10 * time.Second
)

// reportWhileWaiting reports slow servers until stop is called, which may happen several
// times.
func (a *App) reportWhileWaiting(ctx context.Context, g Gateway) (stop func()) {
	return a.whileWaiting(ctx, func(ctx context.Context) { a.reportWaiting(ctx, g) })
}

// whileWaiting calls report after each delay until stop is called, which may happen several
// times. stop waits for the last report.
func (a *App) whileWaiting(ctx context.Context, report func(ctx context.Context)) (stop func()) {
	after := a.waitDelay()
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ; ; after = longDelay {
			select {
			case <-ctx.Done():
				return
			case <-time.After(after):
			}
			report(ctx)
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

func (a *App) waitDelay() time.Duration {
	usual := longDelay
	if a.ErrTTY {
		usual = terminalDelay
	}
	return cmp.Or(a.testDelay, usual)
}

func (a *App) reportWaiting(ctx context.Context, g Gateway) {
	status, err := g.Status(ctx)
	if err != nil {
		return // the caller gets the same error
	}
	var names []string
	for _, s := range status.Servers {
		switch registry.State(s.State) {
		case registry.StateConnecting, registry.StateRetrying:
			names = append(names, s.Name)
		}
	}
	if len(names) > 0 && ctx.Err() == nil {
		a.Warn("waiting for %s …", strings.Join(names, ", "))
	}
}
