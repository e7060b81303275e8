package catalog

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

func TestWhatAServerListedIsThereBeforeItHasStarted(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("slow", e2e.Obj{
		"instructions": "be patient with it",
		"tools":        []e2e.Obj{e2e.Tool("tell")},
		"on":           e2e.Obj{"initialize": []e2e.Obj{{"do": "wait", "name": "go", "after": 1}}},
	})
	first := w.Standalone()
	require.Equal(t, []string{"slow_tell"}, first.Names("tools"))
	var files []string
	e2e.Eventually(t, "the lists are on disk", func() bool {
		files, _ = filepath.Glob(filepath.Join(w.Dir, "home", ".local", "state", "goblin", "catalog", "slow-*"))
		return len(files) == 1
	})
	info, err := os.Stat(files[0])
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	second := w.Pipe("stdio", "--standalone")
	require.Contains(t, string(second.Init()), "be patient with it")
	require.Equal(t, []string{"slow_tell"}, second.Names("tools"))
	p := b.WaitStarts(2)
	require.Contains(t, second.ReadText("goblin://servers"), `"remembered":`)
	id := second.Begin("tools/call", e2e.Obj{"name": "slow_tell"})
	b.DoAt(p, e2e.Obj{"do": "release", "name": "go"})
	require.Nil(t, second.End(id).Error)
	e2e.Eventually(t, "the lists are the server's own", func() bool {
		return len(second.NotesOf("notifications/tools/list_changed")) == 0 &&
			!strings.Contains(second.ReadText("goblin://servers"), `"remembered":`)
	})
	second.Quiet()
}
