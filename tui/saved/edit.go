package saved

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry"
	"goblin/registry/export"
	"goblin/registry/savedcall"
	"goblin/registry/suggest"
	"goblin/registry/termtext"
	"goblin/tui/compare"
	"goblin/tui/dialog"
	"goblin/tui/form"
	"goblin/tui/keys"
	"goblin/tui/uicontext"
)

// allFiles makes Refresh read the folder.
const allFiles = registry.SavedCalls

// edit opens the form of a call and saves its arguments.
func (p *Pane) edit(f *savedcall.File) tea.Cmd {
	a, name := p.app, f.Name
	return p.form("Edit "+nameOf(name), f.Call, func(d *dialog.FormDialog, changed *savedcall.Call) tea.Cmd {
		backend := a.Backend
		return a.Do(func() error { _, err := backend.SaveCall(name, changed, true); return err }, "save", func() tea.Cmd {
			a.Drop(d)
			return tea.Batch(p.Refresh(allFiles), a.Say("Saved %s", uicontext.SanitizeLine(name)))
		})
	})
}

// form opens the form of a call. Its values may hold variables.
func (p *Pane) form(title string, c *savedcall.Call, save func(d *dialog.FormDialog, changed *savedcall.Call) tea.Cmd) tea.Cmd {
	a := p.app
	t, why := p.target(c)
	s := form.Spec{Values: c.Arguments, Submit: "save", Actions: a.Actions, Variables: true, Intro: "Values may hold variables: ${NAME} or ${NAME:-default}."}
	switch {
	case c.Kind == savedcall.KindRead:
		s.Fields = []form.Field{{Name: "uri", Required: true, OneLine: true}}
		s.Values, _ = json.Marshal(map[string]string{"uri": c.Name})
	case t.Entry == nil: // without a definition, the form is raw JSON
		s.Intro = strings.TrimSpace(why + " " + s.Intro)
	case c.Kind == savedcall.KindPrompt:
		s.Fields, s.Strings = form.FromPrompt(t.Entry.JSON()), true
	default:
		var def struct {
			InputSchema json.RawMessage `json:"inputSchema"`
		}
		_ = json.Unmarshal(t.Entry.JSON(), &def) // as without a definition
		s.Schema = def.InputSchema
		if fields, err := form.FromSchema(def.InputSchema); err == nil {
			s.Fields = fields
		}
	}
	d := &dialog.FormDialog{Screen: a.Context, Title: uicontext.SanitizeLine(title), Form: form.New(a.Theme, s)}
	d.Submit = func(args, _ json.RawMessage) tea.Cmd {
		changed := *c
		if c.Kind == savedcall.KindRead {
			var v struct{ URI string }
			_ = json.Unmarshal(args, &v) // the form encodes a string
			changed.Name = v.URI
		} else if changed.Arguments = args; string(args) == "{}" && c.Arguments == nil {
			changed.Arguments = nil
		}
		changed.UnquoteVariables(s.Schema)
		return save(d, &changed)
	}
	return tea.Batch(a.Push(d), d.Form.Start())
}

// editText opens a file in $EDITOR, at its first mistake.
func (p *Pane) editText(f *savedcall.File) tea.Cmd {
	a, line := p.app, "1"
	if f.Call == nil {
		line = strings.TrimPrefix(lineOf(f.Mistakes), "line ")
	}
	ctx, term, at := a.Ctx, a.Term, p.path(f)+":"+line
	return func() tea.Msg {
		err := term.Open(ctx, "file", at, nil)
		return keys.FuncMsg(func() tea.Cmd {
			if err != nil {
				a.Complain("open in $EDITOR: %v", err)
			}
			return tea.Batch(tea.ClearScreen, p.Refresh(allFiles))
		})
	}
}

// fileName returns the name of a file as the user typed it.
func fileName(typed string) string {
	typed = strings.Trim(strings.TrimSpace(typed), "/")
	if !savedcall.IsFile(typed) {
		typed += ".yaml"
	}
	return typed
}

