package tui

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/registry"
	"goblin/tui/dialog"
	"goblin/tui/pane"
)

func TestAnInvalidConfigIsMarkedUntilItIsValid(t *testing.T) {
	t.Parallel()
	r := office(t, 80, 24, plainEnv)
	r.keys("!")
	require.Contains(t, r.screen(), "The config is valid")
	all := []registry.Mistake{
		{File: "/etc/goblin/work.yaml", Line: 3, Text: `unknown key "comand" in server "files"; did you mean "command"?`},
		{File: "/etc/goblin/work.yaml", Line: 12, Text: "duplicate server"},
	}
	r.reg.SetMistakes(all)
	r.changed(registry.Servers).beat(time.Hour)
	require.Contains(t, r.line("work.yaml"), "! config invalid")
	r.keys("!")
	for _, want := range []string{"Config not reloaded: 2 mistakes", "work.yaml", " 3 ", " 12 ", "did you mean", "duplicate server"} {
		require.Contains(t, r.screen(), want)
	}
	r.keys("j enter")
	require.Equal(t, []string{"file /etc/goblin/work.yaml:12: "}, r.term.opened)
	r.reg.SetMistakes(nil)
	r.changed(registry.Servers)
	require.NotContains(t, r.screen(), "config invalid")
	require.NotContains(t, r.screen(), "duplicate server", "the dialog closes")
}

func TestWhatHasTheFocusIsZoomed(t *testing.T) {
	t.Parallel()
	r := office(t, 120, 40, plainEnv)
	r.keys("2 l F")
	require.Contains(t, r.screen(), "Creates an issue")
	require.NotContains(t, r.screen(), "Tools 4 ─")
	r.keys("F")
	require.Contains(t, r.screen(), "Tools 4 ─")
	require.True(t, r.app.Inside)
	r.keys("esc F")
	require.NotContains(t, r.screen(), "inputSchema")
	r.keys("F")
	require.Contains(t, r.screen(), "create_issue ─")

	// Below the list, Enter gives an open detail panel the whole body, and Esc takes it back.
	r = office(t, 80, 24, plainEnv).keys("2 enter")
	require.Contains(t, r.screen(), "Tools 4 ─")
	r.keys("enter")
	require.NotContains(t, r.screen(), "Tools 4 ─")
	require.Contains(t, r.screen(), "It is public.")
	r.keys("esc")
	require.Contains(t, r.screen(), "Tools 4 ─")
	require.False(t, r.app.Inside)
	r.keys("tab enter")
	require.NotContains(t, r.screen(), "Tools 4 ─")
	r.keys("esc")
	require.True(t, r.app.Inside, "where it was")
}

func TestSilentClientsAreNotCounted(t *testing.T) {
	t.Parallel()
	r := office(t, 120, 40, plainEnv)
	quiet := 4 * time.Minute
	r.reg.SetSession(registry.Session{ID: "c2", Transport: "http", Client: "inspector", Quiet: func() time.Duration { return quiet }})
	require.Contains(t, r.beat(time.Second).screen(), "clients 2")
	quiet = 14 * time.Minute
	require.Contains(t, r.beat(time.Second).screen(), "clients 1")
	require.Contains(t, r.keys("0").line("inspector"), "silent for 14 min")
	require.Contains(t, r.screen(), "Clients 3, 1 silent")
	r.keys("esc q")
	require.Contains(t, r.screen(), "1 client uses this process.")
	r.keys("n")
	r.reg.DropSession("c1")
	r.keys("q")
	require.True(t, r.app.quitting, "a silent client does not keep the daemon")
}

func TestACallWhoseClientLeftIsNoFailure(t *testing.T) {
	t.Parallel()
	r := office(t, 160, 40, plainEnv)
	r.reg.Traffic().Append(registry.TrafficRecord{Time: r.clock.now(), Client: "gone", Server: "weather", Method: "tools/call", Name: "weather_forecast", Duration: time.Hour, Status: registry.StatusLeft})
	r.reg.Traffic().Append(registry.TrafficRecord{Time: r.clock.now(), Client: "asks", Server: "weather", Method: "tools/call", Name: "weather_forecast", Duration: time.Hour + 20*time.Millisecond, Waited: time.Hour, Asked: true, Status: "success"})
	r.changed(registry.Traffic).keys("5 ] F")
	require.Contains(t, r.line("gone"), "client left")
	require.NotContains(t, r.line("gone"), "!")
	require.Contains(t, r.line("asks"), "waited 1 h 0 min")
	require.Contains(t, r.line("asks"), "20 ms")
	r.keys("/ e r r : y e s enter")
	require.NotContains(t, r.screen(), "client left")
	r.keys("esc F 1 j j enter")
	require.Contains(t, r.screen(), "3 ms on average")
}

