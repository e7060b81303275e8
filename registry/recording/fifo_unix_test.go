//go:build unix

package recording_test

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/registry/recording"
)

func TestPipesAndDevicesAreRefused(t *testing.T) {
	t.Parallel()
	fifo := filepath.Join(t.TempDir(), "a.jsonl")
	require.NoError(t, syscall.Mkfifo(fifo, 0o600))
	for _, path := range []string{fifo, "/dev/zero"} {
		_, err := recording.Open(path)
		require.ErrorContains(t, err, "not a regular file")
	}
	_, err := recording.Open(filepath.Dir(fifo))
	require.ErrorContains(t, err, "no recordings")
}
