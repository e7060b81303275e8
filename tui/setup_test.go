package tui

import (
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/tui/help"
)

func TestSetupCopiesWhatClientsStart(t *testing.T) {
	t.Parallel()
	r := newTestUI(t, 80, 24)
	r.app.Endpoint.Command = []string{"/opt/my goblin/goblin", "stdio", "--config", `/etc/a "b".yaml`}
	r.app.Push(help.NewSetup(r.app.Context, r.app.about()))
	require.Contains(t, r.screen(), "/etc/goblin/work.yaml")
	require.Contains(t, r.screen(), "@modelcontextprotocol/server-filesystem")
	r.keys("y")
	require.JSONEq(t, `{"mcpServers":{"goblin":{"command":"/opt/my goblin/goblin","args":["stdio","--config","/etc/a \"b\".yaml"]}}}`, r.clipboard())
	first := r.screen()
	r.keys("pgdown")
	require.NotEqual(t, first, r.screen(), "it scrolls")
	r.keys("esc")
	require.Empty(t, r.app.Dialogs)
}

func TestSetupTellsHowFarItIs(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 80, 24, plainEnv).runCommand("setup")
	require.Regexp(t, `─ 20/\d+ ─`, r.line(" Setup "))
	r.keys("G")
	require.Regexp(t, `─ (\d+)/(\d+) ─`, r.line(" Setup "))
	require.NotRegexp(t, `─ 20/\d+ ─`, r.line(" Setup "))
	require.NotRegexp(t, `\d/\d`, newExampleUI(t, 120, 60, plainEnv).runCommand("setup").line(" Setup "))
}
