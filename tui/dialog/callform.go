package dialog

import (
	"encoding/json"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry"
	"goblin/registry/names"
	"goblin/registry/savedcall"
	"goblin/tui/form"
	"goblin/tui/uicontext"
)

// CallTool opens the form of a tool.
func CallTool(a *uicontext.Context, e *registry.Entry) tea.Cmd { return callTool(a, e, nil) }

// CallWith opens the form of a tool or prompt, filled with args.
func CallWith(a *uicontext.Context, it uicontext.Item, args json.RawMessage) tea.Cmd {
	if it.Kind == registry.Prompt {
		if t, err := a.Reg.ResolvePrompt(it.Listed); err == nil && t.Entry != nil {
			return getPrompt(a, t.Entry, args)
		}
	} else if e := listedTool(a, it); e != nil {
		return callTool(a, e, args)
	}
	return a.Complain("%s is no longer listed", it.Listed)
}

func callTool(a *uicontext.Context, e *registry.Entry, args json.RawMessage) tea.Cmd {
	var def struct {
		InputSchema json.RawMessage `json:"inputSchema"`
	}
	_ = json.Unmarshal(e.JSON(), &def) // without it, the form is raw JSON
	s := form.Spec{Intro: e.Description, Schema: def.InputSchema, Values: args, Meta: true, Submit: "call"}
	if fields, err := form.FromSchema(def.InputSchema); err == nil {
		s.Fields = fields
	}
	if isDestructive(e) {
		s.Danger = "marked destructive: asks for confirmation"
	}
	it := uicontext.EntryItem(e)
	return openForm(a, it, "Call "+e.Listed, s, isDestructive(e), func(args, meta json.RawMessage) uicontext.Request {
		return uicontext.Request{Item: it, Method: "tools/call", Args: args, Meta: meta, Show: true}
	})
}

// startOrAsk asks for confirmation first if danger is true. started may be nil.
func startOrAsk(a *uicontext.Context, r uicontext.Request, danger bool, started func()) tea.Cmd {
	start := func() tea.Cmd {
		if started != nil {
			started()
		}
		return a.Calls.Start(r)
	}
	if !danger || isTrusted(a, r.Item) {
		return start()
	}
	return a.Push(&Confirm{
		Screen: a, Title: "Call " + r.Item.Listed + "?",
		Text: []string{risk(a, r.Item) + " Arguments:"},
		Body: string(uicontext.Pretty(r.Args)), Yes: "call", Then: start,
		Always: "call, and don't ask again", ThenAlways: func() tea.Cmd {
			if e := listedTool(a, r.Item); e != nil {
				a.Calls.Trusted[r.Item] = string(e.JSON())
			}
			return start()
		},
	})
}

// isTrusted reports whether the user disabled the confirmation for a tool that is
// unchanged since.
func isTrusted(a *uicontext.Context, it uicontext.Item) bool {
	definition, ok := a.Calls.Trusted[it]
	e := listedTool(a, it)
	return ok && e != nil && string(e.JSON()) == definition
}

// By the protocol, a tool without hints may be destructive.
func risk(a *uicontext.Context, it uicontext.Item) string {
	if e := listedTool(a, it); e != nil {
		switch h := ToolHints(e); {
		case h == (toolHints{}):
			return "This tool may change data (" + uicontext.SanitizeLine(it.Server) + " gives no hints)."
		case h.Destructive != nil && !*h.Destructive:
			return "This tool may change data again."
		}
	}
	return "This tool may delete or overwrite data."
}

// Again repeats a request. It asks first unless the tool declares repeated calls
// harmless.
func Again(a *uicontext.Context, r uicontext.Request) tea.Cmd {
	danger := false
	if r.Item.Kind == registry.Tool {
		e := listedTool(a, r.Item)
		danger = e == nil || !isRepeatable(e)
	}
	a.Say("Again: %s", r.Item.Listed)
	return startOrAsk(a, r, danger, nil)
}

// listedTool returns nil if the tool is no longer listed.
func listedTool(a *uicontext.Context, it uicontext.Item) *registry.Entry {
	t, err := a.Reg.ResolveTool(it.Listed)
	if err != nil || t.Server != it.Server || t.Name != it.Name {
		return nil
	}
	return t.Entry
}

// GetPrompt opens the form of a prompt, or fetches a prompt without arguments.
func GetPrompt(a *uicontext.Context, e *registry.Entry) tea.Cmd { return getPrompt(a, e, nil) }

func getPrompt(a *uicontext.Context, e *registry.Entry, args json.RawMessage) tea.Cmd {
	it := uicontext.EntryItem(e)
	fields := form.FromPrompt(e.JSON())
	if len(fields) == 0 {
		return a.Calls.Start(uicontext.Request{Item: it, Method: "prompts/get", Silent: true, Show: true})
	}
	s := form.Spec{Intro: e.Description, Fields: fields, Values: args, Strings: true, Meta: true, Submit: "get"}
	return openForm(a, it, "Get "+e.Listed, s, false, func(args, meta json.RawMessage) uicontext.Request {
		return uicontext.Request{Item: it, Method: "prompts/get", Args: args, Meta: meta, Show: true}
	})
}

// Expand opens the form for the variables of a template.
func Expand(a *uicontext.Context, it uicontext.Item) tea.Cmd {
	t, err := names.ParseTemplate(it.Listed)
	if err != nil {
		return a.Complain("%s: %v", it.Listed, err)
	}
	s := form.Spec{
		Fields: form.FromTemplate(t.Names()), Strings: true, Meta: true, Submit: "read",
		Preview: t.Expand,
	}
	return openForm(a, it, "Expand "+it.Listed, s, false, func(args, meta json.RawMessage) uicontext.Request {
		var values map[string]string
		_ = json.Unmarshal(args, &values) // the form encodes only strings
		return uicontext.Request{Item: it, Method: "resources/read", Args: args, Meta: meta, Expanded: t.Expand(values), Show: true}
	})
}

// CallAgain repeats the cached call of an entry, if any.
func CallAgain(a *uicontext.Context, e *registry.Entry) tea.Cmd {
	it := uicontext.EntryItem(e)
	inv := uicontext.CachedInvocation(a.Reg, it)
	if inv == nil {
		return nil
	}
	r := uicontext.Request{Item: it, Method: "tools/call", Args: inv.Params, Meta: inv.Meta, Show: true}
	if e.Kind == registry.Prompt {
		r.Method = "prompts/get"
	}
	return Again(a, r)
}

// openForm opens a form for an item. danger requires a confirmation of the call.
func openForm(a *uicontext.Context, it uicontext.Item, title string, s form.Spec, danger bool, submit func(args, meta json.RawMessage) uicontext.Request) tea.Cmd {
	s.Last, s.LastMeta = a.Calls.LastArguments(it)
	if inv := uicontext.CachedInvocation(a.Reg, it); s.Last == nil && inv != nil { // possibly made in another UI
		s.Last, s.LastMeta = inv.Params, inv.Meta
	}
	s.Actions, s.Saves = a.Actions, true
	d := &FormDialog{Screen: a, item: it, Title: title, Form: form.New(a.Theme, s)}
	d.Save = func(args, meta json.RawMessage) tea.Cmd {
		r := submit(args, meta)
		params, err := r.Params()
		if err != nil {
			return a.Complain("%v", err)
		}
		return a.SaveCall(r.Method, params, savedcall.Answer{})
	}
	d.Submit = func(args, meta json.RawMessage) tea.Cmd {
		return startOrAsk(a, submit(args, meta), danger, func() { a.Drop(d) })
	}
	return tea.Batch(a.Push(d), d.Form.Start())
}
