package dialog

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry"
	"goblin/registry/termtext"
	"goblin/tui/keys"
	"goblin/tui/list"
	"goblin/tui/textfield"
	"goblin/tui/theme"
	"goblin/tui/uicontext"
)

type clientRow struct {
	registry.Session
	requests, failed int // still in the journal
	lastRequest      time.Time
	subscriptions    int
	inFlight         int
	stopped          int // by rules
}

// ClientsOptions connect the list of clients with the panes.
type ClientsOptions struct {
	*uicontext.Context
	Traffic  func(session string) tea.Cmd // shows the requests of a session
	InFlight func(session string) int     // requests in flight
	Failed   func(*registry.TrafficRecord) bool
	Daemon   string // its start time and origin
}

// Clients is a dialog that lists the sessions of clients and UIs.
type Clients struct {
	uicontext.ListDialog
	Search
	app   ClientsOptions
	Table *list.Table[clientRow]
	read  time.Time
}

// NewClients returns a dialog of the open sessions.
func NewClients(a ClientsOptions) *Clients {
	d := &Clients{app: a}
	text := func(name, help string, value func(*clientRow) string) func([]clientRow) list.Field {
		return func(rows []clientRow) list.Field {
			return list.Field{Name: name, Kind: list.Text, Help: help, Text: func(i int) string { return value(&rows[i]) }}
		}
	}
	fields := []func([]clientRow) list.Field{
		text("client", "its name", func(r *clientRow) string { return r.Client }),
		text("transport", "such as stdio or http", func(r *clientRow) string { return r.transport() }),
		text("version", "its version", func(r *clientRow) string { return r.Version }),
		text("revision", "its protocol revision", func(r *clientRow) string { return r.Protocol }),
	}
	d.Table = list.New(a.Ctx, a.Now,
		func(r clientRow) string { return r.ID },
		func(r clientRow) string { return strings.Join([]string{r.Client, r.ClientTitle, r.ID}, "\x00") },
		func(rows []clientRow) (all []list.Field) {
			for _, f := range fields {
				all = append(all, f(rows))
			}
			return all
		},
		list.Order[clientRow]{Name: "connected"})
	d.setColumns()
	d.Search = Search{Input: textfield.New(a.Theme), Rows: d.Table}
	d.readSessions()
	return d
}

func (d *Clients) Refresh(what registry.Changes) tea.Cmd {
	const often = 500 * time.Millisecond // limits reloads under steady traffic
	if what&(registry.Sessions|registry.Rules) == 0 && (what&(registry.Subscriptions|registry.Traffic) == 0 || d.app.Now().Sub(d.read) < often) {
		return nil
	}
	return d.readSessions()
}

// readSessions sorts clients first, then UIs, the oldest first.
func (d *Clients) readSessions() tea.Cmd {
	a := d.app
	d.read = a.Now()
	sessions := a.Reg.Sessions()
	slices.SortStableFunc(sessions, func(x, y registry.Session) int {
		switch {
		case x.Screen == y.Screen:
			return 0
		case y.Screen:
			return -1
		}
		return 1
	})
	at := make(map[string]int, len(sessions))
	rows := make([]clientRow, len(sessions))
	for i, s := range sessions {
		rows[i].Session, at[s.ID] = s, i
	}
	count := func(session string, add func(*clientRow)) {
		if i, ok := at[session]; ok {
			add(&rows[i])
		}
	}
	for _, rec := range a.Reg.Traffic().Window(0, -1) {
		if rec.Direction != registry.ToServer || rec.Status == registry.StatusNotification {
			continue
		}
		count(rec.Session, func(r *clientRow) {
			r.requests++
			if a.Failed(&rec) {
				r.failed++
			}
			if rec.Time.After(r.lastRequest) {
				r.lastRequest = rec.Time
			}
		})
	}
	for _, s := range a.Reg.Subscriptions() {
		for _, id := range s.Sessions {
			count(id, func(r *clientRow) { r.subscriptions++ })
		}
	}
	for _, s := range a.Reg.Rules().Stopped {
		count(s.Session, func(r *clientRow) { r.stopped++ })
	}
	for i := range rows {
		rows[i].inFlight = a.InFlight(rows[i].ID)
	}
	return d.Table.Refresh(len(rows), func() []clientRow { return rows }, func() tea.Cmd { return nil })
}

