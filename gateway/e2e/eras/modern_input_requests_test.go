//go:build e2e

package eras

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

func TestBackendThatNeverStopsAskingIsStopped(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	always := e2e.Do("result", e2e.Obj{"result": e2e.Obj{"resultType": "input_required", "inputRequests": e2e.Obj{"k": e2e.Obj{"method": "roots/list"}}, "requestState": "s"}})
	b := w.ModernBackend("stdio", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}, "on": e2e.Obj{"tools/call t": e2e.Actions(always)}})
	c := w.Pipe("stdio", "--standalone")
	c.Caps = e2e.Obj{"roots": e2e.Obj{}}
	c.Reply = func(e2e.Message) (any, any) { return e2e.Obj{"roots": []e2e.Obj{}}, nil }
	c.Init()
	e := c.Fails(e2e.Obj{"name": "b_t"})
	require.Equal(t, "BAD_REPLY", e.Kind())
	require.Equal(t, 11, b.Count("tools/call"))
	require.Len(t, c.Asks, 10)
	retry := b.Received("tools/call")[1]
	require.Equal(t, `"s"`, string(e2e.At(retry.Msg, "params", "requestState")))
	require.JSONEq(t, `{"k":{"roots":[]}}`, string(e2e.At(retry.Msg, "params", "inputResponses")))
}

// A server that requests no input has the time of one call, regardless of how often it
// defers its answer.
func TestBackendThatPutsACallOffHasTheTimeOfOneCall(t *testing.T) {
	eachModern(t, func(t *testing.T, w *e2e.World, kind string) {
		later := e2e.Do("result", e2e.Obj{"result": e2e.Obj{"resultType": "input_required", "requestState": "s"}})
		b := w.ModernBackend(kind, e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}, "on": e2e.Obj{"tools/call t": e2e.Actions(later)}}, e2e.Obj{"call_timeout": "500ms"})
		c := w.Standalone()
		c.Names("tools")
		e := c.Fails(e2e.Obj{"name": "b_t"})
		require.Equal(t, "REQUEST_TIMEOUT", e.Kind())
		require.Contains(t, e.Message, "within 500ms (call_timeout)")
		require.LessOrEqual(t, b.Count("tools/call"), 2)
	})
}

func TestClientThatCannotBeAskedIsToldWhatIsMissing(t *testing.T) {
	eachModern(t, func(t *testing.T, w *e2e.World, kind string) {
		on := e2e.Obj{}
		var tools []e2e.Obj
		for _, method := range []string{"elicitation/create", "sampling/createMessage", "roots/list"} {
			name := strings.Split(method, "/")[0]
			tools = append(tools, e2e.Tool(name))
			on["tools/call "+name] = e2e.Actions(e2e.Obj{"do": "request", "method": method})
		}
		on["tools/call wrong"] = e2e.Actions(e2e.Do("result", e2e.Obj{"result": e2e.Obj{"resultType": "input_required", "inputRequests": e2e.Obj{"a": e2e.Obj{"method": "ping"}}}}))
		on["tools/call empty"] = e2e.Actions(e2e.Do("result", e2e.Obj{"result": e2e.Obj{"resultType": "input_required"}}))
		tools = append(tools, e2e.Tool("wrong"), e2e.Tool("empty"))
		w.ModernBackend(kind, e2e.Obj{"tools": tools, "on": on})
		c := w.Standalone()
		for _, name := range []string{"elicitation", "sampling", "roots"} {
			e := c.Fault("tools/call", e2e.Obj{"name": "b_" + name})
			require.Equal(t, -32603, e.Code)
			require.Contains(t, e.Message, `server "b" needs `+name)
			require.Equal(t, "{}", string(e2e.At(e.Data, "requiredCapabilities", name)))
		}
		for _, name := range []string{"wrong", "empty"} {
			require.Equal(t, "BAD_REPLY", c.Fails(e2e.Obj{"name": "b_" + name}).Kind())
		}
		require.Empty(t, c.Asks)
	})
}

func TestLevelOfASessionGoesWithEachRequest(t *testing.T) {
	eachModern(t, func(t *testing.T, w *e2e.World, kind string) {
		says := func(level string) e2e.Obj {
			return e2e.Do("notify", e2e.Obj{"method": "notifications/message", "params": e2e.Obj{"level": level, "data": level}})
		}
		b := w.ModernBackend(kind, e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}, "on": e2e.Obj{"tools/call t": e2e.Actions(says("debug"), says("info"), says("error"))}})
		c := w.Standalone()
		said := func() (levels []string) {
			c.Update(func() { c.Notes = nil })
			c.Ok("tools/call", e2e.Obj{"name": "b_t"})
			for _, n := range c.NotesOf("notifications/message") {
				levels = append(levels, e2e.Str(n.Params, "level"))
			}
			return levels
		}
		require.Equal(t, []string{"info", "error"}, said())
		c.Ok("logging/setLevel", e2e.Obj{"level": "debug"})
		require.Equal(t, []string{"debug", "info", "error"}, said())
		c.Ok("logging/setLevel", e2e.Obj{"level": "warning"})
		require.Equal(t, []string{"error"}, said())
		require.Equal(t, `"warning"`, e2e.ProtocolMeta(b.Received("tools/call")[2], "logLevel"))
		require.Zero(t, b.Count("logging/setLevel"))
	})
}

