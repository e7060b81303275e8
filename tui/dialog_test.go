package tui

import (
	"strings"
	"testing"

	"goblin/tui/dialog"
	"goblin/tui/pane"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/stretchr/testify/require"

	"goblin/registry"
	"goblin/registry/keymap"
	"goblin/tui/keys"
	"goblin/tui/theme"
)

func TestNoKeyMeansTwoThingsInOneDialog(t *testing.T) {
	for _, d := range newRig(t, 80, 24, "files").app.dialogKeys() {
		means, ids := map[string]string{}, map[string]bool{}
		for _, a := range d.keys {
			require.False(t, ids[a.ID], "%s: %s is there twice", d.title, a.ID)
			ids[a.ID] = true
			require.NotEmpty(t, a.Keys, a.ID)
			for _, k := range a.Keys {
				require.Empty(t, means[k], "%s: %q is %s and %s", d.title, k, means[k], a.ID)
				require.NotEqual(t, "ctrl+z", k)
				means[k] = a.ID
			}
			require.Equal(t, strings.ToUpper(a.Long[:1]), a.Long[:1], a.Long)
			require.LessOrEqual(t, theme.Width(a.Long), 58, a.Long)
		}
	}
}

func TestKeysFileNamesEveryKeyOfADialog(t *testing.T) {
	a := newRig(t, 80, 24, "files").app
	text := a.keysDoc()
	for _, d := range a.dialogKeys() {
		_, rest, ok := strings.Cut(text, "### "+d.title+"\n")
		require.True(t, ok, d.title)
		section, _, _ := strings.Cut(rest, "\n#")
		for _, a := range d.keys {
			for _, k := range a.Keys {
				require.Contains(t, section, inCode(keymap.Show(k)), d.title)
			}
			require.Contains(t, section, escaped(a.Long), d.title)
		}
	}
}

// closing are the keys that take each dialog off the screen.
func TestEveryKeyThatClosesADialogDoes(t *testing.T) {
	for name, d := range map[string]struct {
		open string
		keys keys.Table
	}{
		"palette": {":", (*palette)(nil).Keys()}, "help": {"?", (*help)(nil).Keys()}, "subscriptions": {"w", new(dialog.Subscriptions).ListKeys()}, "clients": {"0", new(dialog.Clients).ListKeys()},
		"facet": {"4 f", (*dialog.FilterList)(nil).Keys()}, "setup": {": s e t u p enter", (*setup)(nil).Keys()}, "exchange": {"", (*pane.Exchange)(nil).Keys()},
	} {
		for _, a := range d.keys {
			if !strings.HasSuffix(a.ID, ".close") && !strings.HasSuffix(a.ID, ".back") {
				continue
			}
			for _, k := range keymap.Change(nil)[a.ID].Keys {
				r := subs(t, 120, 40).keys(d.open)
				if name == "exchange" {
					r.run(r.app.OpenExchange(registry.TrafficRecord{Method: "tools/list"}))
				}
				require.Len(t, r.app.Dialogs, 1, name)
				r.keys(k)
				require.Empty(t, r.app.Dialogs, "%s: %s", name, k)
			}
		}
	}
}

func TestAKeyOfADialogIsNoTextTypedFast(t *testing.T) {
	found := func(t keys.Table, k tea.KeyMsg) string {
		if b := t.WithKeys(keymap.Change(nil)).Find(k, 0); b != nil {
			return b.ID
		}
		return ""
	}
	require.Equal(t, "palette.page-up", found((*palette)(nil).Keys(), tea.KeyMsg{Type: tea.KeyPgUp}))
	require.Empty(t, found((*palette)(nil).Keys(), tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune("pgup")}))
	require.Equal(t, "values.tick", found((*dialog.FilterList)(nil).Keys(), keyOf("space")))
	require.Equal(t, "help.down", found((*help)(nil).Keys(), keyOf("down")))
}
