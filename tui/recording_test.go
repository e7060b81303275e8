package tui

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/registry"
)

// ofRecording makes the example one of a recording that ended at noon.
func ofRecording(o *Options) {
	end := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	o.Recording = &Recording{Name: "night\x1b[2J.jsonl", Start: end.Add(-time.Hour), End: end, Summary: "the newest 20k of 1.0M requests; 2 unreadable parts"}
	o.Daemon = Daemon{Config: "night.jsonl", Command: []string{"goblin", "stdio"}}
}

func TestARecordingIsReadOnly(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv, ofRecording)
	r.reg.SetUnapproved("github", []registry.UnapprovedTool{{Server: "github", Name: "search", New: true, Offered: []byte(`{"name":"search"}`)}})
	r.refresh(registry.Pins)
	for _, keys := range []string{
		"2 c", "2 r", "2 x", "2 A", "3 c", "3 enter", "4 enter", "4 r", "4 s", "4 t enter", "4 t c", "5 ] k c", "5 ] X",
		"1 r", "1 a", "1 e", "1 enter", "1 d", "1 A", ": r e s t a r t space f i l e s enter", ": c l e a r space a l l enter", ": s e t u p enter", ": a d d enter", "0 d", "w space",
	} {
		r.keys(keys)
		require.Empty(t, r.backend.sentRequests(), keys)
		require.Empty(t, r.backend.acts, keys)
		for range 4 {
			r.keys("esc")
		}
	}
	for keys, want := range map[string]string{"2 c": "no requests are sent", "1 r": "no requests are sent", "1 a": "nothing can be changed", ": a d d enter": "nothing can be changed", ": s e t u p enter": "nothing can be changed"} {
		r.keys(keys)
		require.Contains(t, r.screen(), "this is a recording; "+want, keys)
		r.keys("esc esc")
	}
	require.NotContains(t, r.keys("2").screen(), "c call ", "the footer omits disabled keys")
}

// Ages must not grow while the user reads, but messages must still vanish.
func TestTheClockOfARecordingStandsStill(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv, ofRecording).keys("5 ]")
	before := r.app.Now()
	r.keys("c")
	require.Contains(t, r.screen(), "no requests are sent")
	r.clock.advance(time.Hour)
	r.run(r.app.refreshClocks())
	require.Equal(t, before, r.app.Now())
	require.NotContains(t, r.screen(), "no requests are sent")
	require.Contains(t, r.screen(), "recording night")
	require.NotContains(t, r.screen(), "\x1b[2J")
}

func TestEmptyTabsOfARecordingExpectNothing(t *testing.T) {
	t.Parallel()
	r := newTestUIWith(t, registry.New(registry.Options{}), &fakeClock{current: time.Now()}, 120, 40, plainEnv, ofRecording)
	for tab, want := range map[string]string{
		"traffic": "No requests in this recording.", "timeline": "No requests in this recording.",
		"stderr": "Recordings contain no output of servers.", "goblin": "No problems in this recording.",
	} {
		require.Contains(t, r.runCommand(tab).screen(), want)
	}
}

func TestTheHeaderOfARecordingOmitsWhatDoesNotFit(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 80, 24, plainEnv, ofRecording, func(o *Options) { o.Recording.Name = "20261120T110000.000Z.jsonl.gz" })
	require.Equal(t, " goblin  recording 20261120T110000.000Z  2026-11-20 11:00:00 to 12:00:00", strings.TrimSuffix(r.line("recording"), "  servers 4"))
	require.Contains(t, r.resize(120, 40).line("recording"), "servers 4  clients 2")
}

func TestARecordingWithoutClientsHasAnEmptyList(t *testing.T) {
	t.Parallel()
	r := newTestUIWith(t, registry.New(registry.Options{}), &fakeClock{current: time.Now()}, 120, 40, plainEnv, ofRecording)
	require.Contains(t, r.keys("0").screen(), "No clients were connected at the end of the recording.")
}

func TestMissingBodiesOfARecordingWereNotEvicted(t *testing.T) {
	t.Parallel()
	r := newTrafficUI(t, 120, 60)
	r.app.ReadOnly = "this is a recording"
	r.reg.Traffic().Append(registry.TrafficRecord{Time: r.clock.now(), Server: "files", Method: "tools/call", Name: "bare", Status: "success", RequestSize: 16, ResponseSize: 18})
	r.refresh(registry.Traffic).runCommand("traffic").keys("g j")
	require.Contains(t, r.screen(), "18 B, not recorded, or not loaded")
	require.Contains(t, r.keys("v").screen(), "its params or answer: not recorded, or not loaded")
	require.NotContains(t, r.keys("enter").screen(), "evicted")
}
