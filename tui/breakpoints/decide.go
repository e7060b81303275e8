package breakpoints

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry"
	"goblin/registry/rawjson"
	"goblin/tui/dialog"
	"goblin/tui/form"
	"goblin/tui/keys"
	"goblin/tui/uicontext"
)

// decision is a form about a stopped request. It closes when the request no longer waits.
type decision struct {
	*dialog.FormDialog
	rules *Rules
	stop  registry.StoppedRequest
	title string
	sent  bool // the decision is being sent
	ended bool
}

// ask opens a form. read turns its values into a decision.
func (r *Rules) ask(s *registry.StoppedRequest, title string, spec form.Spec, read func(args json.RawMessage, edited bool) registry.Decision) tea.Cmd {
	a := r.app
	spec.Actions = a.Actions
	d := &decision{rules: r, stop: *s, title: title, FormDialog: &dialog.FormDialog{Screen: a, Form: form.New(a.Theme, spec)}}
	d.Refuse = func(bool) tea.Cmd { return a.Drop(d) }
	d.Submit = func(args, _ json.RawMessage) tea.Cmd {
		if d.sent || d.ended {
			return nil
		}
		d.sent = true
		return r.decide(s, read(args, d.Form.IsEdited()), func(err error) tea.Cmd {
			d.sent = false
			if r.stopped(s.ID) == nil {
				return d.close()
			}
			d.Form.ShowError(uicontext.SanitizeLine(err.Error()))
			return nil
		}, func() { a.Drop(d) })
	}
	return tea.Batch(a.Push(d), d.Form.Start())
}

// Heading shows the time left.
func (d *decision) Heading() string {
	return fmt.Sprintf("%s %s, %s left, then %s", d.title, name(&d.stop), d.rules.app.TimeLeft(&d.stop), d.stop.Default)
}

// endDelay is the time in which the record of a cancelled request arrives.
const endDelay = 250 * time.Millisecond

// Refresh closes the form if the request no longer waits.
func (d *decision) Refresh(what registry.Changes) tea.Cmd {
	if what&registry.Rules == 0 || d.sent || d.ended || d.rules.stopped(d.stop.ID) != nil {
		return nil
	}
	d.ended = true
	return d.rules.app.After(endDelay, keys.FuncMsg(d.close))
}

// close reports the end of the request and keeps the user's input.
func (d *decision) close() tea.Cmd {
	a := d.rules.app
	if !slices.Contains(a.Dialogs, uicontext.Dialog(d)) {
		return nil // closed by the user meanwhile
	}
	a.Drop(d)
	why := d.rules.whyEnded(&d.stop)
	a.Complain("%s: %s", name(&d.stop), why)
	if !d.Form.IsEdited() {
		return nil
	}
	text := d.Form.Text()
	l := &lost{app: a, last: a.Clock(), Confirm: &dialog.Confirm{
		Screen: a, Title: name(&d.stop) + " no longer waits",
		Text: []string{why + ".", "Your input was not sent:"}, Body: text, Yes: "copy it",
	}}
	l.Then = func() tea.Cmd {
		a.Drop(l)
		return a.Copy(text, "your input")
	}
	l.Refuse = func() tea.Cmd { return a.Drop(l) }
	return a.Push(l)
}

// lost shows input that was not sent. It opens while the user types, so it ignores keys
// until a pause.
type lost struct {
	*dialog.Confirm
	app  *uicontext.Context
	last time.Time // of the last ignored key
}

func (l *lost) ignoresKeys() bool { return l.app.Clock().Sub(l.last) < dialog.KeyGrace }

func (l *lost) Keys() keys.Table {
	if l.ignoresKeys() {
		return nil
	}
	return l.Confirm.Keys()
}

// Hints explains why keys do nothing.
func (l *lost) Hints() []keys.Hint {
	if l.ignoresKeys() {
		return dialog.GraceHints()
	}
	return l.Confirm.Hints()
}

func (l *lost) Update(tea.Msg) tea.Cmd {
	l.last = l.app.Clock()
	return nil
}

