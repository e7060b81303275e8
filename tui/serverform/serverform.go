// Package serverform edits a server's entry in the config by a form.
//
// It shows the text of the change, tests the server once, then writes. A change by
// another program is never overwritten.
package serverform

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry/report"
	"goblin/registry/secrettext"
	"goblin/tui/dialog"
	"goblin/tui/form"
	"goblin/tui/keys"
	"goblin/tui/uicontext"
)

// maxProblem limits the text of a server's problem, in bytes.
const maxProblem = 200

// editor is one open form.
type editor struct {
	app    *uicontext.Context
	entry  *report.ServerEntry
	errs   []string // errors of the server
	form   *dialog.FormDialog
	title  string
	failed string             // values that failed the test
	cancel context.CancelFunc // of the running test, or nil
}

// Open reads a server's entry and opens its form. The focus is on the variable that one
// of the server's errors names.
func Open(a *uicontext.Context, server string, errs ...string) tea.Cmd {
	return read(a, server, func(entry *report.ServerEntry) tea.Cmd {
		return newEditor(a, entry, errs, nil)
	})
}

// read reads an entry. If the config has mistakes, it shows them.
func read(a *uicontext.Context, server string, then func(*report.ServerEntry) tea.Cmd) tea.Cmd {
	return func() tea.Msg {
		entry, err := a.Backend.ServerEntry(server)
		return keys.FuncMsg(func() tea.Cmd {
			if err == nil {
				return then(entry)
			}
			var cmd tea.Cmd
			if len(a.Reg.Mistakes()) > 0 {
				cmd = dialog.NewMistakes(a)
			}
			a.Complain("%s", uicontext.SanitizeLine(err.Error()))
			return cmd
		})
	}
}

// newEditor opens the form. input has values of an earlier form.
func newEditor(a *uicontext.Context, entry *report.ServerEntry, errs []string, input []report.ServerValue) tea.Cmd {
	e := &editor{app: a, entry: entry, errs: errs}
	at := fault(entry, errs)
	e.addMissing(at)
	for _, v := range input {
		if len(v.Path) == 2 {
			e.addMissing(v.Path)
		}
	}
	e.title = "Edit " + uicontext.SanitizeLine(entry.Server) + " in " + uicontext.SanitizeLine(filepath.Base(entry.File))
	intro := "Shows the change, tests the server, then saves. ${VAR} and ${keyring:NAME} keep secrets out of the file."
	if len(entry.Others) > 0 {
		intro += " Only in the file (" + a.KeyOf("config") + "): " + strings.Join(entry.Others, ", ") + "."
	}
	values := make(map[string]any)
	for i := range entry.Fields {
		if f := &entry.Fields[i]; f.Value != nil {
			values[f.Name()] = f.Value
		}
	}
	for _, v := range input {
		if name := strings.Join(v.Path, "."); v.Value == nil {
			delete(values, name)
		} else {
			values[name] = v.Value
		}
	}
	raw, err := json.Marshal(values)
	if err != nil {
		return a.Complain("%v", err)
	}
	e.form = &dialog.FormDialog{Screen: a, Title: e.title, Form: form.New(a.Theme, form.Spec{
		Actions: a.Actions, Intro: intro, Submit: "save", Fields: e.fields(at), Values: raw,
	})}
	if at != nil {
		e.form.Form.Focus(strings.Join(at, "."))
	}
	e.form.Submit = e.submit
	e.form.Interrupt = e.interrupt
	return a.Push(e.form)
}

// interrupt cancels the test and reports whether one was running.
func (e *editor) interrupt() bool {
	if e.cancel == nil {
		return false
	}
	e.cancel()
	e.cancel, e.form.Testing = nil, time.Time{}
	e.form.Form.ShowError("test cancelled; nothing was saved")
	return true
}

// addMissing adds a field for a variable that the entry lacks.
func (e *editor) addMissing(path []string) {
	has := func(f report.ServerField) bool { return slices.Equal(f.Path, path) }
	if path == nil || slices.ContainsFunc(e.entry.Fields, has) {
		return
	}
	more := slices.IndexFunc(e.entry.Fields, func(f report.ServerField) bool { return len(f.Path) == 1 && f.Path[0] == path[0] })
	if more < 0 {
		return
	}
	own := *e.entry // other forms may show it
	own.Fields = slices.Insert(slices.Clone(own.Fields), more, report.ServerField{Path: path})
	e.entry = &own
}

