package tui

import (
	"strings"
	"testing"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"

	"goblin/registry/termtext"
	"goblin/tui/dialog"
	"goblin/tui/help"
	"goblin/tui/palette"
	"goblin/tui/pane"
	"goblin/tui/uicontext"
)

// textInputs returns each place that takes typed text.
func textInputs() map[string]struct {
	open  func(t *testing.T) *testUI
	value func(r *testUI) string
} {
	type typist = struct {
		open  func(t *testing.T) *testUI
		value func(r *testUI) string
	}
	in := func(keys string) func(t *testing.T) *testUI {
		return func(t *testing.T) *testUI { return newExampleUI(t, 120, 40, plainEnv).keys(keys) }
	}
	front := func(r *testUI) uicontext.Dialog { return r.app.Dialogs[len(r.app.Dialogs)-1] }
	return map[string]typist{
		"filter":        {in("4 /"), func(r *testUI) string { return r.app.bar.Value() }},
		"palette":       {in(":"), func(r *testUI) string { return front(r).(*palette.Dialog).Input.Value() }},
		"subscriptions": {in("w /"), func(r *testUI) string { return front(r).(*dialog.Subscriptions).Input.Value() }},
		"help":          {in("?"), func(r *testUI) string { return front(r).(*help.Dialog).Input.Value() }},
		"facet":         {in("4 f"), func(r *testUI) string { return front(r).(*dialog.FilterList).Input.Value() }},
		"entry": {func(t *testing.T) *testUI {
			r := newExampleUI(t, 120, 40, plainEnv)
			r.run(r.app.Push(dialog.NewTextPrompt(r.app.Context, "Save to", "", func(string) tea.Cmd { return nil })))
			return r
		}, func(r *testUI) string { return front(r).(*dialog.TextPrompt).Input.Value() }},
		"sampling": {func(t *testing.T) *testUI {
			r := newExampleUI(t, 120, 40, plainEnv)
			r.ask("sampling/createMessage", `{"messages":[]}`)
			return r.passGrace()
		}, func(r *testUI) string {
			return front(r).(*dialog.QuestionDialog).Inner.(*dialog.SamplingQuestion).Area.Value()
		}},
	}
}

func TestWhereverTextIsTypedItIsTextAndSafe(t *testing.T) {
	t.Parallel()
	for name, typist := range textInputs() {
		t.Run(name, func(t *testing.T) {
			for _, word := range []string{"end", "home", "up", "tab"} {
				r := typist.open(t).typeText(word)
				require.Equal(t, word, typist.value(r))
			}
			r := typist.open(t)
			const bad = "a\u202eb\u200bc\u2066d"
			r.send(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(bad), Paste: true}, 0)
			require.Equal(t, bad, typist.value(r))
			for _, k := range []string{"left", "left", "left"} {
				r.keys(k)
				plain := strings.ReplaceAll(ansi.Strip(r.app.View()), "\n", "")
				require.Equal(t, termtext.Line(plain), plain)
				r.screen()
			}
			require.Contains(t, r.screen(), `\u202e`)
			require.Equal(t, bad, typist.value(r))
		})
	}
}

func TestAFilterThatWasSetIsEditedAsItIs(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv).keys("4")
	r.run(r.app.SetFilter("a\u202eb"))
	r.keys("/ end space x")
	typed, _ := r.app.Panes[pane.PaneResources].Rows().FilterQuery()
	require.Equal(t, "a\u202eb x", typed)
	require.Contains(t, r.screen(), `a\u202eb x`)
}
