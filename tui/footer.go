package tui

import (
	"slices"
	"strings"

	"goblin/registry"
	"goblin/registry/keymap"
	"goblin/tui/keys"
	"goblin/tui/pane"
	"goblin/tui/theme"
	"goblin/tui/uicontext"
)

func (a *app) footerLine() string {
	lk := a.Theme
	if n := len(a.Dialogs); n > 0 {
		return lk.Fit(" "+a.hints(keys.FitHints(a.DialogHints(a.Dialogs[n-1]), a.W-1)), a.W)
	}
	if a.filtering {
		hints := a.filterKeys().WithKeys(a.Actions).Hints()
		if a.searching {
			hints = slices.DeleteFunc(hints, func(h keys.Hint) bool { return h.Label == "earlier" }) // searches have no history
		} else {
			hints = append(hints, a.filterHints()...)
		}
		return lk.Fit(" "+a.hints(keys.FitHints(hints, a.W-1)), a.W)
	}
	var hints []keys.Hint
	in := a.focus()
	for _, id := range a.footer() {
		b := a.binding(id)
		if b.Where&in == 0 || len(b.Keys) == 0 || a.whyDisabled(b) != "" || a.isPointless(id) {
			continue
		}
		key := b.Keys[0]
		if other := axisPairs[id]; other != "" {
			key = a.keysOf(id, other)
		}
		hints = append(hints, keys.Hint{Key: key, Label: a.label(b)})
	}
	where := a.detailPosition()
	// Help and quit, the last two, stay if there is too little room.
	for len(hints) > 3 && theme.Width(a.hints(hints)) >= a.W-theme.Width(where) {
		hints = slices.Delete(hints, len(hints)-3, len(hints)-2)
	}
	return lk.Sides(" "+a.hints(hints), where, a.W)
}

// detailPosition returns the position in the detail if there is no border to show it.
func (a *app) detailPosition() string {
	if g := a.Geometry(); g.Border > 0 || g.Detail.H == 0 {
		return ""
	}
	text := a.Details[a.Open].Position(a.Inside, a.W)
	if text == "" {
		return ""
	}
	return "  " + a.Theme.Dim.On(text) + " "
}

// axisPairs are the opposites of keys that change the axis of the time line.
var axisPairs = map[string]string{"unfold": "fold", "sideways-back": "sideways"}

// isPointless reports whether a key has no effect on this row or would fail, so the
// footer omits it.
func (a *app) isPointless(id string) bool {
	it := a.Panes[a.Open].Item()
	switch id {
	case "log-in":
		return !a.needsLogin()
	case "edit-server":
		return a.Open != pane.PaneServers
	case "call":
		return !a.isCallable(it)
	case "reload": // unfetched content is opened first
		return a.Open != pane.PaneServers && a.Open != pane.PaneHome && (!a.isReachable(it) || uicontext.CachedInvocation(a.Reg, it) == nil)
	case "open":
		return a.Panes[a.Open].Rows().Len() == 0
	case "filter", "follow", "pause", "variables":
		return !a.Inside && a.Panes[a.Open].Rows().Total() == 0
	case "switch":
		return it.IsEmpty()
	case "sort", "next-row", "mark":
		return a.Panes[a.Open].Rows().Len() < 2
	case "mark-all":
		return a.hasFewToMark()
	case "seen":
		return a.Context.Profile == "" // without a profile, few rows are dim
	case "only-matches":
		return a.whyNotSearched() != ""
	case "enlarge":
		return a.Beside() || a.Zoomed()
	case "widen":
		return !a.DetailShown() && a.Split.Place != pane.PlaceHidden
	}
	return false
}

// hasFewToMark reports whether fewer than two rows can be marked.
func (a *app) hasFewToMark() bool {
	if a.Open == pane.PaneLogs {
		return a.Logs().InFlight() < 2
	}
	return a.Panes[a.Open].Rows().Len() < 2
}

func (a *app) isCallable(it uicontext.Item) bool {
	return a.Open == pane.PaneLogs || a.Open == pane.PaneSaved || a.isReachable(it)
}

func (a *app) isReachable(it uicontext.Item) bool {
	s, ok := a.Reg.State(it.Server)
	return !it.IsEmpty() && (it.Server == registry.Local || ok && pane.IsReachable(s.State))
}

