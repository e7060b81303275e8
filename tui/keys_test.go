package tui

import (
	"os"
	"slices"
	"strings"
	"testing"
	"unicode"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/stretchr/testify/require"

	"goblin/registry"
	"goblin/registry/keymap"
	"goblin/tui/dialog"
	"goblin/tui/pane"
	"goblin/tui/theme"
	"goblin/tui/uicontext"
)

func TestKeysFileIsCurrent(t *testing.T) {
	t.Parallel()
	text := newRig(t, 80, 24, "files").app.keysDoc()
	if *update {
		require.NoError(t, os.WriteFile("KEYS.md", []byte(text), 0o644))
	}
	file, err := os.ReadFile("KEYS.md")
	require.NoError(t, err)
	require.Equal(t, text, string(file), "run `go generate ./tui`")
}

func TestKeysFileNamesEveryBinding(t *testing.T) {
	t.Parallel()
	r := newRig(t, 80, 24, "files")
	text := r.app.keysDoc()
	for _, b := range r.app.keys {
		require.Contains(t, text, escaped(b.Long), b.ID)
		for _, k := range b.Keys {
			require.Contains(t, text, inCode(keymap.Show(k)), b.ID)
		}
	}
	for _, field := range []string{"`mime:`", "`sub:`", "`updated:`", "`method:`", "`err:`", "`ms:`", "`state:`"} {
		require.Contains(t, text, field)
	}
}

func TestNoKeyMeansTwoThingsInOnePlace(t *testing.T) {
	t.Parallel()
	r := newRig(t, 80, 24, "files")
	for _, p := range keymap.Places() {
		means := map[string]string{}
		for _, b := range r.app.keys {
			if b.Where&p == 0 {
				continue
			}
			for _, k := range b.Keys {
				require.Empty(t, means[k], "in %s, %q is %s and", p, k, b.ID)
				means[k] = b.ID
			}
		}
	}
}

// The table of goblin/registry/keymap and that of the screen are about the same actions,
// and its names of keys are those that the terminal library gives.
func TestEveryActionIsOfTheScreen(t *testing.T) {
	r := newRig(t, 80, 24, "files")
	var ids []string
	for _, b := range r.app.keys {
		ids = append(ids, b.ID)
		require.NotEmpty(t, b.Group, b.ID)
	}
	for _, d := range r.app.dialogKeys() {
		for _, b := range d.keys {
			if !slices.Contains(ids, b.ID) { // several dialogs scroll
				ids = append(ids, b.ID)
			}
		}
	}
	var actions []string
	for _, a := range keymap.Actions() {
		actions = append(actions, a.ID)
	}
	require.ElementsMatch(t, actions, ids)
	sent := map[string]bool{}
	for k := tea.KeyType(-128); k < 128; k++ {
		sent[tea.KeyMsg{Type: k}.String()] = true
	}
	for _, name := range keymap.Named() {
		for _, held := range []string{"", "ctrl+", "shift+", "ctrl+shift+"} {
			if key, why := keymap.Key(held + name); why == "" {
				require.True(t, sent[key], "%q is %q", held+name, key)
			}
		}
	}
}

func TestKeysOfTheConfigReplaceThoseOfTheScreen(t *testing.T) {
	r := newRig(t, 80, 24, "files")
	r.app.o.Keys = map[string][]string{"sort": {"f5", "O"}, "sort-column": {}, "help": {"f1"}, "tools": {"t"}, "templates": {}, "quit": {"Q"}, "copy": {}}
	r.app.Actions = keymap.Change(r.app.o.Keys)
	r.app.keys = r.app.bindings()
	r.keys("o")
	require.NotContains(t, r.screen(), "Sorted", "o does nothing any more")
	r.keys("f5")
	require.Contains(t, r.screen(), "Sorted by")
	r.keys("t")
	require.Equal(t, pane.PaneTools, r.app.Open)
	s := r.screen()
	require.Contains(t, s, "t Tools", "the tabs tell their keys")
	require.Contains(t, s, "f1 help  Q quit", "the footer, too")
	require.NotContains(t, s, "copy", "what has no key is not in the footer")
	r.keys("f1").text("sort order")
	require.Contains(t, r.line("Sort by the next column;"), "f5 O")
	r.keys("esc").text("copy the uri")
	require.Contains(t, r.line("Copy the URI"), ":copy", "the palette still does it")
	r.keys("esc esc q")
	require.False(t, r.app.quitting)
	r.keys("ctrl+c")
	require.True(t, r.app.quitting, "C-c quits, whatever the config says")
}

func TestEveryBindingIsExplained(t *testing.T) {
	t.Parallel()
	r := newRig(t, 80, 24, "files")
	ids, names := map[string]bool{}, map[string]string{}
	for _, b := range r.app.keys {
		require.False(t, ids[b.ID], "%s is there twice", b.ID)
		ids[b.ID] = true
		require.NotZero(t, b.Where, b.ID)
		require.True(t, len(b.Keys) > 0 || len(b.Names) > 0, "%s cannot be reached", b.ID)
		require.GreaterOrEqual(t, len(strings.Fields(b.Long)), 2, "%s: %q", b.ID, b.Long)
		require.LessOrEqual(t, theme.Width(b.Long), 58, "%s is cut at 80 columns: %q", b.ID, b.Long)
		require.True(t, unicode.IsUpper(rune(b.Long[0])), b.Long)
		require.False(t, strings.HasSuffix(b.Long, "."), b.Long)
		for _, n := range b.Names {
			require.Empty(t, names[n], "%q is a name of %s and", n, b.ID)
			names[n] = b.ID
		}
		for _, k := range b.Keys {
			require.NotEqual(t, "ctrl+z", k, "it would stop the process that serves")
			require.NotContains(t, keymap.Show(k), "ctrl", "%q", k)
		}
	}
	for _, inside := range []bool{false, true} {
		r.app.Inside = inside
		for _, id := range r.app.footer() {
			require.NotEmpty(t, r.app.binding(id).Hint, "%s stands in the footer", id)
		}
	}
}

