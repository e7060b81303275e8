package jsonrpc_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/jsonrpc"
)

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

func setBlocking(t *testing.T, f *os.File) {
	t.Helper()
	c, err := f.SyscallConn()
	require.NoError(t, err)
	require.NoError(t, c.Control(func(fd uintptr) { require.NoError(t, syscall.SetNonblock(int(fd), false)) }))
}

// Another process that holds the pipe can do that at any time. With one processor, a raw
// system call that blocks would stop the goroutine that ends it.
func TestAPipeThatAnotherProcessMadeBlockingStopsNoGoroutine(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	r, w := pipe(t)
	setBlocking(t, r)
	setBlocking(t, w)
	in := jsonrpc.NewReader(r, 1<<20)
	go func() { _, _ = w.WriteString("{}\n") }()
	frame, err := in.Read()
	require.NoError(t, err)
	require.Equal(t, "{}", string(frame))

	go func() { _ = r.SetReadDeadline(time.Unix(1, 0)) }()
	_, err = in.Read()
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)

	out := jsonrpc.NewStream(w) // without a reader
	for out.UnsentBytes() == 0 {
		out.Send([]byte(strings.Repeat("x", 4095) + "\n"))
	}
}

func TestAReaderReportsTheEndAndErrorsOfItsFile(t *testing.T) {
	t.Parallel()
	r, w := pipe(t)
	require.NoError(t, w.Close())
	_, err := jsonrpc.NewReader(r, 1<<20).Read()
	require.ErrorIs(t, err, io.EOF)

	r, _ = pipe(t)
	require.NoError(t, r.Close())
	_, err = jsonrpc.NewReader(r, 1<<20).Read()
	require.ErrorIs(t, err, os.ErrClosed)

	path := filepath.Join(t.TempDir(), "frames")
	require.NoError(t, os.WriteFile(path, []byte("{}\n[]"), 0o600))
	file, err := os.Open(path) // has no poller
	require.NoError(t, err)
	defer file.Close()
	in := jsonrpc.NewReader(file, 1<<20)
	for _, want := range []string{"{}", "[]"} {
		frame, err := in.Read()
		require.True(t, err == nil || errors.Is(err, io.EOF), "%v", err)
		require.Equal(t, want, string(frame))
	}
}
