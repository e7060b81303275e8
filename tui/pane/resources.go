package pane

import (
	"cmp"
	"context"
	"fmt"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry"
	"goblin/registry/keymap"
	"goblin/registry/query"
	"goblin/tui/dialog"
	"goblin/tui/keys"
	"goblin/tui/list"
	"goblin/tui/theme"
	"goblin/tui/uicontext"
	"goblin/tui/viewer"
)

// Resources is the pane of resources, with the templates as a second section.
type Resources struct {
	app             *Layout
	All             *catalog
	Templates       *catalog
	TemplatesChosen bool // see [Resources.templatesFocused]
	ruleLine        int  // of the rule above the templates, or -1

	subs        map[resourceKey]registry.SubscriptionState // replaced, never changed
	reading     bool                                       // a command reads them
	stale       bool                                       // … and they have changed since
	pending     map[resourceKey]bool                       // this UI's own change is in flight
	seenUpdates map[resourceKey]uint64                     // when the user last saw the row
	rereading   map[resourceKey]bool                       // a read after an update is in flight
	updates     int                                        // since the pane was last open
}

type resourceKey struct{ server, uri string }

// previewDelay is the delay of a preview after an update, to collect updates.
const previewDelay = 250 * time.Millisecond

func newResources(a *Layout) *Resources {
	p := &Resources{
		app: a, ruleLine: -1, subs: map[resourceKey]registry.SubscriptionState{}, pending: map[resourceKey]bool{},
		seenUpdates: map[resourceKey]uint64{}, rereading: map[resourceKey]bool{},
	}
	p.All = newCatalog(a, registry.Resource)
	p.Templates = newCatalog(a, registry.Template)
	p.Templates.below = []registry.Kind{registry.Skill}
	plain := p.All.Table.Fields
	p.All.Table.Fields = func(rows []*registry.Entry) []list.Field {
		subs := p.subs // replaced, never changed
		at := func(i int) (registry.SubscriptionState, bool) {
			s, ok := subs[resourceKey{rows[i].Server, rows[i].Name}]
			return s, ok
		}
		return append(plain(rows),
			list.Field{Name: "sub", Kind: list.YesNo, Help: "subscribed: yes or no", YesNo: func(i int) bool {
				s, ok := at(i)
				return ok && s.Status != registry.SubscriptionRefused
			}},
			list.Field{Name: "updated", Kind: list.Age, Help: "last update: <5m, >1h", Time: func(i int) time.Time {
				s, _ := at(i)
				return s.LastUpdate
			}},
			list.Field{Name: "size", Kind: list.Number, Help: "bytes: >10k", Number: func(i int) float64 { return float64(rows[i].Size) }})
	}
	p.All.Table.Orders = append(p.All.Table.Orders, list.NewOrder(byUpdate, func(a, b *registry.Entry) int {
		subs := p.subs
		x, y := subs[resourceKey{a.Server, a.Name}], subs[resourceKey{b.Server, b.Name}]
		return x.LastUpdate.Compare(y.LastUpdate)
	}).Descending())
	p.setColumns()
	return p
}

func (p *Resources) Place() keymap.Place { return keymap.InResources }

func (p *Resources) Tab() (name, count string) {
	if p.app.Open == PaneResources {
		p.All.unseen, p.Templates.unseen, p.updates = 0, 0, 0
	}
	count = uicontext.FormatCount(p.All.Table.Total())
	if n := p.All.unseen + p.Templates.unseen + p.updates; n > 0 {
		count += " " + p.app.Theme.Delta + uicontext.FormatCount(n)
	}
	return "Resources", count
}

func (p *Resources) Watches() registry.Changes {
	return registry.Resources | registry.Templates | registry.Skills | registry.Subscriptions | registry.Cached | registry.Servers
}

func (p *Resources) Refresh(what registry.Changes) tea.Cmd {
	var cmds []tea.Cmd
	if what&registry.Subscriptions != 0 {
		cmds = append(cmds, p.readSubscriptions())
	}
	cmds = append(cmds, p.All.Refresh(), p.Templates.Refresh(), p.rereadUpdated(), p.app.contents.Refresh())
	return tea.Batch(cmds...)
}

