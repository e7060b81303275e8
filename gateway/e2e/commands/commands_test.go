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
