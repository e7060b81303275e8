//go:build e2e

package daemon

import (
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

func TestTUIWantsAClientOnItsPipes(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	p := w.Pane(200, 24)
	p.Line(`"$G" --tui | cat`)
	p.Shows("goblin: --tui is for MCP on stdin, which is a terminal here")
}

func TestTUIWithoutATerminalIsToldWhatToDo(t *testing.T) {
	_, errs, code := shell(t, place(t), "--tui-tty", "/dev/null")
	require.Equal(t, e2e.ExitUsage, code)
	require.Contains(t, errs, "/dev/null is not a terminal")
	_, errs, code = shell(t, place(t), "--tui-tty", "/nonexistent/tty")
	require.Equal(t, e2e.ExitUsage, code)
	require.Contains(t, errs, "there is no terminal for the screen")
}
