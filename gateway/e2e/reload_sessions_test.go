package e2e_test

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// rewrite replaces the config file, as an editor does.
func rewrite(w *e2e.World, change func(text string) string) {
	w.T.Helper()
	text, err := os.ReadFile(w.Config)
	require.NoError(w.T, err)
	require.NoError(w.T, os.WriteFile(w.Config+".new", []byte(change(string(text))), 0o600))
	require.NoError(w.T, os.Rename(w.Config+".new", w.Config))
}

func edited(text string) string {
	return strings.Replace(text, `"linger":"60s"`, `"linger":"59s","page_size":7`, 1) + "# edited\nlua: {calls: 5}\n"
}

func TestEditedConfigKeepsItsDaemon(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("b", e2e.Filesystem())
	c := w.Bridged()
	require.Equal(t, "b:stat:{}", c.CallText("b_stat", e2e.Obj{}))
	pid := w.DaemonPID()
	rewrite(w, edited)
	require.Contains(t, w.Succeeds("status", "--json"), `"pid": `+strconv.Itoa(pid))
	two := w.Bridged()
	require.Equal(t, "b:stat:{}", two.CallText("b_stat", e2e.Obj{}))
	require.Equal(t, 1, b.Starts())
	require.Len(t, w.Sockets(), 1)
	w.Succeeds("restart", "b")
	b.WaitStarts(2)
	for _, c := range []*e2e.Client{c, two} {
		c.Close()
		require.Zero(t, c.Prog.Ends(e2e.Patience))
	}
	require.Contains(t, w.Succeeds("stop"), strconv.Itoa(pid))
	b.WaitGone()
}
