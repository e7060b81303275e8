package pane

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry"
	"goblin/registry/termtext"
	"goblin/tui/dialog"
	"goblin/tui/keys"
	"goblin/tui/list"
	"goblin/tui/resourcehistory"
	"goblin/tui/uicontext"
)

// readSubscriptions reads the subscriptions, in a command if there are many. Only one
// command runs at a time.
func (p *Resources) readSubscriptions() tea.Cmd {
	if p.reading {
		p.stale = true
		return nil
	}
	reg := p.app.Reg
	read := func() map[resourceKey]registry.SubscriptionState {
		all := reg.Subscriptions()
		subs := make(map[resourceKey]registry.SubscriptionState, len(all))
		for _, s := range all {
			subs[resourceKey{s.Server, s.URI}] = s
		}
		return subs
	}
	if len(p.subs) <= list.MaxSyncRows/3 {
		return p.setSubscriptions(read(), 0)
	}
	p.reading = true
	old := p.subs
	return func() tea.Msg {
		subs := read()
		news := updatesSince(old, subs)
		return keys.FuncMsg(func() tea.Cmd {
			p.reading = false
			cmd := p.setSubscriptions(subs, news)
			if p.stale {
				p.stale = false
				return tea.Batch(cmd, p.readSubscriptions())
			}
			return cmd
		})
	}
}

func updatesSince(old, now map[resourceKey]registry.SubscriptionState) (n int) {
	for at, s := range now {
		if before := old[at].Updates; s.Updates > before {
			n += int(s.Updates - before)
		}
	}
	return n
}

func (p *Resources) setSubscriptions(subs map[resourceKey]registry.SubscriptionState, news int) tea.Cmd {
	if news == 0 {
		news = updatesSince(p.subs, subs)
	}
	p.updates += news
	p.subs = subs
	t := p.All.Table
	if strings.Contains(t.FilterText, "sub:") || strings.Contains(t.FilterText, "updated:") || t.Orders[t.Order].Name == byUpdate {
		return tea.Batch(t.Refilter(), p.rereadUpdated())
	}
	return p.rereadUpdated()
}

// Many updates cause one read.
func (p *Resources) rereadUpdated() tea.Cmd {
	it := p.Item()
	if p.app.Open != PaneResources || !p.app.DetailShown() || it.IsEmpty() {
		return nil
	}
	at, _, ok := p.ResolveItem(it)
	inv := uicontext.CachedInvocation(p.app.Reg, it)
	sub, has := p.subs[at]
	if !ok || !has || sub.Status != registry.SubscriptionOn || inv == nil || !inv.Stale || p.rereading[at] {
		return nil
	}
	if s, known := p.app.Reg.State(it.Server); !known || s.State != registry.StateReady {
		return nil
	}
	p.rereading[at] = true
	return p.app.After(previewDelay, keys.FuncMsg(func() tea.Cmd {
		delete(p.rereading, at)
		if p.Item() != it || p.app.Calls.ForItem(it) != nil {
			return nil
		}
		p.markSeen(it)
		if inv := uicontext.CachedInvocation(p.app.Reg, it); it.Kind == registry.Template && inv != nil {
			return p.app.Calls.Start(uicontext.Request{Item: it, Method: "resources/read", Args: inv.Params, Meta: inv.Meta, Expanded: inv.Expanded, Silent: true})
		}
		return p.read(it, true, false)
	}))
}

// ResolveItem returns the resource of an item: for a template, its last expansion.
func (p *Resources) ResolveItem(it uicontext.Item) (at resourceKey, listed string, ok bool) {
	if it.Kind != registry.Template {
		return resourceKey{it.Server, it.Name}, it.Listed, !it.IsEmpty()
	}
	inv := uicontext.CachedInvocation(p.app.Reg, it)
	if inv == nil || inv.Expanded == "" {
		return at, "", false
	}
	t, err := p.app.Reg.ResolveResource(inv.Expanded)
	if err != nil {
		return at, "", false
	}
	return resourceKey{t.Server, t.Name}, inv.Expanded, true
}

func (p *Resources) holdersText(sub registry.SubscriptionState) string {
	if sub.Holders == 0 {
		return ""
	}
	var all []string
	others, screens, noun := sub.Holders, 0, "client"
	me := p.app.Backend.Session()
	if slices.Contains(sub.Sessions, me) {
		all, noun = append(all, "you"), "other"
		others--
	}
	for _, s := range p.app.Reg.Sessions() {
		if s.Screen && s.ID != me && slices.Contains(sub.Sessions, s.ID) {
			screens++
		}
	}
	if others -= screens; others > 0 {
		all = append(all, termtext.Count(others, noun))
	}
	switch {
	case screens == 1:
		all = append(all, "another UI")
	case screens > 1:
		all = append(all, termtext.Count(screens, "other UI"))
	}
	return strings.Join(all, ", ")
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
		text += fmt.Sprintf(", %s, last at %s", termtext.Count(int(sub.Updates), "update"), sub.LastUpdate.Format("15:04:05"))
	}
	return text
}

