//go:build e2e

package daemon

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// showing is a server that returns its environment.
func showing() e2e.Obj {
	return e2e.Obj{"tools": []e2e.Obj{e2e.Tool("env")}, "on": e2e.Obj{"tools/call env": e2e.Actions(e2e.Do("env"))}}
}

// variable returns the value of a variable in a server's environment, or "-" if it is
// missing.
func variable(c *e2e.Client, server, name string) string {
	c.T.Helper()
	var environ []string
	require.NoError(c.T, json.Unmarshal([]byte(c.CallText(server+"_env", e2e.Obj{})), &environ))
	i := slices.IndexFunc(environ, func(v string) bool { return strings.HasPrefix(v, name+"=") })
	if i < 0 {
		return "-"
	}
	return strings.TrimPrefix(environ[i], name+"=")
}

func TestClientsThatLackVariablesJoinTheDaemonThatHasThem(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("needs", showing(), e2e.Obj{"env": e2e.Obj{"K": "${E2E_TOKEN}"}})
	w.Gateway["auth_token"] = "${E2E_HTTP}"
	as := func(env ...string) *e2e.Client {
		w.Env = env
		c := w.Bridged()
		return c
	}
	first := as("E2E_TOKEN=one", "E2E_HTTP=two")
	require.Equal(t, "one", variable(first, "needs", "K"))
	daemon := w.DaemonPID()
	lacks := as()
	require.Equal(t, "one", variable(lacks, "needs", "K"), "a client without variables")
	require.Equal(t, "one", variable(as("E2E_TOKEN=one"), "needs", "K"), "a client with some")
	require.Equal(t, 1, b.Starts())
	w.Env = nil
	require.Contains(t, w.Succeeds("status"), fmt.Sprint(daemon))
	require.Contains(t, w.Succeeds("list", "tools"), "needs_env")
	out := w.Run("serve")
	require.Equal(t, e2e.ExitConfig, out.Code, "a daemon with HTTP needs the token: %s", out.Stderr)
	require.Contains(t, out.Stderr, "${E2E_HTTP} is not set")
	w.Env = []string{"E2E_HTTP=two"}
	out = w.Run("serve")
	require.Equal(t, e2e.ExitFailure, out.Code)
	require.Contains(t, out.Stderr, fmt.Sprintf("already running (pid %d)", daemon))
	require.Equal(t, 1, b.Starts())

	other := as("E2E_TOKEN=other")
	require.Equal(t, "other", variable(other, "needs", "K"), "another value is another daemon")
	require.Equal(t, 2, b.Starts())

	require.NoError(t, e2e.Kill(daemon))
	lacks.CallUntilItWorks("needs_env")
	require.Equal(t, "one", variable(lacks, "needs", "K"), "the next daemon has them, too")
}

// envFile makes a world read variables from a file. It returns a function that writes the
// file.
func envFile(w *e2e.World) (write func(text string, mode os.FileMode)) {
	w.T.Helper()
	w.Write()
	text, err := os.ReadFile(w.Config)
	require.NoError(w.T, err)
	require.NoError(w.T, os.WriteFile(w.Config, append([]byte("env_file: secrets.env\n"), text...), 0o600))
	file := filepath.Join(w.Dir, "secrets.env")
	return func(text string, mode os.FileMode) {
		w.T.Helper()
		require.NoError(w.T, os.WriteFile(file+"~", []byte(text), mode))
		require.NoError(w.T, os.Chmod(file+"~", mode))
		require.NoError(w.T, os.Rename(file+"~", file))
	}
}

func TestAnUnsetTokenKeepsNobodyButListenersOut(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("fine", e2e.Filesystem())
	w.Gateway["auth_token"] = "${E2E_HTTP}"
	out := w.Run("validate")
	require.Zero(t, out.Code, out.Stderr)
	require.Contains(t, out.Stderr, "warning: ${E2E_HTTP} is not set")
	require.Contains(t, w.Succeeds("list", "tools"), "fine_stat")

	for _, address := range []string{"127.0.0.1", "0.0.0.0"} {
		port := e2e.FreePort(t)
		w.Edit(func() { w.Gateway["listen"] = fmt.Sprintf("%s:%d", address, port) })
		out = w.Run("validate")
		require.Equal(t, e2e.ExitConfig, out.Code)
		require.Contains(t, out.Stderr, "${E2E_HTTP} is not set")
		c := w.Bridged()
		require.Contains(t, c.Names("tools"), "fine_stat")
		require.Contains(t, w.Succeeds("status"), fmt.Sprintf("no HTTP at %s:%d", address, port))
		out = w.Run("serve")
		require.Equal(t, e2e.ExitConfig, out.Code)
		c.Close()
		w.Succeeds("stop")
	}
	w.Standalone().Names("tools")
}

