//go:build unix

package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// pipe returns a pipe in blocking mode, as a parent process passes it.
func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	var fds [2]int
	require.NoError(t, syscall.Pipe(fds[:]))
	r, w = os.NewFile(uintptr(fds[0]), "r"), os.NewFile(uintptr(fds[1]), "w")
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

func nonblocking(t *testing.T, f *os.File) (yes bool) {
	t.Helper()
	withDescriptor(f, func(fd int) {
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
		require.NoError(t, err)
		yes = flags&unix.O_NONBLOCK != 0
	})
	return yes
}

func TestUnblockedPipesTakeDeadlinesUntilTheyAreRestored(t *testing.T) {
	r, w := pipe(t)
	require.Error(t, r.SetReadDeadline(time.Now()), "a blocking pipe has no deadlines")
	in, restore := SetNonblock(r)
	require.NoError(t, in.SetReadDeadline(time.Now()))
	_, err := in.Read(make([]byte, 1))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.False(t, nonblocking(t, w), "the other end is unchanged")
	restore()
	require.False(t, nonblocking(t, r))
}

func TestUnblockLeavesOtherStreamsAlone(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "x"))
	require.NoError(t, err)
	defer file.Close()
	same, _ := SetNonblock(file)
	require.Same(t, file, same, "a regular file")

	_, w := pipe(t)
	same, _ = SetNonblock(w, w)
	require.Same(t, w, same, "the file of stderr, too")
	require.False(t, nonblocking(t, w))

	r, _, err := os.Pipe() // in the poller already
	require.NoError(t, err)
	defer r.Close()
	same, restore := SetNonblock(r)
	restore()
	require.Same(t, r, same)
	require.True(t, nonblocking(t, r))
	_, ok := IsTerminal(r)
	require.False(t, ok)
}

func TestAProcessThatEndedIsNotAlive(t *testing.T) {
	cmd := exec.Command("cat")
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	require.True(t, IsRunning(cmd.Process.Pid))
	require.NoError(t, in.Close())
	_, _ = out.Read(make([]byte, 1)) // end of input
	require.NoError(t, cmd.Wait())
	require.False(t, IsRunning(cmd.Process.Pid))
	require.False(t, IsRunning(0))
}
