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

func TestEveryQuestionReachesItsClientAndTheAnswerItsServer(t *testing.T) {
	e2e.EachCombination(t, func(t *testing.T, w *e2e.World, x e2e.Combination) {
		ask := e2e.Do("requests", e2e.Obj{"actions": []e2e.Obj{
			{"method": "elicitation/create", "params": e2e.Obj{"message": "who?", "requestedSchema": e2e.Obj{"type": "object"}, "_meta": e2e.Obj{"x.example/q": 1}}},
			{"method": "sampling/createMessage", "params": e2e.Obj{"messages": []e2e.Obj{}, "maxTokens": 1, "temperature": json.RawMessage("0.50")}},
			{"method": "roots/list"},
		}})
		x.Backend(w, e2e.Obj{
			"tools": []e2e.Obj{e2e.Tool("t")}, "prompts": []e2e.Obj{e2e.Prompt("p")}, "resources": []e2e.Obj{e2e.Resource("x:1")},
			"on": e2e.Obj{"tools/call t": e2e.Actions(ask, e2e.Do("answers")), "prompts/get p": e2e.Actions(ask), "resources/read x:1": e2e.Actions(ask)},
		})
		c := x.Client(w, e2e.Obj{"elicitation": e2e.Obj{}, "sampling": e2e.Obj{}, "roots": e2e.Obj{}}, 0, func(method string, params json.RawMessage) any {
			switch method {
			case "elicitation/create":
				require.Equal(t, "1", string(e2e.At(params, "_meta", "x.example/q")))
				return e2e.Obj{"action": "accept", "content": e2e.Obj{"a": 1}, "_meta": e2e.Obj{"x.example/a": 2}}
			case "sampling/createMessage":
				require.Equal(t, "0.50", string(e2e.At(params, "temperature")))
				return e2e.Obj{"role": "assistant", "content": e2e.Obj{"type": "text", "text": "hi"}, "model": "m"}
			}
			return e2e.Obj{"roots": []e2e.Obj{{"uri": "file:///r"}}}
		})
		end := c.Call("tools/call", e2e.Obj{"name": "b_t"})
		require.Nil(t, end.Error, "%s", end.Raw)
		for _, part := range []string{`"a":1`, `"x.example/a":2`, "hi", "file:///r"} {
			require.Contains(t, e2e.Str(end.Result, "content", 0, "text"), part)
		}
		require.Nil(t, c.Call("prompts/get", e2e.Obj{"name": "b/p"}).Error)
		require.Nil(t, c.Call("resources/read", e2e.Obj{"uri": e2e.In("b", "x:1")}).Error)
	})
}

func TestMetaAndTraceContextPassBothWays(t *testing.T) {
	trace := e2e.Obj{
		"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "tracestate": "k=v", "baggage": "a=1",
		"x.example/k": e2e.Obj{"n": json.RawMessage("9007199254740993")},
	}
	e2e.EachCombination(t, func(t *testing.T, w *e2e.World, x e2e.Combination) {
		b := x.Backend(w, e2e.Obj{
			"tools": []e2e.Obj{e2e.Tool("t")}, "prompts": []e2e.Obj{e2e.Prompt("p")}, "resources": []e2e.Obj{e2e.Resource("x:1")},
			"calls": e2e.Obj{"t": e2e.Obj{"content": []e2e.Obj{}, "_meta": trace}},
			"gets":  e2e.Obj{"p": e2e.Obj{"messages": []e2e.Obj{}, "_meta": trace}},
			"reads": e2e.Obj{"x:1": e2e.Obj{"contents": []e2e.Obj{}, "_meta": trace}},
			"on":    e2e.Obj{"tools/call t": e2e.Actions(e2e.Do("notify", e2e.Obj{"method": "notifications/message", "params": e2e.Obj{"level": "error", "data": 1, "_meta": trace}}))},
		})
		c := x.Client(w, e2e.Obj{}, 0, nil)
		for method, params := range map[string]e2e.Obj{
			"tools/call": {"name": "b_t"}, "prompts/get": {"name": "b/p"}, "resources/read": {"uri": e2e.In("b", "x:1")},
		} {
			params["_meta"] = trace
			if method == "tools/call" && x.ModernClient() {
				params["_meta"] = e2e.Obj{e2e.ProtocolPrefix + "logLevel": "error"}
				for k, v := range trace {
					params["_meta"].(e2e.Obj)[k] = v
				}
			}
			result := c.Ok(method, params)
			got := b.WaitReceived(method, 1).Msg
			for k, v := range trace {
				require.JSONEq(t, string(e2e.Marshal(v)), string(e2e.At(got, "params", "_meta", k)), "%s to the server", method)
				require.JSONEq(t, string(e2e.Marshal(v)), string(e2e.At(result, "_meta", k)), "%s to the client", method)
			}
			if !x.ModernBackend() {
				require.JSONEq(t, string(e2e.Marshal(trace)), string(e2e.At(got, "params", "_meta")), "nothing of the protocol's own")
			}
			if !x.ModernClient() {
				require.JSONEq(t, string(e2e.Marshal(trace)), string(e2e.At(result, "_meta")), "nothing of the protocol's own")
			}
		}
		said := c.Noted("notifications/message", nil)
		require.JSONEq(t, string(e2e.Marshal(trace)), string(e2e.At(said.Params, "_meta")))
	})
}

func TestExtensionsThatDoNotPassAreNotDeclared(t *testing.T) {
	e2e.EachCombination(t, func(t *testing.T, w *e2e.World, x e2e.Combination) {
		const extension = "x.example/ext"
		b := x.Backend(w, e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}, "capabilities": e2e.Obj{"tools": e2e.Obj{}, "extensions": e2e.Obj{extension: e2e.Obj{}}}})
		c := x.Client(w, e2e.Obj{"extensions": e2e.Obj{extension: e2e.Obj{}}}, 0, nil)
		if x.ModernClient() {
			require.NotContains(t, string(c.Ok("server/discover", e2e.Obj{})), extension)
		}
		require.NotContains(t, string(c.Greeting), extension)
		c.Ok("tools/call", e2e.Obj{"name": "b_t"})
		if x.ModernClient() && x.ModernBackend() {
			return // what the client says of its request is between the two
		}
		for _, m := range b.Received("") {
			require.NotContains(t, string(m.Msg), extension)
		}
	})
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
			c.Ok("tools/call", e2e.Obj{"name": "b_login", "_meta": e2e.Obj{"k": 1}}) // what would come has come
			require.Empty(t, c.NotesOf(complete))
			return
		}
		require.NotEmpty(t, ids[0])
		done := c.Noted(complete, nil)
		require.Equal(t, ids[0], e2e.Str(done.Params, "elicitationId"))
		if !x.ModernBackend() {
			return
		}
		require.Less(t, done.Seq, end.Seq, "on the stream of the call, before its answer")

		// What was not opened is not completed.
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
		require.Equal(t, "e1", e2e.Str(c.Noted("notifications/elicitation/complete", nil).Params, "elicitationId"))
	})
}
