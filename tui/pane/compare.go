package pane

import (
	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry"
	"goblin/tui/compare"
	"goblin/tui/dialog"
	"goblin/tui/keys"
)

// IsMarked reports whether a record of Traffic is marked for a comparison.
func (a *Layout) IsMarked(r *registry.TrafficRecord) bool {
	return a.compare.IsMarked(compare.RecordKey(r))
}

// ComparePast returns the comparison of past calls.
func (a *Layout) ComparePast() dialog.CompareCalls {
	return dialog.CompareCalls{
		Toggle:   a.compare.ToggleInvocation,
		IsMarked: func(inv *registry.Invocation) bool { return a.compare.IsMarked(compare.InvocationKey(inv)) },
	}
}

// compareHandler compares requests of Traffic and Time line.
func (p *Logs) compareHandler() keys.Handler {
	return keys.Handler{
		WhyDisabled: func() string {
			r, ok := p.Traffic.Table.Selected()
			if !p.IsTraffic() || !ok {
				return "only requests in Traffic and Time line can be compared"
			}
			return compare.WhyNot(&r.TrafficRecord)
		},
		Run: func() tea.Cmd {
			r, _ := p.Traffic.Table.Selected()
			return p.app.compare.ToggleRecord(&r.TrafficRecord, p.itemOf(&r.TrafficRecord), r.client)
		},
	}
}

// compareHandler compares definitions.
func (p *callablePane) compareHandler() keys.Handler {
	return keys.Handler{WhyDisabled: p.none, Run: func() tea.Cmd {
		return p.app.compare.Toggle(compare.NewDefinition(p.current()), "compare-definition")
	}}
}
