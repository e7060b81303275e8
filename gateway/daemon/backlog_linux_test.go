package daemon_test

import (
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/daemon"
)

// On Linux, connections to a full queue wait. Other systems refuse them.
func TestDaemonThatTakesNoConnectionIsNamed(t *testing.T) {
	daemon.AnswerLimit(t, 50*time.Millisecond)
	p := place(t)
	queue, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	defer func() { _ = syscall.Close(queue) }()
	require.NoError(t, syscall.Bind(queue, &syscall.SockaddrUnix{Name: p.Socket}))
	require.NoError(t, syscall.Listen(queue, 0))
	require.NoError(t, os.WriteFile(p.Lock, []byte("4711\n"), 0o600))
	for err == nil { // until the queue is full
		var c net.Conn
		if c, err = net.Dial("unix", p.Socket); err == nil {
			defer c.Close()
		}
	}
	_, err = daemon.Dial(context30s(t), p, daemon.KindMCP)
	require.ErrorContains(t, err, "pid 4711")
	require.NotErrorIs(t, err, daemon.ErrNotRunning, "starting another would not help")
}
