package pane

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry"
	"goblin/registry/keymap"
	"goblin/registry/query"
	"goblin/registry/rawjson"
	"goblin/registry/termtext"
	"goblin/tui/approve"
	"goblin/tui/compare"
	"goblin/tui/dialog"
	"goblin/tui/form"
	"goblin/tui/keys"
	"goblin/tui/list"
	"goblin/tui/theme"
	"goblin/tui/uicontext"
	"goblin/tui/viewer"
)

type callablePane struct {
	app       *Layout
	All       *catalog
	place     keymap.Place
	index     int // among the panes
	name      string
	noun      string
	follow    registry.Changes
	emptyHint string // in messages, without cached content
	hint      string // … in the detail

	about func(e *registry.Entry) (arguments []viewer.Field, more []viewer.Field)
	body  func(result json.RawMessage) []viewer.Section
}

func (p *callablePane) Place() keymap.Place              { return p.place }
func (p *callablePane) Tab() (name, count string)        { return p.name, p.All.count(p.app.Open == p.index) }
func (p *callablePane) Watches() registry.Changes        { return p.follow | registry.Servers }
func (p *callablePane) Refresh(registry.Changes) tea.Cmd { return p.All.Refresh() }
func (p *callablePane) Heading() (title, right string)   { return p.All.heading(p.name) }
func (p *callablePane) Rows() list.Rows                  { return p.All.Table }
func (p *callablePane) Click(x, y int) (bool, tea.Cmd)   { return p.All.Table.Click(x, y) }
func (p *callablePane) Wheel(_, _, by int)               { p.All.Table.Scroll(by) }
func (p *callablePane) Item() uicontext.Item             { return p.All.item() }
func (p *callablePane) Marked() []uicontext.Item         { return p.All.ticked() }
func (p *callablePane) Empty() []string {
	return p.app.emptyList(p.noun+"s", p.app.KeyOf("servers")+" shows the servers.")
}

func (p *callablePane) Lines(lk *theme.Theme, w, h int, focused bool) []string {
	return p.All.Table.Grid(lk, w, h, focused)
}

func (p *callablePane) setColumns(own ...list.Column[*registry.Entry]) {
	columns := append([]list.Column[*registry.Entry]{
		{
			Name: "name", MinWidth: 16, PreferredWidth: 44, Text: func(e *registry.Entry) string { return e.Listed },
		},
	}, own...)
	p.All.Table.SetColumns(append(columns,
		titleColumn(3),
		serverColumn(4),
		list.Column[*registry.Entry]{
			Name: "description", Priority: 2, MinWidth: 12, PreferredWidth: 40, Fills: true, Dim: true, Unsorted: true,
			Text: func(e *registry.Entry) string { return firstLine(e.Description) },
		})...)
	p.All.Table.MarkWidth = 2
	p.All.Table.Marks = p.mark
}

func (p *callablePane) mark(e *registry.Entry) string {
	switch {
	case isOwnRow(e):
		return p.All.own.Mark(p.app.Theme)
	case p.app.compare.IsMarked(compare.DefinitionKey(e)):
		return p.app.Theme.Accent.On("A")
	case p.app.Calls.ForItem(uicontext.EntryItem(e)) != nil:
		return p.app.Spin.View()
	case p.unapproved(e) != nil:
		return p.app.Theme.Warn.On("!")
	}
	return p.All.mark(e)
}

func (p *callablePane) unapproved(e *registry.Entry) *registry.UnapprovedTool {
	if e.Kind != registry.Tool {
		return nil
	}
	return p.app.Reg.UnapprovedTool(e.Server, e.Name)
}

// risk returns the marks of an unapproved tool.
func (p *callablePane) risk(e *registry.Entry) string {
	tool := p.unapproved(e)
	switch {
	case tool == nil:
		return ""
	case tool.New:
		return cmp.Or(approve.Marks(tool), "new")
	}
	return cmp.Or(approve.Marks(tool), "changed")
}

func firstLine(texts ...string) string {
	for _, s := range texts {
		if s = strings.TrimSpace(s); s != "" {
			if i := strings.IndexByte(s, '\n'); i >= 0 {
				s = s[:i]
			}
			return s[:min(len(s), 400)]
		}
	}
	return ""
}

