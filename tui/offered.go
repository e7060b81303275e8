package tui

import (
	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry"
	"goblin/tui/look"
)

// offered is what the panes of tools and prompts have in common: one list of
// things that are called.
type offered struct {
	app     *app
	all     *catalog
	place   place
	index   int // among the panes
	name    string
	noun    string
	follow  registry.Changes
	untried string // what is said of one that nothing is kept of
	draw    func(e *registry.Entry, w int) string
}

func (p *offered) in() place                        { return p.place }
func (p *offered) tab() (name, count string)        { return p.name, p.all.count(p.app.open == p.index) }
func (p *offered) follows() registry.Changes        { return p.follow | registry.Servers }
func (p *offered) refresh(registry.Changes) tea.Cmd { return p.all.refresh() }
func (p *offered) heading() (title, right string)   { return p.all.heading(p.name) }
func (p *offered) rows() rows                       { return p.all.t }
func (p *offered) click(y int) bool                 { return p.all.t.click(y) }
func (p *offered) wheel(_, by int)                  { p.all.t.scroll(by) }
func (p *offered) item() item                       { return p.all.item() }
func (p *offered) empty() []string                  { return p.app.emptyList(p.noun + "s") }

func (p *offered) lines(lk *look.Look, w, h int, focused bool) []string {
	return p.all.t.lines(lk, w, h, focused, p.draw)
}

func (p *offered) why(id string) string {
	it := p.item()
	switch id {
	case "open", "call", "reload", "copy", "copy-content", "clear":
		if !it.ok {
			return "there is no " + p.noun + " here"
		}
	case "subscribe":
		return "only resources can be subscribed to"
	}
	if id == "reload" && kept(p.app.reg, it) == nil {
		return it.listed + " " + p.untried
	}
	return ""
}

func (p *offered) do(id string) (tea.Cmd, bool) {
	if id != "reload" {
		return nil, false
	}
	e, _ := p.all.t.selected()
	return p.app.callAgain(e), true
}
