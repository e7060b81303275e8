//go:build e2e

package eras

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

func TestHumanMayTakeLongerThanEveryLimit(t *testing.T) {
	e2e.EachCombination(t, func(t *testing.T, w *e2e.World, x e2e.Combination) {
		x.Backend(w, e2e.Obj{"tools": []e2e.Obj{e2e.Tool("ask")}, "on": e2e.Obj{"tools/call ask": e2e.Actions(
			e2e.Do("request", e2e.Obj{"method": "elicitation/create", "params": e2e.Form}), e2e.Do("answers"),
		)}}, e2e.Obj{"timeout": "3s"})
		c := x.Client(w, e2e.Obj{"elicitation": e2e.Obj{}}, 4*time.Second, func(string, json.RawMessage) any { return e2e.Accepted })
		end := c.Call("tools/call", e2e.Obj{"name": "b_ask"})
		require.Nil(t, end.Error, "%s", end.Raw)
		require.Contains(t, e2e.Str(end.Result, "content", 0, "text"), "Alice", "%s", end.Raw)
	})
}

func TestHumanMayTakeLongerThanTheTimeout(t *testing.T) {
	eachModern(t, func(t *testing.T, w *e2e.World, kind string) {
		w.Gateway["limits"] = e2e.Obj{"in_flight": 1}
		w.ModernBackend(kind, e2e.Obj{"tools": []e2e.Obj{e2e.Tool("ask"), e2e.Tool("quick")}, "on": e2e.Obj{
			"tools/call ask": e2e.Actions(e2e.Obj{"do": "request", "method": "elicitation/create", "params": e2e.Obj{"message": "?"}}, e2e.Do("answers")),
		}}, e2e.Obj{"timeout": "2s"})
		c := w.Pipe("stdio", "--standalone")
		c.Caps = e2e.Obj{"elicitation": e2e.Obj{}}
		c.Init()
		id := c.Begin("tools/call", e2e.Obj{"name": "b_ask"})
		ask := c.WaitAsks(1)
		over := c.Holds(3*time.Second, func() bool { return len(c.Replies[id]) > 0 })
		require.False(t, over, "the timeout is paused while a user is asked")
		c.Ok("tools/call", e2e.Obj{"name": "b_quick"}) // in the slot that the other call has released
		c.Write(e2e.Marshal(e2e.Obj{"jsonrpc": "2.0", "id": ask.ID, "result": e2e.Obj{"action": "accept", "content": e2e.Obj{}}}))
		m := c.End(id)
		require.Nil(t, m.Error, m.Raw)
		require.Contains(t, m.Raw, "accept")
	})
}
