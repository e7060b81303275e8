package command

import (
	"encoding/json"
	"path/filepath"
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
		{[]string{"changes", "--from", filepath.Join(t.TempDir(), "none")}, 1, "no such file"},
		{[]string{"changes", "--from", "changes_test.go"}, 1, "not a recording"},
		{[]string{"changes", "fils", "--from", night}, cli.CodeNotFound, `"files"`},
		{[]string{"changes", "--from", night, "--since", "yesterday"}, cli.CodeUsage, "--since must be"},
	} {
		got := try{}.run(t, test.args...)
		require.Equal(t, test.code, got.code, "%v: %s", test.args, got.err)
		require.Contains(t, got.err, test.want, test.args)
	}
}
