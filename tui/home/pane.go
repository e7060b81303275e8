// Package home is the start pane: alerts, servers, clients and the last calls.
//
// It also finds the next alert for the header and the key of alerts, while another pane is
// open. Traffic is read only while the pane is open. All methods must run on the UI's
// Update goroutine. All texts are untrusted.
package home

import (
	"slices"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry"
	"goblin/registry/keymap"
	"goblin/registry/recording"
	"goblin/registry/report"
	"goblin/tui/approve"
	"goblin/tui/breakpoints"
	"goblin/tui/dialog"
	"goblin/tui/keys"
	"goblin/tui/list"
	"goblin/tui/pane"
	"goblin/tui/timeline"
	"goblin/tui/uicontext"
)

// The lists, in the order of Tab.
const (
	alertList = iota
	serverList
	clientList
	callList
	lists
)

// table is a list of any type of rows.
type table interface {
	list.Rows
	drawer
}

// Pane is the start pane.
type Pane struct {
	app       *pane.Layout
	questions *dialog.QuestionPresenter
	rules     *breakpoints.Rules

	at      int // the list with the cursor; -1 until the user chooses
	alerts  *list.Table[alert]
	servers *list.Table[server]
	clients *list.Table[client]
	calls   *list.Table[*call]
	own     *list.Fold[*call]     // of Goblin's own tools
	places  [lists]uicontext.Rect // rows, as last drawn
	frames  [lists]uicontext.Rect // with titles

	states     []registry.ServerState
	unapproved []registry.UnapprovedTool
	recording  *report.Recording
	all        []alert
	shown      map[string]bool  // alerts that the user was shown
	opened     uicontext.Dialog // by the last alert

	usual    map[string]timeline.Usual // of long running calls
	slow     []slowCall
	measures bool // a command reads the usual durations

	next      uint64 // record to read
	last      []*call
	ofServer  map[string]counts
	ofSession map[string]counts
	screens   map[string]bool // sessions of UIs
	stale     bool            // counts differ from the lists
}

type counts struct{ calls, failed int }

// New returns the pane. questions are the requests from servers, rules the breakpoints.
func New(a *pane.Layout, questions *dialog.QuestionPresenter, rules *breakpoints.Rules) *Pane {
	p := &Pane{
		app: a, questions: questions, rules: rules, at: -1, shown: map[string]bool{},
		usual: map[string]timeline.Usual{}, ofServer: map[string]counts{}, ofSession: map[string]counts{},
	}
	p.createLists()
	return p
}

// Place returns the pane's place for keys.
func (p *Pane) Place() keymap.Place { return keymap.InHome }

// Tab returns the name. The header counts the alerts.
func (p *Pane) Tab() (name, count string) { return "Home", "" }

// Watches returns the changes that may be alerts.
func (p *Pane) Watches() registry.Changes {
	return registry.Servers | registry.Pins | registry.Tools | registry.Rules | registry.Sessions | registry.Traffic
}

// Refresh updates the alerts, and the lists while the pane is open.
func (p *Pane) Refresh(what registry.Changes) tea.Cmd {
	var cmds []tea.Cmd
	if what&registry.Servers != 0 {
		p.states = p.app.Reg.States()
	}
	if what&(registry.Servers|registry.Pins|registry.Tools) != 0 {
		p.unapproved = p.app.Reg.UnapprovedTools("")
	}
	if what&^registry.Traffic != 0 {
		cmds = append(cmds, p.findAlerts())
	}
	if p.app.Open != pane.PaneHome {
		return tea.Batch(cmds...)
	}
	if what&registry.Sessions != 0 {
		p.screens = map[string]bool{}
		for _, s := range p.app.Reg.Sessions() {
			p.screens[s.ID] = s.Screen
		}
	}
	if what&registry.Traffic != 0 {
		cmds = append(cmds, p.readTraffic())
	}
	if what&(registry.Servers|registry.Sessions|registry.Rules) != 0 {
		cmds = append(cmds, p.listServers(), p.listClients())
	}
	return tea.Batch(cmds...)
}

