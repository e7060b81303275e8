package state_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/state"
)

const month = 30 * 24 * time.Hour

// store returns a ListCache and its log.
func store(folder string) (*state.ListCache, *bytes.Buffer) {
	var log bytes.Buffer
	return state.NewListCache(folder, "/etc/goblin.yaml", month, slog.New(slog.NewTextHandler(&log, nil))), &log
}

// written waits until all lists are written.
func written(t *testing.T, s *state.ListCache) {
	t.Helper()
	ended, end := context.WithCancel(t.Context())
	end()
	s.Run(ended)
}

var about = json.RawMessage(`{"name":"one"}`)

// kept returns a folder with a server's file, and the file's path.
func kept(t *testing.T) (folder, file string) {
	t.Helper()
	folder = filepath.Join(t.TempDir(), "catalog")
	s, log := store(folder)
	s.Put("one", "id", about, map[int][][]byte{0: {[]byte(`{"name": "a"}`), []byte(`{"name":"b"}`)}, 2: {[]byte(`{"uri":"x:1"}`)}})
	written(t, s)
	require.Empty(t, log.String())
	files, err := filepath.Glob(filepath.Join(folder, "one-*.catalog"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	return folder, files[0]
}

func TestWhatIsKeptIsThereAgain(t *testing.T) {
	t.Parallel()
	folder, file := kept(t)
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	info, err = os.Stat(folder)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())

	s, log := store(folder)
	s.Put("one", "id", about, map[int][][]byte{0: {[]byte("{\"name\" : \"c\",\r\n\t\"x\": []}")}}) // the other list is unchanged
	written(t, s)
	head := s.Head("one", "id")
	require.NotNil(t, head)
	require.JSONEq(t, string(about), string(head.About))
	require.WithinDuration(t, time.Now(), head.Saved, time.Minute)
	lists, ok := s.Lists("one", "id")
	require.True(t, ok)
	require.Equal(t, "[[{\"name\" : \"c\",  \t\"x\": []}] [] [{\"uri\":\"x:1\"}]]", fmt.Sprintf("%s", lists), "with its spaces, on one line")
	require.Nil(t, s.Head("two", "id"))
	require.Empty(t, log.String())

	require.Nil(t, s.Head("one", "another id"), "the definition was edited")
	require.NoFileExists(t, file)
	require.Empty(t, log.String(), "not an error")
}

func TestWhatCannotBeReadIsThrownAwayWithAWarning(t *testing.T) {
	t.Parallel()
	edit := func(change func(string) string) func(*testing.T, string) {
		return func(t *testing.T, file string) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(file, []byte(change(string(text))), 0o600))
		}
	}
	for name, row := range map[string]struct {
		damage func(t *testing.T, file string)
		says   string
	}{
		"empty":     {edit(func(string) string { return "" }), "head: "},
		"foreign":   {edit(func(string) string { return "hello\nyou\n" }), "head: "},
		"no format": {edit(func(string) string { return "{}\n" }), "unknown format 0"},
		"newer":     {edit(func(s string) string { return strings.Replace(s, `"format":1`, `"format":2`, 1) }), "unknown format 2"},
		"cut off":   {edit(func(s string) string { return s[:len(s)-80] }), "damaged or truncated"},
		"one bit":   {edit(func(s string) string { return strings.Replace(s, `"b"`, `"c"`, 1) }), "damaged or truncated"},
		"longer":    {edit(func(s string) string { return s + "0{}\n" }), "damaged or truncated"},
		"much head": {edit(func(string) string { return strings.Repeat("x", 5<<20) }), "too long"},
		"200 MB":    {func(t *testing.T, file string) { require.NoError(t, os.Truncate(file, 200<<20)) }, "larger than allowed: 200 MiB, limit 64 MiB"},
		"no file": {func(t *testing.T, file string) {
			require.NoError(t, os.Remove(file))
			require.NoError(t, os.Mkdir(file, 0o700))
		}, "not a regular file"},
		"too deep":   {func(t *testing.T, file string) { sum(t, file, strings.Repeat("[", 600)+strings.Repeat("]", 600)) }, "too deep"},
		"no entries": {func(t *testing.T, file string) { sum(t, file, `{"name"}`) }, "invalid JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			folder, file := kept(t)
			row.damage(t, file)
			s, log := store(folder)
			if s.Head("one", "id") != nil {
				_, ok := s.Lists("one", "id")
				require.False(t, ok)
			}
			require.Contains(t, log.String(), "cached lists discarded")
			require.Contains(t, log.String(), row.says)
			require.NoFileExists(t, file)
			require.NoDirExists(t, file)
		})
	}
}

// sum writes another entry to a file, with a valid digest.
func sum(t *testing.T, file, entry string) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	head, _, _ := strings.Cut(string(text), "\n")
	require.NoError(t, os.WriteFile(file, []byte(head+"\n"+digested("0"+entry+"\n")), 0o600))
}

