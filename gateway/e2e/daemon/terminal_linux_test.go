//go:build e2e

package daemon

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"goblin/gateway/e2e"
)

// terminal opens a pseudo-terminal and returns the user's end and the program's end.
func terminal(t *testing.T) (person, program *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip("no pseudo-terminals here: ", err)
	}
	t.Cleanup(func() { _ = person.Close() })
	require.NoError(t, unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err)
	return person, program
}

// onTerminal starts goblin on its own terminal.
func onTerminal(w *e2e.World) (person *os.File, p *e2e.Program) {
	w.T.Helper()
	person, side := terminal(w.T)
	p = w.Start(func(cmd *exec.Cmd) {
		cmd.Stdin, cmd.Stdout, cmd.Stderr = side, side, side
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	})
	_ = side.Close()
	return person, p
}

// watch records the output to a terminal.
func watch(person io.Reader) *e2e.Buffer {
	var screen e2e.Buffer
	go func() { _, _ = io.Copy(&screen, person) }()
	return &screen
}

func shows(b *e2e.Buffer, t *testing.T, text string) {
	t.Helper()
	require.True(t, b.Holds(e2e.Patience, func() bool { return strings.Contains(b.Text.String(), text) }), "%s", text)
}

func TestGoblinOnATerminalIsTheDaemonUntilCtrlC(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("shop", e2e.Filesystem())
	person, p := onTerminal(w)
	screen := watch(person)
	shows(screen, t, "1 up")
	require.Len(t, w.Sockets(), 1)
	w.AllowDaemon = true
	c := w.Bridged()
	require.Equal(t, "shop:stat:{}", c.CallText("shop_stat", e2e.Obj{}))
	require.Equal(t, 1, b.Starts())
	c.Close()
	c.Prog.Ends(e2e.Patience)
	e2e.Eventually(t, "no client", func() bool { return w.Status().Count("socket") == 0 }) // otherwise the UI asks
	_, err := person.Write([]byte{3})
	require.NoError(t, err)
	require.Zero(t, p.Ends(e2e.Patience), screen.String())
	b.WaitGone()
}

func TestTUIWantsAClientOnItsPipes(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	p := w.Pane(200, 24)
	p.Line(`"$G" --tui | cat`)
	p.Shows("goblin: --tui requires MCP on stdin, but stdin is a terminal")
}

func TestTUIWithoutATerminalIsToldWhatToDo(t *testing.T) {
	_, errs, code := shell(t, place(t), "--tui-tty", "/dev/null")
	require.Equal(t, e2e.ExitUsage, code)
	require.Contains(t, errs, "/dev/null is not a terminal")
	_, errs, code = shell(t, place(t), "--tui-tty", "/nonexistent/tty")
	require.Equal(t, e2e.ExitUsage, code)
	require.Contains(t, errs, "no terminal for the UI")
}
