package tui

import (
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/stretchr/testify/require"

	"goblin/registry"
	"goblin/tui/pane"
)

func TestClientsAreListedAndDisconnected(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv).keys("0")
	require.Contains(t, r.screen(), "Clients 3")
	require.Regexp(t, `client +version +transport +since +requests +errors +last +subs`, r.line("requests"))
	require.Regexp(t, `> claude-code +2\.1 +stdio +1 min +1 +1 min +1 *│`, r.line("> claude-code"))
	require.Regexp(t, `inspector +0\.17 +http +1 min +2 +!1 +\d+ s *│`, r.line("inspector  "))
	require.Contains(t, r.screen(), "this UI")
	require.Contains(t, r.line("session c1"), "protocol 2025-11-25")
	require.Contains(t, r.line("profile coding"), "project /srv/red  answers forms")
	r.keys("j D")
	require.Contains(t, r.screen(), "Disconnect inspector?")
	require.Empty(t, r.backend.acts)
	r.keys("y")
	require.Equal(t, []string{"disconnect c2"}, r.backend.acts)
	require.Contains(t, r.screen(), "Disconnected inspector")
	r.keys("enter")
	require.Equal(t, pane.PaneLogs, r.app.Open)
	require.Contains(t, r.line("session:=c2"), "2 of 3")
	r.keys("esc")
	require.Equal(t, pane.PaneResources, r.app.Open)
	r.keys("0 / inspector enter")
	require.Contains(t, r.screen(), "Clients 1/3")
	r.keys("esc").keys("O O O O O O")
	require.Regexp(t, `Clients 3 by errors ↓`, r.screen())
	require.NotEmpty(t, r.line("│> inspector"))
	r.keys("G D")
	require.Contains(t, r.screen(), "this is your own UI")
	r.keys("q")
	require.Empty(t, r.app.Dialogs)
	x := strings.Index(r.line("goblin  work.yaml"), "clients")
	r.send(tea.MouseMsg{X: len([]rune(r.line("goblin  work.yaml")[:x])) + 2, Y: 0, Button: tea.MouseButtonLeft, Action: tea.MouseActionPress}, 0)
	require.Contains(t, r.screen(), "Clients 3", "the number must open the traffic")
}

func TestSilentClientsAreNotCounted(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv)
	quiet := 4 * time.Minute
	r.reg.SetSession(registry.Session{ID: "c2", Transport: "http", Client: "inspector", IdleTime: func() time.Duration { return quiet }})
	require.Contains(t, r.keys("9").tick(time.Second).screen(), "clients 2")
	quiet = 14 * time.Minute
	require.Contains(t, r.tick(time.Second).screen(), "clients 1")
	require.Contains(t, r.line("inspector"), "silent for 14 min, probably disconnected")
	require.Contains(t, r.setState("legacy", registry.ServerState{State: registry.StateReady}).screen(), "4 of 4 servers up, 1 client, ")
	require.Contains(t, r.setState("legacy", registry.ServerState{State: registry.StateSleeping}).screen(), "3 of 4 servers up, 1 idle, 1 client, ")
	require.Contains(t, r.keys("0").line("inspector"), "silent for 14 min")
	require.Contains(t, r.screen(), "Clients 3, 1 silent")
	r.keys("esc q")
	require.Contains(t, r.screen(), "1 client uses this daemon.")
	r.keys("n")
	r.reg.DropSession("c1")
	r.keys("q")
	require.True(t, r.app.quitting, "a silent client does not keep the daemon")
}