func TestAClockThatJumpsCostsNothing(t *testing.T) {
	t.Parallel()
	folder, file := kept(t)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	later := time.Now().AddDate(5, 0, 0)
	saved := regexp.MustCompile(`"saved":"[^"]+"`)
	require.Regexp(t, saved, string(text))
	text = saved.ReplaceAll(text, []byte(`"saved":"`+later.UTC().Format(time.RFC3339Nano)+`"`))
	require.NoError(t, os.WriteFile(file, text, 0o600))
	require.NoError(t, os.Chtimes(file, later, later))
	s, log := store(folder)
	written(t, s) // also sweeps
	head := s.Head("one", "id")
	require.NotNil(t, head)
	require.WithinDuration(t, time.Now(), head.Saved, time.Minute, "a future time counts as now")
	require.Empty(t, log.String())
}

func TestWhatNobodyUsesGoes(t *testing.T) {
	t.Parallel()
	folder, file := kept(t)
	leftover := filepath.Join(folder, "one.123.part")
	require.NoError(t, os.WriteFile(leftover, nil, 0o600))
	old := time.Now().Add(-month - time.Hour)
	require.NoError(t, os.Chtimes(file, old, old))
	require.NoError(t, os.Chtimes(leftover, old, old))
	s, _ := store(folder)
	require.Nil(t, s.Head("one", "id"))
	require.NoFileExists(t, file)

	_, file = kept(t)
	require.NoError(t, os.Chtimes(file, old, old))
	written(t, s)
	require.NoFileExists(t, leftover)
	s, _ = store(filepath.Dir(file))
	written(t, s)
	require.NoFileExists(t, file)
}

func TestWhatIsUsedOrBeingWrittenStays(t *testing.T) {
	t.Parallel()
	folder, file := kept(t)
	young, left := filepath.Join(folder, "one.1.part"), filepath.Join(folder, "one.2.part")
	require.NoError(t, os.WriteFile(young, nil, 0o600))
	require.NoError(t, os.WriteFile(left, nil, 0o600))
	old := time.Now().Add(-2 * time.Hour)
	require.NoError(t, os.Chtimes(file, old, old))
	require.NoError(t, os.Chtimes(left, old, old))
	s, _ := store(folder)
	require.NotNil(t, s.Head("one", "id"))
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.WithinDuration(t, time.Now(), info.ModTime(), time.Minute, "just used")
	written(t, s)
	require.FileExists(t, file)
	require.FileExists(t, young)
	require.NoFileExists(t, left, "no write takes that long")
}

func TestWhatIsForgottenIsNotWrittenLater(t *testing.T) {
	t.Parallel()
	folder, file := kept(t)
	s, _ := store(folder)
	s.Put("one", "id", about, map[int][][]byte{0: {[]byte(`{"name":"c"}`)}})
	s.Forget("one")
	require.NoFileExists(t, file)
	written(t, s)
	require.NoFileExists(t, file)

	// A pending write for an older definition is dropped.
	s.Put("one", "id", about, map[int][][]byte{0: {[]byte(`{"name":"c"}`)}})
	s.Put("one", "id 2", about, map[int][][]byte{1: {[]byte(`{"name":"d"}`)}})
	written(t, s)
	lists, ok := s.Lists("one", "id 2")
	require.True(t, ok)
	require.Equal(t, `[[] [{"name":"d"}]]`, fmt.Sprintf("%s", lists))
}

func TestAFolderThatCannotBeWrittenIsToldOnce(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "catalog")
	require.NoError(t, os.WriteFile(folder, nil, 0o600)) // so that even root cannot create the folder
	s, log := store(folder)
	for _, server := range []string{"one", "two", "one"} {
		s.Put(server, "id", about, nil)
		written(t, s)
	}
	require.Equal(t, 1, strings.Count(log.String(), "lists not cached"), log.String())
	require.Contains(t, log.String(), folder)
}

func TestListsThatAreTooLargeAreNotKept(t *testing.T) {
	t.Parallel()
	folder, file := kept(t)
	s, log := store(folder)
	large := []byte(`"` + strings.Repeat("x", 1<<20) + `"`)
	s.Put("one", "id", about, map[int][][]byte{1: bytes.SplitN(bytes.Repeat(append(large, '\n'), 64), []byte("\n"), 64)})
	written(t, s)
	require.Contains(t, log.String(), "larger than 60 MiB")
	require.NoFileExists(t, file, "out of date")
	left, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Empty(t, left)
}

func FuzzParse(f *testing.F) {
	head := `{"format":1,"identity":"id","about":{}}` + "\n"
	f.Add([]byte(head+digested("0{\"name\":\"a\"}\n2{}\n")), "")
	f.Add([]byte(head), "0{}\n")
	f.Fuzz(func(t *testing.T, text []byte, body string) {
		_, _ = state.ParseLists(text, "id")
		lists, err := state.ParseLists([]byte(head+digested(body)), "id") // unlikely as damage
		if err != nil {
			return
		}
		n := 0
		for _, items := range lists {
			for _, item := range items {
				require.True(t, json.Valid(item))
				n++
			}
		}
		require.Equal(t, strings.Count(body, "\n"), n)
	})
}

// digested returns a body with its digest, as a file has them below its head.
func digested(body string) string {
	return fmt.Sprintf("%s%x\n", body, sha256.Sum256([]byte(body)))
}
