package web

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

func TestHTTPBackendIsServedLikeAnyOther(t *testing.T) {
	for name, conf := range map[string]struct {
		path   string
		script e2e.Obj
		entry  e2e.Obj
	}{
		"json":      {"/mcp", e2e.Obj{}, e2e.Obj{}},
		"events":    {"/mcp", e2e.Obj{"sse": true}, e2e.Obj{}},
		"stateless": {"/mcp", e2e.Obj{"stateless": true, "nostream": true}, e2e.Obj{}},
		"sse":       {"/sse", e2e.Obj{}, e2e.Obj{"type": "sse"}},
		"fallback":  {"/sse", e2e.Obj{}, e2e.Obj{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			b := w.Remote("remote", conf.path, e2e.Merge(e2e.RemoteScript(), []e2e.Obj{conf.script}), conf.entry)
			c := w.Standalone()
			require.Equal(t, []string{e2e.In("remote", e2e.AppJSON), e2e.In("remote", e2e.AppLog)}, c.Names("resources"))
			require.Equal(t, []string{"remote_move", "remote_stat"}, c.Names("tools"))
			require.Equal(t, "remote "+e2e.AppLog, c.ReadText(e2e.In("remote", e2e.AppLog)))
			require.Equal(t, "remote:stat:{}", c.CallText("remote_stat", e2e.Obj{}))
			if name == "stateless" {
				return
			}
			c.Ok("resources/subscribe", e2e.Obj{"uri": e2e.In("remote", e2e.AppLog)})
			require.Equal(t, []string{e2e.AppLog}, b.Uris("resources/subscribe"))
			b.Updated(e2e.AppLog)
			require.Equal(t, []string{e2e.In("remote", e2e.AppLog)}, c.WaitUpdates(1))
			b.Add("tools", e2e.Tool("new"))
			b.ListChanged("tools")
			c.WaitListed("tools", "remote_new", true)
		})
	}
}

func TestHTTPBackendRelaysProgressCancellationAndRequests(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Remote("remote", "/mcp", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("steps"), e2e.Tool("ask"), e2e.Tool("slow")}, "on": e2e.Obj{
		"tools/call steps": e2e.Actions(e2e.Do("progress", e2e.Obj{"n": 3})),
		"tools/call ask":   e2e.Actions(e2e.Do("request", e2e.Obj{"method": "elicitation/create", "params": e2e.Obj{"message": "m", "requestedSchema": e2e.Obj{"type": "object"}}}), e2e.Do("answers")),
		"tools/call slow":  e2e.Actions(e2e.Do("wait", e2e.Obj{"name": "never"})),
	}})
	w.Hosted = true
	c, other := w.Pipe("stdio"), w.Pipe("stdio")
	for _, client := range []*e2e.Client{c, other} {
		client.Caps = e2e.Obj{"elicitation": e2e.Obj{}}
		client.Reply = func(e2e.Message) (any, any) { return e2e.Obj{"action": "decline"}, nil }
		client.Init()
	}
	m := c.Request("tools/call", e2e.Obj{"name": "remote_steps", "_meta": e2e.Obj{"progressToken": "x"}})
	require.Nil(t, m.Error)
	require.Len(t, c.NotesOf("notifications/progress"), 3)

	// Over HTTP the stream says which call asks, whoever else has one in flight.
	slow := other.Begin("tools/call", e2e.Obj{"name": "remote_slow"})
	b.WaitEvent("wait", "never")
	require.Equal(t, `[{"action":"decline"}]`, c.CallText("remote_ask", e2e.Obj{}))
	require.Len(t, c.Asks, 1)
	require.Empty(t, other.Asks)
	other.Notify("notifications/cancelled", e2e.Obj{"requestId": e2e.Marshal(jsonID(slow))})
	b.WaitEvent("gone", "slow")
}

// jsonID is a raw id as a value.
func jsonID(id string) any {
	var n int
	_, _ = fmt.Sscan(id, &n)
	return n
}

func TestHTTPBackendThatKnowsNoGETIsUsed(t *testing.T) {
	t.Parallel()
	for _, status := range []int{400, 404, 405, 406, 501} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			script := e2e.RemoteScript()
			script["on"] = e2e.Obj{"http GET": e2e.Actions(e2e.Do("status", e2e.Obj{"code": status}))}
			b := w.Remote("remote", "/mcp", script)
			c := w.Standalone()
			require.Equal(t, "remote:stat:{}", c.CallText("remote_stat", e2e.Obj{}))
			if status == 404 {
				b.WaitReceived("ping", 1) // which tells that there is a session
			}
			for range 20 {
				require.Equal(t, "remote:stat:{}", c.CallText("remote_stat", e2e.Obj{}))
			}
			require.Equal(t, 1, b.Count("initialize"))
			b.Do(e2e.Do("forget"))
			e2e.Eventually(t, "a call in a new session", func() bool {
				return c.Request("tools/call", e2e.Obj{"name": "remote_stat"}).Error == nil
			})
			require.Equal(t, 2, b.Count("initialize"))
		})
	}
}

func TestCallThatMeetsAForgottenSessionIsSentAgain(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	script := e2e.RemoteScript()
	script["on"] = e2e.Obj{"http GET": e2e.Actions(e2e.Do("status", e2e.Obj{"code": 405}))} // else that may find it out, too
	b := w.Remote("remote", "/mcp", script)
	legacy, modern := w.Pair("socket")
	for i, c := range []*e2e.Client{legacy, modern, legacy, modern} {
		require.Contains(t, c.CallText("remote_stat", e2e.Obj{}), "remote:stat")
		require.Equal(t, i+1, b.Count("tools/call"), "each once")
		for _, kind := range []string{"tools", "prompts", "resources", "templates"} { // or one of these finds it out
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

	// One reached the server before, the others meet the end of the session at a time.
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
