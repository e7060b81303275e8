package e2e

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// A peer that vanished without a word leaves connections that are half open:
// they take what is written and never answer.
func TestHTTPBackendThatVanishesIsNoticedAndJoinedAgain(t *testing.T) {
	t.Parallel()
	for name, conf := range map[string]struct {
		path          string
		script, entry obj
	}{
		"up to 2025-11-25": {"/mcp", obj{}, obj{}},
		"2026-07-28":       {"/mcp", obj{"era": "modern"}, obj{}},
		"sse":              {"/sse", obj{}, obj{"type": "sse"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			b := w.remote("remote", conf.path, merge(remoteScript(), []obj{conf.script}), merge(obj{"timeout": "3s"}, []obj{conf.entry}))
			network := b.behindProxy()
			w.beside()
			c := w.standalone()
			uri := in("remote", appLog)
			c.ok("resources/subscribe", obj{"uri": uri})
			require.Equal(t, "remote:stat:{}", c.callText("remote_stat", obj{}))

			network.vanish()
			e := c.fault("tools/call", obj{"name": "remote_stat", "arguments": obj{}})
			require.Equal(t, "REQUEST_TIMEOUT", e.kind())
			eventually(t, "calls to fail at once, for the right reason", func() bool {
				e = c.fault("tools/call", obj{"name": "remote_stat", "arguments": obj{}})
				return e.kind() == "CONNECTION_ERROR"
			})
			require.Equal(t, "remote", str(e.Data, "server"))
			c.fine()

			b.add("tools", tool("new")) // while nobody can be told
			network.appear()
			c.waitListed("tools", "remote_new", true)
			require.Equal(t, "remote:new:{}", c.callText("remote_new", obj{}))
			c.waitUpdates(1) // there may have been one in between
			c.forget()
			b.updated(appLog)
			require.Contains(t, c.waitUpdates(1), uri)
		})
	}
}

func TestWaitForAHumanHoldsNoPlaceThatOthersNeed(t *testing.T) {
	eachCombination(t, func(t *testing.T, w *world, x combination) {
		w.gateway["limits"] = obj{"in_flight": 1}
		x.backend(w, obj{"tools": []obj{tool("ask"), tool("quick")}, "on": obj{"tools/call ask": actions(
			do("request", obj{"method": "elicitation/create", "params": form}), do("answers"),
		)}}, obj{"timeout": "5s"})
		h := x.client(w, obj{"elicitation": obj{}}, 0, nil)
		meanwhile := func() {
			require.Equal(t, "b:quick:{}", h.callText("b_quick", obj{}), "in the only place there is")
		}
		var end message
		if x.modernClient() {
			h.reply = func(string, json.RawMessage) any {
				meanwhile()
				return accepted
			}
			end = h.call("tools/call", obj{"name": "b_ask"})
		} else {
			h.client.reply = nil // the question stays open
			id := h.begin("tools/call", obj{"name": "b_ask"})
			question := h.asked(1)
			meanwhile()
			h.write(marshal(obj{"jsonrpc": "2.0", "id": question.ID, "result": accepted}))
			end = h.end(id)
		}
		require.Nil(t, end.Error, "%s", end.raw)
		require.Contains(t, str(end.Result, "content", 0, "text"), "Alice")
	})
}
