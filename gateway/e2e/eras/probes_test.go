//go:build e2e

package eras

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

func TestOnlyTheFirstStartOfALegacyBackendBeginsWithAProbe(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("b", e2e.Obj{"era": "mute", "tools": []e2e.Obj{e2e.Tool("t")}})
	c := w.Standalone()
	require.Len(t, c.Names("tools"), 1)
	b.Do(e2e.Do("crash"))
	b.WaitStarts(2)
	b.WaitReceived("initialize", 2)
	first := map[any]string{}
	for _, e := range b.Received("") {
		if first[e.Proc.Start] == "" {
			first[e.Proc.Start] = e.Method
		}
	}
	require.ElementsMatch(t, []string{"server/discover", "initialize"}, slices.Collect(maps.Values(first)))
}

func TestBackendThatDiesOfTheProbeIsStartedAgainAtOnce(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}, "on": e2e.Obj{"server/discover": e2e.Actions(e2e.Do("crash"))}},
		e2e.Obj{"env": e2e.Obj{"GORACE": "atexit_sleep_ms=0"}}) // also at once with the race detector
	c := w.Standalone()
	require.Equal(t, []string{"b_t"}, c.Names("tools"), "the first list waits for it")
	require.Equal(t, 2, b.Starts())
}

func TestModernBackendIsAskedForTheOtherEraOnceOnly(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	atOnce := e2e.Obj{"env": e2e.Obj{"GORACE": "atexit_sleep_ms=0"}}
	w.Backend("refuses", e2e.Obj{"era": "modern", "tools": []e2e.Obj{e2e.Tool("t")}}, atOnce)
	w.Backend("crashes", e2e.Obj{ // in an era whose probe it answers
		"era": "discreet", "tools": []e2e.Obj{e2e.Tool("t")}, "on": e2e.Obj{"initialize": e2e.Actions(e2e.Do("crash"))},
	}, atOnce)
	c := w.Standalone()
	require.Equal(t, []string{"crashes_t", "refuses_t"}, c.Names("tools"), "the first list waits for them")
	for _, b := range w.Backends {
		before := b.Starts()
		b.Do(e2e.Do("crash"))
		b.WaitStarts(before + 1)
		b.WaitReceived("subscriptions/listen", 2)
		require.Equal(t, 1, b.Count("initialize"), b.Name)
	}
}

func TestSlowModernBackendIsRecognised(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.ModernBackend("stdio", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}, "on": e2e.Obj{"server/discover": e2e.Actions(e2e.Do("delay", e2e.Obj{"ms": 1300}))}})
	c := w.Standalone()
	require.Equal(t, []string{"b_t"}, c.Names("tools"))
	require.Equal(t, 1, b.Count("initialize"), "tried meanwhile, and refused")
}

func TestBackendOfUnknownRevisionsOnlyIsNamed(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	refuses := e2e.Actions(e2e.Do("error", e2e.Obj{"error": json.RawMessage(`{"code":-32022,"message":"no","data":{"supported":["2031-01-01"],"requested":"2026-07-28"}}`)}))
	w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}, "on": e2e.Obj{"server/discover": refuses, "initialize": refuses}})
	c := w.Standalone()
	require.Empty(t, c.Names("tools"))
	require.Contains(t, c.ReadText("goblin://servers"), "2031-01-01")
}

// A server may refuse its first request, regardless of the method.
func TestModernBackendThatRefusesTheProbeIsAskedAgain(t *testing.T) {
	eachModern(t, func(t *testing.T, w *e2e.World, kind string) {
		b := w.ModernBackend(kind, e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}, "on": e2e.Obj{"server/discover": e2e.Actions(
			e2e.Obj{"do": "error", "times": 1, "error": json.RawMessage(`{"code":-32022,"message":"no","data":{"supported":["2026-07-28"],"requested":"x"}}`)},
		)}})
		c := w.Standalone()
		require.Equal(t, "b:t:{}", c.CallText("b_t", e2e.Obj{}))
		asked := b.Received("server/discover")
		require.Len(t, asked, 2)
		require.Equal(t, `"2026-07-28"`, e2e.ProtocolMeta(asked[1], "protocolVersion"))
		if kind == "http" {
			require.Zero(t, b.Count("initialize"))
		}
	})
}
