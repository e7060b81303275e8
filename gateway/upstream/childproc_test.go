//go:build unix

package upstream

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestDeafChildBlocksNobody(t *testing.T) {
	t.Parallel()
	r := startFake(t, "deaf", func(r *rig) { r.tune.stall = 100 * time.Millisecond })
	conn := r.up()
	r.until("it stops reading", func() bool { return strings.Contains(r.received(), "notifications/initialized") })
	params := toolParams("echo", `,"arguments":"`+strings.Repeat("x", 1<<20)+`"`)
	_, err := do(conn, &Call{Method: "tools/call", Params: params, Timeout: 50 * time.Millisecond})
	requireCode(t, err, RequestTimeout, "")
	// While the write makes no progress, further calls close the connection.
	r.until("the end of the connection", func() bool {
		_, _ = do(conn, &Call{Method: "tools/call", Params: toolParams("echo", ""), Timeout: 20 * time.Millisecond})
		return conn.Err() != nil
	})
	requireCode(t, conn.Err(), ConnectionError, "does not read its stdin")
	conn.Close()
}

func TestMoreThanAChildTakesCostsTheRequestsOnly(t *testing.T) {
	t.Parallel()
	r := startFake(t, "deaf", nil)
	conn := r.up()
	r.until("it stops reading", func() bool { return strings.Contains(r.received(), "notifications/initialized") })
	params := toolParams("echo", `,"arguments":"`+strings.Repeat("x", 1<<20)+`"`)
	refused := 0
	for i := range 20 {
		limit := 20 * time.Millisecond
		if i >= 17 {
			limit = patience // the queue is full; that error comes first
		}
		_, err := do(conn, &Call{Method: "tools/call", Params: params, Timeout: limit})
		var e *Error
		require.ErrorAs(t, err, &e)
		if e.Code == ConnectionError {
			refused++
			require.Contains(t, e.Reason, "does not read requests fast enough")
		}
	}
	require.GreaterOrEqual(t, refused, 20-17)
	require.NoError(t, conn.Err(), "others share the connection")
}

func TestChildGetsOnlyItsOwnEnvironment(t *testing.T) {
	t.Setenv("GOBLIN_TEST_SECRET", "s3cret")
	cfg, log := fakeConfig(t, "")
	cfg.Cwd, cfg.Args = filepath.Dir(log), []string{"script.json"} // only in that folder
	cfg.Env["OWN"] = "yes"
	r := start(t, cfg, nil)
	got, err := r.call(r.up(), "env")
	require.NoError(t, err)
	require.NotContains(t, got, "s3cret")
	require.Contains(t, got, "OWN=yes")
}

// pids returns the PIDs of all processes of the server and of their children.
func (r *rig) pids() (pids []int) {
	data, _ := os.ReadFile(r.log + ".starts")
	for line := range strings.Lines(string(data)) {
		pid, _ := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(line, "grandchild ")))
		pids = append(pids, pid)
	}
	return pids
}

// ended reports whether a process has exited, including orphans that are not reaped yet.
func ended(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return true
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(after, "Z")
}

func TestCloseLeavesNoProcess(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"grandchild", "stubborn"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			r := startFake(t, mode, nil)
			conn := r.up()
			r.until("both processes", func() bool { return len(r.pids()) == 2 })
			conn.Close()
			for _, pid := range r.pids()[:2] {
				waitFor(t, "the end of a process", func() bool { return ended(pid) })
			}
		})
	}
}

func TestCrashTakesGrandchildrenAlong(t *testing.T) {
	t.Parallel()
	r := startFake(t, "grandchild", nil)
	conn := r.up()
	r.until("both processes", func() bool { return len(r.pids()) == 2 })
	_, err := r.call(conn, "crash")
	requireCode(t, err, ConnectionError, "exit status 7")
	for _, pid := range r.pids()[:2] {
		waitFor(t, "the end of a process", func() bool { return ended(pid) })
	}
}
