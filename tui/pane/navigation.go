package pane

import (
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry"
	"goblin/tui/list"
	"goblin/tui/uicontext"
)

// Show goes to a pane.
func (a *Desk) Show(pane int) tea.Cmd {
	a.Shown()
	a.Open, a.Inside, a.zoomed = pane, false, false
	return a.Panes[pane].Refresh(registry.AllChanges)
}

// step is a jump to another place, and what was before it.
type step struct {
	from          int // pane
	inside        bool
	second        bool   // of Resources
	tab           int    // of Logs
	to            int    // pane
	before, after string // the filter there before and after the jump
}

// mostSteps are remembered.
const mostSteps = 50

// jumps goes to a pane by arrive, and filters or finds there by then; Esc goes back.
func (a *Desk) jumps(to int, arrive func() tea.Cmd, then func() tea.Cmd) tea.Cmd {
	s := step{from: a.Open, inside: a.Inside, second: a.resources().Second, tab: a.Logs().Open, to: to}
	cmd := arrive()
	s.before, _ = a.Panes[to].Rows().Filtered()
	cmd = tea.Batch(cmd, then())
	s.after, _ = a.Panes[to].Rows().Filtered()
	if s.from != to || s.tab != a.Logs().Open {
		a.trail = append(a.trail, s)
		a.trail = a.trail[max(0, len(a.trail)-mostSteps):]
	}
	return cmd
}

// Sought says that Logs have nothing of what the user came for, "" while they are filtered
// by something else.
func (a *Desk) Sought(typed string) string {
	n := len(a.trail) - 1
	if n < 0 || a.Open != PaneLogs || a.trail[n].to != PaneLogs || a.trail[n].after != typed {
		return ""
	}
	return "There are no " + map[bool]string{true: "requests", false: "lines"}[a.Logs().Open == TabTraffic] + " about it yet."
}

func (a *Desk) resources() *Resources { return a.Panes[PaneResources].(*Resources) }

// Return goes back to where the last jump began; false if there is none, or the filter
// was changed since.
func (a *Desk) Return() (tea.Cmd, bool) {
	n := len(a.trail) - 1
	if n < 0 {
		return nil, false
	}
	s := a.trail[n]
	typed, _ := a.Panes[a.Open].Rows().Filtered()
	if s.to != a.Open || typed != s.after && typed != "" {
		return nil, false
	}
	a.trail = a.trail[:n]
	cmd := a.SetFilter(s.before)
	if s.to == PaneLogs || s.from == PaneLogs {
		cmd = tea.Batch(cmd, a.Logs().Choose(s.tab))
	}
	a.resources().Second = s.second
	cmd = tea.Batch(cmd, a.Show(s.from))
	a.Inside = s.inside
	return cmd, true
}

// Visit goes to a pane by its number, from which nothing leads back.
func (a *Desk) Visit(pane int) tea.Cmd {
	a.trail = nil
	return a.Show(pane)
}

// GoToListed goes to an entry of the catalog, by its listed name, in its pane.
func (a *Desk) GoToListed(kind registry.Kind, listed string) tea.Cmd {
	to := paneOf(kind)
	return a.goTo(to, listed, func() {
		if p, ok := a.Panes[to].(*Resources); ok {
			p.Second = kind == registry.Template || kind == registry.Skill
		}
	})
}

// paneOf is the pane that lists a kind.
func paneOf(kind registry.Kind) int {
	switch kind {
	case registry.Tool:
		return PaneTools
	case registry.Prompt:
		return PanePrompts
	}
	return PaneResources
}

// GoTo opens a pane with the cursor on a row. A filter that hides the row is
// cleared; a pane that reads its rows at this moment is waited for.
func (a *Desk) GoTo(pane int, key string) tea.Cmd { return a.goTo(pane, key, func() {}) }

func (a *Desk) goTo(pane int, key string, choose func()) tea.Cmd {
	return a.jumps(pane, func() tea.Cmd {
		choose()
		return a.Show(pane)
	}, func() tea.Cmd {
		a.reveal(pane, key)
		r := a.Panes[pane].Rows()
		if r.Find(key) {
			a.Moved()
		} else if typed, _ := r.Filtered(); typed != "" {
			return a.SetFilter("")
		}
		return nil
	})
}

// reveal unfolds Goblin's own tools before a jump to one of them.
func (a *Desk) reveal(pane int, key string) {
	p, ok := a.Panes[pane].(*Tools)
	if t, err := a.Reg.ResolveTool(key); ok && err == nil && t.Server == registry.Local && !p.All.unfold {
		p.All.toggleOwn()
	}
}

// Inspect shows the requests about an item.
func (a *Desk) Inspect(it uicontext.Item) tea.Cmd { return a.showTraffic(about(it)) }

// showTraffic shows the requests that a filter leaves.
func (a *Desk) showTraffic(typed string) tea.Cmd {
	return a.showLogs(TabTraffic, typed)
}

// TrafficOf shows the requests of a session.
func (a *Desk) TrafficOf(session string) tea.Cmd {
	return a.showTraffic(list.Set("", "session", []string{"=" + session}))
}

// showLogs jumps to what a filter leaves in a tab of Logs.
func (a *Desk) showLogs(tab int, typed string) tea.Cmd {
	return a.jumps(PaneLogs,
		func() tea.Cmd { return tea.Batch(a.Show(PaneLogs), a.Logs().Choose(tab)) },
		func() tea.Cmd { return a.SetFilter(typed) })
}

// about is the filter for the requests about an item: by its listed name, its
// own, or, for a template, by anything that it may have been expanded to.
func about(it uicontext.Item) string {
	text := ""
	if it.Server != "" {
		text = list.Set(text, "server", []string{"=" + it.Server})
	}
	var names []string
	for _, name := range []string{it.Listed, it.Name} {
		switch {
		case name == "" || it.Name == "" || len(names) > 0 && it.Listed == it.Name:
		case it.Kind == registry.Template:
			names = append(names, strings.Join(Literals(name), "*"))
		default:
			names = append(names, "="+name)
		}
	}
	if len(names) > 0 {
		text = list.Set(text, "name", names)
	}
	return text
}

// GoToItem goes to what a record is about, else to its server.
func (a *Desk) GoToItem(r *registry.TrafficRecord) tea.Cmd {
	switch it := a.Logs().itemOf(r); {
	case !it.Blank():
		return a.GoToListed(it.Kind, it.Listed)
	case r.Server == "" || r.Server == registry.Local:
		return a.Complain("%s is about nothing that is listed", r.Method)
	}
	a.Say("%s is about no item; this is its server", uicontext.Clean(r.Method))
	return a.GoTo(PaneServers, r.Server)
}
