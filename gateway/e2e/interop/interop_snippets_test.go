//go:build interop

package interop

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
	"goblin/registry"
	"goblin/registry/export"
)

// snippetRequests are requests whose texts end quotes, expand or hide in a language.
var snippetRequests = map[string]string{
	"tools/call":          `{"name":"b_stat","arguments":{"text":"it's \"ü\" \\ $(id) ${x} \n \u2028 \u202e \ud83d\udc55 </script>","__proto__":{"a":1},"n":1.50,"l":[true,false,null]}}`,
	"prompts/get":         `{"name":"b/greet","arguments":{"who":"O'Neil \"\\ \n"}}`,
	"resources/read":      `{"uri":"` + e2e.AppLog + `"}`,
	"tools/list":          `{}`,
	"completion/complete": `{"ref":{"type":"ref/prompt","name":"b/greet"},"argument":{"name":"who","value":"'\""}}`,
}

// runSnippets runs the snippets of a language over HTTP and stdio and compares the
// arguments that the server gets.
func runSnippets(t *testing.T, language string, run func(t *testing.T, w *e2e.World, file string) *exec.Cmd) {
	for _, way := range []string{"http", "stdio"} {
		t.Run(way, func(t *testing.T) {
			w := e2e.NewWorld(t)
			w.Gateway["auth_token"] = "the-token-of-http"
			b := w.Backend("b", e2e.Shop())
			at := export.Endpoint{Command: []string{e2e.Goblin, "stdio", "--standalone", "--config", w.Config}}
			if way == "http" {
				at = export.Endpoint{URL: w.Served().Base + "/mcp"}
			}
			w.Write()
			for method, params := range snippetRequests {
				rec := &registry.TrafficRecord{Method: method, Request: []byte(params), RequestSize: len(params)}
				for _, s := range export.Snippets(rec, at) {
					if s.Language != language {
						continue
					}
					require.Empty(t, s.Why)
					file := filepath.Join(t.TempDir(), "snippet"+s.Extension())
					require.NoError(t, os.WriteFile(file, []byte(s.Text), 0o600))
					out, err := run(t, w, file).CombinedOutput()
					require.NoError(t, err, "%s: %s\n%s", method, out, s.Text)
					require.Contains(t, string(out), map[string]string{
						"tools/call": "b:stat", "prompts/get": "messages", "resources/read": "line one", "tools/list": "b_stat", "completion/complete": "completion",
					}[method])
				}
			}
			for method, path := range map[string]string{"tools/call": "arguments", "prompts/get": "arguments"} {
				sent := b.WaitReceived(method, 1)
				require.JSONEq(t, string(e2e.At(json.RawMessage(snippetRequests[method]), path)), string(e2e.At(sent.Msg, "params", path)))
			}
		})
	}
}

func TestInteropSnippetsRunWithTheTypeScriptSDK(t *testing.T) {
	t.Parallel()
	dir := npm(t)
	runSnippets(t, export.TypeScript, func(t *testing.T, w *e2e.World, file string) *exec.Cmd {
		require.NoError(t, os.Symlink(filepath.Join(dir, "node_modules"), filepath.Join(filepath.Dir(file), "node_modules")))
		plain := filepath.Join(filepath.Dir(file), "snippet.mjs") // the snippets are JavaScript too
		require.NoError(t, os.Rename(file, plain))
		cmd := exec.Command(nodeBinary(dir), plain)
		cmd.Env = append(w.Environ(), "MCP_TOKEN=the-token-of-http")
		return cmd
	})
}

func TestInteropSnippetsRunWithThePythonSDK(t *testing.T) {
	t.Parallel()
	python := pythonWithSDK(t)
	runSnippets(t, export.Python, func(_ *testing.T, w *e2e.World, file string) *exec.Cmd {
		cmd := exec.Command(python, file)
		cmd.Env = append(w.Environ(), "MCP_TOKEN=the-token-of-http")
		return cmd
	})
}

// pythonWithSDK returns a Python that has the SDK. It installs the SDK into an environment
// of its own, and skips the test if that is impossible.
func pythonWithSDK(t *testing.T) string {
	t.Helper()
	const sdk = "mcp<2"
	folder := filepath.Join(cacheDir(t), "python")
	python := filepath.Join(folder, "bin", "python")
	if exec.Command(python, "-c", "import mcp").Run() == nil {
		return python
	}
	if out, err := exec.Command("python3", "-m", "venv", folder).CombinedOutput(); err != nil {
		t.Skipf("no Python: %v %s", err, out)
	}
	if out, err := exec.Command(python, "-m", "pip", "install", "--quiet", sdk).CombinedOutput(); err != nil {
		t.Skipf("cannot install %s: %s", sdk, out)
	}
	return python
}
