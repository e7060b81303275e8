package tui

import (
	"fmt"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/stretchr/testify/require"

	"goblin/registry"
)

// newTimelineUI returns a UI with calls of an agent: a script, an elicitation, a retry, a
// start of the server, and a call in flight.
func newTimelineUI(t testing.TB, w, h int, env map[string]string) *testUI {
	t.Helper()
	clock := &fakeClock{current: time.Date(2026, 11, 20, 2, 6, 18, 0, time.UTC)}
	reg := registry.New(registry.Options{Servers: []string{"odd", "files"}, Now: clock.now})
	r := newTestUIWith(t, reg, clock, w, h, env)
	r.setReady("odd").setReady("files")
	began, number := clock.now(), uint64(0)
	add := func(at, took time.Duration, rec registry.TrafficRecord) uint64 {
		number++
		if rec.Status == "" {
			rec.Status = "success"
		}
		rec.Time, rec.Duration = began.Add(at), took
		if rec.Status != registry.StatusNotification && rec.Direction == registry.ToServer {
			rec.Number = number
		}
		if rec.Client == "" {
			rec.Client, rec.Session = "my-agent", "s-1"
		}
		r.reg.Traffic().Append(rec)
		return number
	}
	call := func(server, name, args string) registry.TrafficRecord {
		return registry.TrafficRecord{
			Server: server, Method: "tools/call", Name: server + "_" + name, Original: name,
			Request: fmt.Appendf(nil, `{"name":"%s_%s","arguments":%s}`, server, name, args),
		}
	}
	const ms, s = time.Millisecond, time.Second
	add(0, 300*time.Microsecond, registry.TrafficRecord{Method: "initialize"})
	for i := range 4 {
		add(time.Duration(i+1)*400*ms, 40*ms, call("odd", "counter", fmt.Sprintf(`{"n":%d}`, i+1)))
	}
	failing := call("odd", "fails", `{"why":"42"}`)
	failing.Status, failing.Response = registry.StatusToolError, []byte(`{"isError":true,"content":[{"type":"text","text":"no such order: 42"}]}`)
	add(2*s, 2*ms, failing)
	add(2500*ms, 3*ms, call("odd", "fails", `{"why":"42"}`))
	slow := call("odd", "counter", `{"n":5}`)
	add(3*s, 400*ms, slow)
	script := add(4*s, 2500*ms, registry.TrafficRecord{Server: "", Method: "tools/call", Name: "run_script", Request: []byte(`{"name":"run_script","arguments":{"code":"return 1"}}`)})
	inner := call("files", "read_file", `{"path":"a.txt"}`)
	inner.Parent = script
	add(4100*ms, 900*ms, inner)
	inner.Request = []byte(`{"name":"files_read_file","arguments":{"path":"b.txt"}}`)
	add(5200*ms, 1200*ms, inner)
	asked := call("odd", "confirm", `{}`)
	asked.UserWait, asked.UserAsked = 2*s, true
	parent := add(7*s, 2600*ms, asked)
	add(7300*ms, 2*s, registry.TrafficRecord{Server: "odd", Direction: registry.ToClient, Method: "elicitation/create", Parent: parent})
	started := call("files", "write_file", `{"path":"c.txt"}`)
	started.Client, started.Session, started.StartWait, started.QueueWait = "web-agent", "s-2", 1500*ms, 400*ms
	add(6*s, 3*s, started)
	r.backend.underWay = []registry.InFlight{{ID: "8", TrafficRecord: registry.TrafficRecord{
		Time: began.Add(10 * s), Session: "s-1", Client: "my-agent", Server: "odd", Method: "tools/call", Name: "odd_hang", Number: 99,
		Status: registry.StatusInFlight, Request: []byte(`{"name":"odd_hang","arguments":{"secs":20}}`),
	}}}
	for i := range 3 {
		add(time.Duration(11+i)*s, 0, registry.TrafficRecord{
			Server: "odd", Direction: registry.ToClient, Method: "notifications/progress", Name: "odd_hang", Parent: 99, Status: registry.StatusNotification,
			Request: fmt.Appendf(nil, `{"progressToken":1,"progress":%d,"total":10}`, i+1),
		})
	}
	clock.advance(15 * s)
	r.refresh(registry.Traffic).pollInFlight().keys("5 [").pollInFlight()
	return r
}

