package tui

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/registry"
	"goblin/registry/report"
	"goblin/tui/pane"
)

func newFailingUI(t *testing.T, w, h int) *testUI {
	t.Helper()
	r := newTestUI(t, w, h, "files", "github", "slack", "notes")
	r.setReady("files")
	r.setList("files", registry.Tool, `{"name":"a"}`, `{"name":"b"}`)
	r.setState("github", registry.ServerState{State: registry.StateNeedsLogin, Transport: "http", LastError: "401 Unauthorized"})
	r.setState("slack", registry.ServerState{State: registry.StateFailed, Transport: "stdio", Restarts: 7, LastError: "exit status 1: no token\x1b[2J"})
	r.setState("notes", registry.ServerState{State: registry.StateDisabled})
	return r
}

func TestAServerThatTriesAgainAfterAFailureIsDownAndSaysWhy(t *testing.T) {
	t.Parallel()
	r := newTestUI(t, 80, 24, "files", "github").keys("1")
	r.setState("files", registry.ServerState{State: registry.StateConnecting, Transport: "stdio"})
	r.setState("github", registry.ServerState{State: registry.StateConnecting, Transport: "stdio", LastError: "did not answer initialize"})
	r.tick(time.Second)
	require.Contains(t, r.line(" goblin "), "connecting 1 of 2  ! 1 down")
	require.Contains(t, r.screen(), "[1 Servers 2 !1]")
	require.Contains(t, r.line("◐ connecting  github"), "did not answer initialize")
}

func TestTheTabTellsOfChangesSinceLookedAt(t *testing.T) {
	t.Parallel()
	r := newTestUI(t, 120, 24, "files", "github")
	r.setReady("files").setReady("github")
	require.Contains(t, r.screen(), "1 Servers 2  ", "starting must not be reported")
	r.setState("files", registry.ServerState{State: registry.StateRetrying, LastError: "broken pipe"})
	require.Contains(t, r.screen(), "1 Servers 2 Δ1 !1")
	r.keys("1")
	require.Contains(t, r.screen(), "[1 Servers 2 !1]")
	r.setReady("files").keys("2")
	require.Contains(t, r.screen(), "1 Servers 2 [", "it changed while it was viewed")
}

func TestServersAreSortedByTrouble(t *testing.T) {
	t.Parallel()
	r := newFailingUI(t, 80, 24).keys("1")
	names := func() (all []string) {
		for l := range strings.SplitSeq(r.screen(), "\n") {
			for _, s := range []string{"files", "github", "slack", "notes"} {
				if strings.Contains(l, " "+s+" ") {
					all = append(all, s)
				}
			}
		}
		return all
	}
	require.Equal(t, []string{"files", "github", "slack", "notes"}, names())
	r.keys("o")
	require.Equal(t, []string{"slack", "github", "files", "notes"}, names(), "by state")
	r.keys("o")
	require.Equal(t, []string{"notes", "files", "github", "slack"}, names(), "by state, reversed")
	r.keys("o")
	require.Equal(t, []string{"files", "github", "notes", "slack"}, names(), "by name")
	r.sortBy("restarts")
	require.Equal(t, "slack", names()[0], "by restarts")
}

func TestServersAreFilteredByWhatTheyAre(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]string{
		"state:fail": "slack", "server:git": "github", "transport:http": "github", "revision:2025": "files", "error:token": "slack", "unauthorized": "github",
	} {
		r := newFailingUI(t, 80, 24).keys("1 /").typeText(query)
		require.Equal(t, 1, r.app.Panes[pane.PaneServers].Rows().Len(), query)
		s, _ := r.app.Panes[pane.PaneServers].(*pane.Servers).Table.Selected()
		require.Equal(t, want, s.Name, query)
	}
}

func TestAServersDetailSaysWhatHelps(t *testing.T) {
	t.Parallel()
	r := newFailingUI(t, 140, 60).keys("1")
	require.Contains(t, r.screen(), "2025-11-25")
	require.Contains(t, r.screen(), "subscribe", "capabilities")
	r.keys("j")
	require.Contains(t, r.screen(), "Authorization: Bearer ${GITHUB_TOKEN}")
	r.keys("j")
	require.Contains(t, r.screen(), "r restarts it, e shows its output")
	require.NotContains(t, r.app.View(), "\x1b[2J")
	r.keys("j")
	require.Contains(t, r.screen(), "x enables it")
}

func TestAServersDetailHasItsLastLines(t *testing.T) {
	t.Parallel()
	r := newFailingUI(t, 140, 60).keys("1 j j")
	log := func(server, source, text string) {
		r.reg.Logs().Append(registry.LogRecord{Time: r.clock.now(), Server: server, Source: source, Text: text})
	}
	for i := range 30 {
		log("slack", registry.SourceStderr, fmt.Sprintf("line-%02d", i))
	}
	log("files", registry.SourceStderr, "of another one")
	log("slack", registry.SourceGoblin, "of goblin")
	log("slack", registry.SourceMessage, "hello\x1b]0;x\x07")
	r.refresh(registry.Logs)
	screen := r.screen()
	require.Contains(t, screen, "line-29")
	require.Contains(t, screen, "line-11")
	require.NotContains(t, screen, "line-10", "only the last 20")
	require.NotContains(t, screen, "of another one")
	require.NotContains(t, screen, "of goblin")
	require.Contains(t, screen, `hello\x1b]0;x\x07`)
}

