//go:build e2e

package web

import (
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

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

	// Over HTTP the stream says which call asks, whoever else has one in flight.
	slow := other.Begin("tools/call", e2e.Obj{"name": "remote_slow"})
	b.WaitEvent("wait", "never")
	require.Equal(t, `[{"action":"decline"}]`, c.CallText("remote_ask", e2e.Obj{}))
	require.Len(t, c.Asks, 1)
	require.Empty(t, other.Asks)
	other.Notify("notifications/cancelled", e2e.Obj{"requestId": e2e.Marshal(jsonID(slow))})
	b.WaitEvent("gone", "slow")
}
