package tui

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/registry"
	"goblin/registry/report"
	"goblin/tui/pane"
)

// costs is a bill of what stands in the office.
func costs(now time.Time) report.Report {
	hour := make([]report.Minute, 60)
	for i := range hour {
		if i%7 < 4 {
			hour[i] = report.Minute{Calls: uint32(i % 13), Millis: float64(10 + i*i%90)}
		}
	}
	hour[50].Errors = 3
	figures := func(calls, errors uint64, p50, p95 float64, ago time.Duration, hour []report.Minute) report.Figures {
		return report.Figures{Calls: calls, Errors: errors, Bytes: calls * 1300, P50: p50, P95: p95, LastUsed: now.Add(-ago), Hour: hour}
	}
	cursor := report.LimitsOf("cursor-vscode")
	return report.Report{
		Since: now.Add(-40 * 24 * time.Hour), Daemon: true, All: figures(1234, 37, 12.5, 480, time.Minute, hour),
		Latency: []report.Bin{{UpTo: 0.4, Calls: 3}, {UpTo: 1.6, Calls: 100}, {UpTo: 6.4, Calls: 400}, {UpTo: 12.8, Calls: 600}, {UpTo: 51, Calls: 90}, {UpTo: 410, Calls: 30}, {UpTo: 820, Calls: 11}},
		Servers: []report.Server{
			{Name: "github", Tools: 3, Idle: 1, Definitions: report.DefinitionSize(52_000), Figures: figures(1200, 37, 14, 500, time.Minute, hour)},
			{Name: "weather", Tools: 1, Definitions: report.DefinitionSize(900), Figures: figures(34, 0, 2.5, 8, 26*time.Hour, nil)},
		},
		Tools: []report.Tool{
			{Server: "github", Name: "search", Listed: "github_search", Definitions: report.DefinitionSize(41_000), Figures: figures(1180, 37, 14, 500, time.Minute, hour)},
			{Server: "github", Name: "delete_everything", Listed: "github_delete_everything", Idle: true, Definitions: report.DefinitionSize(9000)},
			{Server: "github", Name: "create_issue", Listed: "github_create_issue", Definitions: report.DefinitionSize(2000), Figures: figures(20, 0, 300, 900, 3*time.Hour, nil)},
			{Server: "weather", Name: "forecast", Listed: "weather_forecast", Definitions: report.DefinitionSize(900), Figures: figures(34, 0, 2.5, 8, 26*time.Hour, nil)},
			{Server: "gone", Name: "evil\x1b[2J\u202e", Figures: figures(1, 1, 1, 1, 9*24*time.Hour, nil)},
		},
		Clients: []report.Client{
			{Name: "claude-code", Connected: true, Tools: 4, Instructions: 700, Definitions: report.DefinitionSize(52_900), Figures: figures(1100, 30, 12, 450, time.Minute, hour), Limits: report.LimitsOf("claude-code")},
			{
				Name: "cursor-vscode", Connected: true, Tools: 91, Instructions: 700, Definitions: report.DefinitionSize(52_900), Figures: figures(134, 7, 13, 700, 2*time.Hour, nil),
				Limits: cursor, Breaks: cursor.Breaks("cursor-vscode", report.Seen{Tools: 91}),
			},
			{Name: "", Figures: figures(5, 0, 1, 2, time.Hour, nil)},
		},
	}
}

