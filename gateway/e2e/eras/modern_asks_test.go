//go:build e2e

package eras

import (
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
	require.False(t, slices.ContainsFunc(b.Received(""), func(e e2e.Told) bool { return e.Method == "resources/subscribe" }))
}
