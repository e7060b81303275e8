package command

import (
	"cmp"
	"context"
	"strings"
	"time"

	"goblin/registry"
)

// A command reports what it waits for after patience on a terminal, otherwise after
// longPatience. It repeats that every longPatience: downloads may take minutes.
const (
	patience     = 2 * time.Second
	longPatience = 10 * time.Second
)

// waiting reports on stderr which servers an answer waits for. The returned function ends
// that and may be called again.
func (a *App) waiting(ctx context.Context, g Gateway) (stop func()) {
	after := a.silence()
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ; ; after = longPatience {
			select {
			case <-ctx.Done():
				return
			case <-time.After(after):
			}
			a.reportWait(ctx, g)
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// silence returns how long a command waits before it reports what it waits for.
func (a *App) silence() time.Duration {
	usual := longPatience
	if a.ErrTTY {
		usual = patience
	}
	return cmp.Or(a.patience, usual)
}

// reportWait names the servers that are starting.
func (a *App) reportWait(ctx context.Context, g Gateway) {
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
