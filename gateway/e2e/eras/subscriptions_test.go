//go:build e2e

package eras

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

func TestR3_26_R3_29_UpdatesReachSubscribersOnce(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	fs := w.Backend("filesystem", e2e.Filesystem())
	a, b, c := w.Join(), w.Join(), w.Join()
	uri := e2e.In("filesystem", e2e.AppLog)
	a.Ok("resources/subscribe", e2e.Obj{"uri": uri})
	b.Ok("resources/subscribe", e2e.Obj{"uri": uri})
	c.Ok("resources/subscribe", e2e.Obj{"uri": e2e.In("filesystem", e2e.AppJSON)})
	require.Equal(t, []string{e2e.AppLog, e2e.AppJSON}, fs.Uris("resources/subscribe"))
	fs.Updated(e2e.AppLog)
	require.Equal(t, []string{uri}, a.WaitUpdates(1))
	require.Equal(t, []string{uri}, b.WaitUpdates(1))
	fs.Updated(e2e.AppJSON)
	require.Equal(t, []string{e2e.In("filesystem", e2e.AppJSON)}, c.WaitUpdates(1))
	for _, client := range []*e2e.Client{a, b} {
		client.Ok("ping", nil)
		require.Equal(t, []string{uri}, client.Updates())
	}
}

func TestR3_25_R3_28_R0_07_SubscribeAndLastUnsubscribeReachTheBackend(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	fs := w.Backend("filesystem", e2e.Filesystem())
	a, b, c := w.Join(), w.Join(), w.BridgeToRunning()
	log, json := e2e.In("filesystem", e2e.AppLog), e2e.In("filesystem", e2e.AppJSON)
	for _, client := range []*e2e.Client{a, b} {
		client.Ok("resources/subscribe", e2e.Obj{"uri": log})
	}
	require.Equal(t, []string{e2e.AppLog}, fs.Uris("resources/subscribe"))
	a.Ok("resources/unsubscribe", e2e.Obj{"uri": log})
	require.Zero(t, fs.Count("resources/unsubscribe"))
	b.Ok("resources/unsubscribe", e2e.Obj{"uri": log})
	require.Equal(t, []string{e2e.AppLog}, fs.Uris("resources/unsubscribe"))

	// First an update without subscribers, then one with a subscriber.
	b.Ok("resources/subscribe", e2e.Obj{"uri": json})
	fs.Updated(e2e.AppLog)
	fs.Updated(e2e.AppJSON)
	require.Equal(t, []string{json}, b.WaitUpdates(1))
	a.Ok("ping", nil)
	require.Empty(t, a.Updates())

	// A client that disconnects counts as unsubscribed, for any reason.
	c.Ok("resources/subscribe", e2e.Obj{"uri": log})
	c.Prog.Signal(syscall.SIGKILL)
	fs.Wait("the unsubscribe of a killed client", func() bool { return len(fs.Pick("resources/unsubscribe")) == 2 })
	b.Close()
	fs.Wait("the unsubscribe of a closed client", func() bool { return len(fs.Pick("resources/unsubscribe")) == 3 })
}

func TestC12_SubscriptionsAreRestoredAfterAReconnect(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	fs := w.Backend("filesystem", e2e.Filesystem())
	c := w.Standalone()
	uri := e2e.In("filesystem", e2e.AppLog)
	c.Ok("resources/subscribe", e2e.Obj{"uri": uri})
	fs.Do(e2e.Do("crash", e2e.Obj{"code": 1}))
	fs.WaitStarts(2)
	fs.WaitReceived("resources/subscribe", 2)
	fs.Updated(e2e.AppLog)
	require.Contains(t, c.WaitUpdates(1), uri)
	require.Equal(t, []string{e2e.AppLog, e2e.AppLog}, fs.Uris("resources/subscribe"))
}

func TestR0_11_ManySubscriptions(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("b", e2e.Obj{"resources": []e2e.Obj{}, "generate": e2e.Obj{"resources": 1500}})
	c := w.Standalone()
	uris := c.Names("resources")
	require.Len(t, uris, 1500)
	var ids []string
	for _, uri := range uris {
		ids = append(ids, c.Begin("resources/subscribe", e2e.Obj{"uri": uri}))
	}
	for _, id := range ids {
		require.Nil(t, c.End(id).Error)
	}
	require.Equal(t, 1500, b.Count("resources/subscribe"))
	b.Updated("gen:///item/001499")
	require.Equal(t, []string{e2e.In("b", "gen:///item/001499")}, c.WaitUpdates(1))
}

func TestC9_AliasOfTheSubscriberIsEchoed(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	fs := w.Backend("filesystem", e2e.Filesystem())
	c := w.Standalone()
	c.Ok("resources/subscribe", e2e.Obj{"uri": "filesystem_file_logs_app.log"})
	require.Equal(t, []string{e2e.AppLog}, fs.Uris("resources/subscribe"))
	fs.Updated(e2e.AppLog)
	require.Equal(t, []string{"filesystem_file_logs_app.log"}, c.WaitUpdates(1))
	c.Ok("resources/unsubscribe", e2e.Obj{"uri": "filesystem_file_logs_app.log"})
	require.Equal(t, 1, fs.Count("resources/unsubscribe"))
}

