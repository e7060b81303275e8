package tui

import (
	"context"
	"encoding/json"
	"slices"
	"unicode/utf8"

	"goblin/tui/work"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/yosida95/uritemplate/v3"

	"goblin/registry"
	"goblin/tui/form"
	"goblin/tui/keys"
)

// callTool opens the form of a tool's arguments.
func (a *app) callTool(e *registry.Entry) tea.Cmd {
	var def struct {
		InputSchema json.RawMessage `json:"inputSchema"`
	}
	_ = json.Unmarshal(e.JSON, &def) // without a schema the form is raw JSON
	s := form.Spec{Title: "Call " + e.Listed, Intro: e.Description, Schema: def.InputSchema, Meta: true, Submit: "call"}
	if fields, err := form.FromSchema(def.InputSchema); err == nil {
		s.Fields = fields
	}
	if destroys(e) {
		s.Danger = "says that it is destructive: asks before it runs"
	}
	it := entryItem(e)
	return a.ask(it, s, func(args, meta json.RawMessage) request {
		return request{item: it, method: "tools/call", args: args, meta: meta, danger: destroys(e), show: true}
	})
}

// startOrAsk runs a request, and asks before that if it may destroy something.
// started, if not nil, is called when it runs.
func (a *app) startOrAsk(r request, started func()) tea.Cmd {
	start := func() tea.Cmd {
		if started != nil {
			started()
		}
		return a.calls.start(r)
	}
	if !r.danger {
		return start()
	}
	return a.push(&confirm{
		app: a, title: "Call " + r.item.listed + "?",
		text: []string{clean(r.item.server) + " may destroy something with this tool. With:"},
		body: string(pretty(r.args)), yes: "call it", then: start,
	})
}

// again repeats a request without its form: what does not say that this is
// harmless is asked for.
func (a *app) again(r request) tea.Cmd {
	if r.item.kind == registry.Tool {
		e := a.entry(r.item)
		r.danger = e == nil || !repeatable(e)
	}
	a.say("Again: %s", r.item.listed)
	return a.startOrAsk(r, nil)
}

// entry is the tool of an item, nil if it is not listed any more.
func (a *app) entry(it item) *registry.Entry {
	t, err := a.reg.ResolveTool(it.listed)
	if err != nil || t.Server != it.server || t.Name != it.name {
		return nil
	}
	return t.Entry
}

// cutText cuts long text, between characters.
func cutText(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most] + "…"
}

func entryItem(e *registry.Entry) item {
	return item{kind: e.Kind, server: e.Server, name: e.Name, listed: e.Listed, ok: true}
}

// getPrompt opens the form of a prompt's arguments; one without any is fetched.
func (a *app) getPrompt(e *registry.Entry) tea.Cmd {
	it := entryItem(e)
	fields := form.FromPrompt(e.JSON)
	if len(fields) == 0 {
		return a.calls.start(request{item: it, method: "prompts/get", quiet: true, show: true})
	}
	a.completes(it.server, fields)
	s := form.Spec{Title: "Get " + e.Listed, Intro: e.Description, Fields: fields, Strings: true, Meta: true, Submit: "get"}
	return a.ask(it, s, func(args, meta json.RawMessage) request {
		return request{item: it, method: "prompts/get", args: args, meta: meta, show: true}
	})
}

// expand opens the form of a template's variables.
func (a *app) expand(it item) tea.Cmd {
	t, err := uritemplate.New(it.listed)
	if err != nil {
		return a.complain("%s: %v", it.listed, err)
	}
	fields := form.FromTemplate(t.Varnames())
	a.completes(it.server, fields)
	s := form.Spec{
		Title: "Expand " + it.listed, Fields: fields, Strings: true, Meta: true, Submit: "read",
		Preview: func(values map[string]string) (string, error) { return expansion(t, values) },
	}
	return a.ask(it, s, func(args, meta json.RawMessage) request {
		var values map[string]string
		_ = json.Unmarshal(args, &values) // the form made it of texts
		uri, err := expansion(t, values)
		if err != nil {
			uri = it.listed // the server says what is wrong with it
		}
		return request{item: it, method: "resources/read", args: args, meta: meta, expanded: uri, show: true}
	})
}

// expansion is the URI that a template gives for values (RFC 6570). Variables
// without a value are undefined.
func expansion(t *uritemplate.Template, values map[string]string) (string, error) {
	v := uritemplate.Values{}
	for name, text := range values {
		if text != "" {
			v.Set(name, uritemplate.String(text))
		}
	}
	return t.Expand(v)
}

// callAgain repeats what is kept of an item.
func (a *app) callAgain(e *registry.Entry) tea.Cmd {
	it := entryItem(e)
	inv := kept(a.reg, it)
	if inv == nil {
		return nil
	}
	r := request{item: it, method: "tools/call", args: inv.Params, meta: inv.Meta, show: true}
	if e.Kind == registry.Prompt {
		r.method = "prompts/get"
	}
	return a.again(r)
}

