//go:build e2e

package inputs

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// A screen over an own config begins with the servers, zooms what has the focus, and marks a
// config that became invalid until it is valid again.
func TestAScreenOverAnOwnConfig(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("shop", e2e.Filesystem())
	p := w.Pane(80, 24)
	editor := filepath.Join(t.TempDir(), "nano") // by whose name its line is known
	ran := editor + ".ran"
	require.NoError(t, os.WriteFile(editor, []byte("#!/bin/sh\necho \"$@\" > "+ran+".new && mv "+ran+".new "+ran+"\n"), 0o700))
	p.Line("export VISUAL=%s", editor)
	p.Goblin("")
	p.Shows("[1 Servers 1]", "shop", "ready")

	p.Types("2")
	p.Shows("[2 Tools", "shop_stat")
	p.Types("/shop_stat")
	p.Keys("Enter", "Enter")
	p.Shows("Tools 1/", "Definition")
	p.Keys("Enter")
	p.Hides("Tools 1/")
	p.Shows("shop_stat")
	p.Keys("Escape")
	p.Shows("Tools 1/")

	good, err := os.ReadFile(w.Config)
	require.NoError(t, err)
	bad := strings.TrimRight(string(good), "\n") + "\nsurprise: 1\nanother: 2\n"
	line := strings.Count(string(bad), "\n")
	require.NoError(t, os.WriteFile(w.Config, []byte(bad), 0o600))
	p.Shows("! config invalid")
	p.Types("!")
	p.Shows("Config not reloaded: 2 mistakes", "surprise", "another")
	p.Types("j")
	p.Keys("Enter")
	e2e.Eventually(t, "the editor runs", func() bool { _, err := os.Stat(ran); return err == nil })
	args, err := os.ReadFile(ran)
	require.NoError(t, err)
	require.Equal(t, "+"+strconv.Itoa(line)+" "+w.Config+"\n", string(args))
	p.Shows("Config not reloaded")
	require.NoError(t, os.WriteFile(w.Config, good, 0o600))
	p.Hides("config invalid")
	p.Hides("Config not reloaded")
	p.Types("q")
	p.Restored(e2e.ExitOK)
}
