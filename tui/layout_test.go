package tui

import (
	"encoding/json"
	"strings"
	"testing"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/stretchr/testify/require"

	"goblin/registry"
	"goblin/tui/pane"
)

func TestWhatHasTheFocusIsZoomed(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv)
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

	// In a small terminal, Enter gives the detail the whole body, and Esc reverts that.
	r = newExampleUI(t, 80, 24, plainEnv).keys("2 enter")
	require.NotContains(t, r.screen(), "Tools 4 ─")
	require.Contains(t, r.screen(), "It is public.")
	require.Contains(t, r.screen(), "1 of 4")
	r.keys("J")
	require.Contains(t, r.screen(), "2 of 4")
	r.keys("esc")
	require.Contains(t, r.screen(), "Tools 4 ─")
	require.False(t, r.app.DetailShown(), "as before")
	r.keys("enter F")
	require.Contains(t, r.screen(), "Tools 4 ─")
	require.True(t, r.app.Inside)
	r.keys("enter")
	require.NotContains(t, r.screen(), "Tools 4 ─")
	r.keys("esc")
	require.True(t, r.app.Inside, "where it was")
}

func TestThePlaceOfTheDetailPanelChangesWithEachPress(t *testing.T) {
	t.Parallel()
	for _, w := range []int{80, 120} {
		r := newExampleUI(t, w, 40, plainEnv).keys("2 j enter")
		for range 6 {
			before := r.app.Geometry()
			r.keys("P")
			require.NotEqual(t, before, r.app.Geometry(), "%d cells", w)
		}
	}
}

// A small terminal shows no empty templates list, and a jump leaves no filter behind.
func TestASmallScreenHasNoRoomForTemplatesThatWereNotFound(t *testing.T) {
	t.Parallel()
	r := newTestUI(t, 80, 24, "files").setReady("files")
	r.setList("files", registry.Resource, `{"uri":"a:1","name":"one"}`, `{"uri":"a:2","name":"two"}`, `{"uri":"a:3","name":"two"}`)
	r.setList("files", registry.Template, `{"uriTemplate":"a:{n}","name":"any"}`, `{"uriTemplate":"b:{n}","name":"any"}`)
	r.backend.answers["resources/read"] = func(json.RawMessage, func(json.RawMessage)) (json.RawMessage, error) {
		return json.RawMessage(`{"contents":[{"uri":"a:2","text":"text"}]}`), nil
	}
	below := func() (lines int) { // from the rule above templates to the end of the box
		_, rest, found := strings.Cut(r.screen(), "├─ Templates")
		require.True(t, found, r.screen())
		rest, _, _ = strings.Cut(rest, "╰")
		return strings.Count(rest, "\n") - 1
	}
	r.keys("4 j enter F esc")
	require.Contains(t, r.screen(), "1 text", "the detail is open")
	require.Equal(t, 2, below(), r.screen())
	r.keys("/ two enter")
	require.Contains(t, r.line("Templates"), "Templates 0/2")
	require.Zero(t, below(), r.screen())
	r.keys("i")
	require.Contains(t, r.screen(), "[5 Logs")
	require.Contains(t, r.screen(), "name:=")
	r.keys("esc 5")
	require.NotContains(t, r.screen(), "name:=", "going back must remove the filter of the jump")
}

func TestTheListTakesTheWholeWidth(t *testing.T) {
	t.Parallel()
	for _, w := range []int{120, 220} {
		r := newExampleUI(t, w, 40, plainEnv).keys("4")
		require.Contains(t, r.screen(), "F full width")
		require.Contains(t, r.screen(), "Definition")
		r.keys("F")
		require.Equal(t, w, r.app.Geometry().List.W)
		require.NotContains(t, r.screen(), "Definition")
		require.Contains(t, r.screen(), "F show detail")
		require.Contains(t, r.screen(), "name")
		r.keys("F")
		require.Contains(t, r.screen(), "Definition")
	}
	r := newExampleUI(t, 80, 24, plainEnv).keys("4 enter F esc F")
	require.Equal(t, 20, r.app.Geometry().List.H, "also for a panel below")
	require.Contains(t, newExampleUI(t, 80, 24, plainEnv).keys("?").typeText("full width").screen(), "F")
}

func TestAnAnswerIsInSightInASmallPanel(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 100, 30, plainEnv)
	r.setAnswer("resources/read", `{"contents":[{"uri":"x","mimeType":"text/plain","text":"here it is"}]}`)
	r.keys("4 t j enter").typeText("me").keys("tab").typeText("mine").screen()
	r.app.Opened = true
	r.screen()
	r.keys("ctrl+s")
	require.Contains(t, r.screen(), "here it is")
}

