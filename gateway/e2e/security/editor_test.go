//go:build e2e

package security

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// editor returns a world whose editor is a script. $1 is the file to edit, $CONFIG the
// config.
func editor(t *testing.T, script string) *e2e.World {
	t.Helper()
	w := e2e.NewWorld(t)
	w.Write()
	program, tmp := filepath.Join(w.Dir, "editor"), filepath.Join(w.Dir, "tmp")
	e2e.WriteProgram(t, program, "#!/bin/sh\nset -e\numask 0\n"+script+"\n")
	require.NoError(t, os.Mkdir(tmp, 0o700))
	w.Env = append(w.Env, "EDITOR="+program, "TMPDIR="+tmp, "CONFIG="+w.Config, "SEEN="+filepath.Join(w.Dir, "seen"))
	return w
}

func files(t *testing.T, dir string) (names []string) {
	t.Helper()
	all, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, f := range all {
		names = append(names, f.Name())
	}
	return names
}

// Editors leave backups beside the file. They save by replacing it with a file of another
// mode.
func TestNothingOfAnEditedConfigIsOpenToOthersOrStays(t *testing.T) {
	t.Parallel()
	w := editor(t, `cp "$1" "$1~"; echo "# more" >> "$1"; cp "$1" "$1.new"; mv "$1.new" "$1"; stat -c %a "$(dirname "$1")" > "$SEEN"`)
	require.NoError(t, os.Chmod(w.Config, 0o640))
	w.Succeeds("edit")
	seen, err := os.ReadFile(filepath.Join(w.Dir, "seen"))
	require.NoError(t, err)
	require.Equal(t, "700\n", string(seen))
	require.Empty(t, files(t, filepath.Join(w.Dir, "tmp")))
	text, err := os.ReadFile(w.Config)
	require.NoError(t, err)
	require.Contains(t, string(text), "# more\n")
	info, err := os.Stat(w.Config)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o640), info.Mode().Perm())
}

func TestAConfigThatChangesWhileItIsEditedIsNotOverwritten(t *testing.T) {
	t.Parallel()
	w := editor(t, `echo "# mine" >> "$1"; echo "# theirs" >> "$CONFIG"`)
	out := w.Run("edit")
	require.Equal(t, e2e.ExitFailure, out.Code)
	text, err := os.ReadFile(w.Config)
	require.NoError(t, err)
	require.Contains(t, string(text), "# theirs\n")
	require.NotContains(t, string(text), "# mine")
	kept := regexp.MustCompile(`your text is in (\S+)`).FindStringSubmatch(out.Stderr)
	require.NotNil(t, kept, out.Stderr)
	text, err = os.ReadFile(kept[1])
	require.NoError(t, err)
	require.Contains(t, string(text), "# mine\n")
	info, err := os.Stat(filepath.Dir(kept[1]))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
}

func TestAnEditorThatFailsChangesNothing(t *testing.T) {
	t.Parallel()
	w := editor(t, `echo "# mine" >> "$1"; exit 1`)
	before, err := os.ReadFile(w.Config)
	require.NoError(t, err)
	require.Equal(t, e2e.ExitFailure, w.Run("edit").Code)
	text, err := os.ReadFile(w.Config)
	require.NoError(t, err)
	require.Equal(t, before, text)
	require.Empty(t, files(t, filepath.Join(w.Dir, "tmp")))
}
