package tui

import (
	"goblin/tui/list"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry"
	"goblin/tui/keys"
	"goblin/tui/look"
)

// offered is what the panes of tools and prompts have in common: one list of
// things that are called.
type offered struct {
	app     *app
	all     *catalog
	place   keys.Place
	index   int // among the panes
	name    string
	noun    string
	follow  registry.Changes
	untried string // what is said of one that nothing is kept of
	draw    func(e *registry.Entry, w int) string
}

func (p *offered) in() keys.Place                   { return p.place }
func (p *offered) tab() (name, count string)        { return p.name, p.all.count(p.app.open == p.index) }
func (p *offered) follows() registry.Changes        { return p.follow | registry.Servers }
func (p *offered) refresh(registry.Changes) tea.Cmd { return p.all.refresh() }
func (p *offered) heading() (title, right string)   { return p.all.heading(p.name) }
func (p *offered) rows() list.Rows                  { return p.all.t }
func (p *offered) click(y int) bool                 { return p.all.t.Click(y) }
func (p *offered) wheel(_, by int)                  { p.all.t.Scroll(by) }
func (p *offered) item() item                       { return p.all.item() }
func (p *offered) empty() []string                  { return p.app.emptyList(p.noun + "s") }

func (p *offered) lines(lk *look.Look, w, h int, focused bool) []string {
	return p.all.t.Lines(lk, w, h, focused, p.draw)
}

func (p *offered) acts() map[string]keys.Act {
	return map[string]keys.Act{
		"open": {Why: p.none}, "call": {Why: p.none}, "copy": {Why: p.none}, "copy-content": {Why: p.none}, "clear": {Why: p.none},
		"subscribe": {Why: keys.Never("only resources can be subscribed to")},
		"reload":    {Why: p.whyNotAgain, Run: func() tea.Cmd { return p.app.callAgain(p.current()) }},
	}
}

// current is the entry under the cursor, nil for none.
func (p *offered) current() *registry.Entry {
	e, _ := p.all.t.Selected()
	return e
}

func (p *offered) none() string {
	if p.current() == nil {
		return "there is no " + p.noun + " here"
	}
	return ""
}

func (p *offered) whyNotAgain() string {
	if it := p.item(); it.ok && kept(p.app.reg, it) == nil {
		return it.listed + " " + p.untried
	}
	return p.none()
}
