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
