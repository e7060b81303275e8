package dialog

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry"
	"goblin/registry/termtext"
	"goblin/tui/keys"
	"goblin/tui/list"
	"goblin/tui/textfield"
	"goblin/tui/theme"
	"goblin/tui/uicontext"
)

// SubscriptionsOptions connect the list of subscriptions with the panes.
type SubscriptionsOptions struct {
	*uicontext.Context
	Toggle func(registry.SubscriptionState) tea.Cmd // subscribes or unsubscribes this UI
	Visit  func(registry.SubscriptionState) tea.Cmd // opens the resource
}

// Subscriptions is a dialog that lists the subscriptions of all clients and UIs.
type Subscriptions struct {
	uicontext.ListDialog
	Search
	app     SubscriptionsOptions
	Table   *list.Table[registry.SubscriptionState]
	names   map[string]string // of sessions
	reading bool              // a command reads the list
	changed bool              // since the last read
}

// NewSubscriptions returns a dialog with the current subscriptions.
func NewSubscriptions(a SubscriptionsOptions) *Subscriptions {
	d := &Subscriptions{app: a}
	key := func(s registry.SubscriptionState) string { return s.Server + "\x00" + s.URI }
	d.Table = list.New(a.Ctx, a.Now, key,
		func(s registry.SubscriptionState) string { return s.Listed + "\x00" + s.URI + "\x00" + s.Error },
		func(rows []registry.SubscriptionState) []list.Field {
			return []list.Field{
				{Name: "server", Aliases: []string{"srv"}, Kind: list.Text, Help: "its server", Text: func(i int) string { return rows[i].Server }},
				{Name: "status", Kind: list.Text, Help: "asked, on or refused", Text: func(i int) string { return rows[i].Status }},
			}
		},
		list.Order[registry.SubscriptionState]{Name: "listed"})
	d.setColumns()
	d.Search = Search{Input: textfield.New(a.Theme), Rows: d.Table}
	// Filled at once, so a new list is never empty for a moment.
	rows := a.Reg.Subscriptions()
	d.readNames()
	d.Table.Refresh(0, func() []registry.SubscriptionState { return rows }, func() tea.Cmd { return nil })
	return d
}

func (d *Subscriptions) Refresh(what registry.Changes) tea.Cmd {
	if what&registry.Sessions != 0 {
		d.readNames()
	}
	if what&registry.Subscriptions == 0 {
		return nil
	}
	d.changed = true
	return d.read()
}

// read reloads the list if it changed. One command runs at a time; later changes follow
// it.
func (d *Subscriptions) read() tea.Cmd {
	if d.reading || !d.changed {
		return nil
	}
	d.changed = false
	rows := d.app.Reg.Subscriptions()
	d.reading = true
	return d.Table.Refresh(len(rows), func() []registry.SubscriptionState { return rows }, func() tea.Cmd {
		d.reading = false
		return d.read()
	})
}

func (d *Subscriptions) readNames() {
	d.names = map[string]string{}
	for _, s := range d.app.Reg.Sessions() {
		name := uicontext.SanitizeLine(cmp.Or(s.ClientTitle, s.Client, s.ID))
		switch {
		case s.ID == d.app.Backend.Session():
			name = "you"
		case s.Screen:
			name = "another UI"
		}
		d.names[s.ID] = uicontext.CutText(name, 40)
	}
}

func (d *Subscriptions) Heading() string {
	return strings.TrimSpace("Subscriptions " + RowCount(d.Table) + " " + d.Table.OrderText(d.app.Theme))
}

func (d *Subscriptions) Size(w, h int) (int, int) {
	return min(w, 120), min(h, max(13, d.Table.Total()+8))
}

func (d *Subscriptions) Lines(w, h int) []string {
	lk := d.app.Theme
	if d.Table.Total() == 0 {
		return lk.Lines([]string{
			"", "  No subscriptions.", "",
			"  Press " + d.app.KeyOf("subscribe") + " on a resource (" + lk.Key.On(d.app.KeyOf("resources")) + ") to subscribe. This list counts its updates",
			"  and includes the subscriptions of clients.",
		}, w, h)
	}
	body := max(h-3, 1)
	out := d.Table.Grid(lk, w, body, true)
	if d.Table.Len() == 0 && body > 1 {
		out[1] = lk.Fit("  No matches for "+uicontext.SanitizeLine(d.Table.FilterText)+"; "+d.app.KeyOf("subscriptions.back")+" clears the filter.", w)
	}
	var below []string
	if s, ok := d.Table.Selected(); ok {
		who := s.Status + "  " + cmp.Or(d.holderNames(s, 20), "no subscribers")
		if s.Error != "" {
			who = lk.Bad.On(uicontext.SanitizeLine(s.Status + ": " + s.Error))
		}
		below = []string{" " + lk.Middle(uicontext.SanitizeLine(s.Listed), w-2), " " + who}
	}
	out = append(out, lk.Border.On(strings.Repeat(lk.Horizontal, max(w, 0))))
	if d.Focused {
		below = append(below[:min(1, len(below))], d.line(lk, w))
	}
	return lk.Lines(append(out, below...), w, h)
}

