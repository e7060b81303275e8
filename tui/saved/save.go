package saved

import (
	"encoding/json"
	"errors"
	"io/fs"
	"slices"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry"
	"goblin/registry/rawjson"
	"goblin/registry/savedcall"
	"goblin/tui/dialog"
	"goblin/tui/form"
	"goblin/tui/keys"
	"goblin/tui/pane"
	"goblin/tui/uicontext"
)

// whyNotSave explains why nothing can be saved here, or returns "".
func (p *Pane) whyNotSave() string {
	a := p.app
	if a.Open == pane.PaneLogs && a.Logs().IsTraffic() {
		if _, ok := a.Logs().Traffic.Table.Selected(); ok {
			return ""
		}
		return "no row selected"
	}
	return "only calls in forms, Traffic, Time line or past calls (" + a.KeyOf("past") + ") can be saved"
}

// saveShown saves the request under the cursor in Traffic or Time line.
func (p *Pane) saveShown() tea.Cmd {
	a := p.app
	r, _ := a.Logs().Traffic.Table.Selected()
	rec, ok := a.Reg.Traffic().Record(r.Seq)
	switch {
	case r.Seq == 0:
		return a.Complain("the request is running; wait for its answer")
	case !ok:
		return a.Complain("the request was evicted by newer traffic")
	case rec.Direction != registry.ToServer:
		return a.Complain("only requests of clients can be saved")
	case rec.RequestSize > 0 && len(rec.Request) < rec.RequestSize:
		return a.Complain("its params are incomplete: %s", a.MissingBody())
	}
	var answer savedcall.Answer
	if len(rec.Response) == rec.ResponseSize && rec.Code == 0 {
		answer.Result = rec.Response
	}
	return p.saveRequest(rec.Method, rec.Request, answer)
}

// saveRequest saves a request under a name that the user chooses.
func (p *Pane) saveRequest(method string, params json.RawMessage, answer savedcall.Answer) tea.Cmd {
	a := p.app
	answer.Redact = a.Backend.Redact
	// A typed secret of the config is hidden as in traffic.
	c, variables, err := savedcall.New(method, json.RawMessage(a.Backend.Redact(string(params))))
	if err != nil {
		return a.Complain("%s", uicontext.SanitizeLine(err.Error()))
	}
	if c.Kind == savedcall.KindCall { // a profile's clients may see other names
		if t, err := a.Reg.ResolveTool(c.Name); err == nil && t.Listed != "" {
			c.Name = t.Listed
		}
	}
	return p.askName(c, variables, answer, func() {})
}

// askName asks for the name of a new file and saves the call. done runs afterwards.
func (p *Pane) askName(c *savedcall.Call, variables []string, answer savedcall.Answer, done func()) tea.Cmd {
	a := p.app
	return func() tea.Msg {
		folder, err := a.Backend.SavedCalls()
		return keys.FuncMsg(func() tea.Cmd {
			if err != nil {
				return a.Complain("save: %s", uicontext.SanitizeLine(err.Error()))
			}
			p.folder, p.read = *folder, true
			return p.nameForm(c, variables, answer, done)
		})
	}
}

// Values of the form's check.
const (
	checkError = "no error"
	checkSame  = "the same answer"
)

func (p *Pane) nameForm(c *savedcall.Call, variables []string, answer savedcall.Answer, done func()) tea.Cmd {
	a := p.app
	name := c.FileName(func(name string) bool { return p.find(p.last+name) != nil })
	fields := []form.Field{
		{Name: "name", Required: true, OneLine: true, Description: "With / for folders", Default: rawjson.Quote(p.last + nameOf(name))},
		{Name: "about", OneLine: true, Description: "For readers of the file"},
	}
	if answer.Result != nil {
		fields = append(fields, form.Field{Name: "expect", Kind: form.Enum, Required: true, Options: []form.Option{
			{Value: rawjson.Quote(checkError), Label: checkError}, {Value: rawjson.Quote(checkSame), Label: checkSame},
		}, Default: rawjson.Quote(checkError), Description: "The same answer is stored beside the file"})
	}
	intro := "Saves " + c.Name + " in " + p.folder.Path + "."
	if len(variables) > 0 {
		intro += " Secrets are not recorded and became variables: " + strings.Join(variables, ", ") + "."
	}
	d := &dialog.FormDialog{Screen: a.Context, Title: "Save the call", Form: form.New(a.Theme, form.Spec{Intro: intro, Fields: fields, Submit: "save", Actions: a.Actions})}
	d.Submit = func(args, _ json.RawMessage) tea.Cmd {
		var v struct{ Name, About, Expect string }
		_ = json.Unmarshal(args, &v) // the form encodes strings
		one := *c
		one.Description = v.About
		if v.Expect == checkSame {
			one.Expect = append(slices.Clone(c.Expect), savedcall.Check{Kind: savedcall.CheckSame})
		} else {
			answer.Result = nil
		}
		s := &saving{pane: p, dialog: d, call: &one, name: fileName(v.Name), answer: answer, variables: variables, done: done}
		return s.write(false)
	}
	return tea.Batch(a.Push(d), d.Form.Start())
}

// saving is a call that is being saved.
type saving struct {
	pane      *Pane
	dialog    *dialog.FormDialog
	call      *savedcall.Call
	name      string
	answer    savedcall.Answer
	variables []string
	done      func()
}

// write writes the file, and asks before it replaces one.
func (s *saving) write(overwrite bool) tea.Cmd {
	a := s.pane.app
	backend := a.Backend
	return func() tea.Msg {
		where, err := backend.SaveCall(s.name, s.call, overwrite)
		if err == nil && s.answer.Result != nil {
			err = backend.StoreAnswer(s.name, s.answer.StoredDocument())
		}
		return keys.FuncMsg(func() tea.Cmd {
			switch {
			case errors.Is(err, fs.ErrExist):
				return a.Push(&dialog.Confirm{
					Screen: a.Context, Title: "Replace " + uicontext.SanitizeLine(s.name) + "?", Yes: "replace",
					Text: []string{"A saved call with this name exists."}, Then: func() tea.Cmd { return s.write(true) },
				})
			case err != nil:
				s.dialog.Form.ShowError(uicontext.SanitizeLine(err.Error()))
				return nil
			}
			return s.saved(where)
		})
	}
}

func (s *saving) saved(where string) tea.Cmd {
	p, a := s.pane, s.pane.app
	a.Drop(s.dialog)
	s.done()
	p.last, p.selected = folderOf(s.name), s.name
	text := "Saved " + uicontext.SanitizeLine(where)
	if len(s.variables) > 0 {
		text += "; set " + strings.Join(s.variables, ", ") + " to run it"
	} else if a.Open != pane.PaneSaved {
		text += "; " + a.KeyOf("saved") + " shows it"
	}
	return tea.Batch(p.Refresh(allFiles), a.Say("%s", text))
}
