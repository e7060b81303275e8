//go:build e2e

package daemon

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// records returns the files in which processes of a world record their children.
func records(w *e2e.World) []string {
	w.T.Helper()
	found, err := filepath.Glob(filepath.Join(w.Dir, "run", "goblin", "children-*"))
	require.NoError(w.T, err)
	return found
}

func TestChildrenOfARunningProcessAreLeftAlone(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("b", e2e.Filesystem())
	c := w.Standalone()
	c.Names("tools")
	b.Do(e2e.Do("grandchild"))
	w.Succeeds("list", "tools")
	require.Equal(t, "b:stat:{}", c.CallText("b_stat", e2e.Obj{}))
	require.Len(t, w.Processes(" -sleep "), 1)
	require.Len(t, records(w), 1)
	c.Close()
	require.Zero(t, c.Prog.Ends(e2e.Patience))
	require.Empty(t, records(w), "no process is left to kill")
}

func TestP05_WhatAKilledStandaloneLeftIsEndedByAnyStart(t *testing.T) {
	for name, next := range map[string]func(w *e2e.World){
		"standalone": func(w *e2e.World) { w.Standalone().Names("tools") },
		"command":    func(w *e2e.World) { w.Succeeds("list", "tools") },
		"daemon":     func(w *e2e.World) { w.Bridged().Names("tools") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			b := w.Backend("b", e2e.Filesystem())
			c := w.Standalone()
			c.Names("tools")
			orphan(w, b, func() {
				c.Prog.Signal(syscall.SIGKILL)
				<-c.Prog.Exited
			})
			next(w)
			require.Empty(t, w.Processes(" -sleep "))
		})
	}
}

func TestABrokenRecordOfChildrenCostsNothing(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("b", e2e.Filesystem())
	dir := filepath.Join(w.Dir, "run", "goblin")
	require.NoError(t, os.Mkdir(dir, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "children-1-x"), []byte("{\"pid\":\x00[[["), 0o600))
	c := w.Bridged()
	require.Equal(t, "b:stat:{}", c.CallText("b_stat", e2e.Obj{}))
	require.Len(t, records(w), 1, "the daemon's environment")
}

func TestP05_WhatAKilledDaemonLeftIsEndedByTheNext(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("b", e2e.Filesystem())
	c := w.Bridged()
	c.Names("tools")
	orphan(w, b, func() {
		c.Prog.Signal(syscall.SIGKILL)
		<-c.Prog.Exited
		require.NoError(t, e2e.Kill(w.DaemonPID()))
	})
	again := w.Bridged()
	require.Equal(t, "b:stat:{}", again.CallText("b_stat", e2e.Obj{}))
	require.Empty(t, w.Processes(" -sleep "))
	require.Len(t, records(w), 1, "the new daemon's environment")
	require.Contains(t, w.DaemonLog(), "left by a killed Goblin")
}

// orphan makes a server start a process that ignores signals, and kills the server's
// parent. It checks that the process is still running.
func orphan(w *e2e.World, b *e2e.Backend, end func()) {
	w.T.Helper()
	b.Do(e2e.Do("grandchild"))
	e2e.Eventually(w.T, "the grandchild", func() bool { return len(w.Processes(" -sleep ")) == 1 })
	require.Len(w.T, records(w), 1)
	end()
	b.WaitGone()
	require.Len(w.T, w.Processes(" -sleep "), 1)
	require.Len(w.T, records(w), 1)
}