// move asks for a name, and renames or copies a call.
func (p *Pane) move(from, text string, keep bool) tea.Cmd {
	a, title := p.app, "Rename to"
	if keep {
		title = "Copy to"
	}
	return a.Push(dialog.NewTextPrompt(a.Context, title+" (folder/name)", text, func(typed string) tea.Cmd {
		to, backend := fileName(typed), a.Backend
		if to == from {
			return nil
		}
		return func() tea.Msg {
			err := backend.MoveSavedCall(from, to, keep)
			return keys.FuncMsg(func() tea.Cmd {
				switch {
				case errors.Is(err, fs.ErrExist):
					return tea.Batch(p.move(from, typed, keep), a.Complain("%s already exists", uicontext.SanitizeLine(to)))
				case err != nil:
					return tea.Batch(p.move(from, typed, keep), a.Complain("%s", uicontext.SanitizeLine(err.Error())))
				case !keep:
					p.results.rename(from, to)
				}
				p.selected = to
				return tea.Batch(p.Refresh(allFiles), a.Say("Saved %s", uicontext.SanitizeLine(to)))
			})
		}
	}))
}

// remove deletes a call after a confirmation.
func (p *Pane) remove(f *savedcall.File) tea.Cmd {
	a, name := p.app, f.Name
	text := []string{"Deletes " + uicontext.SanitizeLine(a.Theme.Cut(p.path(f), 60)) + "."}
	if f.HasAnswer {
		text = append(text, "Its stored answer is deleted, too.")
	}
	return a.Push(&dialog.Confirm{
		Screen: a.Context, Title: "Delete " + uicontext.SanitizeLine(nameOf(name)) + "?", Text: text, Yes: "delete",
		Then: func() tea.Cmd {
			return a.Do(func() error { return a.Backend.DeleteSavedCall(name) }, "delete", func() tea.Cmd {
				return tea.Batch(p.Refresh(allFiles), a.Say("Deleted %s", uicontext.SanitizeLine(name)))
			})
		},
	})
}

// variablesOf returns the names of variables, in the order of the calls.
func variablesOf(calls []*savedcall.Call) (names []string) {
	for _, c := range calls {
		_, _ = c.Resolve(savedcall.Variables{Env: func(name string) (string, bool) {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
			return "", false
		}})
	}
	return names
}

// variables opens a form with the variables of the folder under the cursor. Their values
// last as long as this UI.
func (p *Pane) variables() tea.Cmd {
	a := p.app
	_, files := p.names()
	var calls []*savedcall.Call
	for _, name := range files {
		calls = append(calls, p.find(name).Call)
	}
	names := variablesOf(calls)
	for _, name := range slices.Sorted(maps.Keys(p.set)) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return a.Say("The calls here have no variables")
	}
	var fields []form.Field
	for _, name := range names[:min(len(names), form.MaxFields)] {
		fields = append(fields, form.Field{Name: name, OneLine: true})
	}
	values, _ := json.Marshal(p.set) // strings
	d := &dialog.FormDialog{Screen: a.Context, Title: "Variables", Form: form.New(a.Theme, form.Spec{
		Fields: fields, Values: values, Submit: "set", Actions: a.Actions,
		Intro: "For runs in this UI; not written to files. Without a value, the environment of Goblin and defaults apply.",
	})}
	d.Submit = func(args, _ json.RawMessage) tea.Cmd {
		set := map[string]string{}
		_ = json.Unmarshal(args, &set) // the form encodes strings
		p.set = set
		a.Drop(d)
		return a.Say("%s set", termtext.Count(len(set), "variable"))
	}
	return tea.Batch(a.Push(d), d.Form.Start())
}

func (p *Pane) whyNotCompare(f *savedcall.File) string {
	switch last := p.results.last(f.Name); {
	case f.Call == nil:
		return "the file has mistakes"
	case last == nil || !last.answered():
		return "no answer yet; " + p.app.KeyOf("open") + " runs the call"
	case !f.HasAnswer && last.Answer.Stored == nil && p.previous(f) == nil:
		return "nothing to compare with: no stored answer and no earlier run"
	}
	return ""
}

// previous returns the last run with an answer before the newest one, or nil.
func (p *Pane) previous(f *savedcall.File) *result {
	all := p.results.byKey[f.Name]
	for i := len(all) - 2; i >= 0; i-- {
		if all[i].answered() {
			return all[i]
		}
	}
	return nil
}

