//go:build e2e

package daemon

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

func TestServersThatAllFailAreCode4(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Config = filepath.Join(w.Dir, "broken.yaml")
	w.Written = true
	require.NoError(t, os.WriteFile(w.Config, []byte(
		"servers:\n  a: {command: echo hello world}\n  off: {command: x, env: {A: \"${GOBLIN_TEST_UNSET}\"}, disabled: true}\n"), 0o600))
	got := w.Run("list", "servers")
	require.Equal(t, e2e.ExitConnect, got.Code)
	require.Contains(t, got.Stdout, `put arguments into "args"`)
	require.Regexp(t, `(?m)^off +disabled`, got.Stdout)
	require.NotContains(t, got.Stdout, "GOBLIN_TEST_UNSET")
}