func (d *Subscriptions) setColumns() {
	type column = list.Column[registry.SubscriptionState]
	updates := list.NumberColumn("updates", 2, 7, func(s registry.SubscriptionState) float64 { return float64(s.Updates) }, func(s registry.SubscriptionState, _ int) (string, theme.Style) {
		if s.Updates == 0 {
			return "", ""
		}
		return uicontext.FormatCount(int(s.Updates)), ""
	})
	updates.HasValue = func(s registry.SubscriptionState) bool { return s.Updates > 0 }
	last := column{
		Name: "last change", Priority: 3, NeededWidth: 11, AlignRight: true, Descending: true, Dim: true,
		Less:     func(x, y registry.SubscriptionState) int { return x.LastUpdate.Compare(y.LastUpdate) },
		HasValue: updates.HasValue,
		Show: func(s registry.SubscriptionState, _ int) (string, theme.Style) {
			if s.Updates == 0 {
				return "", ""
			}
			return termtext.Age(d.app.Now().Sub(s.LastUpdate)), ""
		},
	}
	d.Table.SetColumns(
		column{Name: "server", Priority: 4, MinWidth: 6, PreferredWidth: 14, Dim: true, Text: func(s registry.SubscriptionState) string { return s.Server }},
		column{Name: "URI", MinWidth: 16, PreferredWidth: 32, CutMiddle: true, Text: func(s registry.SubscriptionState) string { return s.URI }},
		column{Name: "subscribers", Priority: 1, MinWidth: 8, PreferredWidth: 18, Fills: true, Unsorted: true, Show: func(s registry.SubscriptionState, _ int) (string, theme.Style) {
			if s.Error != "" {
				return uicontext.SanitizeLine(s.Error), d.app.Theme.Bad
			}
			return d.holderNames(s, 3), ""
		}},
		updates, last)
	d.Table.MarkWidth = 2
	d.Table.Marks = func(s registry.SubscriptionState) string {
		mark, style := SubscriptionMark(d.app.Theme, s.Status)
		return style.On(mark)
	}
	d.Table.HiddenTexts = func(s registry.SubscriptionState) []string { return []string{s.Listed} }
}

func (d *Subscriptions) holderNames(s registry.SubscriptionState, most int) string {
	counts := map[string]int{}
	var names []string
	known := 0
	for _, id := range s.Sessions {
		name, ok := d.names[id]
		if !ok {
			continue // connected or disconnected just now
		}
		known++
		if counts[name]++; counts[name] == 1 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	if i := slices.Index(names, "you"); i >= 0 {
		names = slices.Insert(slices.Delete(names, i, i+1), 0, "you")
	}
	more := s.Holders - known
	for len(names) > most {
		last := names[len(names)-1]
		more += counts[last]
		names = names[:len(names)-1]
	}
	for i, name := range names {
		if n := counts[name]; n > 1 {
			names[i] = fmt.Sprintf("%s (%d)", name, n)
		}
	}
	if more > 0 {
		if len(names) == 0 {
			return termtext.Count(more, "client")
		}
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}

func (d *Subscriptions) Keys() keys.Table {
	if d.Focused {
		return d.Search.Keys()
	}
	return d.ListKeys()
}

// ListKeys returns the keys that work while no filter is typed.
func (d *Subscriptions) ListKeys() keys.Table {
	does := "subscribe"
	if d.Table != nil { // nil in the list of all keys
		if s, ok := d.Table.Selected(); ok && slices.Contains(s.Sessions, d.app.Backend.Session()) {
			does = "unsubscribe"
		}
	}
	return slices.Concat(
		keys.Table{
			{ID: "subscriptions.visit", Hint: "go to", Long: "Go to the resource", Run: d.Table.WithSelected(d.visit)},
			{ID: "subscriptions.toggle", Hint: does, Long: "Subscribe or unsubscribe", Run: d.Table.WithSelected(d.app.Toggle)},
		},
		d.FilterKeys("subscriptions"),
		keys.Table{{ID: "subscriptions.copy", Hint: "copy", Long: "Copy the URI", Run: d.copy}},
		d.CloseKeys("subscriptions", d.close),
		keys.Scrolling("scroll", func() keys.Scroller { return list.Cursor{List: d.Table} }))
}

func (d *Subscriptions) close() tea.Cmd { return d.app.Drop(d) }

func (d *Subscriptions) copy() tea.Cmd {
	s, _ := d.Table.Selected()
	return d.app.Copy(s.Listed, "the URI")
}

func (d *Subscriptions) visit(s registry.SubscriptionState) tea.Cmd {
	d.close()
	return d.app.Visit(s)
}

// SubscriptionMark returns the glyph of a subscription and its style.
func SubscriptionMark(lk *theme.Theme, status string) (string, theme.Style) {
	switch status {
	case registry.SubscriptionOn:
		return lk.On, lk.Good
	case registry.SubscriptionRefused:
		return lk.Refused, lk.Bad
	}
	return lk.Asked, ""
}
