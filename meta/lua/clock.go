package lua

import (
	"context"
	"time"

	"goblin/registry"
)

// soonest is the shortest interval between checks for an answer.
const soonest = 20 * time.Millisecond

// limited is ctx that ends with an error when so much time is over. What the
// request of ctx waits for people does not count, see [registry.UserWait].
// release must be called at the end.
func limited(ctx context.Context, limit time.Duration, late error) (_ context.Context, release func()) {
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
			timer.Reset(max(left, soonest))
		}
	}()
	return ctx, func() {
		cancel(context.Canceled)
		<-done
	}
}
