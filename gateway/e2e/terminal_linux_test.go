package e2e

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// terminal opens a pseudo-terminal: what a person holds, and what a program gets.
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

// onTerminal starts goblin on a terminal of its own.
func (w *world) onTerminal() (person *os.File, p *program) {
	w.t.Helper()
	person, side := terminal(w.t)
	p = w.start(func(cmd *exec.Cmd) {
		cmd.Stdin, cmd.Stdout, cmd.Stderr = side, side, side
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	})
	_ = side.Close()
	return person, p
}

// watch keeps what is written to a terminal.
func watch(person io.Reader) *buffer {
	var screen buffer
	go func() { _, _ = io.Copy(&screen, person) }()
	return &screen
}

func (b *buffer) shows(t *testing.T, text string) {
	t.Helper()
	require.True(t, b.holds(patience, func() bool { return strings.Contains(b.text.String(), text) }), "%s", text)
}

func TestGoblinOnATerminalIsTheHostUntilCtrlC(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backend("shop", filesystem())
	person, p := w.onTerminal()
	screen := watch(person)
	screen.shows(t, "logs/app.log")
	require.Len(t, w.sockets(), 1)
	w.hosted = true
	c := w.bridged()
	require.Equal(t, "shop:stat:{}", c.callText("shop_stat", obj{}))
	require.Equal(t, 1, b.starts())
	c.close()
	c.prog.ends(patience)
	_, err := person.Write([]byte{3})
	require.NoError(t, err)
	require.Zero(t, p.ends(patience), screen.String())
	b.waitGone()
}

func TestATerminalThatReadsNothingDelaysNobody(t *testing.T) {
	t.Parallel()
	for name, owner := range map[string]bool{"the host's own": true, "another's": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			b := w.backend("shop", filesystem())
			var c *client
			if !owner {
				c = w.bridged()
			}
			person, p := w.onTerminal()
			b.waitStarts(1)
			eventually(t, "the socket", func() bool { return len(w.sockets()) == 1 })
			if owner {
				c = w.bridged()
			}
			w.waitScreens(1)
			for range 300 { // each is news to the screen
				require.Equal(t, "shop:stat:{}", c.callText("shop_stat", obj{}))
			}
			p.signal(syscall.SIGTERM)
			require.Zero(t, p.ends(patience))
			_ = person.Close()
		})
	}
}

func TestASecondSignalGivesAStalledTerminalBack(t *testing.T) {
	t.Parallel()
	for name, owner := range map[string]bool{"the host's own": true, "another's": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			b := w.backend("shop", filesystem())
			if !owner {
				w.bridged()
			}
			person, side := terminal(t)
			settings := func() unix.Termios {
				now, err := unix.IoctlGetTermios(int(person.Fd()), unix.TCGETS)
				require.NoError(t, err)
				return *now
			}
			before := settings()
			p := w.start(func(cmd *exec.Cmd) {
				cmd.Stdin, cmd.Stdout, cmd.Stderr = side, side, &bytes.Buffer{}
				cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
			})
			b.waitStarts(1)
			eventually(t, "a screen", func() bool { return settings() != before })
			w.hosted = true
			w.waitScreens(1)
			// Each size is a new picture, and nobody takes them: the terminal
			// has room for a few.
			for i := range 40 {
				require.NoError(t, unix.IoctlSetWinsize(int(person.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: 200, Row: uint16(60 + i)}))
				w.waitScreens(1)
			}
			p.signal(syscall.SIGTERM)
			for again := time.NewTicker(100 * time.Millisecond); ; { // two at the same moment count once
				select {
				case <-p.exited:
					again.Stop()
					require.Equal(t, before, settings())
					_ = side.Close()
					return
				case <-again.C:
					p.signal(syscall.SIGTERM)
				}
			}
		})
	}
}

func TestAHostOutlivesItsTerminal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backend("shop", filesystem())
	w.hosted = true
	w.write()
	person, side := terminal(t)
	p := w.execute("sh", func(cmd *exec.Cmd) {
		cmd.Stdin, cmd.Stdout = side, side
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	}, "-c", `trap "" HUP; exec "$0"`, goblin)
	_ = side.Close()
	watch(person).shows(t, "logs/app.log")
	c := w.bridged()
	host := w.status().PID
	require.NoError(t, person.Close())
	require.True(t, p.stderr.holds(patience, func() bool {
		return strings.Contains(p.stderr.text.String(), "the terminal is gone") &&
			strings.Contains(p.stderr.text.String(), "; goblin still serves 1 client; Ctrl-C ends it\n")
	}))
	require.Equal(t, "shop:stat:{}", c.callText("shop_stat", obj{}))
	require.Equal(t, []int{host, 0}, []int{w.status().PID, w.status().count("screen")})
	c.close()
	c.prog.ends(patience)
	p.signal(syscall.SIGTERM)
	require.Zero(t, p.ends(patience))
	b.waitGone()
}

func TestNoCommandAsksTheTerminalAnything(t *testing.T) {
	t.Parallel()
	w := demoWorld(t)
	for _, args := range [][]string{{"version"}, {"--help"}, {"list", "servers"}, {"nonsense"}} {
		person, side := terminal(t)
		p := w.start(func(cmd *exec.Cmd) {
			cmd.Env = append(cmd.Env, "TERM=xterm-256color")
			cmd.Stdin, cmd.Stdout, cmd.Stderr = side, side, side
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
		}, args...)
		_ = side.Close()
		said := watch(person)
		p.ends(patience)
		require.True(t, said.holds(patience, func() bool { return strings.Contains(said.text.String(), "\n") }), "goblin %v: %s", args, said)
		require.NotContains(t, said.String(), "\x1b", "goblin %v", args)
	}
}

func TestStopEndsAHostOnATerminal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backend("shop", filesystem())
	person, p := w.onTerminal()
	go func() { _, _ = io.Copy(io.Discard, person) }()
	b.waitStarts(1)
	eventually(t, "the socket", func() bool { return len(w.sockets()) == 1 })
	w.succeeds("stop")
	require.Zero(t, p.ends(patience))
	b.waitGone()
}
