//go:build e2e

package ui

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
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
	p.Shows("By hand")
	p.Keys("Enter")
	p.Shows("command or URL")
	p.Types("notes")
	p.Keys("Tab")
	p.Types(e2e.Goblin + " demo-server notes")
	p.Keys("C-s")
	p.Shows("Added notes to the config", "2 up", "> ● ready       notes")
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

// An edit in $EDITOR and one by the form reach the file and the servers at once.
func TestTheConfigIsEditedFromTheUI(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	config, editor, next := filepath.Join(w.Dir, "mine.yaml"), filepath.Join(w.Dir, "vi"), filepath.Join(w.Dir, "next")
	before := fmt.Sprintf("# mine\nservers:\n  books: {command: \"%[1]s\", args: [demo-server, library]}\n  web:\n    command: %[1]s # why\n    args: [demo-server, notes]\n    env:\n      API_KEY: ${NO_SUCH_KEY}\n", e2e.Goblin)
	require.NoError(t, os.WriteFile(config, []byte(before), 0o600))
	// The editor records its arguments and runs the next edit.
	e2e.WriteProgram(t, editor, "#!/bin/sh\necho \"$1\" >>'"+w.Dir+"/lines'\ncp '"+next+"' \"$2\"\n")
	writes := func(old, new string) {
		text, err := os.ReadFile(config)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(next, []byte(strings.Replace(string(text), old, new, 1)), 0o600))
	}
	w.Written, w.Config = true, config
	p := w.Pane(110, 40)
	p.Line("export VISUAL= EDITOR='%s' GOBLIN_NO_KEYRING=1", editor)
	p.Goblin("")
	p.Shows("1 up", "1 alert (!)")

	// The failed server's variable.
	p.Types("!")
	p.Shows("NO_SUCH_KEY is not set; C-e sets it")
	p.Keys("C-e")
	p.Shows("> API_KEY", "The server's error names it.")
	p.Keys("C-u")
	p.Types("plain")
	p.Keys("C-s")
	p.Shows("Save this change?", "+      API_KEY: ${keyring:web.API_KEY}", "No keyring here")
	p.Types("y")
	p.Shows("Reloaded: ~ web (env)", "2 up")
	text, err := os.ReadFile(config)
	require.NoError(t, err)
	require.Equal(t, strings.Replace(before, "${NO_SUCH_KEY}", "${keyring:web.API_KEY}", 1), string(text))

	// Another program changes the file while the form is open.
	p.Keys("C-e")
	p.Shows("Edit web in mine.yaml")
	other := strings.Replace(string(text), "# mine", "# mine and yours", 1)
	require.NoError(t, os.WriteFile(config, []byte(other), 0o600))
	p.Types("x")
	p.Keys("C-s")
	p.Shows("The file was changed by another program", "+# mine and yours")
	p.Types("n")
	p.Hides("continue with the new file")
	p.Keys("Escape")
	p.Shows("again discards your input")
	p.Keys("Escape")
	p.Hides("Edit web in mine.yaml")
	text, err = os.ReadFile(config)
	require.NoError(t, err)
	require.Equal(t, other, string(text))

	// A mistake and its repair in the editor.
	writes("    args:", "    arg:")
	p.Keys("C-o")
	p.Shows("Config not reloaded: 1 error", `unknown key "arg"`)
	writes("    arg: [demo-server, notes]", "    args: [demo-server, clock]")
	p.Keys("Enter")
	showsMatch(p, `(?i)reloaded: ~ web \(args\)`) // the list of mistakes may report before that the config is valid
	lines, err := os.ReadFile(filepath.Join(w.Dir, "lines"))
	require.NoError(t, err)
	require.Equal(t, "+4\n+6\n", string(lines), "the server's line, then that of the mistake")
	p.Types("q")
	p.Restored(e2e.ExitOK)
}
