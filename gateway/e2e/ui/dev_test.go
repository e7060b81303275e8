//go:build e2e

package ui

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

func TestDevShowsBuildsInTheUI(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Written, w.Config = true, ""
	path := filepath.Join(w.Dir, "tools.js")
	put := func(text string) {
		require.NoError(t, os.WriteFile(path+".tmp", []byte(text), 0o600))
		require.NoError(t, os.Rename(path+".tmp", path))
	}
	put(`{"name": "shop", "tools": [{"name": "a", "inputSchema": {"type": "object"}}]}`)
	p := w.Pane(140, 40)
	p.Goblin(`dev --build 'grep -q syntax tools.js && { echo no such word; exit 3; }; cp tools.js built.json' -- ` + e2e.TestServer + ` built.json`)
	p.Shows("● ready", "goblin  dev: "+filepath.Base(e2e.TestServer)+" built.json  ", "restarted", "first lists")
	p.Keys("Enter")
	p.Shows("Last build", "watching  1 file")

	put("syntax error")
	p.Shows("build failed", "build of dev failed: exit status 3", "Output of the build", "no such word", "● ready")

	put(`{"name": "shop", "tools": [{"name": "a", "description": "A", "inputSchema": {"type": "object"}}, {"name": "b", "inputSchema": {"type": "object"}}]}`)
	p.Shows("ago: +1 ~1", "~ tool a: description added", "+ tool b")
	p.Hides("build of dev failed")
	p.Types("q")
	p.Restored(e2e.ExitOK)
	require.Empty(t, w.Survivors(e2e.TestServer, e2e.Patience, nil))
}
