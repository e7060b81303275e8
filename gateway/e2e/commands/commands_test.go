package commands

import (
	"encoding/json"
	"fmt"
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
	text := w.Succeeds("list", "resources", "--json", "--mime", "text/plain")
	require.Contains(t, text, `"shop_file_logs_app.log"`)
	require.Contains(t, text, `"`+e2e.AppLog+`"`)

	// A filter by server starts that server only.
	starts := b.Starts()
	text = w.Succeeds("list", "resources", "--server", "s3")
	require.Contains(t, text, "s3://bucket/config/app.json")
	require.NotContains(t, text, "shop")
	require.Equal(t, starts, b.Starts())
	other.WaitLive(0)

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

func TestCommandOnAServerThatCannotBeStarted(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Gateway["startup_wait"] = "500ms"
	w.Backend("missing", e2e.Obj{}, e2e.Obj{"command": "no-such-program"})
	out := w.Run("list", "tools", "--server", "missing")
	require.Equal(t, e2e.ExitConnect, out.Code, out.Stderr)
	require.Contains(t, out.Stderr, "no-such-program")
}

func TestCommandsUseTheRunningHost(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("shop", e2e.Shop())
	c := w.Bridged()
	c.Names("tools")
	require.Contains(t, w.Succeeds("list", "tools"), "shop_stat")
	require.Contains(t, w.Succeeds("read", e2e.AppLog), "line one")
	require.Contains(t, w.Succeeds("call", "shop_stat"), "shop:stat")
	require.Equal(t, 1, b.Starts())
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

func TestP13_CommandValidate(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("shop", e2e.Shop())
	w.Succeeds("validate")
	require.Zero(t, b.Starts())

	config := func(text string) e2e.Output {
		require.NoError(t, os.WriteFile(w.Config, []byte(text), 0o600))
		return w.Run("validate")
	}
	out := config("servers:\n  files:\n    comand: x\n    args: [y]\n  b:\n    command: z\n    timeout: soon\ngatway: {}\n")
	require.Equal(t, e2e.ExitConfig, out.Code)
	require.Contains(t, out.Stderr, `goblin.yaml:3: unknown key "comand" in server "files"; did you mean "command"?`)
	require.Contains(t, out.Stderr, "goblin.yaml:7:")
	require.Contains(t, out.Stderr, "goblin.yaml:8:")
	require.Contains(t, out.Stderr, "gateway")

	for name, text := range map[string]string{
		"broken":     "servers: [unclosed\n",
		"alias bomb": "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\nservers: *f\n",
		"a list":     "- 1\n",
		"no token":   "servers: {}\ngateway: {listen: \"0.0.0.0:7331\"}\n",
		"two ways":   "servers: {a: {command: x, url: \"http://h/\"}}\n",
	} {
		out := config(text)
		require.Equal(t, e2e.ExitConfig, out.Code, "%s: %s", name, out.Stderr)
		require.Contains(t, out.Stderr, "goblin.yaml", name)
		require.NotContains(t, out.Stderr, "goroutine", name)
	}

	out = config("servers:\n  a: {command: x, env: {K: \"${UNSET_FOR_SURE}\"}}\n  My Server: {command: x}\n")
	require.Zero(t, out.Code, out.Stderr)
	require.Contains(t, out.Stdout+out.Stderr, "UNSET_FOR_SURE")
	require.Contains(t, out.Stdout+out.Stderr, "My-Server")

	desktop := filepath.Join(w.Dir, "claude_desktop_config.json")
	require.NoError(t, os.WriteFile(desktop, []byte(`{"globalShortcut":"x","mcpServers":{"a":{"command":"x","args":["1"],"env":{"K":"v"}}}}`), 0o600))
	out = w.Run("validate", "--config", desktop)
	require.Zero(t, out.Code, out.Stderr)
}

func TestUnsetVariableDisablesOnlyItsServer(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("unset", e2e.Shop(), e2e.Obj{"env": e2e.Obj{"K": "${UNSET_FOR_SURE}"}})
	w.Backend("fine", e2e.Filesystem())
	c := w.Standalone()
	require.Equal(t, []string{"fine_move", "fine_stat"}, c.Names("tools"))
	require.Zero(t, b.Starts())
	require.Contains(t, c.ReadText("goblin://servers")+c.Prog.Stderr.String(), "UNSET_FOR_SURE")
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

func TestConfigIsFoundInItsOrder(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	write := func(path, server string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, fmt.Appendf(nil, "servers: {%s: {command: x, disabled: true}}\n", server), 0o600))
	}
	write(filepath.Join(w.Dir, "cfg", "goblin", "config.yaml"), "from-home")
	write(filepath.Join(w.Dir, "env.yaml"), "from-env")
	write(filepath.Join(w.Dir, "flag.yaml"), "from-flag")
	w.Written = true
	w.Config = ""
	require.Contains(t, w.Succeeds("list", "servers"), "from-home")
	w.Config = filepath.Join(w.Dir, "env.yaml")
	require.Contains(t, w.Succeeds("list", "servers"), "from-env")
	require.Contains(t, w.Succeeds("list", "servers", "--config", filepath.Join(w.Dir, "flag.yaml")), "from-flag")
}

func TestRelativePathsBeginAtTheConfig(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("b", e2e.Shop())
	require.NoError(t, os.Mkdir(filepath.Join(w.Dir, "bin"), 0o700))
	require.NoError(t, os.Symlink(e2e.Fakeserver, filepath.Join(w.Dir, "bin", "server")))
	b.Conf["command"], b.Conf["cwd"] = "./bin/server", "bin"
	w.Write()
	w.Cwd = "/"
	require.Contains(t, w.Succeeds("call", "b_stat"), "b:stat")
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
	const files, noFiles = ":0\n", ":4\n" // whether the shell may add those of the folder
	require.Equal(t, noFiles, w.Succeeds("__complete", "status", ""))
	require.Equal(t, files, w.Succeeds("__complete", "lua", ""))
	require.Equal(t, "auto\ndark\nlight\nnone\n"+noFiles, w.Succeeds("__complete", "--theme", ""))
	for _, command := range []string{"stdio", "serve", "status", "stop", "restart", "validate", "list", "read", "call", "prompt", "version", "completion"} {
		help := w.Succeeds(command, "--help")
		require.Contains(t, help, command)
		require.Contains(t, w.Succeeds("--help"), command)
	}
	require.NotContains(t, w.Succeeds("--help"), "demo-server")
}

func TestLogGoesToAFileAndNotToStdout(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	file := filepath.Join(w.Dir, "goblin.log")
	w.Log = e2e.Obj{"level": "debug", "file": file}
	w.Backend("b", e2e.Filesystem())
	c := w.Standalone()
	c.CallText("b_stat", e2e.Obj{})
	e2e.Eventually(t, "the log", func() bool {
		text, _ := os.ReadFile(file)
		return strings.Contains(string(text), "b")
	})
	c.Close()
	c.Prog.Ends(e2e.Patience)
	require.Empty(t, c.Prog.Stderr.String())
}
