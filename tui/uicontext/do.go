package uicontext

import (
	"context"
	"encoding/json"
	"slices"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry"
	"goblin/registry/names"
	"goblin/registry/termtext"
	"goblin/tui/form"
	"goblin/tui/keys"
)

// CallTool opens the form of a tool's arguments.
func (a *Common) CallTool(e *registry.Entry) tea.Cmd { return a.callTool(e, nil) }

// CallWith opens the form of a tool or prompt with arguments.
func (a *Common) CallWith(it Item, args json.RawMessage) tea.Cmd {
	if it.Kind == registry.Prompt {
		if t, err := a.Reg.ResolvePrompt(it.Listed); err == nil && t.Entry != nil {
			return a.getPrompt(t.Entry, args)
		}
	} else if e := a.entry(it); e != nil {
		return a.callTool(e, args)
	}
	return a.Complain("%s is not listed any more", it.Listed)
}

func (a *Common) callTool(e *registry.Entry, args json.RawMessage) tea.Cmd {
	var def struct {
		InputSchema json.RawMessage `json:"inputSchema"`
	}
	_ = json.Unmarshal(e.JSON(), &def) // without a schema the form is raw JSON
	s := form.Spec{Intro: e.Description, Schema: def.InputSchema, Values: args, Meta: true, Submit: "call"}
	if fields, err := form.FromSchema(def.InputSchema); err == nil {
		s.Fields = fields
	}
	if destroys(e) {
		s.Danger = "says that it is destructive: asks before it runs"
	}
	it := EntryItem(e)
	return a.ask(it, "Call "+e.Listed, s, func(args, meta json.RawMessage) Request {
		return Request{Item: it, Method: "tools/call", Args: args, Meta: meta, danger: destroys(e), Show: true}
	})
}

// startOrAsk runs a request, and asks before that if it may destroy something.
// started, if not nil, is called when it runs.
func (a *Common) startOrAsk(r Request, started func()) tea.Cmd {
	start := func() tea.Cmd {
		if started != nil {
			started()
		}
		return a.Calls.Start(r)
	}
	if !r.danger || a.trusts(r.Item) {
		return start()
	}
	return a.Push(&Confirm{
		Screen: a, Title: "Call " + r.Item.Listed + "?",
		Text: []string{a.risk(r.Item) + ". With:"},
		Body: string(Pretty(r.Args)), Yes: "call it", Then: start,
		Always: "do not ask again for this tool", ToAlways: func() tea.Cmd {
			if e := a.entry(r.Item); e != nil {
				a.Calls.trusted[r.Item] = string(e.JSON())
			}
			return start()
		},
	})
}

// trusts reports whether the user chose to call the tool without asking, and its definition
// is the same.
func (a *Common) trusts(it Item) bool {
	definition, ok := a.Calls.trusted[it]
	e := a.entry(it)
	return ok && e != nil && string(e.JSON()) == definition
}

// risk returns the reason to ask before a call. In the protocol, a tool without hints may
// be destructive.
func (a *Common) risk(it Item) string {
	if e := a.entry(it); e != nil && ToolHints(e) == (hints{}) {
		return Clean(it.Server) + " gives no hints: this tool may change data"
	}
	return Clean(it.Server) + " may destroy something with this tool"
}

// Again repeats a request without its form: what does not say that this is
// harmless is asked for.
func (a *Common) Again(r Request) tea.Cmd {
	if r.Item.Kind == registry.Tool {
		e := a.entry(r.Item)
		r.danger = e == nil || !repeatable(e)
	}
	a.Say("Again: %s", r.Item.Listed)
	return a.startOrAsk(r, nil)
}

// entry is the tool of an item, nil if it is not listed any more.
func (a *Common) entry(it Item) *registry.Entry {
	t, err := a.Reg.ResolveTool(it.Listed)
	if err != nil || t.Server != it.Server || t.Name != it.Name {
		return nil
	}
	return t.Entry
}

// CutText cuts long text, between characters.
func CutText(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return termtext.Head(s, most) + "…"
}

// EntryItem is an entry of the catalog as an item.
func EntryItem(e *registry.Entry) Item {
	kind := e.Kind
	if kind == registry.Skill { // its file is a resource
		kind = registry.Resource
	}
	return Item{Kind: kind, Server: e.Server, Name: e.Name, Listed: e.Listed}
}

// GetPrompt opens the form of a prompt's arguments; one without any is fetched.
func (a *Common) GetPrompt(e *registry.Entry) tea.Cmd { return a.getPrompt(e, nil) }

func (a *Common) getPrompt(e *registry.Entry, args json.RawMessage) tea.Cmd {
	it := EntryItem(e)
	fields := form.FromPrompt(e.JSON())
	if len(fields) == 0 {
		return a.Calls.Start(Request{Item: it, Method: "prompts/get", Quiet: true, Show: true})
	}
	s := form.Spec{Intro: e.Description, Fields: fields, Values: args, Strings: true, Meta: true, Submit: "get"}
	return a.ask(it, "Get "+e.Listed, s, func(args, meta json.RawMessage) Request {
		return Request{Item: it, Method: "prompts/get", Args: args, Meta: meta, Show: true}
	})
}

