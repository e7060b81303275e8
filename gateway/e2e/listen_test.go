package e2e

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

const subscriptionID = protocolPrefix + "subscriptionId"

func watchable() obj {
	return obj{
		"tools": []obj{tool("t")}, "prompts": []obj{{"name": "p"}},
		"resources":    []obj{resource("file:///a"), resource("file:///b")},
		"capabilities": obj{"tools": obj{"listChanged": true}, "prompts": obj{"listChanged": true}, "resources": obj{"subscribe": true, "listChanged": true}},
	}
}

// hears begins a listen and waits for its acknowledgement.
func (c *client) hears(filter obj) (id string, honoured json.RawMessage) {
	c.t.Helper()
	id = c.begin("subscriptions/listen", obj{"notifications": filter})
	ack := c.noted("notifications/subscriptions/acknowledged", func(p json.RawMessage) bool { return tagged(p) == id })
	return id, at(ack.Params, "notifications")
}

func tagged(params json.RawMessage) string { return string(at(params, "_meta", subscriptionID)) }

// stops ends a listen, as its transport has it.
func (c *client) stops(id string) {
	c.t.Helper()
	if c.web != nil {
		c.web.abort(id)
		return
	}
	c.notify("notifications/cancelled", obj{"requestId": json.RawMessage(id)})
}

func TestListenDeliversWhatItAskedForAndNothingElse(t *testing.T) {
	overEveryTransport(t, func(t *testing.T, w *world, connect func() *client) {
		b := w.backend("b", watchable())
		c := connect()
		c.ok("tools/list", obj{})
		tools, honoured := c.hears(obj{"toolsListChanged": true})
		require.JSONEq(t, `{"toolsListChanged":true}`, string(honoured))
		both, honoured := c.hears(obj{"toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": false})
		require.JSONEq(t, `{"toolsListChanged":true,"promptsListChanged":true}`, string(honoured))

		b.add("prompts", obj{"name": "q"})
		b.listChanged("prompts")
		c.noted("notifications/prompts/list_changed", func(p json.RawMessage) bool { return tagged(p) == both })
		b.add("tools", tool("u"))
		b.listChanged("tools")
		for _, id := range []string{tools, both} {
			c.noted("notifications/tools/list_changed", func(p json.RawMessage) bool { return tagged(p) == id })
		}
		require.Len(t, c.notesOf("notifications/prompts/list_changed"), 1, "not on the other stream")
		require.Len(t, c.notesOf("notifications/tools/list_changed"), 2)
		require.Empty(t, c.notesOf("notifications/resources/list_changed"))

		c.stops(tools)
		c.stops(both)
		c.ok("tools/list", obj{})
		b.remove("tools", "u")
		b.listChanged("tools")
		last, _ := c.hears(obj{"resourcesListChanged": true})
		b.add("resources", resource("file:///c"))
		b.listChanged("resources")
		c.noted("notifications/resources/list_changed", func(p json.RawMessage) bool { return tagged(p) == last })
		require.Len(t, c.notesOf("notifications/tools/list_changed"), 2, "none after the end")
	})
}

func TestListenWatchesResources(t *testing.T) {
	overEveryTransport(t, func(t *testing.T, w *world, connect func() *client) {
		b := w.backend("b", watchable())
		dumb := w.backend("dumb", obj{"resources": []obj{resource("dumb:///x")}, "capabilities": obj{"resources": obj{}}})
		c := connect()
		c.ok("resources/list", obj{})
		a, bare := in("b", "file:///a"), "file:///a"
		first, honoured := c.hears(obj{"resourceSubscriptions": []string{a, in("dumb", "dumb:///x")}})
		require.JSONEq(t, `{"resourceSubscriptions":["`+a+`"]}`, string(honoured), "one server has no subscriptions")
		second, _ := c.hears(obj{"resourceSubscriptions": []string{bare}})
		require.Equal(t, []string{"file:///a"}, b.uris("resources/subscribe"), "the server is asked once")
		require.Zero(t, dumb.count("resources/subscribe"))

		b.do(do("notify", obj{"method": "notifications/resources/updated", "params": obj{"uri": "file:///a", "x": 1, "_meta": obj{"k": 2}}}))
		for id, uri := range map[string]string{first: a, second: bare} {
			got := c.noted("notifications/resources/updated", func(p json.RawMessage) bool { return tagged(p) == id })
			require.JSONEq(t, `{"uri":"`+uri+`","x":1,"_meta":{"k":2,"`+subscriptionID+`":`+id+`}}`, string(got.Params), "the spelling of the listen")
		}
		c.stops(first)
		b.updated("file:///a")
		c.noted("notifications/resources/updated", func(p json.RawMessage) bool { return tagged(p) == second && at(p, "x") == nil })
		require.Zero(t, b.count("resources/unsubscribe"), "the other listen goes on")
		c.stops(second)
		b.waitReceived("resources/unsubscribe", 1)
	})
}

