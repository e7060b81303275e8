package stack

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/config"
	"goblin/gateway/configedit"
	"goblin/gateway/e2e"
	"goblin/registry"
	"goblin/registry/candidate"
	"goblin/registry/report"
)

// add adds a server without a test.
func add(i *Stack, name string, keys map[string]any) error {
	_, err := i.AddDefinition(context.Background(), &candidate.Definition{Name: name, Keys: keys}, true)
	return err
}

// The UI's changes are saved, leave the rest of the file unchanged, and take effect.
func TestServersAreAddedRemovedAndTurnedOffForGood(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "c.yaml")
	const before = "# mine\nservers:\n  a: {command: none-such, disabled: true} # the first\n"
	require.NoError(t, os.WriteFile(path, []byte(before), 0o640))
	require.NoError(t, os.Chmod(path, 0o640)) // regardless of the umask
	cfg, err := config.Load(path)
	require.NoError(t, err)
	i, err := New(Options{Config: cfg, Version: "v", Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- i.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	text := func() string {
		got, err := os.ReadFile(path)
		require.NoError(t, err)
		return string(got)
	}
	disabled := func(server string) bool {
		return i.gateway.Servers.Get(server).Config().Disabled
	}

	require.NoError(t, add(i, "b", map[string]any{"command": "none-such", "args": []string{"-y"}}))
	require.Equal(t, before+"  b:\n    command: none-such\n    args: [-y]\n", text())
	require.Equal(t, []string{"a", "b"}, i.gateway.Servers.Names())
	require.ErrorContains(t, add(i, "b", map[string]any{"command": "c"}), "already")
	require.Error(t, add(i, "no name", map[string]any{"command": "c"}))
	require.Error(t, add(i, "c", map[string]any{"url": "no URL"}), "the config would have a mistake")

	require.NoError(t, i.SetDisabled("a", false))
	require.Contains(t, text(), "a: {command: none-such")
	require.False(t, disabled("a"))
	require.NoError(t, i.SetDisabled("b", true))
	require.True(t, disabled("b"))
	require.Contains(t, text(), "disabled: true")

	require.NoError(t, i.SetEnabled("a", false))
	require.NoError(t, i.SetDisabled("a", false), "already set in the file")
	e2e.Eventually(t, "it runs again", func() bool {
		st, _ := i.registry.State("a")
		return st.State != registry.StateDisabled
	})

	require.NoError(t, i.RemoveServer("b"))
	require.NoError(t, i.RemoveServer("a"))
	require.Empty(t, i.gateway.Servers.Names(), "also the last one")
	require.Empty(t, i.registry.Notice())
	require.ErrorContains(t, i.RemoveServer("a"), "server not found in")
	require.Contains(t, text(), "# mine")
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o640), info.Mode().Perm())
}

// A tried server starts as an added one does, and leaves nothing behind.
func TestAServerIsTriedBeforeItIsAdded(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "c.yaml")
	const before = "servers:\n  a: {command: none-such, disabled: true}\n"
	require.NoError(t, os.WriteFile(path, []byte(before), 0o600))
	cfg, err := config.Load(path)
	require.NoError(t, err)
	i, err := New(Options{Config: cfg, Version: "v", Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	lacks, err := i.tryServer(within(t), configedit.Server{Name: "b", Keys: map[string]any{"command": "/no/such/prog"}})
	require.NoError(t, err)
	require.Equal(t, "no file /no/such/prog; fix the path in command, or install the program there", lacks)
	e2e.Use()
	script := filepath.Join(t.TempDir(), "b.json")
	require.NoError(t, os.WriteFile(script, []byte(`{"name":"b",`+tools+`}`), 0o600))
	lacks, err = i.tryServer(within(t), configedit.Server{Name: "b", Keys: map[string]any{"command": e2e.TestServer, "args": []string{script}}})
	require.NoError(t, err)
	require.Empty(t, lacks)
	lacks, err = i.tryServer(within(t), configedit.Server{Name: "b", Keys: map[string]any{"command": "sh", "args": []string{"-c", "exit 3"}, "env": map[string]any{"TOKEN": "abc"}}})
	require.NoError(t, err)
	require.Contains(t, lacks, "the process exited")
	require.NotContains(t, lacks, "abc", "a command to run by hand would show it")
	for name, keys := range map[string]map[string]any{"a": {"command": "c"}, "no name": {"command": "c"}, "c": {"url": "no URL"}} {
		_, err = i.tryServer(within(t), configedit.Server{Name: name, Keys: keys})
		require.Error(t, err, name)
	}
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, before, string(text))
	require.Equal(t, []string{"a"}, i.gateway.Servers.Names())
}

