// Package usage is the pane of tool costs and latencies.
//
// While open, it requests a report in a command, at most once per second; it counts
// nothing itself. All methods must run on the UI's Update goroutine.
package usage

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry"
	"goblin/registry/keymap"
	"goblin/registry/report"
	"goblin/registry/termtext"
	"goblin/tui/dialog"
	"goblin/tui/keys"
	"goblin/tui/list"
	"goblin/tui/pane"
	"goblin/tui/theme"
	"goblin/tui/uicontext"
)

const (
	servers = iota
	tools
	clients
	tables
)

var names = [tables]string{"Servers", "Tools", "Clients"}

type row struct {
	key, name, server, original string
	tools, idle                 int
	off                         bool
	own                         bool // the sum of Goblin's own tools
	others                      report.NonToolLists
	report.Definitions
	report.Figures
	client *report.Client
	whole  any // its part of the report
}

const readInterval = time.Second

// Pane is the usage pane.
type Pane struct {
	app    *pane.Layout
	Tables [tables]*list.Table[row]
	own    *list.Fold[row] // of Goblin's own tools
	at     int
	spots  pane.Tabs
	above  int // lines above the rows, as last drawn

	report report.Report
	busy   bool // a command reads the report
	stale  bool // … which has changed since
	read   time.Time
}

// New returns the pane. It reads nothing until it is open.
func New(a *pane.Layout) *Pane {
	p := &Pane{app: a, at: tools}
	for i := range p.Tables {
		p.Tables[i] = list.New(a.Ctx, a.Now,
			func(r row) string { return r.key },
			func(r row) string { return r.name + "\x00" + r.original },
			fields,
			list.NewOrder("tokens", byTokens).Descending())
		p.Tables[i].SetColumns(p.columns(i)...)
		p.Tables[i].Base = p.style
	}
	t := p.Tables[tools]
	t.Head = func(r row) bool { return r.own }
	p.own = list.NewFold(t, t.Head, func(r row) bool { return r.server == registry.Local })
	return p
}

func fields(rows []row) []list.Field {
	text := func(name, help string, value func(*row) string) list.Field {
		return list.Field{Name: name, Kind: list.Text, Help: help, Text: func(i int) string { return value(&rows[i]) }}
	}
	yes := func(is bool) string {
		if is {
			return "yes"
		}
		return "no"
	}
	return []list.Field{
		text("server", "the tool's server", func(r *row) string { return r.server }),
		text("unused", "yes: not called in 30 days (servers: one of their tools)", func(r *row) string { return yes(r.idle > 0) }),
		text("off", "yes: disabled for all clients", func(r *row) string { return yes(r.off) }),
		text("err", "yes: a call failed", func(r *row) string { return yes(r.Errors > 0) }),
		text("limit", "yes: exceeds a limit of the client", func(r *row) string { return yes(r.client != nil && len(r.client.Violations) > 0) }),
	}
}

func (p *Pane) Place() keymap.Place { return keymap.InUsage }

// Tab returns the pane's name and the number of connected clients over a limit.
func (p *Pane) Tab() (name, count string) {
	broken := 0
	for i := range p.report.Clients {
		if c := &p.report.Clients[i]; c.Connected && len(c.Violations) > 0 {
			broken++
		}
	}
	if broken > 0 {
		count = p.app.Theme.Failed + uicontext.FormatCount(broken)
	}
	return "Usage", count
}

// Watches returns the changes that affect the report.
func (p *Pane) Watches() registry.Changes {
	return registry.Traffic | registry.Servers | registry.Sessions | registry.Tools | registry.Skills
}

func (p *Pane) Refresh(what registry.Changes) tea.Cmd {
	now := p.app.Now()
	switch {
	case p.app.Open != pane.PaneUsage:
		return nil
	case p.busy:
		p.stale = true
		return nil
	case what != registry.AllChanges && now.Sub(p.read) < readInterval:
		if p.stale {
			return nil // a reading is scheduled
		}
		p.stale = true
		return p.app.After(readInterval-now.Sub(p.read), keys.FuncMsg(func() tea.Cmd { return p.Refresh(registry.AllChanges) }))
	}
	p.busy, p.stale = true, false
	backend := p.app.Backend
	return func() tea.Msg {
		figures := backend.Usage()
		return keys.FuncMsg(func() tea.Cmd { return p.take(figures) })
	}
}

