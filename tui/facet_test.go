package tui

import (
	"fmt"
	"strings"
	"testing"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/stretchr/testify/require"

	"goblin/registry"
	"goblin/tui/dialog"
	"goblin/tui/list"
	"goblin/tui/pane"
)

func newResourcesUI(t *testing.T, servers ...string) *testUI {
	t.Helper()
	r := newTestUI(t, 80, 24, servers...)
	for i, s := range servers {
		r.setReady(s)
		var items []string
		for n := range i + 1 {
			mime := []string{`"mimeType":"text/plain",`, `"mimeType":"application/json",`, ""}[n%3]
			items = append(items, fmt.Sprintf(`{"uri":"x://%d",%s"name":"n"}`, n, mime))
		}
		r.setList(s, registry.Resource, items...)
	}
	return r.keys("4")
}

func TestFacetCountsValuesTheMostFrequentFirst(t *testing.T) {
	t.Parallel()
	r := newResourcesUI(t, "a", "b", "c").keys("f")
	d := r.app.Dialogs[0].(*dialog.FilterList)
	var got []string
	for _, v := range d.All {
		got = append(got, fmt.Sprint(v.Text, v.Rows))
	}
	require.Equal(t, []string{"c3", "b2", "a1"}, got)
	require.Contains(t, r.line("[ ] c"), "3")
	r.keys("esc m")
	require.Contains(t, r.line("[ ] (none)"), "1")
	require.Contains(t, r.line("[ ] text/plain"), "3")
}

func TestFacetWritesIntoTheFilterBarAndReadsItBack(t *testing.T) {
	t.Parallel()
	r := newResourcesUI(t, "a", "b", "c").keys("f down space down space enter")
	require.Equal(t, "server:b server:a", r.filterText())
	require.Equal(t, 3, r.app.Panes[pane.PaneResources].Rows().Len())
	require.Empty(t, r.app.Dialogs)
	r.keys("f")
	require.Contains(t, r.screen(), "[x] a")
	require.Contains(t, r.screen(), "[x] b")
	require.Contains(t, r.screen(), "[ ] c")
	r.pressKeys(tea.KeyDelete).keys("enter")
	require.Empty(t, r.filterText(), "Delete must deselect all")
}

func TestFacetKeepsTheOtherTerms(t *testing.T) {
	t.Parallel()
	r := newResourcesUI(t, "a", "b", "c").keys("/").typeText("x -server:b srv:c").keys("enter f")
	require.Contains(t, r.screen(), "[x] c", "the alias is the same field")
	r.keys("space down down space enter")
	require.Equal(t, "x -server:b server:a", r.filterText())
}

func TestFacetTicksWhatTheTypedFilterFits(t *testing.T) {
	t.Parallel()
	r := newResourcesUI(t, "a", "b", "c").keys("/").typeText("mime:app*").keys("enter m")
	require.Contains(t, r.screen(), "[x] application/json")
	require.Contains(t, r.screen(), "[ ] text/plain")
	r.keys("enter")
	require.Equal(t, "mime:app*", r.filterText(), "unchanged terms must stay as typed")
}

func TestFacetMeansTheValueAndNoLongerOne(t *testing.T) {
	t.Parallel()
	r := newResourcesUI(t, "git", "github").keys("f down space enter")
	require.Equal(t, "server:=git", r.filterText())
	require.Equal(t, 1, r.app.Panes[pane.PaneResources].Rows().Len())
	r.keys("f")
	require.Contains(t, r.line("] git "), "[x] git")
	require.Contains(t, r.screen(), "[ ] github")
	r.keys("space enter")
	require.Equal(t, "server:github server:=git", r.filterText())
}

func TestFacetOfTheEmptyValue(t *testing.T) {
	t.Parallel()
	r := newResourcesUI(t, "a", "b", "c").keys("m").typeText("none").keys("enter")
	require.Equal(t, `mime:""`, r.filterText(), "Enter must select the typed value")
	require.Equal(t, 1, r.app.Panes[pane.PaneResources].Rows().Len())
	r.keys("m")
	require.Contains(t, r.screen(), "[x] (none)")
}

func TestFacetIsLeftUnchangedByEscape(t *testing.T) {
	t.Parallel()
	r := newResourcesUI(t, "a", "b").keys("f space esc")
	require.Empty(t, r.filterText())
	require.Empty(t, r.app.Dialogs)
}

func TestFacetIsNarrowedByTyping(t *testing.T) {
	t.Parallel()
	r := newResourcesUI(t, "alpha", "beta", "gamma").keys("f").typeText("et")
	require.Contains(t, r.screen(), "[ ] beta")
	require.NotContains(t, r.screen(), "[ ] alpha")
	r.typeText("q")
	require.Contains(t, r.screen(), "No matching values.")
	r.keys("backspace space enter")
	require.Equal(t, "server:beta", r.filterText())
	r.keys("f").typeText("al ph").keys("enter")
	require.Equal(t, "server:beta server:alpha", r.filterText(), "a space in fast typing must select, too")
}

func TestFacetTakesClicks(t *testing.T) {
	t.Parallel()
	r := newResourcesUI(t, "a", "b").keys("f")
	for y, l := range strings.Split(r.screen(), "\n") {
		if strings.Contains(l, "[ ] a") {
			r.send(tea.MouseMsg{X: 40, Y: y, Button: tea.MouseButtonLeft, Action: tea.MouseActionPress}, 0)
		}
	}
	require.Contains(t, r.screen(), "[x] a")
	r.send(tea.MouseMsg{X: 40, Y: 0, Button: tea.MouseButtonLeft, Action: tea.MouseActionPress}, 0)
	r.keys("enter")
	require.Equal(t, "server:a", r.filterText())
}

func TestFacetOfManyRowsIsCountedInACommand(t *testing.T) {
	t.Parallel()
	r := newTestUI(t, 80, 24, "a")
	r.setReady("a")
	items := make([]string, list.MaxSyncRows+1)
	for i := range items {
		items[i] = fmt.Sprintf(`{"uri":"x://%d","name":"n","mimeType":"type/%d"}`, i, i%3)
	}
	r.setList("a", registry.Resource, items...)
	r.keys("4")
	cmd := r.app.Update(keyOf("m"))
	require.Contains(t, r.screen(), "counting…")
	r.app.Update(keyOf("enter"))
	require.Len(t, r.app.Dialogs, 1, "nothing to apply before the values are counted")
	r.run(cmd)
	require.Contains(t, r.line("[ ] type/0"), "1001")
	require.Contains(t, r.line("[ ] type/1"), "1000")
}

func TestFacetShowsForeignTextClean(t *testing.T) {
	t.Parallel()
	r := newTestUI(t, 80, 24, "a")
	r.setReady("a")
	r.setList("a", registry.Resource, `{"uri":"x://1","name":"n","mimeType":"text/\u001b[31mred\u202e"}`)
	r.keys("4 m")
	require.NotContains(t, r.app.View(), "\x1b[31mred")
	r.keys("space enter")
	require.Equal(t, 1, r.app.Panes[pane.PaneResources].Rows().Len(), "the filter must still match it")
}

func TestFacetOfALogIsOfMethods(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv).keys("5 ] m")
	require.Contains(t, r.line("[ ] tools/call"), "2")
	r.keys("esc m down down up up")
	require.Contains(t, r.line("[ ] tools/call"), "2", "must stay visible")
	r.keys("space enter")
	require.Equal(t, "method:tools/call", r.filterText())
}
