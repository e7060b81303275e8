package e2e

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestR3_25_SubscribeReachesTheBackend(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	fs := w.backend("filesystem", filesystem())
	c := w.standalone()
	require.JSONEq(t, `{}`, string(c.ok("resources/subscribe", obj{"uri": in("filesystem", appLog)})))
	require.Equal(t, []string{appLog}, fs.uris("resources/subscribe"))
	require.JSONEq(t, `{}`, string(c.ok("resources/unsubscribe", obj{"uri": in("filesystem", appLog)})))
	require.Equal(t, []string{appLog}, fs.uris("resources/unsubscribe"))
}

func TestR3_26_R3_29_UpdatesReachSubscribersOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	fs := w.backend("filesystem", filesystem())
	a, b, c := w.bridged(), w.bridged(), w.bridged()
	uri := in("filesystem", appLog)
	a.ok("resources/subscribe", obj{"uri": uri})
	b.ok("resources/subscribe", obj{"uri": uri})
	c.ok("resources/subscribe", obj{"uri": in("filesystem", appJSON)})
	require.Equal(t, []string{appLog, appJSON}, fs.uris("resources/subscribe"))
	fs.updated(appLog)
	require.Equal(t, []string{uri}, a.waitUpdates(1))
	require.Equal(t, []string{uri}, b.waitUpdates(1))
	fs.updated(appJSON)
	require.Equal(t, []string{in("filesystem", appJSON)}, c.waitUpdates(1))
	for _, client := range []*client{a, b} {
		client.ok("ping", nil)
		require.Equal(t, []string{uri}, client.updates())
	}
}

func TestR3_27_SubscribeToUnknownResourceAsksNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	fs := w.backend("filesystem", filesystem())
	c := w.standalone()
	e := c.fault("resources/subscribe", obj{"uri": in("filesystem", "file:///nope")})
	require.Equal(t, "RESOURCE_NOT_FOUND", e.kind())
	require.Zero(t, fs.count("resources/subscribe"))
}

func TestR3_28_R0_07_LastUnsubscribeReachesTheBackend(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	fs := w.backend("filesystem", filesystem())
	a, b, c := w.bridged(), w.bridged(), w.bridged()
	log, json := in("filesystem", appLog), in("filesystem", appJSON)
	for _, client := range []*client{a, b} {
		client.ok("resources/subscribe", obj{"uri": log})
	}
	a.ok("resources/unsubscribe", obj{"uri": log})
	require.Zero(t, fs.count("resources/unsubscribe"))
	b.ok("resources/unsubscribe", obj{"uri": log})
	require.Equal(t, []string{appLog}, fs.uris("resources/unsubscribe"))

	// An update that nobody wants any more, then one that somebody wants.
	b.ok("resources/subscribe", obj{"uri": json})
	fs.updated(appLog)
	fs.updated(appJSON)
	require.Equal(t, []string{json}, b.waitUpdates(1))
	a.ok("ping", nil)
	require.Empty(t, a.updates())

	// A client that goes away counts as an unsubscribe, however it goes.
	c.ok("resources/subscribe", obj{"uri": log})
	c.prog.signal(syscall.SIGKILL)
	fs.wait("the unsubscribe of a killed client", func() bool { return len(fs.pick("resources/unsubscribe")) == 2 })
	b.close()
	fs.wait("the unsubscribe of a closed client", func() bool { return len(fs.pick("resources/unsubscribe")) == 3 })
}

func TestC13_UnsubscribeIsIdempotent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	fs := w.backend("filesystem", filesystem())
	c := w.standalone()
	uri := in("filesystem", appLog)
	require.JSONEq(t, `{}`, string(c.ok("resources/unsubscribe", obj{"uri": uri})))
	require.Zero(t, fs.count("resources/unsubscribe"))
	c.ok("resources/subscribe", obj{"uri": uri})
	c.ok("resources/subscribe", obj{"uri": uri})
	require.Equal(t, 1, fs.count("resources/subscribe"))
	c.ok("resources/unsubscribe", obj{"uri": uri})
	require.Equal(t, 1, fs.count("resources/unsubscribe"))
}

func TestR3_36_RejectedSubscriptionLeavesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	script := filesystem()
	script["on"] = obj{"resources/subscribe " + appLog: actions(do("error", obj{"error": obj{"code": -32603, "message": "boom"}, "times": 1}))}
	fs := w.backend("filesystem", script)
	s := w.serve()
	c := s.client(true)
	uri := in("filesystem", appLog)
	e := c.fault("resources/subscribe", obj{"uri": uri})
	require.Contains(t, e.Message, "boom")
	require.Contains(t, []string{"", "0"}, s.metric(`mcp_resource_subscriptions_active{server_id="filesystem"}`))
	c.ok("resources/subscribe", obj{"uri": in("filesystem", appJSON)})
	fs.updated(appLog)
	fs.updated(appJSON)
	require.Equal(t, []string{in("filesystem", appJSON)}, c.waitUpdates(1))
	c.ok("resources/subscribe", obj{"uri": uri})
	require.Len(t, fs.uris("resources/subscribe"), 3)
	require.Equal(t, "2", s.metric(`mcp_resource_subscriptions_active{server_id="filesystem"}`))
}

