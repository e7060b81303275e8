package tui

import (
	"github.com/charmbracelet/bubbletea"

	"goblin/registry"
	"goblin/tui/filter"
	"goblin/tui/look"
)

// servers is the pane of servers.
type servers struct {
	app *app
	t   *table[registry.ServerState]
}

func newServers(a *app) *servers {
	return &servers{a, newTable(a.ctx, a.now,
		func(s registry.ServerState) string { return s.Name },
		func(s registry.ServerState) string { return s.Name },
		func([]registry.ServerState) []filter.Field { return nil })}
}

func (p *servers) in() place                 { return inServers }
func (p *servers) tab() (name, count string) { return "Servers", grouped(p.t.total()) }
func (p *servers) follows() registry.Changes { return registry.Servers }
func (p *servers) refresh(registry.Changes) tea.Cmd {
	return p.t.refresh(0, p.app.reg.States)
}
func (p *servers) heading() (title, right string) { return "Servers", "" }
func (p *servers) lines(lk *look.Look, w, h int, focused bool) []string {
	return p.t.lines(lk, w, h, focused, func(s registry.ServerState, w int) string { return clean(s.Name) })
}
func (p *servers) rows() rows                { return p.t }
func (p *servers) click(y int) bool          { return p.t.click(y) }
func (p *servers) wheel(_, by int)           { p.t.scroll(by) }
func (p *servers) subject() subject          { return subject{} }
func (p *servers) do(string) (tea.Cmd, bool) { return nil, false }
func (p *servers) why(string) string         { return "" }
func (p *servers) empty() []string           { return nil }
func (p *servers) item() item                { return blankItem }