// busy is a screen on which as much as possible can be done.
func busy(t *testing.T) *rig {
	t.Helper()
	r := office(t, 120, 40, plainEnv)
	r.backend.answers["tools/call"] = r.backend.answers["prompts/get"]
	files, _ := r.reg.State("files")
	files.CanLogIn = true
	r.at("files", files)
	for _, s := range []string{"files", "github", "legacy", "weather"} {
		r.reg.SetPinned(s, []registry.PinnedTool{{Server: s, Name: "create_issue", Offered: []byte(`{}`)}})
	}
	return r
}

// stage brings a busy screen to a place, with something to cancel, repeat,
// answer and search.
func (r *rig) stage(which, tab int, inside bool) {
	a := r.app
	a.Logs().Open = tab
	a.Dialogs, a.filtering, a.searching, a.quitting = nil, false, false, false
	a.Inside = false
	r.run(a.Show(which))
	r.run(a.SetFilter(""))
	if p, ok := a.Panes[which].(*pane.Resources); ok {
		p.TemplatesChosen = false
	}
	a.Opened, a.Inside = true, inside
	r.run(a.UpdateDetail())
	a.Details[which].View.Search("e")
	if now := a.Panes[which].Item(); !now.IsEmpty() && len(a.Calls.History(now)) == 0 {
		a.Calls.Running = nil
		r.run(a.Calls.Start(uicontext.Request{Item: now, Method: "tools/call"}))
	}
	it := uicontext.Item{Kind: registry.Tool, Server: "github", Name: "search", Listed: "github_search"}
	a.Calls.Last = &uicontext.Request{Item: it, Method: "tools/call"}
	a.Calls.Running = []*uicontext.Running{{Request: *a.Calls.Last, Started: a.Now(), Cancel: func() {}}}
	never := make(chan struct{})
	a.questions.Questions.List = []*dialog.Question{{Method: "elicitation/create", Params: []byte(`{"message":"Name?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}`), Since: a.Now(), Answer: make(chan dialog.Reply, 1), Gone: never}}
}

func TestEveryBindingIsHandledWhereItWorks(t *testing.T) {
	t.Parallel()
	ran := map[string]bool{}
	for _, at := range []struct{ which, tab int }{
		{pane.PaneServers, 0},
		{pane.PaneTools, 0},
		{pane.PanePrompts, 0},
		{pane.PaneResources, 0},
		{pane.PaneLogs, pane.TabEvents},
		{pane.PaneLogs, pane.TabTraffic},
		{pane.PaneLogs, pane.TabStderr},
		{pane.PaneLogs, pane.TabGoblin},
		{pane.PaneUsage, 0},
	} {
		for _, inside := range []bool{false, true} {
			r := busy(t)
			for i := range r.app.keys {
				b := &r.app.keys[i]
				r.stage(at.which, at.tab, inside)
				if b.Where&r.app.focus() == 0 || r.app.why(b) != "" {
					continue
				}
				name, _ := r.app.Panes[at.which].Tab()
				act := r.app.Handlers[at.which][b.ID]
				require.True(t, b.Run != nil || act.Run != nil, "%s does nothing in %s (detail: %v)", b.ID, name, inside)
				r.run(r.app.run(b))
				r.screen()
				ran[b.ID] = true
			}
		}
	}
	for _, b := range newRig(t, 80, 24, "files").app.keys {
		require.True(t, ran[b.ID], "%s could be run nowhere", b.ID)
	}
}

func TestReasonsAreSentences(t *testing.T) {
	t.Parallel()
	empty, full := newRig(t, 120, 40, "files"), office(t, 120, 40, plainEnv)
	reasons := 0
	for _, r := range []*rig{empty, full} {
		for pane := range 5 {
			for _, inside := range []bool{false, true} {
				r.run(r.app.Show(pane))
				r.app.Inside = inside
				for i := range r.app.keys {
					b := &r.app.keys[i]
					for _, why := range []string{r.app.why(b), r.app.whyHere(b)} {
						if why == "" {
							continue
						}
						reasons++
						require.GreaterOrEqual(t, len(strings.Fields(why)), 3, "%s: %q", b.ID, why)
						require.LessOrEqual(t, theme.Width(why), 76, "%s: %q", b.ID, why)
						require.False(t, strings.HasSuffix(why, "."), "%s: %q", b.ID, why)
						require.False(t, unicode.IsUpper([]rune(why)[0]) && !strings.HasPrefix(why, "Goblin") && !strings.HasPrefix(why, "Enter"), "%s: %q", b.ID, why)
					}
				}
			}
		}
	}
	require.Greater(t, reasons, 50)
}

func TestADisabledKeySaysWhy(t *testing.T) {
	t.Parallel()
	r := office(t, 80, 24, plainEnv).keys("2 l s")
	require.Contains(t, r.screen(), "! only resources can be subscribed to")
}
