package pane

import (
	"slices"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry"
	"goblin/tui/dialog"
	"goblin/tui/uicontext"
)

// ExportReason returns why a command's argument is no export, or "".
func (p *Logs) ExportReason(arg string) string {
	name, _, _ := strings.Cut(arg, " ")
	switch {
	case arg == "":
		return ""
	case !slices.Contains(dialog.ExportFormats(), name):
		return "unknown format " + uicontext.SanitizeLine(name) + "; choose " + strings.Join(dialog.ExportFormats(), ", ")
	case len(p.Traffic.Table.Matches) == 0:
		return "no requests in Traffic match the filter"
	}
	return ""
}

// Export saves the requests that Traffic shows, in the order of their start.
func (p *Logs) Export(arg string) tea.Cmd {
	t, journal := p.Traffic.Table, p.app.Reg.Traffic()
	rows := make([]*trafficRow, 0, len(t.Matches))
	for _, i := range t.Matches {
		rows = append(rows, t.Rows[i])
	}
	slices.SortStableFunc(rows, byStart)
	return dialog.Export(p.app.Context, arg, len(rows), func(i int) (registry.TrafficRecord, bool) {
		if rows[i].Seq == 0 { // in flight
			return rows[i].TrafficRecord, true
		}
		return journal.Record(rows[i].Seq)
	})
}
