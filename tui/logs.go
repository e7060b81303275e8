package tui

import (
	"github.com/charmbracelet/bubbletea"

	"goblin/registry"
	"goblin/tui/filter"
	"goblin/tui/look"
)

// logs is the pane of what happens.
type logs struct {
	app    *app
	paused bool
	t      *table[registry.LogRecord]
}

func newLogs(a *app) *logs {
	return &logs{app: a, t: newTable(a.ctx, a.now,
		func(r registry.LogRecord) string { return r.Text },
		func(r registry.LogRecord) string { return r.Text },
		func([]registry.LogRecord) []filter.Field { return nil })}
}

func (a *app) logs() *logs { return a.panes[paneLogs].(*logs) }

func (p *logs) in() place                        { return inLogs }
func (p *logs) tab() (name, count string)        { return "Logs", "" }
func (p *logs) follows() registry.Changes        { return registry.Logs | registry.Traffic }
func (p *logs) refresh(registry.Changes) tea.Cmd { return nil }
func (p *logs) heading() (title, right string)   { return "Logs", "" }
func (p *logs) lines(lk *look.Look, w, h int, focused bool) []string {
	return p.t.lines(lk, w, h, focused, func(r registry.LogRecord, w int) string { return clean(r.Text) })
}
func (p *logs) rows() rows                { return p.t }
func (p *logs) click(y int) bool          { return p.t.click(y) }
func (p *logs) wheel(_, by int)           { p.t.scroll(by) }
func (p *logs) subject() subject          { return subject{} }
func (p *logs) do(string) (tea.Cmd, bool) { return nil, false }
func (p *logs) why(string) string         { return "" }
func (p *logs) empty() []string           { return nil }
func (p *logs) item() item                { return blankItem }

// inspect shows the requests about an item.
func (a *app) inspect(it item) tea.Cmd { return nil }

// related draws the latest requests about an item.
func (a *app) related(it item, r rect, border int) []string { return a.look.Lines(nil, r.w, r.h) }
