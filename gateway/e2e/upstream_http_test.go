package e2e

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func remoteScript() obj {
	return merge(filesystem(), []obj{{"prompts": []obj{prompt("p")}}})
}

func TestHTTPBackendIsServedLikeAnyOther(t *testing.T) {
	for name, conf := range map[string]struct {
		path   string
		script obj
		entry  obj
	}{
		"json":      {"/mcp", obj{}, obj{}},
		"events":    {"/mcp", obj{"sse": true}, obj{}},
		"stateless": {"/mcp", obj{"stateless": true, "nostream": true}, obj{}},
		"sse":       {"/sse", obj{}, obj{"type": "sse"}},
		"fallback":  {"/sse", obj{}, obj{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			b := w.remote("remote", conf.path, merge(remoteScript(), []obj{conf.script}), conf.entry)
			c := w.standalone()
			require.Equal(t, []string{in("remote", appJSON), in("remote", appLog)}, c.names("resources"))
			require.Equal(t, []string{"remote_move", "remote_stat"}, c.names("tools"))
			require.Equal(t, "remote "+appLog, c.readText(in("remote", appLog)))
			require.Equal(t, "remote:stat:{}", c.callText("remote_stat", obj{}))
			if name == "stateless" {
				return
			}
			c.ok("resources/subscribe", obj{"uri": in("remote", appLog)})
			require.Equal(t, []string{appLog}, b.uris("resources/subscribe"))
			b.updated(appLog)
			require.Equal(t, []string{in("remote", appLog)}, c.waitUpdates(1))
			b.add("tools", tool("new"))
			b.listChanged("tools")
			c.waitListed("tools", "remote_new", true)
		})
	}
}

func TestHTTPBackendRelaysProgressCancellationAndRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.remote("remote", "/mcp", obj{"tools": []obj{tool("steps"), tool("ask"), tool("slow")}, "on": obj{
		"tools/call steps": actions(do("progress", obj{"n": 3})),
		"tools/call ask":   actions(do("request", obj{"method": "elicitation/create", "params": obj{"message": "m", "requestedSchema": obj{"type": "object"}}}), do("answers")),
		"tools/call slow":  actions(do("wait", obj{"name": "never"})),
	}})
	w.hosted = true
	c, other := w.pipe("stdio"), w.pipe("stdio")
	for _, client := range []*client{c, other} {
		client.caps = obj{"elicitation": obj{}}
		client.reply = func(message) (any, any) { return obj{"action": "decline"}, nil }
		client.init()
	}
	m := c.request("tools/call", obj{"name": "remote_steps", "_meta": obj{"progressToken": "x"}})
	require.Nil(t, m.Error)
	require.Len(t, c.notesOf("notifications/progress"), 3)

	// Over HTTP the stream says which call asks, whoever else has one in flight.
	slow := other.begin("tools/call", obj{"name": "remote_slow"})
	b.waitEvent("wait", "never")
	require.Equal(t, `[{"action":"decline"}]`, c.callText("remote_ask", obj{}))
	require.Len(t, c.asks, 1)
	require.Empty(t, other.asks)
	other.notify("notifications/cancelled", obj{"requestId": marshal(jsonID(slow))})
	b.waitEvent("gone", "slow")
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
			w := newWorld(t)
			script := remoteScript()
			script["on"] = obj{"http GET": actions(do("status", obj{"code": status}))}
			b := w.remote("remote", "/mcp", script)
			c := w.standalone()
			require.Equal(t, "remote:stat:{}", c.callText("remote_stat", obj{}))
			if status == 404 {
				b.waitReceived("ping", 1) // which tells that there is a session
			}
			for range 20 {
				require.Equal(t, "remote:stat:{}", c.callText("remote_stat", obj{}))
			}
			require.Equal(t, 1, b.count("initialize"))
			b.do(do("forget"))
			eventually(t, "a call in a new session", func() bool {
				return c.request("tools/call", obj{"name": "remote_stat"}).Error == nil
			})
			require.Equal(t, 2, b.count("initialize"))
		})
	}
}

func TestCallThatMeetsAForgottenSessionIsSentAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	script := remoteScript()
	script["on"] = obj{"http GET": actions(do("status", obj{"code": 405}))} // else that may find it out, too
	b := w.remote("remote", "/mcp", script)
	legacy, modern := w.pair("stdio")
	for i, c := range []*client{legacy, modern, legacy, modern} {
		require.Contains(t, c.callText("remote_stat", obj{}), "remote:stat")
		require.Equal(t, i+1, b.count("tools/call"), "each once")
		for _, kind := range []string{"tools", "prompts", "resources", "templates"} { // or one of these finds it out
			b.waitReceived(listMethod(kind), i+1)
		}
		b.do(do("forget"))
	}
	require.Equal(t, 4, b.count("initialize"))
}

func TestAForgottenSessionCostsNoneOfManyCalls(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.remote("remote", "/mcp", obj{"tools": []obj{tool("slow"), tool("stat")}, "nostream": true, "on": obj{
		"tools/call slow": actions(do("wait", obj{"name": "over"})),
	}})
	c := w.standalone()
	require.Contains(t, c.callText("remote_stat", obj{}), "remote:stat")
	b.waitReceived("tools/list", 1)

	// One reached the server before, the others meet the end of the session at a time.
	slow := c.begin("tools/call", obj{"name": "remote_slow"})
	b.waitEvent("wait", "over")
	b.do(do("forget"))
	var ids []string
	for range 20 {
		ids = append(ids, c.begin("tools/call", obj{"name": "remote_stat"}))
	}
	b.waitEvent("refused", "")
	b.do(do("release", obj{"name": "over"}))
	for _, id := range append(ids, slow) {
		require.Nil(t, c.end(id).Error)
	}
	require.Equal(t, 22, b.count("tools/call"), "each once")
	require.Equal(t, 2, b.count("initialize"))
}

func TestHTTPBackendThatForgetsItsSessionIsJoinedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.remote("remote", "/mcp", remoteScript())
	c := w.standalone()
	c.ok("resources/subscribe", obj{"uri": in("remote", appLog)})
	require.Equal(t, "remote "+appLog, c.readText(in("remote", appLog)))
	b.do(do("forget"))
	b.waitReceived("resources/subscribe", 2)
	b.waitReceived("initialize", 2)
	eventually(t, "a read after the new session", func() bool {
		return c.request("resources/read", obj{"uri": in("remote", appLog)}).Error == nil
	})
	b.updated(appLog)
	require.Contains(t, c.waitUpdates(1), in("remote", appLog))
}