// Beat follows clocks, requests in flight and requests from servers, twice a second.
func (p *Pane) Beat() tea.Cmd {
	p.recording = p.app.Backend.Recording()
	cmds := []tea.Cmd{p.findSlow(), p.findAlerts()}
	if p.app.Open == pane.PaneHome {
		cmds = append(cmds, p.readTraffic())
		if p.stale {
			p.stale = false
			cmds = append(cmds, p.listServers(), p.listClients())
		}
	}
	return tea.Batch(cmds...)
}

// readSize limits how long the journal is locked, in records.
const readSize = 512

// readTraffic counts new calls and lists the last ones.
func (p *Pane) readTraffic() tea.Cmd {
	if j := p.app.Reg.Traffic(); j.Stats().Next > p.next {
		for {
			recs := j.Window(p.next, readSize)
			for i := range recs {
				p.next = recs[i].Seq + 1
				p.count(&recs[i])
			}
			if len(recs) < readSize {
				break
			}
		}
	}
	return p.listCalls()
}

func (p *Pane) count(r *registry.TrafficRecord) {
	if !isCall(r) {
		return
	}
	for of, key := range map[*map[string]counts]string{&p.ofServer: r.Server, &p.ofSession: r.Session} {
		c := (*of)[key]
		c.calls++
		if recording.IsFailure(r) {
			c.failed++
		}
		(*of)[key] = c
	}
	p.stale = true
	if r.Method == "resources/read" && p.screens[r.Session] { // a subscribed resource would fill the list
		p.last = slices.DeleteFunc(p.last, func(c *call) bool {
			return c.Method == r.Method && c.Session == r.Session && c.Name == r.Name
		})
	}
	p.last = append(p.last, &call{TrafficRecord: *r})
	if len(p.last) >= 2*maxCalls {
		p.last = slices.Clone(p.last[len(p.last)-maxCalls:])
	}
}

// isCall reports whether a request calls a tool, gets a prompt or reads a resource.
func isCall(r *registry.TrafficRecord) bool {
	return r.Direction == registry.ToServer && slices.Contains([]string{"tools/call", "prompts/get", "resources/read"}, r.Method)
}

// current returns the list with the cursor.
func (p *Pane) current() int {
	switch {
	case p.at >= 0:
		return p.at
	case len(p.all) > 0:
		return alertList
	}
	return serverList
}

func (p *Pane) tableOf(i int) table {
	return [lists]table{p.alerts, p.servers, p.clients, p.calls}[i]
}

// Part returns the list with the cursor and the number of lists.
func (p *Pane) Part() (at, of int) { return p.current(), lists }

// Choose moves the cursor to a list.
func (p *Pane) Choose(part int) { p.at = part }

// CursorMoved keeps the cursor in its list.
func (p *Pane) CursorMoved() { p.at = p.current() }

// Rows returns the list with the cursor.
func (p *Pane) Rows() list.Rows {
	return below{p.tableOf(p.current()), p.places[p.current()].Y - p.app.Geometry().Border}
}

// below counts the lines above a list.
type below struct {
	list.Rows
	above int
}

func (b below) Position() int { return b.Rows.Position() + b.above }

// CursorX returns the column of the cursor.
func (p *Pane) CursorX() int { return p.places[p.current()].X }

// Subject returns nothing: the pane has no detail.
func (p *Pane) Subject() pane.Subject { return pane.Subject{} }

// Item returns nothing: rows are no entries of the catalog.
func (p *Pane) Item() uicontext.Item { return uicontext.Item{} }

