package tui

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/registry"
	"goblin/registry/report"
)

func TestEnterOnAServerThatFailedTellsWhatIsBroken(t *testing.T) {
	t.Parallel()
	r := newFailingUI(t, 120, 40).keys("1 / s l a c k enter")
	r.backend.finds.AddOK("command", "npx is /usr/bin/npx")
	r.backend.finds.AddBroken("runs", "the process exited; output: no token\x1b[2J", "run it in a terminal")
	runs := &r.backend.finds.Checks[1]
	for i := range 30 {
		runs.Lines = append(runs.Lines, fmt.Sprintf("frame %d\x1b[2J", i))
	}
	r.keys("enter")
	require.Equal(t, []string{"diagnose slack"}, r.backend.acts)
	screen := r.screen()
	require.Contains(t, screen, "Diagnosis")
	require.Contains(t, r.line("ok: npx"), "command")
	require.Contains(t, r.line("broken: the process"), `runs`)
	require.Contains(t, screen, `no token\x1b[2J`)
	require.Contains(t, r.line("run it in a terminal"), "fix")
	require.Contains(t, r.line(`frame 0\x1b[2J`), "stderr")
	require.Contains(t, screen, "frame 19")
	require.NotContains(t, screen, "frame 20")

	r.setState("slack", registry.ServerState{State: registry.StateReady, Transport: "stdio"})
	require.NotContains(t, r.screen(), "Diagnosis", "no longer shown")
}

func TestEnterOnOtherServersChecksNothing(t *testing.T) {
	t.Parallel()
	r := newFailingUI(t, 120, 40).keys("1 / f i l e s enter enter")
	require.Empty(t, r.backend.acts)
}

func TestDoctorChecksAnyServerFromAnyPane(t *testing.T) {
	t.Parallel()
	r := newFailingUI(t, 120, 40).keys("2")
	r.backend.finds = report.Diagnosis{}
	r.backend.finds.AddWarning("stdout", "a banner", "have it write that to stderr")
	r.keys(": d o c t o r space f i l e s enter")
	require.Equal(t, []string{"diagnose files"}, r.backend.acts)
	require.Contains(t, r.line("warning: a banner"), "stdout")
	r.backend.fails = errors.New("the gateway has stopped")
	r.keys(": d o c t o r enter")
	require.Contains(t, r.screen(), "the gateway has stopped")
}
