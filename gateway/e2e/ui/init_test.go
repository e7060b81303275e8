//go:build e2e

package ui

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// The UI imports a client's servers, then Goblin replaces them in the client.
func TestInitAsksWhichServersToTake(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Written, w.Config = true, ""
	client := filepath.Join(w.Dir, "home", ".cursor", "mcp.json")
	before := `{"mcpServers": {
  "books": {"command": "` + e2e.Goblin + `", "args": ["demo-server", "library"]},
  "clock": {"command": "` + e2e.Goblin + `", "args": ["demo-server", "clock"]} // ticks
}}
`
	require.NoError(t, os.MkdirAll(filepath.Dir(client), 0o700))
	require.NoError(t, os.WriteFile(client, []byte(before), 0o600))
	p := w.Pane(220, 24) // paths of tests are long
	p.Line("$G init")
	p.Shows("Which servers should be added to", "> [x]  books  goblin demo-server  Cursor", "confirm 2 of 2")
	p.Tmux("resize-window", "-x", "60", "-y", "12")
	p.Types("j ")
	p.Shows("> [ ]  clock", "confirm 1 of 2")
	p.Tmux("resize-window", "-x", "220", "-y", "24")
	p.Keys("Enter")
	p.Shows("Added 1 server to ", "goblin install cursor --replace")
	p.Line("$G init")
	p.Shows("> [x]  clock", "confirm 1 of 1")
	p.Keys("Escape")
	p.Shows("nothing was written")

	w.Succeeds("install", "cursor", "--replace")
	text, err := os.ReadFile(client)
	require.NoError(t, err)
	require.NotContains(t, string(text), "library")
	require.Contains(t, string(text), `"command": "`+e2e.Goblin+`",`)
	require.Contains(t, string(text), "// ticks")
	p.Goblin("")
	p.Shows("1 idle", "books") // install cached its lists
	p.Types("q")
	p.Restored(e2e.ExitOK)
	w.Succeeds("uninstall", "cursor")
	text, err = os.ReadFile(client)
	require.NoError(t, err)
	require.Equal(t, before, string(text))
}
