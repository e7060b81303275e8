//go:build e2e

package daemon

import (
	"bytes"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"goblin/gateway/e2e"
)

func TestATerminalThatReadsNothingDelaysNobody(t *testing.T) {
	t.Parallel()
	for name, owner := range map[string]bool{"the daemon's own": true, "another's": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			b := w.Backend("shop", e2e.Filesystem())
			var c *e2e.Client
			if !owner {
				c = w.Bridged()
			}
			person, p := onTerminal(w)
			b.WaitStarts(1)
			e2e.Eventually(t, "the socket", func() bool { return len(w.Sockets()) == 1 })
			if owner {
				c = w.Bridged()
			}
			w.WaitUIs(1)
			for range 300 { // each changes the UI
				require.Equal(t, "shop:stat:{}", c.CallText("shop_stat", e2e.Obj{}))
			}
			p.Signal(syscall.SIGTERM)
			require.Zero(t, p.Ends(e2e.Patience))
			_ = person.Close()
		})
	}
}

func TestASecondSignalGivesAStalledTerminalBack(t *testing.T) {
	t.Parallel()
	for name, owner := range map[string]bool{"the daemon's own": true, "another's": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			b := w.Backend("shop", e2e.Filesystem())
			if !owner {
				w.Bridged()
			}
			person, side := terminal(t)
			settings := func() unix.Termios {
				now, err := unix.IoctlGetTermios(int(person.Fd()), unix.TCGETS)
				require.NoError(t, err)
				return *now
			}
			before := settings()
			p := w.Start(func(cmd *exec.Cmd) {
				cmd.Stdin, cmd.Stdout, cmd.Stderr = side, side, &bytes.Buffer{}
				cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
			})
			b.WaitStarts(1)
			e2e.Eventually(t, "a UI", func() bool { return settings() != before })
			w.AllowDaemon = true
			w.WaitUIs(1)
			// Each size causes a new frame that is not read: the terminal buffers only a
			// few.
			for i := range 12 {
				require.NoError(t, unix.IoctlSetWinsize(int(person.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: 200, Row: uint16(60 + i)}))
				w.WaitUIs(1)
			}
			p.Signal(syscall.SIGTERM)
			for again := time.NewTicker(100 * time.Millisecond); ; { // two at the same moment count once
				select {
				case <-p.Exited:
					again.Stop()
					require.Equal(t, before, settings())
					_ = side.Close()
					return
				case <-again.C:
					p.Signal(syscall.SIGTERM)
				}
			}
		})
	}
}

func TestADaemonOutlivesItsTerminal(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("shop", e2e.Filesystem())
	w.AllowDaemon = true
	w.Write()
	person, side := terminal(t)
	p := w.Execute("sh", func(cmd *exec.Cmd) {
		cmd.Stdin, cmd.Stdout = side, side
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	}, "-c", `trap "" HUP; exec "$0"`, e2e.Goblin)
	_ = side.Close()
	shows(watch(person), t, "1 up")
	c := w.Bridged()
	daemon := w.Status().PID
	require.NoError(t, person.Close())
	require.True(t, p.Stderr.Holds(e2e.Patience, func() bool {
		return strings.Contains(p.Stderr.Text.String(), "the terminal was closed") &&
			strings.Contains(p.Stderr.Text.String(), "; still serving 1 client; press Ctrl-C to stop\n")
	}))
	require.Equal(t, "shop:stat:{}", c.CallText("shop_stat", e2e.Obj{}))
	require.Equal(t, []int{daemon, 0}, []int{w.Status().PID, w.Status().Count("screen")})
	c.Close()
	c.Prog.Ends(e2e.Patience)
	p.Signal(syscall.SIGTERM)
	require.Zero(t, p.Ends(e2e.Patience))
	b.WaitGone()
}

func TestNoCommandAsksTheTerminalAnything(t *testing.T) {
	t.Parallel()
	w := e2e.DemoWorld(t)
	for _, args := range [][]string{{"version"}, {"--help"}, {"list", "servers"}, {"nonsense"}} {
		person, side := terminal(t)
		p := w.Start(func(cmd *exec.Cmd) {
			cmd.Env = append(cmd.Env, "TERM=xterm-256color")
			cmd.Stdin, cmd.Stdout, cmd.Stderr = side, side, side
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
		}, args...)
		_ = side.Close()
		said := watch(person)
		p.Ends(e2e.Patience)
		require.True(t, said.Holds(e2e.Patience, func() bool { return strings.Contains(said.Text.String(), "\n") }), "goblin %v: %s", args, said)
		require.NotContains(t, said.String(), "\x1b", "goblin %v", args)
	}
}