// Expand opens the form of a template's variables.
func (a *Common) Expand(it Item) tea.Cmd {
	t, err := names.ParseTemplate(it.Listed)
	if err != nil {
		return a.Complain("%s: %v", it.Listed, err)
	}
	s := form.Spec{
		Fields: form.FromTemplate(t.Names()), Strings: true, Meta: true, Submit: "read",
		Preview: t.Expand,
	}
	return a.ask(it, "Expand "+it.Listed, s, func(args, meta json.RawMessage) Request {
		var values map[string]string
		_ = json.Unmarshal(args, &values) // the form made it of texts
		return Request{Item: it, Method: "resources/read", Args: args, Meta: meta, Expanded: t.Expand(values), Show: true}
	})
}

// CallAgain repeats what is kept of an item.
func (a *Common) CallAgain(e *registry.Entry) tea.Cmd {
	it := EntryItem(e)
	inv := Kept(a.Reg, it)
	if inv == nil {
		return nil
	}
	r := Request{Item: it, Method: "tools/call", Args: inv.Params, Meta: inv.Meta, Show: true}
	if e.Kind == registry.Prompt {
		r.Method = "prompts/get"
	}
	return a.Again(r)
}

// ask opens a form about an item.
func (a *Common) ask(it Item, title string, s form.Spec, submit func(args, meta json.RawMessage) Request) tea.Cmd {
	s.Last, s.LastMeta = a.Calls.lastOf(it)
	if inv := Kept(a.Reg, it); s.Last == nil && inv != nil { // another screen's, perhaps
		s.Last, s.LastMeta = inv.Params, inv.Meta
	}
	s.Actions = a.Actions
	d := &FormDialog{Screen: a, item: it, Title: title, Form: form.New(a.Look, s)}
	d.Submit = func(args, meta json.RawMessage) tea.Cmd {
		return a.startOrAsk(submit(args, meta), func() { a.Drop(d) })
	}
	return tea.Batch(a.Push(d), d.Form.Began())
}

// FormDialog is a form in front of the panes.
type FormDialog struct {
	Screen *Common
	item   Item
	Title  string
	Form   *form.Form
	Submit func(args, meta json.RawMessage) tea.Cmd // closes the dialog when it is time
	warned bool                                     // that Esc throws away what was typed
	Refuse func(declined bool) tea.Cmd              // nil: nothing happens
	h      int                                      // the most lines it ever needed

	cancel context.CancelFunc // of the completion that runs
}

func (d *FormDialog) Heading() string { return d.Title }

func (d *FormDialog) Size(w, h int) (int, int) {
	w = min(w, 100)
	d.h = max(d.h, d.Form.Height(w-2, h-2)) // a box that shrinks would jump
	return w, min(h, d.h+2)
}

func (d *FormDialog) Lines(w, h int) []string { return d.Form.Lines(w, h) }

func (d *FormDialog) Update(msg tea.Msg) tea.Cmd {
	if m, ok := msg.(tea.MouseMsg); ok {
		ScrollWheel(d.Form.Scroll, m)
		if !LeftPress(m) {
			return nil
		}
		return d.acted(d.Form.Click(m.X, m.Y))
	}
	action, cmd := d.Form.Update(msg)
	if action == form.None && d.warned {
		d.warned = false
		d.Form.Fail("")
	}
	return d.acted(action, cmd)
}

func (d *FormDialog) acted(action form.Action, cmd tea.Cmd) tea.Cmd {
	switch action {
	case form.Submitted:
		args, meta, err := d.Form.Values()
		if err != nil {
			d.Form.Fail(err.Error())
			return cmd
		}
		return tea.Batch(cmd, d.Submit(args, meta))
	case form.Cancelled, form.Declined:
		if action == form.Cancelled && d.Form.Dirty() && !d.warned {
			d.warned = true
			d.Form.Fail(d.Screen.KeyOf("form.cancel") + " once more throws away what you typed")
			return cmd
		}
		d.Screen.Drop(d)
		if d.Refuse != nil {
			cmd = tea.Batch(cmd, d.Refuse(action == form.Declined))
		}
	}
	return cmd
}

func (d *FormDialog) Background(msg tea.Msg) tea.Cmd {
	if c, ok := msg.(form.Completion); ok {
		if c.Form == d.Form {
			return d.complete(c)
		}
		return nil
	}
	_, cmd := d.Form.Update(msg)
	return cmd
}

// complete asks the server how a value may go on (completion/complete).
func (d *FormDialog) complete(c form.Completion) tea.Cmd {
	if d.cancel != nil {
		d.cancel()
	}
	ctx, cancel := context.WithCancel(d.Screen.Ctx)
	d.cancel = cancel
	ref := map[string]string{"type": "ref/prompt", "name": d.item.Listed}
	if d.item.Kind == registry.Template {
		ref = map[string]string{"type": "ref/resource", "uri": d.item.Listed}
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
	backend := d.Screen.Backend
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
		return keys.FuncMsg(func() tea.Cmd {
			d.Form.Offer(c.Gen, values, r.Completion.Total, r.Completion.HasMore)
			return nil
		})
	}
}

func (d *FormDialog) Typing() bool { return true }

// Keys are the form's own; its last line tells them.
func (d *FormDialog) Keys() keys.Table { return nil }
