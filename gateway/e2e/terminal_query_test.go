//go:build unix

package e2e_test

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// Bubble Tea would query the terminal for its background before main begins, and wait 5 s for
// a reply. This terminal never replies.
func TestCommandsDoNotQueryTheTerminal(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	c := exec.Command(e2e.Goblin, "version")
	c.Env = append(w.Environ(), "TERM=xterm-256color")
	terminal, err := pty.Start(c)
	require.NoError(t, err)
	defer terminal.Close()
	written, _ := io.ReadAll(terminal) // Linux returns an error when the process has exited
	require.NoError(t, c.Wait())
	require.Regexp(t, `^goblin `, string(written), "a query comes first")
	require.NotContains(t, string(written), "\x1b")
}

// TERM is changed while the process starts. Its child processes get the user's value.
func TestProgramsGetTheTerminalOfTheUser(t *testing.T) {
	t.Parallel()
	for name, term := range map[string][]string{"set": {"TERM=foot"}, "empty": {"TERM="}, "unset": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			w.Write()
			file := filepath.Join(w.Dir, "term")
			editor := filepath.Join(w.Dir, "editor")
			e2e.WriteProgram(t, editor, "#!/bin/sh\nenv | grep '^TERM=' >'"+file+"'\n:\n")
			c := exec.Command(e2e.Goblin, "edit")
			env := slices.DeleteFunc(w.Environ(), func(v string) bool { return strings.HasPrefix(v, "TERM=") })
			c.Env = append(append(env, "EDITOR="+editor, "VISUAL="), term...)
			out, err := c.CombinedOutput()
			require.NoError(t, err, string(out))
			seen, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, strings.Join(term, ""), strings.TrimSpace(string(seen)))
		})
	}
}
