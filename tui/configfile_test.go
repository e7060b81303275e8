package tui

import (
	"context"
	"errors"
	"testing"

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
	lacks   string
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
	r.backend.reloads = []func() report.Reload{outcome(report.Reload{}), invalid, invalid, valid}
	r.keys("1 ctrl+o")
	require.Contains(t, r.screen(), "No changes")
	r.keys(": c o n f i g enter")
	require.Contains(t, r.screen(), "Config not reloaded: 1 error")
	require.Contains(t, r.screen(), "unknown key")
	r.keys("enter")
	require.Contains(t, r.screen(), "unknown key", "still invalid")
	r.keys("enter")
	require.NotContains(t, r.screen(), "unknown key", "the dialog closes")
	require.Contains(t, r.screen(), "The config is valid again; reloaded: + web, ~ odd\\x1b[2J (args), - old")
	require.Equal(t, []string{"file /etc/goblin/work.yaml:7: ", "file /etc/goblin/work.yaml:7: ", "file /etc/goblin/work.yaml:12: ", "file /etc/goblin/work.yaml:12: "}, r.term.opened)
	r.backend.failing = errors.New("the demo has no config; goblin init creates one")
	r.keys("ctrl+o")
	require.Contains(t, r.screen(), "goblin init creates one")
}

func (c *fakeConfig) ServerEntry(string) (*report.ServerEntry, error) { return c.entry, c.failing }

func (c *fakeConfig) PreviewEdit(edit report.ServerEdit) (*report.EditPreview, error) {
	c.edit = edit
	return c.preview, c.failing
}

func (c *fakeConfig) TryEdit(context.Context, report.ServerEdit) (string, error) { return c.lacks, nil }

func (c *fakeConfig) SaveEdit(edit report.ServerEdit) (report.Reload, error) {
	c.edit, c.saved = edit, true
	return report.Reload{Changed: []report.ServerChange{{Server: edit.Entry.Server, Keys: []string{"env"}}}}, c.failing
}
