//go:build e2e

package eras

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

func TestListenDeliversWhatItAskedForAndNothingElse(t *testing.T) {
	e2e.OverEveryTransport(t, func(t *testing.T, w *e2e.World, connect func() *e2e.Client) {
		b := w.Backend("b", e2e.Watchable())
		c := connect()
		c.Ok("tools/list", e2e.Obj{})
		tools, honoured := c.ListenTo(e2e.Obj{"toolsListChanged": true})
		require.JSONEq(t, `{"toolsListChanged":true}`, string(honoured))
		both, honoured := c.ListenTo(e2e.Obj{"toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": false})
		require.JSONEq(t, `{"toolsListChanged":true,"promptsListChanged":true}`, string(honoured))

		b.Add("prompts", e2e.Obj{"name": "q"})
		b.ListChanged("prompts")
		c.WaitNote("notifications/prompts/list_changed", func(p json.RawMessage) bool { return e2e.SubscriptionOf(p) == both })
		b.Add("tools", e2e.Tool("u"))
		b.ListChanged("tools")
		for _, id := range []string{tools, both} {
			c.WaitNote("notifications/tools/list_changed", func(p json.RawMessage) bool { return e2e.SubscriptionOf(p) == id })
		}
		require.Len(t, c.NotesOf("notifications/prompts/list_changed"), 1, "not on the other stream")
		require.Len(t, c.NotesOf("notifications/tools/list_changed"), 2)
		require.Empty(t, c.NotesOf("notifications/resources/list_changed"))

		c.StopListening(tools)
		c.StopListening(both)
		c.Ok("tools/list", e2e.Obj{})
		b.Remove("tools", "u")
		b.ListChanged("tools")
		last, _ := c.ListenTo(e2e.Obj{"resourcesListChanged": true})
		b.Add("resources", e2e.Resource("file:///c"))
		b.ListChanged("resources")
		c.WaitNote("notifications/resources/list_changed", func(p json.RawMessage) bool { return e2e.SubscriptionOf(p) == last })
		require.Len(t, c.NotesOf("notifications/tools/list_changed"), 2, "none after the end")
	})
}

func TestListenWatchesResources(t *testing.T) {
	e2e.OverEveryTransport(t, func(t *testing.T, w *e2e.World, connect func() *e2e.Client) {
		b := w.Backend("b", e2e.Watchable())
		dumb := w.Backend("dumb", e2e.Obj{"resources": []e2e.Obj{e2e.Resource("dumb:///x")}, "capabilities": e2e.Obj{"resources": e2e.Obj{}}})
		c := connect()
		c.Ok("resources/list", e2e.Obj{})
		a, bare := e2e.In("b", "file:///a"), "file:///a"
		first, honoured := c.ListenTo(e2e.Obj{"resourceSubscriptions": []string{a, e2e.In("dumb", "dumb:///x")}})
		require.JSONEq(t, `{"resourceSubscriptions":["`+a+`"]}`, string(honoured), "one server has no subscriptions")
		second, _ := c.ListenTo(e2e.Obj{"resourceSubscriptions": []string{bare}})
		require.Equal(t, []string{"file:///a"}, b.Uris("resources/subscribe"), "the server is asked once")
		require.Zero(t, dumb.Count("resources/subscribe"))

		b.Do(e2e.Do("notify", e2e.Obj{"method": "notifications/resources/updated", "params": e2e.Obj{"uri": "file:///a", "x": 1, "_meta": e2e.Obj{"k": 2}}}))
		for id, uri := range map[string]string{first: a, second: bare} {
			got := c.WaitNote("notifications/resources/updated", func(p json.RawMessage) bool { return e2e.SubscriptionOf(p) == id })
			require.JSONEq(t, `{"uri":"`+uri+`","x":1,"_meta":{"k":2,"`+e2e.SubscriptionID+`":`+id+`}}`, string(got.Params), "the listen's spelling of the URI")
		}
		c.StopListening(first)
		b.Updated("file:///a")
		c.WaitNote("notifications/resources/updated", func(p json.RawMessage) bool { return e2e.SubscriptionOf(p) == second && e2e.At(p, "x") == nil })
		require.Zero(t, b.Count("resources/unsubscribe"), "the other listen stays open")
		c.StopListening(second)
		b.WaitReceived("resources/unsubscribe", 1)
	})
}

func TestAListenThatTakesNoEventStreamIsRefused(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("b", e2e.Watchable())
	answer := w.Served().Do("POST", "/mcp", map[string]string{
		"Content-Type": "application/json", "Accept": "application/json", "Mcp-Protocol-Version": e2e.ModernRevision, "Mcp-Method": "subscriptions/listen",
	}, `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`)
	require.Equal(t, 406, answer.Status)
	require.Contains(t, answer.Body, "subscriptions/listen needs Accept: text/event-stream")
}

func TestListenLeavesOutWhatNobodyKnows(t *testing.T) {
	e2e.OverEveryTransport(t, func(t *testing.T, w *e2e.World, connect func() *e2e.Client) {
		b := w.Backend("b", e2e.Watchable())
		c := connect()
		known, unknown := e2e.In("b", "file:///a"), []string{e2e.In("b", "file:///none"), e2e.In("none", "file:///a"), "x"}
		id, honoured := c.ListenTo(e2e.Obj{"toolsListChanged": true, "resourceSubscriptions": append(unknown, known)})
		require.JSONEq(t, `{"toolsListChanged":true,"resourceSubscriptions":["`+known+`"]}`, string(honoured))
		require.Equal(t, []string{"file:///a"}, b.Uris("resources/subscribe"))
		b.Updated("file:///a")
		got := c.WaitNote("notifications/resources/updated", nil)
		require.Equal(t, []string{id, known}, []string{e2e.SubscriptionOf(got.Params), e2e.Str(got.Params, "uri")})

		// A listen that has nothing to wait for is closed.
		id, honoured = c.ListenTo(e2e.Obj{"resourceSubscriptions": unknown})
		require.JSONEq(t, `{"resourceSubscriptions":[]}`, string(honoured))
		require.Equal(t, id, e2e.SubscriptionOf(c.End(id).Result))
	})
}

func TestListenOfBadFilters(t *testing.T) {
	e2e.OverEveryTransport(t, func(t *testing.T, w *e2e.World, connect func() *e2e.Client) {
		w.Backend("b", e2e.Watchable())
		c := connect()
		for _, filter := range []any{nil, 3, e2e.Obj{"resourceSubscriptions": "x"}, e2e.Obj{"resourceSubscriptions": []any{1}}} {
			require.Equal(t, -32602, c.Fault("subscriptions/listen", e2e.Obj{"notifications": filter}).Code, "%v", filter)
		}
		require.Empty(t, c.NotesOf("notifications/subscriptions/acknowledged"))

		// Nothing to wait for: it is closed at once.
		id := c.Begin("subscriptions/listen", e2e.Obj{"notifications": e2e.Obj{}})
		end := c.End(id)
		require.Equal(t, id, e2e.SubscriptionOf(end.Result))
		require.Equal(t, `"complete"`, string(e2e.At(end.Result, "resultType")))
	})
}