func TestModernBackendWithAConnectionForEachClient(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.ModernBackend("stdio", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}, "resources": []e2e.Obj{e2e.Resource("x:1")}}, e2e.Obj{"isolation": "session"})
	c1, c2 := w.Join(), w.Join()
	for _, c := range []*e2e.Client{c1, c2} {
		c.CallText("b_t", e2e.Obj{})
		c.Ok("resources/subscribe", e2e.Obj{"uri": "x:1"})
	}
	require.Equal(t, 2, b.Starts())
	b.Updated("x:1")
	require.Equal(t, []string{"x:1"}, c1.WaitUpdates(1))
	require.Equal(t, []string{"x:1"}, c2.WaitUpdates(1))
	require.False(t, slices.ContainsFunc(b.Received(""), func(e e2e.Event) bool { return e.Method == "resources/subscribe" }))
}

func TestModernBackendsErrorsAreThoseOfTheClientsRevision(t *testing.T) {
	eachModern(t, func(t *testing.T, w *e2e.World, kind string) {
		fails := func(object string) []e2e.Obj {
			return e2e.Actions(e2e.Do("error", e2e.Obj{"error": json.RawMessage(object)}))
		}
		w.ModernBackend(kind, e2e.Obj{
			"tools": []e2e.Obj{e2e.Tool("own"), e2e.Tool("lacks"), e2e.Tool("kind"), e2e.Tool("args")}, "resources": []e2e.Obj{e2e.Resource("x:gone"), e2e.Resource("x:bad")},
			"on": e2e.Obj{
				"tools/call own":        fails(`{"code":-32123,"message":"mine","data":{"n":1.50}}`),
				"tools/call args":       fails(`{"code":-32602,"message":"bad arguments"}`),
				"tools/call lacks":      fails(`{"code":-32021,"message":"no","data":{"requiredCapabilities":{"sampling":{}}}}`),
				"tools/call kind":       e2e.Actions(e2e.Do("result", e2e.Obj{"result": e2e.Obj{"resultType": "task", "task": e2e.Obj{}}})),
				"resources/read x:gone": fails(`{"code":-32602,"message":"no such thing","data":{"uri":"x:gone"}}`),
				"resources/read x:bad":  fails(`{"code":-32602,"message":"cannot parse"}`),
			},
		})
		c := w.Standalone()
		e := c.Fault("tools/call", e2e.Obj{"name": "b_own"})
		require.Equal(t, -32123, e.Code)
		require.Equal(t, `{"n":1.50}`, string(e.Data))
		require.Equal(t, -32602, c.Fault("tools/call", e2e.Obj{"name": "b_args"}).Code)
		e = c.Fault("tools/call", e2e.Obj{"name": "b_lacks"})
		require.Equal(t, -32603, e.Code)
		require.Contains(t, e.Message, "sampling")
		e = c.Fails(e2e.Obj{"name": "b_kind"})
		require.Equal(t, "BAD_REPLY", e.Kind())
		require.Contains(t, e.Message, "task")
		e = c.Fault("resources/read", e2e.Obj{"uri": "x:gone"})
		require.Equal(t, -32002, e.Code)
		require.Equal(t, e2e.In("b", "x:gone"), e2e.Str(e.Data, "uri"))
		require.Equal(t, -32602, c.Fault("resources/read", e2e.Obj{"uri": "x:bad"}).Code)
	})
}

