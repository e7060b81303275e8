package tui

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/registry"
	"goblin/registry/report"
	"goblin/tui/pane"
)

func TestUsageShowsWhatCosts(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 160, 45, plainEnv).keys("6")
	require.Equal(t, pane.PaneUsage, r.app.Open)
	require.Contains(t, r.screen(), "[Tools 5]")
	require.Regexp(t, `calls +[▁-█]+ .* 3 errors`, r.screen())
	require.Regexp(t, `spread +[▁-█]+ 0.4 ms to 820 ms +p50 12 ms, p95 480 ms`, r.screen())
	require.Regexp(t, `> github_search +10k +1180 +37 `, r.screen())
	require.Equal(t, "github_search", r.app.Panes[pane.PaneUsage].Item().Listed)
	require.Regexp(t, `server start +2 calls waited: 3.2 s`, r.screen())
	require.Regexp(t, `cancelled +9 `, r.screen())
	require.Regexp(t, `up to +13 ms │█+ 600`, r.screen())
	require.Regexp(t, `up to 410 ms .* 30 `, r.screen())
	require.Regexp(t, `up to 820 ms .* 11 p95`, r.screen())
	require.Regexp(t, `cancelled +waited +start +last hour`, r.keys("F").line("tokens↓"))
	require.Regexp(t, ` 9 +1 min +3.2 s `, r.line("> github_search"))
	r.keys("F")

	r.sortBy("p95")
	require.Contains(t, r.screen(), "by p95 ↓")
	require.Regexp(t, `\n│ +github_create_issue .*\n│.*github_search `, r.screen())

	r.keys("/").typeText("unused:yes").keys("enter")
	require.Regexp(t, `Usage 1/5`, r.screen())
	require.Contains(t, r.screen(), "Not called in 30 days. x disables it")

	r.keys("esc ] j")
	require.Contains(t, r.screen(), "[Clients 3]")
	require.Contains(t, r.screen(), "Cursor accepts 40 (80 in newer versions) tools and gets 91")
	require.Contains(t, r.screen(), "Fix: give it a profile")
	require.Regexp(t, `6 Usage !1`, r.screen())
	r.keys("x")
	require.Contains(t, r.app.Flash.Text, "only listed tools")
	r.keys("]")
	require.Contains(t, r.screen(), "[Servers 2]")
}

func TestUsageSaysThatItKnowsNoMinutesFromBeforeARestart(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 160, 45, plainEnv).keys("6")
	require.Contains(t, r.screen(), "217 calls in the last hour, 3 errors")
	require.Contains(t, r.screen(), "Last hour")
	r = newExampleUI(t, 160, 45, plainEnv)
	r.backend.usage.Minutes = r.clock.now().Add(-25 * time.Minute)
	r.keys("6")
	require.Contains(t, r.screen(), "217 calls, 3 errors in 25 min, since Gobl")
	require.Contains(t, r.screen(), "Since Goblin started: calls")
	require.NotContains(t, r.screen(), "he last hour")
	r.backend.usage.All.Hour = nil
	r.keys("r")
	require.Contains(t, r.screen(), "0 calls in 25 min, since Goblin started")
}

func TestUsageTellsWhatOtherListsTake(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 200, 45, plainEnv).keys("6 ] ] F")
	require.NotContains(t, r.screen(), "others", "no client has any")
	r = newExampleUI(t, 200, 45, plainEnv)
	r.backend.usage.Servers[0].NonToolLists = report.NonToolLists{Entries: 2012, Bytes: 310_000, Tokens: 77_500}
	r.keys("6 ] ]")
	require.Regexp(t, `others +2012 \(prompts, resources, templates`, r.screen())
	r.keys("F")
	require.Regexp(t, `> github .* \d+ kB`, r.screen())
	r.sortBy("others")
	require.Contains(t, r.screen(), "by others ↓")
}

func TestUsageTurnsAToolOff(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv).keys("6 x")
	require.Contains(t, r.backend.acts, `switch "" false github_search`)
}

func TestUsageTellsWhatIsOff(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 160, 45, plainEnv)
	create := &r.backend.usage.Tools[2]
	create.Disabled, create.Definitions = true, report.Definitions{}
	r.keys("6 /").typeText("off:yes").keys("enter")
	require.Regexp(t, `> github_create_issue +disabled +20 `, r.screen())
	require.Contains(t, r.screen(), "Disabled for all clients, so it costs nothing. x enables it.")
}

func TestUsageIsAskedForWhileItIsOpenOnly(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv)
	r.refresh(registry.Traffic)
	require.NotContains(t, r.screen(), "Usage !")
	r.keys("6")
	r.backend.usage.Tools = r.backend.usage.Tools[:1]
	r.clock.advance(2 * time.Second)
	r.refresh(registry.Traffic)
	require.Contains(t, r.screen(), "[Tools 1]")
	r.backend.usage = report.Report{}
	r.keys("r")
	require.Contains(t, r.screen(), "No tools listed")
}

func TestWhatOnlyPeopleWereAskedInHasNoTime(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 200, 45, plainEnv)
	r.backend.usage.All.P50, r.backend.usage.All.P95 = 0, 0
	r.backend.usage.Clients = r.backend.usage.Clients[:1]
	c := &r.backend.usage.Clients[0]
	c.P50, c.P95 = 0, 0
	r.keys("6 ]")
	require.Regexp(t, `claude-code.*1100`, r.screen())
	require.NotContains(t, r.screen(), "0.0 ms")
	require.Contains(t, r.line("spread"), "no timed calls")
}

func TestTheRangeOfTheSpreadIsThereWhole(t *testing.T) {
	t.Parallel()
	for _, w := range []int{80, 100, 120, 160, 200, 250} {
		r := newExampleUI(t, w, 40, plainEnv)
		r.backend.usage.All.P95, r.backend.usage.Latency = 1377, []report.Bin{{UpTo: 2, Calls: 1}, {UpTo: 1638, Calls: 9}}
		require.Regexp(t, `█( 2.0 ms to 1.6 s)? +p50 12 ms, p95 1.4 s +│`, r.keys("6").line("spread"), w)
		require.Contains(t, r.keys("F").line("spread"), map[bool]string{true: "▂█ 2.0 ms to 1.6 s  "}[w > 80], w)
	}
}

func TestUsageFoldsGoblinsOwnTools(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 160, 45, plainEnv)
	r.backend.usage.Tools = append(r.backend.usage.Tools,
		report.Tool{Server: registry.Local, Name: "search_tools", Listed: "search_tools", Definitions: report.DefinitionSize(400), Figures: report.Figures{Calls: 3, Errors: 1}},
		report.Tool{Server: registry.Local, Name: "call_tool", Listed: "call_tool", Definitions: report.DefinitionSize(600), Figures: report.Figures{Calls: 4}})
	r.keys("6")
	require.Regexp(t, `▸ 2 Goblin tools +250 +7 +1 `, r.screen())
	require.NotContains(t, r.screen(), "search_tools")
	require.Contains(t, r.screen(), "[Tools 7]", "the row is not counted")
	r.keys("g")
	require.Contains(t, r.line("│>"), "2 Goblin tools", "it is first in every order")
	require.Contains(t, r.footer(), "enter unfold")
	r.keys("x")
	require.Contains(t, r.app.Flash.Text, "only listed tools")
	r.keys("enter")
	require.Contains(t, r.screen(), "▾ 2 Goblin tools")
	require.Contains(t, r.screen(), "search_tools")
	r.keys("enter / search_tools enter")
	require.Contains(t, r.screen(), "Usage 1/7")
	require.Contains(t, r.line("│>"), "search_tools", "a filter finds them")
}
