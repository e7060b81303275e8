package downstream_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/downstream"
)

func TestTheFolderOfAProjectIsOneThatIsThere(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	below, link, file := filepath.Join(dir, "a b", "c"), filepath.Join(dir, "link"), filepath.Join(dir, "file")
	require.NoError(t, os.MkdirAll(below, 0o700))
	require.NoError(t, os.Symlink(filepath.Join(dir, "a b"), link))
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for path, want := range map[string]string{dir: dir, below + "/../c/": below, link: filepath.Join(dir, "a b")} {
		folder, err := downstream.ProjectFolder(path)
		require.NoError(t, err)
		require.Equal(t, want, folder, path)
	}
	for path, why := range map[string]string{
		"a b": "is not absolute", "": "is not absolute", file: "is not a folder", dir + "/none": "does not exist",
		"/": "is the root of the file system, not a project", "/" + strings.Repeat("x", 4096): "is longer than 4096 bytes",
		dir + "\n": "has control characters", dir + "\u202e": "has control characters", dir + "\xff": "has control characters",
	} {
		_, err := downstream.ProjectFolder(path)
		require.ErrorContains(t, err, why, "%q", path)
		require.NotContains(t, err.Error(), "\u202e")
	}

	if own := downstream.ProjectOf(dir); own != "" {
		t.Skipf("the temporary folder is in a repository, %s", own)
	}
	require.NoError(t, os.Mkdir(filepath.Join(dir, "a b", ".jj"), 0o700))
	require.Equal(t, below, downstream.ProjectOf(below), "its parent is a repository")
	require.Equal(t, filepath.Join(dir, "a b"), downstream.ProjectOf(link), "by its only path")
	require.Empty(t, downstream.ProjectOf("a b"))
}
