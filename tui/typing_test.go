package tui

import (
	"strings"
	"testing"

	"goblin/tui/dialog"
	"goblin/tui/pane"
	"goblin/tui/uicontext"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"

	"goblin/registry/termtext"
)

// typists open each place where text is typed.
func typists() map[string]struct {
	open  func(t *testing.T) *rig
	value func(r *rig) string
} {
	type typist = struct {
		open  func(t *testing.T) *rig
		value func(r *rig) string
	}
	in := func(keys string) func(t *testing.T) *rig {
		return func(t *testing.T) *rig { return office(t, 120, 40, plainEnv).keys(keys) }
	}
	front := func(r *rig) uicontext.Dialog { return r.app.Dialogs[len(r.app.Dialogs)-1] }
	return map[string]typist{
		"filter":        {in("4 /"), func(r *rig) string { return r.app.bar.Value() }},
		"palette":       {in(":"), func(r *rig) string { return front(r).(*palette).input.Value() }},
		"subscriptions": {in("w /"), func(r *rig) string { return front(r).(*dialog.Subscriptions).Input.Value() }},
		"help":          {in("?"), func(r *rig) string { return front(r).(*help).input.Value() }},
		"facet":         {in("4 f"), func(r *rig) string { return front(r).(*dialog.FilterList).Input.Value() }},
		"entry": {func(t *testing.T) *rig {
			r := office(t, 120, 40, plainEnv)
			r.run(r.app.Push(dialog.NewTextPrompt(r.app.Context, "Save to", "", func(string) tea.Cmd { return nil })))
			return r
		}, func(r *rig) string { return front(r).(*dialog.TextPrompt).Input.Value() }},
		"sampling": {func(t *testing.T) *rig {
			r := office(t, 120, 40, plainEnv)
			r.ask("sampling/createMessage", `{"messages":[]}`)
			return r.later()
		}, func(r *rig) string {
			return front(r).(*dialog.QuestionDialog).Inner.(*dialog.SamplingQuestion).Area.Value()
		}},
	}
}

func TestWhereverTextIsTypedItIsTextAndSafe(t *testing.T) {
	t.Parallel()
	for name, typist := range typists() {
		t.Run(name, func(t *testing.T) {
			for _, word := range []string{"end", "home", "up", "tab"} {
				r := typist.open(t).text(word)
				require.Equal(t, word, typist.value(r))
			}
			r := typist.open(t)
			const bad = "a\u202eb\u200bc\u2066d"
			r.take(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(bad), Paste: true}, 0)
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
	r := office(t, 120, 40, plainEnv).keys("4")
	r.run(r.app.SetFilter("a\u202eb"))
	r.keys("/ end space x")
	typed, _ := r.app.Panes[pane.PaneResources].Rows().Filtered()
	require.Equal(t, "a\u202eb x", typed)
	require.Contains(t, r.screen(), `a\u202eb x`)
}
