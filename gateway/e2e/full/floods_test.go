//go:build faults

package full

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// A long list of unique words that changes again and again.
func TestALongListThatChangesAllTheTimeIsIndexedWithinBounds(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Gateway["meta_tools"] = true
	r := rand.New(rand.NewPCG(1, 2))
	const entries, changes = 4_000, 3
	list := func(name string) (tools []e2e.Obj) {
		for i := range entries {
			var text strings.Builder
			for text.Len() < 4000 {
				fmt.Fprintf(&text, "w%06x ", r.Uint32()>>8)
			}
			tools = append(tools, e2e.Tool(fmt.Sprintf("%s%05d", name, i), e2e.Obj{"description": text.String()}))
		}
		return tools
	}
	lists := map[string][]e2e.Obj{"wordy": list("wordy"), "gossip": list("gossip")}
	b := w.Backend("b", e2e.Obj{"tools": lists["wordy"]}, e2e.Obj{"startup_timeout": "60s"})
	w.Backend("small", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("invoices", e2e.Obj{"description": "of suppliers"})}})
	c := w.Standalone()
	find := func(words string) string {
		return string(c.Ok("tools/call", e2e.Obj{"name": "search_tools", "arguments": e2e.Obj{"query": words}}))
	}
	// The first list is found by name, regardless of the amount of text.
	for _, name := range []string{"wordy00000", "wordy02000", "wordy03999"} {
		e2e.Eventually(t, name+" to be found", func() bool { return strings.Contains(find(name), "b_"+name) })
	}
	for i := range changes {
		now, before := "gossip", "wordy"
		if i%2 == 1 {
			now, before = before, now
		}
		c.Forget()
		b.Do(e2e.Do("set", e2e.Obj{"kind": "tools", "entries": lists[now]}))
		b.ListChanged("tools")
		c.WaitNote("notifications/tools/list_changed", nil)
		require.NotContains(t, find(before+"00007"), "b_"+before+"00007", "removed entries are not found")
		require.Contains(t, find("suppliers"), "small_invoices", "other clients don't wait either")
	}
	c.Prog.Bounded(500)
}

// The limits in bytes for URIs of subscriptions, of one client and of all, and such a
// URI.
const (
	subscribed    = 8 << 20
	subscribedAll = 64 << 20
	longURI       = 60 << 10
)

func longSubscription(client, i int) string {
	return fmt.Sprintf("mcp://b/file:///%d/%d/%s", client, i, strings.Repeat("x", longURI))
}

func TestSubscriptionsToLongURIsAreBounded(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("b", e2e.Watchable(), e2e.Obj{"open_resources": true})
	s := w.Serve()
	const fit = subscribed / (2 * longURI) // the client's spelling and the server's
	fill := func(c *e2e.Client, n int) (held int, why e2e.RpcError) {
		for ; held <= fit; held++ {
			if m := c.Request("resources/subscribe", e2e.Obj{"uri": longSubscription(n, held)}); m.Error != nil {
				return held, e2e.ParseError(t, m)
			}
		}
		t.Fatal("no subscription was refused")
		return held, why
	}
	c := w.BridgeToRunning()
	n, e := fill(c, 0)
	require.Equal(t, -32602, e.Code)
	require.Contains(t, e.Message, "8 MiB")
	require.GreaterOrEqual(t, n, fit-1)
	// Released memory is available again.
	c.Ok("resources/unsubscribe", e2e.Obj{"uri": longSubscription(0, 0)})
	c.Ok("resources/subscribe", e2e.Obj{"uri": longSubscription(0, 1000)})
	all := n
	for client := 1; !strings.Contains(e.Message, "64 MiB"); client++ {
		require.LessOrEqual(t, client, subscribedAll/subscribed)
		n, e = fill(w.BridgeToRunning(), client)
		all += n
	}
	require.GreaterOrEqual(t, all, subscribedAll/(2*longURI)-10)
	b.Updated("file:///0/1/" + strings.Repeat("x", longURI))
	c.WaitNote("notifications/resources/updated", func(p json.RawMessage) bool { return e2e.Str(p, "uri") == longSubscription(0, 1) })
	s.Bounded(450)
}

func TestListensToLongURIsAreBounded(t *testing.T) {
	e2e.OverEveryTransport(t, func(t *testing.T, w *e2e.World, connect func() *e2e.Client) {
		w.Backend("b", e2e.Watchable(), e2e.Obj{"open_resources": true})
		c := connect()
		c.Ok("tools/list", e2e.Obj{})
		uris := func(n int) (all []string) {
			for i := range n {
				all = append(all, longSubscription(0, i))
			}
			return all
		}
		e := c.Fault("subscriptions/listen", e2e.Obj{"notifications": e2e.Obj{"resourceSubscriptions": uris(subscribed/longURI + 1)}})
		require.Contains(t, e.Message, "8 MiB")
		_, honoured := c.ListenTo(e2e.Obj{"resourceSubscriptions": uris(subscribed / longURI)})
		n := len(e2e.Each(honoured, "resourceSubscriptions"))
		require.LessOrEqual(t, n, subscribed/(2*longURI))
		require.GreaterOrEqual(t, n, subscribed/(2*longURI)-8, "listens within the limit are accepted") // eight requests are sent at a time
		if c.Web == nil {
			_, honoured = c.ListenTo(e2e.Obj{"resourceSubscriptions": []string{longSubscription(1, 0)}})
			require.Empty(t, e2e.Each(honoured, "resourceSubscriptions"), "all listens of a client count together")
		}
	})
}
