//go:build e2e

package daemon

import (
	"bytes"
	"io"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

func TestP01_to_P04_NoEndLeavesAProcess(t *testing.T) {
	t.Parallel()
	signalled := func(sig syscall.Signal) func(*e2e.Program) { return func(p *e2e.Program) { p.Signal(sig) } }
	for _, tc := range []struct {
		name, mode string
		end        func(p *e2e.Program)
	}{
		{"P02 SIGTERM", "standalone", signalled(syscall.SIGTERM)},
		{"P02 SIGTERM", "serve", signalled(syscall.SIGTERM)},
		{"P03 SIGINT", "standalone", signalled(syscall.SIGINT)},
		{"P03 SIGINT", "serve", signalled(syscall.SIGINT)},
		{"P04 SIGHUP", "standalone", signalled(syscall.SIGHUP)},
	} {
		t.Run(tc.name+" "+tc.mode, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			w.Backend("stubborn", stubborn())
			p := modes[tc.mode](w)
			tc.end(p)
			require.Empty(t, w.Survivors("", exitLimit, nil))
			require.Zero(t, p.Ends(e2e.Patience))
		})
	}
	t.Run("P01 end of input", func(t *testing.T) {
		t.Parallel()
		w := e2e.NewWorld(t)
		w.Backend("stubborn", stubborn())
		c := w.Standalone()
		require.NotEmpty(t, c.Names("tools"))
		c.Close()
		require.Empty(t, w.Survivors("", exitLimit, nil))
		require.Zero(t, c.Prog.Ends(e2e.Patience))
	})
	t.Run("P01 the last client of a daemon", func(t *testing.T) {
		t.Parallel()
		w := e2e.NewWorld(t)
		w.Gateway["linger"] = "100ms"
		w.Backend("stubborn", stubborn())
		c := w.Bridged()
		require.NotEmpty(t, c.Names("tools"))
		c.Close()
		require.Empty(t, w.Survivors("", exitLimit, nil))
	})
	t.Run("P02 SIGTERM of a background daemon", func(t *testing.T) {
		t.Parallel()
		w := e2e.NewWorld(t)
		w.Backend("stubborn", stubborn())
		c := w.Bridged()
		require.NotEmpty(t, c.Names("tools"))
		pid := w.DaemonPID()
		c.Close()
		require.Zero(t, c.Prog.Ends(e2e.Patience))
		require.NoError(t, syscall.Kill(pid, syscall.SIGTERM))
		require.Empty(t, w.Survivors("", exitLimit, nil))
	})
	t.Run("P04 the terminal hangs up", func(t *testing.T) {
		t.Parallel()
		w := e2e.NewWorld(t)
		w.Backend("stubborn", stubborn())
		person, p := onTerminal(w)
		var screen []byte
		for part := make([]byte, 4096); !bytes.Contains(screen, []byte("1 up")); {
			n, err := person.Read(part)
			require.NoError(t, err)
			screen = append(screen, part[:n]...)
		}
		require.NoError(t, person.Close())
		require.Empty(t, w.Survivors("", exitLimit, nil))
		p.Ends(e2e.Patience)
	})
}

func TestP06_ProcessThatHoldsThePipesOfAServer(t *testing.T) {
	t.Parallel()
	for mode, open := range modes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			script := e2e.Filesystem() // exits cleanly itself
			script["on"] = e2e.Obj{"start": e2e.Actions(e2e.Do("grandchild"))}
			b := w.Backend("launcher", script)
			p := open(w)
			// It exits with the server, not only with Goblin.
			b.DoAt(b.WaitStarts(1), e2e.Do("crash"))
			b.WaitStarts(2)
			require.Len(t, grandchildren(w), 1)
			p.Signal(syscall.SIGTERM)
			require.Empty(t, w.Survivors("", exitLimit, nil))
			require.Zero(t, p.Ends(e2e.Patience))
		})
	}
}

// Its parent keeps running, so only Goblin can stop it.
func TestP06_ServerThatHeedsNothingIsKilledAtItsRestart(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("b", stubborn())
	c := w.Bridged()
	old := b.WaitStarts(1)
	w.Succeeds("restart", "b")
	ended(b, old.Pid)
	b.WaitStarts(2)
	require.Len(t, grandchildren(w), 1)
	e2e.Eventually(t, "the new process", func() bool { return c.Works(e2e.Obj{"name": "b_stat"}) })
}

// grandchildren waits until at most one of them is left.
func grandchildren(w *e2e.World) (found []string) {
	w.T.Helper()
	e2e.Eventually(w.T, "one process that a server started", func() bool {
		found = w.Processes("-sleep")
		return len(found) == 1
	})
	return found
}

func TestServersOfACommandEndWithIt(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("stubborn", stubborn())
	p := w.Start(func(cmd *exec.Cmd) { cmd.Stdout = nil }, "list", "tools")
	require.Empty(t, w.Survivors("", exitLimit, nil))
	require.Zero(t, p.Ends(e2e.Patience), strings.TrimSpace(p.Stderr.String()))
}

func TestStopEndsADaemonOnATerminal(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("shop", e2e.Filesystem())
	person, p := onTerminal(w)
	go func() { _, _ = io.Copy(io.Discard, person) }()
	b.WaitStarts(1)
	e2e.Eventually(t, "the socket", func() bool { return len(w.Sockets()) == 1 })
	w.Succeeds("stop")
	require.Zero(t, p.Ends(e2e.Patience))
	b.WaitGone()
}

// A command prints its result and exits before servers that are slow to exit. Those
// servers are killed nevertheless.
func TestACommandDoesNotWaitForServersThatDoNotEnd(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("stubborn", stubborn())
	before := false
	for range 3 { // a busy machine may check too late
		require.Contains(t, w.Succeeds("list", "tools"), "stubborn_")
		before = before || len(w.Processes("testserver")) > 0
		require.Empty(t, w.Survivors("", e2e.Patience, nil))
	}
	require.True(t, before, "the command ended first")
}

// exitLimit is the maximum time that parts of a process may remain after it was asked to
// exit.
const exitLimit = 14 * time.Second

// stubborn is a server that exits only by SIGKILL. It has started a process that holds
// its pipes and ignores signals, too.
func stubborn() e2e.Obj {
	script := e2e.Filesystem()
	script["ignoreterm"], script["ignoreeof"] = true, true
	script["on"] = e2e.Obj{"start": e2e.Actions(e2e.Do("grandchild"))}
	return script
}

// modes start Goblin with its own servers and return the process.
var modes = map[string]func(w *e2e.World) *e2e.Program{
	"standalone": func(w *e2e.World) *e2e.Program {
		c := w.Standalone()
		require.NotEmpty(w.T, c.Names("tools"))
		return c.Prog
	},
	"serve": func(w *e2e.World) *e2e.Program {
		s := w.Serve()
		require.NotEmpty(w.T, s.Client(false).Names("tools"))
		return s.Program
	},
}

func TestP05_SIGKILLTakesTheServersAlong(t *testing.T) {
	t.Parallel()
	for _, mode := range e2e.Variants(1, slices.Sorted(maps.Keys(modes))...) {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			b := w.Backend("stubborn", stubborn())
			p := modes[mode](w)
			p.Signal(syscall.SIGKILL)
			require.Empty(t, w.Survivors(b.Conf["args"].([]string)[0], exitLimit, nil))
			b.WaitGone()
			w.Kill() // the kernel kills direct children only
		})
	}
}
