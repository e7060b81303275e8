//go:build e2e

package commands

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

func TestCommandList(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b, other := w.Backend("shop", e2e.Shop()), w.Backend("s3", e2e.S3())

	// A filter by server starts that server only.
	text := w.Succeeds("list", "resources", "--server", "s3")
	require.Contains(t, text, "s3://bucket/config/app.json")
	require.NotContains(t, text, "shop")
	require.Zero(t, b.Starts())
	other.WaitLive(0)

	w.Bridged().Names("tools") // the other commands ask its daemon
	require.Contains(t, w.Succeeds("list", "servers"), "shop")
	for kind, want := range map[string]string{
		"tools": "shop_stat", "prompts": "shop/greet", "resources": e2e.In("shop", e2e.AppLog), "templates": e2e.In("shop", "row:///{id}"),
	} {
		require.Contains(t, w.Succeeds("list", kind), want)
		text := w.Succeeds("list", kind, "--json")
		require.True(t, json.Valid([]byte(text)), text)
		require.Contains(t, text, want)
		require.Contains(t, text, `"shop"`)
	}
	for _, mime := range []string{"text/plain", "text/*", "TEXT/plain"} {
		text := w.Succeeds("list", "resources", "--mime", mime)
		require.Contains(t, text, e2e.AppLog)
		require.NotContains(t, text, e2e.AppJSON)
	}
	text = w.Succeeds("list", "resources", "--json", "--mime", "text/plain")
	require.Contains(t, text, `"shop_file_logs_app.log"`)
	require.Contains(t, text, `"`+e2e.AppLog+`"`)

	out := w.Run("list", "resources", "--server", "nobody")
	require.Equal(t, e2e.ExitNotFound, out.Code, out.Stderr)
	require.Contains(t, out.Stderr, "nobody")
	require.Equal(t, e2e.ExitUsage, w.Run("list", "things").Code)
	require.Equal(t, e2e.ExitUsage, w.Run("list").Code)
}

func TestCommandReadCallAndPrompt(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("shop", e2e.Shop())
	require.Equal(t, "line one\nline two", strings.TrimSuffix(w.Succeeds("read", e2e.In("shop", e2e.AppLog)), "\n"))
	require.Equal(t, "line one\nline two", strings.TrimSuffix(w.Succeeds("read", e2e.AppLog), "\n"))
	require.Equal(t, []byte{0, 1, 2, 3}, []byte(w.Succeeds("read", e2e.AppJSON)), "a blob on a pipe is its bytes")
	text := w.Succeeds("read", e2e.AppLog, "--json")
	require.Equal(t, e2e.In("shop", e2e.AppLog), e2e.Str(json.RawMessage(text), "contents", 0, "uri"))

	require.Contains(t, w.Succeeds("call", "shop_stat", "--args", `{"a":1}`), `shop:stat:{"a":1}`)
	text = w.Succeeds("call", "stat", "--json", "--meta", `{"trace":7}`)
	require.Contains(t, e2e.Str(json.RawMessage(text), "content", 0, "text"), "shop:stat:")
	calls := w.Backends[0].Received("tools/call")
	require.Equal(t, "7", string(e2e.At(calls[1].Msg, "params", "_meta", "trace")))

	require.Contains(t, w.Succeeds("prompt", "shop/greet", "--arg", "who=you"), `shop:greet:{"who":"you"}`)
	text = w.Succeeds("prompt", "greet", "--json")
	require.Equal(t, "user", e2e.Str(json.RawMessage(text), "messages", 0, "role"))

	failed := w.Run("call", "shop_move")
	require.Equal(t, e2e.ExitFailure, failed.Code)
	require.Contains(t, failed.Stdout+failed.Stderr, "cannot move")
}