func TestUpdatesEraseNoCallsAndAreFolded(t *testing.T) {
	t.Parallel()
	r := office(t, 160, 40, plainEnv).keys("5 ] v F")
	for i := range 3600 {
		r.reg.Traffic().Append(registry.TrafficRecord{
			Time: r.clock.now().Add(time.Duration(i) * time.Second), Server: "files", Direction: registry.ToClient,
			Method: "notifications/resources/updated", Name: "clock://now", Status: "notification", Request: []byte(`{"uri":"clock://now"}`),
		})
		if i%100 == 0 {
			r.changed(registry.Traffic)
		}
	}
	r.changed(registry.Traffic)
	require.Contains(t, r.line("× "), "× 3600, last 13:00:59")
	require.Contains(t, r.screen(), "weather_forecast")
	require.Contains(t, r.screen(), "Traffic 5 ")
	require.NotContains(t, r.screen(), "dropped")
}

func TestACrashLoopIsFolded(t *testing.T) {
	t.Parallel()
	r := newRig(t, 120, 24, "loop", "other").keys("5 ] ]")
	for i := range 98 {
		at := r.clock.now().Add(time.Duration(i) * time.Minute)
		for _, line := range []string{"starting up", "Error: boom"} {
			r.reg.Logs().Append(registry.LogRecord{Time: at, Server: "loop", Source: registry.SourceStderr, Level: slog.LevelInfo, Text: line})
		}
		if i == 50 {
			r.reg.Logs().Append(registry.LogRecord{Time: at, Server: "other", Source: registry.SourceStderr, Level: slog.LevelInfo, Text: "the line in between"})
		}
		r.reg.Logs().Append(registry.LogRecord{Time: at, Server: "loop", Source: registry.SourceStderr, Level: slog.LevelInfo, Text: fmt.Sprint("unlike ", i/49)})
		if i%7 == 0 {
			r.changed(registry.Logs)
		}
	}
	r.changed(registry.Logs)
	require.Contains(t, r.line("Error: boom"), "× 98, last 13:37:00")
	require.Contains(t, r.line("unlike 0"), "12:00:00", "the time stays visible beside the counts")
	require.Contains(t, r.screen(), "the line in between")
	require.Contains(t, r.line("unlike 0"), "× 49")
	require.Equal(t, 5, r.app.Logs().Logs[pane.TabStderr].Count())
	require.Contains(t, string(r.app.Logs().ShownContent().Data), "Error: boom  (× 98, last 2026-11-20 13:37:00.000)", "files have it, too")
}

func TestToolsWithoutHintsAskWithATruth(t *testing.T) {
	t.Parallel()
	r := office(t, 120, 40, plainEnv)
	r.list("weather", registry.Tool, `{"name":"plain","inputSchema":{"type":"object"}}`)
	r.changed(registry.AllChanges).keys("2 / plain enter c ctrl+s")
	require.Len(t, r.backend.asked(), 1)
	r.keys(".")
	require.Contains(t, r.screen(), "no hints: this tool may change data")
	require.Contains(t, r.screen(), "a do not ask again for this tool")
	r.keys("a")
	require.Len(t, r.backend.asked(), 2)
	r.keys(".")
	require.Len(t, r.backend.asked(), 3, "no question")
	r.list("weather", registry.Tool, `{"name":"plain","description":"another one","inputSchema":{"type":"object"}}`)
	r.changed(registry.AllChanges).keys(".")
	require.Len(t, r.backend.asked(), 3, "it is another tool now")
}

func TestAProfileCountsWhatItsClientsSee(t *testing.T) {
	t.Parallel()
	r := office(t, 120, 40, plainEnv)
	for _, name := range []string{"github_create_issue", "github_delete_repo", "github_search"} {
		r.backend.lacks["coding "+name] = "profile"
	}
	r.keys("2 V j enter")
	require.Contains(t, r.screen(), "Tools 1 of 4")
	require.Contains(t, r.screen(), "github_search")
	require.Contains(t, r.screen(), "v hide dim rows")
	r.keys("v")
	require.Contains(t, r.screen(), "v show dim rows")
	require.NotContains(t, r.screen(), "github_search")
	require.Contains(t, r.screen(), "weather_forecast")
	r.keys("v")
	require.Contains(t, r.screen(), "github_search")
}

