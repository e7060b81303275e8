package tui

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/stretchr/testify/require"

	"goblin/registry"
	"goblin/registry/report"
	"goblin/tui/pane"
)

// beat runs the periodic update with its commands, twice: the second compares what the
// first has read.
func (r *testUI) beat() *testUI {
	r.t.Helper()
	r.pollInFlight()
	for range 2 {
		r.run(r.app.home().Beat())
	}
	return r
}

// newAlertsUI returns a UI on Home with one alert of each kind.
func newAlertsUI(t *testing.T, w, h int, env map[string]string) *testUI {
	t.Helper()
	r := newExampleUI(t, w, h, env)
	r.reg.SetMistakes([]registry.Mistake{{File: "/etc/goblin/work.yaml", Line: 6, Text: "unknown key \x1b[2Jx"}, {File: "/etc/goblin/work.yaml", Line: 9, Text: "duplicate server"}})
	r.setState("weather", registry.ServerState{State: registry.StateNeedsLogin, LastError: "needs login", CanLogIn: true, Transport: "http"})
	r.reg.SetUnapproved("github", []registry.UnapprovedTool{
		{Server: "github", Name: "create_issue", Approved: []byte(`{"name":"create_issue"}`), Offered: []byte(`{"description":"BCC me","name":"create_issue"}`)},
	})
	r.setRules(r.stop(7), r.stop(8)).refresh(registry.AllChanges)
	r.keys("?") // a request from a server opens only while no dialog is open
	r.ask("elicitation/create", `{"message":"Which one?","requestedSchema":{"type":"object","properties":{"a":{"type":"string"}}}}`)
	r.keys("esc")
	u := addHangingCall(r)
	for i := range 4 {
		before := u.TrafficRecord
		before.Time, before.Duration, before.Status = before.Time.Add(-time.Duration(i+1)*time.Second), 30*time.Millisecond, "success"
		before.Response, before.ResponseSize = []byte(`{"content":[]}`), 14
		r.reg.Traffic().Append(before)
	}
	r.backend.recorded = &report.Recording{Folder: "/rec", Error: "disk full"}
	return r.keys("9").refresh(registry.AllChanges).beat()
}

func TestGoldenHomeWithAlerts(t *testing.T) {
	t.Parallel()
	var frames string
	for _, size := range [][2]int{{80, 24}, {120, 40}, {160, 45}, {80, 16}} {
		frames += newAlertsUI(t, size[0], size[1], plainEnv).goldenSection()
	}
	frames += newAlertsUI(t, 80, 24, asciiEnv).goldenSection()
	r := newAlertsUI(t, 120, 40, colourEnv)
	r.goldenSection()
	golden(t, "home-alerts", frames+"== 120x40 with colours\n"+r.app.View())
}

// The alerts by urgency; ! goes through their places, also from dialogs that it opened.
func TestTheKeyOfAlertsGoesThroughAllOfThem(t *testing.T) {
	t.Parallel()
	r := newAlertsUI(t, 120, 40, plainEnv)
	require.Contains(t, r.line("work.yaml"), "9 alerts (!)  2 requests stopped  config invalid")
	places := []string{
		"Breakpoints 3", "Breakpoints 3", "Which one?", "Config not reloaded: 2 errors", "> ! needs login weather", "> ! retrying    legacy",
		"> ! github_create_issue", "> 12:00:56", "[Goblin",
	}
	for i, want := range places {
		r.keys("!")
		require.Contains(t, r.screen(), want, "alert %d", i+1)
		if i == 0 {
			require.Contains(t, r.screen(), "Alert 1 of 9; ! goes to the next")
		}
		if want == "Which one?" {
			r.passGrace().keys("!")
			require.Contains(t, r.screen(), want, "the key is text in a form")
			r.keys("esc esc") // cancels the request
		}
	}
	r.keys("2 !")
	require.Contains(t, r.screen(), "Breakpoints 3", "it starts again")

	r.keys("esc ! esc !")
	require.Contains(t, r.screen(), "Config not reloaded")
	require.Contains(t, r.setRules(r.stop(9)).keys("!").screen(), "Breakpoints 3", "a new, more urgent one is next")
	require.Contains(t, r.keys("!").line("│>"), "weather", "then the cycle continues")
}

func TestAlertsAreNumberedAsTheHeaderCountsThem(t *testing.T) {
	t.Parallel()
	r := newTestUI(t, 120, 40, "idle", "off", "down", "files").setReady("files")
	for name, state := range map[string]registry.State{"idle": registry.StateSleeping, "off": registry.StateDisabled, "down": registry.StateFailed} {
		r.setState(name, registry.ServerState{State: state})
	}
	r.reg.SetUnapproved("files", []registry.UnapprovedTool{{Server: "files", Name: "read"}, {Server: "files", Name: "write"}})
	r.refresh(registry.AllChanges).keys("9")
	require.Regexp(t, `(?s) down .* files .* idle .* off `, r.screen(), "servers that run are above idle ones")
	require.Contains(t, r.screen(), "3 alerts (!)")
	require.Contains(t, r.keys("!").screen(), "Alert 1 of 3")
	require.Contains(t, r.keys("!").screen(), "Alerts 2 to 3 of 3")
}

