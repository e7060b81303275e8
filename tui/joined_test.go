package tui

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/registry"
)

// A host whose terminal was closed once lived on, and the next screen showed what its
// servers had been hours before, without a word.
func TestAScreenThatJoinsAHostAloneSaysWhatItJoined(t *testing.T) {
	since := func(r *rig) string { return r.app.o.Host.Started.Local().Format("15:04") }
	r := newRig(t, 100, 24, "files")
	require.NotContains(t, r.screen(), "joined the host", "it is its own")

	r.app.o.Host.Owner = false
	require.Contains(t, r.screen(), " joined the host that runs since "+since(r)+" from /dev/pts/3 (pid 4711)")
	require.Contains(t, r.screen(), "goblin stop ends it")
	r.app.o.Host.TerminalGone = true
	require.Contains(t, r.screen(), "from /dev/pts/3, which is gone (pid 4711)")
	r.clock.at = r.clock.at.Add(24 * time.Hour)
	require.Contains(t, r.screen(), "runs since 2026-11-20 "+since(r), "another day is told")
	r.app.o.Host.Terminal, r.app.o.Host.TerminalGone = "", false
	require.NotContains(t, r.screen(), "from", "it was started without one")

	// Others who use it make it plain that it is there.
	r.reg.SetSession(registry.Session{ID: "c", Client: "editor", Transport: "socket"})
	r.app.head.refresh(r.app)
	require.NotContains(t, r.screen(), "joined the host")
	r.keys("0")
	require.Contains(t, r.screen(), "The host runs since 2026-11-20 "+since(r)+" (pid 4711).", "and it is found there")
}