func (p *Pane) take(r report.Report) tea.Cmd {
	p.report, p.busy, p.read = r, false, p.app.Now()
	var rows [tables][]row
	for i := range r.Servers {
		s := &r.Servers[i]
		key, server := s.Name, s.Name
		if s.Removed {
			key, server = "\x00"+report.Removed, "" // a server may have this name
		}
		rows[servers] = append(rows[servers], row{key: key, name: s.Name, server: server, tools: s.Tools, idle: s.UnusedTools, others: s.NonToolLists, Definitions: s.Definitions, Figures: s.Figures, whole: s})
	}
	for i := range r.Tools {
		t := &r.Tools[i]
		one := row{key: t.Server + "\x00" + t.Name, name: cmp.Or(t.Listed, t.Server+"/"+t.Name), server: t.Server, original: t.Name, off: t.Disabled, Definitions: t.Definitions, Figures: t.Figures, whole: t}
		if t.Unused {
			one.idle = 1
		}
		rows[tools] = append(rows[tools], one)
	}
	rows[tools] = withOwnRow(rows[tools])
	for i := range r.Clients {
		c := &r.Clients[i]
		rows[clients] = append(rows[clients], row{key: c.Name, name: cmp.Or(c.Name, "(unnamed)"), tools: c.Tools, others: c.NonToolLists, Definitions: c.Definitions, Figures: c.Figures, client: c, whole: c})
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

// withOwnRow adds the sum of Goblin's own tools as the first row, if there are other tools.
func withOwnRow(all []row) []row {
	var own []report.Tool
	var figures []report.Figures
	listed, bytes := 0, 0
	for i := range all {
		if r := &all[i]; r.server == registry.Local {
			own = append(own, *r.whole.(*report.Tool))
			figures = append(figures, r.Figures)
			bytes += r.Definitions.Bytes
			if r.Definitions.Bytes > 0 {
				listed++
			}
		}
	}
	if len(own) == 0 || len(own) == len(all) {
		return all
	}
	return slices.Insert(all, 0, row{
		key: "\x00own", name: termtext.Count(len(own), "Goblin tool"), own: true, tools: listed,
		Definitions: report.DefinitionSize(bytes), Figures: report.SumFigures(figures), whole: own,
	})
}

func (p *Pane) Heading() (title, right string) {
	t := p.Tables[p.at]
	count := uicontext.FormatInt(t.Total())
	if t.FilterText != "" {
		count = uicontext.FormatInt(t.Len()) + "/" + count
	}
	return p.app.Theme.Title.On("Usage") + " " + count, t.OrderText(p.app.Theme)
}

func (p *Pane) Rows() list.Rows { return below{p.Tables[p.at], p.above} }

type below struct {
	*list.Table[row]
	above int
}

func (b below) Position() int { return b.Table.Position() + b.above }

func (p *Pane) Click(x, y int) (bool, tea.Cmd) {
	if y >= p.above {
		return p.Tables[p.at].Click(x, y-p.above)
	}
	if i := p.spots.At(x); y == 0 && i >= 0 {
		return false, p.choose(i)
	}
	return false, nil
}

func (p *Pane) Wheel(_, _, by int) { p.Tables[p.at].Scroll(by) }

func (p *Pane) choose(table int) tea.Cmd {
	p.at = (table + tables) % tables
	p.app.Inside = false
	return nil
}

func (p *Pane) Empty() []string {
	if p.read.IsZero() {
		return nil
	}
	return []string{[tables]string{"No tools listed or called.", "No tools listed or called.", "No clients yet."}[p.at]}
}

// IsEmpty returns false: Lines draws the text of Empty itself.
func (p *Pane) IsEmpty() bool { return false }

func (p *Pane) Item() uicontext.Item {
	r, ok := p.Tables[p.at].Selected()
	if !ok || p.at != tools || r.own || r.Definitions.Bytes == 0 {
		return uicontext.Item{}
	}
	return uicontext.Item{Kind: registry.Tool, Server: r.server, Name: r.original, Listed: r.name}
}

// ShownContent returns the report's part under the cursor as JSON.
func (p *Pane) ShownContent() uicontext.CachedContent {
	r, ok := p.Tables[p.at].Selected()
	if !ok {
		return uicontext.CachedContent{}
	}
	text, err := json.MarshalIndent(r.whole, "", "  ")
	if err != nil {
		return uicontext.CachedContent{}
	}
	return uicontext.CachedContent{Name: "usage.json", Data: text}
}

func (p *Pane) Handlers() map[string]keys.Handler {
	a := p.app
	none := keys.DisabledUnless("no row selected", func() bool { return p.Tables[p.at].Len() > 0 })
	unfolds := p.own.Opens(keys.Handler{Run: a.FocusDetail})
	open := keys.Handler{WhyDisabled: none, Run: func() tea.Cmd {
		if p.at == tools {
			return unfolds.Run()
		}
		return a.FocusDetail()
	}, Label: func() string {
		if p.at == tools {
			return unfolds.Label()
		}
		return "open"
	}}
	entry := func() *registry.Entry {
		it := p.Item()
		if it.IsEmpty() {
			return nil
		}
		return a.Reg.Load().ByServerName(it.Server, registry.Tool, it.Name)
	}
	return map[string]keys.Handler{
		"open": open, "detail": open, "detail-vi": open, "pager": {WhyDisabled: none}, "editor": {WhyDisabled: none}, "save": {WhyDisabled: none}, "copy-content": {WhyDisabled: none},
		"copy": {WhyDisabled: none, Run: func() tea.Cmd {
			r, _ := p.Tables[p.at].Selected()
			return a.Copy(uicontext.SanitizeLine(r.name), "the name")
		}},
		"reload":    {Run: func() tea.Cmd { return p.Refresh(registry.AllChanges) }},
		"tab-left":  {Run: func() tea.Cmd { return p.choose(p.at - 1) }},
		"tab-right": {Run: func() tea.Cmd { return p.choose(p.at + 1) }},
		"switch": {
			WhyDisabled: func() string {
				if entry() == nil {
					return "only listed tools can be disabled here"
				}
				return dialog.ToggleDisabledReason(a.Context, entry())
			},
			Run: func() tea.Cmd { return dialog.ToggleEntries(a.Context, []*registry.Entry{entry()}) },
		},
		"call":      {WhyDisabled: keys.AlwaysDisabled("call tools in the Tools pane (" + a.KeyOf("tools") + ")")},
		"subscribe": {WhyDisabled: keys.AlwaysDisabled("only resources can be subscribed to")},
	}
}

func (p *Pane) Lines(lk *theme.Theme, w, h int, focused bool) []string {
	texts := make([]string, tables)
	for i, t := range p.Tables {
		texts[i] = names[i] + " " + uicontext.FormatCount(t.Total())
	}
	line, ends := pane.DrawTabs(lk, texts, p.at)
	p.spots = ends
	out := []string{lk.Fit(line, w)}
	if h >= 12 {
		for _, text := range p.graphs(lk, w) {
			out = append(out, lk.Fit(text, w))
		}
	}
	p.above = len(out)
	rows := p.Tables[p.at].Grid(lk, w, max(h-len(out), 0), focused)
	if empty := p.Empty(); p.Tables[p.at].Total() == 0 && len(empty) > 0 && len(rows) > 1 {
		rows[1] = lk.Fit("  "+empty[0], w)
	}
	return lk.Lines(append(out, rows...), w, h)
}

func (p *Pane) graphs(lk *theme.Theme, w int) []string {
	f := &p.report.All
	calls, failed, took, timed := lastHour(f.Hour)
	cells := max(min(60, w-60), 12)
	graph := func(label string, values []float64, ends, text string) string {
		line := lk.Spark(values)
		if line == "" {
			line = strings.Repeat(" ", len(values))
		}
		room := cells - theme.Width(line)
		if theme.Width(ends) > room {
			ends = "" // a cut number would be wrong
		}
		return " " + lk.Dim.On(lk.Fit(label, 8)) + lk.Accent.On(line) + lk.Dim.On(lk.Fit(ends, room)) + "  " + text
	}
	sum, wrong := termtext.Count(calls, "call"), ""
	if failed > 0 {
		wrong = ", " + lk.Bad.On(termtext.Count(failed, "error"))
	}
	if from := p.report.Minutes; from.IsZero() {
		sum += " in the last hour" + wrong
	} else {
		sum += wrong + " in " + termtext.Age(p.app.Now().Sub(from)) + ", since Goblin started"
	}
	mean := ""
	if timed > 0 {
		mean = termtext.Millis(took/float64(timed)) + " on average"
	}
	if f.Waits > 0 {
		mean = strings.TrimPrefix(mean+", "+waitText(f), ", ")
	}
	counts := make([]float64, len(p.report.Latency))
	for i, b := range p.report.Latency {
		counts[i] = float64(b.Calls)
	}
	spread, ends := "no timed calls", ""
	if n := len(p.report.Latency); f.P50 > 0 && n > 0 {
		spread = "p50 " + termtext.Millis(f.P50) + ", p95 " + termtext.Millis(f.P95)
		low, high := termtext.Millis(p.report.Latency[0].UpTo), termtext.Millis(p.report.Latency[n-1].UpTo)
		ends = " " + low + " to " + high
		if n == 1 {
			ends = " up to " + high // a bin has no lower end
		}
	}
	return []string{
		graph("calls", downsample(values(f.Hour, func(m report.Minute) float64 { return float64(m.Calls) }), cells), "", sum),
		graph("latency", downsample(values(f.Hour, func(m report.Minute) float64 { return m.Millis }), cells), "", mean),
		graph("spread", downsample(counts, cells), ends, spread),
	}
}

// waitText describes how long calls waited for the user. Latencies exclude these waits.
func waitText(f *report.Figures) string {
	return termtext.Count(int(f.Waits), "call") + " waited for the user: " + termtext.Age(millis(f.WaitedMs))
}

func millis(n uint64) time.Duration {
	return time.Duration(min(n, math.MaxInt64/uint64(time.Millisecond))) * time.Millisecond
}

func values(minutes []report.Minute, of func(report.Minute) float64) []float64 {
	out := make([]float64, 60)
	for i := range min(len(minutes), 60) {
		out[i] = of(minutes[i])
	}
	return out
}

// downsample reduces values to a number of cells, each the maximum of its part.
func downsample(values []float64, cells int) []float64 {
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

func lastHour(minutes []report.Minute) (calls, failed int, took float64, timed int) {
	for _, m := range minutes {
		calls, failed = calls+int(m.Calls), failed+int(m.Errors)
		if m.Millis > 0 {
			n := int(m.Calls - min(m.NoDuration, m.Calls))
			took, timed = took+m.Millis*float64(n), timed+n
		}
	}
	return calls, failed, took, timed
}

func byTokens(x, y row) int {
	return cmp.Or(cmp.Compare(x.Definitions.Bytes, y.Definitions.Bytes), cmp.Compare(y.key, x.key))
}

func (p *Pane) columns(table int) []list.Column[row] {
	lk := func() *theme.Theme { return p.app.Theme }
	figure := func(name string, rank, w int, value func(row) float64, text func(row) string) list.Column[row] {
		c := list.NumberColumn(name, rank, w, value, func(r row, _ int) (string, theme.Style) {
			if value(r) == 0 {
				return lk().Sep, ""
			}
			return text(r), ""
		})
		if rank > 0 {
			c.HasValue = func(r row) bool { return value(r) > 0 }
		}
		return c
	}
	count := func(name string, rank, w int, value func(row) int) list.Column[row] {
		return figure(name, rank, w, func(r row) float64 { return float64(value(r)) }, func(r row) string { return uicontext.FormatCount(value(r)) })
	}
	total := func(name string, rank int, of func(*report.Figures) uint64) list.Column[row] {
		return figure(name, rank, 8, func(r row) float64 { return float64(of(&r.Figures)) }, func(r row) string { return uicontext.FormatDuration(millis(of(&r.Figures))) })
	}
	tokens := figure("tokens", 0, 8, func(r row) float64 { return float64(r.Definitions.Bytes) }, func(r row) string { return uicontext.FormatCount(r.Tokens) })
	tokens.Less = byTokens
	cost := tokens.Show
	tokens.Show = func(r row, w int) (string, theme.Style) {
		if r.off {
			return "disabled", ""
		}
		return cost(r, w)
	}
	all := []list.Column[row]{
		{
			Name: strings.ToLower(strings.TrimSuffix(names[table], "s")), MinWidth: 4, PreferredWidth: 22, Text: func(r row) string { return r.name },
			Show: func(r row, _ int) (string, theme.Style) {
				if r.own {
					return p.own.Mark(lk()) + " " + r.name, lk().Dim
				}
				if r.client != nil && len(r.client.Violations) > 0 {
					return lk().Failed + " " + uicontext.SanitizeLine(r.name), lk().Bad
				}
				return uicontext.SanitizeLine(r.name), ""
			},
		},
		tokens,
		count("calls", 0, 7, func(r row) int { return int(r.Calls) }),
		count("errors", 1, 6, func(r row) int { return int(r.Errors) }),
		figure("p50", 6, 8, func(r row) float64 { return r.P50 }, func(r row) string { return termtext.Millis(r.P50) }),
		figure("p95", 2, 8, func(r row) float64 { return r.P95 }, func(r row) string { return termtext.Millis(r.P95) }),
		figure("answers", 7, 9, func(r row) float64 { return float64(r.Figures.Bytes) }, func(r row) string { return uicontext.FormatSize(int64(r.Figures.Bytes)) }),
		{
			Name: "last call", Priority: 4, NeededWidth: 9, AlignRight: true, Descending: true,
			Less:     func(x, y row) int { return x.LastUsed.Compare(y.LastUsed) },
			HasValue: func(r row) bool { return r.Calls > 0 },
			Show: func(r row, _ int) (string, theme.Style) {
				if r.Calls == 0 {
					return "never", ""
				}
				return short(p.app.Now().Sub(r.LastUsed)), ""
			},
		},
		count("cancelled", 10, 9, func(r row) int { return int(r.Cancelled) }),
		total("waited", 11, func(f *report.Figures) uint64 { return f.WaitedMs }),
		total("start", 12, func(f *report.Figures) uint64 { return f.StartMs }),
		{
			Name: "last hour", Priority: 8, NeededWidth: 20, Unsorted: true, HasValue: func(r row) bool { return r.Calls > 0 },
			Show: func(r row, w int) (string, theme.Style) {
				return lk().Spark(downsample(values(r.Hour, func(m report.Minute) float64 { return float64(m.Calls) }), w)), ""
			},
		},
	}
	if table == tools {
		return all
	}
	own := []list.Column[row]{count("tools", 3, 6, func(r row) int { return r.tools })}
	all = append(all, figure("others", 9, 9, func(r row) float64 { return float64(r.others.Bytes) }, func(r row) string { return uicontext.FormatSize(int64(r.others.Bytes)) }))
	if table == servers {
		own = append(own, count("unused", 5, 6, func(r row) int { return r.idle }))
	}
	return slices.Insert(all, 1, own...)
}

func (p *Pane) style(r row) theme.Style {
	if r.off || p.at == tools && r.idle > 0 {
		return p.app.Theme.Dim
	}
	return ""
}

// short formats an age without minutes from 1 h on.
func short(ago time.Duration) string {
	switch ago = max(ago, 0); {
	case ago < time.Hour:
		return termtext.Age(ago)
	case ago < 48*time.Hour:
		return fmt.Sprintf("%d h", int(ago.Hours()))
	}
	return termtext.Age(ago)
}

func (r *row) exceeds(limit string) bool {
	return r.client != nil && slices.ContainsFunc(r.client.Violations, func(b report.LimitViolation) bool { return b.Kind == limit })
}