func (p *callablePane) Subject() Subject {
	e := p.current()
	if e == nil {
		if head, ok := p.All.Table.Selected(); ok {
			return p.All.ownSubject(head)
		}
		return Subject{}
	}
	it := p.Item()
	inv, left := uicontext.CachedInvocation(p.app.Reg, it), cancelledBlocks(p.app.Calls.Cancelled(it))
	state, _ := p.app.Reg.State(e.Server)
	seen := dialog.VisibilityFields(p.app.Context, e)
	var pinned []registry.UnapprovedTool
	if row := p.unapproved(e); row != nil {
		pinned = []registry.UnapprovedTool{*row}
	}
	return Subject{
		Key: p.noun + " " + e.Listed, Title: e.Listed, running: p.app.Calls.ForItem(it),
		Version: fmt.Sprintf("%p %s %s %s %d %v", e, versionOf(inv), state.State, approve.Version(pinned), len(left), seen),
		Blocks: func(context.Context) []viewer.Section {
			arguments, more := p.about(e)
			blocks := []viewer.Section{{Kind: viewer.Fields, Fields: append(append(facts(e), seen...), more...)}}
			blocks = append(blocks, approve.Sections(p.app.Context, p.app.Theme, pinned)...)
			if len(arguments) > 0 {
				blocks = append(blocks, viewer.Section{Title: "Arguments", Kind: viewer.Fields, Fields: arguments})
			}
			blocks = append(blocks, changeBlocks(p.app.Reg, e)...)
			blocks = append(blocks, left...)
			if inv != nil {
				blocks = append(blocks, argumentBlocks(inv)...)
			}
			blocks = append(blocks, contentBlocks(inv, p.body, p.hint)...)
			return append(blocks, rawBlocks(e)...)
		},
	}
}

func cancelledBlocks(l *uicontext.CancelledRequest) []viewer.Section {
	if l == nil {
		return nil
	}
	blocks := []viewer.Section{{Title: "Cancelled", Kind: viewer.Note, Text: fmt.Sprintf("%s, after %s, arguments:", l.At.Format("15:04:05"), uicontext.FormatDuration(l.Took))}}
	if len(l.Args) == 0 {
		blocks[0].Text = strings.TrimSuffix(blocks[0].Text, ", arguments:")
		return blocks
	}
	return append(blocks, viewer.Section{Kind: viewer.JSON, Data: l.Args})
}

func argumentBlocks(inv *registry.Invocation) []viewer.Section {
	if len(inv.Params) == 0 && len(inv.Meta) == 0 {
		return nil
	}
	blocks := []viewer.Section{{Title: "Last arguments", Kind: viewer.JSON, Data: inv.Params}}
	if len(inv.Meta) > 0 {
		blocks = append(blocks, viewer.Section{Title: "_meta", Kind: viewer.JSON, Data: inv.Meta})
	}
	return append(blocks, viewer.Section{Title: "Result", Kind: viewer.Note})
}

func (p *callablePane) commonHandlers() map[string]keys.Handler {
	return map[string]keys.Handler{
		"open": {WhyDisabled: p.none}, "call": {WhyDisabled: p.none}, "copy": {WhyDisabled: p.none}, "clear": {WhyDisabled: p.none}, "copy-content": {WhyDisabled: p.whyNoContent}, "save": {WhyDisabled: p.whyNoContent},
		"compare": p.compareHandler(), "compare-definition": p.compareHandler(),
		"switch":    p.All.switchHandler(),
		"seen":      p.All.hiddenHandler(p.All.toggleHidden),
		"subscribe": {WhyDisabled: keys.AlwaysDisabled("only resources can be subscribed to")},
		"reload":    {WhyDisabled: p.whyNotAgain, Run: func() tea.Cmd { return dialog.CallAgain(p.app.Context, p.current()) }},
	}
}

func (p *callablePane) current() *registry.Entry { return p.All.selected() }

func (p *callablePane) none() string {
	if p.current() == nil {
		return "no " + p.noun + " selected"
	}
	return ""
}

