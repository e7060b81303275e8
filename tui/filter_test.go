package tui

import (
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/stretchr/testify/require"

	"goblin/registry"
	"goblin/tui/pane"
)

func TestAFilterThatIsNotUnderstoodIsSaidSoAfterEnter(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv).keys("4 / foo:bar enter")
	require.Contains(t, r.line("/ foo:bar"), `! no field "foo" here`)
	r.keys("esc / files: enter")
	require.Contains(t, r.line("/ files:"), "0 of 16", "a scheme is text")
	r.keys("esc / file: enter")
	require.Contains(t, r.line("/ file:"), "16 of 16")
	require.NotContains(t, r.screen(), "no field")
}

func TestAToolIsFoundByTheNameThatItsServerGaveIt(t *testing.T) {
	t.Parallel()
	r := newTestUI(t, 120, 40, "odd").setReady("odd")
	r.setList("odd", registry.Tool, `{"name":"日本語","description":"speaks"}`, `{"name":"other"}`).keys("2 / 日本 enter")
	require.Contains(t, r.line("/ 日本"), "1 of 2")
}

func TestWhatHasTheWordInItsNameComesFirst(t *testing.T) {
	t.Parallel()
	r := newTestUI(t, 120, 40, "s").setReady("s")
	r.setList("s", registry.Tool,
		`{"name":"get-structured","description":"Returns data along with a schema"}`,
		`{"name":"nothing","title":"A long title","description":"something else"}`,
		`{"name":"trigger-long-running","description":"takes time"}`,
		`{"name":"wordy","description":"`+strings.Repeat("much to say about other things ", 8)+`and at last something belonging here"}`)
	r.keys("2 / long enter")
	require.Contains(t, r.line("> "), "s_trigger-long-running")
	require.Contains(t, r.line("s_nothing"), "A long title", "the row must highlight the match")
	require.Contains(t, r.line("s_wordy"), "belonging")
	require.Contains(t, r.line("s_wordy"), "…")
	r.setList("s", registry.Resource, `{"uri":"a:1","name":"other","title":"x"}`, `{"uri":"a:2","name":"zlong","title":"x"}`, `{"uri":"a:long","name":"y"}`, `{"uri":"a:4","name":"y","title":"So long"}`)
	r.keys("4 / long enter")
	var got []string
	for _, l := range strings.Split(r.screen(), "\n") {
		if i := strings.Index(l, " a:"); i >= 0 && strings.HasPrefix(l, "│") && i < 40 {
			got = append(got, strings.Fields(l[i:])[0])
		}
	}
	require.Equal(t, []string{"a:2", "a:4", "a:long"}, got)
}

func TestTypingReplacesTheFilterOfBefore(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv).keys("4 / day-01 enter /")
	require.Contains(t, r.line("typing replaces it"), "/ day-01")
	r.typeText("config")
	require.Contains(t, r.line("/ config"), "1 of 16")
	r.keys("enter / left").typeText("X")
	require.Contains(t, r.line("/ confi"), "confiXg", "moving in the list must keep the filter")
	r.keys("enter / enter")
	require.Contains(t, r.line("/ confiXg"), "of 16", "leaving the pane must keep the filter")
	r.keys("/ backspace")
	require.Contains(t, r.screen(), "16 of 16")
	r.typeText("day-02").keys("enter / space").typeText("day-03").keys("enter")
	require.Contains(t, r.line("/ day-03"), "1 of 16")
}

func TestEscapeFollowedAtOnceByALetterIsNotALetterOfTheFilter(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv)
	r.keys("4 / d a y")
	r.send(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune{'2'}, Alt: true}, 0) // Esc 2
	typed, _ := r.app.Panes[pane.PaneResources].Rows().FilterQuery()
	require.Empty(t, typed)
	require.Equal(t, pane.PaneTools, r.app.Open)
}

func TestFilterHidesWhatDoesNotMatchAndFollowsChanges(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv)
	r.keys("4 / server:files space mime:json enter")
	require.Contains(t, r.screen(), "config.json")
	require.NotContains(t, r.screen(), "day-01.md")
	r.setList("weather", registry.Resource, `{"uri":"weather://oslo","name":"oslo","mimeType":"application/json"}`)
	require.NotContains(t, r.screen(), "weather://oslo", "the filter survives a change of the list")
	r.keys("esc")
	require.Contains(t, r.screen(), "weather://oslo")
	require.Contains(t, r.screen(), "day-01.md")
}

