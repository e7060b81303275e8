package config_test

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/config"
)

func TestAnEnvFileHasNamesAndValuesInLines(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "vars.env")
	for _, tt := range []struct {
		text string
		want map[string]string
		err  string
	}{
		{"\ufeffA=1\r\n# B=2\n\n  export  C = two words # not this\nD=a#b\nE=\nA=3", map[string]string{"A": "3", "C": "two words", "D": "a#b", "E": ""}, ""},
		{"A=' a\\n # \\' # comment\nB=\"x\\n\\t\\\"y\\\"\\\\n\"#c\nC=${A}", map[string]string{"A": ` a\n # \`, "B": "x\n\t\"y\"\\n", "C": "${A}"}, ""},
		{"A=1\nB", nil, "has a mistake in line 2: expected NAME=value"},
		{"1A=x", nil, "has a mistake in line 1: expected NAME=value"},
		{"A=\"x\\\"", nil, "has a mistake in line 1: the value of A has an unclosed quote"},
		{"A='x' y", nil, "has a mistake in line 1: the value of A has an unclosed quote"},
		{"A=x\x00y", nil, "has a mistake in line 1: the value of A has an unclosed quote"},
	} {
		require.NoError(t, os.WriteFile(file, []byte(tt.text), 0o600))
		vars, err := config.ReadEnvFile(file)
		if tt.err != "" {
			require.EqualError(t, err, tt.err, "%q", tt.text)
			continue
		}
		require.NoError(t, err, "%q", tt.text)
		require.Equal(t, tt.want, vars, "%q", tt.text)
	}
	_, err := config.ReadEnvFile(filepath.Dir(file))
	require.EqualError(t, err, "is not a regular file")
	require.NoError(t, os.Truncate(file, 1<<20+1))
	_, err = config.ReadEnvFile(file)
	require.EqualError(t, err, "is larger than 1MiB")
}

func TestTheEnvironmentWinsOverTheEnvFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "vars.env")
	require.NoError(t, os.WriteFile(file, []byte("TOKEN=of the file\nONLY=here\nEMPTY=full\n"), 0o600))
	const servers = "\nservers: {a: {command: c, env: {A: '${TOKEN}', B: '${ONLY}', C: '${EMPTY:-unset}'}, inherit_env: [ONLY]}}"
	vars := map[string]string{"TOKEN": "s3cr3t", "EMPTY": "", "HOME": dir, "AT": dir}
	read := func(named string) *config.Config {
		cfg, err := config.Parse(filepath.Join(dir, "c.yaml"), []byte("env_file: "+named+servers), func(name string) (string, bool) {
			value, ok := vars[name]
			return value, ok
		})
		require.NoError(t, err)
		return cfg
	}
	for _, named := range []string{"vars.env", "~/vars.env", "${AT}/sub/../vars.env"} {
		cfg := read(named)
		require.Equal(t, map[string]string{"A": "s3cr3t", "B": "here", "C": "unset"}, cfg.Servers[0].Env, named)
		require.Equal(t, map[string]string{"ONLY": "here"}, cfg.Servers[0].FileEnv)
		require.Equal(t, file, cfg.EnvFile)
		require.Empty(t, cfg.Warnings)
	}
	if runtime.GOOS == "windows" {
		return
	}
	for mode, told := range map[os.FileMode]bool{0o400: false, 0o640: true, 0o604: true} {
		require.NoError(t, os.Chmod(file, mode))
		warnings := read("vars.env").Warnings
		require.Equal(t, told, len(warnings) == 1, "%o: %v", mode, warnings)
		if told {
			require.Equal(t, `"env_file" names "vars.env", which other users of this machine can read; run chmod 600 on it`, warnings[0].Text)
		}
	}
}

func TestPlaceHasTheVariablesOfTheEnvFileAlsoOfABrokenConfig(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "c.yaml")
	place := func(text, value string) string {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "vars.env"), []byte("ONLY="+value), 0o600))
		hash, _, err := config.FileID(path, func(string) (string, bool) { return "", false })
		require.NoError(t, err)
		return hash
	}
	for _, named := range []string{"vars.env", `"vars.env"`, "'vars.env' # mine"} {
		whole, broken := "env_file: "+named+"\nservers: {a: {command: '${ONLY}'}}", "env_file: "+named+"\nservers: [ '${ONLY}'"
		require.NotEqual(t, place(whole, "one"), place(whole, "two"), named)
		require.Equal(t, place(whole, "one"), place(broken, "one"), named)
	}
}
