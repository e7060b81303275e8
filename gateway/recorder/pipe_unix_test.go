//go:build unix

package recorder_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// Opening a pipe would block.
func TestPipesInTheFolderBlockNoRecording(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "rec")
	require.NoError(t, os.Mkdir(folder, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(folder, ".lock"), nil, 0o600))
	for _, name := range []string{".pid", ".key.part"} {
		require.NoError(t, syscall.Mkfifo(filepath.Join(folder, name), 0o600))
	}
	start(t, folder, nil).close()
	key := filepath.Join(folder, ".key")
	require.NoError(t, os.Remove(key))
	require.NoError(t, syscall.Mkfifo(key, 0o600))
	require.ErrorContains(t, newBed(t, folder).start(nil), "is damaged; remove it")
}
