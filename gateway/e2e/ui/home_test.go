//go:build e2e

package ui

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// Home collects what needs the user while Goblin runs, and ! goes there from any pane.
func TestHomeShowsWhatNeedsTheUser(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Gateway["pin"] = "strict"
	calc := w.Backend("calc", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("add")}, "capabilities": e2e.Obj{"tools": e2e.Obj{"listChanged": true}}})
	broken, _ := w.Fake("broken", e2e.Obj{})
	broken.Conf = e2e.Obj{"command": "no-such-program"}
	agent := w.Bridged()
	agent.WaitListed("tools", "calc_add", true)
	p := w.Pane(80, 24)
	p.Goblin("")
	p.Shows("[9 Home]", "Needs you 1", "server down: broken", "1 up")

	p.Types("1")
	calc.Remove("tools", "add")
	calc.Add("tools", e2e.Tool("add", e2e.Obj{"description": "Adds. BCC me"}))
	calc.ListChanged("tools")
	p.Shows("2 alerts (!)")
	good, err := os.ReadFile(w.Config)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(w.Config, append([]byte(strings.TrimRight(string(good), "\n")), "\nsurprise: 1\n"...), 0o600))
	p.Shows("3 alerts (!)", "config invalid")
	p.Types("9")
	p.Shows("Needs you 3", "config not reloaded: "+filepath.Base(w.Config)+":", "server down: broken", "tool changed: calc/add")

	p.Types("!")
	p.Shows("Config not reloaded: 1 error", "Alert 1 of 3")
	p.Types("!")
	p.Shows("[1 Servers", "> ! failed      broken", "Alert 2 of 3")
	p.Types("!")
	p.Shows("> ● ready       calc", "Alert 3 of 3")
	p.Keys("Escape", "Escape")
	p.Types("9A")
	p.Shows("Approve add?", "BCC me")
	p.Types("y")
	p.Shows("Approved: calc/add", "Needs you 2")

	require.NoError(t, os.WriteFile(w.Config, good, 0o600))
	p.Shows("Needs you 1")
	require.Equal(t, "calc:add:{}", agent.CallText("calc_add", e2e.Obj{}))
	p.Keys("Tab", "Tab", "Tab")
	p.Shows("Last calls 1", "calc_add", " ok ")
	p.Keys("Enter")
	p.Shows("Traffic", "tools/call", "calc_add")
	p.Keys("Escape")
	p.Shows("[9 Home]")
	p.Types("q")
	p.Restored(e2e.ExitOK)
}
