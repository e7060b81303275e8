//go:build e2e

package commands

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// A server started by an editor has a different PATH than the user's shell.
func TestDoctorFindsWhatOnlyTheDaemonLacks(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	bin := filepath.Join(w.Dir, "tools")
	require.NoError(t, os.Mkdir(bin, 0o700))
	require.NoError(t, os.Symlink(e2e.TestServer, filepath.Join(bin, "only-here")))
	b := w.Backend("notes", e2e.Shop())
	b.Conf["command"] = "only-here"
	plain := slices.Clone(w.Env)
	w.Env = append(plain, "PATH=/usr/bin:/bin")
	require.Empty(t, w.Bridged().Names("tools"))

	w.Env = append(slices.Clone(plain), "PATH="+bin+":/usr/bin:/bin")
	out := w.Run("doctor")
	require.Equal(t, 1, out.Code, out.Stderr)
	require.Regexp(t, `notes +warning +command: only-here is \S+/tools/only-here; clients started from the desktop don't have \S+/tools in their PATH`, out.Stdout)
	require.Regexp(t, `broken +daemon: works here, but not in the running daemon \(pid \d+\), which has another environment: "only-here" not found in PATH \(/usr/bin:/bin\)`, out.Stdout)
	require.Regexp(t, `goblin +ok +pid \d+, up .*, 1 client`, out.Stdout)
	require.Equal(t, 1, b.Starts(), "the process of the shell, which has exited")
}
