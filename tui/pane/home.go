package pane

import (
	"slices"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry"
)

// ShowServer shows a server with its detail.
func (a *Layout) ShowServer(name string) tea.Cmd {
	cmd := a.GoTo(PaneServers, name)
	a.Opened = true
	return cmd
}

// ShowRequest shows a request in Traffic, also one in flight.
func (a *Layout) ShowRequest(r *registry.TrafficRecord) tea.Cmd {
	cmd := a.ShowTraffic("")
	t, at := a.Logs().Traffic, requestKeyOf(r)
	rows := slices.Concat(t.Held, t.extra)
	if i := indexOfRequest(rows, at); i >= 0 {
		t.Table.Following = false
		t.Table.Find(rows[i].key)
	}
	return cmd
}

// ShowOwnLog shows Goblin's own log.
func (a *Layout) ShowOwnLog() tea.Cmd { return a.showLogs(TabGoblin, "") }

// Running returns the requests in flight, as last read.
func (p *Logs) Running() []registry.InFlight {
	all := make([]registry.InFlight, len(p.inFlight.rows))
	for i, r := range p.inFlight.rows {
		all[i] = registry.InFlight{TrafficRecord: r.TrafficRecord, ID: r.inFlightID}
	}
	return all
}

// CancelRunning cancels a request in flight. It asks first if it belongs to a client.
func (p *Logs) CancelRunning(r *registry.InFlight) tea.Cmd {
	return p.cancel([]*trafficRow{{TrafficRecord: r.TrafficRecord, inFlightID: r.ID}})
}
