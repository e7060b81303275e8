package configedit_test

import (
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"goblin/gateway/configedit"
)

// A shared config keeps its owner and group if another user edits it.
func TestSavingKeepsOwnerGroupAndMode(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("needs root to create files of other users")
	}
	for name, user := range map[string]int{"by root": 0, "by another user": 1001} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for d := dir; d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
				require.NoError(t, os.Chmod(d, 0o777))
			}
			path := filepath.Join(dir, "config.yaml")
			require.NoError(t, os.WriteFile(path, []byte("servers: {}\n"), 0o600))
			require.NoError(t, os.Chown(path, 1002, 1003))
			require.NoError(t, os.Chmod(path, 0o666))
			saved := make(chan error, 1)
			go func() {
				runtime.LockOSThread() // the thread exits with this goroutine
				_ = unix.Setfsgid(user)
				_ = unix.Setfsuid(user)
				f, err := configedit.Open(path)
				if err == nil {
					f.SetText([]byte("servers: {} # changed\n"))
					err = f.Save()
				}
				saved <- err
			}()
			require.NoError(t, <-saved)
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, "servers: {} # changed\n", string(text))
			info, err := os.Stat(path)
			require.NoError(t, err)
			owner := info.Sys().(*syscall.Stat_t)
			require.Equal(t, []uint32{1002, 1003}, []uint32{owner.Uid, owner.Gid})
			require.Equal(t, os.FileMode(0o666), info.Mode().Perm())
			left, err := os.ReadDir(dir)
			require.NoError(t, err)
			require.Len(t, left, 1)
		})
	}
}

// permissions returns the mode and the access list of a file.
func permissions(t *testing.T, path string) (mode os.FileMode, list []byte) {
	t.Helper()
	info, err := os.Stat(path)
	require.NoError(t, err)
	list = make([]byte, 256)
	n, err := unix.Getxattr(path, "system.posix_acl_access", list)
	if err != nil {
		n = 0
	}
	return info.Mode().Perm(), list[:n]
}

func TestSavingKeepsTheAccessListOfASharedConfig(t *testing.T) {
	t.Parallel()
	f := opened(t, t.TempDir(), "config.yaml", "servers: {}\n# long\n")
	list := []byte{2, 0, 0, 0} // the version; then tag, permissions and id of each entry
	for _, e := range [][3]byte{{1, 6, 255}, {2, 6, 77}, {4, 4, 255}, {0x10, 6, 255}, {0x20, 0, 255}} {
		id := []byte{e[2], 0, 0, 0}
		if e[2] == 255 {
			id = []byte{255, 255, 255, 255}
		}
		list = append(append(list, e[0], 0, e[1], 0), id...)
	}
	if err := unix.Setxattr(f.Path(), "system.posix_acl_access", list, 0); err != nil {
		t.Skip("no access lists here:", err)
	}
	mode, before := permissions(t, f.Path())
	f.SetText([]byte("servers: {}\n"))
	require.NoError(t, f.Save())
	now, after := permissions(t, f.Path())
	require.Equal(t, mode, now)
	require.Equal(t, before, after)
	text, err := os.ReadFile(f.Path())
	require.NoError(t, err)
	require.Equal(t, "servers: {}\n", string(text))
}

// Its owner can close a shared config while another user edits it.
func TestSavingRestoresNoPermissionThatWasRemovedMeanwhile(t *testing.T) {
	t.Parallel()
	f := opened(t, t.TempDir(), "config.yaml", "servers: {}\n")
	f.SetText([]byte("servers: {} # changed\n"))
	require.NoError(t, os.Chmod(f.Path(), 0o600))
	require.NoError(t, f.Save())
	mode, _ := permissions(t, f.Path())
	require.Equal(t, os.FileMode(0o600), mode)
}

// Users who share the folder of a config cannot make an edit write to another file.
func TestSavingFollowsNoLinkThatReplacedTheConfig(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f := opened(t, dir, "config.yaml", "servers: {}\n")
	other := filepath.Join(dir, "other")
	require.NoError(t, os.WriteFile(other, []byte("servers: {}\n"), 0o600))
	require.NoError(t, os.Remove(f.Path()))
	require.NoError(t, os.Symlink(other, f.Path()))
	f.SetText([]byte("servers: {} # changed\n"))
	require.ErrorIs(t, f.Save(), configedit.ErrChanged)
	text, err := os.ReadFile(other)
	require.NoError(t, err)
	require.Equal(t, "servers: {}\n", string(text))
}
