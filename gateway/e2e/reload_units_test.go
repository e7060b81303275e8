//go:build e2e

package e2e_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

func TestSubscriptionsOfUnitsOutliveAnEditOfTheirServer(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("own", e2e.CountingServer(), e2e.Obj{"isolation": "session", "env": e2e.Obj{"WHICH": "first"}})
	uri := e2e.In("own", "x:1")
	c1, c2 := w.Join(), w.Join()
	for _, c := range []*e2e.Client{c1, c2} {
		c.CountsTo(1, 1)
		c.Ok("resources/subscribe", e2e.Obj{"uri": uri})
	}
	w.Edit(func() { b.Conf["env"] = e2e.Obj{"WHICH": "second"} })
	b.WaitStarts(3)
	b.WaitReceived("resources/subscribe", 4)
	for _, c := range []*e2e.Client{c1, c2} {
		c.WaitUpdates(1)
		c.Forget()
	}
	for _, p := range b.Live() {
		b.DoAt(p, e2e.Do("notify", e2e.Obj{"method": "notifications/resources/updated", "params": e2e.Obj{"uri": "x:1"}}))
	}
	for _, c := range []*e2e.Client{c1, c2} {
		require.Equal(t, []string{uri}, c.WaitUpdates(1))
	}
}

func TestUnitsAreToldOfRootsOfAnEditedConfig(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Gateway["roots"] = []any{e2e.Obj{"uri": "file:///old"}}
	b := w.Backend("own", e2e.CountingServer(), e2e.Obj{"isolation": "session"})
	c1, c2 := w.Join(), w.Join()
	c1.Counts()
	c2.Counts()
	w.Edit(func() { w.Gateway["roots"] = []any{e2e.Obj{"uri": "file:///new"}} })
	b.WaitReceived("notifications/roots/list_changed", 2)
}

func TestSubscriptionsOutliveAnEditOfTheirServersIsolation(t *testing.T) {
	t.Parallel()
	for _, way := range [][]string{{"shared", "session"}, {"session", "shared"}} {
		t.Run("from "+way[0]+" to "+way[1], func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			b := w.Backend("own", e2e.CountingServer(), e2e.Obj{"isolation": way[0]})
			c := w.Join()
			c.Counts()
			uri := e2e.In("own", "x:1")
			c.Ok("resources/subscribe", e2e.Obj{"uri": uri})
			w.Edit(func() { b.Conf["isolation"] = way[1] })
			b.WaitReceived("resources/subscribe", 2)
			c.WaitUpdates(1) // it may have been missed meanwhile
			c.Counts()
			c.Forget()
			b.Updated("x:1")
			require.Equal(t, []string{uri}, c.WaitUpdates(1))
			c.Ok("resources/unsubscribe", e2e.Obj{"uri": uri})
			b.WaitReceived("resources/unsubscribe", 1)
		})
	}
}

func TestSubscriptionsComeBackWithAServerThatWasRemoved(t *testing.T) {
	t.Parallel()
	for _, isolation := range []string{"shared", "session"} {
		t.Run(isolation, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			w.Backend("stays", e2e.Filesystem())
			b := w.Backend("own", e2e.CountingServer(), e2e.Obj{"isolation": "shared"})
			s := w.Serve()
			kept, left, gone := s.Client(true), s.Client(true), s.Client(true)
			uri := e2e.In("own", "x:1")
			for _, c := range []*e2e.Client{kept, left, gone} {
				c.Counts()
				c.Ok("resources/subscribe", e2e.Obj{"uri": uri})
			}
			const gauge = `mcp_resource_subscriptions_active{server_id="own"}`
			require.Equal(t, "3", s.Metric(gauge))

			w.Edit(func() { w.Drop(b) })
			kept.WaitListed("resources", uri, false)
			left.Ok("resources/unsubscribe", e2e.Obj{"uri": uri})
			require.Less(t, s.Do("DELETE", "/mcp", map[string]string{"Mcp-Session-Id": gone.Web.Id}, "").Status, 300)
			b.WaitGone()
			require.Empty(t, s.Metric(gauge), "no series of a removed server is left")

			asked := len(b.Pick("resources/subscribe"))
			w.Edit(func() {
				b.Conf["isolation"] = isolation
				w.Backends = append(w.Backends, b)
			})
			kept.WaitListed("resources", uri, true)
			kept.WaitUpdates(1) // it may have been missed meanwhile
			b.WaitReceived("resources/subscribe", asked+1)
			kept.Forget()
			left.Forget()
			b.Updated("x:1")
			require.Equal(t, []string{uri}, kept.WaitUpdates(1))
			left.Forget()
			require.Empty(t, left.Updates())
			require.Equal(t, "1", s.Metric(gauge))
			require.Len(t, b.Pick("resources/subscribe"), asked+1)
			kept.Ok("resources/unsubscribe", e2e.Obj{"uri": uri})
			b.WaitReceived("resources/unsubscribe", 1)
		})
	}
}

func TestClientBeyondLimitsSessionsIsTold(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("b", e2e.Filesystem())
	w.Gateway["limits"] = e2e.Obj{"sessions": 1}
	one := w.Bridged()
	require.Equal(t, "b:stat:{}", one.CallText("b_stat", e2e.Obj{}))
	two := w.Pipe("stdio")
	e := two.Fault("initialize", e2e.Obj{"protocolVersion": "2025-11-25", "capabilities": e2e.Obj{}, "clientInfo": e2e.Obj{"name": "t", "version": "1"}})
	require.Contains(t, e.Message, "limits.sessions")
	require.Equal(t, "CONNECTION_ERROR", e.Kind())
	two.Close()
	require.Zero(t, two.Prog.Ends(e2e.Patience))
	require.Equal(t, "b:stat:{}", one.CallText("b_stat", e2e.Obj{}))
	one.Close()
	require.Zero(t, one.Prog.Ends(e2e.Patience))
	e2e.Eventually(t, "free slots again", func() bool { return w.Run("read", "goblin://servers").Code == 0 })
}

func TestAServerThatIsDisabledByAnEditLeavesAndComesBack(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("b", e2e.Filesystem())
	c := w.Join()
	c.WaitListed("tools", "b_stat", true)
	w.Edit(func() { b.Conf["disabled"] = true })
	c.WaitListed("tools", "b_stat", false)
	b.WaitGone()
	w.Edit(func() { delete(b.Conf, "disabled") })
	c.WaitListed("tools", "b_stat", true)
	require.Equal(t, 2, b.Starts())
}
