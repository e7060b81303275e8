package pane

import (
	"strconv"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry"
	"goblin/registry/report"
	"goblin/tui/keys"
	"goblin/tui/theme"
	"goblin/tui/viewer"
)

const stderrLines = 20

type finding struct {
	running bool
	ready   bool // the server was ready when it began
	report  report.Diagnosis
	err     error
	changes int
}

// Diagnose shows the diagnosis of a server.
func (p *Servers) Diagnose(s registry.ServerState) tea.Cmd {
	return tea.Batch(p.app.GoTo(PaneServers, s.Name), p.app.openDetail(true), p.diagnose(s))
}

func (p *Servers) diagnose(s registry.ServerState) tea.Cmd {
	a, f := p.app, p.findings[s.Name]
	if f == nil {
		f = &finding{}
		p.findings[s.Name] = f
	}
	if f.running {
		return nil
	}
	f.running, f.ready = true, s.State == registry.StateReady
	f.changes++
	a.Logins++
	return func() tea.Msg {
		report, err := a.Backend.Diagnose(a.Ctx, s.Name)
		return keys.FuncMsg(func() tea.Cmd {
			a.Logins--
			f.running, f.report, f.err = false, report, err
			f.changes++
			return nil
		})
	}
}

func (f *finding) version() string {
	if f == nil {
		return ""
	}
	return strconv.Itoa(f.changes) + " "
}

// blocks shows the diagnosis unless the server's readiness has changed since.
func (f *finding) blocks(lk *theme.Theme, s registry.ServerState) []viewer.Section {
	const title = "Diagnosis"
	switch {
	case f == nil, f.ready != (s.State == registry.StateReady):
		return nil
	case f.running:
		return []viewer.Section{{Title: title, Kind: viewer.Note, Text: "Checking: starting the server or connecting again …"}}
	case f.err != nil:
		return []viewer.Section{{Title: title, Kind: viewer.Error, Text: f.err.Error()}}
	}
	styles := map[report.State]theme.Style{report.Broken: lk.Bad, report.Warning: lk.Warn}
	var facts []viewer.Field
	for _, c := range f.report.Checks {
		facts = append(facts, viewer.Field{Label: c.Name, Value: string(c.State) + ": " + c.Text, Style: styles[c.State]})
		for i, line := range c.Lines[:min(len(c.Lines), stderrLines)] {
			label := ""
			if i == 0 {
				label = "stderr"
			}
			facts = append(facts, viewer.Field{Label: label, Value: line, Style: lk.Dim})
		}
		if c.Fix != "" {
			facts = append(facts, viewer.Field{Label: "fix", Value: c.Fix})
		}
	}
	return []viewer.Section{{Title: title, Kind: viewer.Fields, Fields: facts}}
}
