package daemon_test

import (
	"io"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/daemon"
)

func TestStartDetachesADaemon(t *testing.T) {
	p := place(t)
	require.NoError(t, start(t, p, "echo"))
	var out struct{ Dir string }
	require.NoError(t, daemon.Control(context30s(t), p, "where", nil, &out))
	if runtime.GOOS != "windows" {
		require.Equal(t, "/", out.Dir)
	}
	require.NoError(t, start(t, p, "echo"), "one runs already")
	require.Len(t, daemonPIDs(t, p), 1)
	stop(t, p)
}

// stop stops a detached daemon and waits until it exits.
func stop(t *testing.T, p daemon.Endpoint) {
	t.Helper()
	require.NoError(t, daemon.Control(context30s(t), p, "stop", nil, nil))
	require.NoError(t, daemon.WaitEnd(context30s(t), p))
	reaped(t, p)
}

// reaped waits until all processes that were the daemon of p have exited.
func reaped(t *testing.T, p daemon.Endpoint) {
	t.Helper()
	for _, pid := range daemonPIDs(t, p) {
		proc, err := os.FindProcess(pid)
		if err != nil {
			continue
		}
		require.Eventually(t, func() bool { return proc.Signal(syscall.Signal(0)) != nil }, 30*time.Second, time.Millisecond, "process %d is still running", pid)
	}
}

func TestDaemonEndsByItselfAfterItsLastSession(t *testing.T) {
	p := place(t)
	c, err := daemon.DialOrStart(context30s(t), p, daemon.KindMCP, os.Args[0], daemonArgs(t, p), daemonEnv("lingers"))
	require.NoError(t, err)
	require.NoError(t, c.Close())
	reaped(t, p)
	require.NoFileExists(t, p.Socket)
}

func TestStartQuotesTheLogOfADaemonThatFails(t *testing.T) {
	p := place(t)
	require.NoError(t, os.WriteFile(p.Log, []byte("an old line\n"), 0o600))
	err := start(t, p, "broken")
	require.ErrorContains(t, err, "goblin.yaml:3: unknown key | second line")
	require.NotContains(t, err.Error(), "old line")

	err = daemon.Start(context30s(t), p, "/no/such/program", nil, nil)
	require.ErrorContains(t, err, "/no/such/program")
}

func TestLogStaysBounded(t *testing.T) {
	p := place(t)
	l, err := daemon.OpenLog(p)
	require.NoError(t, err)
	stderr, err := os.OpenFile(p.Log, os.O_APPEND|os.O_WRONLY, 0) // as a running daemon has it
	require.NoError(t, err)
	defer stderr.Close()
	_, err = io.WriteString(stderr, strings.Repeat("x", daemon.MaxLog)+"last\n")
	require.NoError(t, err)
	_, err = l.Write([]byte("next\n"))
	require.NoError(t, err)
	_, err = io.WriteString(stderr, "panic\n")
	require.NoError(t, err)

	now, err := os.ReadFile(p.Log)
	require.NoError(t, err)
	require.Equal(t, "next\npanic\n", string(now))
	old, err := os.ReadFile(p.Log + ".1")
	require.NoError(t, err)
	require.Len(t, old, daemon.MaxLog)
	require.True(t, strings.HasSuffix(string(old), "last\n"))
	require.NoError(t, l.Close())
	_, err = l.Write([]byte("x"))
	require.Error(t, err)
	require.Equal(t, os.FileMode(0o600), stat(t, p.Log).Mode().Perm())
}
