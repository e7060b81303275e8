//go:build interop

package interop

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// The reference servers keep the rules, except where the finding is true.
func TestCheckFindsNoErrorsInTheReferenceServers(t *testing.T) {
	n := newNPM(t)
	for name, command := range n.commands(filepath.Join(t.TempDir(), "memory.jsonl")) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			b, _ := w.Fake(name, e2e.Obj{})
			b.Conf = command
			out := w.Run("check", name, "--read", "--json")
			require.Zero(t, out.Code, out.Stdout+out.Stderr)
			for _, f := range e2e.Each(json.RawMessage(out.Stdout), "findings") {
				rule := e2e.Str(f, "rule")
				require.Contains(t, []string{"description/argument", "description/prompt"}, rule, "%s", f)
			}
		})
	}
}

func TestCheckRunsTheConformanceSuite(t *testing.T) {
	n := newNPM(t)
	w := e2e.NewWorld(t)
	b, _ := w.Fake("everything", e2e.Obj{})
	b.Conf = n.commands("")["everything"]
	w.Cwd = n.dir // npx takes the installed suite
	w.Env = append(w.Env, "PATH="+filepath.Dir(n.node)+string(os.PathListSeparator)+os.Getenv("PATH"))
	out := w.Run("check", "everything", "--conformance", "--json")
	require.Zero(t, out.Code, out.Stderr)
	suite := e2e.At(json.RawMessage(out.Stdout), "conformance")
	require.Empty(t, e2e.Str(suite, "problem"))
	var found struct {
		Scenarios int
		Failed    []string
	}
	require.NoError(t, json.Unmarshal(suite, &found))
	require.Greater(t, found.Scenarios, 25)
	require.NotContains(t, found.Failed, "ping")
	require.Contains(t, found.Failed, "tools-call-simple-text", "the server has no such tool")
}
