package recording_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/registry/recording"
)

func packed(t testing.TB, text string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := z.Write([]byte(text))
	require.NoError(t, err)
	require.NoError(t, z.Close())
	return b.String()
}

// folder creates a folder with files, by name.
func folder(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return dir
}

func request(n int) string { return fmt.Sprintf(`{"type":"request","n":%d}`+"\n", n) }

func numbers(lines []*recording.Line) (all []uint64) {
	for _, l := range lines {
		if l.Type != recording.TypeRecording {
			all = append(all, l.Number)
		}
	}
	return all
}

func TestDamagedRecordingsShowTheRest(t *testing.T) {
	t.Parallel()
	deep := `{"type":"request","n":9,"params":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + "}\n"
	many := packed(t, header+request(1)+strings.Repeat(request(2), 5000))
	for name, c := range map[string]struct {
		text string
		want []uint64
		says string // a part of a problem
	}{
		"deep JSON":          {header + deep + request(2), []uint64{2}, "nested deeper than 1000 levels"},
		"a long line":        {header + `{"type":"request","name":"` + strings.Repeat("x", 5<<20) + `"}` + "\n" + request(2), []uint64{2}, "one.jsonl:2: the line is too long"},
		"a long list":        {header + `{"type":"list","n":5,"removed":["` + strings.Repeat("x", 5<<20) + `"]}` + "\n" + request(2), []uint64{5, 2}, ""},
		"a double member":    {header + `{"type":"request","n":1,"n":2}` + "\n" + request(3), []uint64{3}, `member "n" occurs twice`},
		"a wrong type":       {header + `{"type":"request","n":"1"}` + "\n" + request(3), []uint64{3}, `member "n" must be a whole number`},
		"a wrong time":       {header + `{"type":"request","time":"now"}` + "\n" + request(3), []uint64{3}, "must be a time"},
		"a huge number":      {header + `{"type":"request","took":1e999}` + "\n" + request(3), []uint64{3}, `"took" must be a number`},
		"NULs of a crash":    {header + request(1) + strings.Repeat("\x00", 100_000), []uint64{1}, "100 kB of NUL bytes"},
		"NULs before a line": {header + "\x00\x00" + request(1), []uint64{1}, "2 B of NUL bytes"},
		"not an object":      {header + "[1]\n" + request(2), []uint64{2}, "not a JSON object"},
		"invalid UTF-8":      {header + `{"type":"` + "\xff" + `"}` + "\n" + request(2), []uint64{2}, "invalid JSON at byte 10"},
		"a later part":       {header + request(1) + `{"type":"recording","version":9,"goblin":"9.0.0"}` + "\n" + request(2), []uint64{1}, "one.jsonl:3: recorded by Goblin 9.0.0"},
		"escape sequences":   {header + `{"type":"` + "\x1b[2J" + `"}` + "\n" + request(2), []uint64{2}, "control character in a string"},
		"unknown types":      {header + `{"type":"new","n":1,"more":{"a":1},"N":7}` + "\r\n\n" + request(2), []uint64{1, 2}, ""},
		"a byte order mark":  {"\ufeff" + header + request(1), []uint64{1}, ""},
		"no final line feed": {header + strings.TrimSpace(request(1)), []uint64{1}, ""},
		"cut gzip":           {many[:len(many)-20], nil, "cut"},
		"damaged gzip":       {many[:len(many)-8] + "12345678", nil, "damaged: gzip: invalid checksum"},
		"parts of gzip":      {packed(t, header) + packed(t, request(1)), []uint64{1}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lines, problems := all(t, write(t, c.text))
			if c.want != nil {
				require.Equal(t, c.want, numbers(lines))
			} else {
				require.Greater(t, len(lines), 1000)
			}
			if c.says == "" {
				require.Empty(t, problems)
				return
			}
			require.Len(t, problems, 1)
			require.Contains(t, problems[0].String(), c.says)
			require.NotContains(t, problems[0].String(), "\x1b")
		})
	}
}

func TestAFolderShowsItsRecordingsInOrder(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{
		"a.jsonl.gz": packed(t, header+request(1)), "b.jsonl": header + request(2), "b.jsonl.gz": "half",
		"c.jsonl": `{"type":"recording","version":9,"goblin":"9.0"}` + "\n" + request(8), "d.jsonl": "what\x1b[0m", "e.jsonl.gz": "no gzip",
		"f.jsonl": header + request(3), "notes.txt": "hello", ".g.jsonl": header + request(9), "h.jsonl/x": "",
	})
	r, err := recording.Open(dir)
	require.NoError(t, err)
	defer r.Close()
	var lines []*recording.Line
	for {
		l, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		lines = append(lines, l)
	}
	require.Equal(t, []uint64{1, 2, 3}, numbers(lines))
	read, of := r.Files()
	require.Equal(t, []int{3, 6}, []int{read, of})
	problems, _ := r.Problems()
	require.Len(t, problems, 3)
	require.Contains(t, problems[0].String(), "c.jsonl: skipped: recorded by Goblin 9.0 in format 9")
	require.Equal(t, "d.jsonl: skipped: not a recording of Goblin", problems[1].String())

	_, err = recording.Open(t.TempDir())
	require.ErrorContains(t, err, "no recordings")
	r, err = recording.Open(folder(t, map[string]string{"a.jsonl": "x", "b.jsonl": "y"}))
	require.NoError(t, err)
	_, err = r.Next()
	require.ErrorIs(t, err, recording.ErrNotRecording)
}

func TestBodiesComeFromTheirFolderOnly(t *testing.T) {
	t.Parallel()
	sum := func(s string) string { h := sha256.Sum256([]byte(s)); return hex.EncodeToString(h[:]) }
	text := `{"a":"` + strings.Repeat("x", 70_000) + `"}`
	good, other, cut, missing := sum(text), sum("other"), sum("cut"), sum("missing")
	dir := folder(t, map[string]string{
		"bodies/" + good[:2] + "/" + good:   packed(t, text),
		"bodies/" + other[:2] + "/" + other: packed(t, "changed"),
		"bodies/" + cut[:2] + "/" + cut:     packed(t, "cut")[:12],
	})
	bodies := filepath.Join(dir, "bodies")
	got, err := recording.ReadBody(bodies, &recording.Body{File: good, Size: len(text)})
	require.NoError(t, err)
	require.Equal(t, text, string(got))
	for name, c := range map[string]struct {
		b    recording.Body
		want string
	}{
		"path":      {recording.Body{File: "../../etc/passwd", Size: 10}, "invalid reference"},
		"upper":     {recording.Body{File: strings.ToUpper(good), Size: len(text)}, "invalid reference"},
		"size":      {recording.Body{File: good, Size: 1 << 40}, "invalid reference"},
		"bomb":      {recording.Body{File: good, Size: 100 << 20}, "invalid reference"},
		"too short": {recording.Body{File: good, Size: len(text) - 1}, "contains something else"},
		"too long":  {recording.Body{File: good, Size: len(text) + 1}, "contains something else"},
		"changed":   {recording.Body{File: other, Size: 7}, "contains something else"},
		"cut":       {recording.Body{File: cut, Size: 3}, "damaged"},
		"missing":   {recording.Body{File: missing, Size: 7}, "its file is missing"},
	} {
		_, err := recording.ReadBody(bodies, &c.b)
		require.ErrorContains(t, err, c.want, name)
		require.NotContains(t, err.Error(), dir, name)
	}
}

func TestArgumentsNameAFileAndARequest(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"a.jsonl": header, "b#2": header})
	for text, want := range map[string]recording.Argument{
		dir + "/a.jsonl":    {Path: dir + "/a.jsonl"},
		dir + "/a.jsonl#17": {Path: dir + "/a.jsonl", Number: 17},
		dir + "/b#2":        {Path: dir + "/b#2"},
		dir + "/b#2#3":      {Path: dir + "/b#2", Number: 3},
		"missing#5":         {Path: "missing", Number: 5},
		"missing#x":         {Path: "missing#x"},
	} {
		got, err := recording.ParseArgument(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
		require.Equal(t, text, got.String())
	}
	for text, want := range map[string]string{
		"": "name of a recording is missing", "#3": "before # is missing",
		dir + "/a.jsonl#": "must be the number of a request, such as a.jsonl#17", dir + "/a.jsonl#0": "must be the number", dir + "/a.jsonl#-1": "must be the number",
	} {
		_, err := recording.ParseArgument(text)
		require.ErrorContains(t, err, want, text)
	}
}

// follower reads lines in order and waits for missing ones.
func follow(t *testing.T, r *recording.Reader) *recording.Line {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for {
		l, err := r.Next()
		if !errors.Is(err, io.EOF) {
			require.NoError(t, err)
			if l.Type == recording.TypeRecording {
				continue
			}
			return l
		}
		require.NoError(t, r.Wait(ctx))
	}
}

func TestFollowShowsNewLinesAndTheNextFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r, err := recording.Follow(dir)
	require.NoError(t, err)
	defer r.Close()
	_, err = r.Next()
	require.ErrorIs(t, err, io.EOF, "the folder is empty")
	first, err := os.Create(filepath.Join(dir, "a.jsonl"))
	require.NoError(t, err)
	put := func(f *os.File, text string) {
		t.Helper()
		_, err := f.WriteString(text)
		require.NoError(t, err)
	}
	put(first, header+request(1)+`{"type":"request",`)
	require.Equal(t, uint64(1), follow(t, r).Number)
	_, err = r.Next()
	require.ErrorIs(t, err, io.EOF, "half a line is no line yet")
	put(first, `"n":2}`+"\n"+request(3))
	require.Equal(t, uint64(2), follow(t, r).Number)
	// The writer compresses the file and begins the next one.
	put(first, request(4)+`{"type":"end"}`+"\n")
	require.NoError(t, first.Close())
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.jsonl.gz"), []byte(packed(t, header)), 0o600))
	require.NoError(t, os.Remove(filepath.Join(dir, "a.jsonl")))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "b.jsonl"), []byte(header+request(5)), 0o600))
	require.Equal(t, uint64(3), follow(t, r).Number)
	require.Equal(t, uint64(4), follow(t, r).Number)
	require.Equal(t, recording.TypeEnd, follow(t, r).Type)
	require.Equal(t, uint64(5), follow(t, r).Number)
	problems, _ := r.Problems()
	require.Empty(t, problems)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, r.Wait(ctx), context.Canceled)
}

func TestFollowOfAFinishedFileEnds(t *testing.T) {
	t.Parallel()
	r, err := recording.Follow(write(t, header, request(1), `{"type":"end"}`+"\n"))
	require.NoError(t, err)
	defer r.Close()
	for err == nil {
		_, err = r.Next()
	}
	require.ErrorIs(t, err, io.EOF)
	require.ErrorIs(t, r.Wait(t.Context()), io.EOF)
}

func FuzzReader(f *testing.F) {
	f.Add([]byte(header + request(1)))
	f.Add([]byte(packed(f, header+request(1))))
	f.Add([]byte(header + "\x00\x00" + request(1) + `{"type":"server","lists":{"tools":[{}]},"params":[{"$file":"x","size":1}]}`))
	f.Add([]byte(header + `{"type":"list","changes":[{"name":"a","what":["b"]}],"took":-1e300,"answer":null}` + "\n\n{"))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text []byte) {
		path := filepath.Join(dir, "x.jsonl")
		require.NoError(t, os.WriteFile(path, text, 0o600))
		r, err := recording.Open(path)
		if err != nil {
			return
		}
		defer r.Close()
		for {
			l, err := r.Next()
			if err != nil {
				break
			}
			rec := l.Record()
			require.GreaterOrEqual(t, rec.Duration, time.Duration(0))
			again := recording.NewLine(&rec)
			require.NotEmpty(t, again.Type)
		}
		problems, _ := r.Problems()
		for _, p := range problems {
			require.NotContains(t, p.String(), "\x1b")
			require.NotContains(t, p.String(), "\n")
		}
	})
}

// BenchmarkReader measures lines of a call with small bodies.
func BenchmarkReader(b *testing.B) {
	line := `{"type":"request","time":"2026-05-04T02:06:00.123Z","session":"s-1","client":"claude","server":"files","n":17,"method":"tools/call","name":"files_read","took":12.5,"outcome":"success","answered":true,"requestSize":60,"responseSize":700,"params":{"name":"files_read","arguments":{"path":"src/main.go"}},"answer":{"content":[{"type":"text","text":"` + strings.Repeat("some text ", 60) + `"}]}}` + "\n"
	path := filepath.Join(b.TempDir(), "x.jsonl")
	require.NoError(b, os.WriteFile(path, []byte(header+strings.Repeat(line, 10_000)), 0o600))
	b.SetBytes(int64(10_000 * len(line)))
	b.ReportAllocs()
	for b.Loop() {
		r, err := recording.Open(path)
		require.NoError(b, err)
		f := recording.NewFilter("server:files ms:>1s", nil)
		for {
			l, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			f.Matches(l, time.Time{})
		}
		require.NoError(b, r.Close())
	}
}
