package tui

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/registry"
)

// A daemon whose terminal was closed once lived on, and the next screen showed what its
// servers had been hours before, without a word.
func TestAScreenThatJoinsADaemonAloneSaysWhatItJoined(t *testing.T) {
	since := func(r *rig) string { return r.app.o.Daemon.Started.Local().Format("15:04") }
	r := newRig(t, 100, 24, "files")
	require.NotContains(t, r.screen(), "joined the daemon", "it is its own")

	r.app.o.Daemon.Owner = false
	require.Contains(t, r.screen(), " joined the daemon that runs since "+since(r)+" from /dev/pts/3 (pid 4711)")
	require.Contains(t, r.screen(), "goblin stop ends it")
	r.app.o.Daemon.TerminalGone = true
	require.Contains(t, r.screen(), "from /dev/pts/3, which is gone (pid 4711)")
	r.clock.at = r.clock.at.Add(24 * time.Hour)
	require.Contains(t, r.screen(), "runs since 2026-11-20 "+since(r), "another day is told")
	r.app.o.Daemon.Terminal, r.app.o.Daemon.TerminalGone = "", false
	require.NotContains(t, r.screen(), "from", "it was started without one")

	// Others who use it make it plain that it is there.
	r.reg.SetSession(registry.Session{ID: "c", Client: "editor", Transport: "socket"})
	r.app.head.refresh(r.app)
	require.NotContains(t, r.screen(), "joined the daemon")
	r.keys("0")
	require.Contains(t, r.screen(), "The daemon runs since 2026-11-20 "+since(r)+" (pid 4711).", "and it is found there")
}
