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

// showApps runs testdata/apps.mjs and returns its output.
func (n *npmServers) showApps(t *testing.T, revision string, transport e2e.Obj) json.RawMessage {
	t.Helper()
	file := filepath.Join(t.TempDir(), "spec.json")
	require.NoError(t, os.WriteFile(file, e2e.Marshal(e2e.Obj{"modules": n.dir, "revision": revision, "transport": transport}), 0o600))
	script, err := filepath.Abs(filepath.Join("testdata", "apps.mjs"))
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, n.node, script, file)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	require.NoError(t, cmd.Run(), "%s", stderr.String())
	return stdout.Bytes()
}

func TestInteropAppsOfTheOfficialLibraryAreTheSameThroughGoblin(t *testing.T) {
	n := newNPM(t)
	apps := map[string]string{"get-budget-data": "budget-allocator", "get-system-info": "system-monitor"}
	command := func(server string) e2e.Obj {
		return e2e.Obj{"command": n.node, "args": []string{n.script("server-" + server), "--stdio"}}
	}
	direct := map[string]json.RawMessage{}
	for tool, server := range apps {
		transport := command(server)
		transport["env"] = e2e.Obj{"PATH": os.Getenv("PATH"), "HOME": t.TempDir()}
		direct[tool] = e2e.At(n.showApps(t, e2e.Revision, transport), tool) // they speak no newer one over stdio
		require.Equal(t, "false", string(e2e.At(direct[tool], "error")), "%s", direct[tool])
		require.Equal(t, "text/html;profile=mcp-app", e2e.Str(direct[tool], "contents", 0, "mimeType"))
	}
	for _, c := range []struct{ revision, way, namespace string }{
		{e2e.Revision, "stdio", "uri"},
		{e2e.ModernRevision, "http", "uri"},
		{e2e.Revision, "http", "flat"},
		{e2e.ModernRevision, "stdio", "flat"},
	} {
		t.Run(c.revision+" "+c.way+" "+c.namespace, func(t *testing.T) {
			w := e2e.NewWorld(t)
			w.Gateway["namespace"] = c.namespace
			for _, server := range apps {
				b, _ := w.Fake(server, e2e.Obj{})
				b.Conf = command(server)
			}
			w.Write()
			env := e2e.Obj{}
			for _, kv := range w.Environ() {
				k, v, _ := strings.Cut(kv, "=")
				env[k] = v
			}
			transport := e2e.Obj{"command": e2e.Goblin, "args": []string{"stdio", "--standalone"}, "env": env}
			if c.way == "http" {
				transport = e2e.Obj{"url": w.Serve().Base + "/mcp"}
			}
			through := n.showApps(t, c.revision, transport)
			for tool, server := range apps {
				own := e2e.Str(direct[tool], "uri")
				want := "ui://" + server + "/" + strings.TrimPrefix(own, "ui://")
				require.Equal(t, want, e2e.Str(through, tool, "uri"))
				// That is the only difference.
				require.JSONEq(t, strings.ReplaceAll(string(direct[tool]), `"`+own+`"`, `"`+want+`"`), string(e2e.At(through, tool)))
			}
		})
	}
}
