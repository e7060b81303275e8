package tui

import (
	"regexp"
	"testing"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/stretchr/testify/require"

	"goblin/registry/keymap"
	"goblin/tui/pane"
)

// newReboundUI returns a UI with keys from the config.
func newReboundUI(t *testing.T, keys map[string][]string) *testUI {
	t.Helper()
	require.Empty(t, keymap.Conflicts(keys))
	r := newExampleUI(t, 120, 40, plainEnv)
	r.app.o.Keys, r.app.Actions = keys, keymap.Rebind(keys)
	r.app.keys = r.app.bindings()
	return r
}

func TestKeysOfFormsAreThoseOfTheConfig(t *testing.T) {
	t.Parallel()
	r := newReboundUI(t, map[string][]string{
		"form.submit": {"f5"}, "form.raw": {"ctrl+o"}, "form.next": {"ctrl+n"}, "form.previous": {"f3"}, "form.add": {"ctrl+a"},
		"form.cancel": {"ctrl+g"}, "form.down": {"f6"}, "form.enter": {"f7"},
	}).keys("2 / c r e a t e enter c")
	foot := r.line("raw JSON") // the last line of the form
	for _, want := range []string{"C-n next", "f5 call", "C-o raw JSON", "C-g cancel"} {
		require.Contains(t, foot, want)
	}
	for _, old := range []string{"C-s", "C-e", "tab", "esc"} {
		require.NotContains(t, foot, old)
	}
	fields := regexp.MustCompile(`> (\w+)`)
	at := func() string { return fields.FindAllStringSubmatch(r.screen(), -1)[0][1] }
	first := at()
	r.keys("tab enter")
	require.Equal(t, first, at(), "default keys must do nothing")
	for _, key := range []string{"ctrl+n", "f6", "f7"} {
		r.keys(key)
		require.NotEqual(t, first, at(), key)
		r.keys("f3")
		require.Equal(t, first, at(), key)
	}
	r.keys("ctrl+e")
	require.NotContains(t, r.screen(), "C-o form", "still the fields")
	r.keys("ctrl+o")
	require.Contains(t, r.screen(), "C-o form")
	r.keys("ctrl+o esc")
	require.Len(t, r.app.Dialogs, 1, "esc must not close anything")
	r.keys("ctrl+s")
	require.NotContains(t, r.screen(), "! required", "nothing was submitted")
	r.keys("f5")
	require.Contains(t, r.screen(), "! required")
	r.keys("ctrl+g")
	require.Empty(t, r.app.Dialogs)

	r.keys("c").typeText("x").keys("ctrl+c")
	require.Contains(t, r.screen(), "C-g again discards your input")
	r.keys("ctrl+c")
	require.Empty(t, r.app.Dialogs, "C-c must close regardless of the config")
}

func TestKeysOfDialogsAreThoseOfTheConfig(t *testing.T) {
	t.Parallel()
	r := newReboundUI(t, map[string][]string{
		"palette.close": {"f10"}, "palette.down": {"ctrl+j"}, "help.close": {"f10"}, "help.back": {}, "confirm.yes": {"o"}, "confirm.no": {"x"},
		"scroll.down": {"J"}, "clients.disconnect": {"K"}, "filter.keep": {"f10"}, "values.tick": {"ctrl+t"},
	})
	r.keys(":")
	require.Contains(t, r.footer(), "f10 close")
	r.keys("esc")
	require.Len(t, r.app.Dialogs, 1)
	r.keys("ctrl+j")
	require.Contains(t, r.screen(), "│> command  tools ")
	r.keys("f10")
	require.Empty(t, r.app.Dialogs)

	r.keys("?").typeText("submit from any field")
	require.Contains(t, r.line("Submit from any field"), "C-s")
	r.keys("ctrl+c ?").typeText("scroll.down")
	require.Contains(t, r.line("One line down"), "J", "help must show the configured keys and find actions by name")
	require.NotContains(t, r.line("One line down"), "j ")
	r.keys("f10")
	require.Empty(t, r.app.Dialogs)

	r.keys("0")
	require.Contains(t, r.footer(), "K disconnect")
	r.keys("D")
	require.Len(t, r.app.Dialogs, 1, "D must do nothing")
	r.keys("J k K")
	require.Len(t, r.app.Dialogs, 2, "it must ask")
	require.Contains(t, r.screen(), "o disconnect   x back")
	r.keys("y n esc")
	require.Len(t, r.app.Dialogs, 2)
	r.keys("x")
	require.Len(t, r.app.Dialogs, 1)
	r.keys("q 4 / r enter")
	require.True(t, r.app.filtering)
	require.Contains(t, r.footer(), "f10 keep")
	r.keys("f10")
	require.False(t, r.app.filtering)
}

