package tui

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/registry"
	"goblin/registry/candidate"
	"goblin/tui/keys"
	"goblin/tui/pane"
	"goblin/tui/theme"
)

func TestOneKeyMarksAllRowsOfTheFilter(t *testing.T) {
	t.Parallel()
	r := newResourcesUI(t, "a", "b", "c").keys("/ server:c enter *")
	require.Contains(t, r.screen(), "3 marked; esc unmarks")
	r.keys("y")
	require.Equal(t, "mcp://c/x://0\nmcp://c/x://1\nmcp://c/x://2", r.clipboard())
	r.keys("space y")
	require.Equal(t, "mcp://c/x://1\nmcp://c/x://2", r.clipboard())
	r.keys("* y")
	require.Equal(t, "mcp://c/x://0\nmcp://c/x://1\nmcp://c/x://2", r.clipboard(), "the key completes the marks")
	r.keys("*")
	require.Contains(t, r.screen(), "No rows marked", "once more, it removes them")
	require.Empty(t, r.app.Panes[pane.PaneTools].Rows().Len(), "a list without rows")
	require.Contains(t, r.keys("2 *").screen(), "No rows marked")
}

func TestOneKeyMarksAllRunningRequests(t *testing.T) {
	t.Parallel()
	r := newTrafficUI(t, 160, 40)
	u := addHangingCall(r)
	second := u
	second.ID, second.Session = "8", "s-2"
	r.backend.underWay = append(r.backend.underWay, second)
	r.pollInFlight().keys("* X")
	require.Contains(t, r.screen(), "Cancel 2 requests?")
	r.keys("n [ *")
	require.Contains(t, r.screen(), "only running requests of Traffic can be marked")
}

func TestOneKeyMarksAllNewServersAndValues(t *testing.T) {
	t.Parallel()
	r := newFailingUI(t, 110, 40)
	for _, name := range []string{"git", "memo", "clock"} {
		r.backend.clients.Servers = append(r.backend.clients.Servers, candidate.Server{Name: name, Origin: "Cursor", Entry: &candidate.Definition{Name: name, Keys: map[string]any{"command": "x"}}})
	}
	r.backend.clients.Servers[2].Present = true
	require.Contains(t, r.keys("1 a down * enter").screen(), "Add 2 servers?")
	r.keys("esc * enter")
	require.NotContains(t, r.screen(), "Add 2 servers?")
	r.app.Dialogs = nil
	r.keys("1 a").typeText("ls *")
	require.Contains(t, r.screen(), "/ ls *", "a command may contain the key")

	r = newResourcesUI(t, "a", "b", "c").keys("f * space enter")
	require.Equal(t, "server:b server:a", r.filterText())
}

func TestTooManyMarkedResourcesAreNotSubscribed(t *testing.T) {
	t.Parallel()
	r := newTestUI(t, 80, 24, "a").setReady("a")
	items := make([]string, 501)
	for i := range items {
		items[i] = fmt.Sprintf(`{"uri":"x://%d","name":"n"}`, i)
	}
	r.setList("a", registry.Resource, items...).keys("4 * s")
	require.Contains(t, r.screen(), "at most 500 resources")
	require.Empty(t, r.reg.Subscriptions())
}

func TestADialogLeavesNoStripOfThePane(t *testing.T) {
	t.Parallel()
	for _, open := range []string{"?", ":", "0", "1 a", "2 c", "B", "4 w"} {
		for _, w := range []int{40, 80, 100, 120, 122, 142} {
			r := newExampleUI(t, w, 24, plainEnv).keys(open)
			r.screen()
			rect := r.app.FrontRect
			left := rect.X - 1
			require.True(t, left == 0 && rect.W == w-2 || left >= 3, "%s at %d columns: %+v", open, w, rect)
		}
	}
}

func TestNothingOfHelpIsCutInANarrowTerminal(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 40, 40, plainEnv).keys("2 ?").typeText("mark rows")
	text := strings.Join(strings.Fields(strings.NewReplacer("│", " ", "\n", " ").Replace(r.screen())), " ")
	require.Contains(t, text, "space Mark rows to subscribe, copy or approve together")
	require.Contains(t, r.footer(), "esc close")
	for _, open := range []string{"0", "w", ":", "4 f", "1 a"} {
		r := newExampleUI(t, 40, 24, plainEnv).keys(open)
		require.Contains(t, r.footer(), "esc ", open)
		require.NotContains(t, r.footer(), "…", open)
	}
}

func TestHintsThatDoNotFitAreLeftOutButEsc(t *testing.T) {
	t.Parallel()
	all := []keys.Hint{{Key: "enter", Label: "open"}, {Key: "D", Label: "disconnect"}, {Key: "esc", Label: "close"}, {Key: "a-z", Label: "search"}}
	for w, want := range map[int]string{60: "enter open  D disconnect  esc close  a-z search", 40: "enter open  D disconnect  esc close", 21: "enter open  esc close", 5: "esc close"} {
		var texts []string
		for _, h := range keys.FitHints(all, w) {
			texts = append(texts, h.Text())
		}
		require.Equal(t, want, strings.Join(texts, "  "))
	}
}

func TestOnlyOneBorderHasTheColorOfTheFocus(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, colourEnv)
	corners := func() int { return strings.Count(r.app.View(), string(r.app.Theme.Accent)+"╭") }
	require.NotEqual(t, theme.Style(""), r.app.Theme.Accent)
	for _, open := range []string{"2", "l", "c", "esc V", "esc 9", "?"} {
		r.keys(open)
		require.Equal(t, 1, corners(), open)
	}
}

func TestButtonsOfAQuestionAreWholeInANarrowTerminal(t *testing.T) {
	t.Parallel()
	r := newTestUI(t, 40, 20, "files")
	r.ask("elicitation/create", `{"message":"Who?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}`)
	require.Contains(t, r.screen(), "[answer]    [decline]    [cancel]")
	require.Contains(t, r.screen(), "never enter")
}
