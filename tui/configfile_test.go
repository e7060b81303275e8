package tui

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/registry"
	"goblin/registry/report"
)

// fakeConfig is a config whose next reloads have the outcomes of a test.
type fakeConfig struct {
	reloads []func() report.Reload
	failing error
	entry   *report.ServerEntry
	preview *report.EditPreview
	problem string
	edit    report.ServerEdit // the last one
	saved   bool
}

func (c *fakeConfig) OpenConfig(server string) (string, int, func() report.Reload, error) {
	line := map[string]int{"files": 7}[server]
	return "/etc/goblin/work.yaml", max(line, 1), func() report.Reload {
		if len(c.reloads) == 0 {
			return report.Reload{Invalid: true}
		}
		next := c.reloads[0]
		c.reloads = c.reloads[1:]
		return next()
	}, c.failing
}

func outcome(r report.Reload) func() report.Reload { return func() report.Reload { return r } }

func TestTheConfigIsEditedUntilItIsValid(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 100, 30, plainEnv)
	mistake := []registry.Mistake{{File: "/etc/goblin/work.yaml", Line: 12, Text: `unknown key "comand" in server "red"`}}
	invalid := func() report.Reload { r.reg.SetMistakes(mistake); return report.Reload{Invalid: true} }
	valid := func() report.Reload {
		r.reg.SetMistakes(nil)
		return report.Reload{Added: []string{"web"}, Removed: []string{"old"}, Changed: []report.ServerChange{{Server: "odd\x1b[2J", Keys: []string{"args"}}}}
	}
	restored := func() report.Reload { r.reg.SetMistakes(mistake); return report.Reload{Invalid: true, Restored: true} }
	r.backend.reloads = []func() report.Reload{outcome(report.Reload{}), invalid, restored, valid}
	r.keys("1 ctrl+o")
	require.Contains(t, r.screen(), "No changes")
	r.keys(": c o n f i g enter")
	require.Contains(t, r.screen(), "Config not reloaded: 1 error")
	require.Contains(t, r.screen(), "unknown key")
	r.keys("enter")
	require.Contains(t, r.screen(), "unknown key", "still invalid")
	require.Contains(t, r.screen(), "former text with 1 error was restored")
	r.keys("enter")
	require.NotContains(t, r.screen(), "unknown key", "the dialog closes")
	require.Contains(t, r.screen(), "The config is valid again; reloaded: + web, ~ odd\\x1b[2J (args), - old")
	require.Equal(t, []string{"file /etc/goblin/work.yaml:7: ", "file /etc/goblin/work.yaml:7: ", "file /etc/goblin/work.yaml:12: ", "file /etc/goblin/work.yaml:12: "}, r.term.opened)
	r.backend.reloads = []func() report.Reload{outcome(report.Reload{Later: []string{"log.level"}})}
	r.keys("w ctrl+o")
	require.Contains(t, r.screen(), "Applies after a restart of the daemon (goblin stop): log.level", "also in a dialog")
	r.keys("esc")
	r.backend.failing = errors.New("the demo has no config; goblin init creates one")
	r.keys("ctrl+o")
	require.Contains(t, r.screen(), "goblin init creates one")
}

func (c *fakeConfig) ServerEntry(server string) (*report.ServerEntry, error) {
	if c.entry == nil && c.failing == nil {
		return nil, errors.New("no entry of " + server)
	}
	return c.entry, c.failing
}

func (c *fakeConfig) PreviewEdit(edit report.ServerEdit) (*report.EditPreview, error) {
	c.edit = edit
	return c.preview, c.failing
}

func (c *fakeConfig) TryEdit(context.Context, report.ServerEdit) (string, error) {
	return c.problem, nil
}

func (c *fakeConfig) SaveEdit(edit report.ServerEdit) (report.Reload, error) {
	c.edit, c.saved = edit, true
	return report.Reload{Changed: []report.ServerChange{{Server: edit.Entry.Server, Keys: []string{"env"}}}}, c.failing
}

func webEntry() *report.ServerEntry {
	return &report.ServerEntry{Server: "legacy", File: "/etc/goblin/work.yaml", Others: []string{"tools"}, Fields: []report.ServerField{
		{Path: []string{"command"}, Value: "npx"},
		{Path: []string{"args"}, List: true, Value: []string{"-y", "pkg"}},
		{Path: []string{"env", "API_KEY"}, Value: "${WEB_KEY}"},
		{Path: []string{"env", "PASSWORD"}, Value: "[hidden]"},
		{Path: []string{"env"}, List: true},
		{Path: []string{"disabled"}, Flag: true, Value: false},
	}}
}

