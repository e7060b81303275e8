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

// showing is a server that tells its environment.
func showing() e2e.Obj {
	return e2e.Obj{"tools": []e2e.Obj{e2e.Tool("env")}, "on": e2e.Obj{"tools/call env": e2e.Actions(e2e.Do("env"))}}
}

// variable is what the server of that name has in its environment, "-" for nothing.
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
	require.Equal(t, e2e.ExitConfig, out.Code, "who listens needs the token: %s", out.Stderr)
	require.Contains(t, out.Stderr, "${E2E_HTTP} is not set")
	w.Env = []string{"E2E_HTTP=two"}
	out = w.Run("serve")
	require.Equal(t, e2e.ExitFailure, out.Code)
	require.Contains(t, out.Stderr, fmt.Sprintf("runs already (pid %d)", daemon))
	require.Equal(t, 1, b.Starts())

	other := as("E2E_TOKEN=other")
	require.Equal(t, "other", variable(other, "needs", "K"), "another value is another daemon")
	require.Equal(t, 2, b.Starts())

	require.NoError(t, e2e.Kill(daemon))
	lacks.GoesOn("needs_env")
	require.Equal(t, "one", variable(lacks, "needs", "K"), "the next daemon has them, too")
}

// envFile makes a world take variables from a file, and gives what writes it.
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