func (p *callablePane) whyNoContent() string {
	return cmp.Or(p.none(), p.app.whyNoContent(p.Item(), p.emptyHint))
}

func (p *callablePane) whyNotAgain() string {
	if it := p.Item(); !it.IsEmpty() && uicontext.CachedInvocation(p.app.Reg, it) == nil {
		return it.Listed + " " + p.emptyHint
	}
	return p.none()
}

func (a *Layout) emptyList(what, hint string) []string {
	switch {
	case len(a.Reg.States()) == 0:
		return []string{"No servers. :setup shows how to add some."}
	case a.starting():
		return []string{"Servers are starting; their " + what + " will appear here."}
	}
	return []string{"No server offers " + what + ".", "", hint}
}

// Tools is the pane of tools.
type Tools struct {
	callablePane
	awaiting int // unapproved tools
}

func newTools(a *Layout) *Tools {
	p := &Tools{callablePane: callablePane{
		app: a, All: newCatalog(a, registry.Tool), place: keymap.InTools, index: PaneTools, name: "Tools", noun: "tool",
		follow: registry.Tools | registry.Skills | registry.Pins, emptyHint: "was not called yet; " + a.KeyOf("call") + " calls it", hint: a.unlessReadOnly(a.KeyOf("call") + " calls it."),
		about: aboutTool, body: viewer.FromTool,
	}}
	fields := p.All.Table.Fields
	p.All.Table.Fields = func(rows []*registry.Entry) []list.Field {
		return append(fields(rows), list.Field{Name: "changed", Kind: list.YesNo, Help: "changed or new since approval: yes or no", YesNo: func(i int) bool {
			return p.unapproved(rows[i]) != nil
		}})
	}
	p.setColumns(list.Column[*registry.Entry]{
		Name: "risk", Priority: 1, MinWidth: 8, PreferredWidth: 20, Unsorted: true,
		Text: p.risk, Show: func(e *registry.Entry, _ int) (string, theme.Style) { return p.risk(e), a.Theme.Warn },
	}, list.Column[*registry.Entry]{
		Name: "RDIW", Priority: 1, NeededWidth: 4, Unsorted: true,
		Show: func(e *registry.Entry, _ int) (string, theme.Style) { return p.All.text(e, letters), a.Theme.Warn },
	})
	return p
}

func (p *Tools) Tab() (name, count string) {
	name, count = p.callablePane.Tab()
	if p.awaiting > 0 {
		count += " " + p.app.Theme.Failed + uicontext.FormatCount(p.awaiting)
	}
	return name, count
}

func (p *Tools) Empty() []string {
	if p.awaiting == 0 {
		return p.callablePane.Empty()
	}
	return []string{
		"Hidden until you approve them: " + termtext.Count(p.awaiting, "tool") + ".", "",
		p.app.KeyOf("servers") + " shows their servers; " + p.app.KeyOf("approve") + " there approves them.",
	}
}

func (p *Tools) Refresh(what registry.Changes) tea.Cmd {
	p.awaiting = len(p.app.Reg.UnapprovedTools(""))
	return p.callablePane.Refresh(what)
}

func (p *Tools) Heading() (title, right string) {
	title, right = p.All.heading("Tools")
	if right == "" {
		right = p.app.Theme.Dim.On("R reads D destroys I idempotent W open world")
	}
	return title, right
}

// letters returns a tool's annotations: R read-only, D destructive, I idempotent, W open
// world. Others are blank.
func letters(e *registry.Entry) string {
	h := dialog.ToolHints(e)
	out := []byte("    ")
	for i, on := range []*bool{h.ReadOnly, h.Destructive, h.Idempotent, h.OpenWorld} {
		if on != nil && *on {
			out[i] = "RDIW"[i]
		}
	}
	return string(out)
}