// label returns a key's effect on this row, in a word or two.
func (a *app) label(b *keys.Binding) string {
	if does := a.Handlers[a.Open][b.ID].Label; does != nil {
		return does()
	}
	it := a.Panes[a.Open].Item()
	switch b.ID {
	case "subscribe":
		if a.isSubscribed() {
			return "unsubscribe"
		}
	case "call":
		switch {
		case a.Open == pane.PaneLogs:
			return "call again"
		case it.Kind == registry.Prompt:
			return "get"
		case it.Kind == registry.Template:
			return "expand"
		}
	case "reload":
		switch {
		case a.Open == pane.PaneServers:
			return "restart"
		case it.Kind == registry.Tool:
			return "call again"
		}
	case "answer":
		if a.answerAddsServer() {
			return "add server"
		}
	case "enable", "open":
		return a.serverLabel(b)
	case "switch":
		return a.toggleLabel(it)
	case "sort":
		if a.Open == pane.PaneLogs && a.Logs().Open == pane.TabTimeline {
			return "group"
		}
	case "widen":
		return a.widenLabel(b)
	}
	return b.Hint
}

func (a *app) serverLabel(b *keys.Binding) string {
	server := registry.ServerState{}
	if a.Open == pane.PaneServers {
		server, _ = a.findServer("")
	}
	switch {
	case b.ID == "enable" && server.State == registry.StateDisabled:
		return "enable"
	case b.ID == "enable":
		return "disable"
	case server.State == registry.StateSleeping:
		return "start"
	case server.State == registry.StateFailed, server.State == registry.StateRetrying:
		return "diagnose"
	}
	return b.Hint
}

func (a *app) toggleLabel(it uicontext.Item) string {
	e := a.Reg.Load().ByServerName(it.Server, it.Kind, it.Name)
	if e == nil {
		return "disable"
	}
	if by, _ := a.Backend.HiddenReason(a.Profile, e); by == "" || by == "search" {
		return "disable"
	}
	return "enable"
}

func (a *app) widenLabel(b *keys.Binding) string {
	switch {
	case a.Zoomed():
		return "show list"
	case a.Inside:
		return "zoom"
	case a.Split.Place == pane.PlaceHidden:
		return "show detail"
	}
	return b.Hint
}

func (a *app) filterHints() []keys.Hint {
	hints := []keys.Hint{{Key: "~", Label: "fuzzy"}, {Key: "-", Label: "exclude"}}
	names := ""
	for _, f := range a.Panes[a.Open].Rows().FilterFields() {
		names += " " + f.Name + ":"
	}
	if names != "" {
		hints = append(hints, keys.Hint{Key: names[1:], Label: "fields"})
	}
	return hints
}

func (a *app) isSubscribed() bool {
	p := a.Panes[pane.PaneResources].(*pane.Resources)
	at, _, ok := p.ResolveItem(a.Panes[a.Open].Item())
	return ok && p.IsSubscribed(at)
}

func (a *app) footer() []string {
	ids := []string{"back", "enlarge", "next-row", "tab-right", "filter", "next-match", "only-matches", "widen", "log-in", "subscribe", "call", "reload", "edit-server", "copy", "palette", "help"}
	if !a.Inside {
		ids = []string{"open", "log-in", "call", "subscribe", "run-folder", "variables", "approve", "enable", "reload", "edit-server", "answer", "switch", "seen", "templates", "tab-right", "follow", "compare", "save-call", "pause", "break", "filter", "sort", "shown", "widen", "copy", "palette", "mark", "mark-all", "help", "quit"}
	}
	if !a.Inside && a.Open == pane.PaneLogs && a.Logs().Open == pane.TabTimeline {
		ids = []string{"open", "call", "compare", "unfold", "sideways-back", "fit", "range", "sort", "tab-right", "follow", "pause", "break", "filter", "save-call", "shown", "widen", "copy", "help", "quit"}
	}
	if a.Open == pane.PaneHome && a.home().Count() > 0 {
		ids = slices.Insert(ids, 1, "mistakes")
	}
	if a.Calls.Len() > 0 || a.Open == pane.PaneHome || a.Open == pane.PaneLogs && a.Logs().WhyNotCancel() == "" {
		ids = append([]string{"cancel"}, ids...)
	}
	return ids
}

func (a *app) hints(all []keys.Hint) string {
	var texts []string
	for _, h := range all {
		texts = append(texts, a.Theme.Key.On(keymap.FormatKey(h.Key))+" "+h.Label)
	}
	return strings.Join(texts, "  ")
}
