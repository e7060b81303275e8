//go:build e2e

package web

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

func TestHTTPBackendThatKnowsNoGETIsUsed(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	for _, status := range []int{400, 404, 405, 406, 501} {
		script := e2e.RemoteScript()
		script["on"] = e2e.Obj{"http GET": e2e.Actions(e2e.Do("status", e2e.Obj{"code": status}))}
		w.Remote(fmt.Sprint("says", status), "/mcp", script)
	}
	c := w.Standalone()
	for _, b := range w.Backends {
		call := e2e.Obj{"name": b.Name + "_stat", "arguments": e2e.Obj{}}
		c.Ok("tools/call", call)
		if b.Name == "says404" {
			b.WaitReceived("ping", 1) // which shows that the session exists
		}
		for range 20 {
			c.Ok("tools/call", call)
		}
		require.Equal(t, 1, b.Count("initialize"), b.Name)
		b.Do(e2e.Do("forget"))
		e2e.Eventually(t, "a call in a new session", func() bool { return c.Works(call) })
		require.Equal(t, 2, b.Count("initialize"), b.Name)
	}
}

func TestCallThatMeetsAForgottenSessionIsSentAgain(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	script := e2e.RemoteScript()
	script["on"] = e2e.Obj{"http GET": e2e.Actions(e2e.Do("status", e2e.Obj{"code": 405}))} // otherwise that may detect it, too
	b := w.Remote("remote", "/mcp", script)
	legacy, modern := w.Pair("socket")
	for i, c := range []*e2e.Client{legacy, modern, legacy, modern} {
		require.Contains(t, c.CallText("remote_stat", e2e.Obj{}), "remote:stat")
		require.Equal(t, i+1, b.Count("tools/call"), "each once")
		for _, kind := range []string{"tools", "prompts", "resources", "templates"} { // or one of these detects it
			b.WaitReceived(e2e.ListMethod(kind), i+1)
		}
		b.Do(e2e.Do("forget"))
	}
	require.Equal(t, 4, b.Count("initialize"))
}

func TestAForgottenSessionCostsNoneOfManyCalls(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Remote("remote", "/mcp", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("slow"), e2e.Tool("stat")}, "nostream": true, "on": e2e.Obj{
		"tools/call slow": e2e.Actions(e2e.Do("wait", e2e.Obj{"name": "over"})),
	}})
	c := w.Standalone()
	require.Contains(t, c.CallText("remote_stat", e2e.Obj{}), "remote:stat")
	b.WaitReceived("tools/list", 1)

	// One reached the server before, the others meet the lost session at once.
	slow := c.Begin("tools/call", e2e.Obj{"name": "remote_slow"})
	b.WaitEvent("wait", "over")
	b.Do(e2e.Do("forget"))
	var ids []string
	for range 20 {
		ids = append(ids, c.Begin("tools/call", e2e.Obj{"name": "remote_stat"}))
	}
	b.WaitEvent("refused", "")
	b.Do(e2e.Do("release", e2e.Obj{"name": "over"}))
	for _, id := range append(ids, slow) {
		require.Nil(t, c.End(id).Error)
	}
	require.Equal(t, 22, b.Count("tools/call"), "each once")
	require.Equal(t, 2, b.Count("initialize"))
}

func TestHTTPBackendThatForgetsItsSessionIsJoinedAgain(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Remote("remote", "/mcp", e2e.RemoteScript())
	c := w.Standalone()
	c.Ok("resources/subscribe", e2e.Obj{"uri": e2e.In("remote", e2e.AppLog)})
	require.Equal(t, "remote "+e2e.AppLog, c.ReadText(e2e.In("remote", e2e.AppLog)))
	b.Do(e2e.Do("forget"))
	b.WaitReceived("resources/subscribe", 2)
	b.WaitReceived("initialize", 2)
	e2e.Eventually(t, "a read after the new session", func() bool {
		return c.Request("resources/read", e2e.Obj{"uri": e2e.In("remote", e2e.AppLog)}).Error == nil
	})
	b.Updated(e2e.AppLog)
	require.Contains(t, c.WaitUpdates(1), e2e.In("remote", e2e.AppLog))
}

func TestHTTPStreamCarriesSessionWideNotices(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	fs := w.Backend("filesystem", e2e.Filesystem())
	s := w.Serve()
	c, idle := s.Client(true), s.Client(true)
	c.Ok("resources/subscribe", e2e.Obj{"uri": e2e.In("filesystem", e2e.AppLog)})
	fs.Updated(e2e.AppLog)
	m := c.WaitNote("notifications/resources/updated", nil)
	require.Equal(t, "GET", m.Via)
	fs.Add("tools", e2e.Tool("new"))
	fs.ListChanged("tools")
	require.Equal(t, "GET", c.WaitNote("notifications/tools/list_changed", nil).Via)
	idle.WaitNote("notifications/tools/list_changed", nil)
	require.Empty(t, idle.Updates())
}
