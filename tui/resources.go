package tui

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry"
	"goblin/tui/content"
	"goblin/tui/filter"
	"goblin/tui/look"
)

// resources is the pane of resources, with the templates as a second section.
type resources struct {
	app       *app
	all       *catalog
	templates *catalog
	second    bool // the templates have the cursor
	split     int  // the line of the rule before the templates, -1 for none

	subs    map[spot]registry.SubscriptionState // replaced, never changed
	reading bool                                // a command reads them anew
	stale   bool                                // … and they changed again since
	asking  map[spot]bool                       // a change of this screen's own is on its way
	seen    map[spot]uint64                     // updates when the row was looked at
	reread  map[spot]bool                       // a read after an update is on its way
	updates int                                 // since the pane was last open
}

// spot is a resource of a server.
type spot struct{ server, uri string }

// settle is how long updates may come before a preview is read again.
const settle = 250 * time.Millisecond

func newResources(a *app) *resources {
	p := &resources{
		app: a, split: -1, subs: map[spot]registry.SubscriptionState{}, asking: map[spot]bool{},
		seen: map[spot]uint64{}, reread: map[spot]bool{},
	}
	p.all = newCatalog(a, registry.Resource)
	p.templates = newCatalog(a, registry.Template)
	plain := p.all.t.fields
	p.all.t.fields = func(rows []*registry.Entry) []filter.Field {
		subs := p.subs // replaced, never changed
		at := func(i int) (registry.SubscriptionState, bool) {
			s, ok := subs[spot{rows[i].Server, rows[i].Name}]
			return s, ok
		}
		return append(plain(rows),
			filter.Field{Name: "sub", Kind: filter.YesNo, Help: "subscribed: yes or no", YesNo: func(i int) bool {
				s, ok := at(i)
				return ok && s.Status != registry.SubscriptionRefused
			}},
			filter.Field{Name: "updated", Kind: filter.Age, Help: "last update: <5m, >1h", Time: func(i int) time.Time {
				s, _ := at(i)
				return s.LastUpdate
			}},
			filter.Field{Name: "size", Kind: filter.Number, Help: "bytes: >10k", Number: func(i int) float64 { return float64(rows[i].Size) }})
	}
	p.all.t.orders = append(p.all.t.orders, order[*registry.Entry]{byUpdate, func(a, b *registry.Entry) int {
		subs := p.subs
		x, y := subs[spot{a.Server, a.Name}], subs[spot{b.Server, b.Name}]
		if c := y.LastUpdate.Compare(x.LastUpdate); c != 0 {
			return c
		}
		return strings.Compare(a.Listed, b.Listed)
	}})
	return p
}

func (p *resources) in() place { return inResources }

func (p *resources) tab() (name, count string) {
	if p.app.open == paneResources {
		p.all.news, p.templates.news, p.updates = 0, 0, 0
	}
	count = grouped(p.all.t.total())
	if n := p.all.news + p.templates.news + p.updates; n > 0 {
		count += " " + p.app.look.Delta + grouped(n)
	}
	return "Resources", count
}

func (p *resources) follows() registry.Changes {
	return registry.Resources | registry.Templates | registry.Subscriptions | registry.Cached | registry.Servers
}

func (p *resources) refresh(what registry.Changes) tea.Cmd {
	var cmds []tea.Cmd
	if what&registry.Subscriptions != 0 {
		cmds = append(cmds, p.readSubscriptions())
	}
	cmds = append(cmds, p.all.refresh(), p.templates.refresh(), p.follow())
	return tea.Batch(cmds...)
}

// readSubscriptions reads the table of subscriptions: in a command where there
// are many, one at a time.
func (p *resources) readSubscriptions() tea.Cmd {
	if p.reading {
		p.stale = true
		return nil
	}
	reg := p.app.reg
	read := func() map[spot]registry.SubscriptionState {
		all := reg.Subscriptions()
		subs := make(map[spot]registry.SubscriptionState, len(all))
		for _, s := range all {
			subs[spot{s.Server, s.URI}] = s
		}
		return subs
	}
	if len(p.subs) <= atOnce/3 {
		return p.take(read(), 0)
	}
	p.reading = true
	old := p.subs
	return func() tea.Msg {
		subs := read()
		news := updatesSince(old, subs)
		return done(func() tea.Cmd {
			p.reading = false
			cmd := p.take(subs, news)
			if p.stale {
				p.stale = false
				return tea.Batch(cmd, p.readSubscriptions())
			}
			return cmd
		})
	}
}

// updatesSince counts the updates that came between two readings.
func updatesSince(old, now map[spot]registry.SubscriptionState) (n int) {
	for at, s := range now {
		if before := old[at].Updates; s.Updates > before {
			n += int(s.Updates - before)
		}
	}
	return n
}