func TestLongDataURIsAreShownByTypeAndSize(t *testing.T) {
	t.Parallel()
	r := office(t, 120, 60, plainEnv)
	icon := "data:image/svg+xml;base64," + strings.Repeat("QUJD", 80)
	src, err := json.Marshal(icon)
	require.NoError(t, err)
	r.list("weather", registry.Tool, `{"name":"pretty","inputSchema":{"type":"object"},"icons":[{"src":`+string(src)+`,"mimeType":"image/svg+xml"}],"_meta":{"logo":"data:,`+strings.Repeat("%41", 100)+`"}}`)
	r.changed(registry.AllChanges).keys("2 / pretty enter")
	require.Contains(t, r.screen(), "data:image/svg+xml, 240 B")
	require.Contains(t, r.screen(), "data:text/plain, 100 B")
	require.NotContains(t, r.screen(), "QUJDQUJD")
	r.keys("e")
	require.Contains(t, strings.Join(r.term.opened, ""), icon, "the raw view has all")
}

func TestGoblinsOwnToolsAreOneRow(t *testing.T) {
	t.Parallel()
	r := office(t, 80, 24, plainEnv)
	for _, name := range []string{"catalog_tools", "search_resources"} {
		require.NoError(t, r.reg.AddTool(registry.LocalTool{
			Definition: []byte(`{"name":"` + name + `","inputSchema":{"type":"object"}}`),
			Call:       func(context.Context, []byte) ([]byte, error) { return []byte("{}"), nil },
		}))
	}
	r.changed(registry.AllChanges).keys("2")
	require.Contains(t, r.screen(), "[2 Tools 6]")
	own, first := strings.Index(r.screen(), "2 tools of Goblin itself"), strings.Index(r.screen(), "github_")
	require.Less(t, own, first)
	r.keys("o o")
	own, first = strings.Index(r.screen(), "2 tools of Goblin itself"), strings.Index(r.screen(), "weather_")
	require.NotEqual(t, -1, own)
	require.Less(t, own, first, "it is first in every order")
	r.run(r.app.Panes[pane.PaneTools].Rows().Sort("listed name"))
	require.Contains(t, r.line("2 tools of Goblin itself"), "▸")
	require.NotContains(t, r.screen(), "catalog_tools  ")
	r.keys("/ catalog enter")
	require.Contains(t, r.screen(), "Tools 1/6")
	require.Contains(t, r.screen(), "1 of 6")
	require.NotContains(t, r.keys("f").screen(), "(none)", "the row of Goblin's tools is counted nowhere")
	r.keys("esc")
	require.Contains(t, r.line("> "), "catalog_tools")
	r.keys("esc g enter")
	require.Contains(t, r.line("of Goblin itself"), "↓")
	require.Contains(t, r.screen(), "search_resources")
	r.keys("4 2")
	require.Contains(t, r.screen(), "search_resources", "it stays so")
	r.keys("g right")
	require.NotContains(t, r.screen(), "  search_resources ")
	r.keys("c x y")
	require.Contains(t, r.screen(), "there is no tool here")
	require.Empty(t, r.backend.acts)
	r.run(r.app.GoToListed(registry.Tool, "search_resources"))
	require.Contains(t, r.line("> "), "search_resources", "what leads to one unfolds them")
}

func TestAnOwnConfigOpensOnServers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		daemon Daemon
		pane   int
	}{
		{Daemon{Config: "/etc/goblin/work.yaml"}, pane.PaneServers},
		{Daemon{Config: "demo", Demo: true}, pane.PaneResources},
	} {
		clock := &fakeClock{at: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}
		reg := registry.New(registry.Options{Servers: []string{"files"}, Now: clock.now})
		term := &fakeTerminal{w: 80, h: 24, env: plainEnv, never: make(chan struct{})}
		a := newApp(t.Context(), Options{Registry: reg, Now: clock.now, Logger: slog.New(slog.DiscardHandler), Daemon: c.daemon}, dialog.NewQuestions(), newBackend(), term)
		require.Equal(t, c.pane, a.Open, c.daemon.Config)
	}
}