func (e *editor) fields(fault []string) []form.Field {
	var all []form.Field
	for i := range e.entry.Fields {
		f := &e.entry.Fields[i]
		d := form.Field{Name: f.Name(), Title: f.Path[len(f.Path)-1], Description: f.Help, OneLine: true}
		switch {
		case len(f.Path) == 2:
			d.Description = map[string]string{"env": "Variable", "headers": "Header"}[f.Path[0]] + ". Empty: removed."
			d.Mask = secrettext.MaskValue(f.Path[1])
			if slices.Equal(f.Path, fault) {
				d.Description = "The server's error names it."
			}
		case f.Path[0] == "env":
			d.Title, d.Kind, d.Pattern, d.PatternHelp, d.Mask = "more variables", form.List, `^[^=\s]+=`, "NAME=VALUE", secrettext.MaskPairs("=")
		case f.Path[0] == "headers":
			d.Title, d.Kind, d.Pattern, d.PatternHelp, d.Mask = "more headers", form.List, `^[^:\s]+:`, "NAME: VALUE", secrettext.MaskPairs(":")
		case f.List:
			d.Kind, d.Mask = form.List, secrettext.MaskArgs
		case f.Path[0] == "url":
			d.Mask = secrettext.MaskArgs
		case f.Flag:
			d.Kind, d.Required = form.Bool, true
		case len(f.Options) > 0:
			d.Kind = form.Enum
			for _, o := range f.Options {
				text, _ := json.Marshal(o) // cannot fail: a text
				d.Options = append(d.Options, form.Option{Value: text, Label: o})
			}
		}
		all = append(all, d)
	}
	return all
}

// changes returns the values that differ from the entry.
func (e *editor) changes(args json.RawMessage) ([]report.ServerValue, error) {
	var given map[string]any
	if err := json.Unmarshal(args, &given); err != nil {
		return nil, err
	}
	var all []report.ServerValue
	for i := range e.entry.Fields {
		f := &e.entry.Fields[i]
		value, err := typed(f, given[f.Name()])
		if err != nil {
			return nil, err
		}
		list, isList := value.([]string)
		switch {
		case f.List && (f.Path[0] == "env" || f.Path[0] == "headers"):
			more, err := e.pairs(f.Path[0], list)
			if err != nil {
				return nil, err
			}
			all = append(all, more...)
		case isList:
			if before, _ := f.Value.([]string); !slices.Equal(list, before) {
				all = append(all, report.ServerValue{Path: f.Path, Value: list})
			}
		case value != f.Value:
			all = append(all, report.ServerValue{Path: f.Path, Value: value})
		}
	}
	return all, nil
}

// typed returns a value in the type of its field: a text or nil, bool or []string.
func typed(f *report.ServerField, value any) (any, error) {
	list, isList := value.([]any)
	_, isMap := value.(map[string]any)
	switch {
	case f.Flag:
		return value == true, nil
	case f.List && value == nil:
		return []string(nil), nil
	case isMap, isList != f.List && value != nil:
		return nil, fmt.Errorf("%s has the wrong type", f.Name())
	case !f.List && value == nil:
		return nil, nil
	case !f.List:
		return fmt.Sprint(value), nil
	}
	texts := make([]string, len(list))
	for i, v := range list {
		texts[i] = fmt.Sprint(v)
	}
	return texts, nil
}

// pairs returns the values of new variables or headers.
func (e *editor) pairs(key string, lines []string) ([]report.ServerValue, error) {
	by := map[string]string{"env": "=", "headers": ":"}[key]
	var all []report.ServerValue
	for _, line := range lines {
		name, value, _ := strings.Cut(line, by) // the form validated it
		path := []string{key, strings.TrimSpace(name)}
		if slices.ContainsFunc(e.entry.Fields, func(f report.ServerField) bool { return slices.Equal(f.Path, path) }) {
			return nil, fmt.Errorf("%s already has a field", path[1])
		}
		all = append(all, report.ServerValue{Path: path, Value: strings.TrimSpace(value)})
	}
	return all, nil
}

