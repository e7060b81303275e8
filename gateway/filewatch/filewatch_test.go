package filewatch_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/filewatch"
)

// follow runs File for the current file. next waits for a call of changed and returns the
// file's content at that time.
func follow(t *testing.T, path string) (next func() string, quiet func()) {
	t.Helper()
	read, err := os.Stat(path)
	require.NoError(t, err)
	return follows(t, path, read)
}

func follows(t *testing.T, path string, read fs.FileInfo) (next func() string, quiet func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	seen, ended := make(chan string, 100), make(chan struct{})
	go func() {
		defer close(ended)
		filewatch.File(ctx, path, read, func() {
			text, err := os.ReadFile(path)
			if err != nil {
				text = []byte("none")
			}
			seen <- string(text)
		})
	}()
	t.Cleanup(func() { cancel(); <-ended })
	next = func() string {
		t.Helper()
		select {
		case text := <-seen:
			return text
		case <-time.After(30 * time.Second):
			t.Fatal("the change was missed")
			return ""
		}
	}
	// quiet checks that there is no call while another file of the folder is written,
	// which another watch notices.
	quiet = func() {
		t.Helper()
		beside := path + ".beside"
		write(t, beside, "")
		other, _ := follow(t, beside)
		for n := range 4 {
			text := fmt.Sprint(n)
			write(t, beside, text)
			for other() != text {
			}
		}
		require.Empty(t, seen, "called without a change")
	}
	return next, quiet
}

func write(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

func TestAChangedFileIsSeenHoweverItChanged(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(t *testing.T, dir string) (want string){
		"written": func(t *testing.T, dir string) string {
			write(t, filepath.Join(dir, "file"), "new")
			return "new"
		},
		"replaced by a rename": func(t *testing.T, dir string) string {
			write(t, filepath.Join(dir, ".file.tmp"), "new")
			require.NoError(t, os.Rename(filepath.Join(dir, ".file.tmp"), filepath.Join(dir, "file")))
			return "new"
		},
		"truncated": func(t *testing.T, dir string) string {
			require.NoError(t, os.Truncate(filepath.Join(dir, "file"), 0))
			return ""
		},
		"removed": func(t *testing.T, dir string) string {
			require.NoError(t, os.Remove(filepath.Join(dir, "file")))
			return "none"
		},
		"written in steps": func(t *testing.T, dir string) string {
			f, err := os.Create(filepath.Join(dir, "file"))
			require.NoError(t, err)
			for range 10 {
				_, err = f.WriteString("x")
				require.NoError(t, err)
				time.Sleep(20 * time.Millisecond)
			}
			require.NoError(t, f.Close())
			return "xxxxxxxxxx"
		},
		"its folder replaced": func(t *testing.T, dir string) string {
			require.NoError(t, os.Rename(dir, dir+".old"))
			require.NoError(t, os.MkdirAll(dir, 0o700))
			write(t, filepath.Join(dir, "file"), "new")
			return "new"
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "dir")
			require.NoError(t, os.Mkdir(dir, 0o700))
			path := filepath.Join(dir, "file")
			write(t, path, "old")
			next, _ := follow(t, path)
			want := change(t, dir)
			for next() != want { // intermediate contents may be seen, too
			}
			write(t, path, "once more")
			for next() != "once more" {
			}
		})
	}
}

func TestLinksAreFollowedToWhereTheyLeadNow(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for _, release := range []string{"one", "two"} {
		require.NoError(t, os.Mkdir(filepath.Join(root, release), 0o700))
		write(t, filepath.Join(root, release, "file"), release)
	}
	point := func(link, target string) {
		require.NoError(t, os.Symlink(target, filepath.Join(root, "tmp")))
		require.NoError(t, os.Rename(filepath.Join(root, "tmp"), filepath.Join(root, link)))
	}
	// Mounted secrets are links into a folder that is a link.
	point("current", "one")
	point("file", filepath.Join("current", "file"))
	next, _ := follow(t, filepath.Join(root, "file"))
	point("current", "two")
	require.Equal(t, "two", next())
	write(t, filepath.Join(root, "two", "file"), "edited")
	for next() != "edited" { // it may be seen between truncation and write
	}
	point("file", filepath.Join("one", "file"))
	require.Equal(t, "one", next())
}

func TestOtherFilesOfTheFolderDoNotCount(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	write(t, path, "old")
	next, quiet := follow(t, path)
	fresh := filepath.Join(t.TempDir(), "file")
	write(t, fresh, "new")
	require.NoError(t, os.Rename(fresh, path)) // one change; a write is two
	require.Equal(t, "new", next(), "it is watched")
	quiet()
	write(t, fresh, "newer")
	require.NoError(t, os.Rename(fresh, path))
	require.Equal(t, "newer", next())
}

func TestAFileThatCanBeReadAgainIsSeen(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	write(t, path, "old")
	next, quiet := follow(t, path)
	require.NoError(t, os.Chmod(path, 0o400))
	require.Equal(t, "old", next())
	quiet()
	require.NoError(t, os.Chmod(path, 0o600))
	require.Equal(t, "old", next())
}

func TestAFileThatWasNotReadIsSeenFromTheFirstLookOn(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	write(t, path, "old")
	next, quiet := follows(t, path, nil)
	quiet()
	var writing sync.WaitGroup
	seen := make(chan struct{})
	writing.Go(func() { // repeat: the time of the first read is unknown
		for n := 0; ; n++ {
			_ = os.WriteFile(path, fmt.Append(nil, n), 0o600)
			select {
			case <-seen:
				return
			case <-time.After(300 * time.Millisecond):
			}
		}
	})
	require.NotEqual(t, "old", next())
	close(seen)
	writing.Wait()
}

func TestAChangeBeforeTheFirstLookIsSeen(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	write(t, path, "old")
	read, err := os.Stat(path)
	require.NoError(t, err)
	for _, text := range []string{"edited", ""} {
		if text != "" {
			write(t, path, text)
		} else {
			require.NoError(t, os.Remove(path))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		seen := 0
		filewatch.File(ctx, path, read, func() { seen++; cancel() })
		require.Equal(t, 1, seen)
	}
}

// The file may be created while a new path is handled.
func TestAFileThatAppearsWhileItsPathIsReportedIsSeen(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	paths := make(chan string, 1)
	paths <- path
	seen := 0
	filewatch.Latest(ctx, "", paths, func() {
		if seen++; seen == 1 {
			write(t, path, "created")
		} else {
			cancel()
		}
	})
	require.Equal(t, 2, seen)
}
