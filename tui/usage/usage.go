// Package usage is the pane of what tools cost: how many were called in the last hour, how
// long that took, and tables of servers, tools and clients, with the limits of clients and
// what breaks them.
//
// It shows a bill that it asks for while it is open, in commands, once a second at most, and
// counts nothing itself. It belongs to the goroutine of one screen's Update and View.
package usage

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/gateway/display"
	"goblin/registry"
	"goblin/registry/bill"
	"goblin/registry/keymap"
	"goblin/tui/dialog"
	"goblin/tui/filter"
	"goblin/tui/keys"
	"goblin/tui/list"
	"goblin/tui/look"
	"goblin/tui/pane"
	"goblin/tui/view"
	"goblin/tui/work"
)

// The tables.
const (
	servers = iota
	tools
	clients
	tables
)

var names = [tables]string{"Servers", "Tools", "Clients"}

// row is a server, a tool or a client.
type row struct {
	key, name, server, original string
	tools, idle                 int
	bill.Definitions
	bill.Figures
	client *bill.Client
	whole  any // as it stands in the bill
}

// often is how often the bill is asked for at most.
const often = time.Second

// Pane is the pane.
type Pane struct {
	app    *pane.Desk
	Tables [tables]*list.Table[row]
	at     int
	spots  pane.Tabs
	above  int // lines before the rows, when they were last drawn

	report bill.Report
	busy   bool // a command asks for the bill
	stale  bool // … which has changed since
	read   time.Time
}

// New is the pane; it reads nothing before it is open.
func New(a *pane.Desk) *Pane {
	p := &Pane{app: a, at: tools}
	by := func(name string, value func(row) float64) list.Order[row] {
		return list.By(name, func(x, y row) int { return cmp.Or(cmp.Compare(value(y), value(x)), cmp.Compare(x.key, y.key)) })
	}
	for i := range p.Tables {
		p.Tables[i] = list.New(a.Ctx, a.Now,
			func(r row) string { return r.key },
			func(r row) string { return r.name + "\x00" + r.original },
			fields,
			by("tokens", func(r row) float64 { return float64(r.Definitions.Bytes) }),
			by("calls", func(r row) float64 { return float64(r.Calls) }),
			by("errors", func(r row) float64 { return float64(r.Errors) }),
			by("p95", func(r row) float64 { return r.P95 }),
			by("answers", func(r row) float64 { return float64(r.Figures.Bytes) }),
			by("last call", func(r row) float64 { return float64(r.LastUsed.Unix()) }),
			list.By("name", func(x, y row) int { return cmp.Or(cmp.Compare(x.name, y.name), cmp.Compare(x.key, y.key)) }))
	}
	return p
}

func fields(rows []row) []filter.Field {
	text := func(name, help string, value func(*row) string) filter.Field {
		return filter.Field{Name: name, Kind: filter.Text, Help: help, Text: func(i int) string { return value(&rows[i]) }}
	}
	yes := func(is bool) string {
		if is {
			return "yes"
		}
		return "no"
	}
	return []filter.Field{
		text("server", "whose tool it is", func(r *row) string { return r.server }),
		text("unused", "yes: not called in 30 days, of servers a tool of theirs", func(r *row) string { return yes(r.idle > 0) }),
		text("err", "yes: a call failed", func(r *row) string { return yes(r.Errors > 0) }),
		text("limit", "yes: a limit of the client is broken", func(r *row) string { return yes(r.client != nil && len(r.client.Breaks) > 0) }),
	}
}

// In is where the pane's keys work.
func (p *Pane) In() keys.Place { return keymap.InUsage }

// Tab names the pane, and counts clients whose limits are broken once it was open.
func (p *Pane) Tab() (name, count string) {
	broken := 0
	for i := range p.report.Clients {
		if c := &p.report.Clients[i]; c.Connected && len(c.Breaks) > 0 {
			broken++
		}
	}
	if broken > 0 {
		count = p.app.Look.Failed + dialog.Grouped(broken)
	}
	return "Usage", count
}

// Follows are the changes that change the bill.
func (p *Pane) Follows() registry.Changes {
	return registry.Traffic | registry.Servers | registry.Sessions | registry.Tools
}