func TestTabWalksTheListsAndTheDetailPanel(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv).keys("4 tab")
	require.True(t, r.app.Panes[pane.PaneResources].(*pane.Resources).TemplatesChosen)
	r.keys("tab")
	require.True(t, r.app.Inside)
	r.keys("tab")
	require.False(t, r.app.Inside)
	require.False(t, r.app.Panes[pane.PaneResources].(*pane.Resources).TemplatesChosen)
	r.keys("shift+tab")
	require.True(t, r.app.Inside)
	small := newExampleUI(t, 80, 24, plainEnv).keys("2 tab")
	require.Equal(t, pane.PanePrompts, small.app.Open, "with one list, the key must switch the pane")
}

func TestAnAnswerOpensTheDetailOnASmallScreen(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 80, 24, plainEnv).keys("2 / forecast enter")
	require.NotContains(t, r.screen(), "own name")
	r.keys("c").typeText("Oslo").screen()
	r.keys("ctrl+s").screen()
	require.True(t, r.app.DetailShown())
}

func TestASmallTerminalTakesNoKeysBlindly(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 39, 9, plainEnv).keys("2 c")
	require.Empty(t, r.app.Dialogs)
	require.Equal(t, pane.PaneResources, r.app.Open)
}

// A dialog that is too large for the terminal gets no keys. Only a short question is shown
// without its frame.
func TestASmallTerminalAnswersNoInvisibleDialog(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 80, 24, plainEnv).keys("2 / forecast enter c").typeText("Oslo")
	r.resize(39, 9).typeText("xyz").keys("ctrl+s")
	require.Contains(t, r.resize(80, 24).screen(), "Oslo")
	require.NotContains(t, r.screen(), "xyz")
	require.Empty(t, r.backend.sentRequests())

	r = newExampleUI(t, 80, 24, plainEnv).keys("1 D").resize(39, 9)
	require.Contains(t, r.screen(), "Removes files from the config.")
	require.Contains(t, r.screen(), "y remove   n back")
	r.resize(10, 3).keys("y")
	require.NotEmpty(t, r.app.Dialogs)
	r.resize(39, 9).keys("y")
	require.Empty(t, r.app.Dialogs)
}

func TestEachPaneShowsItsTabAndAllNumbersAt40Columns(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 40, 10, plainEnv)
	for _, key := range []string{"1", "2", "3", "4", "5", "6", "7", "9"} {
		tabs := r.keys(key).line("[" + key)
		name, _ := r.app.Panes[r.app.Open].Tab()
		require.Contains(t, tabs, "["+key+" "+name)
		for _, other := range []string{"1", "2", "3", "4", "5", "6", "7", "9"} {
			require.Contains(t, tabs, other)
		}
	}
	require.Contains(t, r.keys("5 ] ] ] ]").line("[Time"), "Even")
}

func TestAQuestionIsReadableAt40Columns(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 40, 10, plainEnv).keys("1 x")
	for _, word := range []string{"disappear.", "y until Goblin stops", "g permanently", "n back"} {
		require.Contains(t, r.screen(), word)
	}
}

func TestTooSmallTerminalSaysWhatIsNeeded(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv)
	r.send(tea.WindowSizeMsg{Width: 39, Height: 9}, 0)
	require.Contains(t, r.screen(), "goblin needs 40x10, has 39x9")
	r.send(tea.WindowSizeMsg{Width: 80, Height: 24}, 0)
	require.Contains(t, r.screen(), "Resources 16")
}

func TestEveryScreenFillsItsTerminalExactly(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		open func(t *testing.T) *testUI
		keys []string // the frame is checked after each; the last keys go back
	}{
		"servers":       {func(t *testing.T) *testUI { return newFailingUI(t, 80, 24) }, []string{"1", "enter", "esc esc"}},
		"subscriptions": {func(t *testing.T) *testUI { return newSubscribedUI(t, 80, 24).keys("w") }, []string{"j"}},
		"traffic":       {func(t *testing.T) *testUI { return newTrafficUI(t, 80, 24) }, []string{"enter", "esc / e r r : y e s enter", "esc l", "esc"}},
		"logs":          {func(t *testing.T) *testUI { return newLogsUI(t, 80, 24) }, []string{"5", "enter", "esc ]", "enter", "esc ]", "enter", "esc ]", "enter", "esc ]"}},
		"dialogs": {
			func(t *testing.T) *testUI { return newExampleUI(t, 80, 24, asciiEnv) },
			[]string{"? G", "esc esc : s e r", "esc esc : o p e n space e", "esc esc 4 f j", "esc m", "esc : t r a f f i c enter m", "esc 4"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := c.open(t)
			for _, size := range [][2]int{{40, 10}, {41, 12}, {47, 17}, {60, 18}, {80, 24}, {109, 30}, {120, 40}, {139, 14}, {140, 19}, {160, 45}, {250, 60}} {
				r.resize(size[0], size[1]).screen()
				for i, keys := range c.keys {
					r.keys(keys).screen()
					require.True(t, name != "dialogs" || i == len(c.keys)-1 || len(r.app.Dialogs) == 1, "a dialog is open after %s", keys)
				}
			}
		})
	}
}
