//go:build e2e

package eras

import (
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

func TestR3_28_R0_07_LastUnsubscribeReachesTheBackend(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	fs := w.Backend("filesystem", e2e.Filesystem())
	a, b, c := w.Join(), w.Join(), w.BridgeTo()
	log, json := e2e.In("filesystem", e2e.AppLog), e2e.In("filesystem", e2e.AppJSON)
	for _, client := range []*e2e.Client{a, b} {
		client.Ok("resources/subscribe", e2e.Obj{"uri": log})
	}
	a.Ok("resources/unsubscribe", e2e.Obj{"uri": log})
	require.Zero(t, fs.Count("resources/unsubscribe"))
	b.Ok("resources/unsubscribe", e2e.Obj{"uri": log})
	require.Equal(t, []string{e2e.AppLog}, fs.Uris("resources/unsubscribe"))

	// An update that nobody wants any more, then one that somebody wants.
	b.Ok("resources/subscribe", e2e.Obj{"uri": json})
	fs.Updated(e2e.AppLog)
	fs.Updated(e2e.AppJSON)
	require.Equal(t, []string{json}, b.WaitUpdates(1))
	a.Ok("ping", nil)
	require.Empty(t, a.Updates())

	// A client that goes away counts as an unsubscribe, however it goes.
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
