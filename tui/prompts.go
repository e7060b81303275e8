package tui

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry"
	"goblin/tui/content"
	"goblin/tui/look"
)

// prompts is the pane of prompts.
type prompts struct {
	app *app
	all *catalog
}

func newPrompts(a *app) *prompts { return &prompts{a, newCatalog(a, registry.Prompt)} }

func (p *prompts) in() place { return inPrompts }
func (p *prompts) tab() (name, count string) {
	return "Prompts", p.all.count(p.app.open == panePrompts)
}
func (p *prompts) follows() registry.Changes        { return registry.Prompts | registry.Servers }
func (p *prompts) refresh(registry.Changes) tea.Cmd { return p.all.refresh() }
func (p *prompts) heading() (title, right string)   { return p.all.heading("Prompts") }
func (p *prompts) rows() rows                       { return p.all.t }
func (p *prompts) click(y int) bool                 { return p.all.t.click(y) }
func (p *prompts) wheel(_, by int)                  { p.all.t.scroll(by) }
func (p *prompts) item() item                       { return p.all.item() }
func (p *prompts) empty() []string                  { return p.app.emptyList("prompts") }

func (p *prompts) lines(lk *look.Look, w, h int, focused bool) []string {
	return p.all.t.lines(lk, w, h, focused, p.row)
}

// argument is one that a prompt takes.
type argument struct {
	Name        string `json:"name"`
	Title       string `json:"title"`
	Description string `json:"description"`
	Required    bool   `json:"required"`
}

func arguments(e *registry.Entry) []argument {
	var d struct {
		Arguments []json.RawMessage `json:"arguments"`
	}
	_ = json.Unmarshal(e.JSON, &d) // an odd definition costs the arguments only
	var all []argument
	for _, raw := range d.Arguments {
		var a argument
		if json.Unmarshal(raw, &a) == nil {
			all = append(all, a)
		}
	}
	return all
}

// signature lists a prompt's arguments, required ones with a star.
func signature(e *registry.Entry) string {
	var names []string
	for _, a := range arguments(e) {
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
	e, ok := p.all.t.selected()
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
			for _, arg := range arguments(e) {
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

func (p *prompts) why(id string) string {
	it := p.item()
	switch id {
	case "open", "call", "reload", "copy", "copy-content", "clear":
		if !it.ok {
			return "there is no prompt here"
		}
	case "subscribe":
		return "only resources can be subscribed to"
	}
	if id == "reload" && kept(p.app.reg, it) == nil {
		return it.listed + " was not fetched yet; Enter gets it"
	}
	return ""
}

func (p *prompts) do(id string) (tea.Cmd, bool) {
	switch id {
	case "open", "call":
		p.app.opened = true
		e, _ := p.all.t.selected()
		return p.app.getPrompt(e), true
	case "reload":
		e, _ := p.all.t.selected()
		return p.app.callAgain(e), true
	}
	return nil, false
}