func TestC9_UpdateOfASubResourceCountsForItsParent(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	fs := w.Backend("fs", e2e.Obj{"resources": []e2e.Obj{e2e.Resource("file:///dir"), e2e.Resource("file:///dirty"), e2e.Resource("file:///else")}})
	c := w.Standalone()
	c.Ok("resources/subscribe", e2e.Obj{"uri": e2e.In("fs", "file:///dir")})
	c.Ok("resources/subscribe", e2e.Obj{"uri": e2e.In("fs", "file:///else")})
	fs.Updated("file:///dirty/x") // not below it: whole segments count
	fs.Updated("file:///dir/a.txt")
	fs.Updated("file:///else")
	got := c.WaitUpdates(2)
	require.Len(t, got, 2)
	require.Contains(t, got, e2e.In("fs", "file:///else"))
	require.NotContains(t, fmt.Sprint(got), "dirty")
}

func TestSubscribeToATemplatesExpansion(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	db := w.Backend("dbsrv", e2e.Dbsrv())
	c := w.Standalone()
	uri := e2e.In("dbsrv", "mcp://database/users/42")
	c.Ok("resources/subscribe", e2e.Obj{"uri": uri})
	require.Equal(t, []string{"mcp://database/users/42"}, db.Uris("resources/subscribe"))
	db.Updated("mcp://database/users/42")
	require.Equal(t, []string{uri}, c.WaitUpdates(1))
}

func TestR3_36_RejectedSubscriptionLeavesNothing(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	script := e2e.Filesystem()
	script["on"] = e2e.Obj{"resources/subscribe " + e2e.AppLog: e2e.Actions(e2e.Do("error", e2e.Obj{"error": e2e.Obj{"code": -32603, "message": "boom"}, "times": 1}))}
	fs := w.Backend("filesystem", script)
	s := w.Served()
	c := s.Client(true)
	uri := e2e.In("filesystem", e2e.AppLog)
	e := c.Fault("resources/subscribe", e2e.Obj{"uri": uri})
	require.Contains(t, e.Message, "boom")
	require.Contains(t, []string{"", "0"}, s.Metric(`mcp_resource_subscriptions_active{server_id="filesystem"}`))
	c.Ok("resources/subscribe", e2e.Obj{"uri": e2e.In("filesystem", e2e.AppJSON)})
	fs.Updated(e2e.AppLog)
	fs.Updated(e2e.AppJSON)
	require.Equal(t, []string{e2e.In("filesystem", e2e.AppJSON)}, c.WaitUpdates(1))
	c.Ok("resources/subscribe", e2e.Obj{"uri": uri})
	require.Len(t, fs.Uris("resources/subscribe"), 3)
	require.Equal(t, "2", s.Metric(`mcp_resource_subscriptions_active{server_id="filesystem"}`))
}

func TestSubscribeWithoutTheCapabilityIsRefused(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	script := e2e.Filesystem()
	script["capabilities"] = e2e.Obj{"resources": e2e.Obj{}}
	fs := w.Backend("filesystem", script)
	c := w.Standalone()
	e := c.Fault("resources/subscribe", e2e.Obj{"uri": e2e.In("filesystem", e2e.AppLog)})
	require.Contains(t, e.Message, "filesystem")
	require.Zero(t, fs.Count("resources/subscribe"))
}

func TestC13_UnsubscribeIsIdempotent(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	fs := w.Backend("filesystem", e2e.Filesystem())
	c := w.Standalone()
	uri := e2e.In("filesystem", e2e.AppLog)
	require.JSONEq(t, `{}`, string(c.Ok("resources/unsubscribe", e2e.Obj{"uri": uri})))
	require.Zero(t, fs.Count("resources/unsubscribe"))
	require.JSONEq(t, `{}`, string(c.Ok("resources/subscribe", e2e.Obj{"uri": uri})))
	c.Ok("resources/subscribe", e2e.Obj{"uri": uri})
	require.Equal(t, 1, fs.Count("resources/subscribe"))
	c.Ok("resources/unsubscribe", e2e.Obj{"uri": uri})
	require.Equal(t, 1, fs.Count("resources/unsubscribe"))
}

func TestR3_38_SubscriptionGauge(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	fs := w.Backend("filesystem", e2e.Filesystem())
	s := w.Served()
	c := s.Client(false)
	const gauge = `mcp_resource_subscriptions_active{server_id="filesystem"}`
	c.Ok("resources/subscribe", e2e.Obj{"uri": e2e.In("filesystem", e2e.AppLog)})
	c.Ok("resources/subscribe", e2e.Obj{"uri": e2e.In("filesystem", e2e.AppJSON)})
	require.Equal(t, "2", s.Metric(gauge))
	c.Ok("resources/unsubscribe", e2e.Obj{"uri": e2e.In("filesystem", e2e.AppJSON)})
	require.Equal(t, "1", s.Metric(gauge))
	require.Less(t, s.Do("DELETE", "/mcp", map[string]string{"Mcp-Session-Id": c.Web.Id}, "").Status, 300)
	e2e.Eventually(t, "no subscription", func() bool { return s.Metric(gauge) == "0" })
	fs.WaitReceived("resources/unsubscribe", 2)
}

func TestC12_SubscribeIsAcknowledgedAfterTheBackend(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	script := e2e.Filesystem()
	script["on"] = e2e.Obj{"resources/subscribe": e2e.Actions(e2e.Do("wait", e2e.Obj{"name": "go"}))}
	fs := w.Backend("filesystem", script)
	c := w.Standalone()
	id := c.Begin("resources/subscribe", e2e.Obj{"uri": e2e.In("filesystem", e2e.AppLog)})
	fs.WaitEvent("wait", "go")
	c.Ok("ping", nil)
	c.Mu.Lock()
	early := len(c.Replies[id])
	c.Mu.Unlock()
	require.Zero(t, early, "acknowledged before the server did")
	fs.Do(e2e.Do("release", e2e.Obj{"name": "go"}))
	require.Nil(t, c.End(id).Error)
}