func TestGoldenTimeline(t *testing.T) {
	t.Parallel()
	var frames string
	for _, size := range [][2]int{{80, 24}, {120, 40}, {160, 45}} {
		frames += newTimelineUI(t, size[0], size[1], plainEnv).goldenSection()
	}
	ascii := newTimelineUI(t, 120, 40, asciiEnv).keys("F").goldenSection() // the list alone
	for _, c := range ascii {
		require.Less(t, c, rune(0x80), "ASCII terminals get ASCII")
	}
	colours := newTimelineUI(t, 120, 40, colourEnv)
	colours.goldenSection()
	golden(t, "logs-timeline", frames+"== 120x40 ASCII\n"+ascii+"== 120x40 with colours\n"+colours.app.View())
}

func TestKeysOfTheTimeline(t *testing.T) {
	t.Parallel()
	r := newTimelineUI(t, 120, 40, plainEnv)
	require.Contains(t, r.line("Time line 15"), "by client, 30 s, following")
	require.Regexp(t, `> odd hang secs=20 .*█▸ 5.0 s running`, r.screen())

	// The running call grows, and its end replaces it in the same row.
	r.tick(2 * time.Second)
	require.Contains(t, r.line("odd hang"), "7.0 s running")

	// A frozen view stays as it is.
	r.keys("space")
	require.Contains(t, r.line("Time line 15"), "paused")
	r.tick(5 * time.Second).pollInFlight()
	require.Contains(t, r.line("odd hang"), "7.0 s running")
	r.keys("space")
	r.tick(time.Second)
	require.Contains(t, r.line("odd hang"), "13 s running")

	// Zoom and pan.
	r.keys("-")
	require.Contains(t, r.line("Time line 15"), "2 min")
	r.keys("+ + +")
	require.Contains(t, r.line("Time line 15"), "20 s, following")
	r.keys("{")
	require.NotContains(t, r.line("Time line 15"), "following")
	r.keys("f")
	require.Contains(t, r.line("Time line 15"), "20 s, following")

	// The cursor skips headings and progress, and the axis shows the selected call.
	r.keys("g")
	require.Regexp(t, `> initialize +▌`, r.screen())
	require.Contains(t, r.line("my-agent"), "my-agent 10")
	r.keys("G k")
	require.Contains(t, r.screen(), "> odd hang")
	r.keys("k k k k k z")
	require.Regexp(t, `> run_script code=return 1 +█{30,} 2.5 s`, r.screen())
	require.Contains(t, r.line("Time line 15"), "by client, 5 s")
	r.keys("z")
	require.Regexp(t, `initialize +▌`, r.screen(), "all calls")

	// Groups.
	r.keys("o")
	require.Contains(t, r.line("Grouped by"), "by server")
	require.Contains(t, r.screen(), "> run_script")
	r.runCommand("sort session")
	require.Contains(t, r.screen(), "web-agent s-2")

	// The detail compares a slow call with earlier ones.
	r.keys("/").typeText("counter").keys("enter G")
	require.Contains(t, r.line("odd counter n=5"), "400 ms 10×")
	require.Contains(t, r.screen(), "median of 4 earlier calls: 40 ms; this one is 10 times as long")
}

func TestEnterOpensAnyCallOfTheTimeline(t *testing.T) {
	t.Parallel()
	r := newTimelineUI(t, 120, 40, plainEnv).keys("enter")
	require.Contains(t, r.screen(), "No answer yet")
	r.keys("]")
	require.Contains(t, r.screen(), `"secs": 20`)
	r.keys("[ esc k k enter")
	require.Contains(t, r.screen(), "odd_confirm")
	require.Contains(t, r.screen(), "waiting for the user")
}

