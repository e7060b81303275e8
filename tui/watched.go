package tui

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry"
	"goblin/tui/filter"
	"goblin/tui/look"
)

// watched is the list of all subscriptions, whoever holds them.
type watched struct {
	app       *app
	t         *table[registry.SubscriptionState]
	names     map[string]string // of sessions
	bar       field
	filtering bool
	reading   bool // a command reads the list
	late      bool // it changed since it was read
}

func newWatched(a *app) dialog {
	d := &watched{app: a, bar: newField(a.look)}
	key := func(s registry.SubscriptionState) string { return s.Server + "\x00" + s.URI }
	d.t = newTable(a.ctx, a.now, key,
		func(s registry.SubscriptionState) string { return s.Listed + "\x00" + s.URI + "\x00" + s.Error },
		func(rows []registry.SubscriptionState) []filter.Field {
			return []filter.Field{
				{Name: "server", Aliases: []string{"srv"}, Kind: filter.Text, Help: "its server", Text: func(i int) string { return rows[i].Server }},
				{Name: "status", Kind: filter.Text, Help: "asked, on or refused", Text: func(i int) string { return rows[i].Status }},
			}
		},
		order[registry.SubscriptionState]{name: "server"},
		order[registry.SubscriptionState]{"last change", func(x, y registry.SubscriptionState) int {
			return cmp.Or(y.LastUpdate.Compare(x.LastUpdate), cmp.Compare(key(x), key(y)))
		}},
		order[registry.SubscriptionState]{"updates", func(x, y registry.SubscriptionState) int {
			return cmp.Or(cmp.Compare(y.Updates, x.Updates), cmp.Compare(key(x), key(y)))
		}})
	// A list that is just opened may not be empty for the first moment.
	rows := a.reg.Subscriptions()
	d.readNames()
	d.t.refresh(0, func() []registry.SubscriptionState { return rows })
	return d
}

// refresh follows the registry while the list is open.
func (d *watched) refresh(what registry.Changes) tea.Cmd {
	if what&registry.Sessions != 0 {
		d.readNames()
	}
	if what&registry.Subscriptions == 0 {
		return nil
	}
	d.late = true
	return d.read()
}

// read brings the list to what there is. One command reads at a time; what
// changes meanwhile is read after it.
func (d *watched) read() tea.Cmd {
	if d.reading || !d.late {
		return nil
	}
	d.late = false
	rows := d.app.reg.Subscriptions()
	cmd := d.t.refresh(len(rows), func() []registry.SubscriptionState { return rows })
	if cmd == nil {
		return nil
	}
	d.reading = true
	return afterwards(cmd, func() tea.Cmd {
		d.reading = false
		return d.read()
	})
}

func (d *watched) readNames() {
	d.names = map[string]string{}
	for _, s := range d.app.reg.Sessions() {
		name := clean(cmp.Or(s.ClientTitle, s.Client, s.ID))
		switch {
		case s.ID == d.app.backend.Session():
			name = "you"
		case s.Screen:
			name = "another screen"
		}
		d.names[s.ID] = cutText(name, 40)
	}
}

func (d *watched) heading() string {
	n := grouped(d.t.total())
	if d.t.typed != "" {
		n = grouped(d.t.len()) + "/" + n
	}
	by := ""
	if d.t.order > 0 {
		by = " by " + d.t.sorting()
	}
	return "Subscriptions " + n + by
}

func (d *watched) size(w, h int) (int, int) { return min(w, 120), min(h, max(12, d.t.total()+7)) }
func (d *watched) typing() bool             { return d.filtering }

func (d *watched) background(tea.Msg) tea.Cmd { return nil }

func (d *watched) hints() []hint {
	if d.filtering {
		return searchActs().hints()
	}
	return watchedActs().hints()
}

// lines are the rows, and below them all about the one under the cursor.
func (d *watched) lines(w, h int) []string {
	lk := d.app.look
	if d.t.total() == 0 {
		return lk.Lines([]string{
			"", "  Nobody is subscribed to anything.", "",
			"  s on a resource (" + lk.Key.On("4") + ") subscribes: its updates are counted here",
			"  and marked there. Clients' subscriptions stand here too.",
		}, w, h)
	}
	body := max(h-3, 1)
	out := d.t.lines(lk, w, body, true, d.row)
	if d.t.len() == 0 && body > 1 {
		out[1] = lk.Fit("  Nothing matches "+clean(d.t.typed)+"; Esc clears the filter.", w)
	}
	var below []string
	if s, ok := d.t.selected(); ok {
		who := s.Status + "  " + cmp.Or(d.holders(s, 20), "nobody holds it")
		if s.Error != "" {
			who = lk.Bad.On(clean(s.Status + ": " + s.Error))
		}
		below = []string{" " + lk.Middle(clean(s.Listed), w-2), " " + who}
	}
	out = append(out, lk.Border.On(strings.Repeat(lk.Horizontal, max(w, 0))))
	if d.filtering {
		d.bar.Width = max(1, w-5)
		below = append(below[:min(1, len(below))], " "+lk.Accent.On("/")+" "+d.bar.View())
	}
	return lk.Lines(append(out, below...), w, h)
}

