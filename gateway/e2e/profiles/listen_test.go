//go:build e2e

package profiles

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

func TestAListenHearsOfItsProfileAlone(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"flag, stateless", "URL, stateless", "rule, stateless"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, _, back, other := worlds(t)
			c := ways()[name](w, "part")
			_ = c.Names("tools")
			known := e2e.In("seen", "file:///pub/a")
			_, honoured := c.ListenTo(e2e.Obj{"toolsListChanged": true, "resourceSubscriptions": []string{known, e2e.In("unseen", "file:///hidden/x"), e2e.In("seen", "file:///secret/k")}})
			require.JSONEq(t, `{"toolsListChanged":true,"resourceSubscriptions":["`+known+`"]}`, string(honoured))
			require.Contains(t, w.Succeeds("call", "unseen_look"), "unseen:look")
			c.Forget()
			other.Add("tools", e2e.Tool("more"))
			other.ListChanged("tools")
			e2e.Eventually(t, "other clients see it", func() bool { return strings.Contains(w.Succeeds("list", "tools"), "unseen_more") })
			c.Quiet()
			require.Empty(t, c.NotesOf("notifications/tools/list_changed"))
			back.Add("tools", e2e.Tool("keep2"))
			back.ListChanged("tools")
			c.WaitNote("notifications/tools/list_changed", nil)
		})
	}
}

// A server's notification may concern a part that a profile hides. A listen gets only its
// own.
func TestAListenHearsNothingOfTheHiddenPartOfAServer(t *testing.T) {
	t.Parallel()
	w, _, back, _ := worlds(t)
	c := ways()["flag, stateless"](w, "part")
	_ = c.Names("tools")
	whole := ways()["flag, stateless"](w, "")
	whole.WaitListed("tools", "seen_keep", true)
	for _, one := range []*e2e.Client{c, whole} {
		one.ListenTo(e2e.Obj{"toolsListChanged": true})
		one.Settle()
		one.Forget()
	}
	back.Add("tools", e2e.Tool("hidden"))
	back.ListChanged("tools")
	whole.WaitNote("notifications/tools/list_changed", nil)
	c.Quiet()
	require.Empty(t, c.NotesOf("notifications/tools/list_changed"))
	back.Remove("tools", "keep")
	back.ListChanged("tools")
	c.WaitNote("notifications/tools/list_changed", nil)
}