func TestARangeOfTheTimelineFiltersAllTabs(t *testing.T) {
	t.Parallel()
	r := newTimelineUI(t, 120, 40, plainEnv)
	for after, text := range map[time.Duration]string{1 * time.Second: "too early", 5 * time.Second: "inside"} {
		r.reg.Logs().Append(registry.LogRecord{Time: time.Date(2026, 11, 20, 2, 6, 18, 0, time.UTC).Add(after), Source: registry.SourceStderr, Server: "odd", Text: text})
	}
	r.refresh(registry.Logs)
	r.keys("g").runCommand("range")
	require.Contains(t, r.screen(), "Range starts here")
	r.keys("esc t esc")                                    // a mark can be removed
	r.keys("/").typeText("run_script").keys("enter t esc") // the mark
	require.NotContains(t, r.screen(), "counter")
	r.keys("esc") // the filter
	require.Contains(t, r.screen(), "> run_script")
	r.keys("t t")
	require.Equal(t, "at:02:06:22.000..02:06:24.500", r.filterText())
	require.Regexp(t, `files read_file path=a.txt`, r.screen())
	require.NotContains(t, r.screen(), "counter")
	r.keys("5").runCommand("stderr")
	require.Equal(t, "at:02:06:22.000..02:06:24.500", r.filterText())
	require.Contains(t, r.screen(), "inside")
	require.NotContains(t, r.screen(), "too early")
	r.runCommand("traffic")
	require.Contains(t, r.screen(), "run_script")
	require.NotContains(t, r.screen(), "odd_counter")
	r.keys("esc").runCommand("stderr")
	require.Empty(t, r.filterText(), "removed everywhere")
	require.Contains(t, r.screen(), "The range is removed from all tabs")
	require.Contains(t, r.screen(), "too early")
}

func TestTrafficAndTimelineShareTheSelectedRequest(t *testing.T) {
	t.Parallel()
	r := newTimelineUI(t, 120, 40, plainEnv).runCommand("traffic")
	r.keys("g j j").runCommand("timeline")
	require.Contains(t, r.screen(), "> odd counter n=2")
	r.keys("j").runCommand("traffic")
	require.Regexp(t, `> .*odd_counter.*\n.*odd_counter.*\n.*odd_fails`, r.screen())
}

func TestTheMouseSelectsInTheTimeline(t *testing.T) {
	t.Parallel()
	r := newTimelineUI(t, 120, 40, plainEnv)
	r.click("odd counter n=3", "counter")
	require.Contains(t, r.screen(), "> odd counter n=3")
	r.click("progress 3/10", "progress")
	require.Contains(t, r.screen(), "> odd hang", "the call that reports it")
	r.send(tea.MouseMsg{X: 10, Y: 10, Button: tea.MouseButtonWheelUp, Action: tea.MouseActionPress}, 0)
	require.Regexp(t, `my-agent 10`, r.screen())
}

func TestAnEmptyTimelineExplainsItself(t *testing.T) {
	t.Parallel()
	r := newTestUI(t, 80, 24, "files").keys("5 [")
	require.Contains(t, r.screen(), "No requests yet.")
	for _, key := range []string{"+", "-", "{", "}", "z", "t", "o", "g", "G", "enter", "space"} {
		r.keys(key)
		r.screen()
	}
}

func TestAWaitForTheUserIsShownWhileTheCallRuns(t *testing.T) {
	t.Parallel()
	r := newTimelineUI(t, 120, 40, plainEnv)
	r.backend.underWay[0].UserWait = 2 * time.Second
	r.pollInFlight()
	require.Regexp(t, `odd hang.* 5.0 s running \(user 2.0 s\) █+░+▸`, r.screen())
}