func (p *resources) take(subs map[spot]registry.SubscriptionState, news int) tea.Cmd {
	if news == 0 {
		news = updatesSince(p.subs, subs)
	}
	p.updates += news
	p.subs = subs
	t := p.all.t
	if strings.Contains(t.typed, "sub:") || strings.Contains(t.typed, "updated:") || t.orders[t.order].name == byUpdate {
		return tea.Batch(t.refilter(), p.follow())
	}
	return p.follow()
}

// byUpdate is the order of the resources that changed last.
const byUpdate = "last update"

// follow reads the resource that is looked at again when it was updated. Many
// updates in a row are one read.
func (p *resources) follow() tea.Cmd {
	it := p.item()
	if p.app.open != paneResources || !p.app.detailShown() || !it.ok || p.second {
		return nil
	}
	at := spot{it.server, it.name}
	inv := kept(p.app.reg, it)
	sub, ok := p.subs[at]
	if !ok || sub.Status != registry.SubscriptionOn || inv == nil || !inv.Stale || p.reread[at] {
		return nil
	}
	if s, known := p.app.reg.State(it.server); !known || s.State != registry.StateReady {
		return nil
	}
	p.reread[at] = true
	return p.app.after(settle, done(func() tea.Cmd {
		delete(p.reread, at)
		if p.item() != it || p.app.calls.of(it) != nil {
			return nil
		}
		p.looked(it)
		return p.read(it, true, false)
	}))
}

// current is the section that has the cursor.
func (p *resources) current() *catalog {
	if p.second {
		return p.templates
	}
	return p.all
}

// twin filters both sections by the same text.
type twin struct {
	rows
	other rows
}

func (t twin) refilter() tea.Cmd { return tea.Batch(t.rows.refilter(), t.other.refilter()) }

func (t twin) filter(typed string) tea.Cmd {
	return tea.Batch(t.rows.filter(typed), t.other.filter(typed))
}

func (p *resources) rows() rows {
	if p.second {
		return twin{p.templates.t, p.all.t}
	}
	return twin{p.all.t, p.templates.t}
}

func (p *resources) heading() (title, right string) {
	title, right = p.all.heading("Resources")
	return title, right
}

func (p *resources) lines(lk *look.Look, w, h int, focused bool) []string {
	below := 0
	if n := p.templates.t.total(); n > 0 {
		below = min(p.templates.t.len(), max(2, h/4))
		if p.second {
			below = min(p.templates.t.len(), max(2, h/2))
		}
	}
	if p.templates.t.total() == 0 {
		p.split, p.second = -1, false
		return p.all.t.lines(lk, w, h, focused, p.row)
	}
	p.split = max(0, h-below-1)
	lines := p.all.t.section(!p.second).lines(lk, w, p.split, focused, p.row)
	lines = append(lines, look.Blank(w))
	return append(lines, p.templates.t.section(p.second).lines(lk, w, h-p.split-1, focused, p.templateRow)...)
}

// row draws a resource: mark, server, type, size, URI, updates.
func (p *resources) row(e *registry.Entry, w int) string {
	lk := p.app.look
	at := spot{e.Server, e.Name}
	sub, has := p.subs[at]
	mark, style := " ", look.Style("")
	switch {
	case has && sub.Status == registry.SubscriptionOn:
		mark, style = lk.On, lk.Good
	case has && sub.Status == registry.SubscriptionAsked:
		mark = lk.Asked
	case has && sub.Status == registry.SubscriptionRefused:
		mark, style = lk.Refused, lk.Bad
	}
	base, right := look.Style(""), p.all.stale(e.Server)
	if right != "" {
		base, right = lk.Stale, lk.Stale.On(right)
	}
	left := style.On(mark) + p.all.mark(e) + " "
	if n := sub.Updates - min(p.seen[at], sub.Updates); n > 0 {
		right += " " + lk.Changed.On(lk.Delta+grouped(int(n)))
	}
	room := w - 3 - look.Width(right)
	mime, bytes := 18, 9
	if w >= besideWidth {
		mime = 26
	}
	if room-mime-bytes < leastURI+10 {
		bytes = 0
	}
	if room-mime-bytes < leastURI {
		mime = 0
	}
	cells, server := left, 0
	if room-mime-bytes > 90 {
		server = 16
		cells += p.all.t.mark(lk, lk.Fit(clean(e.Server), server-1), cmpStyle(base, lk.Dim)) + " "
	}
	if mime > 0 {
		cells += p.all.cell(lk, e.MIME, mime-1, cmpStyle(base, lk.Dim)) + " "
	}
	if bytes > 0 {
		cells += lk.Dim.On(lk.Right(size(e.Size), bytes-1)) + " "
	}
	return cells + p.all.t.mark(lk, lk.Middle(clean(e.Listed), room-server-mime-bytes), base) + right
}