// Refresh asks for the bill, if somebody looks.
func (p *Pane) Refresh(what registry.Changes) tea.Cmd {
	now := p.app.Now()
	switch {
	case p.app.Open != pane.PaneUsage:
		return nil
	case p.busy:
		p.stale = true
		return nil
	case what != registry.AllChanges && now.Sub(p.read) < often:
		if p.stale {
			return nil // somebody looks already
		}
		p.stale = true
		return p.app.After(often-now.Sub(p.read), work.Done(func() tea.Cmd { return p.Refresh(registry.AllChanges) }))
	}
	p.busy, p.stale = true, false
	backend := p.app.Backend
	return func() tea.Msg {
		report := backend.Usage()
		return work.Done(func() tea.Cmd { return p.take(report) })
	}
}

func (p *Pane) take(r bill.Report) tea.Cmd {
	p.report, p.busy, p.read = r, false, p.app.Now()
	var rows [tables][]row
	for i := range r.Servers {
		s := &r.Servers[i]
		rows[servers] = append(rows[servers], row{key: s.Name, name: s.Name, server: s.Name, tools: s.Tools, idle: s.Idle, Definitions: s.Definitions, Figures: s.Figures, whole: s})
	}
	for i := range r.Tools {
		t := &r.Tools[i]
		one := row{key: t.Server + "\x00" + t.Name, name: cmp.Or(t.Listed, t.Server+"/"+t.Name), server: t.Server, original: t.Name, Definitions: t.Definitions, Figures: t.Figures, whole: t}
		if t.Idle {
			one.idle = 1
		}
		rows[tools] = append(rows[tools], one)
	}
	for i := range r.Clients {
		c := &r.Clients[i]
		rows[clients] = append(rows[clients], row{key: c.Name, name: cmp.Or(c.Name, "(not introduced)"), tools: c.Tools, Definitions: c.Definitions, Figures: c.Figures, client: c, whole: c})
	}
	var cmds []tea.Cmd
	for i, t := range p.Tables {
		cmds = append(cmds, t.Refresh(len(rows[i]), func() []row { return rows[i] }, func() tea.Cmd { return nil }))
	}
	if p.stale {
		p.stale = false
		cmds = append(cmds, p.Refresh(0))
	}
	return tea.Batch(cmds...)
}

// Heading counts the rows of the open table, and says by what they are sorted.
func (p *Pane) Heading() (title, right string) {
	t := p.Tables[p.at]
	count := dialog.Exactly(t.Total())
	if t.Typed != "" {
		count = dialog.Exactly(t.Len()) + "/" + count
	}
	return p.app.Look.Title.On("Usage") + " " + count, "by " + t.Sorting()
}

// Rows is the open table.
func (p *Pane) Rows() list.Rows { return below{p.Tables[p.at], p.above} }

// below is a table under other lines.
type below struct {
	*list.Table[row]
	above int
}

// Position is the line of the cursor.
func (b below) Position() int { return b.Table.Position() + b.above }

// Click goes to a row, or opens a tab.
func (p *Pane) Click(y int) bool {
	if y > 0 {
		return p.Tables[p.at].Click(y - p.above)
	}
	g := p.app.Geometry()
	if i := p.spots.At(p.app.LastClick.X - g.List.X - g.Border); i >= 0 {
		p.choose(i)
	}
	return false
}

// Wheel scrolls the table.
func (p *Pane) Wheel(_, by int) { p.Tables[p.at].Scroll(by) }

func (p *Pane) choose(table int) tea.Cmd {
	p.at = (table + tables) % tables
	p.app.Inside = false
	return nil
}

// Empty says why there is nothing.
func (p *Pane) Empty() []string {
	if p.read.IsZero() {
		return nil
	}
	return []string{[tables]string{"No server lists a tool, and none was called.", "No server lists a tool, and none was called.", "No client has connected yet."}[p.at]}
}

// Bare reports whether there is room for what Empty says.
func (p *Pane) Bare() bool { return false }

// Item is the tool under the cursor.
func (p *Pane) Item() dialog.Item {
	r, ok := p.Tables[p.at].Selected()
	if !ok || p.at != tools || r.Definitions.Bytes == 0 {
		return dialog.Item{}
	}
	return dialog.Item{Kind: registry.Tool, Server: r.server, Name: r.original, Listed: r.name}
}

// Shown is the part of the bill under the cursor, as JSON.
func (p *Pane) Shown() dialog.Shown {
	r, ok := p.Tables[p.at].Selected()
	if !ok {
		return dialog.Shown{}
	}
	text, err := json.MarshalIndent(r.whole, "", "  ")
	if err != nil {
		return dialog.Shown{}
	}
	return dialog.Shown{Name: "usage.json", Data: text}
}

