package meta_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/meta"
	"goblin/meta/lua"
	"goblin/registry"
)

// clientRequest is a request of a client.
type clientRequest struct {
	client any
	in     *registry.Registry
}

func (clientRequest) Progress(float64, float64, string) {}
func (clientRequest) Waited() time.Duration             { return 0 }
func (c clientRequest) Client() any                     { return c.client }
func (c clientRequest) Catalog() *registry.Snapshot     { return c.in.Load() }

func TestScriptsOfOneClientWaitForEachOtherAndNotForOthers(t *testing.T) {
	t.Parallel()
	r := newExampleCatalog(t)
	began, goOn := make(chan any, 100), make(chan struct{})
	m := newTools(t, meta.Options{Registry: r, Lua: lua.Limits{Calls: 1, Timeout: time.Minute}, Ask: func(ctx context.Context, _ string, _ []byte) ([]byte, error) {
		began <- registry.Client(ctx)
		<-goOn
		return []byte(`{"content":[{"type":"text","text":"x"}]}`), nil
	}})
	require.NoError(t, m.Add())
	found, err := r.ResolveTool("execute_lua")
	require.NoError(t, err)
	var running sync.WaitGroup
	run := func(client any) {
		running.Go(func() {
			ctx := registry.WithRequest(context.Background(), clientRequest{client, r})
			result, err := found.Local.Tool.Call(ctx, []byte(`{"script":"return clock.time_in{}"}`))
			if err != nil || string(result) != `{"content":[{"type":"text","text":"x"}]}` {
				t.Errorf("%s %v", result, err)
			}
		})
	}
	const more = 12
	for range more {
		run("greedy")
	}
	for range 8 {
		require.Equal(t, "greedy", <-began)
	}
	run("other")
	require.Equal(t, "other", <-began, "the rest of the greedy one's wait")
	ctx, cancel := context.WithCancel(registry.WithRequest(context.Background(), clientRequest{"greedy", r}))
	cancel()
	result, err := found.Local.Tool.Call(ctx, []byte(`{"script":"return 1"}`))
	require.NoError(t, err)
	require.Contains(t, string(result), "context canceled")
	close(goOn)
	running.Wait()
	require.Len(t, began, more-8)
}

// groupedClient is a client that belongs to a group by its address.
type groupedClient struct{ address, name string }

func (s groupedClient) Group() any { return s.address }

func TestScriptsOfOneClientByManyNamesLeaveRoomForOthers(t *testing.T) {
	t.Parallel()
	r := newExampleCatalog(t)
	began, goOn := make(chan any, 100), make(chan struct{})
	m := newTools(t, meta.Options{Registry: r, Lua: lua.Limits{Calls: 1, Timeout: 10 * time.Minute}, Ask: func(ctx context.Context, _ string, _ []byte) ([]byte, error) {
		began <- registry.Client(ctx)
		<-goOn
		return []byte(`{"content":[{"type":"text","text":"x"}]}`), nil
	}})
	require.NoError(t, m.Add())
	found, err := r.ResolveTool("execute_lua")
	require.NoError(t, err)
	var running sync.WaitGroup
	run := func(client any) {
		running.Go(func() {
			ctx := registry.WithRequest(context.Background(), clientRequest{client, r})
			if _, err := found.Local.Tool.Call(ctx, []byte(`{"script":"return clock.time_in{}"}`)); err != nil {
				t.Error(err)
			}
		})
	}
	const names, most = 50, 48
	for n := range names {
		run(groupedClient{"a", string(rune('A' + n))})
	}
	for range most {
		require.Equal(t, "a", (<-began).(groupedClient).address)
	}
	for _, other := range []any{groupedClient{"b", "A"}, "session", "session"} {
		run(other)
		require.Equal(t, other, <-began, "the rest of its scripts wait")
	}
	close(goOn)
	running.Wait()
	require.Len(t, began, names-most)
}
