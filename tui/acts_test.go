package tui

import (
	"strings"
	"testing"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/stretchr/testify/require"

	"goblin/registry"
	"goblin/tui/look"
)

func TestNoKeyMeansTwoThingsInOneDialog(t *testing.T) {
	tables := append(dialogActs(), struct {
		title string
		acts  acts
	}{"filter", barActs()})
	for _, d := range tables {
		means, ids := map[string]string{}, map[string]bool{}
		for _, a := range d.acts {
			require.False(t, ids[a.id], "%s: %s is there twice", d.title, a.id)
			ids[a.id] = true
			require.NotEmpty(t, a.keys, a.id)
			for _, k := range a.keys {
				require.Empty(t, means[k], "%s: %q is %s and %s", d.title, k, means[k], a.id)
				require.NotEqual(t, "ctrl+z", k)
				means[k] = a.id
			}
			require.Equal(t, strings.ToUpper(a.does[:1]), a.does[:1], a.does)
			require.LessOrEqual(t, look.Width(a.does), 58, a.does)
		}
	}
}

func TestKeysFileNamesEveryKeyOfADialog(t *testing.T) {
	text := newRig(t, 80, 24, "files").app.keysDoc()
	for _, d := range dialogActs() {
		_, rest, ok := strings.Cut(text, "### "+d.title+"\n")
		require.True(t, ok, d.title)
		section, _, _ := strings.Cut(rest, "\n#")
		for _, a := range d.acts {
			for _, k := range a.keys {
				require.Contains(t, section, "`"+show(k)+"`", d.title)
			}
			require.Contains(t, section, escaped(a.does), d.title)
		}
	}
}

// closing are the keys that take each dialog off the screen.
func TestEveryKeyThatClosesADialogDoes(t *testing.T) {
	for name, d := range map[string]struct {
		open string
		acts acts
	}{
		"palette": {":", paletteActs()}, "help": {"?", helpActs()}, "subscriptions": {"w", watchedActs()},
		"facet": {"4 f", facetActs()}, "setup": {": s e t u p enter", setupActs()}, "exchange": {"", exchangeActs()},
	} {
		for _, a := range d.acts {
			if a.id != "close" && a.id != "back" {
				continue
			}
			for _, k := range a.keys {
				r := subs(t, 120, 40).keys(d.open)
				if name == "exchange" {
					r.run(r.app.openExchange(registry.TrafficRecord{Method: "tools/list"}))
				}
				require.Len(t, r.app.dialogs, 1, name)
				r.keys(k)
				require.Empty(t, r.app.dialogs, "%s: %s", name, k)
			}
		}
	}
}

func TestAKeyOfADialogIsNoTextTypedFast(t *testing.T) {
	require.Equal(t, "page-up", paletteActs().of(tea.KeyMsg{Type: tea.KeyPgUp}))
	require.Empty(t, paletteActs().of(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune("pgup")}))
	require.Equal(t, "tick", facetActs().of(keyOf("space")))
	require.Equal(t, "down", helpActs().of(keyOf("j")))
}
