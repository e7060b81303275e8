package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// screen is a terminal and what was written to it.
type screen struct {
	path string
	mu   sync.Mutex
	text bytes.Buffer
}

func newScreen(t *testing.T) *screen {
	t.Helper()
	main, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no terminals here: %v", err)
	}
	fd := int(main.Fd())
	require.NoError(t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	require.NoError(t, err)
	s := &screen{path: fmt.Sprintf("/dev/pts/%d", n)}
	// While nobody else has it open, reading it would fail.
	side, err := os.OpenFile(s.path, os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	var reading sync.WaitGroup
	reading.Go(func() {
		part := make([]byte, 4096)
		for {
			n, err := main.Read(part)
			if err != nil {
				return
			}
			s.mu.Lock()
			s.text.Write(part[:n])
			s.mu.Unlock()
		}
	})
	t.Cleanup(func() {
		side.Close() // which ends the read
		reading.Wait()
		main.Close()
	})
	return s
}

func (s *screen) shows(t *testing.T, want string) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		s.mu.Lock()
		text := s.text.String()
		s.mu.Unlock()
		if strings.Contains(text, want) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("waited for %q on the screen:\n%s", want, text)
		}
	}
}

func TestTUIServesMCPOnPipesAndShowsTheServersOnATerminal(t *testing.T) {
	env := place(t)
	first := newScreen(t)
	cmd, in, out, _ := start(t, env, "--tui-tty", first.path)
	greet(t, in, out)
	first.shows(t, "This ends with the client that started it.")
	first.shows(t, "This is the demo")

	// The second one joins the host that the first one is.
	second := newScreen(t)
	cmd2, in2, out2, _ := start(t, env, "--tui-tty", second.path)
	greet(t, in2, out2)
	second.shows(t, fmt.Sprintf("runs already: pid %d", cmd.Process.Pid))
	require.NoError(t, in2.Close())
	require.NoError(t, cmd2.Wait())

	require.NoError(t, in.Close())
	rest, err := io.ReadAll(out)
	require.NoError(t, err)
	for line := range strings.Lines(string(rest)) {
		require.True(t, json.Valid([]byte(line)), "not JSON-RPC: %q", line)
	}
	require.NoError(t, cmd.Wait())
	first.shows(t, "Goodbye.")
}

func TestTUIWithoutATerminalIsToldWhatToDo(t *testing.T) {
	_, errs, code := shell(t, place(t), "--tui-tty", "/dev/null")
	require.Equal(t, exitUsage, code)
	require.Contains(t, errs, "/dev/null is not a terminal")
	_, errs, code = shell(t, place(t), "--tui-tty", "/nonexistent/tty")
	require.Equal(t, exitFailure, code)
	require.Contains(t, errs, "there is no terminal to show the servers on")
}
