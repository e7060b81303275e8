//go:build e2e

package eras

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

func TestListenThatEndsAgainAndAgainIsOpenedEverMoreSeldom(t *testing.T) {
	eachModern(t, func(t *testing.T, w *e2e.World, kind string) {
		b := w.ModernBackend(kind, e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}})
		c := w.Standalone()
		c.CallText("b_t", e2e.Obj{})
		began := time.Now()
		e2e.Eventually(t, "that it is opened again", func() bool {
			b.Do(e2e.Do("hangup"))
			return time.Since(began) > 5*time.Second && b.Count("subscriptions/listen") >= 3
		})
		listens := b.Count("subscriptions/listen")
		require.LessOrEqual(t, listens, 10)
		require.LessOrEqual(t, b.Count("tools/list"), listens+1)
		b.Add("tools", e2e.Tool("new"))
		b.ListChanged("tools") // otherwise Goblin notices it when the next one is opened
		c.WaitListed("tools", "b_new", true)
	})
}

func TestLostListenIsOpenedAgainAndMissesNothing(t *testing.T) {
	eachModern(t, func(t *testing.T, w *e2e.World, kind string) {
		b := w.ModernBackend(kind, e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}, "resources": []e2e.Obj{e2e.Resource("x:1")}})
		c := w.Standalone()
		c.Ok("resources/subscribe", e2e.Obj{"uri": "x:1"})
		b.WaitEvents("listen", "", 2)
		require.Len(t, c.Names("tools"), 1)
		b.Add("tools", e2e.Tool("meanwhile")) // without a notification
		b.Do(e2e.Do("hangup"))
		again := b.WaitEvents("listen", "", 3)
		require.JSONEq(t, `["x:1"]`, string(e2e.At(again.Msg, "resourceSubscriptions")))
		require.Equal(t, []string{"x:1"}, c.WaitUpdates(1), "it may have changed")
		c.WaitListed("tools", "b_meanwhile", true)
		b.Updated("x:1")
		c.WaitUpdates(2)
		if kind == "stdio" { // where a server may also send it as a notification
			b.Do(e2e.Do("notify", e2e.Obj{"method": "notifications/cancelled", "params": e2e.Obj{"requestId": json.RawMessage(again.Name)}}))
			b.WaitEvents("listen", "", 4)
			c.WaitUpdates(3)
		}
	})
}

func TestListenOutlivesCallsThatTimeOut(t *testing.T) {
	eachModern(t, func(t *testing.T, w *e2e.World, kind string) {
		b := w.ModernBackend(kind, e2e.Obj{"tools": []e2e.Obj{e2e.Tool("hang")}, "resources": []e2e.Obj{e2e.Resource("x:1")}, "on": e2e.Obj{
			"tools/call hang": e2e.Actions(e2e.Do("hang")),
		}}, e2e.Obj{"timeout": "2s"})
		c := w.Standalone()
		c.Ok("resources/subscribe", e2e.Obj{"uri": "x:1"})
		b.WaitEvents("listen", "", 2)
		require.Equal(t, "REQUEST_TIMEOUT", c.Fails(e2e.Obj{"name": "b_hang"}).Kind())
		b.Updated("x:1")
		require.Equal(t, []string{"x:1"}, c.WaitUpdates(1))
		require.Equal(t, 2, b.Count("subscriptions/listen"), "none had to be opened again")
	})
}

func TestNewListenIsAcknowledgedBeforeTheOldOneEnds(t *testing.T) {
	eachModern(t, func(t *testing.T, w *e2e.World, kind string) {
		b := w.ModernBackend(kind, e2e.Obj{"resources": []e2e.Obj{e2e.Resource("x:1"), e2e.Resource("x:2")}})
		c := w.Standalone()
		for _, uri := range []string{"x:1", "x:2"} {
			c.Ok("resources/subscribe", e2e.Obj{"uri": uri})
		}
		b.WaitEvents("listen", "", 3)
		b.WaitEvents("unlisten", "", 1)
		b.Mu.Lock()
		defer b.Mu.Unlock()
		var order []string
		open := 0
		for _, e := range b.Events {
			switch e.Ev {
			case "listen":
				open++
			case "unlisten":
				open--
			default:
				continue
			}
			order = append(order, e.Ev)
			require.Positive(t, open, "%q", order)
		}
	})
}

func TestSubscriptionsAtAModernBackendAreRestored(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.ModernBackend("stdio", e2e.Obj{"generate": e2e.Obj{"resources": 50}})
	c := w.Standalone()
	var ids []string
	for _, uri := range c.Names("resources") {
		ids = append(ids, c.Begin("resources/subscribe", e2e.Obj{"uri": uri}))
	}
	for _, id := range ids {
		require.Nil(t, c.End(id).Error)
	}
	b.Do(e2e.Do("crash"))
	b.WaitStarts(2)
	c.WaitUpdates(50)
	last := b.Received("subscriptions/listen")
	require.Len(t, e2e.Each(last[len(last)-1].Msg, "params", "notifications", "resourceSubscriptions"), 50)
	require.Less(t, len(last), 40, "all clients share one listen")
	b.Updated("gen:///item/000007")
	c.WaitUpdates(51)
}

func TestModernBackendThatLeavesTheRevisionIsAskedAnew(t *testing.T) {
	eachModern(t, func(t *testing.T, w *e2e.World, kind string) {
		b := w.ModernBackend(kind, e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}, "on": e2e.Obj{"tools/call t": e2e.Actions(
			e2e.Obj{"do": "error", "times": 1, "error": json.RawMessage(`{"code":-32022,"message":"no more","data":{"supported":["2027-01-01"]}}`)},
		)}})
		c := w.Standalone()
		m := c.Request("tools/call", e2e.Obj{"name": "b_t"})
		if kind == "http" { // the next connection serves it
			require.Equal(t, "b:t:", e2e.Str(m.Result, "content", 0, "text"), m.Raw)
		} else { // to a process with the same tools
			require.JSONEq(t, `{"code":"BAD_REPLY","server":"b"}`, string(e2e.ParseFailure(t, m).Data), "members of the hop are not passed on")
		}
		b.WaitReceived("server/discover", 2)
	})
}