func TestQuestionsOfAModernBackendReachTheClientOfTheCall(t *testing.T) {
	eachModern(t, func(t *testing.T, w *e2e.World, kind string) {
		asks := e2e.Obj{"do": "request", "method": "elicitation/create", "params": e2e.Obj{"message": "who?", "requestedSchema": e2e.Obj{"type": "object"}}}
		b := w.ModernBackend(kind, e2e.Obj{"tools": []e2e.Obj{e2e.Tool("ask"), e2e.Tool("later")}, "prompts": []e2e.Obj{e2e.Prompt("p")}, "resources": []e2e.Obj{e2e.Resource("x:1")}, "on": e2e.Obj{
			"tools/call ask": e2e.Actions(asks, e2e.Obj{"do": "requests", "actions": []e2e.Obj{
				{"method": "sampling/createMessage", "params": e2e.Obj{"n": json.RawMessage("1.50")}}, {"method": "roots/list"},
			}}, e2e.Do("answers")),
			"tools/call later": e2e.Actions(e2e.Do("later", e2e.Obj{"n": 2})),
			"prompts/get p":    e2e.Actions(asks),
			"resources/read":   e2e.Actions(asks),
		}})
		caps := e2e.Obj{"elicitation": e2e.Obj{}, "sampling": e2e.Obj{}, "roots": e2e.Obj{"listChanged": true}}
		c1, c2 := w.Socket(), w.Socket()
		for i, c := range []*e2e.Client{c1, c2} {
			c.Caps = caps
			c.Reply = func(ask e2e.Message) (any, any) {
				return e2e.Obj{"from": i, "method": ask.Method, "roots": []e2e.Obj{}}, nil
			}
			c.Init()
		}
		id1 := c1.Begin("tools/call", e2e.Obj{"name": "b_ask", "arguments": e2e.Obj{"k": 1}, "_meta": e2e.Obj{"mine": true}})
		id2 := c2.Begin("tools/call", e2e.Obj{"name": "b_ask"})
		for i, m := range []e2e.Message{c1.End(id1), c2.End(id2)} {
			require.Nil(t, m.Error, m.Raw)
			require.JSONEq(t, fmt.Sprintf(
				`[{"from":%[1]d,"method":"elicitation/create","roots":[]},{"from":%[1]d,"method":"sampling/createMessage","roots":[]},{"from":%[1]d,"method":"roots/list","roots":[]}]`, i),
				e2e.Str(m.Result, "content", 0, "text"))
			require.Equal(t, "null", string(orNull(e2e.At(m.Result, "resultType"))))
		}
		require.Len(t, c1.Asks, 3)
		seen := map[string]bool{}
		for _, call := range b.Received("tools/call") {
			id := string(e2e.At(call.Msg, "id"))
			require.False(t, seen[id], "each try has an id of its own")
			seen[id] = true
			if string(e2e.At(call.Msg, "params", "arguments", "k")) == "1" {
				require.Equal(t, "true", string(e2e.At(call.Msg, "params", "_meta", "mine")))
			}
			require.Contains(t, e2e.ProtocolMeta(call, "clientCapabilities"), `"elicitation":{}`)
			require.Contains(t, e2e.ProtocolMeta(call, "clientCapabilities"), `"roots":{}`)
		}
		require.Len(t, seen, 6, "the call and two retries, for each")
		require.Contains(t, string(c1.Asks[0].Params), "who?")

		require.Contains(t, string(c1.Ok("prompts/get", e2e.Obj{"name": "b/p"})), "b:p")
		require.Equal(t, "b x:1", c1.ReadText("x:1"))
		require.Contains(t, string(c1.Ok("tools/call", e2e.Obj{"name": "b_later"})), "b:later")
		require.Len(t, c1.Asks, 5)
	})
}

func orNull(raw json.RawMessage) json.RawMessage {
	if raw == nil {
		return json.RawMessage("null")
	}
	return raw
}

func TestModernBackendsProgressAndCancellation(t *testing.T) {
	eachModern(t, func(t *testing.T, w *e2e.World, kind string) {
		b := w.ModernBackend(kind, e2e.Obj{"tools": []e2e.Obj{e2e.Tool("steps"), e2e.Tool("slow")}, "on": e2e.Obj{
			"tools/call steps": e2e.Actions(e2e.Do("progress", e2e.Obj{"n": 3})),
			"tools/call slow":  e2e.Actions(e2e.Do("wait", e2e.Obj{"name": "never"})),
		}})
		c := w.Standalone()
		for _, token := range []string{`"abc"`, `7`} {
			c.Update(func() { c.Notes = nil })
			m := c.Request("tools/call", e2e.Obj{"name": "b_steps", "_meta": e2e.Obj{"progressToken": json.RawMessage(token)}})
			notes := c.NotesOf("notifications/progress")
			require.Len(t, notes, 3, token)
			for _, n := range notes {
				require.Equal(t, token, string(e2e.At(n.Params, "progressToken")))
				require.Less(t, n.Seq, m.Seq)
			}
		}
		id := c.Begin("tools/call", e2e.Obj{"name": "b_slow"})
		b.WaitEvent("wait", "never")
		c.Notify("notifications/cancelled", e2e.Obj{"requestId": json.RawMessage(id)})
		b.WaitEvent("gone", "slow")
		if kind == "stdio" {
			asked := b.Received("tools/call")[2]
			require.Equal(t, string(e2e.At(asked.Msg, "id")), string(e2e.At(b.Received("notifications/cancelled")[0].Msg, "params", "requestId")))
		} else {
			require.Empty(t, b.Received("notifications/cancelled"), "the end of the stream reports it")
		}
		c.Ok("ping", nil)
	})
}
