package command

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/cli"
)

func TestAddMakesAConfigWithSecretsPrivate(t *testing.T) {
	env, dir := inHome(t, nil)
	path := configAt(t, dir, "servers: {}\n")
	for _, step := range []struct {
		args []string
		mode os.FileMode
	}{{[]string{"add", "a", "--no-check", "--", "x"}, 0o644}, {[]string{"add", "b", "--no-check", "-e", "API_KEY=hunter2", "--", "x"}, 0o600}} {
		require.NoError(t, os.Chmod(path, 0o644))
		got := try{env: env}.runIn(t, path, step.args...)
		require.Zero(t, got.code, got.err)
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, step.mode, info.Mode())
	}
	require.Equal(t, cli.CodeUsage, try{env: env}.runIn(t, path, "add", "c", "ftp://h/x").code)
	before := readFile(t, path)
	got := try{env: env}.runIn(t, path, "add", "c", "http://")
	require.Equal(t, outcome{code: cli.CodeUsage, err: "goblin: \"url\" in server \"c\" has no host; nothing was added\n"}, got, "the file has no such line")
	require.Equal(t, before, readFile(t, path))
	require.NoError(t, os.WriteFile(path, []byte("servers: {\"My Server\": {command: x}}\n"), 0o600))
	got = try{env: env}.runIn(t, path, "remove", "My-Server")
	require.Zero(t, got.code, "by the listed name: %s", got.err)
}

func TestAddTellsWhereRelativePathsBegin(t *testing.T) {
	env, dir := inHome(t, nil)
	path := filepath.Join(dir, "config.yaml")
	for at, args := range [][]string{
		{"--", "x", "./data"},
		{"--", "../x"},
		{"--cwd", "sub", "--", "x"},
		{"--", "x", "."},
		{"--", "x", "a.b", "--", "..c"},
		{"--cwd", dir, "--", "x", "."},
		{"--", "x", dir},
	} {
		got := try{env: env}.runIn(t, path, append([]string{"add", fmt.Sprintf("s%d", at), "--no-check"}, args...)...)
		require.Zero(t, got.code, got.err)
		if relative := at < 4; relative {
			require.Contains(t, got.err, " starts at "+dir+"; make it absolute or set --cwd", args)
		} else {
			require.Empty(t, got.err, args)
		}
	}
}