// send sends a stopped request as it is.
func (r *Rules) send(s *registry.StoppedRequest) tea.Cmd {
	return r.decide(s, registry.Decision{Action: registry.DecideSend}, func(err error) tea.Cmd {
		return r.app.Complain("%s: %s", name(s), uicontext.SanitizeLine(err.Error()))
	}, func() {})
}

// change opens the arguments of a request, or a stopped result.
func (r *Rules) change(s *registry.StoppedRequest) tea.Cmd {
	switch {
	case s.On == "answer" && s.IsError:
		return r.answer(s)
	case s.On == "answer":
		spec := form.Spec{
			Intro: "The result of the server, as JSON.", Submit: "send changed",
			Fields: []form.Field{resultField}, Values: wrap("result", s.Answer),
		}
		return r.ask(s, "Change the answer of", spec, func(args json.RawMessage, edited bool) registry.Decision {
			d := registry.Decision{Action: registry.DecideSend}
			if edited {
				d.Result = rawjson.Get(args, "result")
			}
			return d
		})
	case !s.Editable:
		return r.app.Complain("this request cannot be changed; %s sends it, %s denies it", r.app.KeyOf("rules.send"), r.app.KeyOf("rules.deny"))
	}
	spec, member := r.argumentsForm(s)
	spec.Submit = "send"
	if text, risky := strings.CutPrefix(r.hints(s), "! "); risky {
		spec.Danger = text
	}
	return r.ask(s, "Change", spec, func(args json.RawMessage, edited bool) registry.Decision {
		d := registry.Decision{Action: registry.DecideSend}
		switch {
		case !edited:
		case member != "":
			d.Params = rawjson.SetMember(orEmpty(s.Params), member, args)
		default:
			d.Params = rawjson.Get(args, "params")
		}
		return d
	})
}

var resultField = form.Field{Name: "result", Title: "result", Kind: form.JSON, Required: true}

// stoppedTool returns the listed tool of a stopped call, or nil.
func (r *Rules) stoppedTool(s *registry.StoppedRequest) *registry.Entry {
	if s.Method != "tools/call" {
		return nil
	}
	t, err := r.app.Reg.ResolveTool(s.Name)
	if err != nil {
		return nil
	}
	return t.Entry
}

// argumentsForm returns a form for the arguments of a tool or prompt, and their member of
// the params. For other requests it has all params and no member.
func (r *Rules) argumentsForm(s *registry.StoppedRequest) (spec form.Spec, member string) {
	const arguments = "arguments"
	spec.Values = rawjson.Get(s.Params, arguments)
	if tool := r.stoppedTool(s); tool != nil {
		spec.Intro, spec.Schema = tool.Description, rawjson.Get(tool.JSON(), "inputSchema")
		if fields, err := form.FromSchema(spec.Schema); err == nil && len(fields) > 0 {
			spec.Fields = fields
			return spec, arguments
		}
	}
	if t, err := r.app.Reg.ResolvePrompt(s.Name); s.Method == "prompts/get" && err == nil && t.Entry != nil {
		spec.Intro, spec.Strings = t.Entry.Description, true
		spec.Fields = form.FromPrompt(t.Entry.JSON())
		for i := range spec.Fields {
			spec.Fields[i].Completes = false
		}
		if len(spec.Fields) > 0 {
			return spec, arguments
		}
	}
	return form.Spec{
		Intro:  "The params of " + s.Method + ", as JSON.",
		Fields: []form.Field{{Name: "params", Title: "params", Kind: form.JSON, Required: true}},
		Values: wrap("params", s.Params),
	}, ""
}

// wrap returns an object with one member.
func wrap(member string, value json.RawMessage) json.RawMessage {
	return rawjson.SetMember([]byte("{}"), member, orEmpty(value))
}

func orEmpty(object json.RawMessage) json.RawMessage {
	if len(object) == 0 {
		return json.RawMessage("{}")
	}
	return object
}

// deny asks for a text for the model.
func (r *Rules) deny(s *registry.StoppedRequest) tea.Cmd {
	spec := form.Spec{
		Intro: "The model reads this text. Without one it reads the rule's text.", Submit: "deny",
		Fields: []form.Field{{Name: "text", Title: "text"}},
	}
	return r.ask(s, "Deny", spec, func(args json.RawMessage, _ bool) registry.Decision {
		return registry.Decision{Action: registry.DecideDeny, Text: rawjson.GetString(args, "text")}
	})
}