func TestAnEnvFileThatCannotBeReadOrCanByOthersIsTold(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("fine", e2e.Filesystem())
	write := envFile(w)
	out := w.Run("validate")
	require.Equal(t, e2e.ExitConfig, out.Code)
	require.Contains(t, out.Stderr, `goblin.yaml:1: "env_file" names "secrets.env", which cannot be read: no such file or directory`)
	write("E2E_KEY=x\n", 0o644)
	out = w.Run("validate")
	require.Zero(t, out.Code, out.Stderr)
	require.Contains(t, out.Stderr, "other users of this machine can read; run chmod 600 on it")
	write("E2E_KEY=x\n", 0o600)
	require.NotContains(t, w.Run("validate").Stderr, "warning")
}

func TestVariablesOfAnEnvFile(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("has", showing(), e2e.Obj{"env": e2e.Obj{"K": "${E2E_KEY}", "L": "${E2E_LOUD}"}, "inherit_env": []string{"E2E_PLAIN"}})
	write := envFile(w)
	const good = "# keys\n\nexport E2E_KEY='s3cr3t # value'\nE2E_LOUD=\"two\\nlines\"  # why\nE2E_PLAIN = plain # comment\nE2E_NONE=\n"
	write("E2E_KEY=x\nno s3cr3t here\n", 0o600)
	out := w.Run("validate")
	require.Equal(t, e2e.ExitConfig, out.Code)
	require.Contains(t, out.Stderr, `which has a mistake in line 2: expected NAME=value`)
	require.NotContains(t, out.Stderr, "s3cr3t")
	write(good, 0o600)

	c := w.Bridged()
	require.Equal(t, "s3cr3t # value", variable(c, "has", "K"))
	require.Equal(t, "two\nlines", variable(c, "has", "L"))
	require.Equal(t, "plain", variable(c, "has", "E2E_PLAIN"))
	require.Equal(t, "-", variable(c, "has", "E2E_KEY"), "only what the server asks for")
	w.Env = []string{"E2E_KEY=s3cr3t # value"}
	require.Equal(t, "s3cr3t # value", variable(w.Bridged(), "has", "K"))
	require.Equal(t, 1, b.Starts(), "the same values are the same daemon")
	w.Env = []string{"E2E_KEY=mine"}
	require.Equal(t, "mine", variable(w.Bridged(), "has", "K"), "the environment wins")

	starts := b.Starts()
	write(strings.Replace(good, "s3cr3t", "next", 1), 0o600)
	b.WaitStarts(starts + 1)
	e2e.Eventually(t, "the new value", func() bool { return variable(c, "has", "K") == "next # value" })
	w.Env = nil
	require.Equal(t, "next # value", variable(w.Bridged(), "has", "K"))
	require.Equal(t, starts+1, b.Starts(), "the daemon is found by the new value")
}

func TestAnEnvFileThatAnEditNamesIsWatched(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("has", showing(), e2e.Obj{"env": e2e.Obj{"K": "${E2E_KEY:-none}"}})
	c := w.Bridged()
	shows := func(value string) {
		t.Helper()
		e2e.Eventually(t, "the value "+value, func() bool { return variable(c, "has", "K") == value })
	}
	shows("none")
	write := envFile(w) // the file doesn't exist yet
	e2e.Eventually(t, "the mistake", func() bool { return strings.Contains(w.Succeeds("status"), "secrets.env") })
	for _, value := range []string{"first", "second"} {
		write("E2E_KEY="+value+"\n", 0o600)
		shows(value)
	}
	w.Edit(func() {}) // no variable is set
	shows("none")
}
