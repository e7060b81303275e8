package state_test

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/atomicfile"
	"goblin/gateway/state"
)

// parse accepts texts that begin with "ok", and detects texts of another version.
func parse(text []byte) (string, error) {
	switch {
	case string(text) == "newer":
		return "", state.ErrVersion
	case len(text) < 2 || string(text[:2]) != "ok":
		return "", errors.New("it is damaged")
	}
	return string(text), nil
}

func checkText(text []byte) error {
	_, err := parse(text)
	return err
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

func put(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

func TestADamagedFileIsReplacedByItsCopy(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "f")
	value, err := state.Load(path, 100, parse)
	require.NoError(t, err, "a missing file is empty")
	require.Empty(t, value)
	require.NoError(t, state.Save(path, []byte("ok 1"), nil))

	put(t, path, "typo")
	value, err = state.Load(path, 100, parse)
	damaged, ok := errors.AsType[*state.DamagedError](err)
	require.True(t, ok)
	require.True(t, damaged.Restored)
	require.Equal(t, "ok 1", value)
	require.NoError(t, state.UpdateCopy(path, 100, checkText))
	require.Equal(t, "ok 1", read(t, path+".good"), "a damaged file is not copied")
	require.Equal(t, "typo", read(t, path), "the user may repair it")

	require.NoError(t, state.Save(path, []byte("ok 2"), err))
	require.Equal(t, "typo", read(t, path+".damaged"))
	require.Equal(t, "ok 2", read(t, path))
	require.Equal(t, "ok 2", read(t, path+".good"))
}

func TestWhatIsNotRestoredIsNotReplaced(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, copied string }{{"typo", "typo"}, {"newer", "ok"}, {"newer", "newer"}} {
		path := filepath.Join(t.TempDir(), "f")
		put(t, path, c.text)
		put(t, path+".good", c.copied)
		_, err := state.Load(path, 100, parse)
		require.Error(t, err)
		require.ErrorIs(t, state.Save(path, []byte("ok"), err), err)
		require.Equal(t, c.text, read(t, path))
		require.Equal(t, c.copied, read(t, path+".good"))
	}
}

// A process that is killed between two writes leaves a copy that differs from the file.
func TestTheCopyFollowsTheFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "f")
	for _, text := range []string{"ok 1", "ok 2"} {
		put(t, path, text)
		require.NoError(t, state.UpdateCopy(path, 100, checkText))
		require.Equal(t, text, read(t, path+".good"))
	}
	require.NoError(t, os.Remove(path))
	require.NoError(t, state.UpdateCopy(path, 100, checkText))
	require.NoFileExists(t, path+".good", "the user removed the file")
	folder := filepath.Join(t.TempDir(), "none")
	require.NoError(t, state.UpdateCopy(filepath.Join(folder, "f"), 100, checkText))
	require.NoDirExists(t, folder, "there is no file to keep")
}

func TestWhatCannotBeWrittenChangesNothing(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "f")
	put(t, path, "ok 1")
	require.NoError(t, os.MkdirAll(path+".good/x", 0o700)) // cannot be replaced
	err := state.Save(path, []byte("ok 2"), nil)
	require.ErrorContains(t, err, "write the last good copy")
	require.ErrorContains(t, err, "remove "+path+".good")
	require.Equal(t, "ok 1", read(t, path))
}

func TestTheFileIsNeverMissingMeanwhile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "f")
	require.NoError(t, state.Save(path, []byte("ok"), nil))
	stop := make(chan struct{})
	var readers, writers sync.WaitGroup
	readers.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if value, err := state.Load(path, 100, parse); value != "ok" {
				t.Errorf("read %q: %v", value, err)
				return
			}
		}
	})
	for range 4 {
		writers.Go(func() {
			for range 25 {
				unlock, err := atomicfile.Lock(path)
				if err != nil {
					t.Error(err)
					return
				}
				_ = os.WriteFile(path, nil, 0o600) // as a damaged edit
				_, was := state.Load(path, 100, parse)
				if err := state.Save(path, []byte("ok"), was); err != nil {
					t.Error(err)
				}
				unlock()
				if err := state.UpdateCopy(path, 100, checkText); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	close(stop)
	readers.Wait()
}
