//go:build e2e

package eras

import (
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

func TestListenLeavesOutWhatNobodyKnows(t *testing.T) {
	e2e.OverEveryTransport(t, func(t *testing.T, w *e2e.World, connect func() *e2e.Client) {
		b := w.Backend("b", e2e.Watchable())
		c := connect()
		known, unknown := e2e.In("b", "file:///a"), []string{e2e.In("b", "file:///none"), e2e.In("none", "file:///a"), "x"}
		id, honoured := c.Hears(e2e.Obj{"toolsListChanged": true, "resourceSubscriptions": append(unknown, known)})
		require.JSONEq(t, `{"toolsListChanged":true,"resourceSubscriptions":["`+known+`"]}`, string(honoured))
		require.Equal(t, []string{"file:///a"}, b.Uris("resources/subscribe"))
		b.Updated("file:///a")
		got := c.Noted("notifications/resources/updated", nil)
		require.Equal(t, []string{id, known}, []string{e2e.Tagged(got.Params), e2e.Str(got.Params, "uri")})

		// With nothing left to wait for it ends.
		id, honoured = c.Hears(e2e.Obj{"resourceSubscriptions": unknown})
		require.JSONEq(t, `{"resourceSubscriptions":[]}`, string(honoured))
		require.Equal(t, id, e2e.Tagged(c.End(id).Result))
	})
}

func TestListenOfBadFilters(t *testing.T) {
	e2e.OverEveryTransport(t, func(t *testing.T, w *e2e.World, connect func() *e2e.Client) {
		w.Backend("b", e2e.Watchable())
		c := connect()
		for _, filter := range []any{nil, 3, e2e.Obj{"resourceSubscriptions": "x"}, e2e.Obj{"resourceSubscriptions": []any{1}}} {
			require.Equal(t, -32602, c.Fault("subscriptions/listen", e2e.Obj{"notifications": filter}).Code, "%v", filter)
		}
		require.Empty(t, c.NotesOf("notifications/subscriptions/acknowledged"))

		// Nothing to wait for: it ends at once.
		id := c.Begin("subscriptions/listen", e2e.Obj{"notifications": e2e.Obj{}})
		end := c.End(id)
		require.Equal(t, id, e2e.Tagged(end.Result))
		require.Equal(t, `"complete"`, string(e2e.At(end.Result, "resultType")))
	})
}
