package daemon_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/daemon"
	"goblin/gateway/e2e"
)

func TestLocateMakesAPrivateFolder(t *testing.T) {
	p := place(t)
	fi, err := os.Stat(p.Dir)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), fi.Mode().Perm())
	require.Less(t, len(p.Socket), 100)
	for _, path := range []string{p.Socket, p.Lock, p.Log} {
		require.Equal(t, p.Dir, filepath.Dir(path))
	}
}

func TestLocateTellsConfigsAndVersionsApart(t *testing.T) {
	getenv := env(map[string]string{"XDG_RUNTIME_DIR": filepath.Dir(place(t).Dir)})
	seen := map[string]string{}
	for _, c := range [][2]string{{"a", "1"}, {"a", "2"}, {"b", "1"}} {
		p, err := daemon.Find(c[0], c[1], getenv)
		require.NoError(t, err)
		again, err := daemon.Find(c[0], c[1], getenv)
		require.NoError(t, err)
		require.Equal(t, p, again)
		require.NotContains(t, seen, p.Socket)
		seen[p.Socket] = p.Lock
	}
}

func TestLocateFallsBackToFoldersThatNeedNoEnvironment(t *testing.T) {
	base := filepath.Dir(place(t).Dir)
	usual := filepath.Join(base, "run", strconv.Itoa(os.Getuid()))
	tests := map[string]string{
		"no runtime folder":          "",
		"a runtime folder not there": filepath.Join(base, "none"),
		"a relative one":             "run",
		"one too long":               longDir(t, base),
	}
	daemon.Bases(t, filepath.Join(base, "run"), base)
	locate := func(t *testing.T, run string) string {
		t.Helper()
		var dir string
		for _, tmp := range []string{"", base, filepath.Join(base, "elsewhere")} {
			p, err := daemon.Find("hash", "v1", env(map[string]string{"XDG_RUNTIME_DIR": run, "TMPDIR": tmp}))
			require.NoError(t, err)
			if dir != "" {
				require.Equal(t, dir, p.Dir, "TMPDIR is ignored")
			}
			dir = p.Dir
		}
		return dir
	}
	for name, run := range tests {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, filepath.Join(base, "goblin-"+strconv.Itoa(os.Getuid())), locate(t, run))
		})
	}
	require.NoError(t, os.MkdirAll(usual, 0o700))
	for name, run := range tests {
		t.Run(name+", but the usual one", func(t *testing.T) {
			require.Equal(t, filepath.Join(usual, "goblin"), locate(t, run))
			// Users with and without the variable find each other's daemon.
			require.Equal(t, filepath.Join(usual, "goblin"), locate(t, usual))
		})
	}
	require.NoError(t, os.Remove(filepath.Join(usual, "goblin")))
	require.NoError(t, os.Remove(usual))
	require.NoError(t, os.WriteFile(usual, nil, 0o600))
	require.Equal(t, filepath.Join(base, "goblin-"+strconv.Itoa(os.Getuid())), locate(t, ""), "not a folder")
}

func longDir(t *testing.T, in string) string {
	dir := filepath.Join(in, strings.Repeat("x", 90))
	require.NoError(t, os.Mkdir(dir, 0o700))
	return dir
}

func TestLocateRefusesAFolderThatOthersControl(t *testing.T) {
	tests := map[string]struct {
		make func(t *testing.T, dir string)
		want string
	}{
		"a symbolic link": {func(t *testing.T, dir string) { require.NoError(t, os.Symlink(t.TempDir(), dir)) }, "symbolic link"},
		"a file":          {func(t *testing.T, dir string) { require.NoError(t, os.WriteFile(dir, nil, 0o600)) }, "not a folder"},
		"open to others": {func(t *testing.T, dir string) {
			require.NoError(t, os.Mkdir(dir, 0o755))
			require.NoError(t, os.Chmod(dir, 0o755))
		}, "chmod 700"},
		"open to the group": {func(t *testing.T, dir string) {
			require.NoError(t, os.Mkdir(dir, 0o700))
			require.NoError(t, os.Chmod(dir, 0o710))
		}, "chmod 700"},
		"another user's": {func(t *testing.T, dir string) { require.NoError(t, os.Mkdir(dir, 0o700)); Foreign(t) }, "another user"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tmp := e2e.ShortDir(t)
			daemon.Bases(t, filepath.Join(tmp, "run"), tmp)
			getenv := env(nil)
			p, err := daemon.Find("hash", "v1", getenv)
			require.NoError(t, err)
			require.NoError(t, os.Remove(p.Dir))
			tt.make(t, p.Dir)
			_, err = daemon.Find("hash", "v1", getenv)
			require.ErrorContains(t, err, tt.want)
			require.ErrorContains(t, err, p.Dir)
		})
	}
}

// Foreign makes every file look like another user's.
func Foreign(t *testing.T) { daemon.Foreign(t, true, false) }