func TestR3_38_SubscriptionGauge(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	fs := w.backend("filesystem", filesystem())
	s := w.serve()
	c := s.client(false)
	const gauge = `mcp_resource_subscriptions_active{server_id="filesystem"}`
	c.ok("resources/subscribe", obj{"uri": in("filesystem", appLog)})
	c.ok("resources/subscribe", obj{"uri": in("filesystem", appJSON)})
	require.Equal(t, "2", s.metric(gauge))
	c.ok("resources/unsubscribe", obj{"uri": in("filesystem", appJSON)})
	require.Equal(t, "1", s.metric(gauge))
	require.Less(t, s.do("DELETE", "/mcp", map[string]string{"Mcp-Session-Id": c.web.id}, "").status, 300)
	eventually(t, "no subscription", func() bool { return s.metric(gauge) == "0" })
	fs.waitReceived("resources/unsubscribe", 2)
}

func TestR0_11_ManySubscriptions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backend("b", obj{"resources": []obj{}, "generate": obj{"resources": 1500}})
	c := w.standalone()
	uris := c.names("resources")
	require.Len(t, uris, 1500)
	var ids []string
	for _, uri := range uris {
		ids = append(ids, c.begin("resources/subscribe", obj{"uri": uri}))
	}
	for _, id := range ids {
		require.Nil(t, c.end(id).Error)
	}
	require.Equal(t, 1500, b.count("resources/subscribe"))
	b.updated("gen:///item/001499")
	require.Equal(t, []string{in("b", "gen:///item/001499")}, c.waitUpdates(1))
}

func TestC9_UpdateOfASubResourceCountsForItsParent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	fs := w.backend("fs", obj{"resources": []obj{resource("file:///dir"), resource("file:///dirty"), resource("file:///else")}})
	c := w.standalone()
	c.ok("resources/subscribe", obj{"uri": in("fs", "file:///dir")})
	c.ok("resources/subscribe", obj{"uri": in("fs", "file:///else")})
	fs.updated("file:///dirty/x") // not below it: whole segments count
	fs.updated("file:///dir/a.txt")
	fs.updated("file:///else")
	got := c.waitUpdates(2)
	require.Len(t, got, 2)
	require.Contains(t, got, in("fs", "file:///else"))
	require.NotContains(t, fmt.Sprint(got), "dirty")
}

func TestC9_AliasOfTheSubscriberIsEchoed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	fs := w.backend("filesystem", filesystem())
	c := w.standalone()
	c.ok("resources/subscribe", obj{"uri": "filesystem_file_logs_app.log"})
	require.Equal(t, []string{appLog}, fs.uris("resources/subscribe"))
	fs.updated(appLog)
	require.Equal(t, []string{"filesystem_file_logs_app.log"}, c.waitUpdates(1))
	c.ok("resources/unsubscribe", obj{"uri": "filesystem_file_logs_app.log"})
	require.Equal(t, 1, fs.count("resources/unsubscribe"))
}

func TestSubscribeToATemplatesExpansion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	db := w.backend("dbsrv", dbsrv())
	c := w.standalone()
	uri := in("dbsrv", "mcp://database/users/42")
	c.ok("resources/subscribe", obj{"uri": uri})
	require.Equal(t, []string{"mcp://database/users/42"}, db.uris("resources/subscribe"))
	db.updated("mcp://database/users/42")
	require.Equal(t, []string{uri}, c.waitUpdates(1))
}

func TestC12_SubscribeIsAcknowledgedAfterTheBackend(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	script := filesystem()
	script["on"] = obj{"resources/subscribe": actions(do("wait", obj{"name": "go"}))}
	fs := w.backend("filesystem", script)
	c := w.standalone()
	id := c.begin("resources/subscribe", obj{"uri": in("filesystem", appLog)})
	fs.waitEvent("wait", "go")
	c.ok("ping", nil)
	c.mu.Lock()
	early := len(c.replies[id])
	c.mu.Unlock()
	require.Zero(t, early, "acknowledged before the backend did")
	fs.do(do("release", obj{"name": "go"}))
	require.Nil(t, c.end(id).Error)
}

func TestC12_SubscriptionsAreRestoredAfterAReconnect(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	fs := w.backend("filesystem", filesystem())
	c := w.standalone()
	uri := in("filesystem", appLog)
	c.ok("resources/subscribe", obj{"uri": uri})
	fs.do(do("crash", obj{"code": 1}))
	fs.waitStarts(2)
	fs.waitReceived("resources/subscribe", 2)
	fs.updated(appLog)
	require.Contains(t, c.waitUpdates(1), uri)
	require.Equal(t, []string{appLog, appLog}, fs.uris("resources/subscribe"))
}

func TestSubscribeWithoutTheCapabilityIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	script := filesystem()
	script["capabilities"] = obj{"resources": obj{}}
	fs := w.backend("filesystem", script)
	c := w.standalone()
	e := c.fault("resources/subscribe", obj{"uri": in("filesystem", appLog)})
	require.Contains(t, e.Message, "filesystem")
	require.Zero(t, fs.count("resources/subscribe"))
}

func TestResourceThatWasLeftOutOnceIsAskedForAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backend("b", obj{"era": "modern", "resources": []obj{resource("x:1")}, "dropURIs": []string{"x:1"}})
	c := w.standalone()
	c.fault("resources/subscribe", obj{"uri": in("b", "x:1")})
	n := b.count("subscriptions/listen")
	c.fault("resources/subscribe", obj{"uri": in("b", "x:1")})
	require.Greater(t, b.count("subscriptions/listen"), n)
}
