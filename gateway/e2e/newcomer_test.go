package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A file of another client that holds Goblin's own entry must not start Goblins
// that start Goblins.
func TestGoblinsOwnEntryStartsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backend("shop", shop())
	link := filepath.Join(w.dir, "mcp-hub")
	require.NoError(t, os.Symlink(goblin, link))
	w.config = filepath.Join(w.dir, "claude.json")
	w.written = true
	require.NoError(t, os.WriteFile(w.config, fmt.Appendf(nil,
		`{"mcpServers": {"goblin": {"command": %q, "args": ["stdio"]}, "hub": {"command": %q}, "shop": %s}}`,
		goblin, link, marshal(b.conf)), 0o600))
	out := w.run("list", "tools")
	require.Zero(t, out.code, out.stderr)
	require.Contains(t, out.stdout, "shop_stat")
	require.Equal(t, 1, b.starts(), "no other Goblin has started it")
	require.Empty(t, out.stderr, "nobody misses them")
	require.Regexp(t, `(?m)^goblin-2 +disabled(.|\n)*^hub +disabled`, w.succeeds("list", "servers"))
	out = w.run("validate")
	require.Zero(t, out.code)
	require.Contains(t, out.stderr, `warning: server "goblin" is Goblin itself; left out`)
	require.Contains(t, out.stderr, `warning: server "hub" is Goblin itself; left out`)
}

func TestProgressExtendsACallInAPipe(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.config = filepath.Join(w.dir, "slow.yaml")
	w.written = true
	require.NoError(t, os.WriteFile(w.config, fmt.Appendf(nil,
		"servers: {clock: {command: %q, args: [demo-server, clock], timeout: 1s}}", goblin), 0o600))
	got := w.run("call", "clock_countdown", "--args", `{"from": 8, "interval_ms": 250}`)
	require.Zero(t, got.code, got.stderr)
	require.Contains(t, got.stdout, "Lift-off")
}

func TestAnInterruptedListIsAFailure(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	fifo := filepath.Join(w.dir, "started")
	require.NoError(t, exec.Command("mkfifo", fifo).Run())
	started, err := os.OpenFile(fifo, os.O_RDWR, 0)
	require.NoError(t, err)
	defer started.Close()
	require.NoError(t, started.SetReadDeadline(time.Now().Add(patience)))
	w.config = filepath.Join(w.dir, "slow.yaml")
	w.written = true
	require.NoError(t, os.WriteFile(w.config, fmt.Appendf(nil,
		"servers:\n  clock: {command: %q, args: [demo-server, clock]}\n  mute: {command: sh, args: [-c, 'echo >%s; cat >/dev/null']}\n",
		goblin, fifo), 0o600))
	cmd := exec.Command(goblin, "list", "tools")
	cmd.Env = w.environ()
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	require.NoError(t, cmd.Start())
	_, err = started.Read(make([]byte, 1))
	require.NoError(t, err, "the server that never answers has started")
	require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
	_ = cmd.Wait()
	require.Equal(t, exitFailure, cmd.ProcessState.ExitCode())
	require.Empty(t, stdout.String())
	require.Equal(t, "goblin: interrupted\n", stderr.String())
}

func TestServersThatAllFailAreCode4(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.config = filepath.Join(w.dir, "broken.yaml")
	w.written = true
	require.NoError(t, os.WriteFile(w.config, []byte(
		"servers:\n  a: {command: echo hello world}\n  off: {command: x, env: {A: \"${GOBLIN_TEST_UNSET}\"}, disabled: true}\n"), 0o600))
	got := w.run("list", "servers")
	require.Equal(t, exitConnect, got.code)
	require.Contains(t, got.stdout, `put arguments into "args"`)
	require.Regexp(t, `(?m)^off +disabled`, got.stdout)
	require.NotContains(t, got.stdout, "GOBLIN_TEST_UNSET")
}

func TestTheStateOfServersIsReadWhenTheyHaveStarted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.backend("shop", shop())
	w.backend("s3", s3())
	text := w.succeeds("read", "goblin://servers")
	require.Equal(t, 2, strings.Count(text, `"state":"ready"`), text)
}

func TestAPromptNamesItsRequiredArguments(t *testing.T) {
	env := place(t)
	_, errs, code := shell(t, env, "prompt", "library/discuss_book", "--arg", "author=x")
	require.Equal(t, exitUsage, code)
	require.Equal(t, "goblin: prompt \"library/discuss_book\" needs --arg title=…\n", errs)
	_, errs, code = shell(t, env, "call", "library_search_books")
	require.Equal(t, exitFailure, code)
	require.Contains(t, errs, `missing "query"`)
}

func TestADisabledServerLacksNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.backend("on", filesystem())
	w.backend("off", filesystem(), obj{"disabled": true, "env": obj{"TOKEN": "${GOBLIN_TEST_UNSET}"}})
	states := map[string]string{}
	for _, s := range each(json.RawMessage(w.succeeds("list", "servers", "--json"))) {
		states[str(s, "name")] = str(s, "state") + str(s, "error")
	}
	require.Equal(t, map[string]string{"on": "ready", "off": "disabled"}, states)
}
