//go:build e2e

package commands

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

func TestCommandOnAServerThatCannotBeStarted(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Gateway["startup_wait"] = "500ms"
	w.Backend("missing", e2e.Obj{}, e2e.Obj{"command": "no-such-program"})
	out := w.Run("list", "tools", "--server", "missing")
	require.Equal(t, e2e.ExitConnect, out.Code, out.Stderr)
	require.Contains(t, out.Stderr, "no-such-program")
}

func TestCommandsUseTheRunningDaemon(t *testing.T) {
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
	require.NoError(t, os.Symlink(e2e.TestServer, filepath.Join(w.Dir, "bin", "server")))
	b.Conf["command"], b.Conf["cwd"] = "./bin/server", "bin"
	w.Write()
	w.Cwd = "/"
	require.Contains(t, w.Succeeds("call", "b_stat"), "b:stat")
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

func TestExitCodesOfCallsThatWereNotAnswered(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("hang"), e2e.Tool("dies")}, "on": e2e.Obj{
		"tools/call hang": e2e.Actions(e2e.Do("hang")), "tools/call dies": e2e.Actions(e2e.Do("crash")),
	}}, e2e.Obj{"timeout": "1s"})
	for _, args := range e2e.Variants(1, nil, []string{"--json"}) {
		late := w.Run(append([]string{"call", "b_hang"}, args...)...)
		require.Equal(t, e2e.ExitTimeout, late.Code, late.Stderr)
		require.Equal(t, "goblin: tool \"b_hang\": server \"b\": no answer to tools/call within 1s (call_timeout)\n", late.Stderr)
		lost := w.Run(append([]string{"call", "b_dies"}, args...)...)
		require.Equal(t, e2e.ExitConnect, lost.Code, lost.Stderr)
		require.Empty(t, late.Stdout+lost.Stdout)
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

	type broken struct{ name, text string }
	for _, b := range e2e.Variants(2,
		broken{"broken", "servers: [unclosed\n"},
		broken{"alias bomb", "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\nservers: *f\n"},
		broken{"a list", "- 1\n"},
		broken{"no token", "servers: {}\ngateway: {listen: \"0.0.0.0:7331\"}\n"},
		broken{"two ways", "servers: {a: {command: x, url: \"http://h/\"}}\n"},
	) {
		name, out := b.name, config(b.text)
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
