package command

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/cli"
)

func TestSecretsAreSetListedGottenAndForgotten(t *testing.T) {
	t.Setenv("GOBLIN_NO_KEYRING", "1")
	state := t.TempDir()
	run := func(stdin string, args ...string) outcome {
		return try{
			config: "servers: {a: {command: c, env: {K: '${keyring:work/key}'}}, b: {command: c}, c: {command: c, args: ['${keyring:work/key}']}}",
			stdin:  stdin, env: map[string]string{"XDG_STATE_HOME": state},
		}.run(t, append([]string{"secret"}, args...)...)
	}
	got := run("", "list")
	require.Zero(t, got.code)
	require.Contains(t, got.err, "no secrets")

	got = run("the value\r\n", "set", "work/key")
	require.Zero(t, got.code, got.err)
	require.Contains(t, got.err, `stored secret "work/key" in `+state+`/goblin/secrets.json, which only you can read (no keyring available)`)
	require.Regexp(t, `to apply it to running servers: goblin restart a --config .+ \(also c\)`, got.err)
	require.NotContains(t, got.out+got.err, "the value")
	info, err := os.Stat(state + "/goblin/secrets.json")
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	require.Equal(t, "the value\n", run("", "get", "work/key").out)
	require.Equal(t, "work/key\t"+state+"/goblin/secrets.json\n", run("", "list").out)
	listed := decodeJSON(t, run("", "list", "--json").out).(map[string]any)["secrets"].([]any)
	require.Equal(t, "work/key", listed[0].(map[string]any)["name"])

	got = run("", "get", "work/kee")
	require.Equal(t, cli.CodeNotFound, got.code)
	require.Contains(t, got.err, `no secret "work/kee"`)
	require.Contains(t, got.err, "work/key")

	require.Zero(t, run("", "rm", "work/key").code)
	require.Equal(t, cli.CodeNotFound, run("", "rm", "work/key").code)
	require.Equal(t, cli.CodeNotFound, run("", "get", "work/key").code)
}

func TestSecretsThatCannotBe(t *testing.T) {
	t.Setenv("GOBLIN_NO_KEYRING", "1")
	env := map[string]string{"XDG_STATE_HOME": t.TempDir()}
	for _, tt := range []struct {
		stdin, name, want string
		code              int
	}{
		{"x", "a b", "invalid secret name", cli.CodeUsage},
		{"", "a", "the secret is empty", cli.CodeFailure},
		{"\n", "a", "the secret is empty", cli.CodeFailure},
		{strings.Repeat("x", 1<<20), "a", "longer than 64 KiB", cli.CodeFailure},
		{"\xff", "a", "is not text", cli.CodeFailure},
	} {
		got := try{stdin: tt.stdin, env: env}.run(t, "secret", "set", tt.name)
		require.Equal(t, tt.code, got.code, tt.want)
		require.Contains(t, got.err, tt.want)
	}
	require.Equal(t, cli.CodeUsage, try{env: env}.run(t, "secret").code)
	require.Equal(t, cli.CodeUsage, try{env: env}.run(t, "secret", "nonsense").code)
}
