package e2e

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// kill ends a process as nothing else does: it can do nothing any more.
func kill(pid int) error {
	p, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	return p.Kill()
}

// records are the files in which processes of a world keep their children.
func (w *world) records() []string {
	w.t.Helper()
	found, err := filepath.Glob(filepath.Join(w.dir, "run", "goblin", "children-*"))
	require.NoError(w.t, err)
	return found
}

// orphan makes a server start a process that ignores signals, kills the one
// that started the server, and checks that it left the process behind.
func (w *world) orphan(b *backend, end func()) {
	w.t.Helper()
	b.do(do("grandchild"))
	eventually(w.t, "the grandchild", func() bool { return len(w.processes(" -sleep ")) == 1 })
	require.Len(w.t, w.records(), 1)
	end()
	b.waitGone()
	require.Len(w.t, w.processes(" -sleep "), 1)
	require.Len(w.t, w.records(), 1)
}

func TestP05_WhatAKilledHostLeftIsEndedByTheNext(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backend("b", filesystem())
	c := w.bridged()
	c.names("tools")
	w.orphan(b, func() {
		c.prog.signal(syscall.SIGKILL)
		<-c.prog.exited
		require.NoError(t, kill(w.host()))
	})
	again := w.bridged()
	require.Equal(t, "b:stat:{}", again.callText("b_stat", obj{}))
	require.Empty(t, w.processes(" -sleep "))
	require.Len(t, w.records(), 1, "that of the new host")
	require.Contains(t, w.hostLog(), "left behind")
}

func TestP05_WhatAKilledStandaloneLeftIsEndedByAnyStart(t *testing.T) {
	for name, next := range map[string]func(w *world){
		"standalone": func(w *world) { w.standalone().names("tools") },
		"command":    func(w *world) { w.succeeds("list", "tools") },
		"host":       func(w *world) { w.bridged().names("tools") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			b := w.backend("b", filesystem())
			c := w.standalone()
			c.names("tools")
			w.orphan(b, func() {
				c.prog.signal(syscall.SIGKILL)
				<-c.prog.exited
			})
			next(w)
			require.Empty(t, w.processes(" -sleep "))
		})
	}
}

func TestChildrenOfARunningProcessAreLeftAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backend("b", filesystem())
	c := w.standalone()
	c.names("tools")
	b.do(do("grandchild"))
	w.succeeds("list", "tools")
	require.Equal(t, "b:stat:{}", c.callText("b_stat", obj{}))
	require.Len(t, w.processes(" -sleep "), 1)
	require.Len(t, w.records(), 1)
	c.close()
	require.Zero(t, c.prog.ends(patience))
	require.Empty(t, w.records(), "who ends by itself leaves nothing to do")
}

func TestABrokenRecordOfChildrenCostsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.backend("b", filesystem())
	dir := filepath.Join(w.dir, "run", "goblin")
	require.NoError(t, os.Mkdir(dir, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "children-1-x"), []byte("{\"pid\":\x00[[["), 0o600))
	c := w.bridged()
	require.Equal(t, "b:stat:{}", c.callText("b_stat", obj{}))
	require.Len(t, w.records(), 1, "that of the host")
}
