package tui

import (
	"fmt"
	"slices"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry"
	"goblin/tui/content"
	"goblin/tui/look"
)

// toDetail opens the detail panel and goes there.
func (a *app) toDetail() tea.Cmd {
	a.inside, a.opened = true, true
	return nil
}

// openDetail opens the detail panel, and goes there if it has to or has no room
// beside the list.
func (a *app) openDetail(beside bool) tea.Cmd {
	a.opened = true
	if !beside || !a.detailShown() {
		a.inside = true
	}
	return nil
}

// found walks the matches of the search in the detail panel.
func (a *app) found(step func(*content.View)) func() tea.Cmd {
	return func() tea.Cmd {
		step(a.details[a.open].view)
		return nil
	}
}

func (a *app) sort() tea.Cmd {
	cmd := a.panes[a.open].rows().Sorted()
	a.say("Sorted by %s", a.panes[a.open].rows().Sorting())
	return cmd
}

// nextPlace puts the detail panel elsewhere.
func (a *app) nextPlace() tea.Cmd {
	a.layout.place = (a.layout.place + 1) % 4
	return a.say("Detail panel: %s", [...]string{"where there is room", "beside", "below", "hidden"}[a.layout.place])
}

// resize gives the list more percent of the room.
func (a *app) resize(by int) func() tea.Cmd {
	return func() tea.Cmd {
		a.layout.part = max(20, min(80, a.layout.part+by))
		return nil
	}
}

func (a *app) toggleMouse() tea.Cmd {
	a.mouse = !a.mouse
	if a.mouse {
		a.say("Mouse on")
		return tea.EnableMouseCellMotion
	}
	a.say("Mouse off: the terminal selects text again")
	return tea.DisableMouse
}

// copyName copies what the cursor is on: of a template, its last expansion.
// What is hidden in it must not get into somebody's shell.
func (a *app) copyName() tea.Cmd {
	it := a.panes[a.open].item()
	if inv := kept(a.reg, it); it.kind == registry.Template && inv != nil {
		return a.copy(clean(inv.Expanded), "the expanded URI")
	}
	return a.copy(clean(it.listed), "the name")
}

func (a *app) whyNotCancel() string {
	switch {
	case a.calls.len() == 0:
		return "nothing is running"
	case a.cancellable() == nil:
		return "several calls are running; go to the one to cancel"
	}
	return ""
}

func (a *app) whyNotRepeat() string {
	if a.calls.last == nil {
		return "nothing was called yet"
	}
	return ""
}

func (a *app) whyNotAnswer() string {
	if a.questions.len() == 0 {
		return "no server asks anything"
	}
	return ""
}

func (a *app) whyNoMatch() string {
	if _, n := a.details[a.open].view.Found(); n == 0 {
		return "nothing is searched for; / in the detail panel searches"
	}
	return ""
}

func (a *app) whyNoDetail() string {
	if a.panes[a.open].subject().blocks == nil {
		return "there is nothing to look at"
	}
	return ""
}

func (a *app) whyNoTabs() string {
	if a.open != paneLogs {
		return "only Logs has tabs; 5 goes there"
	}
	return ""
}

func (a *app) whyNotInspect() string {
	if a.open != paneLogs && a.open != paneServers && !a.panes[a.open].item().ok {
		return "there is no item here"
	}
	return ""
}

// parts is a pane of several lists, one of which has the cursor.
type parts interface {
	part() (at, of int)
	choose(part int)
}

// nextFocus walks the lists of a pane and its detail panel; where there is one
// list alone, the panes.
func (a *app) nextFocus(step int) tea.Cmd {
	at, of := 0, 1
	several, ok := a.panes[a.open].(parts)
	if ok {
		at, of = several.part()
	}
	n := of
	if a.detailShown() {
		n++
	}
	if n == 1 {
		return a.show((a.open + step + len(a.panes)) % len(a.panes))
	}
	if a.inside {
		at = of
	}
	at = (at + step + n) % n
	a.inside = at == of
	if !a.inside && ok {
		several.choose(at)
	}
	return nil
}

// back takes one step out.
func (a *app) back() tea.Cmd {
	switch typed, _ := a.panes[a.open].rows().Filtered(); {
	case a.detailShown() && a.cancels() != nil:
		return a.calls.stop(a.cancels())
	case a.inside:
		a.inside = false
	case typed != "":
		return a.setFilter("")
	case a.opened && !a.beside():
		a.opened = false
	}
	return nil
}

// cancels is the running call that Esc cancels: the one that is looked at.
func (a *app) cancels() *running {
	run := a.calls.of(a.panes[a.open].item())
	if run == nil || run.quiet {
		return nil
	}
	return run
}

// cancellable is the running call that is meant: the one under the cursor, or
// the only one; nil if that is not clear.
func (a *app) cancellable() *running {
	if run := a.calls.of(a.panes[a.open].item()); run != nil {
		return run
	}
	if a.calls.len() == 1 {
		return a.calls.list[0]
	}
	return nil
}

func (a *app) nextTheme() tea.Cmd {
	all := look.Themes()
	a.theme = all[(slices.Index(all, a.look.Theme)+1)%len(all)]
	a.setLook()
	if a.look.Theme != a.theme {
		a.theme = a.look.Theme
		return a.complain("this terminal shows no colours (NO_COLOR or TERM=dumb)")
	}
	a.say("Theme: %s", a.look.Theme)
	return a.details[a.open].build(true, false)
}

// quit ends the screen; it asks when that disturbs somebody.
func (a *app) quit() tea.Cmd {
	leave := func() tea.Cmd {
		a.quitting = true
		return tea.Quit
	}
	a.head.refresh(a)
	clients, screens, running := a.head.clients, max(0, a.head.screens-1), a.calls.len()
	if !a.o.Host.Owner {
		clients, screens = 0, 0
	}
	if clients+screens+running == 0 {
		return leave()
	}
	if clients+screens == 0 {
		return a.push(&confirm{
			app: a, title: "Quit?",
			text: []string{count(running, "call") + " of yours would be cancelled."}, yes: "quit", then: leave,
		})
	}
	var who []string
	text := []string{"", "Servers end, and running calls fail."}
	if clients > 0 {
		who = append(who, count(clients, "client"))
	}
	if screens > 0 {
		who = append(who, count(screens, "other screen"))
	}
	text[0] = strings.Join(who, " and ") + " use this process."
	if clients+screens == 1 {
		text[0] = who[0] + " uses this process."
	}
	if slices.ContainsFunc(a.head.sessions, func(s registry.Session) bool { return s.Transport == "socket" }) {
		text = append(text, "goblin stdio starts the next host.")
	}
	return a.push(&confirm{app: a, title: "Quit?", text: text, yes: "quit", then: leave})
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
