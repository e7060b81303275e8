package lua

import (
	"context"
	"time"

	"goblin/registry"
)

// minCheckInterval is the minimum interval between checks for an answer.
const minCheckInterval = 20 * time.Millisecond

// withTimeout returns a ctx that is cancelled with the error late after limit. Time spent
// waiting for the user does not count, see [registry.UserWait]. Callers must call
// release.
func withTimeout(ctx context.Context, limit time.Duration, late error) (_ context.Context, release func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	begin, before := time.Now(), registry.UserWait(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		timer := time.NewTimer(limit)
		defer timer.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-timer.C:
			}
			left := limit - time.Since(begin) + registry.UserWait(ctx) - before
			if left <= 0 {
				cancel(late)
				return
			}
			timer.Reset(max(left, minCheckInterval))
		}
	}()
	return ctx, func() {
		cancel(context.Canceled)
		<-done
	}
}
