package export_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/registry"
	"goblin/registry/export"
)

// hostileTexts are texts that end quotes, expand or hide in one of the languages.
var hostileTexts = []string{
	"", "plain", `'"\`, "`id`", "$(id)", "${HOME}", "a\nEOF\nb", "EOF", "\\u0041\\n", "\x00\x01\x1b[31m\x7f", "\u202e\u2028\u2029\ufeff", "größe 👕 日本", "__proto__", "%s%n", "*/ //", "</script>", "#{x}", "\r\n\t", "-rf", "!!",
}

func hostileCall(text string) *registry.TrafficRecord {
	params, _ := json.Marshal(map[string]any{"name": "t" + text, "arguments": map[string]any{text: text, "n": json.Number("12345678901234567890"), "l": []any{true, false, nil, 1.5e3, text}, "__proto__": map[string]any{"a": text}}})
	return &registry.TrafficRecord{Method: "tools/call", Name: "t" + text, Request: params, RequestSize: len(params)}
}

func snippet(t testing.TB, rec *registry.TrafficRecord, language string, at export.Endpoint) string {
	t.Helper()
	for _, s := range export.Snippets(rec, at) {
		if s.Language == language {
			require.Empty(t, s.Why)
			return s.Text
		}
	}
	require.Fail(t, "no "+language)
	return ""
}

// fakeCurl returns a folder with a curl that appends its stdin to a file.
func fakeCurl(t *testing.T) (folder, log string) {
	if runtime.GOOS == "windows" {
		t.Skip("scripts are for POSIX shells")
	}
	folder = t.TempDir()
	log = filepath.Join(folder, "log")
	script := "#!/bin/sh\nfor word; do case $word in @-) cat >>'" + log + "';; esac; done\nprintf 'Mcp-Session-Id: s1\\r\\n'\n"
	require.NoError(t, os.WriteFile(filepath.Join(folder, "curl"), []byte(script), 0o700))
	return folder, log
}

func runShell(t *testing.T, folder, script string) {
	t.Helper()
	cmd := exec.Command("sh", "-c", script)
	cmd.Env = append(os.Environ(), "PATH="+folder+string(os.PathListSeparator)+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

func TestShellsPassHostileParamsUnchanged(t *testing.T) {
	t.Parallel()
	folder, log := fakeCurl(t)
	for _, text := range hostileTexts {
		rec := hostileCall(text)
		require.NoError(t, os.RemoveAll(log))
		runShell(t, folder, snippet(t, rec, export.CurlCommand, export.Endpoint{URL: "http://h/'$(id)`id`}"}))
		sent, err := os.ReadFile(log)
		require.NoError(t, err)
		var message struct{ Params json.RawMessage }
		decode(t, string(sent), &message)
		require.JSONEq(t, string(rec.Request), string(message.Params))
	}
}

func TestTheCurlScriptSendsEachClientRequest(t *testing.T) {
	t.Parallel()
	folder, log := fakeCurl(t)
	script, sum := write(t, example, export.Curl, export.Options{URL: "https://example.com/mcp"})
	require.Contains(t, script, "url=${1:-'https://example.com/mcp'}")
	require.Zero(t, sum.Skipped)
	runShell(t, folder, script)
	sent, err := os.ReadFile(log)
	require.NoError(t, err)
	methods := map[string]int{}
	for line := range strings.Lines(string(sent)) {
		var message struct {
			Method string
			Params struct {
				Meta map[string]any `json:"_meta"`
			}
		}
		decode(t, line, &message)
		require.NotContains(t, message.Params.Meta, "progressToken", "it belongs to the recorded session")
		methods[message.Method]++
	}
	require.Equal(t, map[string]int{"initialize": 2, "notifications/initialized": 2, "tools/list": 1, "tools/call": 15, "resources/read": 1, "prompts/get": 1}, methods)
}

func TestAnInvalidURLIsAnError(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"file:///etc/passwd", "x", "http://", "http://a\n/"} {
		_, err := exportTo(t, export.Curl, export.Options{URL: url})
		require.ErrorContains(t, err, "invalid URL")
	}
}

func TestSnippetsNameTheReasonIfThereIsNone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rec  registry.TrafficRecord
		want string
	}{
		{registry.TrafficRecord{Method: "tools/call", Request: []byte(`{"name":"a","argu`), RequestSize: 100}, "truncated"},
		{registry.TrafficRecord{Method: "tools/call", RequestSize: 100}, "not recorded"},
		{registry.TrafficRecord{Method: "initialize", Request: []byte(`{}`)}, "the SDK sends it"},
		{registry.TrafficRecord{Method: "roots/list", Direction: registry.ToClient}, "the server sent it"},
	} {
		all := export.Snippets(&c.rec, export.Endpoint{})
		last := all[len(all)-1]
		require.Contains(t, last.Why, c.want)
		require.Empty(t, last.Text)
	}
}

func FuzzSnippets(f *testing.F) {
	for _, text := range hostileTexts {
		f.Add(text, `{"name":"a"}`)
	}
	f.Add("x", `{"name":"\ud83d","arguments":{"\"":"\\"}}`)
	f.Fuzz(func(t *testing.T, text, params string) {
		for _, rec := range []*registry.TrafficRecord{hostileCall(text), {Method: "x/" + text, Request: []byte(params), RequestSize: len(params)}, {Method: "prompts/get", Request: []byte(params)}} {
			for _, s := range export.Snippets(rec, export.Endpoint{URL: "http://" + text}) {
				require.NotEqual(t, s.Text == "", s.Why == "", s.Language)
				for _, c := range "\x00\x1b\u009b\u202e\u2028" {
					require.NotContains(t, s.Text, string(c), s.Language)
				}
			}
		}
	})
}

// pythonStub stands for the SDK. It prints the arguments of a call.
const pythonStub = `
import json, sys, types

class Session:
    def __init__(self, *streams): pass
    async def __aenter__(self): return self
    async def __aexit__(self, *error): pass
    async def initialize(self): pass
    async def call_tool(self, name, arguments):
        sys.stdout.write(json.dumps({"name": name, "arguments": arguments}))
        return types.SimpleNamespace(model_dump_json=lambda **options: "")

def module(name, **members):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__dict__.update(members)

module("mcp", ClientSession=Session, StdioServerParameters=lambda **options: options)
module("mcp.client")
module("mcp.client.streamable_http", streamablehttp_client=lambda url, headers: Client(headers == {"Authorization": "Bearer t"} and 3))
module("mcp.client.stdio", stdio_client=lambda server: Client(2))

class Client:
    def __init__(self, streams): self.streams = streams
    async def __aenter__(self): return [None] * self.streams
    async def __aexit__(self, *error): pass

exec(compile(sys.stdin.read(), "snippet", "exec"))
`

func TestPythonGetsHostileArgumentsUnchanged(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("not found: python3")
	}
	for _, at := range []export.Endpoint{{}, {URL: "http://127.0.0.1/'\"\\"}} {
		for _, text := range hostileTexts {
			rec := hostileCall(text)
			cmd := exec.Command(python, "-c", pythonStub)
			cmd.Env = append(os.Environ(), "PYTHONUTF8=1", "MCP_TOKEN=t")
			cmd.Stdin = strings.NewReader(snippet(t, rec, export.Python, at))
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)
			require.JSONEq(t, string(rec.Request), strings.TrimSpace(string(out)), "%q", text)
		}
	}
}
