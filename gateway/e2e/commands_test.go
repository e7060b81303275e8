package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// shop is a backend for the commands.
func shop() obj {
	return merge(filesystem(), []obj{{
		"prompts":   []obj{prompt("greet", obj{"arguments": []obj{{"name": "who"}}})},
		"templates": []obj{template("row:///{id}")},
		"reads": obj{
			appLog:  []obj{{"uri": appLog, "mimeType": "text/plain", "text": "line one\nline two"}},
			appJSON: []obj{{"uri": appJSON, "mimeType": "application/octet-stream", "blob": "AAECAw=="}},
		},
		"calls": obj{"move": obj{"isError": true, "content": []obj{{"type": "text", "text": "cannot move"}}}},
	}})
}

func TestCommandList(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b, other := w.backend("shop", shop()), w.backend("s3", s3())
	require.Contains(t, w.succeeds("list", "servers"), "shop")
	for kind, want := range map[string]string{
		"tools": "shop_stat", "prompts": "shop/greet", "resources": in("shop", appLog), "templates": in("shop", "row:///{id}"),
	} {
		require.Contains(t, w.succeeds("list", kind), want)
		text := w.succeeds("list", kind, "--json")
		require.True(t, json.Valid([]byte(text)), text)
		require.Contains(t, text, want)
		require.Contains(t, text, `"shop"`)
	}
	for _, mime := range []string{"text/plain", "text/*", "TEXT/plain"} {
		text := w.succeeds("list", "resources", "--mime", mime)
		require.Contains(t, text, appLog)
		require.NotContains(t, text, appJSON)
	}
	text := w.succeeds("list", "resources", "--json", "--mime", "text/plain")
	require.Contains(t, text, `"shop_file_logs_app.log"`)
	require.Contains(t, text, `"`+appLog+`"`)

	// A filter by server starts that server only.
	starts := b.starts()
	text = w.succeeds("list", "resources", "--server", "s3")
	require.Contains(t, text, "s3://bucket/config/app.json")
	require.NotContains(t, text, "shop")
	require.Equal(t, starts, b.starts())
	other.waitLive(0)

	out := w.run("list", "resources", "--server", "nobody")
	require.Equal(t, exitNotFound, out.code, out.stderr)
	require.Contains(t, out.stderr, "nobody")
	require.Equal(t, exitUsage, w.run("list", "things").code)
	require.Equal(t, exitUsage, w.run("list").code)
}

func TestCommandReadCallAndPrompt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.backend("shop", shop())
	require.Equal(t, "line one\nline two", strings.TrimSuffix(w.succeeds("read", in("shop", appLog)), "\n"))
	require.Equal(t, "line one\nline two", strings.TrimSuffix(w.succeeds("read", appLog), "\n"))
	require.Equal(t, []byte{0, 1, 2, 3}, []byte(w.succeeds("read", appJSON)), "a blob on a pipe is its bytes")
	text := w.succeeds("read", appLog, "--json")
	require.Equal(t, in("shop", appLog), str(json.RawMessage(text), "contents", 0, "uri"))

	require.Contains(t, w.succeeds("call", "shop_stat", "--args", `{"a":1}`), `shop:stat:{"a":1}`)
	text = w.succeeds("call", "stat", "--json", "--meta", `{"trace":7}`)
	require.Contains(t, str(json.RawMessage(text), "content", 0, "text"), "shop:stat:")
	calls := w.backends[0].received("tools/call")
	require.Equal(t, "7", string(at(calls[1].Msg, "params", "_meta", "trace")))

	require.Contains(t, w.succeeds("prompt", "shop/greet", "--arg", "who=you"), `shop:greet:{"who":"you"}`)
	text = w.succeeds("prompt", "greet", "--json")
	require.Equal(t, "user", str(json.RawMessage(text), "messages", 0, "role"))

	failed := w.run("call", "shop_move")
	require.Equal(t, exitFailure, failed.code)
	require.Contains(t, failed.stdout+failed.stderr, "cannot move")
}

