//go:build e2e

package daemon

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// records are the files in which processes of a world keep their children.
func records(w *e2e.World) []string {
	w.T.Helper()
	found, err := filepath.Glob(filepath.Join(w.Dir, "run", "goblin", "children-*"))
	require.NoError(w.T, err)
	return found
}

func TestChildrenOfARunningProcessAreLeftAlone(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("b", e2e.Filesystem())
	c := w.Standalone()
	c.Names("tools")
	b.Do(e2e.Do("grandchild"))
	w.Succeeds("list", "tools")
	require.Equal(t, "b:stat:{}", c.CallText("b_stat", e2e.Obj{}))
	require.Len(t, w.Processes(" -sleep "), 1)
	require.Len(t, records(w), 1)
	c.Close()
	require.Zero(t, c.Prog.Ends(e2e.Patience))
	require.Empty(t, records(w), "who ends by itself leaves nothing to do")
}
