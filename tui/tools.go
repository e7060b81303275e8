package tui

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry"
	"goblin/tui/content"
	"goblin/tui/form"
	"goblin/tui/keys"
	"goblin/tui/look"
)

// tools is the pane of tools.
type tools struct {
	offered
	awaiting int // approval
}

func newTools(a *app) *tools {
	p := &tools{offered: offered{app: a, all: newCatalog(a, registry.Tool), place: keys.InTools, index: paneTools, name: "Tools", noun: "tool", follow: registry.Tools | registry.Pins, untried: "was not called yet; c calls it"}}
	p.draw = p.row
	return p
}

func (p *tools) tab() (name, count string) {
	name, count = p.offered.tab()
	if p.awaiting > 0 {
		count += " " + p.app.look.Failed + grouped(p.awaiting)
	}
	return name, count
}

func (p *tools) refresh(what registry.Changes) tea.Cmd {
	p.awaiting = len(p.app.reg.Pinned(""))
	return p.offered.refresh(what)
}

func (p *tools) heading() (title, right string) {
	title, right = p.all.heading("Tools")
	if right == "" {
		right = p.app.look.Dim.On("R reads D destroys I idempotent W open world")
	}
	return title, right
}

// hints are what a tool says of itself; absent ones are unknown.
type hints struct {
	ReadOnly    *bool `json:"readOnlyHint"`
	Destructive *bool `json:"destructiveHint"`
	Idempotent  *bool `json:"idempotentHint"`
	OpenWorld   *bool `json:"openWorldHint"`
}

func toolHints(e *registry.Entry) hints {
	var d struct {
		Annotations hints `json:"annotations"`
	}
	_ = json.Unmarshal(e.JSON, &d) // an odd annotation costs the letters only
	return d.Annotations
}

// letters are a tool's annotations: R read-only, D destructive, I idempotent,
// W open world. What is not said is not shown.
func letters(e *registry.Entry) string {
	h := toolHints(e)
	out := []byte("    ")
	for i, on := range []*bool{h.ReadOnly, h.Destructive, h.Idempotent, h.OpenWorld} {
		if on != nil && *on {
			out[i] = "RDIW"[i]
		}
	}
	return string(out)
}

// destroys says whether a tool says that it may destroy something. One that
// says nothing does not count, though the protocol would have it so: nearly
// all do, and a form was filled in for it already.
func destroys(e *registry.Entry) bool {
	h := toolHints(e)
	return h.Destructive != nil && *h.Destructive && (h.ReadOnly == nil || !*h.ReadOnly)
}

// repeatable says whether a tool says that calling it again does no harm.
func repeatable(e *registry.Entry) bool {
	h := toolHints(e)
	if h.ReadOnly != nil && *h.ReadOnly {
		return true
	}
	return !destroys(e) && h.Idempotent != nil && *h.Idempotent
}

func (p *tools) row(e *registry.Entry, w int) string {
	lk := p.app.look
	base, right := look.Style(""), p.all.stale(e.Server)
	if right != "" {
		base = lk.Stale
	}
	w -= look.Width(right)
	name := p.all.nameWidth(w)
	server := 0
	if w >= 80 {
		server = 14
	}
	mark := p.all.mark(e)
	if p.app.reg.PinnedTool(e.Server, e.Name) != nil {
		mark = lk.Warn.On("!")
	}
	if p.app.calls.of(item{registry.Tool, e.Server, e.Name, e.Listed, true}) != nil {
		mark = p.app.spin.View()
	}
	line := mark + " " + p.all.cell(lk, e.Listed, name-1, base) + " "
	if server > 0 {
		line += p.all.t.Mark(lk, lk.Fit(clean(e.Server), server-1), cmpStyle(base, lk.Dim)) + " "
	}
	line += lk.Warn.On(p.all.text(e, letters)) + " "
	return line + p.all.cell(lk, firstLine(e.Description, e.Title), max(w-name-server-7, 0), cmpStyle(base, lk.Dim)) + base.On(right)
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

func (p *tools) subject() subject {
	e, ok := p.all.t.Selected()
	if !ok {
		return subject{}
	}
	it := p.item()
	inv := kept(p.app.reg, it)
	state, _ := p.app.reg.State(e.Server)
	var pinned []registry.PinnedTool
	if row := p.app.reg.PinnedTool(e.Server, e.Name); row != nil {
		pinned = []registry.PinnedTool{*row}
	}
	return subject{
		key: "tool " + e.Listed, title: e.Listed, running: p.app.calls.of(it),
		version: fmt.Sprintf("%p %s %s %s", e, versionOf(inv), state.State, pinnedVersion(pinned)),
		blocks: func(context.Context) []content.Block {
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
	h := toolHints(e)
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

func (p *tools) acts() map[string]keys.Act {
	acts := p.offered.acts()
	acts["open"] = keys.Act{Why: p.none, Run: func() tea.Cmd { return p.app.openDetail(true) }}
	acts["call"] = keys.Act{Why: p.none, Run: func() tea.Cmd { return p.app.callTool(p.current()) }}
	acts["approve"] = keys.Act{Why: p.whyNotApprove, Run: func() tea.Cmd {
		it := p.item()
		return p.app.approve(it.server, []registry.PinnedTool{*p.app.reg.PinnedTool(it.server, it.name)})
	}}
	return acts
}

func (p *tools) whyNotApprove() string {
	if it := p.item(); p.app.reg.PinnedTool(it.server, it.name) == nil {
		return "only tools that are new or changed await approval; ! marks them"
	}
	return ""
}

// emptyList is what stands in a list of the catalog that has no rows.
func (a *app) emptyList(what string) []string {
	switch {
	case len(a.reg.States()) == 0:
		return []string{"No servers. :setup shows how to add some."}
	case a.head.starting > 0:
		return []string{"Servers are starting; their " + what + " come here."}
	}
	return []string{"No server offers " + what + ".", "", "1 shows the servers."}
}
