package lua

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/registry"
)

// asked is a request that waits for people while thinking is set.
type asked struct {
	thinking atomic.Bool
	begin    time.Time
}

func (a *asked) Progress(float64, float64, string) {}

func (a *asked) Client() string { return "" }

func (a *asked) Catalog() *registry.Snapshot { return nil }

func (a *asked) Waited() time.Duration {
	if a.thinking.Load() {
		return time.Since(a.begin)
	}
	return 0
}

func TestWaitsForPeopleDoNotCount(t *testing.T) {
	t.Parallel()
	errLate := errors.New("late")
	a := &asked{begin: time.Now()}
	a.thinking.Store(true)
	ctx, release := limited(registry.WithRequest(context.Background(), a), 30*time.Millisecond, errLate)
	defer release()
	select {
	case <-ctx.Done():
		t.Fatal("ended while people were asked")
	case <-time.After(200 * time.Millisecond):
	}
	a.thinking.Store(false)
	<-ctx.Done()
	require.True(t, errors.Is(context.Cause(ctx), errLate))
}
