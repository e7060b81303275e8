//go:build e2e

package commands

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// The test gets from no config to a working one by commands alone.
func TestServersAreAddedAndTakenOutByCommands(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	_, files := w.Fake("files", e2e.Filesystem())
	_, shop := w.Fake("shop", e2e.Shop())
	w.Written, w.Config = true, ""
	config := filepath.Join(w.Dir, "cfg", "goblin", "config.yaml")

	out := w.Succeeds("add", "files", "--", e2e.TestServer, files)
	require.Contains(t, out, `Added "files" to `+config)
	require.Contains(t, out, "2 tools: move, stat")
	info, err := os.Stat(config)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	// A daemon follows at once, and the rest of the file is unchanged.
	text, err := os.ReadFile(config)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(config, append([]byte("# mine\n"), text...), 0o640))
	c := w.Bridged()
	own := len(c.Names("tools")) - 2 // Goblin's
	require.Subset(t, c.Names("tools"), []string{"files_move", "files_stat"})
	var offer struct {
		Server  string
		Checked bool
		Tools   []string
	}
	require.NoError(t, json.Unmarshal([]byte(w.Succeeds("add", "shop", "--json", "--", e2e.TestServer, shop)), &offer))
	require.True(t, offer.Checked)
	require.Contains(t, offer.Tools, "stat")
	e2e.Eventually(t, "the daemon lists the new server", func() bool { return len(c.Names("tools")) > own+2 })
	w.Succeeds("disable", "shop")
	e2e.Eventually(t, "the daemon has disabled it", func() bool { return len(c.Names("tools")) == own+2 })
	w.Succeeds("enable", "shop")
	e2e.Eventually(t, "the daemon has enabled it", func() bool { return len(c.Names("tools")) > own+2 })
	w.Succeeds("remove", "shop")
	e2e.Eventually(t, "the daemon has removed it", func() bool { return len(c.Names("tools")) == own+2 })
	after, err := os.ReadFile(config)
	require.NoError(t, err)
	require.Equal(t, "# mine\n"+string(text), string(after))

	wrong := w.Run("remove", "fils")
	require.Equal(t, e2e.ExitNotFound, wrong.Code)
	require.Contains(t, wrong.Stderr, `did you mean "files"?`)
}

func TestAServerThatCannotBeStartedIsNotAddedUnlessOneSaysSo(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Written, w.Config = true, ""
	config := filepath.Join(w.Dir, "cfg", "goblin", "config.yaml")
	out := w.Run("add", "none", "--", "no-such-program", "-x")
	require.Equal(t, e2e.ExitConnect, out.Code)
	require.Contains(t, out.Stderr, `command "no-such-program" not found`)
	require.Contains(t, out.Stderr, "--no-check")
	require.NoFileExists(t, config)
	w.Succeeds("add", "none", "--no-check", "--", "no-such-program", "-x")
	text, err := os.ReadFile(config)
	require.NoError(t, err)
	require.Contains(t, string(text), "servers:\n  none:\n    command: no-such-program\n    args: [-x]\n")
	again := w.Run("add", "none", "--", "x")
	require.Contains(t, again.Stderr, `server "none" already exists`)
	for _, args := range [][]string{
		{"add"},
		{"add", "x"},
		{"add", "x", "npx"},
		{"add", "a b", "--", "x"},
		{"add", "goblin", "--", "x"},
		{"add", "x", "--header", "A: b", "--", "x"},
		{"add", "x", "https://h/", "--env", "A=b"},
		{"add", "x", "--env", "secret", "--", "x"},
	} {
		out := w.Run(args...)
		require.Equal(t, e2e.ExitUsage, out.Code, args)
		require.NotContains(t, out.Stderr, "secret")
	}
}

// A valid edited config is applied. The same command can fix an invalid one.
func TestEditTakesWhatHasNoMistakes(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("sed"); err != nil {
		t.Skip(err)
	}
	w := e2e.NewWorld(t)
	w.Written = true
	w.Config = filepath.Join(w.Dir, "c.yaml")
	write := func(text string) { require.NoError(t, os.WriteFile(w.Config, []byte(text), 0o644)) }
	held := func() string {
		text, err := os.ReadFile(w.Config)
		require.NoError(t, err)
		return string(text)
	}
	write("servers:\n  a: {command: x} # mine\n")
	w.Env = append(w.Env, "EDITOR=sed -i s/command/comand/")
	out := w.Run("edit")
	require.Equal(t, e2e.ExitConfig, out.Code)
	require.Contains(t, out.Stderr, `:2: unknown key "comand" in server "a"; did you mean "command"?`)
	require.Equal(t, "servers:\n  a: {command: x} # mine\n", held(), "nothing was written")

	write("servers:\n  a: {comand: x} # mine\n")
	w.Env = append(w.Env, "EDITOR=sed -i s/comand/command/")
	require.Contains(t, w.Succeeds("edit"), "Saved ")
	require.Equal(t, "servers:\n  a: {command: x} # mine\n", held())
	require.Contains(t, w.Succeeds("edit"), "Unchanged: ")
}
