package tui

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/registry"
	"goblin/registry/report"
)

func TestARecordedCallIsOpenedInItsForm(t *testing.T) {
	t.Parallel()
	r := office(t, 120, 40, plainEnv)
	r.keys("5 ]").text("/method:tools/call").keys("enter k c")
	require.Contains(t, r.screen(), "Call weather_forecast")
	require.Contains(t, r.line("city *"), "Oslo")
	r.keys("esc enter c")
	require.Contains(t, r.line("city *"), "Oslo", "of an exchange, too")
	r.keys("esc esc esc").text("/method:resources/read").keys("enter")
	r.keys("c")
	require.Contains(t, r.screen(), "only recorded calls of tools and prompts have a form")
}

func TestTheLastCallsOfAToolAreAtHand(t *testing.T) {
	t.Parallel()
	r := office(t, 120, 40, plainEnv).keys("2 / forecast enter H")
	require.Contains(t, r.screen(), "this screen has not called it yet")
	for _, city := range []string{"Oslo", "Lima", "Quito"} {
		r.keys("c").text(city).keys("ctrl+s")
		r.clock.advance(time.Minute)
	}
	r.keys("H")
	s := r.screen()
	require.Contains(t, s, "Last calls of weather_forecast")
	require.Less(t, strings.Index(s, `{"city":"Quito"}`), strings.Index(s, `{"city":"Oslo"}`), "the newest first")
	require.Contains(t, s, `"city": "Quito"`)
	require.Contains(t, s, "It will rain.")
	r.keys("j j")
	require.Contains(t, r.screen(), `"city": "Oslo"`)
	r.keys("c")
	require.Contains(t, r.line("city *"), "Oslo", "to be called once more")
}

func TestMarkedRowsAreActedOnTogether(t *testing.T) {
	t.Parallel()
	r := office(t, 120, 40, plainEnv)
	r.answer("resources/subscribe", `{}`)
	r.keys("4 / day-0 enter g space space")
	require.Contains(t, r.screen(), "2 marked")
	require.Contains(t, r.line("day-01"), "▪")
	r.keys("s")
	var asked []string
	for _, a := range r.backend.asked() {
		if strings.HasPrefix(a, "resources/subscribe") {
			asked = append(asked, a)
		}
	}
	require.Len(t, asked, 2)
	require.Contains(t, asked[1], "day-02.md")
	r.keys("y")
	require.Contains(t, r.copied(), "day-01.md\nmcp://files/file:///srv/notes/day-02.md")
	r.keys("esc")
	require.NotContains(t, r.screen(), "▪")
	require.Contains(t, r.line("/ day-0"), "of 16", "the filter stays")
	r.keys("y")
	require.NotContains(t, r.copied(), "\n")
}

func TestTheDetailOfAServerTellsHowItIsStarted(t *testing.T) {
	t.Parallel()
	r := office(t, 120, 40, plainEnv)
	r.backend.defined = report.Definition{
		Command: "npx -y files '/srv/my files'", Folder: "/srv", URL: "https://host/mcp", Env: []string{"LANG", "TOKEN"}, Headers: []string{"Authorization"},
		Processes: 2, Processor: 1500 * time.Millisecond, Memory: 50_000_000,
	}
	retry := r.clock.now().Add(time.Minute)
	r.reg.SetState("legacy", registry.ServerState{State: registry.StateFailed, LastError: "no", Attempts: 7, Retry: retry})
	r.changed(registry.Servers).keys("1 / legacy enter")
	s := r.screen()
	for _, want := range []string{"npx -y files '/srv/my files'", "/srv", "https://host/mcp", "LANG, TOKEN", "Authorization", "1500 ms of processor time", "50.0 MB of memory; processes: 2", "7; the next at " + retry.Format("15:04:05")} {
		require.Contains(t, strings.Join(strings.Fields(strings.ReplaceAll(s, "│", " ")), " "), want)
	}
}
