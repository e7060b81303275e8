package home

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry"
	"goblin/registry/recording"
	"goblin/registry/termtext"
	"goblin/tui/activity"
	"goblin/tui/list"
	"goblin/tui/pane"
	"goblin/tui/theme"
	"goblin/tui/uicontext"
)

// maxCalls is the maximum number of finished calls in the list.
const maxCalls = 100

type server struct {
	registry.ServerState
	counts
}

type client struct {
	registry.Session
	counts
	name string
	now  string // its running call, or what is wrong
	from time.Time
}

// call is a finished or running call.
type call struct {
	registry.TrafficRecord // without bodies, except in flight
	id                     string
	described              bool
	client                 string
	arguments, failure     string // safe to draw
	own                    int    // calls of Goblin's own tools that this row stands for
}

// keyOf identifies a request before and after its answer.
func keyOf(r *registry.TrafficRecord) string {
	return fmt.Sprint(r.Time.UnixNano(), " ", r.Session, " ", r.Method, " ", r.Name)
}

func newList[R any](p *Pane, order string, key, text func(R) string, columns ...list.Column[R]) *list.Table[R] {
	t := list.New(p.app.Ctx, p.app.Now, key, text, func([]R) []list.Field { return nil }, list.NewOrder[R](order, nil))
	return t.SetColumns(columns...)
}

func (p *Pane) createLists() {
	p.alerts = newList(p, "urgency", alert.key, func(al alert) string { return al.text },
		list.Column[alert]{NeededWidth: 1, Unsorted: true, Show: func(al alert, _ int) (string, theme.Style) { return p.mark(al.kind) }},
		list.Column[alert]{NeededWidth: 2, AlignRight: true, Unsorted: true, Show: func(al alert, _ int) (string, theme.Style) {
			return uicontext.FormatCount(al.count), ""
		}},
		list.Column[alert]{Name: "alert", MinWidth: 20, PreferredWidth: 20, Unsorted: true, Text: func(al alert) string { return al.text }})
	p.alerts.NoHeader = true
	p.alerts.Overlay = func(al alert, _ int) string { return p.app.Theme.Dim.On(al.does) }
	p.servers = newList(p, "state", func(s server) string { return s.Name },
		func(s server) string { return s.Name + "\x00" + s.State.Label() + "\x00" + s.LastError }, p.serverColumns()...)
	p.servers.Replacement = func(s server) (string, theme.Style) {
		if pane.IsDown(s.ServerState) {
			return p.app.Problem(&s.ServerState), p.app.Theme.Bad
		}
		return "", ""
	}
	p.clients = newList(p, "connected", func(c client) string { return c.ID }, func(c client) string { return c.name }, p.clientColumns()...)
	p.calls = newList(p, "newest", func(c *call) string {
		if c.own > 0 {
			return "own"
		}
		return keyOf(&c.TrafficRecord)
	},
		func(c *call) string {
			return c.client + "\x00" + c.label() + "\x00" + c.status() + "\x00" + c.arguments
		}, p.callColumns()...)
	p.own = list.NewFold(p.calls, func(c *call) bool { return c.own > 0 }, (*call).isOwn)
}

// isOwn reports whether a call of one of Goblin's own tools succeeded.
func (c *call) isOwn() bool {
	return c.own == 0 && c.Server == registry.Local && c.Method == "tools/call" && c.id == "" && c.failure == ""
}

func (p *Pane) mark(k kind) (string, theme.Style) {
	lk := p.app.Theme
	switch k {
	case serverRequests:
		return "?", lk.Warn
	case slowCalls:
		return lk.Starting, lk.Warn
	case changedTools:
		return "!", lk.Warn
	}
	return "!", lk.Bad
}

func (p *Pane) serverColumns() []list.Column[server] {
	type column = list.Column[server]
	return []column{
		{Name: "server", MinWidth: 6, PreferredWidth: 16, Text: func(s server) string { return s.Name }},
		{Name: "state", NeededWidth: 13, Unsorted: true, Show: func(s server, _ int) (string, theme.Style) {
			mark, style := p.stateMark(s.ServerState)
			return mark + " " + s.State.Label(), style
		}},
		duration("ms", 3, func(s server) time.Duration { return s.Latency }),
		number("calls", 1, func(s server) int { return s.calls }, nil),
		number("err", 2, func(s server) int { return s.failed }, p),
		{Name: "2 minutes", Priority: 4, NeededWidth: 12, Unsorted: true, Show: func(s server, w int) (string, theme.Style) {
			return p.app.Pulse.Line(p.app.Theme, p.app.Now(), s.Name, activity.Requests, w), p.app.Theme.Good
		}},
	}
}

func duration[R any](name string, priority int, of func(R) time.Duration) list.Column[R] {
	return list.NumberColumn(name, priority, 7, func(r R) float64 { return float64(of(r)) }, func(r R, _ int) (string, theme.Style) {
		if of(r) <= 0 {
			return "", ""
		}
		return uicontext.FormatDuration(of(r)), ""
	})
}