// submit shows the text of the change. After a failed test, the same values are saved
// without another one.
func (e *editor) submit(args, _ json.RawMessage) tea.Cmd {
	if e.cancel != nil {
		return nil
	}
	values, err := e.changes(args)
	switch {
	case err != nil:
		e.form.Form.ShowError(err.Error())
		return nil
	case len(values) == 0:
		e.form.Form.ShowError("no changes; " + e.app.KeyOf("form.cancel") + " closes the form")
		return nil
	}
	edit := report.ServerEdit{Entry: e.entry, Values: values, Keyring: true}
	return func() tea.Msg {
		p, err := e.app.Backend.PreviewEdit(edit)
		return keys.FuncMsg(func() tea.Cmd {
			if err != nil {
				return e.fail(err, values)
			}
			return e.review(p, edit, string(args))
		})
	}
}

// review asks before the change is written.
func (e *editor) review(p *report.EditPreview, edit report.ServerEdit, args string) tea.Cmd {
	if len(p.Diff) == 0 {
		e.form.Form.ShowError("the file already has these values")
		return nil
	}
	save := func(keyring bool) func() tea.Cmd {
		return func() tea.Cmd {
			edit.Keyring = keyring
			return e.save(edit, args, p.Starts && e.failed != args)
		}
	}
	yes := "save"
	if p.Starts && e.failed != args {
		yes = "test and save"
	}
	c := &dialog.Confirm{
		Screen: e.app, Title: "Save this change?", Yes: yes, Body: strings.Join(p.Diff, "\n"), Diff: true,
		Text: []string{uicontext.SanitizeLine(e.entry.File)}, Then: save(len(p.Secrets) > 0),
	}
	if len(p.Secrets) > 0 {
		c.Yes = "store it, " + yes
		c.Always, c.ThenAlways = "plain text in the file", save(false)
		c.Text = append(c.Text, uicontext.SanitizeLine(strings.Join(p.Secrets, ", "))+": looks like a secret.")
		if p.Keyring {
			c.Text = append(c.Text, "It goes to "+p.Place+".")
		} else {
			c.Text = append(c.Text, "No keyring here: it goes to", "  "+uicontext.SanitizeLine(p.Place)+".", "Or write ${VAR}, and set it in env_file or Goblin's environment.")
		}
	}
	return e.app.Push(c)
}

// save tests the server if wanted, and writes the change.
func (e *editor) save(edit report.ServerEdit, args string, test bool) tea.Cmd {
	a := e.app
	ctx, cancel := context.WithCancel(a.Ctx)
	if test {
		e.cancel = cancel
		e.form.Form.ShowError("")
		e.form.Testing = a.Now()
	}
	return func() tea.Msg {
		var result report.Reload
		var err error
		lacks := ""
		if test {
			lacks, err = a.Backend.TryEdit(ctx, edit)
		}
		saved := lacks == "" && err == nil && ctx.Err() == nil
		if saved {
			result, err = a.Backend.SaveEdit(edit)
		}
		return keys.FuncMsg(func() tea.Cmd {
			cancelled := ctx.Err() != nil
			cancel()
			if cancelled && !saved {
				return nil
			}
			e.cancel, e.form.Testing = nil, time.Time{}
			switch {
			case err != nil:
				return e.fail(err, edit.Values)
			case lacks != "":
				e.failed = args
				e.form.Form.ShowError("not saved: " + uicontext.CutText(uicontext.SanitizeLine(lacks), maxProblem) + ". " + a.KeyOf("form.submit") + " again saves it anyway.")
				return nil
			}
			a.Drop(e.form)
			return dialog.ShowReload(a, result)
		})
	}
}

// fail shows an error in the form. If another program changed the file, it offers a new
// form with the input.
func (e *editor) fail(err error, input []report.ServerValue) tea.Cmd {
	e.form.Form.ShowError(uicontext.SanitizeLine(err.Error()))
	changed, ok := errors.AsType[*report.FileChangedError](err)
	if !ok {
		return nil
	}
	return e.app.Push(&dialog.Confirm{
		Screen: e.app, Title: "The file was changed by another program", Yes: "continue with the new file",
		Text: []string{uicontext.SanitizeLine(changed.File), "Nothing was written. Your input stays."}, Body: strings.Join(changed.Diff, "\n"), Diff: true,
		Then: func() tea.Cmd {
			return read(e.app, e.entry.Server, func(entry *report.ServerEntry) tea.Cmd {
				e.app.Drop(e.form)
				return newEditor(e.app, entry, e.errs, input)
			})
		},
	})
}
