//go:build e2e

package hosts

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

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
