//go:build e2e

package catalog

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// slow is a server that answers initialize at once when it is started for the first time,
// and then not before it is told to go.
func slow(more ...e2e.Obj) e2e.Obj {
	return e2e.Merge(e2e.Obj{
		"instructions": "be patient with it",
		"tools":        []e2e.Obj{e2e.Tool("tell")},
		"prompts":      []e2e.Obj{e2e.Prompt("p")},
		"resources":    []e2e.Obj{e2e.Resource("x:1")},
		"on": e2e.Obj{
			"initialize":      e2e.Actions(e2e.Do("wait", e2e.Obj{"name": "go", "after": 1})),
			"tools/call tell": e2e.Actions(e2e.Do("progress", e2e.Obj{"n": 1}), e2e.Do("text", e2e.Obj{"text": "told"})),
		},
	}, more)
}

// remembered has a daemon list once, and end; it returns the file of what is remembered of a
// server.
func remembered(t *testing.T, w *e2e.World, server, tool string) (file string) {
	t.Helper()
	c := w.Standalone()
	require.Equal(t, []string{tool}, c.Names("tools"))
	c.Close()
	c.Prog.Ends(e2e.Patience)
	return onlyFile(t, w, server)
}

// onlyFile is the only file of a server in the catalog.
func onlyFile(t *testing.T, w *e2e.World, server string) string {
	t.Helper()
	files := catalogOf(w, server)
	require.Len(t, files, 1)
	return files[0]
}

func catalogOf(w *e2e.World, server string) []string {
	files, _ := filepath.Glob(filepath.Join(w.Dir, "home", ".local", "state", "goblin", "catalog", server+"-*"))
	return files
}

func TestWhatAServerListedIsThereBeforeItHasStarted(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("slow", slow())
	info, err := os.Stat(remembered(t, w, "slow", "slow_tell"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	c := w.Pipe("stdio", "--standalone")
	require.Contains(t, string(c.Init()), "be patient with it")
	require.Equal(t, []string{"slow_tell"}, c.Names("tools"))
	require.Contains(t, c.ReadText("goblin://servers"), `"remembered":`)
	id := c.Begin("tools/call", e2e.Obj{"name": "slow_tell", "_meta": e2e.Obj{"progressToken": "mine"}})
	p := b.WaitStarts(2)
	waiting := c.Noted("notifications/progress", nil)
	require.Equal(t, "mine", e2e.Str(waiting.Params, "progressToken"))
	require.Equal(t, `Server "slow" is starting`, e2e.Str(waiting.Params, "message"))
	b.DoAt(p, e2e.Do("release", e2e.Obj{"name": "go"}))
	require.Equal(t, "told", e2e.Str(c.End(id).Result, "content", 0, "text"))
	last := float64(-1)
	for _, note := range c.NotesOf("notifications/progress") {
		var now float64
		require.NoError(t, json.Unmarshal(e2e.At(note.Params, "progress"), &now))
		require.Greater(t, now, last, "progress rises")
		last = now
	}
	require.Equal(t, 1.0, last, "the last one is the server's own")
	e2e.Eventually(t, "the lists are the server's own", func() bool {
		return !strings.Contains(c.ReadText("goblin://servers"), `"remembered":`)
	})
	c.Settle()
	for _, list := range []string{"tools", "prompts", "resources"} {
		require.Empty(t, c.NotesOf("notifications/"+list+"/list_changed"), "nothing differs")
	}
}

func TestAServerThatCannotStartKeepsWhatIsRememberedAndSaysWhy(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("broken", slow(e2e.Obj{"on": e2e.Obj{
		"initialize": e2e.Actions(e2e.Do("crash", e2e.Obj{"text": "the disk is gone", "code": 3, "after": 1})),
	}}))
	remembered(t, w, "broken", "broken_tell")
	c := w.Standalone()
	failed := c.Fails(e2e.Obj{"name": "broken_tell"})
	require.Equal(t, "CONNECTION_ERROR", failed.Kind())
	require.Contains(t, failed.Message, "the disk is gone")
	b.WaitStarts(3) // it is tried again
	require.Equal(t, []string{"broken_tell"}, c.Names("tools"))
}
