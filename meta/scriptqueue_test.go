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

type clientRequest struct {
	client any
	in     *registry.Registry
}

func (clientRequest) Progress(float64, float64, string) {}
func (clientRequest) UserWait() time.Duration           { return 0 }
func (c clientRequest) Client() any                     { return c.client }
func (c clientRequest) Catalog() *registry.Snapshot     { return c.in.Load() }

// blockedScripts runs scripts whose only request blocks until release is closed.
type blockedScripts struct {
	t       *testing.T
	r       *registry.Registry
	began   chan any // the client of each request
	release chan struct{}
	running sync.WaitGroup
}

func newBlockedScripts(t *testing.T) *blockedScripts {
	b := &blockedScripts{t: t, r: newExampleCatalog(t), began: make(chan any, 100), release: make(chan struct{})}
	m := newTools(t, meta.Options{Registry: b.r, Lua: lua.Limits{Calls: 1, Timeout: 10 * time.Minute}, Ask: func(ctx context.Context, _ string, _ []byte) ([]byte, error) {
		b.began <- registry.Client(ctx)
		<-b.release
		return []byte(`{"content":[{"type":"text","text":"x"}]}`), nil
	}})
	require.NoError(t, m.Add())
	return b
}

// call runs a script of a client and returns its result.
func (b *blockedScripts) call(ctx context.Context, client any, script string) (string, error) {
	found, err := b.r.ResolveTool("execute_lua")
	if err != nil {
		return "", err
	}
	result, err := found.Local.Tool.Call(registry.WithRequest(ctx, clientRequest{client, b.r}), []byte(script))
	return string(result), err
}

func (b *blockedScripts) run(client any) {
	b.running.Go(func() {
		result, err := b.call(context.Background(), client, `{"script":"return clock.time_in{}"}`)
		if err != nil || result != `{"content":[{"type":"text","text":"x"}]}` {
			b.t.Errorf("%s %v", result, err)
		}
	})
}

// finish releases all scripts and checks the number of waiting ones.
func (b *blockedScripts) finish(waiting int) {
	close(b.release)
	b.running.Wait()
	require.Len(b.t, b.began, waiting)
}

func TestScriptsOfOneClientWaitForEachOtherAndNotForOthers(t *testing.T) {
	t.Parallel()
	b := newBlockedScripts(t)
	const scripts, atOnce = 12, 8
	for range scripts {
		b.run("greedy")
	}
	for range atOnce {
		require.Equal(t, "greedy", <-b.began)
	}
	b.run("other")
	require.Equal(t, "other", <-b.began, "the other scripts of the greedy client wait")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	result, err := b.call(ctx, "greedy", `{"script":"return 1"}`)
	require.NoError(t, err)
	require.Contains(t, result, "context canceled")
	b.finish(scripts - atOnce)
}

// groupedClient is a client that is grouped by its address.
type groupedClient struct{ address, name string }

func (s groupedClient) Group() any { return s.address }

func TestScriptsOfOneClientByManyNamesLeaveRoomForOthers(t *testing.T) {
	t.Parallel()
	b := newBlockedScripts(t)
	const names, atOnce = 50, 48
	for n := range names {
		b.run(groupedClient{"a", string(rune('A' + n))})
	}
	for range atOnce {
		require.Equal(t, "a", (<-b.began).(groupedClient).address)
	}
	for _, other := range []any{groupedClient{"b", "A"}, "session", "session"} {
		b.run(other)
		require.Equal(t, other, <-b.began, "the other scripts of the group wait")
	}
	b.finish(names - atOnce)
}
