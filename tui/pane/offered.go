package pane

import (
	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry"
	"goblin/tui/dialog"
	"goblin/tui/keys"
	"goblin/tui/list"
	"goblin/tui/look"
)

// offered is what the panes of tools and prompts have in common: one list of
// things that are called.
type offered struct {
	app     *Desk
	All     *catalog
	place   keys.Place
	index   int // among the panes
	name    string
	noun    string
	follow  registry.Changes
	untried string // what is said of one that nothing is kept of
	draw    func(e *registry.Entry, w int) string
}

func (p *offered) In() keys.Place                   { return p.place }
func (p *offered) Tab() (name, count string)        { return p.name, p.All.count(p.app.Open == p.index) }
func (p *offered) Follows() registry.Changes        { return p.follow | registry.Servers }
func (p *offered) Refresh(registry.Changes) tea.Cmd { return p.All.Refresh() }
func (p *offered) Heading() (title, right string)   { return p.All.heading(p.name) }
func (p *offered) Rows() list.Rows                  { return p.All.T }
func (p *offered) Click(y int) bool                 { return p.All.T.Click(y) }
func (p *offered) Wheel(_, by int)                  { p.All.T.Scroll(by) }
func (p *offered) Item() dialog.Item                { return p.All.item() }
func (p *offered) Empty() []string                  { return p.app.emptyList(p.noun + "s") }

func (p *offered) Lines(lk *look.Look, w, h int, focused bool) []string {
	return p.All.T.Lines(lk, w, h, focused, p.draw)
}

func (p *offered) acts() map[string]keys.Act {
	return map[string]keys.Act{
		"open": {Why: p.none}, "call": {Why: p.none}, "copy": {Why: p.none}, "copy-content": {Why: p.none}, "clear": {Why: p.none},
		"subscribe": {Why: keys.Never("only resources can be subscribed to")},
		"reload":    {Why: p.whyNotAgain, Run: func() tea.Cmd { return p.app.CallAgain(p.current()) }},
	}
}

// current is the entry under the cursor, nil for none.
func (p *offered) current() *registry.Entry {
	e, _ := p.All.T.Selected()
	return e
}

func (p *offered) none() string {
	if p.current() == nil {
		return "there is no " + p.noun + " here"
	}
	return ""
}

func (p *offered) whyNotAgain() string {
	if it := p.Item(); it.Ok && dialog.Kept(p.app.Reg, it) == nil {
		return it.Listed + " " + p.untried
	}
	return p.none()
}