func TestRestartAndDisableAskWhenClientsAreConnected(t *testing.T) {
	t.Parallel()
	r := newFailingUI(t, 80, 24).keys("1 r")
	require.Equal(t, []string{"restart files"}, r.backend.acts, "no client is affected, so nothing is asked")
	r.keys("x y")
	require.Equal(t, []string{"restart files", "enable files false"}, r.backend.acts)

	r.reg.SetSession(registry.Session{ID: "me", Screen: true})
	r.reg.SetSession(registry.Session{ID: "c1", Client: "claude\x1b[2J"})
	r.keys("r")
	require.Contains(t, r.screen(), "Restart files?")
	require.Contains(t, r.screen(), `claude\x1b[2J (1 client)`)
	r.keys("n")
	require.Len(t, r.backend.acts, 2)
	r.keys("x y")
	require.Equal(t, "enable files false", r.backend.acts[2])

	r.keys("G x y")
	require.Equal(t, "enable notes true", r.backend.acts[3], "enabling affects no client")
	r.backend.fails = errors.New("it is gone")
	r.keys("x y")
	require.Contains(t, r.screen(), "enable notes: it is gone")
}

func TestKeysOfServersHaveReasons(t *testing.T) {
	t.Parallel()
	r := newFailingUI(t, 80, 24).keys("1 G r")
	require.Contains(t, r.screen(), "notes is disabled; x enables it")
	require.Empty(t, r.backend.acts)

	r = newTestUI(t, 80, 24)
	require.Contains(t, r.screen(), "No servers are configured")
	r.keys("r")
	require.Contains(t, r.screen(), "no server selected")
	r.keys("enter")
	require.Contains(t, r.screen(), "Getting started")
}

func TestAServersDetailIsCopiedAndItsNameToo(t *testing.T) {
	t.Parallel()
	r := newFailingUI(t, 140, 40).keys("1 y")
	require.Contains(t, r.screen(), "Copied the name (5 B)")
	r.keys("Y")
	require.Contains(t, r.screen(), "Copied the content")
	r.keys("E")
	require.Len(t, r.term.opened, 1)
	require.True(t, strings.HasPrefix(r.term.opened[0], "editor files.txt: "), r.term.opened[0])
}

func TestEAndILeadFromAServerToItsLogs(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"e", "i"} {
		r := newFailingUI(t, 140, 40).keys("1 j " + key)
		require.Equal(t, pane.PaneLogs, r.app.Open, key)
		typed, _ := r.app.Panes[pane.PaneLogs].Rows().FilterQuery()
		require.Contains(t, typed, "github", key)
	}
}

func TestAClickMeetsTheRowItIsOn(t *testing.T) {
	t.Parallel()
	r := newFailingUI(t, 80, 24).keys("1").click(" slack ", " slack ")
	require.Contains(t, r.line("> "), "slack")
}

func TestAServersDetailSaysWhichProjectAProcessIsFor(t *testing.T) {
	t.Parallel()
	r := newFailingUI(t, 140, 60).keys("1")
	state, _ := r.reg.State("files")
	state.Projects = []registry.Project{{Folder: "/home/me/one", PID: 4711}, {Folder: "/home/me/other"}}
	r.reg.SetState("files", state)
	r.refresh(registry.Servers)
	require.Contains(t, r.line("/home/me/one"), "project")
	require.Contains(t, r.line("/home/me/one"), "pid 4711")
	require.Contains(t, r.screen(), "/home/me/other")
}

func TestTheDetailOfAServerTellsHowItIsStarted(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv)
	r.backend.defined = report.Definition{
		Command: "npx -y files '/srv/my files'", Folder: "/srv", URL: "https://host/mcp", Env: []string{"LANG", "TOKEN"}, Headers: []string{"Authorization"},
		Processes: 2, Processor: 1500 * time.Millisecond, Memory: 50_000_000,
	}
	retry := r.clock.now().Add(time.Minute)
	r.reg.SetState("legacy", registry.ServerState{State: registry.StateFailed, LastError: "no", Attempts: 7, NextAttempt: retry})
	r.refresh(registry.Servers).keys("1 / legacy enter")
	s := r.screen()
	for _, want := range []string{"npx -y files '/srv/my files'", "/srv", "https://host/mcp", "LANG, TOKEN", "Authorization", "CPU 1.5 s", "50.0 MB · 2 processes", "7, next at " + retry.Format("15:04:05")} {
		require.Contains(t, strings.Join(strings.Fields(strings.ReplaceAll(s, "│", " ")), " "), want)
	}
}

func TestADisabledServerSaysWhatEnablesIt(t *testing.T) {
	t.Parallel()
	r := newTestUI(t, 120, 40, "notes")
	r.reg.SetState("notes", registry.ServerState{State: registry.StateDisabled})
	r.refresh(registry.Servers).keys("1 enter")
	require.Regexp(t, `x enables it\. *│`, r.screen())
	require.NotContains(t, r.screen(), "as long as")
}

