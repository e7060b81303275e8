package pane

import (
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry"
	"goblin/registry/query"
	"goblin/tui/uicontext"
)

// Show opens a pane.
func (a *Layout) Show(pane int) tea.Cmd {
	a.OnShow()
	a.Open, a.Inside, a.zoomed = pane, false, false
	return a.Panes[pane].Refresh(registry.AllChanges)
}

// jump is a move to another place, with the state to restore.
type jump struct {
	from          int // pane
	inside        bool
	opened        bool   // the detail
	templates     bool   // templates of Resources
	tab           int    // of Logs
	to            int    // pane
	before, after string // filter of the target pane before and after the jump
}

const maxJumps = 50

// jumpTo opens a pane by calling arrive, then filters or searches there. Esc goes back.
func (a *Layout) jumpTo(to int, arrive func() tea.Cmd, then func() tea.Cmd) tea.Cmd {
	s := jump{from: a.Open, inside: a.Inside, opened: a.Opened, templates: a.resources().TemplatesChosen, tab: a.Logs().Open, to: to}
	cmd := arrive()
	s.before, _ = a.Panes[to].Rows().FilterQuery()
	cmd = tea.Batch(cmd, then())
	s.after, _ = a.Panes[to].Rows().FilterQuery()
	if s.from != to || s.tab != a.Logs().Open {
		a.jumps = append(a.jumps, s)
		a.jumps = a.jumps[max(0, len(a.jumps)-maxJumps):]
	}
	return cmd
}

// WhyNothingFound explains an empty Logs pane after a jump, or returns "".
func (a *Layout) WhyNothingFound(typed string) string {
	n := len(a.jumps) - 1
	if n < 0 || a.Open != PaneLogs || a.jumps[n].to != PaneLogs || a.jumps[n].after != typed {
		return ""
	}
	return "No " + map[bool]string{true: "requests", false: "lines"}[a.Logs().IsTraffic()] + " about it yet."
}

func (a *Layout) resources() *Resources { return a.Panes[PaneResources].(*Resources) }

// GoBack returns to the place before the last jump. It returns false if there is no jump
// or the filter was changed since.
func (a *Layout) GoBack() (tea.Cmd, bool) {
	n := len(a.jumps) - 1
	if n < 0 {
		return nil, false
	}
	s := a.jumps[n]
	typed, _ := a.Panes[a.Open].Rows().FilterQuery()
	if s.to != a.Open || typed != s.after && typed != "" {
		return nil, false
	}
	a.jumps = a.jumps[:n]
	cmd := a.SetFilter(s.before)
	if s.to == PaneLogs || s.from == PaneLogs {
		cmd = tea.Batch(cmd, a.Logs().Choose(s.tab))
	}
	a.resources().TemplatesChosen = s.templates
	cmd = tea.Batch(cmd, a.Show(s.from))
	a.Inside, a.Opened = s.inside, s.opened
	return cmd, true
}

// Visit opens a pane and clears the jumps, so that Esc does not go back.
func (a *Layout) Visit(pane int) tea.Cmd {
	a.jumps = nil
	return a.Show(pane)
}

// GoToListed selects an entry in its pane.
func (a *Layout) GoToListed(kind registry.Kind, listed string) tea.Cmd {
	to := paneOf(kind)
	return a.goTo(to, listed, func() {
		if p, ok := a.Panes[to].(*Resources); ok {
			p.TemplatesChosen = kind == registry.Template || kind == registry.Skill
		}
	})
}

func paneOf(kind registry.Kind) int {
	switch kind {
	case registry.Tool:
		return PaneTools
	case registry.Prompt:
		return PanePrompts
	}
	return PaneResources
}

// GoTo opens a pane with the cursor on a row. It clears a filter that hides the row. If
// the pane is reading its rows, the cursor moves once they are read.
func (a *Layout) GoTo(pane int, key string) tea.Cmd { return a.goTo(pane, key, func() {}) }

func (a *Layout) goTo(pane int, key string, choose func()) tea.Cmd {
	return a.jumpTo(pane, func() tea.Cmd {
		choose()
		return a.Show(pane)
	}, func() tea.Cmd {
		a.unfoldOwnTools(pane, key)
		r := a.Panes[pane].Rows()
		if r.Find(key) {
			a.CursorMoved()
		} else if typed, _ := r.FilterQuery(); typed != "" {
			return a.SetFilter("")
		}
		return nil
	})
}

func (a *Layout) unfoldOwnTools(pane int, key string) {
	p, ok := a.Panes[pane].(*Tools)
	if t, err := a.Reg.ResolveTool(key); ok && err == nil && t.Server == registry.Local && !p.All.own.Unfolded {
		p.All.own.Toggle()
	}
}

// Inspect shows the requests about an item.
func (a *Layout) Inspect(it uicontext.Item) tea.Cmd { return a.ShowTraffic(trafficFilterFor(it)) }

// ShowTraffic shows the traffic with a filter. Esc goes back.
func (a *Layout) ShowTraffic(typed string) tea.Cmd {
	return a.showLogs(TabTraffic, typed)
}

// TrafficOf shows the requests of a session.
func (a *Layout) TrafficOf(session string) tea.Cmd {
	return a.ShowTraffic(query.Set("", "session", []string{"=" + session}))
}

// ShowFiltered opens a pane with a filter. Esc goes back.
func (a *Layout) ShowFiltered(pane int, typed string) tea.Cmd {
	return a.jumpTo(pane, func() tea.Cmd { return a.Show(pane) }, func() tea.Cmd { return a.SetFilter(typed) })
}

func (a *Layout) showLogs(tab int, typed string) tea.Cmd {
	return a.jumpTo(PaneLogs,
		func() tea.Cmd { return tea.Batch(a.Show(PaneLogs), a.Logs().Choose(tab)) },
		func() tea.Cmd { return a.SetFilter(typed) })
}

// trafficFilterFor returns the filter for the requests about an item: by its listed name,
// its own name, or any expansion of a template.
func trafficFilterFor(it uicontext.Item) string {
	text := ""
	if it.Server != "" {
		text = query.Set(text, "server", []string{"=" + it.Server})
	}
	var names []string
	for _, name := range []string{it.Listed, it.Name} {
		switch {
		case name == "" || it.Name == "" || len(names) > 0 && it.Listed == it.Name:
		case it.Kind == registry.Template:
			names = append(names, strings.Join(templateLiterals(name), "*"))
		default:
			names = append(names, "="+name)
		}
	}
	if len(names) > 0 {
		text = query.Set(text, "name", names)
	}
	return text
}

// GoToItem goes to the item of a record, otherwise to its server.
func (a *Layout) GoToItem(r *registry.TrafficRecord) tea.Cmd {
	switch it := a.Logs().itemOf(r); {
	case !it.IsEmpty():
		return a.GoToListed(it.Kind, it.Listed)
	case r.Server == "" || r.Server == registry.Local:
		return a.Complain("%s has no listed item", r.Method)
	}
	a.Say("%s has no item; showing its server", uicontext.SanitizeLine(r.Method))
	return a.GoTo(PaneServers, r.Server)
}