// by the most recent change
const byUpdate = "last update"

// templatesFocused reports whether the templates have the cursor: if chosen, or if a
// filter matches only them. The same applies to the resources.
func (p *Resources) templatesFocused() bool {
	here, there := p.All.Table, p.Templates.Table
	if p.TemplatesChosen {
		here, there = there, here
	}
	_, query := there.FilterQuery() // an invalid filter may name a field of one section
	return p.TemplatesChosen != (here.FilterText != "" && here.Len() == 0 && there.Len() > 0 && query.Problem() == "")
}

func (p *Resources) current() *catalog {
	if p.templatesFocused() {
		return p.Templates
	}
	return p.All
}

// linkedLists filters both sections by the same text.
type linkedLists struct {
	list.Rows
	other list.Rows
}

func (t linkedLists) Refilter() tea.Cmd { return tea.Batch(t.Rows.Refilter(), t.other.Refilter()) }

func (t linkedLists) Filter(typed string) tea.Cmd {
	return tea.Batch(t.Rows.Filter(typed), t.other.Filter(typed))
}

func (p *Resources) Rows() list.Rows {
	if p.templatesFocused() {
		return linkedLists{p.Templates.Table, p.All.Table}
	}
	return linkedLists{p.All.Table, p.Templates.Table}
}

func (p *Resources) Heading() (title, right string) { return p.All.heading("Resources") }

func (p *Resources) Lines(lk *theme.Theme, w, h int, focused bool) []string {
	if p.Templates.Table.Total() == 0 {
		p.ruleLine, p.TemplatesChosen = -1, false
		return p.All.Table.Grid(lk, w, h, focused)
	}
	part, second := 4, p.templatesFocused()
	if second {
		part = 2
	}
	below := min(p.Templates.Table.Len(), max(2, h/part))
	p.Templates.Table.NoHeader = below == 0 || h < 12
	if !p.Templates.Table.NoHeader {
		below++
	}
	p.ruleLine = max(0, h-below-1)
	lines := p.All.Table.SetFocused(!second).Grid(lk, w, p.ruleLine, focused)
	lines = append(lines, theme.Spaces(w))
	return append(lines, p.Templates.Table.SetFocused(second).Grid(lk, w, h-p.ruleLine-1, focused)...)
}

func (p *Resources) setColumns() {
	size := list.NumberColumn("size", 3, 8, func(e *registry.Entry) float64 { return float64(e.Size) }, func(e *registry.Entry, _ int) (string, theme.Style) {
		return uicontext.FormatSize(e.Size), p.app.Theme.Dim
	})
	size.HasValue = func(e *registry.Entry) bool { return e.Size >= 0 }
	p.All.Table.SetColumns(serverColumn(0), ownColumn("URI"), labelColumn(4), titleColumn(5), mimeColumn(2), size)
	p.All.Table.MarkWidth = 3
	p.All.Table.Marks = func(e *registry.Entry) string {
		mark := " "
		if sub, has := p.subs[resourceKey{e.Server, e.Name}]; has {
			sign, style := dialog.SubscriptionMark(p.app.Theme, sub.Status)
			mark = style.On(sign)
		}
		return mark + p.All.mark(e)
	}
	p.All.Table.Note = func(e *registry.Entry) string {
		at := resourceKey{e.Server, e.Name}
		if n := p.subs[at].Updates - min(p.seenUpdates[at], p.subs[at].Updates); n > 0 {
			return p.app.Theme.Changed.On(p.app.Theme.Delta + uicontext.FormatCount(int(n)))
		}
		return ""
	}
	p.Templates.Table.SetColumns(serverColumn(0), ownColumn("template"), labelColumn(3), titleColumn(4), mimeColumn(2))
	p.Templates.Table.MarkWidth = 3
	p.Templates.Table.Marks = func(e *registry.Entry) string {
		sign := p.app.Theme.Template
		if e.Kind == registry.Skill {
			sign = "s"
		}
		return p.app.Theme.Dim.On(sign) + p.Templates.mark(e)
	}
}

