//go:build e2e

package web

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

func TestHTTPBackendIsServedLikeAnyOther(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	type remote struct {
		name, path   string
		script, conf e2e.Obj
	}
	for _, r := range e2e.Variants(3,
		remote{"events", "/mcp", e2e.Obj{"sse": true}, e2e.Obj{}},
		remote{"stateless", "/mcp", e2e.Obj{"stateless": true, "nostream": true}, e2e.Obj{}},
		remote{"fallback", "/sse", e2e.Obj{}, e2e.Obj{}},
		remote{"json", "/mcp", e2e.Obj{}, e2e.Obj{}},
		remote{"sse", "/sse", e2e.Obj{}, e2e.Obj{"type": "sse"}},
	) {
		w.Remote(r.name, r.path, e2e.Merge(e2e.RemoteScript(), []e2e.Obj{r.script}), r.conf)
	}
	c := w.Standalone()
	for _, b := range w.Backends {
		require.Subset(t, c.Names("resources"), []string{e2e.In(b.Name, e2e.AppJSON), e2e.In(b.Name, e2e.AppLog)})
		require.Subset(t, c.Names("tools"), []string{b.Name + "_move", b.Name + "_stat"})
		require.Equal(t, b.Name+" "+e2e.AppLog, c.ReadText(e2e.In(b.Name, e2e.AppLog)))
		require.Equal(t, b.Name+":stat:{}", c.CallText(b.Name+"_stat", e2e.Obj{}))
		if b.Name == "stateless" {
			continue
		}
		c.Ok("resources/subscribe", e2e.Obj{"uri": e2e.In(b.Name, e2e.AppLog)})
		require.Equal(t, []string{e2e.AppLog}, b.Uris("resources/subscribe"))
		b.Updated(e2e.AppLog)
		c.WaitNote("notifications/resources/updated", func(p json.RawMessage) bool { return e2e.Str(p, "uri") == e2e.In(b.Name, e2e.AppLog) })
		b.Add("tools", e2e.Tool("new"))
		b.ListChanged("tools")
		c.WaitListed("tools", b.Name+"_new", true)
	}
}

// jsonID parses a raw id.
func jsonID(id string) any {
	var n int
	_, _ = fmt.Sscan(id, &n)
	return n
}

func TestHTTPBackendRelaysProgressCancellationAndRequests(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Remote("remote", "/mcp", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("steps"), e2e.Tool("ask"), e2e.Tool("slow")}, "on": e2e.Obj{
		"tools/call steps": e2e.Actions(e2e.Do("progress", e2e.Obj{"n": 3})),
		"tools/call ask":   e2e.Actions(e2e.Do("request", e2e.Obj{"method": "elicitation/create", "params": e2e.Obj{"message": "m", "requestedSchema": e2e.Obj{"type": "object"}}}), e2e.Do("answers")),
		"tools/call slow":  e2e.Actions(e2e.Do("wait", e2e.Obj{"name": "never"})),
	}})
	c, other := w.Socket(), w.Socket()
	for _, client := range []*e2e.Client{c, other} {
		client.Caps = e2e.Obj{"elicitation": e2e.Obj{}}
		client.Reply = func(e2e.Message) (any, any) { return e2e.Obj{"action": "decline"}, nil }
		client.Init()
	}
	m := c.Request("tools/call", e2e.Obj{"name": "remote_steps", "_meta": e2e.Obj{"progressToken": "x"}})
	require.Nil(t, m.Error)
	require.Len(t, c.NotesOf("notifications/progress"), 3)

	// Over HTTP the stream identifies the calling request, even if other clients have one
	// in flight.
	slow := other.Begin("tools/call", e2e.Obj{"name": "remote_slow"})
	b.WaitEvent("wait", "never")
	require.Equal(t, `[{"action":"decline"}]`, c.CallText("remote_ask", e2e.Obj{}))
	require.Len(t, c.Asks, 1)
	require.Empty(t, other.Asks)
	other.Notify("notifications/cancelled", e2e.Obj{"requestId": e2e.Marshal(jsonID(slow))})
	b.WaitEvent("gone", "slow")
}
