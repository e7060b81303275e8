//go:build unix

package upstream

import (
	"context"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/stretchr/testify/require"

	"goblin/gateway/config"
	"goblin/registry"
	"goblin/registry/rawjson"
)

// dualRig returns a server of mcp-go that supports both eras.
func dualRig(t *testing.T, kind string, change func(*rig)) *rig {
	t.Helper()
	cfg, _ := fakeConfig(t, "mcp-go")
	if kind == "http" {
		web := httptest.NewServer(mcpserver.NewStreamableHTTPServer(peer()))
		t.Cleanup(web.Close)
		cfg = config.Server{Name: "files", Type: config.HTTP, TypeSet: true, URL: web.URL + "/mcp"}
	}
	cfg.Isolation = config.Shared
	return start(t, cfg, func(r *rig) {
		inEra(config.BothEras)(r)
		if change != nil {
			change(r)
		}
	}).whole()
}

func (r *rig) modern(unit string) Conn {
	r.t.Helper()
	conn := r.Modern(within(r.t), unit)
	require.NotNil(r.t, conn)
	return conn
}

func TestServerOfBothErasHasASecondConnection(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"stdio", "http"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			r := dualRig(t, kind, nil)
			conn := r.modern("")
			require.NotSame(t, r.up(), conn)
			require.Same(t, conn, r.modern(""), "it is kept")
			require.Equal(t, Modern, conn.Info().Era)
			require.True(t, conn.Info().SecondEra)
			require.Equal(t, Legacy, r.up().Info().Era)
			require.False(t, r.up().Info().SecondEra)
			require.Equal(t, "legacy", r.cat.state().Era, "the state belongs to the first")

			got, err := do(conn, &Call{Method: "tools/call", Params: toolParams("greet", ""), ForwardInput: true})
			require.NoError(t, err)
			require.Contains(t, got, `"resultType":"input_required"`)
			got, err = do(conn, &Call{
				Method: "tools/call", Params: toolParams("greet", `,"requestState":"stray"`), ForwardInput: true,
				InputResponses: []byte(`{"name":{"action":"decline"}}`), RequestState: []byte(`"kept"`),
			})
			require.NoError(t, err)
			require.Contains(t, got, "decline")
			require.Contains(t, got, "kept")

			_, err = r.call(conn, "grow")
			require.NoError(t, err)
			r.until("the tools of the second", func() bool { return len(r.cat.list(registry.Tool)) == 4 })
			conn.Close()
			if kind == "stdio" { // and the first has not
				r.until("the tools of the first", func() bool { return len(r.cat.list(registry.Tool)) == 3 })
			}
			again := r.modern("")
			require.NotSame(t, conn, again, "waits for the next connection")
			_, err = r.call(r.up(), "steps")
			require.NoError(t, err)
			require.Zero(t, r.cat.state().Restarts)
		})
	}
}

func TestAnnouncedListIsTellingEvenIfItIsTheSame(t *testing.T) {
	t.Parallel()
	announced := make(chan registry.Kind, 100)
	r := dualRig(t, "stdio", func(r *rig) {
		r.opt.Hooks.ListChanged = func(_ string, k registry.Kind) { announced <- k }
	})
	require.Empty(t, announced, "the first fetch was not announced")
	for range 2 { // mcp-go announces an existing tool
		_, err := r.call(r.up(), "grow")
		require.NoError(t, err)
		require.Equal(t, registry.Tool, <-announced)
	}
}

