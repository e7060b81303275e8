package config_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/config"
)

func TestPlaceIsThePathAndTheVariablesThatTheFileNames(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "c.yaml")
	vars := map[string]string{"TOKEN": "s3cr3t", "EMPTY": ""}
	place := func(path, text string) string {
		t.Helper()
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		hash, _, err := config.FileID(path, func(k string) (string, bool) { v, ok := vars[k]; return v, ok })
		require.NoError(t, err)
		require.Regexp(t, "^[0-9a-f]{64}$", hash)
		return hash
	}
	plain := place(path, "servers: {a: {command: x}}")
	for _, same := range []string{
		"", "servers: {b: {command: y}}", "servers: [", "\x00${", "${1}", "$TOKEN", "$${TOKEN}",
		"servers: {a: {command: '${NONE}', args: ['${NONE:-x}']}}",
	} {
		require.Equal(t, plain, place(path, same), same)
	}
	token := place(path, "servers: {a: {command: '${TOKEN}'}}")
	require.NotEqual(t, plain, token)
	for _, same := range []string{"${TOKEN:-x}${TOKEN}", "${NONE:-${TOKEN}}", "servers: [ '${TOKEN}'", "# ${TOKEN}"} {
		require.Equal(t, token, place(path, same), same)
	}
	require.NotEqual(t, token, place(path, "${TOKEN}${EMPTY}"))
	require.NotEqual(t, plain, place(path, "${EMPTY}"), "empty differs from unset")
	require.Equal(t, place(path, "${TOKEN}${EMPTY}"), place(path, "${EMPTY} ${TOKEN}"))
	vars["TOKEN"] = "other"
	require.NotEqual(t, token, place(path, "${TOKEN}"))

	require.NotEqual(t, plain, place(filepath.Join(dir, "d.yaml"), ""))
	link := filepath.Join(dir, "link")
	require.NoError(t, os.Symlink(dir, link))
	require.Equal(t, plain, place(filepath.Join(link, "c.yaml"), ""), "a link to its folder is the same file")

	mounted := filepath.Join(dir, "mounted.yaml")
	for _, version := range []string{"..one", "..two"} { // as Kubernetes mounts files
		require.NoError(t, os.Mkdir(filepath.Join(dir, version), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, version, "mounted.yaml"), nil, 0o600))
	}
	require.NoError(t, os.Symlink("..one", filepath.Join(dir, "..data")))
	require.NoError(t, os.Symlink(filepath.Join("..data", "mounted.yaml"), mounted))
	before, _, err := config.FileID(mounted, env)
	require.NoError(t, err)
	require.NoError(t, os.Remove(filepath.Join(dir, "..data")))
	require.NoError(t, os.Symlink("..two", filepath.Join(dir, "..data")))
	after, _, err := config.FileID(mounted, env)
	require.NoError(t, err)
	require.Equal(t, before, after, "the link may get another target")
}

func TestPlaceOfTheDemoIsOneForAll(t *testing.T) {
	t.Parallel()
	env := func(string) (string, bool) { return "x", true }
	here, _, err := config.FileID("", os.LookupEnv)
	require.NoError(t, err)
	there, _, err := config.FileID("", env)
	require.NoError(t, err)
	require.Equal(t, here, there)
}

func TestPlaceOfAFileThatCannotBeReadIsAMistake(t *testing.T) {
	t.Parallel()
	_, _, err := config.FileID("none.yaml", os.LookupEnv)
	require.EqualError(t, err, "none.yaml: cannot be read: no such file or directory")
	var list *config.Errors
	require.ErrorAs(t, err, &list)

	pipe := filepath.Join(t.TempDir(), "pipe.yaml")
	if exec.Command("mkfifo", pipe).Run() != nil {
		t.Skip("no named pipes on this system")
	}
	_, _, err = config.FileID(pipe, os.LookupEnv)
	require.EqualError(t, err, pipe+": is a pipe or a socket; the config must be a regular file", "does not wait for a writer")
	_, err = config.Load(pipe)
	require.ErrorContains(t, err, "is a pipe or a socket")
}
