//go:build interop

package interop

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// followTasks runs testdata/tasks.mjs and returns its output.
func (n *npmServers) followTasks(t *testing.T, env []string, transport e2e.Obj, tool string) json.RawMessage {
	t.Helper()
	file := filepath.Join(t.TempDir(), "spec.json")
	require.NoError(t, os.WriteFile(file, e2e.Marshal(e2e.Obj{"modules": n.dir, "transport": transport, "tool": tool}), 0o600))
	script, err := filepath.Abs(filepath.Join("testdata", "tasks.mjs"))
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, n.node, script, file)
	cmd.Env = env
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	require.NoError(t, cmd.Run(), "%s", stderr.String())
	return stdout.Bytes()
}

func TestInteropTasksOfTheTypeScriptSDKAreTheSameThroughGoblin(t *testing.T) {
	t.Parallel()
	n := newNPM(t)
	const tool = "simulate-research-query"
	command := n.commands("")["everything"]
	command["env"] = e2e.Obj{"PATH": os.Getenv("PATH"), "HOME": t.TempDir()}
	direct := n.followTasks(t, os.Environ(), command, tool)
	require.Equal(t, "required", e2e.Str(direct, "support"))
	require.Contains(t, e2e.Str(direct, "ambiguous", "text"), "practical")
	require.JSONEq(t, `["completed","completed","cancelled"]`, string(e2e.At(direct, "listed")))
	for _, way := range []string{"standalone", "bridged", "http"} {
		t.Run(way, func(t *testing.T) {
			w := e2e.NewWorld(t)
			b, _ := w.Fake("everything", e2e.Obj{})
			for k, v := range n.commands("")["everything"] {
				b.Conf[k] = v
			}
			w.Write()
			env := e2e.Obj{}
			for _, kv := range w.Environ() {
				k, v, _ := strings.Cut(kv, "=")
				env[k] = v
			}
			transport := e2e.Obj{"command": e2e.Goblin, "args": []string{"stdio", "--standalone"}, "env": env}
			switch way {
			case "bridged":
				w.AllowDaemon = true
				transport["args"] = []string{"stdio"}
			case "http":
				transport = e2e.Obj{"url": w.Serve().Base + "/mcp"}
			}
			require.JSONEq(t, string(direct), string(n.followTasks(t, os.Environ(), transport, "everything_"+tool)))
		})
	}
	t.Run("without tasks", func(t *testing.T) {
		w := e2e.NewWorld(t)
		b, _ := w.Fake("everything", e2e.Obj{})
		for k, v := range n.commands("")["everything"] {
			b.Conf[k] = v
		}
		require.Contains(t, w.Succeeds("call", "everything_"+tool, "--args", `{"topic":"bees"}`), "Research Report: bees")
	})
}