// Rule returns the border between the two sections.
func (p *Resources) Rule() (y int, title, right string) {
	rows, name := p.Templates.Table.Rows, "Templates"
	if n := len(rows); n > 0 && rows[0].Kind == registry.Skill {
		name = "Skills"
	} else if n > 0 && rows[n-1].Kind == registry.Skill {
		name = "Templates and skills"
	}
	title, right = p.Templates.heading(name)
	return p.ruleLine, title, right
}

func (p *Resources) Click(x, y int) (bool, tea.Cmd) {
	switch {
	case p.ruleLine < 0 || y < p.ruleLine:
		p.TemplatesChosen = false
		return p.All.Table.Click(x, y)
	case y == p.ruleLine:
		return false, nil
	}
	p.TemplatesChosen = true
	return p.Templates.Table.Click(x, y-p.ruleLine-1)
}

func (p *Resources) Wheel(_, y, by int) {
	if p.ruleLine >= 0 && y > p.ruleLine {
		p.Templates.Table.Scroll(by)
		return
	}
	p.All.Table.Scroll(by)
}

func (p *Resources) Empty() []string {
	return p.app.emptyList("resources", p.app.KeyOf("tools")+" shows the tools, "+p.app.KeyOf("servers")+" the servers.")
}

// Part returns the section that has the cursor, and the number of sections.
func (p *Resources) Part() (at, of int) {
	if p.Templates.Table.Total() == 0 || p.templatesFocused() != p.TemplatesChosen {
		return 0, 1
	}
	if p.TemplatesChosen {
		at = 1
	}
	return at, 2
}

// Choose moves the cursor to a section.
func (p *Resources) Choose(part int) { p.TemplatesChosen = part == 1 }

// IsEmpty reports whether both sections are empty.
func (p *Resources) IsEmpty() bool { return p.All.Table.Len() == 0 && p.Templates.Table.Len() == 0 }

func (p *Resources) Item() uicontext.Item { return p.current().item() }

// Marked returns the marked items, otherwise the one under the cursor.
func (p *Resources) Marked() []uicontext.Item { return p.current().ticked() }

func (p *Resources) Subject() Subject {
	e, ok := p.current().Table.Selected()
	if !ok {
		return Subject{}
	}
	it := p.Item()
	inv := uicontext.CachedInvocation(p.app.Reg, it)
	at, _, _ := p.ResolveItem(it)
	sub, has := p.subs[at]
	state, _ := p.app.Reg.State(e.Server)
	who := p.holdersText(sub)
	seen := dialog.VisibilityFields(p.app.Context, e)
	return Subject{
		Key: e.Kind.String() + " " + e.Listed, Title: e.Listed, running: p.app.Calls.ForItem(it), content: inv != nil, numbers: true,
		Version: fmt.Sprintf("%p %s %v %s %d %v %s %v", e, versionOf(inv), has, sub.Status, sub.Updates, sub.Sessions, state.State, seen),
		Blocks: func(context.Context) []viewer.Section {
			key := p.app.KeyOf
			subscribes := " subscribes."
			if p.IsSubscribed(at) {
				subscribes = " unsubscribes."
			}
			f, hint := append(facts(e), seen...), key("open")+" reads it, "+key("subscribe")+subscribes
			blocks := []viewer.Section{{Kind: viewer.Fields, Unmarked: e.Kind != registry.Template}}
			last := &blocks[0]
			if e.Kind == registry.Template {
				hint = key("open") + " or " + key("call") + " fills in the variables and reads the resource."
				if inv != nil {
					last.Fields, f = f, []viewer.Field{{Label: "expanded", Value: inv.Expanded}}
					blocks = append(blocks, viewer.Section{Kind: viewer.Fields, Unmarked: true})
					last = &blocks[1]
				}
			}
			if has {
				f = append(f, viewer.Field{Label: "subscription", Value: subscriptionText(sub, who)})
			}
			switch {
			case e.Kind == registry.Template:
			case e.Server == registry.Local:
				hint = key("open") + " reads it."
			case !IsReachable(state.State):
				f = append(f, viewer.Field{Label: "stale", Value: e.Server + " is " + state.State.Label()})
			}
			last.Fields = f
			return append(append(blocks, contentBlocks(inv, viewer.FromResource, p.app.unlessReadOnly(hint))...), rawBlocks(e)...)
		},
	}
}