func TestUsageShowsWhatCosts(t *testing.T) {
	r := office(t, 160, 45, plainEnv).keys("6")
	require.Equal(t, pane.PaneUsage, r.app.Open)
	require.Contains(t, r.screen(), "[Tools 5]")
	require.Regexp(t, `calls +[▁-█]+ .* 3 errors`, r.screen())
	require.Regexp(t, `spread +[▁-█]+ 0.4 ms to 820 ms +half within 12 ms, 95 of 100 480 ms`, r.screen())
	require.Regexp(t, `> github_search +10k +1180 +37 `, r.screen())
	require.Equal(t, "github_search", r.app.Panes[pane.PaneUsage].Item().Listed)

	r.sorts("p95")
	require.Contains(t, r.screen(), "by p95 ↓")
	require.Regexp(t, `\n│ +github_create_issue .*\n│.*github_search `, r.screen())

	r.keys("/").text("unused:yes").keys("enter")
	require.Regexp(t, `Usage 1/5`, r.screen())
	require.Contains(t, r.screen(), "Not called in 30 days. x turns it off")

	r.keys("esc ] j")
	require.Contains(t, r.screen(), "[Clients 3]")
	require.Contains(t, r.screen(), "Cursor takes 40 (80 in newer versions) tools and is shown 91")
	require.Contains(t, r.screen(), "What helps: give it a profile")
	require.Regexp(t, `6 Usage !1`, r.screen())
	r.keys("x")
	require.Contains(t, r.app.Flash.Text, "only tools that are listed")
	r.keys("]")
	require.Contains(t, r.screen(), "[Servers 2]")
}

func TestUsageSaysThatItKnowsNoMinutesFromBeforeARestart(t *testing.T) {
	r := office(t, 160, 45, plainEnv).keys("6")
	require.Contains(t, r.screen(), "217 calls in the last hour, 3 errors")
	require.Contains(t, r.screen(), "The last hour")
	r = office(t, 160, 45, plainEnv)
	r.backend.usage.Minutes = r.clock.now().Add(-25 * time.Minute)
	r.keys("6")
	require.Contains(t, r.screen(), "217 calls, 3 errors in 25 min, since Gobl")
	require.Contains(t, r.screen(), "Since Goblin started ")
	require.NotContains(t, r.screen(), "he last hour")
	r.backend.usage.All.Hour = nil
	r.keys("r")
	require.Contains(t, r.screen(), "0 calls in 25 min, since Goblin started")
}

func TestUsageTellsWhatOtherListsTake(t *testing.T) {
	r := office(t, 200, 45, plainEnv).keys("6 ] ] F")
	require.NotContains(t, r.screen(), "others", "nobody has any")
	r = office(t, 200, 45, plainEnv)
	r.backend.usage.Servers[0].Others = report.NonToolLists{Entries: 2012, Bytes: 310_000, Tokens: 77_500}
	r.keys("6 ] ]")
	require.Regexp(t, `others +2012, \d+\.\d kB in lists: prompts, resources`, r.screen())
	r.keys("F")
	require.Regexp(t, `> github .* \d+\.\d kB`, r.screen())
	r.sorts("others")
	require.Contains(t, r.screen(), "by others ↓")
}

func TestUsageTurnsAToolOff(t *testing.T) {
	r := office(t, 120, 40, plainEnv).keys("6 x")
	require.Contains(t, r.backend.acts, `switch "" false github_search`)
}

func TestUsageTellsWhatIsOff(t *testing.T) {
	r := office(t, 160, 45, plainEnv)
	create := &r.backend.usage.Tools[2]
	create.Off, create.Definitions = true, report.Definitions{}
	r.keys("6 /").text("off:yes").keys("enter")
	require.Regexp(t, `> github_create_issue +off +20 `, r.screen())
	require.Contains(t, r.screen(), "Turned off for all clients: it costs nothing. x turns it on.")
}

func TestUsageIsAskedForWhileItIsOpenOnly(t *testing.T) {
	r := office(t, 120, 40, plainEnv)
	r.changed(registry.Traffic)
	require.NotContains(t, r.screen(), "Usage !")
	r.keys("6")
	r.backend.usage.Tools = r.backend.usage.Tools[:1]
	r.clock.advance(2 * time.Second)
	r.changed(registry.Traffic)
	require.Contains(t, r.screen(), "[Tools 1]")
	r.backend.usage = report.Report{}
	r.keys("r")
	require.Contains(t, r.screen(), "No server lists a tool")
}
