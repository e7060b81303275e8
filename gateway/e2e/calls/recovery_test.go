//go:build e2e

package calls

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// A peer that vanished silently leaves half-open connections: they accept data and never
// answer.
func TestHTTPBackendThatVanishesIsNoticedAndJoinedAgain(t *testing.T) {
	t.Parallel()
	for name, conf := range map[string]struct {
		path          string
		script, entry e2e.Obj
	}{
		"up to 2025-11-25": {"/mcp", e2e.Obj{}, e2e.Obj{}},
		"2026-07-28":       {"/mcp", e2e.Obj{"era": "modern"}, e2e.Obj{}},
		"sse":              {"/sse", e2e.Obj{}, e2e.Obj{"type": "sse"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			b := w.Remote("remote", conf.path, e2e.Merge(e2e.RemoteScript(), []e2e.Obj{conf.script}), e2e.Merge(e2e.Obj{"timeout": "3s", "call_timeout": "10m"}, []e2e.Obj{conf.entry}))
			network := behindProxy(b)
			w.HealthyServer()
			c := w.Standalone()
			uri := e2e.In("remote", e2e.AppLog)
			c.Ok("resources/subscribe", e2e.Obj{"uri": uri})
			require.Equal(t, "remote:stat:{}", c.CallText("remote_stat", e2e.Obj{}))

			network.Vanish()
			e := c.Fails(e2e.Obj{"name": "remote_stat", "arguments": e2e.Obj{}})
			require.Equal(t, "CONNECTION_ERROR", e.Kind(), "long before call_timeout")
			require.Contains(t, e.Message, "does not respond")
			e2e.Eventually(t, "calls to fail at once, for the right reason", func() bool {
				e = c.Fails(e2e.Obj{"name": "remote_stat", "arguments": e2e.Obj{}})
				return e.Kind() == "CONNECTION_ERROR"
			})
			require.Equal(t, "remote", e2e.Str(e.Data, "server"))
			c.CallHealthyServer()

			b.Add("tools", e2e.Tool("new")) // while no notification can arrive
			network.Appear()
			c.WaitListed("tools", "remote_new", true)
			require.Equal(t, "remote:new:{}", c.CallText("remote_new", e2e.Obj{}))
			c.WaitUpdates(1) // there may have been one in between
			c.Forget()
			b.Updated(e2e.AppLog)
			require.Contains(t, c.WaitUpdates(1), uri)
		})
	}
}

func TestWaitForAHumanHoldsNoPlaceThatOthersNeed(t *testing.T) {
	e2e.EachCombination(t, func(t *testing.T, w *e2e.World, x e2e.Combination) {
		w.Gateway["limits"] = e2e.Obj{"in_flight": 1}
		x.Backend(w, e2e.Obj{"tools": []e2e.Obj{e2e.Tool("ask"), e2e.Tool("quick")}, "on": e2e.Obj{"tools/call ask": e2e.Actions(
			e2e.Do("request", e2e.Obj{"method": "elicitation/create", "params": e2e.Form}), e2e.Do("answers"),
		)}}, e2e.Obj{"timeout": "5s"})
		h := x.Client(w, e2e.Obj{"elicitation": e2e.Obj{}}, 0, nil)
		meanwhile := func() {
			require.Equal(t, "b:quick:{}", h.CallText("b_quick", e2e.Obj{}), "in the only slot")
		}
		var end e2e.Message
		if x.ModernClient() {
			h.Reply = func(string, json.RawMessage) any {
				meanwhile()
				return e2e.Accepted
			}
			end = h.Call("tools/call", e2e.Obj{"name": "b_ask"})
		} else {
			h.Client.Reply = nil // the request stays open
			id := h.Begin("tools/call", e2e.Obj{"name": "b_ask"})
			question := h.WaitAsks(1)
			meanwhile()
			h.Write(e2e.Marshal(e2e.Obj{"jsonrpc": "2.0", "id": question.ID, "result": e2e.Accepted}))
			end = h.End(id)
		}
		require.Nil(t, end.Error, "%s", end.Raw)
		require.Contains(t, e2e.Str(end.Result, "content", 0, "text"), "Alice")
	})
}

// behindProxy puts a proxy in front of a remote server that is not yet used.
func behindProxy(b *e2e.Backend) *e2e.Proxy {
	b.T.Helper()
	url, _ := b.Conf["url"].(string)
	addr, path, _ := strings.Cut(strings.TrimPrefix(url, "http://"), "/")
	p := e2e.NewProxy(b.T, addr)
	b.Conf["url"] = "http://" + p.Addr() + "/" + path
	return p
}

func TestNamesAskedBeforeTheFirstListWaitForIt(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	script := e2e.Filesystem()
	script["on"] = e2e.Obj{"initialize": e2e.Actions(e2e.Do("wait", e2e.Obj{"name": "up"}))}
	fs := w.Backend("filesystem", script)
	c := w.Standalone()
	call := c.Begin("tools/call", e2e.Obj{"name": "filesystem_stat", "arguments": e2e.Obj{}})
	read := c.Begin("resources/read", e2e.Obj{"uri": e2e.In("filesystem", e2e.AppLog)})
	list := c.Begin("resources/list", nil)
	fs.WaitEvent("wait", "up")
	c.Ok("ping", nil)
	fs.Do(e2e.Do("release", e2e.Obj{"name": "up"}))
	require.Equal(t, "filesystem:stat:{}", e2e.Str(c.End(call).Result, "content", 0, "text"))
	require.Equal(t, "filesystem "+e2e.AppLog, e2e.Str(c.End(read).Result, "contents", 0, "text"))
	require.NotEmpty(t, e2e.Each(c.End(list).Result, "resources"))
}