// row draws one: mark, URI, server, holders, updates, last change.
func (d *watched) row(s registry.SubscriptionState, w int) string {
	lk := d.app.look
	mark, style := lk.Asked, look.Style("")
	switch s.Status {
	case registry.SubscriptionOn:
		mark, style = lk.On, lk.Good
	case registry.SubscriptionRefused:
		mark, style = lk.Refused, lk.Bad
	}
	server, who := 0, 0
	if w >= 90 {
		server = 14
	}
	switch {
	case w >= 110:
		who = 30
	case w >= 60:
		who = 18
	}
	updates, last := "", ""
	if s.Updates > 0 {
		updates = grouped(int(s.Updates))
		last = age(d.app.now().Sub(s.LastUpdate))
	}
	room := max(w-2-server-who-7-11, 8)
	line := style.On(mark) + " " + d.t.mark(lk, lk.Middle(clean(s.Listed), room), "")
	if server > 0 {
		line += " " + d.t.mark(lk, lk.Fit(clean(s.Server), server-1), lk.Dim)
	}
	if who > 0 {
		text := lk.Fit(d.holders(s, 3), who-1)
		if s.Error != "" {
			text = lk.Bad.On(lk.Fit(clean(s.Error), who-1))
		}
		line += " " + text
	}
	return line + " " + lk.Right(updates, 6) + " " + lk.Dim.On(lk.Right(last, 10))
}

// holders names at most most of those that hold a subscription.
func (d *watched) holders(s registry.SubscriptionState, most int) string {
	counts := map[string]int{}
	var names []string
	known := 0
	for _, id := range s.Sessions {
		name, ok := d.names[id]
		if !ok {
			continue // it has just gone, or just come
		}
		known++
		if counts[name]++; counts[name] == 1 {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(x, y string) int {
		return cmp.Or(cmp.Compare(b2i(y == "you"), b2i(x == "you")), cmp.Compare(x, y))
	})
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
			return count(more, "client")
		}
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (d *watched) update(msg tea.Msg) (tea.Cmd, bool) {
	switch msg := msg.(type) {
	case tea.MouseMsg:
		switch {
		case msg.Button == tea.MouseButtonWheelDown:
			d.t.scroll(3)
		case msg.Button == tea.MouseButtonWheelUp:
			d.t.scroll(-3)
		case msg.Button == tea.MouseButtonLeft && msg.Action == tea.MouseActionPress:
			d.t.click(msg.Y)
		}
	case tea.KeyMsg:
		if d.filtering {
			return d.typeFilter(msg), false
		}
		return d.press(msg)
	}
	return nil, false
}

func (d *watched) press(key tea.KeyMsg) (tea.Cmd, bool) {
	a := d.app
	s, ok := d.t.selected()
	id := watchedActs().of(key)
	t := d.t
	scrolled(id, t.move, func(by float64) { t.move(int(by * float64(t.window()))) }, func(bottom bool) {
		t.to(0)
		if bottom {
			t.to(t.len() - 1)
		}
	})
	switch id {
	case "back":
		if t.typed != "" {
			return t.filter(""), false
		}
		return nil, true
	case "close":
		return nil, true
	case "visit":
		if ok {
			a.drop(d)
			return d.visit(s), true
		}
	case "toggle":
		if ok {
			return d.toggle(s), false
		}
	case "copy":
		return a.copy(s.Listed, "the URI"), false
	case "sort":
		return t.sorted(), false
	case "filter":
		d.filtering = true
		d.bar.Set(t.typed)
	}
	return nil, false
}

func (d *watched) typeFilter(key tea.KeyMsg) tea.Cmd {
	switch searchActs().of(key) {
	case "keep":
		d.filtering = false
		return nil
	case "clear":
		d.filtering = false
		return d.t.filter("")
	case "up":
		d.t.move(-1)
		return nil
	case "down":
		d.t.move(1)
		return nil
	}
	if d.bar.Update(key) {
		return d.t.filter(d.bar.Value())
	}
	return nil
}

func subscribed(s registry.SubscriptionState) item {
	return item{kind: registry.Resource, server: s.Server, name: s.URI, listed: s.Listed, ok: true}
}

// toggle begins or ends this screen's own subscription.
func (d *watched) toggle(s registry.SubscriptionState) tea.Cmd {
	p := d.app.panes[paneResources].(*resources)
	if why := p.whyNotSubscribe(subscribed(s)); why != "" {
		return d.app.complain("%s", why)
	}
	return p.toggle(subscribed(s))
}

// visit goes to the resource that is subscribed to.
func (d *watched) visit(s registry.SubscriptionState) tea.Cmd {
	a := d.app
	rows := a.panes[paneResources].(*resources).all.t.rows
	if !slices.ContainsFunc(rows, func(e *registry.Entry) bool { return e.Listed == s.Listed }) {
		return tea.Batch(a.show(paneResources), a.complain("%s is in no list: it came of a template or a link", s.Listed))
	}
	return a.goToListed(registry.Resource, s.Listed)
}
