package command

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/cli"
)

// inHome is a machine whose user has files, by path.
func inHome(t *testing.T, files map[string]string) (env map[string]string, dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return map[string]string{"HOME": dir}, dir
}

const (
	cursorFile = `{"mcpServers": {"files": {"command": "npx", "args": ["-y", "files", "--token", "hunter2hunter"]}, "goblin": {"command": "/x/goblin", "args": ["stdio"]}}}`
	kiroFile   = `{"mcpServers": {"files": {"command": "npx", "args": ["-y", "files", "--token", "hunter2hunter"]}, "db": {"command": "uvx", "args": ["db"], "env": {"DB_PASSWORD": "s3cret"}, "disabled": true}}}`
)

func configAt(t *testing.T, dir, text string) string {
	t.Helper()
	path := filepath.Join(dir, "goblin.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestInitTakesServersOverAndLosesNothing(t *testing.T) {
	t.Setenv("GOBLIN_NO_KEYRING", "1")
	env, dir := inHome(t, map[string]string{".cursor/mcp.json": cursorFile, ".kiro/settings/mcp.json": kiroFile, ".lmstudio/mcp.json": "{"})
	const before = "# mine\nservers:\n  db: {command: other} # kept\n"
	path := configAt(t, dir, before)

	got := try{env: env}.runIn(t, path, "init", "--dry-run")
	require.Equal(t, cli.CodeFailure, got.code, "a file is broken")
	require.Contains(t, got.err, filepath.Join(dir, ".lmstudio/mcp.json")+" cannot be read: not valid JSON (line 1)")
	for _, want := range []string{
		"Cursor", "files    npx files  cursor, kiro", `was renamed to "db-kiro" because another server is named "db"`, "kiro, disabled",
		"goblin (Cursor): is Goblin itself", "not valid JSON (line 1)", "Would add 2 servers to ", "Nothing was written.",
	} {
		require.Contains(t, got.out, want)
	}
	require.NotContains(t, got.out+got.err, "hunter2")
	require.Equal(t, before, readFile(t, path))

	got = try{env: env}.runIn(t, path, "init", "--json")
	require.Equal(t, cli.CodeFailure, got.code, "the others are imported")
	var did importResult
	require.NoError(t, json.Unmarshal([]byte(got.out), &did))
	require.True(t, did.Written)
	require.Equal(t, before, readFile(t, did.Backup))
	text := readFile(t, path)
	require.True(t, strings.HasPrefix(text, before), text)
	require.Contains(t, text, "  # from Cursor, Kiro\n  files:\n    command: npx\n    args: [-y, files, --token, hunter2hunter]\n")
	require.Contains(t, text, "      DB_PASSWORD: s3cret\n")
	require.NotContains(t, got.out+got.err, "hunter2")
	require.NotContains(t, got.out+got.err, "s3cret")
	require.Contains(t, got.out, "has 1 secret in plain text; use --keep-secrets to store secrets elsewhere")
	require.Equal(t, cursorFile, readFile(t, filepath.Join(dir, ".cursor/mcp.json")), "the client's file is unchanged")

	require.NoError(t, os.Remove(filepath.Join(dir, ".lmstudio/mcp.json")))
	got = try{env: env}.runIn(t, path, "init")
	require.Zero(t, got.code, got.err)
	require.Contains(t, got.out, "Already in the config: files, db-kiro\n")
	require.Contains(t, got.out, "Nothing to add")
	require.Equal(t, text, readFile(t, path), "a second time changes nothing")
}

func TestInitKeepsSecretsOutOfTheConfigOnRequest(t *testing.T) {
	t.Setenv("GOBLIN_NO_KEYRING", "1")
	env, dir := inHome(t, map[string]string{".kiro/settings/mcp.json": kiroFile})
	path := filepath.Join(dir, "new", "config.yaml")
	got := try{env: env}.runIn(t, path, "init", "--keep-secrets")
	require.Zero(t, got.code, got.err)
	text := readFile(t, path)
	require.Contains(t, text, "DB_PASSWORD: ${keyring:db.DB_PASSWORD}")
	require.Contains(t, text, "args: [-y, files, --token, '${keyring:files.token}']")
	for name, value := range map[string]string{"db.DB_PASSWORD": "s3cret", "files.token": "hunter2hunter"} {
		got := try{env: env}.run(t, "secret", "get", name)
		require.Equal(t, value+"\n", got.out)
	}
	require.Contains(t, got.out, "Stored secret db.DB_PASSWORD in ")
	require.NotContains(t, got.out, "s3cret")

	got = try{env: env}.runIn(t, path, "init")
	require.Contains(t, got.out, "Already in the config: db, files\n", "they are the same servers, with references")
	got = try{env: env}.runIn(t, path, "install", "kiro", "--replace", "--json")
	require.Contains(t, got.out, `"replaced"`)
	require.Contains(t, got.out, `"files"`, "so Goblin replaces them; disabled ones are kept")
	require.NotContains(t, got.out, `"db"`)
}

func TestAChangeThatFailsLeavesSecretsAsTheyWere(t *testing.T) {
	t.Setenv("GOBLIN_NO_KEYRING", "1")
	env, dir := inHome(t, map[string]string{".kiro/settings/mcp.json": kiroFile})
	env["XDG_CACHE_HOME"] = dir
	path := configAt(t, dir, "servers: {weather: {command: x}}\n")
	for name, value := range map[string]string{"db.DB_PASSWORD": "s3cret", "weather.API_KEY": "mine"} {
		require.Zero(t, try{env: env, stdin: value}.run(t, "secret", "set", name).code)
	}
	require.NoError(t, os.Chmod(path, 0o400))
	got := try{env: env}.runIn(t, path, "init", "--keep-secrets")
	require.Contains(t, got.err, "read-only")
	require.NoError(t, os.Chmod(path, 0o600))
	got = try{env: env}.runIn(t, path, "add", "--registry", "weather", "--registry-url", shelf(t, weatherEntry), "--use", "npm", "--set", "API_KEY=theirs", "--yes", "--no-check")
	require.Contains(t, got.err, `server "weather" already exists`)
	list := try{env: env}.run(t, "secret", "list").out
	require.Equal(t, 2, strings.Count(list, "\n"), list)
	require.Equal(t, "s3cret\n", try{env: env}.run(t, "secret", "get", "db.DB_PASSWORD").out)
	require.Equal(t, "mine\n", try{env: env}.run(t, "secret", "get", "weather.API_KEY").out)
}

func TestInitTakesWhatTheUserOfATerminalChooses(t *testing.T) {
	t.Setenv("GOBLIN_NO_KEYRING", "1")
	env, dir := inHome(t, map[string]string{".kiro/settings/mcp.json": kiroFile})
	path := filepath.Join(dir, "goblin.yaml")
	var asked Selection
	choose := func(ok bool) SelectFunc {
		return func(_ context.Context, c *Selection) (bool, error) {
			asked = *c
			c.Items[1].On, c.On = false, true
			return ok, nil
		}
	}
	got := try{env: env, tty: true, choose: choose(false)}.runIn(t, path, "init")
	require.Equal(t, cli.CodeFailure, got.code)
	require.Contains(t, got.err, "nothing was written")
	require.NoFileExists(t, path)
	require.Equal(t, []string{"db", "uvx db", "Kiro, disabled there"}, asked.Items[0].Cells)
	require.Equal(t, []string{"1 secret in plain text"}, asked.Items[0].Notes)
	require.Equal(t, "store secrets outside the config", asked.Switch)

	got = try{env: env, tty: true, choose: choose(true)}.runIn(t, path, "init")
	require.Zero(t, got.code, got.err)
	require.NotContains(t, readFile(t, path), "files:")
	require.Contains(t, readFile(t, path), "DB_PASSWORD: ${keyring:db.DB_PASSWORD}")
}

func TestInitSaysWhatItCannotRead(t *testing.T) {
	env, dir := inHome(t, map[string]string{".cursor/mcp.json": "{oops", "mine.json": `{"mcpServers": {"a": {"command": "x"}}}`})
	path := filepath.Join(dir, "goblin.yaml")
	for name, test := range map[string]struct {
		from, want string
		code       int
	}{
		"a broken file":      {"cursor", ".cursor/mcp.json cannot be read: not valid JSON (line 1)", cli.CodeFailure},
		"a file not there":   {filepath.Join(dir, "none.json"), "no file ", cli.CodeNotFound},
		"a client not there": {"kiro", "Kiro has no config file; expected at " + filepath.Join(dir, ".kiro/settings/mcp.json"), cli.CodeNotFound},
		"no client":          {"curser", `no client "curser"; did you mean "cursor"?`, cli.CodeUsage},
	} {
		t.Run(name, func(t *testing.T) {
			got := try{env: env}.runIn(t, path, "init", "--from", test.from)
			require.Equal(t, test.code, got.code, got.err)
			require.Contains(t, got.err, test.want)
			require.NoFileExists(t, path)
		})
	}
	got := try{env: env}.runIn(t, path, "init", "--from", filepath.Join(dir, "mine.json"))
	require.Zero(t, got.code, got.err)
	require.Contains(t, readFile(t, path), "  a:\n    command: x\n")
	got = try{env: map[string]string{"HOME": t.TempDir()}}.runIn(t, path, "init")
	require.Zero(t, got.code, got.err)
	require.Contains(t, got.out, "Add servers with \"goblin add\"")
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}
