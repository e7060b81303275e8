//go:build e2e

package eras

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

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
				require.JSONEq(t, string(e2e.Marshal(trace)), e2e.WithoutProgressToken(t, e2e.At(got, "params", "_meta")), "no members of the protocol itself")
			}
			if !x.ModernClient() {
				require.JSONEq(t, string(e2e.Marshal(trace)), string(e2e.At(result, "_meta")), "no members of the protocol itself")
			}
		}
		said := c.WaitNote("notifications/message", nil)
		require.JSONEq(t, string(e2e.Marshal(trace)), string(e2e.At(said.Params, "_meta")))
	})
}
