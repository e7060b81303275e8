//go:build e2e

package calls

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// sharers are two stateless clients over HTTP, which nothing but their token
// identifies.
func sharers(w *e2e.World, caps e2e.Obj) (one, two *e2e.Client) {
	w.T.Helper()
	one, two = w.Served().Stateless(), w.Served().Stateless()
	one.Caps, two.Caps = caps, caps
	return one, two
}

func TestQuestionOfACancelledCallReachesNoOtherClient(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("b", e2e.Asking("elicitation/create", e2e.Form))
	gone, other := w.Socket(), w.Socket()
	for _, c := range []*e2e.Client{gone, other} {
		c.Caps = e2e.Obj{"elicitation": e2e.Obj{}}
		c.Init()
	}
	cancelled := gone.Begin("tools/call", e2e.Obj{"name": "b_hang"})
	b.WaitEvent("wait", "hang")
	waits := other.Begin("tools/call", e2e.Obj{"name": "b_other"})
	b.WaitEvent("wait", "other")
	gone.Notify("notifications/cancelled", e2e.Obj{"requestId": json.RawMessage(cancelled)})
	b.WaitReceived("notifications/cancelled", 1)
	b.Do(e2e.Do("request", e2e.Obj{"method": "elicitation/create", "params": e2e.Form})) // it heeds that late
	require.Equal(t, "cancel", e2e.Str(b.WaitEvent("reply", "elicitation/create").Msg, "action"))
	b.Do(e2e.Do("release", e2e.Obj{"name": "other"}))
	require.Nil(t, other.End(waits).Error)
	require.Empty(t, other.Asks)

	// The client's own next call is no other's.
	gone.Reply = func(e2e.Message) (any, any) { return e2e.Accepted, nil }
	require.Contains(t, gone.CallText("b_ask", e2e.Obj{}), "Alice")
}

func TestAFormIsNotAskedOfAClientThatOpensURLsOnly(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("ask")}, "on": e2e.Obj{
		"tools/call ask": e2e.Actions(e2e.Do("request", e2e.Obj{"method": "elicitation/create", "params": e2e.Form}), e2e.Do("answers")),
	}})
	c := w.Socket()
	c.Caps = e2e.Obj{"elicitation": e2e.Obj{"url": e2e.Obj{}}}
	c.Reply = func(e2e.Message) (any, any) { return nil, e2e.Obj{"code": -32602, "message": "no forms here"} }
	c.Init()
	require.Contains(t, c.CallText("b_ask", e2e.Obj{}), "did not declare elicitation in form mode")
	require.Empty(t, c.Asks)
}