// answer asks for a result.
func (r *Rules) answer(s *registry.StoppedRequest) tea.Cmd {
	spec := form.Spec{
		Intro:  "The client gets this result. The server is not asked.",
		Submit: "answer", Fields: []form.Field{resultField}, Values: json.RawMessage(`{"result":{}}`),
	}
	if s.On == "answer" {
		spec.Intro = "The client gets this result instead of the server's answer."
	}
	if s.Method == "tools/call" {
		result := json.RawMessage(`{"content":[{"type":"text","text":"ok"}]}`)
		if content := r.structuredContent(s); content != nil {
			result = rawjson.SetMember(result, "structuredContent", content)
		}
		spec.Values = rawjson.SetMember(wrap("result", result), "isError", []byte("false"))
		spec.Fields = append(spec.Fields, form.Field{Name: "isError", Title: "isError", Kind: form.Bool, Required: true})
	}
	return r.ask(s, "Answer", spec, func(args json.RawMessage, _ bool) registry.Decision {
		result := rawjson.Get(args, "result")
		if string(rawjson.Get(args, "isError")) == "true" && rawjson.IsObject(result) {
			result = rawjson.SetMember(result, "isError", []byte("true"))
		}
		return registry.Decision{Action: registry.DecideAnswer, Result: result}
	})
}

// structuredContent returns a sample for the tool's output schema, or nil without one. SDK
// clients demand it.
func (r *Rules) structuredContent(s *registry.StoppedRequest) json.RawMessage {
	tool := r.stoppedTool(s)
	if tool == nil {
		return nil
	}
	schema := rawjson.Get(tool.JSON(), "outputSchema")
	if schema == nil {
		return nil
	}
	return form.Skeleton(schema)
}

// fail asks for a JSON-RPC error.
func (r *Rules) fail(s *registry.StoppedRequest) tea.Cmd {
	least, most := -2147483648.0, 2147483647.0
	spec := form.Spec{
		Intro: "The client gets this JSON-RPC error.", Submit: "fail",
		Fields: []form.Field{
			{Name: "code", Title: "code", Kind: form.Integer, Required: true, Min: &least, Max: &most, Default: json.RawMessage("-32603")},
			{Name: "text", Title: "message", OneLine: true},
		},
	}
	return r.ask(s, "Fail", spec, func(args json.RawMessage, _ bool) registry.Decision {
		code, _ := rawjson.Int(rawjson.Get(args, "code"))
		return registry.Decision{Action: registry.DecideFail, Code: int(code), Text: rawjson.GetString(args, "text")}
	})
}

// whyNotRemember explains why no approval can be remembered, or returns "".
func whyNotRemember(s *registry.StoppedRequest) string {
	if s.On == "answer" || !slices.Contains(slices.Collect(maps.Values(methods)), s.Method) {
		return "only calls of tools, prompts and resources can be remembered"
	}
	return ""
}

// remember asks for how long calls may pass after this one.
func (r *Rules) remember(s *registry.StoppedRequest) tea.Cmd {
	if why := whyNotRemember(s); why != "" {
		return r.app.Complain("%s", why)
	}
	spec := form.Spec{
		Intro:  "Sends this request unchanged. Later ones like it pass the rule.",
		Submit: "send and remember",
		Fields: []form.Field{{
			Name: "remember", Title: "remember for", Kind: form.Enum, Required: true, Default: json.RawMessage(`"tool"`),
			Options: []form.Option{
				{Value: json.RawMessage(`"` + registry.RememberTool + `"`), Label: "all calls of it by this client"},
				{Value: json.RawMessage(`"` + registry.RememberSession + `"`), Label: "this session of the client"},
				{Value: json.RawMessage(`"` + registry.RememberDefinition + `"`), Label: "until its definition changes"},
			},
		}},
	}
	return r.ask(s, "Send and remember", spec, func(args json.RawMessage, _ bool) registry.Decision {
		return registry.Decision{Action: registry.DecideSend, Remember: rawjson.GetString(args, "remember")}
	})
}