// number is a column of counts; with p it marks them as errors.
func number[R any](name string, priority int, of func(R) int, p *Pane) list.Column[R] {
	return list.NumberColumn(name, priority, 5, func(r R) float64 { return float64(of(r)) }, func(r R, _ int) (string, theme.Style) {
		switch n := of(r); {
		case p == nil:
			return uicontext.FormatCount(n), ""
		case n == 0:
			return "", ""
		default:
			return "!" + uicontext.FormatCount(n), p.app.Theme.Bad
		}
	})
}

func (p *Pane) stateMark(s registry.ServerState) (string, theme.Style) {
	lk := p.app.Theme
	switch {
	case pane.IsDown(s):
		return lk.Failed, lk.Bad
	case s.State == registry.StateReady:
		return lk.Up, lk.Good
	case s.State == registry.StateConnecting:
		return lk.Starting, lk.Warn
	}
	return lk.Disabled, lk.Dim
}

func (p *Pane) clientColumns() []list.Column[client] {
	type column = list.Column[client]
	return []column{
		{Name: "client", MinWidth: 8, PreferredWidth: 20, Text: func(c client) string { return c.name }},
		{Name: "since", Priority: 3, NeededWidth: 8, AlignRight: true, Unsorted: true, Show: func(c client, _ int) (string, theme.Style) {
			return termtext.Age(p.app.Now().Sub(c.Since)), ""
		}},
		number("calls", 1, func(c client) int { return c.calls }, nil),
		number("err", 2, func(c client) int { return c.failed }, p),
		{Name: "now", Priority: 4, MinWidth: 12, PreferredWidth: 30, Fills: true, Unsorted: true, Show: func(c client, _ int) (string, theme.Style) {
			switch d := c.SilentFor(); { // it grows without a change
			case c.from.IsZero() && d > 0:
				return "silent for " + termtext.Age(d) + ", probably disconnected", p.app.Theme.Dim
			case c.from.IsZero():
				return c.now, p.app.Theme.Dim
			}
			return c.now + " " + termtext.Age(p.app.Now().Sub(c.from)), ""
		}},
	}
}

func (p *Pane) callColumns() []list.Column[*call] {
	type column = list.Column[*call]
	return []column{
		{Name: "time", Priority: 3, NeededWidth: 8, Unsorted: true, Show: func(c *call, _ int) (string, theme.Style) {
			return c.Time.Local().Format(time.TimeOnly), p.app.Theme.Dim
		}},
		{Name: "client", Priority: 2, MinWidth: 6, PreferredWidth: 11, Unsorted: true, Text: func(c *call) string { return c.client }},
		{Name: "call", MinWidth: 12, PreferredWidth: 20, CutMiddle: true, Unsorted: true, Text: func(c *call) string { return c.label() }, Show: p.callCell},
		{
			Name: "status", MinWidth: 7, PreferredWidth: 16, Unsorted: true, Text: (*call).status,
			Show: func(c *call, _ int) (string, theme.Style) {
				return cmp.Or(p.app.StopText(c.Number), uicontext.SanitizeLine(c.status())), p.statusStyle(c)
			},
		},
		{Name: "took", Priority: 1, NeededWidth: 8, AlignRight: true, Unsorted: true, Show: func(c *call, _ int) (string, theme.Style) {
			switch {
			case c.own > 0:
				return "", ""
			case c.id != "":
				return termtext.Age(p.app.Now().Sub(c.Time)), ""
			}
			return uicontext.FormatDuration(c.Duration - c.UserWait), ""
		}},
		{Name: "arguments", Priority: 4, MinWidth: 8, PreferredWidth: 16, Fills: true, Dim: true, Unsorted: true, Text: func(c *call) string { return c.arguments }},
	}
}

func (p *Pane) callCell(c *call, _ int) (string, theme.Style) {
	if c.own > 0 {
		return p.own.Mark(p.app.Theme) + strings.TrimPrefix(c.label(), " "), p.app.Theme.Dim
	}
	return uicontext.SanitizeLine(c.label()), ""
}

func (c *call) label() string {
	if c.own > 0 {
		return "  " + termtext.Count(c.own, "call") + " of Goblin tools" // after the mark
	}
	switch c.Method {
	case "resources/read":
		return "read " + c.Name
	case "prompts/get":
		return "get " + c.Name
	}
	return c.Name
}

func (c *call) status() string {
	if c.failure != "" {
		return "!" + c.failure
	}
	return recording.StatusText(&c.TrafficRecord)
}

func (p *Pane) statusStyle(c *call) theme.Style {
	switch {
	case c.failure != "":
		return p.app.Theme.Bad
	case c.id != "":
		return p.app.Theme.Warn
	}
	return ""
}

// listServers lists failed servers first, then running, idle and disabled ones.
func (p *Pane) listServers() tea.Cmd {
	rows := make([]server, len(p.states))
	for i := range p.states {
		rows[i] = server{p.states[i], p.ofServer[p.states[i].Name]}
	}
	rank := func(s registry.ServerState) int {
		switch {
		case pane.IsDown(s):
			return 0
		case s.State == registry.StateDisabled:
			return 3
		case s.State == registry.StateReady || s.State == registry.StateConnecting:
			return 1
		}
		return 2
	}
	slices.SortStableFunc(rows, func(a, b server) int { return cmp.Compare(rank(a.ServerState), rank(b.ServerState)) })
	return p.servers.Refresh(len(rows), func() []server { return rows }, func() tea.Cmd { return nil })
}