func (p *Resources) whyNotSubscribe(it uicontext.Item) string {
	at, _, ok := p.ResolveItem(it)
	if !ok {
		return "expand the template first (" + p.app.KeyOf("call") + "), then subscribe"
	}
	s, _ := p.app.Reg.State(it.Server)
	var can struct {
		Resources struct {
			Subscribe bool `json:"subscribe"`
		} `json:"resources"`
	}
	switch {
	case p.pending[at]:
		return "a request to the server is already running"
	case p.IsSubscribed(at):
		return ""
	case it.Server == registry.Local:
		return "Goblin's own resources have no updates; " + p.app.KeyOf("reload") + " reads again"
	case !IsReachable(s.State):
		return it.Server + " is " + s.State.Label()
	case json.Unmarshal(s.Capabilities, &can) != nil || !can.Resources.Subscribe:
		return it.Server + " does not offer subscriptions; " + p.app.KeyOf("reload") + " reads again"
	}
	return ""
}

// toggle subscribes or unsubscribes this UI. more counts successful requests of several;
// it is nil for a single one, which is reported by name.
func (p *Resources) toggle(it uicontext.Item, more *int) tea.Cmd {
	a := p.app
	at, listed, _ := p.ResolveItem(it)
	what := listed
	method, on := "resources/subscribe", !p.IsSubscribed(at)
	if !on {
		method = "resources/unsubscribe"
	}
	p.pending[at] = true
	p.seenUpdates[at] = p.subs[at].Updates
	params, _ := json.Marshal(map[string]string{"uri": listed}) // a string always encodes
	return func() tea.Msg {
		_, err := a.Backend.Request(a.Ctx, method, params, nil)
		return keys.FuncMsg(func() tea.Cmd {
			delete(p.pending, at)
			if err == nil && more != nil {
				*more++
				what = termtext.Count(*more, "resource")
			}
			switch {
			case err != nil && on:
				return a.Complain("%s refused: %s", listed, err)
			case err != nil:
				return a.Complain("%s: %s", listed, err)
			case on:
				a.contents.Follow(uicontext.Item{Kind: registry.Resource, Server: at.server, Name: at.uri, Listed: listed})
				return a.Say("Subscribed to %s", what)
			}
			return a.Say("Unsubscribed from %s", what)
		})
	}
}

// maxTogether is the maximum number of subscriptions that one key requests.
const maxTogether = 500

// toggleTicked subscribes to all marked resources, or unsubscribes if all are subscribed.
func (p *Resources) toggleTicked() tea.Cmd {
	rows := p.current().Table.Marked()
	if len(rows) < 2 {
		return p.toggle(p.Item(), nil)
	}
	if len(rows) > maxTogether {
		return p.app.Complain("at most %d resources can be subscribed together; filter the list first", maxTogether)
	}
	var done int
	var cmds []tea.Cmd
	why, all := "", true
	for _, e := range rows {
		all = all && p.IsSubscribed(resourceKey{e.Server, e.Name})
	}
	for _, e := range rows {
		it := uicontext.EntryItem(e)
		if no := p.whyNotSubscribe(it); no != "" {
			why = no
		} else if at, _, _ := p.ResolveItem(it); p.IsSubscribed(at) == all {
			cmds = append(cmds, p.toggle(it, &done))
		}
	}
	if why != "" {
		p.app.Complain("%s", why)
	}
	return tea.Batch(cmds...)
}

// IsSubscribed reports whether this UI is subscribed to a resource.
func (p *Resources) IsSubscribed(at resourceKey) bool {
	return slices.Contains(p.subs[at].Sessions, p.app.Backend.Session())
}

// ShowSubscriptions opens the list of all subscriptions.
func (a *Layout) ShowSubscriptions() tea.Cmd {
	p := a.resources()
	return a.Push(dialog.NewSubscriptions(dialog.SubscriptionsOptions{Context: a.Context, Toggle: p.toggleSubscription, Visit: p.visit}))
}

// ShowHistory opens the reads and updates of a resource.
func (a *Layout) ShowHistory(it uicontext.Item) tea.Cmd {
	p := a.resources()
	return resourcehistory.Show(resourcehistory.Options{Context: a.Context, Store: a.contents, Marks: a.compare, Subscribe: func(it uicontext.Item) tea.Cmd {
		if why := p.whyNotSubscribe(it); why != "" {
			return a.Complain("%s", why)
		}
		return p.toggle(it, nil)
	}}, it)
}

func (p *Resources) toggleSubscription(s registry.SubscriptionState) tea.Cmd {
	it := uicontext.Item{Kind: registry.Resource, Server: s.Server, Name: s.URI, Listed: s.Listed}
	if why := p.whyNotSubscribe(it); why != "" {
		return p.app.Complain("%s", why)
	}
	return p.toggle(it, nil)
}

func (p *Resources) visit(s registry.SubscriptionState) tea.Cmd {
	a := p.app
	if !slices.ContainsFunc(p.All.Table.Rows, func(e *registry.Entry) bool { return e.Listed == s.Listed }) {
		return tea.Batch(a.Show(PaneResources), a.Complain("%s is not listed; it comes from a template or a link", s.Listed))
	}
	return a.GoToListed(registry.Resource, s.Listed)
}
