//go:build e2e

package ui

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// deletion begins a call of the destructive tool.
func deletion(c *e2e.Client) string {
	return c.Begin("tools/call", e2e.Obj{"name": "shop_delete_all", "arguments": e2e.Obj{"table": "users"}, "_meta": e2e.Obj{"progressToken": 7}})
}

func TestAnAgentsCallsAreStoppedChangedDeniedAndTimedOut(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.AllowDaemon = true
	shop := w.Backend("shop", e2e.Obj{
		"tools": []e2e.Obj{{
			"name": "delete_all", "description": "Deletes a table", "annotations": e2e.Obj{"destructiveHint": true},
			"inputSchema": e2e.Obj{"type": "object", "properties": e2e.Obj{"table": e2e.Obj{"type": "string"}}, "required": []string{"table"}},
		}, e2e.Tool("other")},
	})
	agent := w.Pipe("stdio")
	agent.Init()
	p := w.Pane(120, 40)
	p.Goblin("")
	p.Shows("clients 1")

	var id string
	stopNext := func() { // after the list shows the end of the last one
		p.Hides(", 1 stopped")
		id = deletion(agent)
		p.Shows(", 1 stopped")
	}

	// b on the tool stops its next call; other calls continue.
	p.Types("2/delete")
	p.Keys("Enter")
	p.Shows("shop_delete_all")
	p.Types("b")
	p.Shows("Add a rule for shop_delete_all", `name:=shop_delete_all`)
	p.Keys("Enter")
	p.Shows("Added rule", "B lists the rules")
	id = deletion(agent)
	p.Shows("1 request stopped (!)", "is stopped; ! shows it")
	require.True(t, agent.Works(e2e.Obj{"name": "shop_other", "arguments": e2e.Obj{}}))
	require.Equal(t, 1, shop.Count("tools/call"))
	agent.WaitNote("notifications/progress", func(params json.RawMessage) bool {
		return strings.Contains(e2e.Str(params, "message"), "waiting for the user")
	})

	// The arguments are changed in the form.
	p.Types("!")
	p.Shows("! destructive (D)", `"table": "users"`, "left, then deny")
	p.Keys("Enter")
	p.Shows("Change shop_delete_all")
	p.Keys("C-u")
	p.Types("orders")
	p.Keys("C-s")
	p.Hides("Change shop_delete_all")
	require.Nil(t, agent.End(id).Error)
	require.Contains(t, string(shop.Received("tools/call")[1].Msg), `"table":"orders"`)

	// The model reads the text of a denial.
	stopNext()
	p.Types("!d")
	p.Shows("Deny shop_delete_all")
	p.Types("ask me first")
	p.Keys("C-s")
	p.Hides("Deny shop_delete_all")
	m := agent.End(id)
	require.True(t, m.Failed())
	require.Contains(t, string(m.Result), "ask me first")
	require.Contains(t, string(m.Result), "DENIED")

	// A remembered approval lets later calls pass until it is revoked.
	stopNext()
	p.Types("!m")
	p.Shows("Send and remember shop_delete_all")
	p.Keys("C-s")
	p.Hides("Send and remember")
	require.Nil(t, agent.End(id).Error)
	p.Shows("Remembered approvals 1")
	require.Nil(t, agent.End(deletion(agent)).Error)
	p.Types("GD")
	p.Shows("Revoked the approval")
	p.Hides("Remembered approvals")

	// A call that the client cancels leaves the list, and the typed text is kept.
	stopNext()
	p.Types("!d")
	p.Shows("Deny shop_delete_all")
	p.Types("half a sen")
	agent.Notify("notifications/cancelled", e2e.Obj{"requestId": json.RawMessage(id)})
	p.Shows("no longer waits", "half a sen", "the client cancelled it")
	p.Hides("pause typing to use keys")
	p.Keys("Escape")
	p.Hides("no longer waits")

	// The rule's default applies when time is up.
	p.Types("a")
	p.Shows("Add a rule")
	p.Types("name:shop_delete_all")
	p.Keys("Tab", "Tab", "Tab")
	p.Types("300ms")
	p.Keys("C-s")
	p.Shows("Added rule", "timeout: 300ms")
	m = agent.Request("tools/call", e2e.Obj{"name": "shop_delete_all", "arguments": e2e.Obj{"table": "users"}})
	require.True(t, m.Failed())
	require.Contains(t, string(m.Result), "DENIED")
	require.Equal(t, 4, shop.Count("tools/call"))

	// The list shows the hits; without the UI, a stop never waits.
	p.Shows("Breakpoints 2")
	p.Types("D")
	p.Shows("Removed rule")
	p.Keys("Escape")
	p.Hides("Breakpoints")
	id = deletion(agent)
	p.Shows("1 request stopped (!)")
	p.Types("q")
	p.Restored(e2e.ExitOK)
	require.True(t, func() bool { m := agent.End(id); return m.Failed() }())
	require.Equal(t, 4, shop.Count("tools/call"))
}
