package pane

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry"
	"goblin/tui/content"
	"goblin/tui/dialog"
	"goblin/tui/form"
	"goblin/tui/keys"
	"goblin/tui/look"
)

// Tools is the pane of tools.
type Tools struct {
	offered
	awaiting int // approval
}

func newTools(a *Desk) *Tools {
	p := &Tools{offered: offered{app: a, All: newCatalog(a, registry.Tool), place: keys.InTools, index: PaneTools, name: "Tools", noun: "tool", follow: registry.Tools | registry.Pins, untried: "was not called yet; c calls it"}}
	p.draw = p.row
	return p
}

func (p *Tools) Tab() (name, count string) {
	name, count = p.offered.Tab()
	if p.awaiting > 0 {
		count += " " + p.app.Look.Failed + dialog.Grouped(p.awaiting)
	}
	return name, count
}

func (p *Tools) Refresh(what registry.Changes) tea.Cmd {
	p.awaiting = len(p.app.Reg.Pinned(""))
	return p.offered.Refresh(what)
}

func (p *Tools) Heading() (title, right string) {
	title, right = p.All.heading("Tools")
	if right == "" {
		right = p.app.Look.Dim.On("R reads D destroys I idempotent W open world")
	}
	return title, right
}

// letters are a tool's annotations: R read-only, D destructive, I idempotent,
// W open world. What is not said is not shown.
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

func (p *Tools) row(e *registry.Entry, w int) string {
	lk := p.app.Look
	base, right := look.Style(""), p.All.stale(e.Server)
	if right != "" {
		base = lk.Stale
	}
	w -= look.Width(right)
	name := p.All.nameWidth(w)
	server := 0
	if w >= 80 {
		server = 14
	}
	mark := p.All.mark(e)
	if p.app.Reg.PinnedTool(e.Server, e.Name) != nil {
		mark = lk.Warn.On("!")
	}
	if p.app.Calls.Of(dialog.Item{Kind: registry.Tool, Server: e.Server, Name: e.Name, Listed: e.Listed, Ok: true}) != nil {
		mark = p.app.Spin.View()
	}
	line := mark + " " + p.All.cell(lk, e.Listed, name-1, base) + " "
	if server > 0 {
		line += p.All.T.Mark(lk, lk.Fit(dialog.Clean(e.Server), server-1), cmpStyle(base, lk.Dim)) + " "
	}
	line += lk.Warn.On(p.All.text(e, letters)) + " "
	return line + p.All.cell(lk, firstLine(e.Description, e.Title), max(w-name-server-7, 0), cmpStyle(base, lk.Dim)) + base.On(right)
}

// firstLine is the first text that there is, up to its first line break.
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

func (p *Tools) Subject() subject {
	e, ok := p.All.T.Selected()
	if !ok {
		return subject{}
	}
	it := p.Item()
	inv := dialog.Kept(p.app.Reg, it)
	state, _ := p.app.Reg.State(e.Server)
	var pinned []registry.PinnedTool
	if row := p.app.Reg.PinnedTool(e.Server, e.Name); row != nil {
		pinned = []registry.PinnedTool{*row}
	}
	return subject{
		key: "tool " + e.Listed, title: e.Listed, running: p.app.Calls.Of(it),
		version: fmt.Sprintf("%p %s %s %s", e, versionOf(inv), state.State, pinnedVersion(pinned)),
		Blocks: func(context.Context) []content.Block {
			f := facts(e)
			if l := strings.TrimSpace(letters(e)); l != "" {
				f = append(f, content.Fact{Label: "says it is", Value: spelled(e)})
			}
			blocks := []content.Block{{Kind: content.Facts, Facts: f}}
			blocks = append(blocks, pinnedBlocks(pinned)...)
			if args := argumentFacts(e); len(args) > 0 {
				blocks = append(blocks, content.Block{Title: "Arguments", Kind: content.Facts, Facts: args})
			}
			if inv != nil {
				blocks = append(blocks, calledWith(inv)...)
			}
			blocks = append(blocks, keptBlocks(inv, func(b []byte) []content.Block { return content.FromTool(b) }, "c calls it.")...)
			return append(blocks, rawBlocks(e)...)
		},
	}
}

// argumentFacts tell the arguments of a tool.
func argumentFacts(e *registry.Entry) []content.Fact {
	var def struct {
		InputSchema json.RawMessage `json:"inputSchema"`
	}
	_ = json.Unmarshal(e.JSON, &def) // without a schema there is nothing to tell
	fields, err := form.FromSchema(def.InputSchema)
	if err != nil {
		return nil
	}
	var all []content.Fact
	for _, f := range fields {
		text := f.Kind.String()
		if f.Required {
			text = "required, " + text
		}
		if about := firstLine(f.Description, f.Title); about != "" {
			text += ": " + about
		}
		all = append(all, content.Fact{Label: f.Name, Value: text})
	}
	return all
}

// spelled are a tool's annotations in words.
func spelled(e *registry.Entry) string {
	h := dialog.ToolHints(e)
	var words []string
	for _, w := range []struct {
		on   *bool
		word string
	}{{h.ReadOnly, "read-only"}, {h.Destructive, "destructive"}, {h.Idempotent, "idempotent"}, {h.OpenWorld, "open world"}} {
		if w.on != nil && *w.on {
			words = append(words, w.word)
		}
	}
	return strings.Join(words, ", ")
}

// calledWith shows the arguments of an invocation.
func calledWith(inv *registry.Invocation) []content.Block {
	if len(inv.Params) == 0 && len(inv.Meta) == 0 {
		return nil
	}
	blocks := []content.Block{{Title: "Last arguments", Kind: content.JSON, Data: inv.Params}}
	if len(inv.Meta) > 0 {
		blocks = append(blocks, content.Block{Title: "_meta", Kind: content.JSON, Data: inv.Meta})
	}
	return append(blocks, content.Block{Title: "Result", Kind: content.Note})
}

func (p *Tools) Acts() map[string]keys.Act {
	acts := p.offered.acts()
	acts["open"] = keys.Act{Why: p.none, Run: func() tea.Cmd { return p.app.openDetail(true) }}
	acts["call"] = keys.Act{Why: p.none, Run: func() tea.Cmd { return p.app.CallTool(p.current()) }}
	acts["approve"] = keys.Act{Why: p.whyNotApprove, Run: func() tea.Cmd {
		it := p.Item()
		return p.app.approve(it.Server, []registry.PinnedTool{*p.app.Reg.PinnedTool(it.Server, it.Name)})
	}}
	return acts
}

func (p *Tools) whyNotApprove() string {
	if it := p.Item(); p.app.Reg.PinnedTool(it.Server, it.Name) == nil {
		return "only tools that are new or changed await approval; ! marks them"
	}
	return ""
}

// emptyList is what stands in a list of the catalog that has no rows.
func (a *Desk) emptyList(what string) []string {
	switch {
	case len(a.Reg.States()) == 0:
		return []string{"No servers. :setup shows how to add some."}
	case a.starting():
		return []string{"Servers are starting; their " + what + " come here."}
	}
	return []string{"No server offers " + what + ".", "", "1 shows the servers."}
}
