//go:build e2e

package limits

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

func TestTheLogFileIsRotated(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	path := filepath.Join(w.Dir, "log")
	w.Log = e2e.Obj{"file": path}
	old := strings.Repeat(strings.Repeat("o", 99)+"\n", 40<<20/100) + "the last line\n"
	require.NoError(t, os.WriteFile(path, []byte(old), 0o600))
	w.Backend("b", e2e.Obj{})
	s := w.Serve()
	s.Signal(syscall.SIGTERM)
	require.Zero(t, s.Ends(e2e.Patience))
	fi, err := os.Stat(path)
	require.NoError(t, err)
	require.Less(t, fi.Size(), int64(64<<10))
	before, err := os.ReadFile(path + ".1")
	require.NoError(t, err)
	require.Len(t, before, 32<<20)
	require.True(t, strings.HasSuffix(string(before), "the last line\n"))
}
