package e2e

import (
	"bytes"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// exitLimit is how long anything may be left of a process that was told to end.
const exitLimit = 14 * time.Second

// stubborn is a server that ends by SIGKILL only, and has started a process
// that holds its pipes and ignores signals, too.
func stubborn() obj {
	script := filesystem()
	script["ignoreterm"], script["ignoreeof"] = true, true
	script["on"] = obj{"start": actions(do("grandchild"))}
	return script
}

// survivors waits until no process of the world is left whose command line
// holds the text, exitLimit at most, and gives those that are.
func (w *world) survivors(holding string) (left []string) {
	for end := time.Now().Add(exitLimit); ; time.Sleep(20 * time.Millisecond) {
		if left = w.processes(holding); len(left) == 0 || time.Now().After(end) {
			return left
		}
	}
}

// modes start Goblin so that it has servers of its own, and give the process.
var modes = map[string]func(w *world) *program{
	"standalone": func(w *world) *program {
		c := w.standalone()
		require.NotEmpty(w.t, c.names("tools"))
		return c.prog
	},
	"serve": func(w *world) *program {
		s := w.serve()
		require.NotEmpty(w.t, s.client(false).names("tools"))
		return s.program
	},
}

func TestP01_to_P04_NoEndLeavesAProcess(t *testing.T) {
	t.Parallel()
	signalled := func(sig syscall.Signal) func(*program) { return func(p *program) { p.signal(sig) } }
	for _, tc := range []struct {
		name, mode string
		end        func(p *program)
	}{
		{"P02 SIGTERM", "standalone", signalled(syscall.SIGTERM)},
		{"P02 SIGTERM", "serve", signalled(syscall.SIGTERM)},
		{"P03 SIGINT", "standalone", signalled(syscall.SIGINT)},
		{"P03 SIGINT", "serve", signalled(syscall.SIGINT)},
		{"P04 SIGHUP", "standalone", signalled(syscall.SIGHUP)},
	} {
		t.Run(tc.name+" "+tc.mode, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.backend("stubborn", stubborn())
			p := modes[tc.mode](w)
			tc.end(p)
			require.Empty(t, w.survivors(""))
			require.Zero(t, p.ends(time.Second))
		})
	}
	t.Run("P01 end of input", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.backend("stubborn", stubborn())
		c := w.standalone()
		require.NotEmpty(t, c.names("tools"))
		c.close()
		require.Empty(t, w.survivors(""))
		require.Zero(t, c.prog.ends(time.Second))
	})
	t.Run("P01 the last client of a host", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.gateway["linger"] = "100ms"
		w.backend("stubborn", stubborn())
		c := w.bridged()
		require.NotEmpty(t, c.names("tools"))
		c.close()
		require.Empty(t, w.survivors(""))
	})
	t.Run("P02 SIGTERM of a host in the background", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.backend("stubborn", stubborn())
		c := w.bridged()
		require.NotEmpty(t, c.names("tools"))
		pid := w.host()
		c.close()
		require.Zero(t, c.prog.ends(patience))
		require.NoError(t, syscall.Kill(pid, syscall.SIGTERM))
		require.Empty(t, w.survivors(""))
	})
	t.Run("P04 the terminal hangs up", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.backend("stubborn", stubborn())
		person, p := w.onTerminal()
		var screen []byte
		for part := make([]byte, 4096); !bytes.Contains(screen, []byte("logs/app.log")); {
			n, err := person.Read(part)
			require.NoError(t, err)
			screen = append(screen, part[:n]...)
		}
		require.NoError(t, person.Close())
		require.Empty(t, w.survivors(""))
		p.ends(time.Second)
	})
}

func TestP05_SIGKILLTakesTheServersAlong(t *testing.T) {
	t.Parallel()
	for mode, open := range modes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			b := w.backend("stubborn", stubborn())
			p := open(w)
			p.signal(syscall.SIGKILL)
			require.Empty(t, w.survivors(b.conf["args"].([]string)[0]))
			b.waitGone()
			w.kill() // the kernel ends direct children only
		})
	}
}

func TestP06_ProcessThatHoldsThePipesOfAServer(t *testing.T) {
	t.Parallel()
	for mode, open := range modes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			script := filesystem() // ends well itself
			script["on"] = obj{"start": actions(do("grandchild"))}
			b := w.backend("launcher", script)
			p := open(w)
			// It ends with the server, not only with Goblin.
			b.doAt(b.waitStarts(1), do("crash"))
			b.waitStarts(2)
			require.Len(t, w.grandchildren(), 1)
			p.signal(syscall.SIGTERM)
			require.Empty(t, w.survivors(""))
			require.Zero(t, p.ends(time.Second))
		})
	}
}

// Its parent lives, so that nothing but Goblin ends it.
func TestP06_ServerThatHeedsNothingIsKilledAtItsRestart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backend("b", stubborn())
	c := w.bridged()
	old := b.waitStarts(1)
	w.succeeds("restart", "b")
	b.ended(old.pid)
	b.waitStarts(2)
	require.Len(t, w.grandchildren(), 1)
	eventually(t, "the new process", func() bool { return c.request("tools/call", obj{"name": "b_stat"}).Error == nil })
}

// grandchildren waits until not more than one of them is left.
func (w *world) grandchildren() (found []string) {
	w.t.Helper()
	eventually(w.t, "one process that a server started", func() bool {
		found = w.processes("-sleep")
		return len(found) == 1
	})
	return found
}

func TestServersOfACommandEndWithIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.backend("stubborn", stubborn())
	p := w.start(func(cmd *exec.Cmd) { cmd.Stdout = nil }, "list", "tools")
	require.Empty(t, w.survivors(""))
	require.Zero(t, p.ends(time.Second), strings.TrimSpace(p.stderr.String()))
}