func boolRank(b bool) int {
	if b {
		return 1
	}
	return 0
}

// listClients lists clients, then UIs, with their oldest running calls.
func (p *Pane) listClients() tea.Cmd {
	sessions := p.app.Reg.Sessions()
	own := p.app.Backend.Session()
	running, stopped := map[string]registry.InFlight{}, map[string]int{}
	for _, r := range p.app.Logs().Running() {
		if _, older := running[r.Session]; !older {
			running[r.Session] = r
		}
	}
	for _, s := range p.app.Reg.Rules().Stopped {
		stopped[s.Session]++
	}
	rows := make([]client, len(sessions))
	known := make(map[string]counts, len(sessions))
	for i := range sessions {
		s := &sessions[i]
		known[s.ID] = p.ofSession[s.ID]
		c := client{Session: *s, counts: known[s.ID], name: cmp.Or(s.Client, s.ID), now: p.app.Theme.Sep}
		switch r, runs := running[s.ID]; {
		case stopped[s.ID] > 0:
			c.now = fmt.Sprintf("! %d stopped", stopped[s.ID])
		case runs:
			c.now, c.from = strings.TrimSpace(uicontext.SanitizeLine(r.Method+" "+r.Name)), r.Time
		}
		switch {
		case s.ID == own:
			c.name = "this UI"
		case s.Screen:
			c.name = "another UI"
		}
		rows[i] = c
	}
	p.ofSession = known // without closed sessions
	slices.SortStableFunc(rows, func(a, b client) int { return cmp.Compare(boolRank(a.Screen), boolRank(b.Screen)) })
	return p.clients.Refresh(len(rows), func() []client { return rows }, func() tea.Cmd { return nil })
}

// listCalls lists running and finished calls, the newest first. The cursor follows in the
// first row.
func (p *Pane) listCalls() tea.Cmd {
	rows := make([]*call, 0, maxCalls)
	seen := map[string]bool{}
	for _, c := range p.last[max(0, len(p.last)-maxCalls):] {
		p.describe(c)
		rows, seen[keyOf(&c.TrafficRecord)] = append(rows, c), true
	}
	for _, r := range p.app.Logs().Running() {
		if isCall(&r.TrafficRecord) && !seen[keyOf(&r.TrafficRecord)] {
			c := &call{TrafficRecord: r.TrafficRecord, id: r.ID}
			p.describe(c)
			rows = append(rows, c)
		}
	}
	slices.SortStableFunc(rows, func(a, b *call) int { return b.Time.Compare(a.Time) })
	rows = p.withOwnRow(rows)
	same := func(a, b *call) bool {
		return a == b || a.own > 0 && a.own == b.own && a.Seq == b.Seq || a.id != "" && a.id == b.id && a.Session == b.Session
	}
	if slices.EqualFunc(rows, p.calls.Rows, same) {
		return nil
	}
	p.stale = true // what clients do
	following := p.calls.Cursor() == 0
	return p.calls.Refresh(len(rows), func() []*call { return rows }, func() tea.Cmd {
		if following {
			p.calls.MoveTo(0)
		}
		return nil
	})
}

// withOwnRow adds a row for several calls of Goblin's own tools, above the newest.
func (p *Pane) withOwnRow(rows []*call) []*call {
	newest, n := 0, 0
	var names []string
	for i, c := range rows {
		if !c.isOwn() {
			continue
		}
		if n++; n == 1 {
			newest = i
		}
		if !slices.Contains(names, c.Name) {
			names = append(names, c.Name)
		}
	}
	if n < 2 {
		return rows
	}
	head := *rows[newest]
	head.own, head.arguments = n, uicontext.SanitizeLine(strings.Join(names, ", "))
	return slices.Insert(rows, newest, &head)
}

func (p *Pane) describe(c *call) {
	if c.described {
		return
	}
	c.described, c.client = true, c.Client
	switch {
	case c.Session == p.app.Backend.Session():
		c.client = "you"
	case p.screens[c.Session]:
		c.client = "another UI"
	}
	c.arguments, c.failure = p.app.CallTexts(&c.TrafficRecord)
}

// runs describes in a line what runs.
func (p *Pane) runs() string {
	up, sleeping, clients, idle := 0, 0, 0, ""
	for i := range p.states {
		switch {
		case p.states[i].State == registry.StateSleeping:
			sleeping++
		case pane.IsReachable(p.states[i].State):
			up++
		}
	}
	if sleeping > 0 {
		idle = strconv.Itoa(sleeping) + " idle, "
	}
	for i := range p.clients.Rows {
		if c := &p.clients.Rows[i]; !c.Screen && c.SilentFor() == 0 {
			clients++
		}
	}
	return strconv.Itoa(up) + " of " + termtext.Count(len(p.states), "server") + " up, " + idle +
		termtext.Count(clients, "client") + ", " + termtext.Count(len(p.app.Logs().Running()), "request") + " in flight"
}