func (d *Clients) Heading() string {
	text := "Clients " + RowCount(d.Table)
	if n := d.silent(); n > 0 {
		text += fmt.Sprintf(", %d silent", n)
	}
	return strings.TrimSpace(text + " " + d.Table.OrderText(d.app.Theme))
}

// silent counts the clients that have probably disconnected.
func (d *Clients) silent() (n int) {
	for i := range d.Table.Rows {
		if d.Table.Rows[i].SilentFor() > 0 {
			n++
		}
	}
	return n
}

func (d *Clients) Size(w, h int) (int, int) { return min(w, 140), min(h, max(14, d.Table.Total()+10)) }

func (d *Clients) setColumns() {
	type column = list.Column[clientRow]
	count := func(name string, rank, w int, sign string, value func(clientRow) int) column {
		has := func(r clientRow) bool { return value(r) > 0 || name == "requests" }
		c := list.NumberColumn(name, rank, w, func(r clientRow) float64 { return float64(value(r)) }, func(r clientRow, _ int) (string, theme.Style) {
			if !has(r) {
				return "", ""
			}
			return sign + uicontext.FormatCount(value(r)), ""
		})
		c.HasValue = has
		return c
	}
	ago := func(name string, rank int, value func(clientRow) time.Time) column {
		return column{
			Name: name, Priority: rank, NeededWidth: 10, AlignRight: true, Descending: true,
			Less:     func(x, y clientRow) int { return value(x).Compare(value(y)) },
			HasValue: func(r clientRow) bool { return !value(r).IsZero() },
			Show: func(r clientRow, _ int) (string, theme.Style) {
				if value(r).IsZero() {
					return "", ""
				}
				return termtext.Age(d.app.Now().Sub(value(r))), ""
			},
		}
	}
	own := d.app.Backend.Session()
	d.Table.SetColumns(
		column{Name: "client", MinWidth: 8, PreferredWidth: 24, Text: func(r clientRow) string { return nameOf(r, own) }},
		column{Name: "version", Priority: 7, MinWidth: 6, PreferredWidth: 10, Text: func(r clientRow) string { return r.Version }},
		column{Name: "transport", Priority: 5, NeededWidth: 9, Text: func(r clientRow) string { return r.transport() }},
		ago("since", 4, func(r clientRow) time.Time { return r.Since }),
		count("requests", 1, 8, "", func(r clientRow) int { return r.requests }),
		count("errors", 2, 6, "!", func(r clientRow) int { return r.failed }),
		ago("last", 3, func(r clientRow) time.Time { return r.lastRequest }),
		count("subs", 6, 7, "", func(r clientRow) int { return r.subscriptions }))
	d.Table.Note = func(r clientRow) string {
		if r.stopped > 0 {
			return d.app.Theme.Warn.On(fmt.Sprintf("! %d stopped", r.stopped))
		}
		if quiet := r.SilentFor(); quiet > 0 {
			return d.app.Theme.Dim.On("silent for " + termtext.Age(quiet))
		}
		return ""
	}
	d.Table.Base = func(r clientRow) theme.Style {
		if r.SilentFor() > 0 {
			return d.app.Theme.Dim
		}
		return ""
	}
	d.Table.HiddenTexts = func(r clientRow) []string { return []string{r.ClientTitle, r.ID} }
}

// transport returns "" for a UI, which needs none.
func (r *clientRow) transport() string {
	if r.Screen {
		return ""
	}
	return r.Transport
}

func nameOf(r clientRow, own string) string {
	switch name := cmp.Or(r.Client, r.ID); {
	case r.ID == own:
		return "this UI"
	case r.Screen:
		return "another UI"
	default:
		return name
	}
}

