package pane

import (
	"cmp"
	"strconv"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry"
	"goblin/tui/compare"
	"goblin/tui/dialog"
	"goblin/tui/keys"
	"goblin/tui/uicontext"
)

// recordKey identifies a record in comparisons. Equal notifications share one.
func recordKey(r *registry.TrafficRecord) string {
	return "record " + strconv.FormatUint(cmp.Or(r.First, r.Seq), 10)
}

// IsMarked reports whether a record of Traffic is marked for a comparison.
func (a *Layout) IsMarked(r *registry.TrafficRecord) bool {
	return r.Seq != 0 && a.compare.IsMarked(recordKey(r))
}

// WhyNotCompare explains why a record cannot be compared, or returns "".
func (a *Layout) WhyNotCompare(r *registry.TrafficRecord) string {
	switch {
	case r.Status == registry.StatusInFlight || r.Seq == 0:
		return "the request is running; wait for its answer"
	case isNotification(r):
		return "only requests can be compared"
	}
	return ""
}

// Compare marks a record of Traffic, removes its mark, or compares it with the marked
// call.
func (a *Layout) Compare(r *registry.TrafficRecord) tea.Cmd {
	if why := a.WhyNotCompare(r); why != "" {
		return a.Complain("%s", why)
	}
	seq, reg := r.Seq, a.Reg
	full, ok := reg.Traffic().Record(seq)
	switch {
	case !ok:
		return a.Complain("the request was evicted by newer traffic")
	case full.RequestSize > 0 && len(full.Request) == 0 || full.ResponseSize > 0 && len(full.Response) == 0:
		return a.Complain("its params or answer were evicted by newer traffic")
	}
	args, _ := callArguments(&full)
	return a.compare.Toggle(compare.NewCall(compare.Call{
		Key: recordKey(&full), Record: full, Item: a.Logs().itemOf(&full), Args: args, Facts: compare.Facts(&full, a.Logs().clientText(&full)),
		IsGone: func() bool { _, ok := reg.Traffic().Record(seq); return !ok },
	}), "compare")
}

// ComparePast returns the comparison of past calls.
func (a *Layout) ComparePast() dialog.CompareCalls {
	return dialog.CompareCalls{
		Toggle: func(it uicontext.Item, inv *registry.Invocation) tea.Cmd {
			if inv.Cancelled {
				return a.Complain("a cancelled call has no result")
			}
			return a.compare.Toggle(compare.NewInvocation(it, inv), "past.compare")
		},
		IsMarked: func(inv *registry.Invocation) bool { return a.compare.IsMarked(compare.InvocationKey(inv)) },
	}
}

func (p *Logs) compareHandler() keys.Handler {
	return keys.Handler{
		WhyDisabled: func() string {
			r, ok := p.Traffic.Table.Selected()
			if !p.IsTraffic() || !ok {
				return "only requests in Traffic and Time line can be compared"
			}
			return p.app.WhyNotCompare(&r.TrafficRecord)
		},
		Run: func() tea.Cmd {
			r, _ := p.Traffic.Table.Selected()
			return p.app.Compare(&r.TrafficRecord)
		},
	}
}

// compareHandler compares definitions.
func (p *callablePane) compareHandler() keys.Handler {
	return keys.Handler{WhyDisabled: p.none, Run: func() tea.Cmd {
		return p.app.compare.Toggle(compare.NewDefinition(p.current()), "compare-definition")
	}}
}
