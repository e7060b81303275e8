package command

import (
	"context"
	"strings"
	"time"

	"goblin/registry"
)

// patience is how long a terminal is silent about what it waits for.
const patience = 2 * time.Second

// waiting tells a terminal, once, which servers it is that an answer waits for.
// The function it returns ends the watch, and may be called again.
func (a *App) waiting(ctx context.Context, g Gateway) (stop func()) {
	if !a.ErrTTY {
		return func() {}
	}
	after := a.patience
	if after == 0 {
		after = patience
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-ctx.Done():
			return
		case <-time.After(after):
		}
		status, err := g.Status(ctx)
		if err != nil {
			return // whoever asks will be told
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
	}()
	return func() {
		cancel()
		<-done
	}
}