func TestResourceThatWasLeftOutOnceIsAskedForAgain(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("b", e2e.Obj{"era": "modern", "resources": []e2e.Obj{e2e.Resource("x:1")}, "dropURIs": []string{"x:1"}})
	c := w.Standalone()
	c.Fault("resources/subscribe", e2e.Obj{"uri": e2e.In("b", "x:1")})
	n := b.Count("subscriptions/listen")
	c.Fault("resources/subscribe", e2e.Obj{"uri": e2e.In("b", "x:1")})
	require.Greater(t, b.Count("subscriptions/listen"), n)
}

func TestOverlappingListensAreEachToldOnce(t *testing.T) {
	e2e.OverEveryTransport(t, func(t *testing.T, w *e2e.World, connect func() *e2e.Client) {
		script := e2e.Watchable()
		script["resources"] = []e2e.Obj{e2e.Resource("file:///dir"), e2e.Resource("file:///dir/x"), e2e.Resource("file:///b"), e2e.Resource("file:///own")}
		b := w.Backend("b", script)
		c := connect()
		x, other := e2e.In("b", "file:///dir/x"), e2e.In("b", "file:///b")
		one, _ := c.ListenTo(e2e.Obj{"resourceSubscriptions": []string{"file:///dir", x}})
		two, _ := c.ListenTo(e2e.Obj{"resourceSubscriptions": []string{x, other, e2e.In("b", "file:///own")}})
		three, _ := c.ListenTo(e2e.Obj{"resourceSubscriptions": []string{other}})
		told := func(n int) map[string]int {
			t.Helper()
			c.WaitUpdates(n)
			c.Ok("server/discover", e2e.Obj{}) // and no more
			got := map[string]int{}
			for _, m := range c.NotesOf("notifications/resources/updated") {
				got[e2e.SubscriptionOf(m.Params)+" "+e2e.Str(m.Params, "uri")]++
			}
			c.Forget()
			return got
		}
		b.Updated("file:///dir/x")
		require.Equal(t, map[string]int{one + " " + x: 1, two + " " + x: 1}, told(2), "also by a client that watches a parent")
		b.Updated("file:///b")
		require.Equal(t, map[string]int{two + " " + other: 1, three + " " + other: 1}, told(2))

		c.StopListening(two)
		b.WaitReceived("resources/unsubscribe", 1) // of what only this client watched
		b.Updated("file:///dir/x")
		b.Updated("file:///b")
		require.Equal(t, map[string]int{one + " " + x: 1, three + " " + other: 1}, told(2), "closing one closes no other")
		c.StopListening(one)
		b.WaitReceived("resources/unsubscribe", 3)
		b.Updated("file:///b")
		require.Equal(t, map[string]int{three + " " + other: 1}, told(1))
	})
}

func TestListenEndsWhenTheServerStops(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("b", e2e.Watchable())
	c := w.Pipe("stdio", "--standalone").Stateless()
	id, _ := c.ListenTo(e2e.Obj{"toolsListChanged": true})
	c.Close() // the end of input: requests in flight are still answered
	end := c.End(id)
	require.Nil(t, end.Error)
	require.Equal(t, id, e2e.SubscriptionOf(end.Result))
}

func TestListenIsRestoredWithTheServer(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("b", e2e.Watchable())
	c := w.Pipe("stdio", "--standalone").Stateless()
	id, _ := c.ListenTo(e2e.Obj{"resourceSubscriptions": []string{e2e.In("b", "file:///a")}})
	b.Do(e2e.Do("crash"))
	b.WaitStarts(2)
	// What changed meanwhile was not announced, so one update follows.
	got := c.WaitNote("notifications/resources/updated", func(json.RawMessage) bool { return true })
	require.Equal(t, id, e2e.SubscriptionOf(got.Params))
}

func TestAListenGoesOnWhenItsServerHasTheOlderEraOnly(t *testing.T) {
	t.Parallel()
	for name, older := range map[string]func(w *e2e.World, b *e2e.Backend){
		"by an edit":          func(w *e2e.World, b *e2e.Backend) { w.Edit(func() { b.Conf["era"] = "legacy" }) },
		"from its restart on": func(w *e2e.World, b *e2e.Backend) { w.Succeeds("restart", "b") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			script := e2e.Watchable()
			script["on"] = e2e.Obj{"server/discover": e2e.Actions(e2e.Do("error", e2e.Obj{"after": 2, "error": e2e.Obj{"code": -32601, "message": "no such method"}}))}
			b := dualBackend(w, "stdio", "dual", script)
			legacy, modern := w.Pair("socket")
			uri := e2e.In("b", "file:///a")
			legacy.Ok("resources/subscribe", e2e.Obj{"uri": uri})
			_, honoured := modern.ListenTo(e2e.Obj{"resourceSubscriptions": []string{uri}})
			require.Contains(t, string(honoured), uri)
			b.Updated("file:///a")
			modern.WaitUpdates(1)
			legacy.WaitUpdates(1)
			legacy.Forget()
			modern.Forget()
			older(w, b)
			legacy.WaitUpdates(1) // it is subscribed again
			modern.Forget()
			e2e.Eventually(t, "an update", func() bool {
				b.Updated("file:///a")
				return len(modern.Updates()) > 0
			})
		})
	}
}