func (p *Resources) Handlers() map[string]keys.Handler {
	return map[string]keys.Handler{
		"copy": {WhyDisabled: p.none}, "clear": {WhyDisabled: p.none}, "copy-content": {WhyDisabled: p.whyNoContent}, "save": {WhyDisabled: p.whyNoContent},
		"open":      {WhyDisabled: p.none, Run: p.openItem},
		"reload":    {WhyDisabled: p.none, Run: p.reload},
		"switch":    {WhyDisabled: func() string { return p.current().switchHandler().WhyDisabled() }, Run: func() tea.Cmd { return p.current().switchHandler().Run() }},
		"call":      {WhyDisabled: p.whyNotCall, Run: func() tea.Cmd { return dialog.Expand(p.app.Context, p.Item()) }},
		"subscribe": {WhyDisabled: func() string { return cmp.Or(p.none(), p.whyNotSubscribe(p.Item())) }, Run: p.toggleTicked},
		"seen":      p.All.hiddenHandler(func() tea.Cmd { return tea.Batch(p.All.toggleHidden(), p.Templates.toggleHidden()) }),
		"templates": {WhyDisabled: p.whyNotTurn, Run: func() tea.Cmd {
			p.TemplatesChosen = !p.TemplatesChosen
			return nil
		}, Label: func() string {
			return map[bool]string{false: "templates", true: "resources"}[p.templatesFocused()]
		}},
		"subscribed": {Run: func() tea.Cmd {
			typed, _ := p.Rows().FilterQuery()
			return p.app.SetFilter(query.Toggle(typed, "sub", "yes"))
		}},
	}
}

func (p *Resources) whyNotTurn() string {
	switch {
	case p.Templates.Table.Total() == 0:
		return "no server offers templates"
	case p.templatesFocused() != p.TemplatesChosen:
		return "the filter hides everything there"
	}
	return ""
}

func (p *Resources) none() string {
	if p.Item().IsEmpty() {
		return "no resource selected"
	}
	return ""
}

func (p *Resources) whyNoContent() string {
	return cmp.Or(p.none(), p.app.whyNoContent(p.Item(), "was not read yet; "+p.app.KeyOf("open")+" reads it"))
}

func (p *Resources) whyNotCall() string {
	if why := p.none(); why != "" || p.Item().Kind == registry.Template {
		return why
	}
	return "only templates are expanded; " + p.app.KeyOf("open") + " reads a resource"
}

func (p *Resources) openItem() tea.Cmd {
	it := p.Item()
	if p.app.ReadOnly != "" {
		return p.app.openDetail(true)
	}
	if it.Kind == registry.Template {
		p.app.Opened = true
		return dialog.Expand(p.app.Context, it)
	}
	p.markSeen(it)
	p.app.openDetail(true)
	return p.read(it, true, true)
}

// A template is read again with its last variables.
func (p *Resources) reload() tea.Cmd {
	it := p.Item()
	if it.Kind != registry.Template {
		p.markSeen(it)
		return p.read(it, false, true)
	}
	if inv := uicontext.CachedInvocation(p.app.Reg, it); inv != nil {
		return p.app.Calls.Start(uicontext.Request{Item: it, Method: "resources/read", Args: inv.Params, Meta: inv.Meta, Expanded: inv.Expanded, Show: true})
	}
	return dialog.Expand(p.app.Context, it)
}

func (p *Resources) markSeen(it uicontext.Item) {
	at, _, _ := p.ResolveItem(it)
	p.seenUpdates[at] = p.subs[at].Updates
}

func (p *Resources) read(it uicontext.Item, quiet, show bool) tea.Cmd {
	if p.app.Calls.ForItem(it) != nil {
		return nil
	}
	return p.app.Calls.Start(uicontext.Request{Item: it, Method: "resources/read", Silent: quiet, Show: show})
}