// leastURI is how wide a URI must stay before other columns come.
const leastURI = 32

// cmpStyle is the first style that is one.
func cmpStyle(styles ...look.Style) look.Style {
	for _, s := range styles {
		if s != "" {
			return s
		}
	}
	return ""
}

func (p *resources) templateRow(e *registry.Entry, w int) string {
	lk := p.app.look
	base, right := look.Style(""), p.templates.stale(e.Server)
	if right != "" {
		base = lk.Stale
	}
	w -= look.Width(right)
	mime := 0
	if w >= 72 {
		mime = 20
	}
	cells := lk.Dim.On(lk.Template) + p.templates.mark(e) + " "
	if mime > 0 {
		cells += p.templates.cell(lk, e.MIME, mime-1, cmpStyle(base, lk.Dim)) + " "
	}
	return cells + p.templates.t.mark(lk, lk.Middle(clean(e.Listed), w-3-mime), base) + base.On(right)
}

// rule is the border between the two sections.
func (p *resources) rule() (y int, title, right string) {
	title, right = p.templates.heading("Templates")
	return p.split, title, right
}

func (p *resources) click(y int) bool {
	if p.split >= 0 && y == p.split {
		return false
	}
	p.second = p.split >= 0 && y > p.split
	if p.second {
		y -= p.split + 1
	}
	t := p.current().t
	if i := t.off + y; i < t.len() {
		t.to(i)
		return true
	}
	return false
}

func (p *resources) wheel(y, by int) {
	if p.split >= 0 && y > p.split {
		p.templates.t.scroll(by)
		return
	}
	p.all.t.scroll(by)
}

func (p *resources) empty() []string {
	if len(p.app.reg.States()) == 0 {
		return []string{"No servers. :setup shows how to add some."}
	}
	if p.app.head.starting > 0 {
		return []string{"Servers are starting; their resources come here."}
	}
	return []string{"No server offers resources.", "", "2 shows the tools, 1 the servers."}
}

func (p *resources) part() (at, of int) {
	if p.templates.t.total() == 0 {
		return 0, 1
	}
	if p.second {
		at = 1
	}
	return at, 2
}

func (p *resources) choose(part int) { p.second = part == 1 }

// bare says whether there is no row in either section.
func (p *resources) bare() bool { return p.all.t.len() == 0 && p.templates.t.len() == 0 }

func (p *resources) item() item { return p.current().item() }

func (p *resources) subject() subject {
	e, ok := p.current().t.selected()
	if !ok {
		return subject{}
	}
	it := p.item()
	inv := kept(p.app.reg, it)
	at := spot{e.Server, e.Name}
	sub, has := p.subs[at]
	state, _ := p.app.reg.State(e.Server)
	session := p.app.backend.Session()
	s := subject{
		key: e.Kind.String() + " " + e.Listed, title: e.Listed, running: p.app.calls.of(it), content: inv != nil, numbers: true,
		version: fmt.Sprintf("%p %s %v %s %d %v %s", e, versionOf(inv), has, sub.Status, sub.Updates, sub.Sessions, state.State),
	}
	if e.Kind == registry.Template {
		s.blocks = func(context.Context) []content.Block {
			hint := "Enter or c fills in the variables and reads what it stands for."
			blocks := []content.Block{{Kind: content.Facts, Facts: facts(e)}}
			if inv != nil {
				blocks = append(blocks, content.Block{Kind: content.Facts, Facts: []content.Fact{{Label: "expanded", Value: inv.Expanded}}})
			}
			blocks = append(blocks, keptBlocks(inv, func(b []byte) []content.Block { return content.FromResource(b) }, hint)...)
			return append(blocks, rawBlocks(e)...)
		}
		return s
	}
	who := holders(sub, session)
	s.blocks = func(context.Context) []content.Block {
		f := facts(e)
		if has {
			f = append(f, content.Fact{Label: "subscription", Value: subscriptionText(sub, who)})
		}
		hint := "Enter reads it, s subscribes to it."
		switch {
		case e.Server == registry.Local:
			hint = "Enter reads it."
		case state.State != registry.StateReady:
			f = append(f, content.Fact{Label: "stale", Value: e.Server + " is " + string(state.State)})
		}
		blocks := []content.Block{{Kind: content.Facts, Facts: f, Unmarked: true}}
		blocks = append(blocks, keptBlocks(inv, func(b []byte) []content.Block { return content.FromResource(b) }, hint)...)
		return append(blocks, rawBlocks(e)...)
	}
	return s
}

