//go:build e2e || faults

package faults

import (
	"encoding/json"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// TestFaults tests all faulty servers, each beside a healthy one; without the build tag
// e2e, one of each kind. If durations are tested, a gateway without faults runs at the
// same time. It shows how busy the machine is.
func TestFaults(t *testing.T) {
	var undisturbed *pulse
	if timed {
		w := e2e.NewWorld(t)
		w.Backend("fine", e2e.Filesystem())
		c := w.Standalone()
		c.WaitListed("tools", "fine_stat", true)
		undisturbed = startPulse(c, "fine_stat")
		t.Cleanup(func() { undisturbed.end() })
	}
	for _, f := range faults {
		if (f.large || f.slow) && !timed || !f.usual && !e2e.AllVariants {
			continue
		}
		t.Run(f.row+"/"+f.name(), func(t *testing.T) {
			t.Parallel()
			f.run(t, undisturbed)
		})
	}
}

const (
	soon = 5 * time.Second  // the time in which calls of a stopped server fail
	wide = 15 * time.Second // for everything without its own limit, on a busy machine
)

var faults = []fault{
	// Servers that do not start.
	{row: "B01_is_failed_and_said_so", mode: "crash-start", usual: true, gateway: e2e.Obj{"startup_wait": "1s"}, check: neverStarts},
	{row: "B02_is_failed_and_said_so", mode: "missing", gateway: e2e.Obj{"startup_wait": "1s"}, check: neverStarts},
	{row: "B05_is_failed_and_said_so", mode: "fail-init", gateway: e2e.Obj{"startup_wait": "1s"}, check: neverStarts},
	{row: "B03_is_started_again", mode: "flaky-start", gateway: e2e.Obj{"startup_wait": "1s"}, check: func(h *harmed) {
		h.usable()
		require.Equal(h.T, 2, h.bad.Starts())
	}},
	{row: "B04_delays_nobody", mode: "hang-init", gateway: e2e.Obj{"startup_wait": "2s", "handshake_wait": "500ms"}, check: func(h *harmed) {
		require.Less(h.T, h.greeted, 2*time.Second+h.slack(h.began), "initialize waits at most handshake_wait")
		began := time.Now()
		require.Len(h.T, h.Names("tools"), 2)
		require.Less(h.T, time.Since(began), 1500*time.Millisecond+h.slack(began), "lists after startup_wait are answered at once")
		h.failsWithin(soon, h.call("bad_echo", e2e.Obj{}))
	}},
	{row: "B07_appears_when_it_is_up", mode: "slow-start", gateway: e2e.Obj{"startup_wait": "1s"}, check: func(h *harmed) {
		require.NotContains(h.T, h.Names("tools"), "bad_echo")
		h.bad.Do(e2e.Do("release", e2e.Obj{"name": "up"}))
		require.True(h.T, h.until(12*time.Second, func() bool { return slices.Contains(h.Names("tools"), "bad_echo") }))
		h.WaitNote("notifications/tools/list_changed", nil)
		h.usable()
	}},
	{row: "B06_is_refused", mode: "null-init", gateway: e2e.Obj{"startup_wait": "1s"}, check: neverStarts},
	{row: "B08_is_refused", mode: "bad-version", gateway: e2e.Obj{"startup_wait": "1s"}, check: neverStarts},
	{row: "B09_is_refused", mode: "wrong-version-type", gateway: e2e.Obj{"startup_wait": "1s"}, check: neverStarts},

	// Servers that exit.
	{row: "B10_B39_calls_in_flight_fail_at_once_and_name_it", mode: "crash-call", usual: true, check: func(h *harmed) {
		ids := []string{h.call("bad_echo", e2e.Obj{}), h.call("bad_echo", e2e.Obj{})}
		h.bad.WaitReceived("tools/call", 2)
		for _, id := range append(ids, h.call("bad_fault", e2e.Obj{})) {
			h.failsWithin(soon, id, "CONNECTION_ERROR")
		}
		h.usable()
		h.logs("assertion failed")
	}},
	{row: "B11_half_an_answer_is_none", mode: "crash-midline", check: diesInACall},
	{row: "B13_is_started_again", mode: "exit-after", check: func(h *harmed) {
		for range 3 {
			require.Equal(h.T, "echo", h.CallText("bad_echo", e2e.Obj{}))
		}
		h.usable()
		require.Equal(h.T, 2, h.bad.Starts())
	}},
	{row: "B36_is_started_again", mode: "close-stdout", check: diesInACall},
	{row: "B12_starts_get_rarer", mode: "crash-start", gateway: e2e.Obj{"startup_wait": "100ms"}, slow: true, check: seldomStarts},
	{row: "B12_starts_get_rarer", mode: "crash-loop", gateway: e2e.Obj{"startup_wait": "100ms"}, slow: true, check: seldomStarts},

	// Calls that never return.
	{row: "B14_B15_time_out_and_block_nobody", mode: "hang-call", entry: e2e.Obj{"timeout": "4s"}, check: func(h *harmed) {
		began := time.Now()
		var ids []string
		for range 50 {
			ids = append(ids, h.call("bad_fault", e2e.Obj{}))
		}
		require.Equal(h.T, "echo", h.CallText("bad_echo", e2e.Obj{}))
		require.Less(h.T, time.Since(began), 4*time.Second+h.slack(began), "the same server answers others in between")
		for _, id := range ids {
			h.failsWithin(time.Until(began.Add(6*time.Second)), id, "REQUEST_TIMEOUT")
		}
		h.bad.WaitReceived("notifications/cancelled", 50)
	}},
	{row: "B16_a_cancelled_call_is_over", mode: "ignore-cancel", check: func(h *harmed) {
		id := h.call("bad_fault", e2e.Obj{})
		h.bad.WaitReceived("tools/call", 1)
		h.Notify("notifications/cancelled", e2e.Obj{"requestId": json.RawMessage(id)})
		require.Equal(h.T, "echo", h.CallText("bad_echo", e2e.Obj{}))
		h.bad.WaitReceived("notifications/cancelled", 1)
		h.window(1500 * time.Millisecond) // its answer arrives, and is dropped
		h.Ok("ping", nil)
		require.Zero(h.T, h.answers(id))
	}},
	{row: "B35_calls_time_out_and_the_exit_works", mode: "deaf", entry: e2e.Obj{"timeout": "2s"}, check: func(h *harmed) {
		require.Equal(h.T, "echo", h.CallText("bad_echo", e2e.Obj{"x": strings.Repeat("x", 1<<20)}))
		stopsReading(h)
	}},
	{row: "B35_calls_time_out_and_the_exit_works", mode: "stopped", entry: e2e.Obj{"timeout": "1s"}, check: func(h *harmed) {
		h.bad.WaitReceived("tools/list", 1)
		require.NoError(h.T, exec.Command("kill", "-STOP", strconv.Itoa(h.bad.WaitStarts(1).Pid)).Run())
		stopsReading(h)
	}},

	// Invalid lines.
	{row: "B17_garbage_is_skipped", mode: "garbage", usual: true, check: answersWell},
	{row: "B30_the_first_answer_counts", mode: "dup-ids", check: answersWell},
	{row: "B31_answers_to_nobody_are_skipped", mode: "unknown-id", check: answersWell},
	{row: "B18_stderr_is_drained", mode: "stderr-flood", check: func(h *harmed) {
		h.meanwhile(func() {
			require.Equal(h.T, "fault", e2e.Str(h.within(20*time.Second, h.call("bad_fault", e2e.Obj{})).Result, "content", 0, "text"))
		})
		require.Less(h.T, len(h.Prog.Stderr.String()), 4<<20)
	}},
	{row: "B19_a_large_result_is_whole", mode: "huge-result", large: true, check: func(h *harmed) {
		m := h.within(e2e.Patience, h.call("bad_fault", e2e.Obj{}))
		require.Nil(h.T, m.Error)
		require.GreaterOrEqual(h.T, strings.Count(m.Raw, "x"), 64<<20)
	}},
	{row: "B20_deep_JSON_is_an_error_at_once", mode: "deep-json", usual: true, check: isBadReply},
	{row: "B20_deep_JSON_is_an_error_at_once", mode: "deep-json-id-last", check: isBadReply},
	{row: "B20_deep_JSON_costs_only_its_list", mode: "deep-json-list", gateway: e2e.Obj{"startup_wait": "1s"}, check: func(h *harmed) {
		require.Empty(h.T, h.badTools())
		h.state("ready")
	}},
	{row: "B21_nothing_reaches_a_terminal", mode: "escapes", check: func(h *harmed) {
		require.NotNil(h.T, h.within(soon, h.call("bad_fault", e2e.Obj{})).Error)
		for _, args := range [][]string{{"list", "tools"}, {"list", "tools", "--server", "bad"}, {"call", "bad_fault"}, {"list", "servers"}} {
			out := h.w.Run(args...)
			require.Contains(h.T, out.Stdout+out.Stderr, "bad", "%v", args)
			for _, bad := range []string{"\x1b", "\x07", "\u009b", "\u202e", "\u2066", "\u200b", "\U000e0041"} {
				require.NotContains(h.T, out.Stdout+out.Stderr, bad, "%v", args)
			}
		}
	}},
	{row: "B22_the_wire_stays_UTF8", mode: "bad-utf8", usual: true, check: func(h *harmed) {
		require.Equal(h.T, "caf\uFFFD \uFFFD", h.CallText("bad_fault", e2e.Obj{}))
		require.Len(h.T, h.Names("tools"), 5)
		require.True(h.T, utf8.ValidString(h.Prog.Stderr.String()))
	}},

	// Invalid lists.
	{row: "B23_is_listed_once", mode: "dup-names", check: func(h *harmed) {
		require.Equal(h.T, []string{"bad_echo", "bad_fault"}, h.badTools())
		answersWell(h)
	}},
	{row: "B24_names_are_made_to_fit", mode: "long-names", check: func(h *harmed) {
		names := h.badTools()
		require.GreaterOrEqual(h.T, len(names), 14)
		require.Len(h.T, slices.Compact(slices.Clone(names)), len(names))
		for _, name := range names {
			require.Regexp(h.T, `^[A-Za-z0-9_-]{1,51}$`, name)
		}
		answersWell(h)
	}},
	{row: "B25_the_valid_rest_is_usable", mode: "wrong-types", check: func(h *harmed) {
		require.Subset(h.T, []string{"bad_echo", "bad_fault", "bad_odd"}, h.badTools())
		for _, e := range h.List("tools") {
			require.True(h.T, strings.HasPrefix(string(e), "{"), "%s", e)
		}
		answersWell(h)
	}},
	{row: "B26_costs_only_itself", mode: "tools-not-array", gateway: e2e.Obj{"startup_wait": "1s"}, check: func(h *harmed) {
		require.Empty(h.T, h.badTools())
		require.Equal(h.T, "[", string(e2e.At(h.Ok("tools/list", nil), "tools"))[:1])
	}},
	{row: "B27_all_are_listed", mode: "many-tools", check: func(h *harmed) {
		require.Len(h.T, h.badTools(), 5002)
		answersWell(h)
	}},
	{row: "B28_is_stopped", mode: "cursor-loop", slow: true, check: stopsListing},
	{row: "B29_is_stopped", mode: "cursor-barren", slow: true, check: stopsListing},
	{row: "B29_is_stopped", mode: "cursor-new", slow: true, check: stopsListing},
	{row: "B29_is_stopped_before_it_fills_the_memory", mode: "cursor-large", large: true, check: func(h *harmed) {
		require.Contains(h.T, h.badTools(), "bad_echo")
		require.Less(h.T, h.bad.Count("tools/list"), 50)
	}},
	{row: "B29_is_stopped_before_all_lists_together_fill_the_memory", mode: "cursor-large-all", large: true, check: func(h *harmed) {
		require.Contains(h.T, h.badTools(), "bad_echo")
		pages := 0
		for _, method := range []string{"tools/list", "prompts/list", "resources/list", "resources/templates/list"} {
			pages += h.bad.Count(method)
		}
		require.Less(h.T, pages, 30, "of 8 MiB each")
	}},
	{row: "B33_what_is_there_is_usable", mode: "cap-lie", check: answersWell},
	{row: "B34_the_rest_is_unaffected", mode: "cap-none", check: func(h *harmed) {
		h.state("ready")
		require.Empty(h.T, h.badTools())
	}},

	// Unrequested messages of servers.
	{row: "B32_notices_are_merged", mode: "notify-flood", check: func(h *harmed) {
		h.badTools()
		h.Ok("resources/subscribe", e2e.Obj{"uri": e2e.In("bad", "x:1")})
		require.Equal(h.T, "fault", h.CallText("bad_fault", e2e.Obj{}))
		h.WaitUpdates(1)
		h.WaitNote("notifications/tools/list_changed", nil)
		h.Quiet()
		require.LessOrEqual(h.T, h.bad.Count("tools/list"), 500)
		require.LessOrEqual(h.T, len(h.NotesOf("notifications/tools/list_changed")), 2500)
		require.Equal(h.T, "echo", h.CallText("bad_echo", e2e.Obj{}))
	}},
	{row: "B37_is_answered", mode: "srv-request", check: func(h *harmed) {
		require.Equal(h.T, "fault", h.CallText("bad_fault", e2e.Obj{}))
		require.Contains(h.T, string(h.bad.WaitEvent("reply", "vendor/unknown").Msg), `"code":-32601`)
	}},
	{row: "B38_is_told", mode: "rug-pull", check: func(h *harmed) {
		h.badTools()
		require.Equal(h.T, "fault", h.CallText("bad_fault", e2e.Obj{}))
		h.WaitNote("notifications/tools/list_changed", nil)
		h.WaitListed("tools", "bad_more", true)
		h.logs("more")
	}},

	// Servers over HTTP, from the start or after a call.
	{row: "B40_is_an_error", mode: "http-refused", gateway: e2e.Obj{"startup_wait": "1s"}, check: neverStarts},
	{row: "B41_is_an_error", mode: "http-500", early: true, gateway: e2e.Obj{"startup_wait": "1s"}, check: neverStarts},
	{row: "B41_is_an_error", mode: "http-500", check: failsCalls},
	{row: "B42_asks_for_a_login", mode: "http-401", early: true, gateway: e2e.Obj{"startup_wait": "1s"}, check: func(h *harmed) {
		h.failsWithin(soon, h.call("bad_echo", e2e.Obj{}))
		h.state("needs login")
		h.logs("goblin login bad")
		require.NotContains(h.T, h.Prog.Stderr.String(), "passwd")
	}},
	{row: "B42_asks_for_a_login", mode: "http-401", check: func(h *harmed) {
		require.Equal(h.T, "echo", h.CallText("bad_echo", e2e.Obj{}))
		h.failsWithin(soon, h.call("bad_fault", e2e.Obj{}), "LOGIN_REQUIRED")
	}},
	{row: "B43_is_an_error", mode: "http-html", early: true, gateway: e2e.Obj{"startup_wait": "1s"}, check: neverStarts},
	{row: "B43_is_an_error", mode: "http-html", usual: true, check: failsCalls},
	{row: "B43_is_an_error", mode: "http-notjson", early: true, gateway: e2e.Obj{"startup_wait": "1s"}, check: neverStarts},
	{row: "B43_is_an_error", mode: "http-notjson", check: failsCalls},
	{row: "B44_is_an_error_in_time", mode: "http-silent", early: true, gateway: e2e.Obj{"startup_wait": "1s"}, check: func(h *harmed) {
		h.failsWithin(soon, h.call("bad_echo", e2e.Obj{}))
	}},
	{row: "B44_is_an_error_in_time", mode: "http-silent", entry: e2e.Obj{"timeout": "2s"}, check: failsCalls},
	{row: "B45_is_bounded", mode: "http-endless", early: true, gateway: e2e.Obj{"startup_wait": "1s"}, large: true, check: neverStarts},
	{row: "B45_is_bounded", mode: "http-endless", large: true, check: failsCalls},
	{row: "B45_is_bounded_in_all_calls_together", mode: "http-endless", large: true, check: func(h *harmed) {
		require.Equal(h.T, "echo", h.CallText("bad_echo", e2e.Obj{}))
		var ids []string
		for range 8 {
			ids = append(ids, h.call("bad_fault", e2e.Obj{}))
		}
		for _, id := range ids {
			h.failsWithin(wide, id, "BAD_REPLY")
		}
		h.usable()
	}},
	{row: "B45_is_bounded", mode: "http-lines", large: true, entry: e2e.Obj{"timeout": "3s"}, check: failsCalls},
	{row: "B46_nothing_goes_to_another_origin", mode: "http-redirect", early: true, gateway: e2e.Obj{"startup_wait": "1s"}, entry: secretHeader, check: func(h *harmed) {
		neverStarts(h)
		require.Zero(h.T, h.stolen())
		h.logs("another origin")
	}},
	{row: "B46_nothing_goes_to_another_origin", mode: "http-redirect", entry: secretHeader, check: func(h *harmed) {
		failsCalls(h)
		require.Zero(h.T, h.stolen())
	}},
}

// name returns the mode as FAULTS.md names it.
func (f *fault) name() string {
	if strings.HasPrefix(f.mode, "http-") && !f.early && f.mode != "http-refused" {
		return f.mode + "-late"
	}
	return f.mode
}

// stolen counts the requests that followed a server's redirect.
func (h *harmed) stolen() (n int) {
	h.bad.Update(func() {
		for _, e := range h.bad.Events {
			if e.Ev == "stolen" {
				n++
			}
		}
	})
	return n
}

var secretHeader = e2e.Obj{"headers": e2e.Obj{"X-Api-Key": "s3cret"}}

// badTools returns the listed tools of the faulty server.
func (h *harmed) badTools() []string {
	h.T.Helper()
	var out []string
	for _, name := range h.Names("tools") {
		if strings.HasPrefix(name, "bad_") {
			out = append(out, name)
		}
	}
	return out
}

func neverStarts(h *harmed) {
	h.failsWithin(soon, h.call("bad_echo", e2e.Obj{}))
	h.state("failed")
	require.Empty(h.T, h.badTools())
	h.logs("bad")
}

func diesInACall(h *harmed) {
	h.failsWithin(soon, h.call("bad_fault", e2e.Obj{}), "CONNECTION_ERROR")
	h.usable()
	require.Equal(h.T, 2, h.bad.Starts())
	h.bad.WaitLive(1) // the first process is stopped
}

func stopsReading(h *harmed) {
	big := e2e.Obj{"x": strings.Repeat("x", 1<<20)}
	for range 2 {
		var ids []string
		for range 20 {
			ids = append(ids, h.call("bad_fault", big))
		}
		for _, id := range ids {
			h.failsWithin(soon, id, "REQUEST_TIMEOUT", "CONNECTION_ERROR")
		}
	}
}

func seldomStarts(h *harmed) {
	require.True(h.T, h.until(wide, func() bool { return h.bad.Starts() > 0 }))
	h.window(6 * time.Second)
	starts := h.bad.Starts()
	require.LessOrEqual(h.T, starts, 15)
	require.True(h.T, h.until(e2e.Patience, func() bool { return h.bad.Starts() > starts }), "it retries without end")
}

func answersWell(h *harmed) {
	h.meanwhile(func() { require.Equal(h.T, "echo", h.CallText("bad_echo", e2e.Obj{})) })
	require.Equal(h.T, 1, h.bad.Starts())
}

func isBadReply(h *harmed) {
	h.meanwhile(func() { h.failsWithin(soon, h.call("bad_fault", e2e.Obj{}), "BAD_REPLY") })
	answersWell(h)
}

func stopsListing(h *harmed) {
	require.Contains(h.T, h.badTools(), "bad_echo")
	require.Less(h.T, time.Since(h.began), 8*time.Second+h.slack(h.began))
	h.window(time.Until(h.began.Add(8 * time.Second)))
	before := h.bad.Count("tools/list")
	h.window(2 * time.Second)
	require.Less(h.T, h.bad.Count("tools/list")-before, 100)
	answersWell(h)
}

func failsCalls(h *harmed) {
	require.Equal(h.T, "echo", h.CallText("bad_echo", e2e.Obj{}))
	h.failsWithin(soon, h.call("bad_fault", e2e.Obj{}), "CONNECTION_ERROR", "BAD_REPLY", "REQUEST_TIMEOUT")
	h.usable()
}
