package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTUIWantsAClientOnItsPipes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.pane(200, 24)
	p.line(`"$G" --tui | cat`)
	p.shows("goblin: --tui is for MCP on stdin, which is a terminal here")
}

func TestTUIWithoutATerminalIsToldWhatToDo(t *testing.T) {
	_, errs, code := shell(t, place(t), "--tui-tty", "/dev/null")
	require.Equal(t, exitUsage, code)
	require.Contains(t, errs, "/dev/null is not a terminal")
	_, errs, code = shell(t, place(t), "--tui-tty", "/nonexistent/tty")
	require.Equal(t, exitFailure, code)
	require.Contains(t, errs, "there is no terminal to show the servers on")
}
