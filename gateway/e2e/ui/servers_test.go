//go:build e2e

package ui

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// A server added in one UI is saved in the config, runs, and appears in all UIs.
func TestServersAreChangedOnTheScreen(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	config := filepath.Join(w.Dir, "mine.yaml")
	const before = "# mine\nservers:\n  books: {command: \"%s\", args: [demo-server, library]} # those\n"
	require.NoError(t, os.WriteFile(config, []byte(fmt.Sprintf(before, e2e.Goblin)), 0o600))
	text := func() string {
		got, err := os.ReadFile(config)
		require.NoError(t, err)
		return string(got)
	}
	w.Written, w.Config = true, config
	p, other := w.Pane(110, 40), w.Pane(110, 40)
	p.Goblin("")
	p.Shows("1 up")
	other.Goblin("")
	other.Shows("1 up")

	p.Types("1a")
	p.Shows("Add a server")
	p.Types("notes")
	p.Keys("Tab")
	p.Types(e2e.Goblin + " demo-server notes")
	p.Keys("C-s")
	p.Shows("Added notes to the config", "2 up")
	other.Shows("2 up")
	require.Contains(t, text(), "# those\n  notes:\n    command: ")

	p.Types("x")
	p.Shows("Disable notes?", "g permanently")
	p.Types("g")
	p.Shows("Disabled notes in the config")
	require.Contains(t, text(), "disabled: true")
	other.Shows("1 up")

	p.Types("D")
	p.Shows("Remove notes?")
	p.Types("y")
	p.Shows("Removed notes from the config")
	require.Equal(t, fmt.Sprintf(before, e2e.Goblin), text())
	other.Types("q")
	other.Restored(e2e.ExitOK)
	p.Types("q")
	p.Restored(e2e.ExitOK)
}
