package tui

import (
	"os"
	"slices"
	"testing"

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
	text := newTestUI(t, 80, 24, "files").app.keysDoc()
	if *update {
		require.NoError(t, os.WriteFile("KEYS.md", []byte(text), 0o644))
	}
	file, err := os.ReadFile("KEYS.md")
	require.NoError(t, err)
	require.Equal(t, text, string(file), "out of date: run `go generate ./tui`")
}

func TestNoKeyMeansTwoThingsInOnePlace(t *testing.T) {
	t.Parallel()
	r := newTestUI(t, 80, 24, "files")
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

// The tables of goblin/registry/keymap and of the UI contain the same actions. The key
// names come from the terminal library.
func TestEveryActionIsOfTheScreen(t *testing.T) {
	t.Parallel()
	r := newTestUI(t, 80, 24, "files")
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
	for _, name := range keymap.KeyNames() {
		for _, held := range []string{"", "ctrl+", "shift+", "ctrl+shift+"} {
			if key, why := keymap.ParseKey(held + name); why == "" {
				require.True(t, sent[key], "%q is %q", held+name, key)
			}
		}
	}
}

func TestEveryBindingIsExplained(t *testing.T) {
	t.Parallel()
	r := newTestUI(t, 80, 24, "files")
	ids, names := map[string]bool{}, map[string]string{}
	for _, b := range r.app.keys {
		require.False(t, ids[b.ID], "%s is there twice", b.ID)
		ids[b.ID] = true
		require.NotZero(t, b.Where, b.ID)
		require.True(t, len(b.Keys) > 0 || len(b.Names) > 0, "%s cannot be reached", b.ID)
		require.LessOrEqual(t, theme.Width(b.Long), 58, "%s is cut at 80 columns: %q", b.ID, b.Long)
		for _, n := range b.Names {
			require.Empty(t, names[n], "%q is a name of %s and", n, b.ID)
			names[n] = b.ID
		}
		for _, k := range b.Keys {
			require.NotEqual(t, "ctrl+z", k, "it would stop the daemon")
		}
	}
	for _, inside := range []bool{false, true} {
		r.app.Inside = inside
		for _, id := range r.app.footer() {
			require.NotEmpty(t, r.app.binding(id).Hint, "%s is in the footer", id)
		}
	}
}

// newBusyUI returns a UI in which nearly every key has something to do.
func newBusyUI(t *testing.T) *testUI {
	t.Helper()
	r := newExampleUI(t, 120, 40, plainEnv)
	r.backend.answers["tools/call"] = r.backend.answers["prompts/get"]
	files, _ := r.reg.State("files")
	files.CanLogIn = true
	r.setState("files", files)
	for _, s := range []string{"files", "github", "legacy", "weather"} {
		r.reg.SetUnapproved(s, []registry.UnapprovedTool{{Server: s, Name: "create_issue", Offered: []byte(`{}`)}})
	}
	return r
}

// stage opens a place of the UI with something to cancel, repeat, answer and search.
func (r *testUI) stage(which, tab int, inside bool) {
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
	a.questions.Questions.List = []*dialog.Question{{Method: "elicitation/create", Params: []byte(`{"message":"Name?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}`), Since: a.Now(), Answer: make(chan dialog.Reply, 1), Withdrawn: never}}
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
		{pane.PaneLogs, pane.TabTimeline},
		{pane.PaneUsage, 0},
		{pane.PaneSaved, 0},
	} {
		for _, inside := range []bool{false, true} {
			r := newBusyUI(t)
			for i := range r.app.keys {
				b := &r.app.keys[i]
				r.stage(at.which, at.tab, inside)
				if b.Where&r.app.focus() == 0 || r.app.whyDisabled(b) != "" {
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
	for _, b := range newTestUI(t, 80, 24, "files").app.keys {
		require.True(t, ran[b.ID], "%s cannot be run anywhere", b.ID)
	}
}

func TestReasonsFitTheScreen(t *testing.T) {
	t.Parallel()
	empty, full := newTestUI(t, 120, 40, "files"), newExampleUI(t, 120, 40, plainEnv)
	reasons := 0
	for _, r := range []*testUI{empty, full} {
		for pane := range 7 {
			for _, inside := range []bool{false, true} {
				r.run(r.app.Show(pane))
				r.app.Inside = inside
				for i := range r.app.keys {
					b := &r.app.keys[i]
					for _, why := range []string{r.app.whyDisabled(b), r.app.whyNotHere(b)} {
						if why == "" {
							continue
						}
						reasons++
						require.LessOrEqual(t, theme.Width(why), 76, "%s: %q", b.ID, why)
					}
				}
			}
		}
	}
	require.Greater(t, reasons, 50)
}
