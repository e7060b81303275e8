//go:build unix

package state_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"goblin/gateway/state"
)

func TestOnlyRegularFilesOfBoundedSizeAreRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	require.NoError(t, unix.Mkfifo(at("pipe"), 0o600))
	require.NoError(t, os.Mkdir(at("folder"), 0o700))
	require.NoError(t, os.Symlink("/dev/zero", at("device")))
	require.NoError(t, os.Symlink(at("nothing"), at("dangling")))
	require.NoError(t, os.WriteFile(at("file"), []byte("12345"), 0o600))
	require.NoError(t, os.Symlink(at("file"), at("link")))
	l, err := net.Listen("unix", at("socket"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })

	for name, want := range map[string]string{
		"pipe": "is a pipe, not a regular file", "folder": "is a directory, not a regular file",
		"device": "is a device, not a regular file", "socket": "is a socket, not a regular file",
		"dangling": "broken symbolic link",
	} {
		_, err := state.Read(at(name), 10)
		require.EqualError(t, err, want)
		require.NotErrorIs(t, err, os.ErrNotExist, "a missing file is another error")
		require.Equal(t, name != "dangling", errors.Is(err, state.ErrNotRegular))
	}
	_, err = state.Read(at("missing"), 10)
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = state.Read(at("file"), 4)
	require.EqualError(t, err, "larger than 4 bytes")
	for _, name := range []string{"file", "link"} {
		text, err := state.Read(at(name), 5)
		require.NoError(t, err)
		require.Equal(t, "12345", string(text))
	}
}
