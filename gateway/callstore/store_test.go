package callstore_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/callstore"
	"goblin/registry/savedcall"
)

func newStore(t *testing.T, files map[string]string) callstore.Store {
	t.Helper()
	s := callstore.Store{Folder: filepath.Join(t.TempDir(), "saved")}
	for name, text := range files {
		path := filepath.Join(s.Folder, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	return s
}

func names(t *testing.T, s callstore.Store) (all []string) {
	t.Helper()
	folder, err := s.SavedCalls()
	require.NoError(t, err)
	for _, f := range folder.Files {
		all = append(all, f.Name)
	}
	return all
}

func TestAFolderIsReadInOrderWithItsMistakes(t *testing.T) {
	t.Parallel()
	s := newStore(t, map[string]string{
		"b.yaml": "call: x\n", "a/2.yml": "read: x://y\n", "a/1.yaml": "call: x\ntypo: 1\n", "a/1.answer.json": "{}",
		"notes.txt": "", ".hidden/c.yaml": "call: x\n", "a/.d.yaml": "call: x\n", "big.yaml": strings.Repeat("#", savedcall.MaxFile+1),
	})
	require.Equal(t, []string{"b.yaml", "big.yaml", "a/1.yaml", "a/2.yml"}, names(t, s))
	folder, err := s.SavedCalls()
	require.NoError(t, err)
	require.Contains(t, folder.Files[1].Mistakes, "big.yaml:1: larger than 1 MiB")
	require.Contains(t, folder.Files[2].Mistakes, filepath.Join(s.Folder, "a", "1.yaml")+":2: ")
	require.True(t, folder.Files[2].HasAnswer)
	require.Equal(t, savedcall.KindRead, folder.Files[3].Call.Kind)
}

func TestAMissingFolderIsCreatedByTheFirstCall(t *testing.T) {
	t.Parallel()
	s := newStore(t, nil)
	require.Empty(t, names(t, s))
	require.NoDirExists(t, s.Folder)
	where, err := s.SaveCall("a/b.yaml", &savedcall.Call{Kind: savedcall.KindCall, Name: "x"}, false)
	require.NoError(t, err)
	require.Equal(t, filepath.Join(s.Folder, "a", "b.yaml"), where)
	require.Equal(t, []string{"a/b.yaml"}, names(t, s))
	_, err = callstore.Store{}.SavedCalls()
	require.ErrorContains(t, err, "no folder")
}

func TestCommentsStayAndFilesAreNotReplacedUnasked(t *testing.T) {
	t.Parallel()
	s := newStore(t, map[string]string{"a.yaml": "# why\ncall: x\narguments: {n: 1}\n"})
	c := &savedcall.Call{Kind: savedcall.KindCall, Name: "x", Arguments: []byte(`{"n":2}`)}
	_, err := s.SaveCall("a.yaml", c, false)
	require.ErrorIs(t, err, fs.ErrExist)
	_, err = s.SaveCall("a.yaml", c, true)
	require.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(s.Folder, "a.yaml"))
	require.NoError(t, err)
	require.Contains(t, string(text), "# why")
	require.Contains(t, string(text), "n: 2")
	left, err := os.ReadDir(s.Folder)
	require.NoError(t, err)
	require.Len(t, left, 1, "no temporary files")
}

func TestNamesAndLinksStayInTheFolder(t *testing.T) {
	t.Parallel()
	s := newStore(t, map[string]string{"a.yaml": "call: x\n"})
	outside := filepath.Join(t.TempDir(), "secret.yaml")
	require.NoError(t, os.WriteFile(outside, []byte("call: secret\n"), 0o644))
	require.NoError(t, os.Symlink(outside, filepath.Join(s.Folder, "link.yaml")))
	require.NoError(t, os.Symlink(filepath.Dir(outside), filepath.Join(s.Folder, "folder")))
	require.NoError(t, os.Symlink(outside, filepath.Join(s.Folder, "a.answer.json")))
	folder, err := s.SavedCalls()
	require.NoError(t, err)
	require.Equal(t, []string{"a.yaml", "link.yaml"}, names(t, s))
	require.Contains(t, folder.Files[1].Mistakes, "not a regular file inside the folder")

	c := &savedcall.Call{Kind: savedcall.KindCall, Name: "x"}
	for _, name := range []string{"../b.yaml", "/b.yaml", "folder/b.yaml", "link.yaml", "a/../b.yaml", ".b.yaml", "b", "b\\c.yaml", "b\x1b.yaml", ".yaml", ""} {
		_, err := s.SaveCall(name, c, true)
		require.Error(t, err, name)
		require.Error(t, s.MoveSavedCall("a.yaml", name, true), name)
	}
	_, err = s.Load([]string{"a.yaml"})
	require.ErrorContains(t, err, "a.answer.json: not a regular file", "the runner would follow the link")
	_, err = s.StoredAnswer("a.yaml")
	require.Error(t, err)
	text, err := os.ReadFile(outside)
	require.NoError(t, err)
	require.Equal(t, "call: secret\n", string(text))
}

func TestAnswersMoveWithTheirCalls(t *testing.T) {
	t.Parallel()
	s := newStore(t, map[string]string{"a/b.yaml": "call: x\n", "taken.yaml": "call: y\n"})
	require.NoError(t, s.StoreAnswer("a/b.yaml", []byte("{}")))
	require.ErrorIs(t, s.MoveSavedCall("a/b.yaml", "taken.yaml", false), fs.ErrExist)
	require.NoError(t, s.MoveSavedCall("a/b.yaml", "c/copy.yaml", true))
	require.NoError(t, s.MoveSavedCall("a/b.yaml", "d.yaml", false))
	require.Equal(t, []string{"d.yaml", "taken.yaml", "c/copy.yaml"}, names(t, s))
	require.NoDirExists(t, filepath.Join(s.Folder, "a"), "empty folders go")
	for _, name := range []string{"c/copy.yaml", "d.yaml"} {
		answer, err := s.StoredAnswer(name)
		require.NoError(t, err)
		require.Equal(t, "{}", string(answer))
	}
	require.NoError(t, s.DeleteSavedCall("d.yaml"))
	require.NoFileExists(t, filepath.Join(s.Folder, "d.answer.json"))
}

func TestTooManyFilesAreReported(t *testing.T) {
	t.Parallel()
	s := newStore(t, map[string]string{"a.yaml": "call: x\n"})
	for i := range callstore.MaxFiles {
		require.NoError(t, os.WriteFile(filepath.Join(s.Folder, fmt.Sprintf("n%d.yaml", i)), nil, 0o644))
	}
	folder, err := s.SavedCalls()
	require.NoError(t, err)
	require.Len(t, folder.Files, callstore.MaxFiles)
	require.Contains(t, folder.Problem, "only the first 5000 files")
}