// holders says who holds a subscription.
func holders(sub registry.SubscriptionState, me string) string {
	others := sub.Holders
	you := ""
	if slices.Contains(sub.Sessions, me) {
		you = "you"
		others--
	}
	switch {
	case others <= 0:
		return you
	case you == "":
		return count(others, "client")
	default:
		return you + ", " + count(others, "other")
	}
}

func subscriptionText(sub registry.SubscriptionState, who string) string {
	text := sub.Status
	if sub.Error != "" {
		text += ": " + sub.Error
	}
	if who != "" {
		text += ", held by " + who
	}
	if sub.Updates > 0 {
		text += fmt.Sprintf(", %s, the last at %s", count(int(sub.Updates), "update"), sub.LastUpdate.Format("15:04:05"))
	}
	return text
}

func (p *resources) why(id string) string {
	it := p.item()
	switch id {
	case "open", "call", "reload", "subscribe", "copy", "copy-content", "clear":
		if !it.ok {
			return "there is no resource here"
		}
	}
	switch id {
	case "templates":
		if p.templates.t.total() == 0 {
			return "no server offers templates"
		}
	case "call":
		if !p.second {
			return "only templates are expanded; Enter reads a resource"
		}
	case "subscribe":
		return p.whyNotSubscribe(it)
	}
	return ""
}

func (p *resources) whyNotSubscribe(it item) string {
	if it.kind == registry.Template {
		return "a template cannot be subscribed to; expand it"
	}
	s, _ := p.app.reg.State(it.server)
	var can struct {
		Resources struct {
			Subscribe bool `json:"subscribe"`
		} `json:"resources"`
	}
	switch {
	case p.asking[spot{it.server, it.name}]:
		return "the server is being asked already"
	case p.held(spot{it.server, it.name}):
		return ""
	case it.server == registry.Local:
		return "Goblin's own resources have no updates; r reads again"
	case s.State != registry.StateReady:
		return fmt.Sprintf("%s is %s", it.server, s.State)
	case json.Unmarshal(s.Capabilities, &can) != nil || !can.Resources.Subscribe:
		return it.server + " does not offer subscriptions; r reads again"
	}
	return ""
}

func (p *resources) do(id string) (tea.Cmd, bool) {
	it := p.item()
	a := p.app
	switch id {
	case "open":
		a.opened = true
		if p.second {
			return a.expand(it), true
		}
		p.looked(it)
		if !a.detailShown() {
			a.inside = true
		}
		return p.read(it, true, true), true
	case "reload":
		if p.second {
			if inv := kept(a.reg, it); inv != nil {
				return a.calls.start(request{item: it, method: "resources/read", args: inv.Params, meta: inv.Meta, expanded: inv.Expanded, show: true}), true
			}
			return a.expand(it), true
		}
		p.looked(it)
		return p.read(it, false, true), true
	case "call":
		return a.expand(it), true
	case "templates":
		p.second = !p.second
		return nil, true
	case "subscribe":
		return p.toggle(it), true
	case "subscribed":
		typed, _ := p.rows().filtered()
		return a.setFilter(filter.Toggle(typed, "sub", "yes")), true
	}
	return nil, false
}

// looked says that the updates so far were seen.
func (p *resources) looked(it item) {
	at := spot{it.server, it.name}
	p.seen[at] = p.subs[at].Updates
}

// read fetches a resource, unless that is under way.
func (p *resources) read(it item, quiet, show bool) tea.Cmd {
	if p.app.calls.of(it) != nil {
		return nil
	}
	return p.app.calls.start(request{item: it, method: "resources/read", quiet: quiet, show: show})
}

// toggle asks for a subscription, or ends this screen's.
func (p *resources) toggle(it item) tea.Cmd {
	a := p.app
	at := spot{it.server, it.name}
	method, on := "resources/subscribe", !p.held(at)
	if !on {
		method = "resources/unsubscribe"
	}
	p.asking[at] = true
	p.seen[at] = p.subs[at].Updates
	params, _ := json.Marshal(map[string]string{"uri": it.listed}) // a string always encodes
	return func() tea.Msg {
		_, err := a.backend.Request(a.ctx, method, params, nil)
		return done(func() tea.Cmd {
			delete(p.asking, at)
			switch {
			case err != nil && on:
				return a.complain("%s refused: %s", it.listed, err)
			case err != nil:
				return a.complain("%s: %s", it.listed, err)
			case on:
				return a.say("Subscribed to %s", it.listed)
			}
			return a.say("No longer subscribed to %s", it.listed)
		})
	}
}

// held says whether this screen holds a subscription.
func (p *resources) held(at spot) bool {
	return slices.Contains(p.subs[at].Sessions, p.app.backend.Session())
}
