package export_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/registry/export"
	"goblin/registry/recording"
)

const example = "testdata/example.jsonl"

// write exports a recording and returns the text.
func write(t testing.TB, path string, f export.Format, o export.Options) (string, export.Summary) {
	t.Helper()
	var out bytes.Buffer
	sum, err := export.Write(context.Background(), &out, f, func() (export.Source, error) { return recording.Open(path) }, o)
	require.NoError(t, err)
	return out.String(), sum
}

// recordingOf writes a recording of lines after a header.
func recordingOf(t testing.TB, lines ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "one.jsonl")
	text := `{"type":"recording","time":"2026-01-02T03:04:05Z","version":1,"goblin":"0.1.0","bodies":true}` + "\n" + strings.Join(lines, "\n") + "\n"
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func decode(t testing.TB, text string, v any) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(text), v), "%.200s", text)
}