func aboutTool(e *registry.Entry) (arguments, more []viewer.Field) {
	h := dialog.ToolHints(e)
	var words []string
	for _, w := range []struct {
		on   *bool
		word string
	}{{h.ReadOnly, "R read-only"}, {h.Destructive, "D destructive"}, {h.Idempotent, "I idempotent"}, {h.OpenWorld, "W open world"}} {
		if w.on != nil && *w.on {
			words = append(words, w.word)
		}
	}
	if len(words) > 0 {
		more = []viewer.Field{{Label: "annotations", Value: strings.Join(words, ", ")}}
	}
	fields, _ := form.FromSchema(rawjson.Get(e.JSON(), "inputSchema")) // no fields if the schema is invalid
	for _, line := range form.Outline(fields) {
		arguments = append(arguments, viewer.Field{Label: line.Name, Value: line.Text})
	}
	return arguments, more
}

func (p *Tools) Handlers() map[string]keys.Handler {
	acts := p.callablePane.commonHandlers()
	maps.Copy(acts, p.ownRowHandlers(keys.Handler{WhyDisabled: p.none, Run: func() tea.Cmd { return p.app.openDetail(true) }}))
	acts["call"] = keys.Handler{WhyDisabled: p.none, Run: func() tea.Cmd { return dialog.CallTool(p.app.Context, p.current()) }}
	acts["approve"] = keys.Handler{WhyDisabled: p.whyNotApprove, Run: func() tea.Cmd {
		tools := p.changed()
		p.All.Table.ClearMarks()
		return approve.Open(p.app.Context, tools)
	}}
	return acts
}

// changed returns the marked tools that need approval. Without marks it returns all shown
// ones, the one under the cursor first.
func (p *Tools) changed() (tools []registry.UnapprovedTool) {
	t := p.All.Table
	rows := t.Marked()
	if !t.HasMarks() {
		rows = make([]*registry.Entry, len(t.Matches))
		for i := range rows {
			rows[i] = t.Rows[t.Matches[(t.Cursor()+i)%len(rows)]]
		}
	}
	for _, e := range entries(rows) {
		if tool := p.unapproved(e); tool != nil {
			tools = append(tools, *tool)
		}
	}
	return tools
}

func (p *Tools) whyNotApprove() string {
	typed, _ := p.All.Table.FilterQuery()
	onlyChanged := p.All.Table.Len() > 0 && slices.Contains(query.Values(typed, "changed"), "yes")
	if !onlyChanged && !slices.ContainsFunc(entries(p.All.Table.Marked()), func(e *registry.Entry) bool { return p.unapproved(e) != nil }) {
		return "only new or changed tools need approval; ! marks them"
	}
	return ""
}

// Prompts is the pane of prompts.
type Prompts struct{ callablePane }

func newPrompts(a *Layout) *Prompts {
	p := &Prompts{callablePane{
		app: a, All: newCatalog(a, registry.Prompt), place: keymap.InPrompts, index: PanePrompts, name: "Prompts", noun: "prompt",
		follow: registry.Prompts, emptyHint: "was not fetched yet; " + a.KeyOf("open") + " gets it", hint: a.unlessReadOnly(a.KeyOf("open") + " gets its messages."),
		about: aboutPrompt, body: viewer.FromPrompt,
	}}
	p.setColumns(list.Column[*registry.Entry]{Name: "arguments", Priority: 1, MinWidth: 12, PreferredWidth: 24, Text: signature, Unsorted: true})
	return p
}

func signature(e *registry.Entry) string {
	var names []string
	for _, a := range form.FromPrompt(e.JSON()) {
		if a.Required {
			a.Name += "*"
		}
		names = append(names, a.Name)
	}
	return strings.Join(names, " ")
}

func aboutPrompt(e *registry.Entry) (arguments, more []viewer.Field) {
	for _, arg := range form.FromPrompt(e.JSON()) {
		text := firstLine(arg.Description, arg.Title)
		if arg.Required {
			text = strings.TrimSpace("required  " + text)
		}
		arguments = append(arguments, viewer.Field{Label: arg.Name, Value: text})
	}
	return arguments, nil
}

func (p *Prompts) Handlers() map[string]keys.Handler {
	acts := p.callablePane.commonHandlers()
	get := keys.Handler{WhyDisabled: p.none, Run: func() tea.Cmd {
		if p.app.ReadOnly != "" {
			return p.app.openDetail(true)
		}
		p.app.Opened = true
		return dialog.GetPrompt(p.app.Context, p.current())
	}}
	acts["open"], acts["call"] = get, get
	return acts
}