// Calls over the first connection wait for its own list, even if the catalog has the list
// of the second.
func TestTheFirstConnectionListsForItsCallsBesideTheSecond(t *testing.T) {
	t.Parallel()
	r := dualRig(t, "stdio", func(r *rig) {
		r.opt.Digests = func(_ registry.Kind, items [][]byte) map[string]string {
			digests := make(map[string]string)
			for _, item := range items {
				name := rawjson.GetString(item, "name")
				digests[name] = "digest"
			}
			return digests
		}
	})
	first := r.up()
	require.NoError(t, r.AwaitTools(within(t), first))
	_, current := r.Digest(first, "greet")
	require.True(t, current)
	_, err := r.call(r.modern(""), "grow")
	require.NoError(t, err)
	r.until("the tools of the second", func() bool { return len(r.cat.list(registry.Tool)) == 4 })

	r.relist(first.(*link)) // as after lost notifications
	require.NoError(t, r.AwaitTools(within(t), first))
	digest, current := r.Digest(first, "greet")
	require.Equal(t, "digest", digest)
	require.False(t, current, "the catalog has another list")
	digest, _ = r.Digest(first, "grown")
	require.Empty(t, digest)
	require.Len(t, r.cat.list(registry.Tool), 4)
}

func TestSecondConnectionIsOfItsUnit(t *testing.T) {
	t.Parallel()
	cfg, _ := fakeConfig(t, "mcp-go")
	cfg.Isolation = config.PerSession
	r := start(t, cfg, inEra(config.BothEras)).whole()
	a, b := r.modern("a"), r.modern("b")
	require.NotSame(t, a, b)
	require.Equal(t, "a", a.Unit())
	require.Len(t, r.pids(), 3)
	r.CloseUnit("a")
	<-a.Done()
	require.NoError(t, b.Err())
	_ = unitConn(r, "b")
	require.Len(t, r.pids(), 3, "the first unit takes the connection of the catalog")
}

func TestSecondConnectionGoesWithTheServer(t *testing.T) {
	t.Parallel()
	r := dualRig(t, "stdio", nil)
	for what, change := range map[string]func(){
		"restart": func() { require.NoError(t, r.Restart()) },
		"disable": func() { r.SetEnabled(false) },
	} {
		first, second := r.up(), r.modern("")
		change()
		<-second.Done()
		<-first.Done()
		r.until("the end of its process", func() bool { return slices.Equal(r.h.downs(), []string{"", ""}) })
		r.h.forget()
		if what == "disable" {
			require.Nil(t, r.Modern(within(t), ""))
			r.SetEnabled(true)
		}
		r.until("both again", func() bool { return r.Modern(within(t), "") != nil })
		require.NoError(t, r.up().Err())
	}
}

func TestWhereThereIsNoSecondConnectionNobodyWaits(t *testing.T) {
	t.Parallel()
	for mode, change := range map[string]func(*rig){
		"":       nil, // legacy era only
		"mcp-go": inEra(config.ModernEra),
	} {
		t.Run(fmt.Sprintf("%q", mode), func(t *testing.T) {
			t.Parallel()
			r := startFake(t, mode, change).whole()
			require.Nil(t, r.Modern(within(t), ""))
			require.Len(t, r.pids(), 1)
		})
	}
	t.Run("one that hangs", func(t *testing.T) {
		t.Parallel()
		r := startFake(t, "dual-hang", func(r *rig) { r.cfg.Era, r.tune.modernWait = config.BothEras, 50*time.Millisecond }).whole()
		require.Nil(t, r.Modern(within(t), ""))
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		require.Nil(t, r.Modern(ended, ""))
		r.until("the second process", func() bool { return len(r.pids()) == 2 })
	})
	t.Run("one that fails", func(t *testing.T) {
		t.Parallel()
		r := startFake(t, "dual-fail", inEra(config.BothEras)).whole()
		require.Nil(t, r.Modern(within(t), ""))
		require.Nil(t, r.Modern(within(t), ""), "the first serves during the attempts")
		require.NoError(t, r.up().Err())
	})
	t.Run("one that has left the era", func(t *testing.T) {
		t.Parallel()
		r := startFake(t, "dual-leave", inEra(config.BothEras)).whole()
		require.Nil(t, r.Modern(within(t), ""))
		require.Nil(t, r.Modern(within(t), ""))
		r.until("its end", func() bool { return strings.Count(r.received(), "server/discover") == 2 })
		require.Len(t, r.pids(), 2, "it is not tried again")
	})
}