func (d *Clients) name(r clientRow) string { return nameOf(r, d.app.Backend.Session()) }

func (d *Clients) Lines(w, h int) []string {
	lk := d.app.Theme
	below := d.below(w)
	body := max(h-2-max(len(below), 3), 1)
	out := d.Table.Grid(lk, w, body, true)
	switch {
	case body < 2 || d.Table.Len() > 0:
	case d.Table.FilterText == "":
		out[1] = lk.Fit("  No clients were connected at the end of the recording.", w)
	default:
		out[1] = lk.Fit("  No matches for "+uicontext.SanitizeLine(d.Table.FilterText)+"; "+d.app.KeyOf("clients.back")+" clears the filter.", w)
	}
	if d.Focused {
		below = append(below, d.line(lk, w))
	}
	out = append(out, lk.Border.On(strings.Repeat(lk.Horizontal, max(w, 0))))
	return lk.Lines(append(out, below...), w, h)
}

// below returns the lines about the selected client and the daemon.
func (d *Clients) below(w int) (out []string) {
	wrap := func(text string, style theme.Style) {
		for _, line := range uicontext.WrapText(text, max(w-2, 1), 2) {
			out = append(out, " "+style.On(line))
		}
	}
	if r, ok := d.Table.Selected(); ok {
		about := []string{cmp.Or(r.ClientTitle, d.name(r))}
		if quiet := r.SilentFor(); quiet > 0 {
			about = append(about, "silent for "+termtext.Age(quiet)+", probably disconnected")
		}
		if r.inFlight > 0 {
			about = append(about, fmt.Sprintf("%d in flight", r.inFlight))
		}
		if r.Protocol != "" {
			about = append(about, "protocol "+r.Protocol)
		}
		about = append(about, "session "+r.ID)
		wrap(uicontext.SanitizeLine(strings.Join(about, "  ")), "")
		wrap(uicontext.SanitizeLine(strings.Join(d.app.Backend.SessionDetails(r.ID), "  ")), "")
	}
	wrap(d.app.Daemon, d.app.Theme.Dim)
	return out
}

func (d *Clients) Keys() keys.Table {
	if d.Focused {
		return d.Search.Keys()
	}
	return d.ListKeys()
}

// ListKeys returns the keys that work while no filter is typed.
func (d *Clients) ListKeys() keys.Table {
	return slices.Concat(
		keys.Table{
			{ID: "clients.traffic", Hint: "requests", Long: "Show its requests", Run: d.Table.WithSelected(d.traffic)},
			{ID: "clients.disconnect", Hint: "disconnect", Long: "Disconnect it (asks first)", Run: d.Table.WithSelected(d.disconnect)},
		},
		d.FilterKeys("clients"), d.CloseKeys("clients", d.close),
		keys.Scrolling("scroll", func() keys.Scroller { return list.Cursor{List: d.Table} }))
}

func (d *Clients) close() tea.Cmd { return d.app.Drop(d) }

func (d *Clients) traffic(r clientRow) tea.Cmd {
	d.close()
	return d.app.Traffic(r.ID)
}

func (d *Clients) disconnect(r clientRow) tea.Cmd {
	a, name := d.app, uicontext.SanitizeLine(d.name(r))
	if r.ID == a.Backend.Session() {
		return a.Complain("this is your own UI; quit it with q")
	}
	text := []string{"Closes its session. It can reconnect."}
	if r.inFlight > 0 {
		text = append(text, termtext.Count(r.inFlight, "request")+" in flight will fail.")
	}
	return a.Push(&Confirm{Screen: a.Context, Title: "Disconnect " + name + "?", Text: text, Yes: "disconnect", Then: func() tea.Cmd {
		return func() tea.Msg {
			done := a.Backend.Disconnect(r.ID)
			return keys.FuncMsg(func() tea.Cmd {
				if !done {
					return a.Complain("%s has already disconnected", name)
				}
				return a.Say("Disconnected %s", name)
			})
		}
	}})
}
