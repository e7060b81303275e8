package tui

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"goblin/tui/list"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry"
	"goblin/tui/content"
	"goblin/tui/filter"
	"goblin/tui/keys"
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
	plain := p.all.t.Fields
	p.all.t.Fields = func(rows []*registry.Entry) []filter.Field {
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
	p.all.t.Orders = append(p.all.t.Orders, list.By(byUpdate, func(a, b *registry.Entry) int {
		subs := p.subs
		x, y := subs[spot{a.Server, a.Name}], subs[spot{b.Server, b.Name}]
		if c := y.LastUpdate.Compare(x.LastUpdate); c != 0 {
			return c
		}
		return strings.Compare(a.Listed, b.Listed)
	}))
	return p
}

func (p *resources) in() keys.Place { return keys.InResources }

func (p *resources) tab() (name, count string) {
	if p.app.open == paneResources {
		p.all.news, p.templates.news, p.updates = 0, 0, 0
	}
	count = grouped(p.all.t.Total())
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

// byUpdate is the order of the resources that changed last.
const byUpdate = "last update"

// current is the section that has the cursor.
func (p *resources) current() *catalog {
	if p.second {
		return p.templates
	}
	return p.all
}

// twin filters both sections by the same text.
type twin struct {
	list.Rows
	other list.Rows
}

func (t twin) Refilter() tea.Cmd { return tea.Batch(t.Rows.Refilter(), t.other.Refilter()) }

func (t twin) Filter(typed string) tea.Cmd {
	return tea.Batch(t.Rows.Filter(typed), t.other.Filter(typed))
}

func (p *resources) rows() list.Rows {
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
	if n := p.templates.t.Total(); n > 0 {
		below = min(p.templates.t.Len(), max(2, h/4))
		if p.second {
			below = min(p.templates.t.Len(), max(2, h/2))
		}
	}
	if p.templates.t.Total() == 0 {
		p.split, p.second = -1, false
		return p.all.t.Lines(lk, w, h, focused, p.row)
	}
	p.split = max(0, h-below-1)
	lines := p.all.t.Section(!p.second).Lines(lk, w, p.split, focused, p.row)
	lines = append(lines, look.Blank(w))
	return append(lines, p.templates.t.Section(p.second).Lines(lk, w, h-p.split-1, focused, p.templateRow)...)
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
		cells += p.all.t.Mark(lk, lk.Fit(clean(e.Server), server-1), cmpStyle(base, lk.Dim)) + " "
	}
	if mime > 0 {
		cells += p.all.cell(lk, e.MIME, mime-1, cmpStyle(base, lk.Dim)) + " "
	}
	if bytes > 0 {
		cells += lk.Dim.On(lk.Right(size(e.Size), bytes-1)) + " "
	}
	return cells + p.all.t.Mark(lk, lk.Middle(clean(e.Listed), room-server-mime-bytes), base) + right
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
	return cells + p.templates.t.Mark(lk, lk.Middle(clean(e.Listed), w-3-mime), base) + base.On(right)
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
	if i := t.Off + y; i < t.Len() {
		t.To(i)
		return true
	}
	return false
}

func (p *resources) wheel(y, by int) {
	if p.split >= 0 && y > p.split {
		p.templates.t.Scroll(by)
		return
	}
	p.all.t.Scroll(by)
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
	if p.templates.t.Total() == 0 {
		return 0, 1
	}
	if p.second {
		at = 1
	}
	return at, 2
}

func (p *resources) choose(part int) { p.second = part == 1 }

// bare says whether there is no row in either section.
func (p *resources) bare() bool { return p.all.t.Len() == 0 && p.templates.t.Len() == 0 }

func (p *resources) item() item { return p.current().item() }

func (p *resources) subject() subject {
	e, ok := p.current().t.Selected()
	if !ok {
		return subject{}
	}
	it := p.item()
	inv := kept(p.app.reg, it)
	at, _, _ := p.means(it)
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
				f := []content.Fact{{Label: "expanded", Value: inv.Expanded}}
				if has {
					f = append(f, content.Fact{Label: "subscription", Value: subscriptionText(sub, holders(sub, session))})
				}
				blocks = append(blocks, content.Block{Kind: content.Facts, Facts: f, Unmarked: true})
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

func (p *resources) acts() map[string]keys.Act {
	return map[string]keys.Act{
		"copy": {Why: p.none}, "copy-content": {Why: p.none}, "clear": {Why: p.none},
		"open":      {Why: p.none, Run: p.openItem},
		"reload":    {Why: p.none, Run: p.reload},
		"call":      {Why: p.whyNotCall, Run: func() tea.Cmd { return p.app.expand(p.item()) }},
		"subscribe": {Why: func() string { return cmp.Or(p.none(), p.whyNotSubscribe(p.item())) }, Run: func() tea.Cmd { return p.toggle(p.item()) }},
		"templates": {Why: p.whyNoTemplates, Run: func() tea.Cmd {
			p.second = !p.second
			return nil
		}},
		"subscribed": {Run: func() tea.Cmd {
			typed, _ := p.rows().Filtered()
			return p.app.setFilter(filter.Toggle(typed, "sub", "yes"))
		}},
	}
}

func (p *resources) none() string {
	if !p.item().ok {
		return "there is no resource here"
	}
	return ""
}

func (p *resources) whyNoTemplates() string {
	if p.templates.t.Total() == 0 {
		return "no server offers templates"
	}
	return ""
}

func (p *resources) whyNotCall() string {
	if why := p.none(); why != "" || p.second {
		return why
	}
	return "only templates are expanded; Enter reads a resource"
}

// openItem reads a resource, or opens the form of a template.
func (p *resources) openItem() tea.Cmd {
	it := p.item()
	if p.second {
		p.app.opened = true
		return p.app.expand(it)
	}
	p.looked(it)
	p.app.openDetail(true)
	return p.read(it, true, true)
}

// reload reads once more; a template, with the variables of the last time.
func (p *resources) reload() tea.Cmd {
	it := p.item()
	if !p.second {
		p.looked(it)
		return p.read(it, false, true)
	}
	if inv := kept(p.app.reg, it); inv != nil {
		return p.app.calls.start(request{item: it, method: "resources/read", args: inv.Params, meta: inv.Meta, expanded: inv.Expanded, show: true})
	}
	return p.app.expand(it)
}

// looked says that the updates so far were seen.
func (p *resources) looked(it item) {
	at, _, _ := p.means(it)
	p.seen[at] = p.subs[at].Updates
}

// read fetches a resource, unless that is under way.
func (p *resources) read(it item, quiet, show bool) tea.Cmd {
	if p.app.calls.of(it) != nil {
		return nil
	}
	return p.app.calls.start(request{item: it, method: "resources/read", quiet: quiet, show: show})
}
