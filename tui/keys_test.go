package tui

import (
	"os"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"

	"goblin/registry"
	"goblin/tui/look"
)

func TestKeysFileIsCurrent(t *testing.T) {
	text := newRig(t, 80, 24, "files").app.keysDoc()
	if *update {
		require.NoError(t, os.WriteFile("KEYS.md", []byte(text), 0o644))
	}
	file, err := os.ReadFile("KEYS.md")
	require.NoError(t, err)
	require.Equal(t, text, string(file), "run `go generate ./tui`")
}

func TestKeysFileNamesEveryBinding(t *testing.T) {
	text := newRig(t, 80, 24, "files").app.keysDoc()
	for _, b := range bindings() {
		require.Contains(t, text, b.long, b.id)
		for _, k := range b.keys {
			require.Contains(t, text, "`"+show(k)+"`", b.id)
		}
	}
	for _, field := range []string{"`mime:`", "`sub:`", "`updated:`", "`method:`", "`err:`", "`ms:`", "`state:`"} {
		require.Contains(t, text, field)
	}
}

func TestNoKeyMeansTwoThingsInOnePlace(t *testing.T) {
	for _, p := range placeNames() {
		means := map[string]string{}
		for _, b := range bindings() {
			if b.in&p.in == 0 {
				continue
			}
			for _, k := range b.keys {
				require.Empty(t, means[k], "in %s, %q is %s and", p.name, k, b.id)
				means[k] = b.id
			}
		}
	}
}

func TestEveryBindingIsExplained(t *testing.T) {
	ids, names := map[string]bool{}, map[string]string{}
	for _, b := range bindings() {
		require.False(t, ids[b.id], "%s is there twice", b.id)
		ids[b.id] = true
		require.NotZero(t, b.in, b.id)
		require.True(t, len(b.keys) > 0 || len(b.names) > 0, "%s cannot be reached", b.id)
		require.GreaterOrEqual(t, len(strings.Fields(b.long)), 2, "%s: %q", b.id, b.long)
		require.LessOrEqual(t, look.Width(b.long), 58, "%s is cut at 80 columns: %q", b.id, b.long)
		require.True(t, unicode.IsUpper(rune(b.long[0])), b.long)
		require.False(t, strings.HasSuffix(b.long, "."), b.long)
		for _, n := range b.names {
			require.Empty(t, names[n], "%q is a name of %s and", n, b.id)
			names[n] = b.id
		}
		for _, k := range b.keys {
			require.NotEqual(t, "ctrl+z", k, "it would stop the process that serves")
			require.NotContains(t, show(k), "ctrl", "%q", k)
		}
	}
	r := newRig(t, 80, 24, "files")
	for _, inside := range []bool{false, true} {
		r.app.inside = inside
		for _, id := range r.app.footer() {
			require.NotNil(t, r.app.keys.byID[id], id)
			require.NotEmpty(t, r.app.keys.byID[id].short, "%s stands in the footer", id)
		}
	}
}

// busy is a screen on which as much as possible can be done.
func busy(t *testing.T) *rig {
	t.Helper()
	r := office(t, 120, 40, plainEnv)
	r.backend.answers["tools/call"] = r.backend.answers["prompts/get"]
	for _, s := range []string{"files", "github", "legacy", "weather"} {
		r.reg.SetPinned(s, []registry.PinnedTool{{Server: s, Name: "create_issue", Offered: []byte(`{}`)}})
	}
	return r
}

// stage brings a busy screen to a place, with something to cancel, repeat,
// answer and search.
func (r *rig) stage(pane, tab int, inside bool) {
	a := r.app
	a.logs().open = tab
	a.dialogs, a.filtering, a.searching, a.quitting = nil, false, false, false
	a.inside = false
	r.run(a.show(pane))
	r.run(a.setFilter(""))
	if p, ok := a.panes[pane].(*resources); ok {
		p.second = false
	}
	a.opened, a.inside = true, inside
	r.run(a.follow())
	a.details[pane].view.Search("e")
	it := item{registry.Tool, "github", "search", "github_search", true}
	a.calls.last = &request{item: it, method: "tools/call"}
	a.calls.list = []*running{{request: *a.calls.last, began: a.now(), cancel: func() {}}}
	never := make(chan struct{})
	a.questions.list = []*question{{method: "elicitation/create", params: []byte(`{"message":"Name?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}`), since: a.now(), answer: make(chan reply, 1), gone: never}}
}

func TestEveryBindingIsHandledWhereItWorks(t *testing.T) {
	ran := map[string]bool{}
	for _, at := range []struct{ pane, tab int }{
		{paneServers, 0},
		{paneTools, 0},
		{panePrompts, 0},
		{paneResources, 0},
		{paneLogs, tabEvents},
		{paneLogs, tabTraffic},
		{paneLogs, tabStderr},
		{paneLogs, tabGoblin},
	} {
		for _, inside := range []bool{false, true} {
			r := busy(t)
			for _, b := range bindings() {
				r.stage(at.pane, at.tab, inside)
				if b.in&r.app.focus() == 0 || r.app.why(b.id) != "" {
					continue
				}
				cmd, ok := r.app.walk(b.id)
				if !ok {
					cmd, ok = r.app.panes[at.pane].do(b.id)
				}
				if !ok {
					cmd, ok = r.app.do(b.id)
				}
				name, _ := r.app.panes[at.pane].tab()
				require.True(t, ok, "%s does nothing in %s (detail: %v)", b.id, name, inside)
				r.run(cmd)
				r.screen()
				ran[b.id] = true
			}
		}
	}
	for _, b := range bindings() {
		require.True(t, ran[b.id], "%s could be run nowhere", b.id)
	}
}

func TestReasonsAreSentences(t *testing.T) {
	empty, full := newRig(t, 120, 40, "files"), office(t, 120, 40, plainEnv)
	reasons := 0
	for _, r := range []*rig{empty, full} {
		for pane := range 5 {
			for _, inside := range []bool{false, true} {
				r.run(r.app.show(pane))
				r.app.inside = inside
				for i := range r.app.keys.all {
					b := &r.app.keys.all[i]
					for _, why := range []string{r.app.why(b.id), r.app.whyHere(b)} {
						if why == "" {
							continue
						}
						reasons++
						require.GreaterOrEqual(t, len(strings.Fields(why)), 3, "%s: %q", b.id, why)
						require.LessOrEqual(t, look.Width(why), 76, "%s: %q", b.id, why)
						require.False(t, strings.HasSuffix(why, "."), "%s: %q", b.id, why)
						require.False(t, unicode.IsUpper([]rune(why)[0]) && !strings.HasPrefix(why, "Goblin") && !strings.HasPrefix(why, "Enter"), "%s: %q", b.id, why)
					}
				}
			}
		}
	}
	require.Greater(t, reasons, 50)
}

func TestADisabledKeySaysWhy(t *testing.T) {
	r := office(t, 80, 24, plainEnv).keys("2 l s")
	require.Contains(t, r.screen(), "! only resources can be subscribed to")
}
