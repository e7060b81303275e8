//go:build e2e

package daemon

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

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
	require.Contains(t, got.Stdout, `move its arguments to "args"`)
	require.Regexp(t, `(?m)^off +disabled`, got.Stdout)
	require.NotContains(t, got.Stdout, "GOBLIN_TEST_UNSET")
}

func TestAnInterruptedListIsAFailure(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	fifo := filepath.Join(w.Dir, "started")
	require.NoError(t, exec.Command("mkfifo", fifo).Run())
	started, err := os.OpenFile(fifo, os.O_RDWR, 0)
	require.NoError(t, err)
	defer started.Close()
	require.NoError(t, started.SetReadDeadline(time.Now().Add(e2e.Patience)))
	w.Config = filepath.Join(w.Dir, "slow.yaml")
	w.Written = true
	require.NoError(t, os.WriteFile(w.Config, fmt.Appendf(nil,
		"servers:\n  clock: {command: %q, args: [demo-server, clock]}\n  mute: {command: sh, args: [-c, 'echo >%s; cat >/dev/null']}\n",
		e2e.Goblin, fifo), 0o600))
	cmd := exec.Command(e2e.Goblin, "list", "tools")
	cmd.Env = w.Environ()
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	require.NoError(t, cmd.Start())
	_, err = started.Read(make([]byte, 1))
	require.NoError(t, err, "the server that never answers has started")
	require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
	_ = cmd.Wait()
	require.Equal(t, e2e.ExitFailure, cmd.ProcessState.ExitCode())
	require.Empty(t, stdout.String())
	require.Equal(t, "goblin: interrupted\n", stderr.String())
}
