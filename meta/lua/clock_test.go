package lua

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/registry"
)

// waitingRequest is a request that waits for a user from begin to end.
type waitingRequest struct{ begin, end time.Time }

func (a *waitingRequest) Progress(float64, float64, string) {}

func (a *waitingRequest) Client() any { return nil }

func (a *waitingRequest) Catalog() *registry.Snapshot { return nil }

func (a *waitingRequest) UserWait() time.Duration {
	now := time.Now()
	if a.end.Before(now) {
		now = a.end
	}
	return max(0, now.Sub(a.begin))
}

func TestWaitsForPeopleDoNotCount(t *testing.T) {
	t.Parallel()
	errLate := errors.New("late")
	tests := []struct {
		name                     string
		begin, end, limit, after time.Duration
	}{
		{"none are asked", 0, 0, time.Minute, time.Minute},
		{"from the beginning on", 0, time.Hour, time.Minute, time.Hour + time.Minute},
		{"in the middle", 30 * time.Second, time.Hour, time.Minute, time.Hour + 30*time.Second},
		{"before it began", -time.Hour, 0, time.Minute, time.Minute},
		{"with hardly anything left", time.Minute - 1, 2 * time.Minute, time.Minute, 2*time.Minute + 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				now := time.Now()
				a := &waitingRequest{now.Add(tt.begin), now.Add(tt.end)}
				ctx, release := withTimeout(registry.WithRequest(context.Background(), a), tt.limit, errLate)
				defer release()
				<-ctx.Done()
				require.Equal(t, errLate, context.Cause(ctx))
				require.GreaterOrEqual(t, time.Since(now), tt.after)
				require.LessOrEqual(t, time.Since(now), tt.after+minCheckInterval)
			})
		})
	}
}