// A letter cannot be a key while the user types text. Every text field in front of the
// panes must therefore report that it takes text.
func TestLettersAreTextWhereOneTypes(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv)
	for open, action := range map[string]string{
		"/": "filter.keep", ":": "palette.run", "?": "help.back", "4 f": "values.apply", "2 c": "form.submit", "w /": "search.keep", "0 /": "search.keep",
	} {
		r.app.Dialogs, r.app.filtering = nil, false
		r.keys(open)
		require.True(t, r.app.isTyping(), open)
		require.Contains(t, keymap.TextKeyReason(action, "x"), "types text in", open)
		require.Contains(t, keymap.TextKeyReason(action, "backspace"), "edits text in", open)
		require.Empty(t, keymap.TextKeyReason(action, "f5"), open)
	}
	require.Contains(t, keymap.TextKeyReason("sampling.send", "enter"), "edits text in sampling answers")
	require.Empty(t, keymap.TextKeyReason("help.close", "?"), "a dialog may use its own key")
	require.Empty(t, keymap.TextKeyReason("clients.sort", "x"), "the list takes no text")
	require.Empty(t, keymap.TextKeyReason("sort", "x"))
	require.Equal(t, tea.KeyCtrlAt.String(), func() string { k, _ := keymap.ParseKey("C-space"); return k }())
}

func TestHintsTellTheKeysOfTheConfig(t *testing.T) {
	t.Parallel()
	r := newReboundUI(t, map[string][]string{"open": {"f9"}, "subscribe": {"f8"}, "call": {"f7"}, "resources": {"f4"}})
	r.keys("f4 j")
	require.Contains(t, r.screen(), "f9 reads it, f8 unsubscribes")
	r.keys("t")
	require.Contains(t, r.screen(), "f9 or f7 fills in the variables")
}

func TestKeysOfTheConfigReplaceThoseOfTheScreen(t *testing.T) {
	t.Parallel()
	r := newTestUI(t, 80, 24, "files")
	r.app.o.Keys = map[string][]string{"sort": {"f5", "O"}, "sort-column": {}, "help": {"f1"}, "tools": {"t"}, "templates": {}, "quit": {"Q"}, "copy": {}}
	r.app.Actions = keymap.Rebind(r.app.o.Keys)
	r.app.keys = r.app.bindings()
	r.keys("o")
	require.NotContains(t, r.screen(), "Sorted", "o must do nothing")
	r.keys("f5")
	require.Contains(t, r.screen(), "Sorted by")
	r.keys("t")
	require.Equal(t, pane.PaneTools, r.app.Open)
	s := r.screen()
	require.Contains(t, s, "t Tools", "the tabs must show their keys")
	require.Contains(t, s, "f1 help  Q quit", "the footer must show them, too")
	require.NotContains(t, s, "copy", "actions without a key must not be in the footer")
	r.keys("f1").typeText("sort order")
	require.Contains(t, r.line("Sort: next column /"), "f5 O")
	r.keys("esc").typeText("copy the uri")
	require.Contains(t, r.line("Copy the URI"), ":copy", "the palette must still work")
	r.keys("esc esc q")
	require.False(t, r.app.quitting)
	r.keys("ctrl+c")
	require.True(t, r.app.quitting, "C-c must quit regardless of the config")
}