// completes marks the fields that a server can complete.
func (a *app) completes(server string, fields []form.Field) {
	s, _ := a.reg.State(server)
	var can struct {
		Completions json.RawMessage `json:"completions"`
	}
	// Revisions before 2025-03-26 have completion without saying so.
	old := s.ProtocolVersion != "" && s.ProtocolVersion < "2025-03-26"
	if !old && (json.Unmarshal(s.Capabilities, &can) != nil || can.Completions == nil) {
		return
	}
	for i := range fields {
		fields[i].Completes = true
	}
}

// ask opens a form about an item.
func (a *app) ask(it item, s form.Spec, submit func(args, meta json.RawMessage) request) tea.Cmd {
	s.Last, s.LastMeta = a.calls.lastOf(it)
	if inv := kept(a.reg, it); s.Last == nil && inv != nil { // another screen's, perhaps
		s.Last, s.LastMeta = inv.Params, inv.Meta
	}
	title := s.Title
	s.Title = "" // the border has it
	d := &formDialog{app: a, item: it, title: title, form: form.New(a.look, s)}
	d.submit = func(args, meta json.RawMessage) tea.Cmd {
		return a.startOrAsk(submit(args, meta), func() { a.drop(d) })
	}
	return a.push(d)
}

// formDialog is a form in front of the panes.
type formDialog struct {
	app    *app
	item   item
	title  string
	form   *form.Form
	submit func(args, meta json.RawMessage) tea.Cmd // closes the dialog when it is time
	warned bool                                     // that Esc throws away what was typed
	refuse func(declined bool) tea.Cmd              // nil: nothing happens
	h      int                                      // the most lines it ever needed

	cancel context.CancelFunc // of the completion that runs
}

func (d *formDialog) heading() string { return d.title }

func (d *formDialog) size(w, h int) (int, int) {
	w = min(w, 100)
	d.h = max(d.h, d.form.Height(w-2, h-2)) // a box that shrinks would jump
	return w, min(h, d.h+2)
}

func (d *formDialog) lines(w, h int) []string { return d.form.Lines(w, h) }

func (d *formDialog) update(msg tea.Msg) tea.Cmd {
	if m, ok := msg.(tea.MouseMsg); ok {
		if !leftPress(m) {
			return nil
		}
		return d.acted(d.form.Click(m.X, m.Y))
	}
	action, cmd := d.form.Update(msg)
	if action == form.None && d.warned {
		d.warned = false
		d.form.Fail("")
	}
	return d.acted(action, cmd)
}

func (d *formDialog) acted(action form.Action, cmd tea.Cmd) tea.Cmd {
	switch action {
	case form.Submitted:
		args, meta, err := d.form.Values()
		if err != nil {
			d.form.Fail(err.Error())
			return cmd
		}
		return tea.Batch(cmd, d.submit(args, meta))
	case form.Cancelled, form.Declined:
		if action == form.Cancelled && d.form.Dirty() && !d.warned {
			d.warned = true
			d.form.Fail("Esc once more throws away what you typed")
			return cmd
		}
		d.app.drop(d)
		if d.refuse != nil {
			cmd = tea.Batch(cmd, d.refuse(action == form.Declined))
		}
	}
	return cmd
}

func (d *formDialog) background(msg tea.Msg) tea.Cmd {
	if c, ok := msg.(form.Completion); ok {
		if c.Form == d.form {
			return d.complete(c)
		}
		return nil
	}
	_, cmd := d.form.Update(msg)
	return cmd
}

// complete asks the server how a value may go on (completion/complete).
func (d *formDialog) complete(c form.Completion) tea.Cmd {
	if d.cancel != nil {
		d.cancel()
	}
	ctx, cancel := context.WithCancel(d.app.ctx)
	d.cancel = cancel
	ref := map[string]string{"type": "ref/prompt", "name": d.item.listed}
	if d.item.kind == registry.Template {
		ref = map[string]string{"type": "ref/resource", "uri": d.item.listed}
	}
	params, err := json.Marshal(map[string]any{
		"ref":      ref,
		"argument": map[string]string{"name": c.Field, "value": c.Value},
		"context":  map[string]any{"arguments": c.Others},
	})
	if err != nil {
		cancel()
		return nil
	}
	backend := d.app.backend
	return func() tea.Msg {
		defer cancel()
		raw, err := backend.Request(ctx, "completion/complete", params, nil)
		var r struct {
			Completion struct {
				Values  []string `json:"values"`
				Total   int      `json:"total"`
				HasMore bool     `json:"hasMore"`
			} `json:"completion"`
		}
		if err != nil || json.Unmarshal(raw, &r) != nil {
			return nil // a form works without suggestions
		}
		values := slices.DeleteFunc(r.Completion.Values, func(v string) bool { return v == "" })
		return work.Done(func() tea.Cmd {
			d.form.Offer(c.Gen, values, r.Completion.Total, r.Completion.HasMore)
			return nil
		})
	}
}

func (d *formDialog) typing() bool { return true }

// keys are the form's own; its last line tells them.
func (d *formDialog) keys() keys.Table { return nil }
