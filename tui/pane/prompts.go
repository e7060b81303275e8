package pane

import (
	"context"
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

// Prompts is the pane of prompts.
type Prompts struct{ offered }

func newPrompts(a *Desk) *Prompts {
	p := &Prompts{offered{app: a, All: newCatalog(a, registry.Prompt), place: keys.InPrompts, index: PanePrompts, name: "Prompts", noun: "prompt", follow: registry.Prompts, untried: "was not fetched yet; Enter gets it"}}
	p.draw = p.row
	return p
}

// signature lists a prompt's arguments, required ones with a star.
func signature(e *registry.Entry) string {
	var names []string
	for _, a := range form.FromPrompt(e.JSON) {
		if a.Required {
			a.Name += "*"
		}
		names = append(names, a.Name)
	}
	return strings.Join(names, " ")
}

func (p *Prompts) row(e *registry.Entry, w int) string {
	lk := p.app.Look
	base, right := look.Style(""), p.All.stale(e.Server)
	if right != "" {
		base = lk.Stale
	}
	w -= look.Width(right)
	name := p.All.nameWidth(w)
	args := min(max(w/5, 12), 30)
	mark := p.All.mark(e)
	if p.app.Calls.Of(dialog.Item{Kind: registry.Prompt, Server: e.Server, Name: e.Name, Listed: e.Listed, Ok: true}) != nil {
		mark = p.app.Spin.View()
	}
	return mark + " " + p.All.cell(lk, e.Listed, name-1, base) + " " +
		lk.Fit(dialog.Clean(p.All.text(e, signature)), args-1) + " " +
		p.All.cell(lk, firstLine(e.Description, e.Title), max(w-name-args-2, 0), cmpStyle(base, lk.Dim)) + base.On(right)
}

func (p *Prompts) Subject() subject {
	e, ok := p.All.T.Selected()
	if !ok {
		return subject{}
	}
	it := p.Item()
	inv := dialog.Kept(p.app.Reg, it)
	state, _ := p.app.Reg.State(e.Server)
	return subject{
		key: "prompt " + e.Listed, title: e.Listed, running: p.app.Calls.Of(it),
		version: fmt.Sprintf("%p %s %s", e, versionOf(inv), state.State),
		Blocks: func(context.Context) []content.Block {
			blocks := []content.Block{{Kind: content.Facts, Facts: facts(e)}}
			var f []content.Fact
			for _, arg := range form.FromPrompt(e.JSON) {
				text := firstLine(arg.Description, arg.Title)
				if arg.Required {
					text = strings.TrimSpace("required  " + text)
				}
				f = append(f, content.Fact{Label: arg.Name, Value: text})
			}
			if len(f) > 0 {
				blocks = append(blocks, content.Block{Title: "Arguments", Kind: content.Facts, Facts: f})
			}
			if inv != nil {
				blocks = append(blocks, calledWith(inv)...)
			}
			blocks = append(blocks, keptBlocks(inv, func(b []byte) []content.Block { return content.FromPrompt(b) }, "Enter gets its messages.")...)
			return append(blocks, rawBlocks(e)...)
		},
	}
}

func (p *Prompts) Acts() map[string]keys.Act {
	acts := p.offered.acts()
	get := keys.Act{Why: p.none, Run: func() tea.Cmd {
		p.app.Opened = true
		return p.app.GetPrompt(p.current())
	}}
	acts["open"], acts["call"] = get, get
	return acts
}
