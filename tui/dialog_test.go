package tui

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/registry/keymap"
	"goblin/tui/dialog"
	"goblin/tui/help"
	"goblin/tui/keys"
	"goblin/tui/palette"
	"goblin/tui/theme"
)

func TestNoKeyMeansTwoThingsInOneDialog(t *testing.T) {
	t.Parallel()
	for _, d := range newTestUI(t, 80, 24, "files").app.dialogKeys() {
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
			require.LessOrEqual(t, theme.Width(a.Long), 58, a.Long)
		}
	}
}

func TestEveryKeyThatClosesADialogDoes(t *testing.T) {
	t.Parallel()
	for name, d := range map[string]struct {
		open string
		keys keys.Table
	}{
		"palette": {":", (*palette.Dialog)(nil).Keys()}, "help": {"?", (*help.Dialog)(nil).Keys()}, "subscriptions": {"w", new(dialog.Subscriptions).ListKeys()}, "clients": {"0", new(dialog.Clients).ListKeys()},
		"facet": {"4 f", (*dialog.FilterList)(nil).Keys()}, "setup": {": s e t u p enter", (*help.Setup)(nil).Keys()},
	} {
		for _, a := range d.keys {
			if !strings.HasSuffix(a.ID, ".close") && !strings.HasSuffix(a.ID, ".back") {
				continue
			}
			for _, k := range keymap.Rebind(nil)[a.ID].Keys {
				r := newSubscribedUI(t, 120, 40).keys(d.open)
				require.Len(t, r.app.Dialogs, 1, name)
				r.keys(k)
				require.Empty(t, r.app.Dialogs, "%s: %s", name, k)
			}
		}
	}
}
