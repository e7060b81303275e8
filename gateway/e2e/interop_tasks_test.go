//go:build interop

package e2e

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
)

// followTasks runs testdata/tasks.mjs, and gives what it prints.
func (n *npmServers) followTasks(t *testing.T, env []string, transport obj, tool string) json.RawMessage {
	t.Helper()
	file := filepath.Join(t.TempDir(), "spec.json")
	require.NoError(t, os.WriteFile(file, marshal(obj{"modules": n.dir, "transport": transport, "tool": tool}), 0o600))
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
	n := newNPM(t)
	const tool = "simulate-research-query"
	command := n.commands("")["everything"]
	command["env"] = obj{"PATH": os.Getenv("PATH"), "HOME": t.TempDir()}
	direct := n.followTasks(t, os.Environ(), command, tool)
	require.Equal(t, "required", str(direct, "support"))
	require.Contains(t, str(direct, "ambiguous", "text"), "practical")
	require.JSONEq(t, `["completed","completed","cancelled"]`, string(at(direct, "listed")))
	for _, way := range []string{"standalone", "bridged", "http"} {
		t.Run(way, func(t *testing.T) {
			w := newWorld(t)
			b, _ := w.fake("everything", obj{})
			for k, v := range n.commands("")["everything"] {
				b.conf[k] = v
			}
			w.write()
			env := obj{}
			for _, kv := range w.environ() {
				k, v, _ := strings.Cut(kv, "=")
				env[k] = v
			}
			transport := obj{"command": goblin, "args": []string{"stdio", "--standalone"}, "env": env}
			switch way {
			case "bridged":
				w.hosted = true
				transport["args"] = []string{"stdio"}
			case "http":
				transport = obj{"url": w.serve().base + "/mcp"}
			}
			require.JSONEq(t, string(direct), string(n.followTasks(t, os.Environ(), transport, "everything_"+tool)))
		})
	}
	t.Run("without tasks", func(t *testing.T) {
		w := newWorld(t)
		b, _ := w.fake("everything", obj{})
		for k, v := range n.commands("")["everything"] {
			b.conf[k] = v
		}
		require.Contains(t, w.succeeds("call", "everything_"+tool, "--args", `{"topic":"bees"}`), "Research Report: bees")
	})
}
