package pane

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry"
	"goblin/registry/export"
	"goblin/registry/termtext"
	"goblin/tui/keys"
	"goblin/tui/uicontext"
)

// ExportReason returns why a command's argument is no export, or "".
func (p *Logs) ExportReason(arg string) string {
	name, _, _ := strings.Cut(arg, " ")
	switch {
	case arg == "":
		return ""
	case !slices.Contains(export.Formats(), export.Format(name)):
		return "unknown format " + uicontext.SanitizeLine(name) + "; choose " + strings.Join(ExportFormats(), ", ")
	case len(p.Traffic.Table.Matches) == 0:
		return "no requests in Traffic match the filter"
	}
	return ""
}

// ExportFormats returns the names of the formats.
func ExportFormats() []string {
	var all []string
	for _, f := range export.Formats() {
		all = append(all, string(f))
	}
	return all
}

// Export saves the requests that Traffic shows, in the order of their start. arg is a
// format and optionally a path on the terminal's machine.
func (p *Logs) Export(arg string) tea.Cmd {
	name, path, _ := strings.Cut(arg, " ")
	format, a := export.Format(name), p.app
	if path = strings.TrimSpace(path); path == "" {
		path = "traffic-" + a.Now().Format("20060102-150405") + format.Extension()
	}
	rows := make([]*trafficRow, 0, len(p.Traffic.Table.Matches))
	for _, i := range p.Traffic.Table.Matches {
		rows = append(rows, p.Traffic.Table.Rows[i])
	}
	slices.SortStableFunc(rows, byStart)
	before := export.Origin(a.Reg, a.Now())
	journal, ctx, term := a.Reg.Traffic(), a.Ctx, a.Term
	get := func(i int) (registry.TrafficRecord, bool) {
		if rows[i].Seq == 0 { // in flight
			return rows[i].TrafficRecord, true
		}
		return journal.Record(rows[i].Seq)
	}
	a.Say("Exporting %s …", termtext.Count(len(rows), "row"))
	return func() tea.Msg {
		var out bytes.Buffer
		open := func() (export.Source, error) { return export.NewRecords(before, len(rows), get), nil }
		sum, err := export.Write(ctx, &out, format, open, export.Options{URL: a.Endpoint.URL})
		where := ""
		if err == nil {
			where, err = term.Save(ctx, path, out.Bytes())
		}
		return keys.FuncMsg(func() tea.Cmd {
			switch {
			case errors.Is(err, ctx.Err()) && err != nil:
				return nil
			case err != nil:
				return a.Complain("export: %v", err)
			case sum.Note != "":
				return a.Complain("Exported to %s; %s", where, sum.Note)
			}
			return a.Say("Exported %s to %s", termtext.Count(sum.Requests+sum.Notifications, "row"), where)
		})
	}
}
