package tui

import (
	"regexp"
	"strings"
	"testing"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/stretchr/testify/require"

	"goblin/registry/keymap"
	"goblin/tui/dialog"
	"goblin/tui/help"
	"goblin/tui/keys"
	"goblin/tui/pane"
)

func TestHelpTellsTheKeysOfThePaneFirst(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv).keys("4 ?")
	s := r.screen()
	require.Contains(t, s, "Help: Resources")
	require.Less(t, strings.Index(s, "Do"), strings.Index(s, "Find"))
	require.Less(t, strings.Index(s, "Find"), strings.Index(s, "Filter by MIME type"))
	require.NotContains(t, s, "Follow new records", "it is a key of Logs")
	r.keys("esc 5 ?")
	require.Contains(t, r.screen(), "Help: Logs")
	require.Contains(t, r.screen(), "Follow new records")
}

func TestHelpOfTheDetailPanelLeavesOutWhatDoesNotWorkThere(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv).keys("4 l ?")
	require.Contains(t, r.screen(), "Help: Detail of Resources")
	require.NotContains(t, r.screen(), "Filter by MIME type")
}

func TestHelpSaysWhyAKeyDoesNotWork(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv).keys("4 ?")
	require.Contains(t, r.line("Repeat the last call"), "(no calls yet)")
	r = newExampleUI(t, 80, 24, plainEnv).keys("4 ?")
	require.Contains(t, r.screen(), "(only templates are expanded; enter reads a resource)", "on its own line if it does not fit")
}

func TestHelpNamesTheEffectInTheFocusedPart(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 60, plainEnv)
	for keys, effects := range map[string][]string{
		"1 ?":   {"r  Restart the server  ", "D  Remove the server  ", "/  Filter the list  "},
		"4 ?":   {"r  Fetch the content again  ", "y  Copy the URI or name  ", "H  List reads and updates  "},
		"9 ?":   {"enter  Go there  ", "r  Restart  "},
		"4 l ?": {"/  Search the text  "},
		"5 ] ?": {"y  Copy the JSON-RPC  ", "X  Cancel the request  ", "o  Sort: next column / reverse  "},
	} {
		screen := regexp.MustCompile(` {2,}`).ReplaceAllString(r.keys("esc esc esc "+keys).screen(), "  ")
		for _, effect := range effects {
			require.Contains(t, screen, effect, keys)
		}
	}
}

func TestHelpIsSearched(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv).keys("4 ?").typeText("mime typ")
	s := r.screen()
	require.Contains(t, s, "Filter by MIME type")
	require.Contains(t, s, "the MIME type, such as text/*", "the fields of this pane's filter")
	require.NotContains(t, s, "Go to Servers")
	require.NotContains(t, s, "Go to", "empty sections must be hidden")
	r.keys("enter")
	require.Empty(t, r.app.Dialogs)

	r = newExampleUI(t, 120, 40, plainEnv).keys("?").typeText("/zzz")
	require.Contains(t, r.screen(), "No matching keys.", "users type a slash from habit")
	r.keys("esc")
	require.Contains(t, r.screen(), "Find", "esc must clear the filter")
	require.Len(t, r.app.Dialogs, 1)
}

// Users search for a purpose, mostly in words of another program.
func TestHelpIsSearchedByWhatOneWantsToDo(t *testing.T) {
	t.Parallel()
	for text, does := range map[string]string{
		"yank": "Copy the URI", "run tool": "Call, get or expand", "turn off": "Disable or enable the server",
		"abort": "Cancel the running call", "dark": "Next theme", "download": "Save the raw content", "quit": "Quit (confirm",
	} {
		r := newExampleUI(t, 120, 40, plainEnv).keys("1 ?").typeText(text)
		if does == "Call, get or expand" {
			r = newExampleUI(t, 120, 40, plainEnv).keys("2 ?").typeText(text)
		}
		require.Contains(t, r.screen(), does, text)
	}
}

func TestHelpScrollsToItsEnd(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 80, 24, plainEnv).keys("?")
	require.NotContains(t, r.screen(), "scroll the part under the mouse")
	r.keys("end")
	require.Contains(t, r.screen(), "scroll the part under the mouse")
	last := r.screen()
	r.keys("down")
	require.Equal(t, last, r.screen())
	r.keys("up")
	require.NotEqual(t, last, r.screen())
	r.keys("home")
	first := r.screen()
	r.send(tea.MouseMsg{X: 40, Y: 10, Button: tea.MouseButtonWheelDown, Action: tea.MouseActionPress}, 0)
	require.NotEqual(t, first, r.screen())
	r.keys("up up up")
	require.Equal(t, first, r.screen())
	for _, closes := range []string{"esc", "?", "enter"} {
		r := newExampleUI(t, 80, 24, plainEnv).keys("? " + closes)
		require.Empty(t, r.app.Dialogs, closes)
	}
}

func TestHelpExplainsGrammarFormsAndDialogs(t *testing.T) {
	t.Parallel()
	r := newTestUI(t, 120, 300, "files").keys("?")
	first := r.screen()
	all := strings.Join(strings.Fields(first+r.keys("end").screen()), " ")
	for _, e := range []keys.Table{help.Grammar(), help.MouseKeys()} {
		for _, x := range e {
			require.Contains(t, all, strings.Join(strings.Fields(help.KeyText(&x)+" "+x.Long), " "))
		}
	}
	for _, d := range r.app.dialogKeys() {
		for _, x := range d.keys {
			require.Contains(t, all, strings.Join(strings.Fields(x.Long), " "), d.title)
		}
	}
}

// The help and KEYS.md describe the keys of forms as forms do.
func TestFormKeysAreThoseOfForms(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv).keys("2 c")
	f := r.app.Dialogs[0].(*dialog.FormDialog).Form
	var told strings.Builder
	for _, k := range help.FormKeys().WithKeys(r.app.Actions) {
		told.WriteString(strings.ToLower(help.KeyText(&k)) + " ")
	}
	require.NotEmpty(t, f.Hints())
	for _, k := range f.Hints() {
		require.Contains(t, told.String(), strings.ToLower(keymap.FormatKey(k.Key)))
	}
}

func TestTheFooterTellsOfHelpAndQuitAtEveryWidth(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, pane.LeastWidth, 24, plainEnv)
	for w := pane.LeastWidth; w <= 140; w += 5 {
		r.resize(w, 24)
		for _, pane := range []string{"1", "2", "3", "4", "5"} {
			r.keys(pane)
			require.Regexp(t, `\? help  q quit *$`, r.screen(), "pane %s, %d columns", pane, w)
		}
	}
}

func TestReasonsInHelpAreWhole(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 80, 24, plainEnv)
	r.app.Demo = true
	r.keys("1 ?").typeText("add a server")
	require.Contains(t, strings.Join(strings.Fields(strings.ReplaceAll(r.screen(), "│", "")), " "), "(the demo has no config; goblin add NAME -- COMMAND creates one)")
}