func TestCommandsTellWhatIsWrongInOneLine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	script := shop()
	script["on"] = obj{"tools/call stat": actions(do("hang"))}
	w.backend("shop", script, obj{"timeout": "300ms"})
	for _, c := range []struct {
		code int
		part string
		args []string
	}{
		{exitNotFound, "file:///nope", []string{"read", "mcp://shop/file:///nope"}},
		{exitNotFound, "nobody", []string{"read", "mcp://nobody/x"}},
		{exitNotFound, "shop_stta", []string{"call", "shop_stta"}},
		{exitNotFound, "shop/none", []string{"prompt", "shop/none"}},
		{exitTimeout, "shop", []string{"call", "shop_stat"}},
		{exitUsage, "args", []string{"call", "shop_stat", "--args", "{"}},
		{exitUsage, "arg", []string{"prompt", "shop/greet", "--arg", "novalue"}},
		{exitUsage, "frobnicate", []string{"frobnicate"}},
		{exitUsage, "--frob", []string{"list", "tools", "--frob"}},
		{exitUsage, "", []string{"read"}},
		{exitUsage, "", []string{"call"}},
		{exitUsage, "", []string{"restart"}},
		{exitConfig, "absent.yaml", []string{"list", "tools", "--config", "absent.yaml"}},
	} {
		out := w.run(c.args...)
		require.Equal(t, c.code, out.code, "%v: %s", c.args, out.stderr)
		require.Empty(t, out.stdout, c.args)
		require.Contains(t, out.stderr, c.part, c.args)
		require.NotContains(t, out.stderr, "goroutine", c.args)
		require.NotContains(t, out.stderr, "Usage:", c.args)
	}
}

func TestCommandOnAServerThatCannotBeStarted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.gateway["startup_wait"] = "500ms"
	w.backend("missing", obj{}, obj{"command": "no-such-program"})
	out := w.run("list", "tools", "--server", "missing")
	require.Equal(t, exitConnect, out.code, out.stderr)
	require.Contains(t, out.stderr, "no-such-program")
}

func TestCommandsUseTheRunningHost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backend("shop", shop())
	c := w.bridged()
	c.names("tools")
	require.Contains(t, w.succeeds("list", "tools"), "shop_stat")
	require.Contains(t, w.succeeds("read", appLog), "line one")
	require.Contains(t, w.succeeds("call", "shop_stat"), "shop:stat")
	require.Equal(t, 1, b.starts())
}

func TestCommandsOutputIsCleanForTerminals(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	evil := "\x1b]0;owned\x07\u202eevil\u0007"
	w.backend("evil", obj{
		"tools":     []obj{tool("t", obj{"description": evil, "title": evil})},
		"resources": []obj{resource("x:1", obj{"name": evil, "description": evil})},
	})
	for _, kind := range []string{"tools", "resources"} {
		text := w.succeeds("list", kind)
		require.NotContains(t, text, "\x1b")
		require.NotContains(t, text, "\x07")
		require.NotContains(t, text, "\u202e")
	}
}

func TestP13_CommandValidate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backend("shop", shop())
	w.succeeds("validate")
	require.Zero(t, b.starts())

	config := func(text string) output {
		require.NoError(t, os.WriteFile(w.config, []byte(text), 0o600))
		return w.run("validate")
	}
	out := config("servers:\n  files:\n    comand: x\n    args: [y]\n  b:\n    command: z\n    timeout: soon\ngatway: {}\n")
	require.Equal(t, exitConfig, out.code)
	require.Contains(t, out.stderr, `goblin.yaml:3: unknown key "comand" in server "files"; did you mean "command"?`)
	require.Contains(t, out.stderr, "goblin.yaml:7:")
	require.Contains(t, out.stderr, "goblin.yaml:8:")
	require.Contains(t, out.stderr, "gateway")

	for name, text := range map[string]string{
		"broken":     "servers: [unclosed\n",
		"alias bomb": "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\nservers: *f\n",
		"a list":     "- 1\n",
		"no token":   "servers: {}\ngateway: {listen: \"0.0.0.0:7331\"}\n",
		"two ways":   "servers: {a: {command: x, url: \"http://h/\"}}\n",
	} {
		out := config(text)
		require.Equal(t, exitConfig, out.code, "%s: %s", name, out.stderr)
		require.Contains(t, out.stderr, "goblin.yaml", name)
		require.NotContains(t, out.stderr, "goroutine", name)
	}

	out = config("servers:\n  a: {command: x, env: {K: \"${UNSET_FOR_SURE}\"}}\n  My Server: {command: x}\n")
	require.Zero(t, out.code, out.stderr)
	require.Contains(t, out.stdout+out.stderr, "UNSET_FOR_SURE")
	require.Contains(t, out.stdout+out.stderr, "My-Server")

	desktop := filepath.Join(w.dir, "claude_desktop_config.json")
	require.NoError(t, os.WriteFile(desktop, []byte(`{"globalShortcut":"x","mcpServers":{"a":{"command":"x","args":["1"],"env":{"K":"v"}}}}`), 0o600))
	out = w.run("validate", "--config", desktop)
	require.Zero(t, out.code, out.stderr)
}

func TestUnsetVariableDisablesOnlyItsServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backend("unset", shop(), obj{"env": obj{"K": "${UNSET_FOR_SURE}"}})
	w.backend("fine", filesystem())
	c := w.standalone()
	require.Equal(t, []string{"fine_move", "fine_stat"}, c.names("tools"))
	require.Zero(t, b.starts())
	require.Contains(t, c.readText("goblin://servers")+c.prog.stderr.String(), "UNSET_FOR_SURE")
}

func TestConfigIsNeverTakenFromTheWorkingDirectory(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backend("trap", shop())
	w.write()
	for _, name := range []string{"goblin.yaml", "config.yaml", ".goblin.yaml", "goblin.yml"} { // the working directory is the world's
		text, err := os.ReadFile(w.config)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(w.dir, name), text, 0o600))
	}
	w.config = ""
	require.NotContains(t, w.succeeds("list", "servers"), "trap")
	require.Zero(t, b.starts())
}

func TestConfigIsFoundInItsOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	write := func(path, server string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, fmt.Appendf(nil, "servers: {%s: {command: x, disabled: true}}\n", server), 0o600))
	}
	write(filepath.Join(w.dir, "cfg", "goblin", "config.yaml"), "from-home")
	write(filepath.Join(w.dir, "env.yaml"), "from-env")
	write(filepath.Join(w.dir, "flag.yaml"), "from-flag")
	w.written = true
	w.config = ""
	require.Contains(t, w.succeeds("list", "servers"), "from-home")
	w.config = filepath.Join(w.dir, "env.yaml")
	require.Contains(t, w.succeeds("list", "servers"), "from-env")
	require.Contains(t, w.succeeds("list", "servers", "--config", filepath.Join(w.dir, "flag.yaml")), "from-flag")
}

func TestRelativePathsBeginAtTheConfig(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backend("b", shop())
	require.NoError(t, os.Mkdir(filepath.Join(w.dir, "bin"), 0o700))
	require.NoError(t, os.Symlink(fakeserver, filepath.Join(w.dir, "bin", "server")))
	b.conf["command"], b.conf["cwd"] = "./bin/server", "bin"
	w.write()
	w.cwd = "/"
	require.Contains(t, w.succeeds("call", "b_stat"), "b:stat")
}

func TestCommandVersionAndCompletion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	require.NotEmpty(t, w.succeeds("version"))
	text := w.succeeds("version", "--json")
	require.NotEmpty(t, str(json.RawMessage(text), "version"), text)
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		require.Contains(t, w.succeeds("completion", shell), "goblin")
	}
	require.Equal(t, exitUsage, w.run("completion", "tcsh").code)
	const files, noFiles = ":0\n", ":4\n" // whether the shell may add those of the folder
	require.Equal(t, noFiles, w.succeeds("__complete", "status", ""))
	require.Equal(t, files, w.succeeds("__complete", "lua", ""))
	require.Equal(t, "auto\ndark\nlight\nnone\n"+noFiles, w.succeeds("__complete", "--theme", ""))
	for _, command := range []string{"stdio", "serve", "status", "stop", "restart", "validate", "list", "read", "call", "prompt", "version", "completion"} {
		help := w.succeeds(command, "--help")
		require.Contains(t, help, command)
		require.Contains(t, w.succeeds("--help"), command)
	}
	require.NotContains(t, w.succeeds("--help"), "demo-server")
}

func TestLogGoesToAFileAndNotToStdout(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	file := filepath.Join(w.dir, "goblin.log")
	w.log = obj{"level": "debug", "file": file}
	w.backend("b", filesystem())
	c := w.standalone()
	c.callText("b_stat", obj{})
	eventually(t, "the log", func() bool {
		text, _ := os.ReadFile(file)
		return strings.Contains(string(text), "b")
	})
	c.close()
	c.prog.ends(patience)
	require.Empty(t, c.prog.stderr.String())
}
