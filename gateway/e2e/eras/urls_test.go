//go:build e2e

package eras

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

func TestURLThatAModernBackendWantsOpenedHasAnIdAndIsCompleted(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.ModernBackend("stdio", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("ask")}, "on": e2e.Obj{
		"tools/call ask": e2e.Actions(e2e.Obj{"do": "request", "method": "elicitation/create", "params": e2e.Obj{"mode": "url", "url": "https://x.example/", "message": "go"}}),
	}})
	c := w.Pipe("stdio", "--standalone")
	c.Caps = e2e.Obj{"elicitation": e2e.Obj{"url": e2e.Obj{}}}
	c.Reply = func(e2e.Message) (any, any) { return e2e.Obj{"action": "accept"}, nil }
	c.Init()
	c.Ok("tools/call", e2e.Obj{"name": "b_ask"})
	id := e2e.Str(c.Asks[0].Params, "elicitationId")
	require.NotEmpty(t, id)
	done := c.WaitNote("notifications/elicitation/complete", nil)
	require.Equal(t, id, e2e.Str(done.Params, "elicitationId"))
}

func TestURLThatMustBeOpenedPassesInEveryCombination(t *testing.T) {
	e2e.EachCombination(t, func(t *testing.T, w *e2e.World, x e2e.Combination) {
		params := e2e.Obj{"mode": "url", "url": "https://x.example/", "message": "m"}
		const complete = "notifications/elicitation/complete"
		if !x.ModernBackend() {
			params["elicitationId"] = "e1"
		}
		b := x.Backend(w, e2e.Obj{"tools": []e2e.Obj{e2e.Tool("login")}, "on": e2e.Obj{"tools/call login": e2e.Actions(
			e2e.Do("request", e2e.Obj{"method": "elicitation/create", "params": params}), e2e.Do("answers"),
		)}})
		var ids []string
		action := "accept"
		c := x.Client(w, e2e.Obj{"elicitation": e2e.Obj{"url": e2e.Obj{}}}, 0, func(_ string, params json.RawMessage) any {
			require.Equal(t, "https://x.example/", e2e.Str(params, "url"))
			ids = append(ids, e2e.Str(params, "elicitationId"))
			return e2e.Obj{"action": action}
		})
		end := c.Call("tools/call", e2e.Obj{"name": "b_login"})
		require.Nil(t, end.Error, "%s", end.Raw)
		require.Contains(t, e2e.Str(end.Result, "content", 0, "text"), "accept")
		if !x.ModernBackend() {
			b.Do(e2e.Do("notify", e2e.Obj{"method": complete, "params": e2e.Obj{"elicitationId": "e1"}}))
		}
		if x.ModernClient() {
			require.Equal(t, []string{""}, ids, "the revision has no ids")
			c.Ok("tools/call", e2e.Obj{"name": "b_login", "_meta": e2e.Obj{"k": 1}}) // other requests would have arrived already
			require.Empty(t, c.NotesOf(complete))
			return
		}
		require.NotEmpty(t, ids[0])
		done := c.WaitNote(complete, nil)
		require.Equal(t, ids[0], e2e.Str(done.Params, "elicitationId"))
		if !x.ModernBackend() {
			return
		}
		require.Less(t, done.Seq, end.Seq, "on the stream of the call, before its answer")

		// A page that was not opened is not completed.
		action = "decline"
		require.Nil(t, c.Call("tools/call", e2e.Obj{"name": "b_login"}).Error)
		require.Len(t, c.NotesOf(complete), 1)
	})
}

func TestURLDemandedByAnErrorPassesToEveryClient(t *testing.T) {
	e2e.EachCombination(t, func(t *testing.T, w *e2e.World, x e2e.Combination) {
		if x.ModernBackend() {
			t.Skip("the revision has no such error")
		}
		b := x.Backend(w, e2e.Obj{"tools": []e2e.Obj{e2e.Tool("login")}, "on": e2e.Obj{"tools/call login": e2e.Actions(e2e.Do("error", e2e.Obj{"times": 1, "error": e2e.Obj{
			"code": -32042, "message": "log in first",
			"data": e2e.Obj{"elicitations": []e2e.Obj{{"mode": "url", "elicitationId": "e1", "url": "https://x.example", "message": "m"}}},
		}}), e2e.Do("text", e2e.Obj{"text": "welcome"}))}})
		c := x.Client(w, e2e.Obj{"elicitation": e2e.Obj{"url": e2e.Obj{}}}, 0, func(_ string, params json.RawMessage) any {
			require.JSONEq(t, `{"mode":"url","url":"https://x.example","message":"m"}`, string(params))
			return e2e.Obj{"action": "accept"}
		})
		end := c.Call("tools/call", e2e.Obj{"name": "b_login"})
		done := e2e.Do("notify", e2e.Obj{"method": "notifications/elicitation/complete", "params": e2e.Obj{"elicitationId": "e1"}})
		if x.ModernClient() {
			require.Contains(t, end.Raw, "welcome")
			b.Do(done)
			c.Ok("tools/list", e2e.Obj{})
			require.Empty(t, c.NotesOf("notifications/elicitation/complete"))
			return
		}
		require.Equal(t, -32042, e2e.ParseError(t, end).Code)
		b.Do(done)
		require.Equal(t, "e1", e2e.Str(c.WaitNote("notifications/elicitation/complete", nil).Params, "elicitationId"))
	})
}