// addRequests records requests to a server that end now.
func (r *testUI) addRequests(server string, n int, took time.Duration, status string) *testUI {
	for range n {
		r.reg.Traffic().Append(registry.TrafficRecord{Time: r.clock.now().Add(-took), Server: server, Method: "tools/call", Duration: took, Status: status})
	}
	return r
}

func TestTheLastMinutesOfEachServerAreDrawn(t *testing.T) {
	t.Parallel()
	r := newTestUI(t, 220, 60, "files", "github").setReady("files").setReady("github").keys("1 P P")
	require.Regexp(t, `requests +errors +times`, r.screen())
	require.NotContains(t, r.screen(), "▁", "nothing was asked")
	require.NotContains(t, r.screen(), "req ")
	r.addRequests("files", 2, 10*time.Millisecond, "success").tick(10 * time.Second)
	r.addRequests("files", 8, 20*time.Millisecond, "success").addRequests("github", 1, time.Millisecond, "failure").tick(500 * time.Millisecond)
	files, github := r.line(" files "), r.line(" github ")
	require.Contains(t, files, "▁▁▁▁▁▁▁▁▁▁▃█ ", "each chart is scaled to its own maximum")
	require.Contains(t, files, "▁▁▁▁▁▁▁▁▁▁▅█ ", "twice the duration")
	require.Equal(t, 2, strings.Count(github, "▁▁▁▁▁▁▁▁▁▁▁█"), "a request and an error")
	head := strings.Split(r.screen(), "\n")[0]
	require.Regexp(t, `req ▁+▃█  err ▁+█  ms ▁+▅█`, head)

	r.tick(20 * time.Second)
	require.Contains(t, r.line(" files "), "▁▁▁▁▁▁▁▁▃█▁▁ ", "time passes")
	r.tick(6 * time.Minute)
	require.NotContains(t, r.screen(), "█", "it is over")
}

func TestTheDetailOfAServerTellsItsLastMinutes(t *testing.T) {
	t.Parallel()
	r := newTestUI(t, 160, 45, "files").setReady("files").keys("1")
	r.addRequests("files", 3, 10*time.Millisecond, "success").addRequests("files", 1, time.Second, "failure").addRequests("files", 1, time.Second, registry.StatusCancelled)
	r.reg.Traffic().Append(registry.TrafficRecord{Time: r.clock.now(), Server: "files", Direction: registry.ToClient, Method: "notifications/progress", Status: registry.StatusNotification})
	r.tick(500 * time.Millisecond).clock.advance(5 * time.Second)
	r.keys("down")
	require.Contains(t, r.screen(), "Requests: 5 in 5 min", "notifications do not count")
	require.Regexp(t, `│ 5 ┤ +█`, r.screen())
	require.Regexp(t, `│ 0 ┤▁+█`, r.screen())
	require.Contains(t, r.screen(), "Failed: 1 ")
	require.Contains(t, r.screen(), "Times: 10 ms on average", "of the answered ones")
}

func TestTheDetailOfAServerSeparatesWaitsFromDurations(t *testing.T) {
	t.Parallel()
	r := newTestUI(t, 120, 60, "files").setReady("files").keys("1")
	r.addRequests("files", 20, 10*time.Millisecond, "success").addRequests("files", 2, time.Minute, registry.StatusCancelled)
	add := func(change func(*registry.TrafficRecord)) {
		rec := registry.TrafficRecord{Time: r.clock.now(), Server: "files", Method: "tools/call", Duration: time.Minute, Status: "success"}
		change(&rec)
		r.reg.Traffic().Append(rec)
	}
	add(func(rec *registry.TrafficRecord) { rec.UserWait, rec.UserAsked = time.Minute, true })
	add(func(rec *registry.TrafficRecord) { rec.StartWait = 59 * time.Second })
	add(func(rec *registry.TrafficRecord) { rec.Events = []registry.RuleEvent{{Text: "delayed 1 min"}} })
	r.tick(500 * time.Millisecond).clock.advance(5 * time.Second)
	r.keys("down")
	require.Regexp(t, `p50, p95 +11 ms, 11 ms`, r.screen())
	require.Regexp(t, `waited for user +1 request, 1 min`, r.screen())
	require.Regexp(t, `server start +1 request, 59 s`, r.screen())
	require.Regexp(t, `cancelled +2 `, r.screen())
	require.Regexp(t, `up to +\d+ ms +│█+ +20 p50 p95`, r.screen())
	require.Regexp(t, `up to +1.2 s +│█ +1 `, r.screen(), "without the start")
}

func TestServersShowTheirStatesAndErrors(t *testing.T) {
	t.Parallel()
	r := newFailingUI(t, 80, 24).keys("1")
	require.Contains(t, r.line("needs login"), "github")
	require.Contains(t, r.line("! failed"), "exit status 1: no token")
	require.Contains(t, r.line("○ disabled"), "notes")
}