func TestListenOfBadFilters(t *testing.T) {
	overEveryTransport(t, func(t *testing.T, w *world, connect func() *client) {
		w.backend("b", watchable())
		c := connect()
		for _, filter := range []any{nil, 3, obj{"resourceSubscriptions": "x"}, obj{"resourceSubscriptions": []any{1}}} {
			require.Equal(t, -32602, c.fault("subscriptions/listen", obj{"notifications": filter}).Code, "%v", filter)
		}
		require.Empty(t, c.notesOf("notifications/subscriptions/acknowledged"))

		// Nothing to wait for: it ends at once.
		id := c.begin("subscriptions/listen", obj{"notifications": obj{}})
		end := c.end(id)
		require.Equal(t, id, tagged(end.Result))
		require.Equal(t, `"complete"`, string(at(end.Result, "resultType")))
	})
}

func TestListenLeavesOutWhatNobodyKnows(t *testing.T) {
	overEveryTransport(t, func(t *testing.T, w *world, connect func() *client) {
		b := w.backend("b", watchable())
		c := connect()
		known, unknown := in("b", "file:///a"), []string{in("b", "file:///none"), in("none", "file:///a"), "x"}
		id, honoured := c.hears(obj{"toolsListChanged": true, "resourceSubscriptions": append(unknown, known)})
		require.JSONEq(t, `{"toolsListChanged":true,"resourceSubscriptions":["`+known+`"]}`, string(honoured))
		require.Equal(t, []string{"file:///a"}, b.uris("resources/subscribe"))
		b.updated("file:///a")
		got := c.noted("notifications/resources/updated", nil)
		require.Equal(t, []string{id, known}, []string{tagged(got.Params), str(got.Params, "uri")})

		// With nothing left to wait for it ends.
		id, honoured = c.hears(obj{"resourceSubscriptions": unknown})
		require.JSONEq(t, `{"resourceSubscriptions":[]}`, string(honoured))
		require.Equal(t, id, tagged(c.end(id).Result))
	})
}

func TestOverlappingListensAreEachToldOnce(t *testing.T) {
	overEveryTransport(t, func(t *testing.T, w *world, connect func() *client) {
		script := watchable()
		script["resources"] = []obj{resource("file:///dir"), resource("file:///dir/x"), resource("file:///b"), resource("file:///own")}
		b := w.backend("b", script)
		c := connect()
		x, other := in("b", "file:///dir/x"), in("b", "file:///b")
		one, _ := c.hears(obj{"resourceSubscriptions": []string{"file:///dir", x}})
		two, _ := c.hears(obj{"resourceSubscriptions": []string{x, other, in("b", "file:///own")}})
		three, _ := c.hears(obj{"resourceSubscriptions": []string{other}})
		told := func(n int) map[string]int {
			t.Helper()
			c.waitUpdates(n)
			c.ok("server/discover", obj{}) // and no more
			got := map[string]int{}
			for _, m := range c.notesOf("notifications/resources/updated") {
				got[tagged(m.Params)+" "+str(m.Params, "uri")]++
			}
			c.forget()
			return got
		}
		b.updated("file:///dir/x")
		require.Equal(t, map[string]int{one + " " + x: 1, two + " " + x: 1}, told(2), "also by one that watches what is above it")
		b.updated("file:///b")
		require.Equal(t, map[string]int{two + " " + other: 1, three + " " + other: 1}, told(2))

		c.stops(two)
		b.waitReceived("resources/unsubscribe", 1) // of what it alone watched
		b.updated("file:///dir/x")
		b.updated("file:///b")
		require.Equal(t, map[string]int{one + " " + x: 1, three + " " + other: 1}, told(2), "the end of one ends no other")
		c.stops(one)
		b.waitReceived("resources/unsubscribe", 3)
		b.updated("file:///b")
		require.Equal(t, map[string]int{three + " " + other: 1}, told(1))
	})
}

func TestListenIsRestoredWithTheServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backend("b", watchable())
	c := w.pipe("stdio", "--standalone").stateless()
	id, _ := c.hears(obj{"resourceSubscriptions": []string{in("b", "file:///a")}})
	b.do(do("crash"))
	b.waitStarts(2)
	// What changed meanwhile was not announced, so one update follows.
	got := c.noted("notifications/resources/updated", func(json.RawMessage) bool { return true })
	require.Equal(t, id, tagged(got.Params))
}

func TestListenEndsWhenTheServerStops(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.backend("b", watchable())
	c := w.pipe("stdio", "--standalone").stateless()
	id, _ := c.hears(obj{"toolsListChanged": true})
	c.close() // the end of input: what is under way is still answered
	end := c.end(id)
	require.Nil(t, end.Error)
	require.Equal(t, id, tagged(end.Result))
}
