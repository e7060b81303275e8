//go:build e2e

package commands

import (
	"archive/zip"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
	"goblin/registry"
	"goblin/registry/export"
)

// recorded writes a recording of calls to the server b and returns its path.
func recorded(t *testing.T, w *e2e.World) string {
	t.Helper()
	lines := []string{
		`{"type":"recording","time":"2026-01-02T03:04:05Z","version":1,"goblin":"0.1.0","bodies":true}`,
		`{"type":"client","time":"2026-01-02T03:04:05Z","session":"s1","client":"agent"}`,
		`{"type":"request","time":"2026-01-02T03:04:06Z","n":17,"session":"s1","client":"agent","server":"b","method":"tools/call","name":"b_stat","took":5,"outcome":"success","requestSize":30,"params":{"name":"b_stat","arguments":{"text":"it's $(id) \"ü\""}},"answer":{"content":[]}}`,
		`{"type":"request","time":"2026-01-02T03:04:07Z","n":18,"session":"s1","client":"agent","server":"b","method":"tools/list","took":1,"outcome":"success","params":{},"answer":{"tools":[]}}`,
	}
	path := filepath.Join(w.Dir, "one.jsonl")
	require.NoError(t, os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	return path
}

func TestExportWritesEachFormat(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("b", e2e.Shop())
	path := recorded(t, w)
	for _, format := range export.Formats() {
		text := w.Succeeds("export", path, "--format", string(format))
		require.Contains(t, text, "b_stat", format)
		out := filepath.Join(w.Dir, "out"+format.Extension())
		require.NoError(t, os.WriteFile(out, []byte("before"), 0o644))
		summary := w.Succeeds("export", path, "-o", out, "--json")
		require.Equal(t, "2", string(e2e.At(json.RawMessage(summary), "requests")))
		written, err := os.ReadFile(out)
		require.NoError(t, err)
		require.Equal(t, text, string(written), "the name of the output decides the format")
		info, err := os.Stat(out)
		require.NoError(t, err)
		if runtime.GOOS != "windows" {
			require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
		}
	}
	one := w.Succeeds("export", path+"#17", "--format", "jsonl")
	require.Contains(t, one, "b_stat")
	require.NotContains(t, one, "tools/list")
}

func TestExportExplainsWhatIsWrong(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	path := recorded(t, w)
	other := filepath.Join(w.Dir, "other.txt")
	require.NoError(t, os.WriteFile(other, []byte("hello\n"), 0o600))
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"missing", "--format", "har"}, e2e.ExitConnect, `"missing" is no file`},
		{[]string{path}, 2, "needs --format: har, otlp, html, jsonl, curl, bundle"},
		{[]string{path, "--format", "hra"}, 2, `unknown format "hra"; did you mean`},
		{[]string{path + "#99", "--format", "har"}, e2e.ExitNotFound, "no request 99"},
		{[]string{filepath.Join(w.Dir, "missing.jsonl"), "--format", "har"}, e2e.ExitNotFound, "missing.jsonl"},
		{[]string{other, "--format", "har"}, 1, "not a recording"},
		{[]string{path, "--format", "curl", "--url", "file:///x"}, 1, "invalid URL"},
		{[]string{path, "-o", w.Dir, "--format", "har"}, 1, "is a folder"},
	} {
		out := w.Run(append([]string{"export"}, c.args...)...)
		require.Equal(t, c.code, out.Code, "%v: %s", c.args, out.Stderr)
		require.Contains(t, out.Stderr, c.want)
	}
}

func TestABundleHasTheTrafficAndNoSecrets(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("b", e2e.Shop(), e2e.Obj{"env": e2e.Obj{"TOKEN": "hunter2-hunter2"}, "tools": e2e.Obj{"deny": []string{"move"}}})
	path := recorded(t, w)
	file := filepath.Join(w.Dir, "report.zip")
	out := w.Run("export", path, "-o", file)
	require.Zero(t, out.Code, out.Stderr)
	for _, want := range []string{"recording.jsonl", "config.json", "doctor.json", "version.json", "includes arguments and results"} {
		require.Contains(t, out.Stderr, want)
	}
	files := unzip(t, file)
	require.Contains(t, files["recording.jsonl"], "b_stat")
	require.Contains(t, files["config.json"], "move")
	require.Contains(t, files["doctor.json"], `"serverId": "b"`)
	require.Contains(t, files["version.json"], `"go"`)
	for name, text := range files {
		require.NotContains(t, text, "hunter2", name)
	}
	out = w.Run("export", path, "-o", file, "--no-bodies")
	require.Zero(t, out.Code, out.Stderr)
	require.NotContains(t, out.Stderr, "includes arguments")
	require.NotContains(t, unzip(t, file)["recording.jsonl"], "it's")
}

func unzip(t *testing.T, path string) map[string]string {
	t.Helper()
	z, err := zip.OpenReader(path)
	require.NoError(t, err)
	defer z.Close()
	all := map[string]string{}
	for _, f := range z.File {
		r, err := f.Open()
		require.NoError(t, err)
		text, err := io.ReadAll(r)
		require.NoError(t, err)
		require.NoError(t, r.Close())
		all[f.Name] = string(text)
	}
	return all
}

func TestTheCurlScriptAndTheCommandReachTheServer(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"curl", "sh", "awk"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("not found: " + program)
		}
	}
	w := e2e.NewWorld(t)
	w.Gateway["auth_token"] = "the-token-of-http"
	w.Backend("b", e2e.Shop())
	s := w.Served()
	script := w.Succeeds("export", recorded(t, w), "--format", "curl", "--url", s.Base+"/mcp")
	cmd := exec.Command("sh")
	cmd.Stdin = strings.NewReader(script)
	cmd.Env = append(os.Environ(), "MCP_TOKEN=the-token-of-http")
	answers, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", answers)
	require.Contains(t, string(answers), "b:stat")
	require.Contains(t, string(answers), `"tools":[`)

	params := `{"name":"b_stat","arguments":{"text":"it's $(id) \"ü\" \\ \n EOF"}}`
	rec := &registry.TrafficRecord{Method: "tools/call", Request: []byte(params), RequestSize: len(params)}
	for _, snippet := range export.Snippets(rec, export.Endpoint{Config: w.Config, URL: s.Base + "/mcp"}) {
		if snippet.Language == export.GoblinCommand || snippet.Language == export.CurlCommand {
			cmd := exec.Command("sh", "-c", strings.Replace(snippet.Text, "goblin ", e2e.Goblin+" ", 1))
			cmd.Env = append(w.Environ(), "MCP_TOKEN=the-token-of-http")
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)
			require.Contains(t, string(out), "b:stat")
		}
	}
}

func TestExportReadsTheDaemonWithAFilter(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("b", e2e.Shop())
	c := w.Bridged()
	c.CallText("b_stat", e2e.Obj{"mark": "first"})
	c.CallText("b_stat", e2e.Obj{"mark": "second"})
	text := w.Succeeds("export", "method:tools/call", "arg.mark:second", "--format", "har")
	require.Contains(t, text, "second")
	require.NotContains(t, text, "first")
	require.NotContains(t, text, `"method":"initialize"`)
	out := w.Run("export", "mss:>5", "--format", "har")
	require.Equal(t, 2, out.Code, out.Stderr)
	require.Contains(t, out.Stderr, "filter, column 1")
	path := recorded(t, w)
	require.NotContains(t, w.Succeeds("export", path, "name:b_stat", "--format", "jsonl"), "tools/list")
}