func TestEmptyResultNamesTheWordThatExcludesEverything(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv)
	r.keys("4 / day space zebra")
	require.Contains(t, r.screen(), "zebra excludes everything")
	require.Contains(t, r.screen(), "esc clears the filter.")
}

func TestUnknownFieldHidesNothingAndSaysSo(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv)
	r.keys("4 / colour:red")
	require.Equal(t, 16, r.app.Panes[pane.PaneResources].Rows().Len())
	require.Contains(t, r.line("/ colour:red"), `"colour"`)
}

func TestAClickElsewhereEndsTheFilterBar(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv)
	r.keys("4 / conf")
	_, spots := r.app.tabs()
	r.send(tea.MouseMsg{X: spots[pane.PaneServers] + 1, Y: 1, Button: tea.MouseButtonLeft, Action: tea.MouseActionPress}, 0)
	r.typeText("x")
	require.False(t, r.app.filtering)
	typed, _ := r.app.Panes[pane.PaneTools].Rows().FilterQuery()
	require.Empty(t, typed)
}

func TestOnlySubscribedRowsCanBeShown(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv)
	r.keys("4 S")
	require.Equal(t, 1, r.app.Panes[pane.PaneResources].Rows().Len())
	require.Contains(t, r.line("sub:yes"), "sub:yes", "it must work like any other filter")
	r.keys("S")
	require.Equal(t, 16, r.app.Panes[pane.PaneResources].Rows().Len())
}

func TestAFilterByAgeFollowsTheClock(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv)
	r.keys("4 / updated:<5m enter")
	require.Equal(t, 1, r.app.Panes[pane.PaneResources].Rows().Len())
	for range refilterBeats {
		r.tick(time.Minute)
	}
	require.Zero(t, r.app.Panes[pane.PaneResources].Rows().Len())
}

func TestAnEmptySectionLeavesTheOtherAlone(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv)
	r.keys("4 t / notes")
	require.NotContains(t, r.screen(), "Nothing matches")
	require.Contains(t, r.screen(), "day-02.md")
}

func TestAFilterPutsTheCursorOnItsFirstMatch(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv).keys("4 G / day")
	require.Contains(t, r.line("> "), "day-01.md")
}

func TestWhatIsTypedAfterAFilterIsAWordOfItsOwn(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv).keys("4 / day enter / 0 7")
	require.Equal(t, 1, r.app.Panes[pane.PaneResources].Rows().Len())
}

func TestTheListThatAFilterLeavesRowsInHasTheCursor(t *testing.T) {
	t.Parallel()
	r := newTestUI(t, 120, 30, "clock").setReady("clock")
	r.setList("clock", registry.Resource, `{"uri":"clock://now","name":"now"}`, `{"uri":"clock://now/utc","name":"utc"}`, `{"uri":"clock://zones","name":"zones"}`)
	r.setList("clock", registry.Template, `{"uriTemplate":"time://{zone}","name":"a zone"}`)
	r.keys("4 t / n o w")
	require.Contains(t, r.screen(), "2 of 3", "the count must include it")
	r.keys("enter")
	require.Contains(t, r.line("/ now"), "2 of 3")
	require.Contains(t, r.keys("j").line("> "), "clock://now/utc")
	require.Contains(t, r.line("╭─ Resources"), "─ mcp://clock/clock://now/utc", "its detail is beside it")
	require.Contains(t, r.keys("t").screen(), "the filter hides everything there")
	require.True(t, r.keys("tab").app.Inside, "Tab moves to the detail")
	require.Contains(t, r.keys("tab").line("> "), "clock://now/utc")
	require.Contains(t, r.keys("esc g / a space z enter").line("> "), "time://{zone}", "also in the other direction")
	require.Contains(t, r.line("/ a z"), "1 of 1")
	require.NotContains(t, r.keys("esc").line("> "), "{zone}", "as chosen")
}
