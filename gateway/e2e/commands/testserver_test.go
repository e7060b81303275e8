//go:build e2e

package commands

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// The tests in this file check the test server itself, because the others rely on its
// records.

func directly(w *e2e.World, script e2e.Obj) (*e2e.Backend, *e2e.Client) {
	w.T.Helper()
	b, path := w.Fake("fake", script)
	c := w.PipeTo(e2e.TestServer, path)
	c.Init()
	return b, c
}

func TestTestServerSpeaksForItself(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b, c := directly(w, e2e.Obj{
		"resources": []e2e.Obj{e2e.Resource("x:1"), e2e.Resource("x:2"), e2e.Resource("x:3")}, "pagesize": 2,
		"tools": []e2e.Obj{e2e.Tool("t"), e2e.Tool("ask"), e2e.Tool("slow")}, "generate": e2e.Obj{"prompts": 3},
		"calls": e2e.Obj{"t": e2e.Obj{"content": []e2e.Obj{}, "x": 1.50}},
		"on": e2e.Obj{
			"tools/call ask":  e2e.Actions(e2e.Do("progress", e2e.Obj{"n": 2}), e2e.Do("request", e2e.Obj{"method": "roots/list"}), e2e.Do("answers")),
			"tools/call slow": e2e.Actions(e2e.Do("wait", e2e.Obj{"name": "never"})),
		},
	})
	require.Equal(t, []string{"x:1", "x:2", "x:3"}, c.Names("resources"))
	require.Equal(t, []string{"prompt_000000", "prompt_000001", "prompt_000002"}, c.Names("prompts"))
	require.Equal(t, "fake x:9", c.ReadText("x:9"))
	require.JSONEq(t, `{"content":[],"x":1.50}`, string(c.Ok("tools/call", e2e.Obj{"name": "t"})))
	require.Equal(t, -32601, c.Fault("nothing", nil).Code)

	c.Reply = func(e2e.Message) (any, any) { return e2e.Obj{"roots": []e2e.Obj{}}, nil }
	got := c.Ok("tools/call", e2e.Obj{"name": "ask", "_meta": e2e.Obj{"progressToken": "p"}})
	require.Equal(t, `[{"roots":[]}]`, e2e.Str(got, "content", 0, "text"))
	require.Len(t, c.NotesOf("notifications/progress"), 2)

	id := c.Begin("tools/call", e2e.Obj{"name": "slow"})
	b.WaitEvent("wait", "never")
	c.Notify("notifications/cancelled", e2e.Obj{"requestId": json.RawMessage(id)})
	b.WaitEvent("gone", "slow")

	b.Updated("x:1")
	require.Equal(t, []string{"x:1"}, c.WaitUpdates(1))
	b.Add("resources", e2e.Resource("x:4"))
	require.Contains(t, c.Names("resources"), "x:4")
	require.Equal(t, 4, b.Count("resources/list"), "two lists of two pages")
	require.Equal(t, []string{"x:9"}, b.Uris("resources/read"))
	b.Do(e2e.Do("crash"))
	b.WaitGone()
}

func TestTestServerSpeaksHTTP(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Remote("fake", "/mcp", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t"), e2e.Tool("p")}, "on": e2e.Obj{"tools/call p": e2e.Actions(e2e.Do("progress", e2e.Obj{"n": 1}))}})
	base, _ := b.Conf["url"].(string)
	s := &e2e.Web{Program: &e2e.Program{T: t}, W: w, Base: base[:len(base)-len("/mcp")], Http: e2e.NewHTTP(t)}
	c := s.Client(true)
	require.Equal(t, []string{"p", "t"}, e2e.Sorted(c.Names("tools")))
	b.ListChanged("tools")
	require.Equal(t, "GET", c.WaitNote("notifications/tools/list_changed", nil).Via)
	id := c.Begin("tools/call", e2e.Obj{"name": "p", "_meta": e2e.Obj{"progressToken": 1}})
	require.Nil(t, c.End(id).Error)
	require.Equal(t, "text/event-stream", c.ContentType(id))
	require.Equal(t, id, c.WaitNote("notifications/progress", nil).Via)
	require.Equal(t, 404, s.Do("POST", "/mcp", map[string]string{"Mcp-Session-Id": "x"}, `{"jsonrpc":"2.0","id":1,"method":"ping"}`).Status)
	require.NotEmpty(t, b.Received("tools/call")[0].Headers["mcp-session-id"])
}