// compare compares the last answer with the stored one, or with that of the run before.
func (p *Pane) compare(f *savedcall.File) tea.Cmd {
	a, last, call := p.app, p.results.last(f.Name), f.Call
	side := func(title string, r *result) compare.Answer {
		return compare.Answer{
			Title: f.Name, Facts: title + "  " + lastRun(r), Method: call.Kind.Method(), Name: call.Name,
			Params: call.Params(), Result: r.Answer.Result, Error: r.Answer.Error,
		}
	}
	now := side("last answer", last)
	if !f.HasAnswer {
		return p.marks.Answers(side("earlier answer", p.previous(f)), now)
	}
	backend, name := a.Backend, f.Name
	var stored []byte
	return a.Do(func() (err error) { stored, err = backend.StoredAnswer(name); return err }, "read the stored answer", func() tea.Cmd {
		was := now
		was.Facts, was.Result, was.Error = "stored answer  "+uicontext.FormatSize(int64(len(stored))), stored, nil
		now.Result, now.Error = last.Answer.Document(), nil // errors are stored in the same form
		return p.marks.Answers(was, now)
	})
}

// copyAs offers the call as a command of goblin test, as YAML, and as a request.
func (p *Pane) copyAs(f *savedcall.File) tea.Cmd {
	a, call := p.app, f.Call
	words := []string{"goblin"}
	if a.Endpoint.Config != "" {
		words = append(words, "--config", a.Endpoint.Config)
	}
	test := export.Snippet{Language: "goblin test"}
	if words = append(words, "test", p.path(f)); termtext.CanQuote(words...) {
		test.Text = termtext.QuoteWords(words...)
	} else {
		test.Why = "its path cannot be quoted"
	}
	first := []export.Snippet{test, {Language: "YAML", Text: string(call.Format())}}
	if last := p.results.last(f.Name); last != nil && last.answered() {
		first = append(first, export.Snippet{Language: "answer", Text: string(last.Answer.Document())})
	}
	rec := &registry.TrafficRecord{Method: call.Kind.Method(), Name: call.Name, Request: call.Params()}
	if r, err := call.Resolve(savedcall.Variables{Captures: p.captures([]string{f.Name}), Env: func(name string) (string, bool) {
		value, ok := p.set[name]
		return value, ok
	}}); err == nil {
		rec.Request = r.Params
	}
	rec.RequestSize = len(rec.Request)
	return dialog.NewSnippets(a.Context, rec, first...)
}

// create asks for a tool, prompt or URI, and opens the form of a new call.
func (p *Pane) create(name string) tea.Cmd {
	a := p.app
	return a.Push(dialog.NewTextPrompt(a.Context, "New call of (tool, prompt or URI)", name, func(typed string) tea.Cmd {
		c, err := p.newCall(strings.TrimSpace(typed))
		if err != nil {
			return tea.Batch(p.create(typed), a.Complain("%s", uicontext.SanitizeLine(err.Error())))
		}
		return p.form("New call of "+c.Name, c, func(d *dialog.FormDialog, changed *savedcall.Call) tea.Cmd {
			return p.askName(changed, nil, savedcall.Answer{}, func() { a.Drop(d) })
		})
	}))
}

func (p *Pane) newCall(name string) (*savedcall.Call, error) {
	reg := p.app.Reg
	t, err := reg.ResolveTool(name)
	if err == nil {
		return &savedcall.Call{Kind: savedcall.KindCall, Name: t.Listed}, nil
	}
	if t, err := reg.ResolvePrompt(name); err == nil {
		return &savedcall.Call{Kind: savedcall.KindPrompt, Name: t.Listed}, nil
	}
	if strings.Contains(name, "://") {
		return &savedcall.Call{Kind: savedcall.KindRead, Name: savedcall.Escape(name)}, nil
	}
	near := suggest.New(name)
	for e := range reg.Load().All(registry.Tool) {
		near.Add(e.Listed, e.Name)
	}
	return nil, errors.New(strings.TrimSpace("no tool or prompt " + name + " is listed" + suggest.DidYouMean(near.Best()...)))
}
