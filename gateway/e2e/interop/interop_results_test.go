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

// cut is a result as testdata/results.mjs prints it.
type cut struct {
	Texts, Pages      []string
	MimeType          string
	Size, Missing     int
	StructuredContent struct{ Content string }
}

// whole returns the text before it was cut: head, omitted part and tail.
func (c cut) whole(t *testing.T) string {
	t.Helper()
	require.Len(t, c.Texts, 3)
	require.Contains(t, c.Texts[1], "[Goblin removed ")
	return c.Texts[0] + strings.Join(c.Pages, "") + c.Texts[2]
}

func TestInteropLongResultsAreReadByTheTypeScriptSDK(t *testing.T) {
	t.Parallel()
	n := newNPM(t)
	long := strings.Repeat("grüße, line after line\n", 2000)
	file := filepath.Join(n.files, "long.txt")
	require.NoError(t, os.WriteFile(file, []byte(long), 0o600))
	script, err := filepath.Abs(filepath.Join("testdata", "results.mjs"))
	require.NoError(t, err)
	for _, way := range []string{"standalone", "bridged", "http"} {
		t.Run(way, func(t *testing.T) {
			w := e2e.NewWorld(t)
			w.Gateway["meta_tools"] = []string{"execute_lua", "call_tool"}
			b, _ := w.Fake("filesystem", e2e.Obj{})
			for k, v := range n.commands("")["filesystem"] {
				b.Conf[k] = v
			}
			w.Profiles = e2e.Obj{"default": e2e.Obj{"max_result": "8KiB"}}
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
			read := e2e.Obj{"path": file}
			spec := filepath.Join(t.TempDir(), "spec.json")
			require.NoError(t, os.WriteFile(spec, e2e.Marshal(e2e.Obj{"modules": n.dir, "transport": transport, "calls": []e2e.Obj{
				{"name": "filesystem_read_text_file", "arguments": read},
				{"name": "call_tool", "arguments": e2e.Obj{"name": "filesystem_read_text_file", "arguments": read}},
				{"name": "execute_lua", "arguments": e2e.Obj{"script": `return string.rep("line after line\n", 3000)`}},
				{"name": "filesystem_read_text_file", "arguments": e2e.Obj{"path": filepath.Join(n.files, "a.txt")}},
			}}), 0o600))
			ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, n.node, script, spec)
			cmd.Env = os.Environ()
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			require.NoError(t, cmd.Run(), "%s", stderr.String())
			var results []cut
			require.NoError(t, json.Unmarshal(stdout.Bytes(), &results))
			require.Len(t, results, 4)
			for i, want := range []string{long, long, strings.Repeat("line after line\n", 3000)} {
				r := results[i]
				require.True(t, r.whole(t) == want, "result %d, which is too long to print", i)
				require.Greater(t, len(r.Pages), 4)
				for _, part := range append(r.Pages, r.Texts...) {
					require.LessOrEqual(t, len(part), 8<<10)
				}
				require.Equal(t, "text/plain", r.MimeType)
				require.Equal(t, len(strings.Join(r.Pages, "")), r.Size)
				require.Equal(t, -32002, r.Missing)
				if i < 2 {
					require.True(t, r.StructuredContent.Content == long, "structured content is not cut")
				}
			}
			require.Equal(t, []string{"the text of a\n"}, results[3].Texts)
			require.Empty(t, results[3].Pages)
		})
	}
}