// Acts are what keys do here.
func (p *Pane) Acts() map[string]keys.Act {
	a := p.app
	none := keys.Unless("there is no row here", func() bool { return p.Tables[p.at].Len() > 0 })
	entry := func() *registry.Entry {
		it := p.Item()
		if it.Blank() {
			return nil
		}
		return a.Reg.Load().Named(it.Server, registry.Tool, it.Name)
	}
	return map[string]keys.Act{
		"open": {Why: none}, "pager": {Why: none}, "editor": {Why: none}, "save": {Why: none}, "copy-content": {Why: none},
		"copy": {Why: none, Run: func() tea.Cmd {
			r, _ := p.Tables[p.at].Selected()
			return a.Copy(dialog.Clean(r.name), "the name")
		}},
		"reload":    {Run: func() tea.Cmd { return p.Refresh(registry.AllChanges) }},
		"tab-left":  {Run: func() tea.Cmd { return p.choose(p.at - 1) }},
		"tab-right": {Run: func() tea.Cmd { return p.choose(p.at + 1) }},
		"switch": {
			Why: func() string {
				if entry() == nil {
					return "only tools that are listed are turned off and on here"
				}
				return view.WhyNotTurn(a.Common, entry())
			},
			Run: func() tea.Cmd { return view.Turn(a.Common, []*registry.Entry{entry()}) },
		},
		"call":      {Why: keys.Never("tools are called in their own pane; " + a.KeyOf("tools") + " goes there")},
		"subscribe": {Why: keys.Never("only resources can be subscribed to")},
	}
}

// Lines are the tabs, the last hour, how long calls took, and the table.
func (p *Pane) Lines(lk *look.Look, w, h int, focused bool) []string {
	texts := make([]string, tables)
	for i, t := range p.Tables {
		texts[i] = names[i] + " " + dialog.Grouped(t.Total())
	}
	line, ends := pane.DrawTabs(lk, texts, p.at)
	p.spots = ends
	out := []string{lk.Fit(line, w)}
	if h >= 12 {
		for _, text := range p.graphs(lk, w) {
			out = append(out, lk.Fit(text, w))
		}
	}
	c := columnsOf(p.at, w-2)
	out = append(out, lk.Dim.On(lk.Fit("  "+c.draw(lk, lk.Fit(strings.ToLower(strings.TrimSuffix(names[p.at], "s")), c.name), c.heads()), w)))
	p.above = len(out)
	rows := p.Tables[p.at].Lines(lk, w, max(h-len(out), 0), focused, func(r row, w int) string { return p.line(lk, r, columnsOf(p.at, w)) })
	if empty := p.Empty(); p.Tables[p.at].Total() == 0 && len(empty) > 0 && len(rows) > 1 {
		rows[1] = lk.Fit("  "+empty[0], w)
	}
	return lk.Lines(append(out, rows...), w, h)
}

// graphs draw the last hour, and how long all calls took.
func (p *Pane) graphs(lk *look.Look, w int) []string {
	f := &p.report.All
	calls, failed, took, timed := hour(f.Hour)
	cells := max(min(60, w-60), 12)
	graph := func(label string, values []float64, text string) string {
		line := lk.Spark(values)
		if line == "" {
			line = strings.Repeat(" ", len(values))
		}
		return " " + lk.Dim.On(lk.Fit(label, 8)) + lk.Accent.On(lk.Fit(line, cells)) + "  " + text
	}
	sum := display.Count(calls, "call") + " in the last hour"
	if failed > 0 {
		sum += ", " + lk.Bad.On(display.Count(failed, "error"))
	}
	mean := ""
	if timed > 0 {
		mean = millis(took/float64(timed)) + " on average"
	}
	counts := make([]float64, len(p.report.Latency))
	for i, b := range p.report.Latency {
		counts[i] = float64(b.Calls)
	}
	spread := "no call was counted yet"
	if f.Calls > 0 {
		spread = "half within " + millis(f.P50) + ", 95 of 100 " + millis(f.P95)
	}
	ends := ""
	if n := len(p.report.Latency); n > 0 {
		ends = " " + millis(p.report.Latency[0].UpTo) + "…" + millis(p.report.Latency[n-1].UpTo)
	}
	return []string{
		graph("calls", squeeze(values(f.Hour, func(m bill.Minute) float64 { return float64(m.Calls) }), cells), sum),
		graph("latency", squeeze(values(f.Hour, func(m bill.Minute) float64 { return m.Millis }), cells), mean),
		graph("spread", squeeze(counts, cells), spread+lk.Dim.On(ends)),
	}
}

