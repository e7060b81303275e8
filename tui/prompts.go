package tui

import (
	"context"
	"fmt"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry"
	"goblin/tui/content"
	"goblin/tui/form"
	"goblin/tui/keys"
	"goblin/tui/look"
)

// prompts is the pane of prompts.
type prompts struct{ offered }

func newPrompts(a *app) *prompts {
	p := &prompts{offered{app: a, all: newCatalog(a, registry.Prompt), place: keys.InPrompts, index: panePrompts, name: "Prompts", noun: "prompt", follow: registry.Prompts, untried: "was not fetched yet; Enter gets it"}}
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

func (p *prompts) row(e *registry.Entry, w int) string {
	lk := p.app.look
	base, right := look.Style(""), p.all.stale(e.Server)
	if right != "" {
		base = lk.Stale
	}
	w -= look.Width(right)
	name := p.all.nameWidth(w)
	args := min(max(w/5, 12), 30)
	mark := p.all.mark(e)
	if p.app.calls.of(item{registry.Prompt, e.Server, e.Name, e.Listed, true}) != nil {
		mark = p.app.spin.View()
	}
	return mark + " " + p.all.cell(lk, e.Listed, name-1, base) + " " +
		lk.Fit(clean(p.all.text(e, signature)), args-1) + " " +
		p.all.cell(lk, firstLine(e.Description, e.Title), max(w-name-args-2, 0), cmpStyle(base, lk.Dim)) + base.On(right)
}

func (p *prompts) subject() subject {
	e, ok := p.all.t.Selected()
	if !ok {
		return subject{}
	}
	it := p.item()
	inv := kept(p.app.reg, it)
	state, _ := p.app.reg.State(e.Server)
	return subject{
		key: "prompt " + e.Listed, title: e.Listed, running: p.app.calls.of(it),
		version: fmt.Sprintf("%p %s %s", e, versionOf(inv), state.State),
		blocks: func(context.Context) []content.Block {
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

func (p *prompts) acts() map[string]keys.Act {
	acts := p.offered.acts()
	get := keys.Act{Why: p.none, Run: func() tea.Cmd {
		p.app.opened = true
		return p.app.getPrompt(p.current())
	}}
	acts["open"], acts["call"] = get, get
	return acts
}
