package recording_test

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/registry"
	"goblin/registry/recording"
)

func write(t *testing.T, lines ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "one.jsonl")
	var text []byte
	for _, l := range lines {
		text = append(text, l...)
	}
	require.NoError(t, os.WriteFile(path, text, 0o600))
	return path
}

func all(t *testing.T, path string) (lines []*recording.Line, problems []recording.Problem) {
	t.Helper()
	r, err := recording.Open(path)
	require.NoError(t, err)
	defer r.Close()
	for {
		l, err := r.Next()
		if errors.Is(err, io.EOF) {
			problems, _ = r.Problems()
			return lines, problems
		}
		require.NoError(t, err)
		lines = append(lines, l)
	}
}

const header = `{"type":"recording","time":"2026-01-02T03:04:05Z","version":1,"goblin":"0.1.0"}` + "\n"

func TestARecordSurvivesTheFile(t *testing.T) {
	t.Parallel()
	rec := registry.TrafficRecord{
		Time: time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC), Number: 7, Parent: 3, Session: "s", Client: "c", Profile: "p",
		Server: "files", Method: "tools/call", Name: "files_read", Original: "read", Duration: 1500 * time.Microsecond,
		StartWait: time.Millisecond, Status: "success", RequestSize: 2, ResponseSize: 12, Size: 12,
		Request: []byte(`{}`), Response: []byte(`{"content":1}`)[:12], Wire: []byte("i7\n"),
	}
	rec.Response = []byte(`{"content":1}`)
	rec.ResponseSize, rec.Size = len(rec.Response), int64(len(rec.Response))
	l := recording.NewLine(&rec)
	l.Params, l.Answer = &recording.Body{JSON: rec.Request}, &recording.Body{JSON: rec.Response}
	text, err := json.Marshal(l)
	require.NoError(t, err)
	lines, problems := all(t, write(t, header, string(text), "\n"))
	require.Empty(t, problems)
	require.Len(t, lines, 2)
	require.Equal(t, rec, lines[1].Record())
}

func TestACutRecordingShowsTheRest(t *testing.T) {
	t.Parallel()
	lines, problems := all(t, write(t, header, `{"type":"request","n":1}`+"\n", "\x00broken\n", `{"type":"request","n":2}`+"\n", `{"type":"req`))
	require.Len(t, lines, 3)
	require.Equal(t, "one.jsonl:5: the last line is cut", problems[len(problems)-1].String())
}

func TestOtherFilesAndLaterVersionsAreRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":             "not a recording",
		"hello\n":      "not a recording",
		`{"type":"x"}`: "not a recording",
		`{"type":"recording","version":99,"goblin":"9.0.0"}` + "\n": "recorded by Goblin 9.0.0",
	} {
		r, err := recording.Open(write(t, text))
		require.NoError(t, err)
		_, err = r.Next()
		require.ErrorContains(t, err, want)
		require.NoError(t, r.Close())
	}
}