func values(minutes []bill.Minute, of func(bill.Minute) float64) []float64 {
	out := make([]float64, 60)
	for i := range min(len(minutes), 60) {
		out[i] = of(minutes[i])
	}
	return out
}

// squeeze makes values fit into so many cells; each is the largest of its part.
func squeeze(values []float64, cells int) []float64 {
	if len(values) <= cells {
		return values
	}
	out := make([]float64, cells)
	for i, v := range values {
		at := i * cells / len(values)
		out[at] = max(out[at], v)
	}
	return out
}

// hour sums the last hour up.
func hour(minutes []bill.Minute) (calls, failed int, took float64, timed int) {
	for _, m := range minutes {
		calls, failed = calls+int(m.Calls), failed+int(m.Errors)
		if m.Millis > 0 {
			took, timed = took+m.Millis*float64(m.Calls), timed+int(m.Calls)
		}
	}
	return calls, failed, took, timed
}

// columns are the widths of the columns, 0 for those that have no room.
type columns struct{ name, tools, unused, tokens, calls, errors, p50, p95, answers, last, hour int }

func columnsOf(table, w int) columns {
	c := columns{tools: 6, unused: 6, tokens: 7, calls: 7, errors: 6, p50: 8, p95: 8, answers: 9, last: 9, hour: 20}
	switch table {
	case tools:
		c.tools, c.unused = 0, 0
	case clients:
		c.unused = 0
	}
	for _, drop := range []*int{&c.hour, &c.answers, &c.p50, &c.unused, &c.last, &c.tools, &c.p95, &c.errors} {
		if w-c.fixed() >= 22 {
			break
		}
		*drop = 0
	}
	c.name = max(min(w-c.fixed(), 60), 4)
	return c
}

func (c *columns) widths() []int {
	return []int{c.tools, c.unused, c.tokens, c.calls, c.errors, c.p50, c.p95, c.answers, c.last}
}

func (c *columns) fixed() (n int) {
	for _, w := range append(c.widths(), c.hour) {
		if w > 0 {
			n += w + 1
		}
	}
	return n
}

func (c *columns) heads() []string {
	return []string{"tools", "unused", "tokens", "calls", "errors", "p50", "p95", "answers", "last", " last hour"}
}

// draw draws a line; the last of the texts is the hour.
func (c *columns) draw(lk *look.Look, name string, texts []string) string {
	line := name
	for i, w := range c.widths() {
		if w > 0 {
			line += " " + lk.Right(texts[i], w)
		}
	}
	if c.hour > 0 {
		line += " " + lk.Fit(texts[len(texts)-1], c.hour)
	}
	return line
}

func (p *Pane) line(lk *look.Look, r row, c columns) string {
	count := func(n int) string {
		if n == 0 {
			return lk.Sep
		}
		return dialog.Grouped(n)
	}
	texts := []string{count(r.tools), count(r.idle), dialog.Grouped(r.Tokens), count(int(r.Calls)), count(int(r.Errors)), lk.Sep, lk.Sep, lk.Sep, "never", ""}
	if r.Calls > 0 {
		texts[5], texts[6], texts[7] = millis(r.P50), millis(r.P95), dialog.Size(int64(r.Figures.Bytes))
		texts[8] = short(p.app.Now().Sub(r.LastUsed))
		texts[9] = " " + lk.Spark(squeeze(values(r.Hour, func(m bill.Minute) float64 { return float64(m.Calls) }), max(c.hour-1, 1)))
	}
	if r.Definitions.Bytes == 0 {
		texts[2] = lk.Sep
	}
	base, name := look.Style(""), dialog.Clean(r.name)
	switch {
	case r.client != nil && len(r.client.Breaks) > 0:
		base, name = lk.Bad, lk.Failed+" "+name
	case p.at == tools && r.idle > 0:
		base = lk.Dim
	}
	return c.draw(lk, p.Tables[p.at].Mark(lk, lk.Fit(name, c.name), base), texts)
}

// short is how long ago something was.
func short(ago time.Duration) string {
	switch ago = max(ago, 0); {
	case ago < time.Hour:
		return display.Age(ago)
	case ago < 48*time.Hour:
		return fmt.Sprintf("%d h", int(ago.Hours()))
	}
	return display.Age(ago)
}

func millis(ms float64) string { return dialog.Millis(time.Duration(ms * float64(time.Millisecond))) }

// broken are the limits that a client's row breaks.
func (r *row) broken(limit string) bool {
	return r.client != nil && slices.ContainsFunc(r.client.Breaks, func(b bill.Break) bool { return b.Limit == limit })
}
