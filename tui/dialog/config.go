package dialog

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry/report"
	"goblin/registry/termtext"
	"goblin/tui/keys"
	"goblin/tui/uicontext"
)

// EditConfig opens the config in $EDITOR at a server's entry, or at its start if server is
// "". Afterwards it shows what changed, or the mistakes.
func EditConfig(a *uicontext.Context, server string) tea.Cmd { return editConfig(a, server, 0) }

// EditConfigLine is EditConfig at a line of the file.
func EditConfigLine(a *uicontext.Context, line int) tea.Cmd { return editConfig(a, "", line) }

// editConfig opens the editor at a line, or at a server's entry if line is 0.
func editConfig(a *uicontext.Context, server string, line int) tea.Cmd {
	ctx, term, backend := a.Ctx, a.Term, a.Backend
	return func() tea.Msg {
		path, at, reload, err := backend.OpenConfig(server)
		if err != nil {
			return keys.FuncMsg(func() tea.Cmd { return a.Complain("%s", uicontext.SanitizeLine(err.Error())) })
		}
		failed := term.Open(ctx, "file", path+":"+strconv.Itoa(cmp.Or(line, at)), nil)
		result := reload() // an editor that failed may have saved before
		return keys.FuncMsg(func() tea.Cmd {
			cmd := ShowReload(a, result)
			if failed != nil {
				a.Complain("editor failed: %s; set $EDITOR to use another editor", uicontext.SanitizeLine(cmp.Or(errors.Unwrap(failed), failed).Error()))
			}
			return tea.Batch(tea.ClearScreen, cmd)
		})
	}
}

// ShowReload shows what an edit of the config changed. Mistakes open their dialog, which
// closes when the config is valid.
func ShowReload(a *uicontext.Context, r report.Reload) tea.Cmd {
	open := slices.IndexFunc(a.Dialogs, func(d uicontext.Dialog) bool { _, ok := d.(*mistakes); return ok })
	if r.Invalid {
		n := len(a.Reg.Mistakes())
		if r.Restored {
			a.Complain("The editor removed the file; its former text with %s was restored", termtext.Count(n, "error"))
		} else {
			a.Complain("Config not reloaded: %s; the previous one stays in use", termtext.Count(n, "error"))
		}
		if open >= 0 {
			return a.Dialogs[open].(*mistakes).read()
		}
		return NewMistakes(a)
	}
	text := uicontext.SanitizeLine(r.String())
	if open >= 0 {
		a.Drop(a.Dialogs[open])
		text = "the config is valid again; " + text
	}
	return a.Say("%s", strings.ToUpper(text[:1])+text[1:])
}