func TestWithoutAlertsHomeSaysWhatRuns(t *testing.T) {
	t.Parallel()
	r := newTestUI(t, 80, 24, "files").setReady("files").keys("9")
	require.Contains(t, r.screen(), "Nothing needs you.")
	require.Contains(t, r.screen(), "1 of 1 server up, 0 clients, 0 requests in flight")
	require.Contains(t, r.screen(), "No calls yet.")
	require.NotContains(t, r.line("work.yaml"), "!")
	require.NotContains(t, r.footer(), "next alert")
	require.Contains(t, r.keys("!").screen(), "Nothing needs you")
	r.setState("files", registry.ServerState{State: registry.StateFailed, LastError: `connect "files": no such program`})
	require.Contains(t, r.line("server down"), "server down: files, no such program")
	require.Contains(t, r.footer(), "! next alert")
	require.Contains(t, r.keys("! 9").screen(), "[9 Home]")
}

func TestEnterOnHomeGoesToTheRow(t *testing.T) {
	t.Parallel()
	for keys, want := range map[string]string{
		"j j j enter":       "> ! needs login weather",
		"tab enter":         "> ! needs login weather",
		"tab j j enter":     "> ● ready       files",
		"tab tab enter":     "session:=c1",
		"tab tab tab enter": "> 12:00:56",
		"tab tab tab G k i": "[4 Resources",
		"/ config enter E":  "Config not reloaded: 2 errors",
		"A":                 "Approve create_issue?",
		"X":                 "Cancel tools/call github_create_issue?",
		"a":                 "Which one?",
	} {
		t.Run(keys, func(t *testing.T) {
			t.Parallel()
			r := newAlertsUI(t, 160, 45, plainEnv).keys(keys)
			require.Contains(t, r.screen(), want)
			if strings.Contains(keys, "E") {
				require.Equal(t, []string{"file /etc/goblin/work.yaml:6: "}, r.term.opened)
			}
			if strings.HasPrefix(keys, "tab") {
				require.Contains(t, r.keys("esc").screen(), "[9 Home]", "Esc goes back")
			}
		})
	}
}

// Changed tools of all servers are reviewed together and listed together.
func TestHomeReviewsTheChangedToolsOfAllServers(t *testing.T) {
	t.Parallel()
	r := newTestUI(t, 80, 24, "calc", "shop", "vault")
	for _, server := range []string{"calc", "shop"} {
		r.setReady(server).setList(server, registry.Tool, `{"name":"a"}`, `{"name":"b"}`)
		r.reg.SetUnapproved(server, []registry.UnapprovedTool{{Server: server, Name: "a", Approved: []byte(`{"name":"a"}`), Offered: []byte(`{"name":"a","title":"A"}`)}})
	}
	r.setReady("vault")
	r.reg.SetUnapproved("vault", []registry.UnapprovedTool{{Server: "vault", Name: "x", New: true, Hidden: true, Offered: []byte(`{"name":"x"}`)}})
	r.refresh(registry.AllChanges).keys("9 enter")
	require.Equal(t, "changed:yes", r.filterText())
	require.Regexp(t, `(?s)\[2 Tools .*Tools 2/4.*calc_a.*shop_a`, r.screen())
	require.NotContains(t, r.screen(), "_b")
	require.Contains(t, r.keys("!").line("│>"), "vault", "its tools are hidden")
	require.True(t, r.app.DetailShown())
	r.keys("esc 3")
	require.False(t, r.app.DetailShown(), "Esc closes the detail that the jump opened")

	r.keys("9 A")
	for i, server := range []string{"calc", "shop", "vault"} {
		require.Contains(t, r.screen(), fmt.Sprintf("%d of 3, %s", i+1, server))
		r.keys("y")
	}
	require.Equal(t, []string{"approve calc a", "approve shop a", "approve vault x"}, r.backend.acts)
}