func TestCommandsTellWhatIsWrongInOneLine(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	script := e2e.Shop()
	script["on"] = e2e.Obj{"tools/call stat": e2e.Actions(e2e.Do("hang"))}
	w.Backend("shop", script, e2e.Obj{"timeout": "300ms"})
	for _, c := range []struct {
		code int
		part string
		args []string
	}{
		{e2e.ExitNotFound, "file:///nope", []string{"read", "mcp://shop/file:///nope"}},
		{e2e.ExitNotFound, "nobody", []string{"read", "mcp://nobody/x"}},
		{e2e.ExitNotFound, "shop_stta", []string{"call", "shop_stta"}},
		{e2e.ExitNotFound, "shop/none", []string{"prompt", "shop/none"}},
		{e2e.ExitTimeout, "shop", []string{"call", "shop_stat"}},
		{e2e.ExitUsage, "args", []string{"call", "shop_stat", "--args", "{"}},
		{e2e.ExitUsage, "arg", []string{"prompt", "shop/greet", "--arg", "novalue"}},
		{e2e.ExitUsage, "frobnicate", []string{"frobnicate"}},
		{e2e.ExitUsage, "--frob", []string{"list", "tools", "--frob"}},
		{e2e.ExitUsage, "", []string{"read"}},
		{e2e.ExitUsage, "", []string{"call"}},
		{e2e.ExitUsage, "", []string{"restart"}},
		{e2e.ExitConfig, "absent.yaml", []string{"list", "tools", "--config", "absent.yaml"}},
	} {
		out := w.Run(c.args...)
		require.Equal(t, c.code, out.Code, "%v: %s", c.args, out.Stderr)
		require.Empty(t, out.Stdout, c.args)
		require.Contains(t, out.Stderr, c.part, c.args)
		require.NotContains(t, out.Stderr, "goroutine", c.args)
		require.NotContains(t, out.Stderr, "Usage:", c.args)
	}
}

func TestCommandsOutputIsCleanForTerminals(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	evil := "\x1b]0;owned\x07\u202eevil\u0007"
	w.Backend("evil", e2e.Obj{
		"tools":     []e2e.Obj{e2e.Tool("t", e2e.Obj{"description": evil, "title": evil})},
		"resources": []e2e.Obj{e2e.Resource("x:1", e2e.Obj{"name": evil, "description": evil})},
	})
	for _, kind := range []string{"tools", "resources"} {
		text := w.Succeeds("list", kind)
		require.NotContains(t, text, "\x1b")
		require.NotContains(t, text, "\x07")
		require.NotContains(t, text, "\u202e")
	}
}

func TestCommandVersionAndCompletion(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	require.NotEmpty(t, w.Succeeds("version"))
	text := w.Succeeds("version", "--json")
	require.NotEmpty(t, e2e.Str(json.RawMessage(text), "version"), text)
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		require.Contains(t, w.Succeeds("completion", shell), "goblin")
	}
	require.Equal(t, e2e.ExitUsage, w.Run("completion", "tcsh").Code)
	const files, noFiles = ":0\n", ":4\n" // whether the shell may complete files of the folder
	require.Equal(t, noFiles, w.Succeeds("__complete", "status", ""))
	require.Equal(t, files, w.Succeeds("__complete", "lua", ""))
	for _, command := range []string{"open", "replay", "export", "diff"} {
		require.Equal(t, files, w.Succeeds("__complete", command, ""), command)
	}
	for _, command := range []string{"open", "replay", "export"} {
		require.Contains(t, w.Succeeds("__complete", command, "x.jsonl", "sin"), "since:", command)
	}
	require.Equal(t, "auto\ndark\nlight\nnone\n"+noFiles, w.Succeeds("__complete", "--theme", ""))
	overview := w.Succeeds("--help")
	for _, command := range []string{"stdio", "serve", "status", "stop", "restart", "validate", "list", "read", "call", "prompt", "version", "completion"} {
		help := w.Succeeds(command, "--help")
		require.Contains(t, help, command)
		require.Contains(t, overview, command)
	}
	require.NotContains(t, overview, "demo-server")
}

func TestConfigIsNeverTakenFromTheWorkingDirectory(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("trap", e2e.Shop())
	w.Write()
	for _, name := range []string{"goblin.yaml", "config.yaml", ".goblin.yaml", "goblin.yml"} { // the working directory is the world's
		text, err := os.ReadFile(w.Config)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(w.Dir, name), text, 0o600))
	}
	w.Config = ""
	require.NotContains(t, w.Succeeds("list", "servers"), "trap")
	require.Zero(t, b.Starts())
}
