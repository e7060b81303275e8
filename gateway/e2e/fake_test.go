package e2e

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// The tests in this file look at the fake server alone: what the others take
// as evidence must be right.

func (w *world) direct(script obj) (*backend, *client) {
	w.t.Helper()
	b, path := w.fake("fake", script)
	c := w.pipeTo(fakeserver, path)
	c.init()
	return b, c
}

func TestFakeServerSpeaksForItself(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b, c := w.direct(obj{
		"resources": []obj{resource("x:1"), resource("x:2"), resource("x:3")}, "pagesize": 2,
		"tools": []obj{tool("t"), tool("ask"), tool("slow")}, "generate": obj{"prompts": 3},
		"calls": obj{"t": obj{"content": []obj{}, "x": 1.50}},
		"on": obj{
			"tools/call ask":  actions(do("progress", obj{"n": 2}), do("request", obj{"method": "roots/list"}), do("answers")),
			"tools/call slow": actions(do("wait", obj{"name": "never"})),
		},
	})
	require.Equal(t, []string{"x:1", "x:2", "x:3"}, c.names("resources"))
	require.Equal(t, []string{"prompt_000000", "prompt_000001", "prompt_000002"}, c.names("prompts"))
	require.Equal(t, "fake x:9", c.readText("x:9"))
	require.JSONEq(t, `{"content":[],"x":1.50}`, string(c.ok("tools/call", obj{"name": "t"})))
	require.Equal(t, -32601, c.fault("nothing", nil).Code)

	c.reply = func(message) (any, any) { return obj{"roots": []obj{}}, nil }
	got := c.ok("tools/call", obj{"name": "ask", "_meta": obj{"progressToken": "p"}})
	require.Equal(t, `[{"roots":[]}]`, str(got, "content", 0, "text"))
	require.Len(t, c.notesOf("notifications/progress"), 2)

	id := c.begin("tools/call", obj{"name": "slow"})
	b.waitEvent("wait", "never")
	c.notify("notifications/cancelled", obj{"requestId": json.RawMessage(id)})
	b.waitEvent("gone", "slow")

	b.updated("x:1")
	require.Equal(t, []string{"x:1"}, c.waitUpdates(1))
	b.add("resources", resource("x:4"))
	require.Contains(t, c.names("resources"), "x:4")
	require.Equal(t, 4, b.count("resources/list"), "two lists of two pages")
	require.Equal(t, []string{"x:9"}, b.uris("resources/read"))
	b.do(do("crash"))
	b.waitGone()
}

func TestFakeServerSpeaksHTTP(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.remote("fake", "/mcp", obj{"tools": []obj{tool("t"), tool("p")}, "on": obj{"tools/call p": actions(do("progress", obj{"n": 1}))}})
	base, _ := b.conf["url"].(string)
	s := &web{program: &program{t: t}, w: w, base: base[:len(base)-len("/mcp")], http: newHTTP(t)}
	c := s.client(true)
	require.Equal(t, []string{"p", "t"}, sorted(c.names("tools")))
	b.listChanged("tools")
	require.Equal(t, "GET", c.noted("notifications/tools/list_changed", nil).via)
	id := c.begin("tools/call", obj{"name": "p", "_meta": obj{"progressToken": 1}})
	require.Nil(t, c.end(id).Error)
	require.Equal(t, "text/event-stream", c.contentType(id))
	require.Equal(t, id, c.noted("notifications/progress", nil).via)
	require.Equal(t, 404, s.do("POST", "/mcp", map[string]string{"Mcp-Session-Id": "x"}, `{"jsonrpc":"2.0","id":1,"method":"ping"}`).status)
	require.NotEmpty(t, b.received("tools/call")[0].Headers["mcp-session-id"])
}