// The fix of a failed server takes its key, the value, and two keys.
func TestAVariableOfAFailedServerIsFixedInAForm(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 100, 40, plainEnv)
	r.reg.SetState("legacy", registry.ServerState{State: registry.StateFailed, LastError: "/etc/goblin/work.yaml:4: ${WEB_KEY} is not set, but env.API_KEY needs it"})
	r.refresh(registry.Servers)
	r.backend.entry = webEntry()
	r.keys("1 G")
	require.Contains(t, r.screen(), "WEB_KEY is not set; C-e sets it")
	r.keys("ctrl+e")
	require.Contains(t, r.screen(), "Only in the file (C-o): tools.")
	require.Contains(t, r.screen(), "> API_KEY")
	require.NotContains(t, r.screen(), "disabled *", "a switch always has a value")
	r.keys("ctrl+s")
	require.Contains(t, r.screen(), "no changes")
	r.backend.preview = &report.EditPreview{Diff: []string{"-  API_KEY: ${WEB_KEY}", "+  API_KEY: ${keyring:legacy.API_KEY}"}, Secrets: []string{"env.API_KEY"}, Place: "the system's keyring", Keyring: true, Starts: true}
	r.backend.problem = "exit status 1\x1b[2J; read the output"
	r.keys("ctrl+u").typeText("sec")
	require.Contains(t, r.line("> API_KEY"), "*** _")
	r.keys("ctrl+s")
	for _, want := range []string{"Save this change?", "+  API_KEY: ${keyring:legacy.API_KEY}", "It goes to the system's keyring.", "y store it, test and save"} {
		require.Contains(t, r.screen(), want)
	}
	r.keys("y")
	require.Contains(t, r.screen(), `not saved: exit status 1\x1b[2J; read the output. C-s again saves it anyway.`)
	require.False(t, r.backend.saved)
	r.keys("ctrl+s y")
	require.Equal(t, []report.ServerValue{{Path: []string{"env", "API_KEY"}, Value: "sec"}}, r.backend.edit.Values)
	require.True(t, r.backend.edit.Keyring)
	require.Contains(t, r.screen(), "Reloaded: ~ legacy (env)")
	require.NotContains(t, r.screen(), "Edit legacy")
}

func TestSecretsAreHiddenWhileTheyAreTyped(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 100, 40, plainEnv)
	r.backend.entry = webEntry()
	r.keys("1 ctrl+e tab").typeText("\n--api-key\nhunter2\n--token=${T}\n--token=hunter3")
	require.NotContains(t, r.screen(), "hunter")
	require.Contains(t, r.screen(), "--token=${T}")
	require.Contains(t, r.screen(), "--token=*******")
	require.Contains(t, r.line("PASSWORD"), "[hidden]")
	r.keys("tab tab tab").typeText("AUTH_TOKEN=hunter4")
	require.Contains(t, r.screen(), "AUTH_TOKEN=*******")
	r.keys("ctrl+e")
	require.NotContains(t, r.screen(), "hunter", "raw JSON is refused")
}

func TestAFormIsNotSavedOverAnothersChange(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 100, 40, plainEnv)
	r.backend.entry = webEntry()
	r.keys("1 ctrl+e ctrl+u n e w tab tab tab tab N = v")
	require.Contains(t, r.screen(), "N=v")
	r.backend.failing = &report.FileChangedError{File: "/etc/goblin/work.yaml", Diff: append(slices.Repeat([]string{" # line"}, 60), "-  cwd: /a", "+  cwd: /b")}
	r.keys("ctrl+s")
	require.Contains(t, r.screen(), "more lines (down)")
	r.keys(strings.Repeat("down ", 20))
	require.Contains(t, r.screen(), "changed by another program")
	require.Contains(t, r.screen(), "+  cwd: /b")
	r.backend.failing = nil
	fresh := webEntry()
	fresh.Fields = append(fresh.Fields, report.ServerField{Path: []string{"cwd"}, Value: "/b"})
	r.backend.entry = fresh
	r.keys("y")
	require.Contains(t, r.screen(), "/b")
	r.backend.preview = &report.EditPreview{Diff: []string{"+  command: new"}}
	r.keys("ctrl+s y")
	require.True(t, r.backend.saved)
	require.Equal(t, []report.ServerValue{{Path: []string{"command"}, Value: "new"}, {Path: []string{"env", "N"}, Value: "v"}}, r.backend.edit.Values)
}

func TestEscCancelsTheTestOfAChange(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 100, 40, plainEnv)
	r.backend.entry = webEntry()
	r.backend.preview = &report.EditPreview{Diff: []string{"+  command: new"}, Starts: true}
	r.keys("1 ctrl+e ctrl+u n e w ctrl+s")
	test := r.app.Update(keyOf("y"))
	require.Contains(t, r.screen(), "testing, esc cancels")
	r.clock.advance(3 * time.Second)
	require.Contains(t, r.screen(), "testing, esc cancels, 3 s")
	r.keys("ctrl+s x")
	require.NotContains(t, r.screen(), "Save this change?", "the test runs")
	require.NotContains(t, r.screen(), "newx", "its values stay")
	r.keys("esc")
	require.Contains(t, r.screen(), "test cancelled; nothing was saved")
	r.send(runFirst(test), 0)
	require.False(t, r.backend.saved)
	r.keys("ctrl+s y")
	require.True(t, r.backend.saved)
}

func TestTheConfigOfARecordingIsNotEdited(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 100, 30, plainEnv)
	r.app.ReadOnly = "this is a recording"
	r.keys("1 ctrl+o")
	require.Contains(t, r.screen(), "this is a recording; nothing can be changed")
	r.app.ReadOnly = ""
	r.reg.SetMistakes([]registry.Mistake{{File: "/etc/goblin/work.yaml", Line: 12, Text: "duplicate server"}})
	r.backend.failing = errors.New("fix the mistakes in work.yaml first: duplicate server")
	r.keys("ctrl+e")
	require.Contains(t, r.screen(), "Config not reloaded: 1 error", "its mistakes are offered")
	require.Contains(t, r.screen(), "fix the mistakes in work.yaml first")
}
