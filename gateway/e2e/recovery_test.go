package e2e

import (
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
			b := w.remote("remote", conf.path, merge(remoteScript(), []obj{conf.script}), merge(obj{"timeout": "1s"}, []obj{conf.entry}))
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