// Reads after updates of a subscribed resource do not displace calls.
func TestLastCallsHaveTheLastReadOfAResource(t *testing.T) {
	t.Parallel()
	r := newTestUI(t, 120, 40, "files")
	r.reg.SetSession(registry.Session{ID: "me", Screen: true})
	r.refresh(registry.AllChanges).keys("9")
	for i, method := range append([]string{"tools/call"}, slices.Repeat([]string{"resources/read"}, 300)...) {
		r.reg.Traffic().Append(registry.TrafficRecord{
			Time: r.clock.now().Add(time.Duration(i) * time.Millisecond), Session: "me", Server: "files", Method: method, Name: "x-" + method, Status: "success", Duration: time.Millisecond,
		})
	}
	r.refresh(registry.AllChanges).beat()
	require.Contains(t, r.line("Last calls"), "Last calls 2 ")
	require.Contains(t, r.screen(), "x-tools/call")
	require.Regexp(t, `files .* 301 `, r.screen(), "the counts have all")
}

// The wheel scrolls the list under the mouse, also of two side by side.
func TestTheWheelScrollsTheListUnderTheMouse(t *testing.T) {
	t.Parallel()
	var names []string
	for i := range 40 {
		names = append(names, fmt.Sprintf("server%02d", i))
	}
	r := newTestUI(t, 160, 45, names...)
	r.setState("server39", registry.ServerState{State: registry.StateFailed, LastError: "x"}).keys("9")
	require.Contains(t, r.line("server down"), ">", "the alerts have the cursor")
	require.Contains(t, r.screen(), "server00")
	r.mouse(tea.MouseButtonWheelDown, tea.MouseActionPress, 10, 6)
	require.NotContains(t, r.screen(), "server00")
	require.Contains(t, r.line("server down"), ">")
	r.mouse(tea.MouseButtonWheelUp, tea.MouseActionPress, 100, 6)
	require.NotContains(t, r.screen(), "server00", "the mouse is over the alerts")
}

// Running calls are first, and the first row stays under the cursor while it follows.
func TestLastCallsFollow(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv).keys("9 tab tab tab")
	require.Contains(t, r.line("│>"), "legacy_run")
	require.Contains(t, r.line("legacy_run"), "!CONNECTION_ERROR")
	u := addHangingCall(r)
	u.Time = r.clock.now()
	r.backend.underWay[0] = u
	r.beat()
	require.Regexp(t, `> 12:01:00 claude .*github_create_issue .*running +0 s title=slow`, r.line("│>"))
	r.keys("j")
	r.endCall(u)
	require.Contains(t, r.line("│>"), "legacy_run", "the cursor left the first row")
	require.Regexp(t, `12:01:00 claude .*github_create_issue .*ok +4.5 s title=slow`, r.line("12:01:00"))
	require.NotContains(t, r.screen(), "following")

	r.click("│  12:01:00", "github_create_issue")
	require.Contains(t, r.line("│>"), "12:01:00")
	require.Contains(t, r.line("Last calls"), "following")
}

// Neither the number of calls nor that of servers makes a frame slow.
func BenchmarkHome(b *testing.B) {
	names := make([]string, 1000)
	for i := range names {
		names[i] = fmt.Sprintf("server%d", i)
	}
	r := newTestUI(b, 160, 45, names...)
	for i := range 10000 {
		r.reg.Traffic().Append(registry.TrafficRecord{Time: r.clock.now(), Session: "s", Server: names[i%1000], Method: "tools/call", Name: "x", Status: "success"})
	}
	r.keys("9").refresh(registry.AllChanges)
	require.Equal(b, pane.PaneHome, r.app.Open)
	for b.Loop() {
		r.app.View()
	}
}

// Successful calls of Goblin's own tools are one row until the user unfolds them.
func TestLastCallsFoldGoblinsOwnTools(t *testing.T) {
	t.Parallel()
	r := newTestUI(t, 120, 40, "files")
	add := func(server, name, status string) {
		r.reg.Traffic().Append(registry.TrafficRecord{
			Time: r.clock.now(), Session: "a", Client: "agent", Server: server, Method: "tools/call", Name: name, Status: status, Duration: time.Millisecond,
		})
		r.clock.advance(time.Second)
	}
	for range 3 {
		add(registry.Local, "search_tools", "success")
		add("files", "files_read", "success")
	}
	add(registry.Local, "call_tool", "failure")
	r.refresh(registry.AllChanges).keys("9").beat()
	require.Contains(t, r.line("Last calls"), "Last calls 7 ")
	require.Regexp(t, `▸ 3 calls of Goblin tools +ok +search_tools`, r.screen())
	require.Contains(t, r.screen(), "call_tool", "failures are visible")
	r.keys("tab tab j j")
	require.Contains(t, r.line("│>"), "Goblin tools")
	require.Contains(t, r.footer(), "enter unfold")
	require.NotContains(t, r.screen(), "agent  search_tools")
	r.keys("enter")
	require.Equal(t, 3, strings.Count(r.screen(), "agent  search_tools "))
	add("files", "files_read", "success")
	r.beat()
	require.Contains(t, r.line("│>"), "Goblin tools", "the cursor stays")
	require.NotContains(t, r.keys("enter").screen(), "agent  search_tools")
}
