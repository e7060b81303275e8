package command

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/cli"
	"goblin/gateway/daemon"
)

const night = "../archive/testdata/night.jsonl"

func TestChangesOfARecording(t *testing.T) {
	t.Parallel()
	got := try{}.run(t, "changes", "--from", night)
	require.Zero(t, got.code, got.err)
	require.Contains(t, got.out, "changed tool")
	require.Contains(t, got.out, `argument "y" is now required`)

	got = try{}.run(t, "changes", "files", "--from", night, "--json")
	var answer daemon.ChangeAnswer
	require.NoError(t, json.Unmarshal([]byte(got.out), &answer))
	require.Len(t, answer.Changes, 1)
	require.Equal(t, "files changed tool add", answer.Changes[0].Server+" "+answer.Changes[0].Op+" "+answer.Changes[0].Kind+" "+answer.Changes[0].Name)
	require.Contains(t, string(answer.Changes[0].Before), "Add two numbers")

	got = try{}.run(t, "changes", "--from", night, "--since", "1h")
	require.Contains(t, got.out, "No changes since")
}

func TestChangesExplainsFailures(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"changes"}, cli.CodeConnect, "or read a recording with --from"},
		{[]string{"changes", "--from", filepath.Join(t.TempDir(), "none")}, cli.CodeNotFound, "none: no such recording"},
		{[]string{"changes", "--from", "changes_test.go"}, 1, "not a recording"},
		{[]string{"changes", "fils", "--from", night}, cli.CodeNotFound, `"files"`},
		{[]string{"changes", "--from", night, "--since", "yesterday"}, cli.CodeUsage, "--since must be"},
	} {
		got := try{}.run(t, test.args...)
		require.Equal(t, test.code, got.code, "%v: %s", test.args, got.err)
		require.Contains(t, got.err, test.want, test.args)
	}
}

func TestManyAddedEntriesAreOneLine(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x.jsonl")
	text := `{"type":"recording","version":1,"bodies":true,"settings":{"servers":{"s":{}}}}` + "\n" +
		`{"type":"server","time":"2026-03-01T02:00:00Z","server":"s","lists":{"tools":[{"name":"a"}]}}` + "\n" +
		`{"type":"list","time":"2026-03-01T02:01:00Z","server":"s","list":"tools","added":[{"name":"b1"},{"name":"b2"},{"name":"b3"},{"name":"b4"},{"name":"b5"},{"name":"b6"}],"removed":["a"]}` + "\n"
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	got := try{}.run(t, "changes", "--from", path)
	require.Contains(t, got.out, "added 6 tools")
	require.Contains(t, got.out, "removed tool")
	require.Equal(t, 3, strings.Count(got.out, "\n"))
}