func TestTheDemoHasNoConfigToChange(t *testing.T) {
	t.Parallel()
	i, err := New(Options{Config: &config.Config{Demo: true}, Version: "v", Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	require.ErrorContains(t, add(i, "b", map[string]any{"command": "c"}), "no config file to edit")
}

// A reload on request reports all changes since the file was opened, and mistakes.
func TestAnEditOfTheConfigIsReported(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "c.yaml")
	write := func(text string) { require.NoError(t, os.WriteFile(path, []byte(text), 0o600)) }
	write("servers:\n  odd: {command: none-such, disabled: true}\n  old: {command: none-such, disabled: true}\n  bare: {command: none-such, disabled: true, env: {A: \"${NO_SUCH_VARIABLE}\"}}\n")
	cfg, err := config.Load(path)
	require.NoError(t, err)
	i, err := New(Options{Config: cfg, Version: "v", Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	where, line, reload, err := i.OpenConfig("old")
	require.NoError(t, err)
	require.Equal(t, path, where)
	require.Equal(t, 3, line)
	result := reload()
	require.Equal(t, "no changes", result.String())
	write("")
	require.True(t, reload().Invalid, "the editor may have failed")
	write("servers:\n  odd: {comand: none-such}\n")
	result = reload()
	require.True(t, result.Invalid)
	require.Equal(t, []registry.Mistake{{File: path, Line: 2, Text: i.registry.Mistakes()[0].Text}}, i.registry.Mistakes())
	_, err = i.ServerEntry("odd")
	require.ErrorContains(t, err, "fix the mistakes")
	write("servers:\n  web: {command: none-such, disabled: true}\n  odd: {command: none-such, args: [a], disabled: true}\n  # its error names another line\n  bare: {command: none-such, disabled: true, env: {A: \"${NO_SUCH_VARIABLE}\"}}\nrules: [{when: x, then: deny}]\nlog: {level: debug}\n")
	i.Reload() // the watcher may be first
	result = reload()
	require.Equal(t, "reloaded: + web, ~ odd (args), - old, rules; after a restart of the daemon (goblin stop): log.level", result.String())
	require.Empty(t, i.registry.Mistakes())

	entry, err := i.ServerEntry("odd")
	require.NoError(t, err)
	result, err = i.SaveEdit(report.ServerEdit{Entry: entry, Values: []report.ServerValue{{Path: []string{"env", "A"}, Value: "b"}}})
	require.NoError(t, err)
	require.Equal(t, "reloaded: ~ odd (env)", result.String())
	lacks, err := i.TryEdit(within(t), report.ServerEdit{Entry: entry})
	require.Error(t, err, "the file changed")
	require.Empty(t, lacks)
	_, _, reload, err = i.OpenConfig("none")
	require.NoError(t, err)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	write(string(text) + "tui: {colors: {title: red}}\n")
	result = reload()
	require.Equal(t, "reloaded: tui.colors", result.String())
	require.Equal(t, "1", i.registry.StyleColors()["title"].Dark)
	write(string(text) + "tui: {colors: {title: redd}}\n")
	require.True(t, reload().Invalid)
	require.Equal(t, strings.Count(string(text), "\n")+1, i.registry.Mistakes()[0].Line)

	write(string(text))
	_, _, reload, err = i.OpenConfig("none")
	require.NoError(t, err)
	require.NoError(t, os.Remove(path))
	result = reload()
	require.Equal(t, "the editor removed the file; its former text was restored", result.String())
	restored, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(text), string(restored))
}