// Handlers returns the pane's actions.
func (p *Pane) Handlers() map[string]keys.Handler {
	a := p.app
	none := keys.DisabledUnless("no row selected", func() bool { return p.tableOf(p.current()).Len() > 0 })
	server := func() string {
		if s, ok := p.servers.Selected(); p.current() != serverList || !ok {
			return "select a server"
		} else if s.State == registry.StateDisabled {
			return uicontext.SanitizeLine(s.Name) + " is disabled"
		}
		return ""
	}
	opens := p.own.Opens(keys.Handler{Run: p.open, Label: func() string { return "go there" }})
	return map[string]keys.Handler{
		"open": {WhyDisabled: none, Run: func() tea.Cmd {
			if p.current() == callList {
				return opens.Run()
			}
			return p.open()
		}, Label: func() string {
			if p.current() == callList {
				return opens.Label()
			}
			return "go there"
		}},
		"approve": {WhyDisabled: keys.DisabledUnless("no changed tools", func() bool { return len(p.unapproved) > 0 }), Run: func() tea.Cmd { return approve.Open(a.Context, p.unapproved) }, Label: func() string { return "changed tools" }},
		"cancel":  {WhyDisabled: keys.DisabledUnless("no running call selected, and none is slow", func() bool { return p.cancellable() != nil }), Run: func() tea.Cmd { return a.Logs().CancelRunning(p.cancellable()) }},
		"editor":  {WhyDisabled: keys.DisabledUnless("the config is valid", func() bool { return len(a.Reg.Mistakes()) > 0 }), Run: func() tea.Cmd { return dialog.EditMistake(a.Context) }},
		"reload": {WhyDisabled: server, Label: func() string { return "restart" }, Run: func() tea.Cmd {
			s, _ := p.servers.Selected()
			return a.Panes[pane.PaneServers].(*pane.Servers).Restart(s.Name)
		}},
		"inspect": {WhyDisabled: none, Run: p.inspect},
		"copy": {WhyDisabled: none, Run: func() tea.Cmd {
			what, text := p.copied()
			return a.Copy(uicontext.SanitizeLine(text), what)
		}},
	}
}

// open goes to the row's place.
func (p *Pane) open() tea.Cmd {
	switch p.current() {
	case alertList:
		if al, ok := p.alerts.Selected(); ok {
			return p.lead(al.targets[0])
		}
	case serverList:
		if s, ok := p.servers.Selected(); ok {
			return p.app.ShowServer(s.Name)
		}
	case clientList:
		if c, ok := p.clients.Selected(); ok {
			return p.app.TrafficOf(c.ID)
		}
	case callList:
		if c, ok := p.calls.Selected(); ok {
			return p.app.ShowRequest(&c.TrafficRecord)
		}
	}
	return nil
}

// inspect shows the requests about the row, or the item of a call.
func (p *Pane) inspect() tea.Cmd {
	switch p.current() {
	case serverList:
		s, _ := p.servers.Selected()
		return p.app.Inspect(uicontext.Item{Server: s.Name})
	case callList:
		c, _ := p.calls.Selected()
		if c.own > 0 {
			return p.app.Inspect(uicontext.Item{Server: registry.Local})
		}
		return p.app.GoToItem(&c.TrafficRecord)
	}
	return p.open()
}

func (p *Pane) copied() (what, text string) {
	switch p.current() {
	case serverList:
		s, _ := p.servers.Selected()
		return "the name", s.Name
	case clientList:
		c, _ := p.clients.Selected()
		return "the name", c.name
	case callList:
		c, _ := p.calls.Selected()
		return "the call", strings.TrimSpace(c.label() + " " + c.arguments)
	}
	al, _ := p.alerts.Selected()
	return "the alert", al.text
}

// cancellable returns the selected running call, or the first slow one, or nil.
func (p *Pane) cancellable() *registry.InFlight {
	if c, ok := p.calls.Selected(); p.current() == callList && ok && c.id != "" {
		return &registry.InFlight{TrafficRecord: c.TrafficRecord, ID: c.id}
	}
	if len(p.slow) > 0 {
		return &p.slow[0].InFlight
	}
	return nil
}
