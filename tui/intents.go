package tui

import (
	"fmt"
	"slices"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry"
	"goblin/tui/look"
)

// do runs the intents that do not depend on the pane.
func (a *app) do(id string) (tea.Cmd, bool) {
	switch id {
	case "servers", "tools", "prompts", "resources", "logs":
		return a.show(slices.Index([]string{"servers", "tools", "prompts", "resources", "logs"}, id)), true
	case "next":
		return a.nextFocus(1), true
	case "previous":
		return a.nextFocus(-1), true
	case "open", "detail":
		a.inside, a.opened = true, true
		return nil, true
	case "back", "leave":
		return a.back(), true
	case "filter":
		return a.startFilter(), true
	case "next-match":
		a.details[a.open].view.Next()
		return nil, true
	case "previous-match":
		a.details[a.open].view.Prev()
		return nil, true
	case "sort":
		cmd := a.panes[a.open].rows().sorted()
		a.say("Sorted by %s", a.panes[a.open].rows().sorting())
		return cmd, true
	case "fold":
		return a.details[a.open].fold(-1), true
	case "unfold":
		return a.details[a.open].fold(1), true
	}
	return a.doScreen(id)
}

// doScreen runs the intents about the screen itself.
func (a *app) doScreen(id string) (tea.Cmd, bool) {
	switch id {
	case "place":
		a.layout.place = (a.layout.place + 1) % 4
		return a.say("Detail panel: %s", [...]string{"where there is room", "beside", "below", "hidden"}[a.layout.place]), true
	case "larger-detail":
		a.layout.part = max(20, a.layout.part-5)
	case "smaller-detail":
		a.layout.part = min(80, a.layout.part+5)
	case "mouse":
		a.mouse = !a.mouse
		if a.mouse {
			a.say("Mouse on")
			return tea.EnableMouseCellMotion, true
		}
		a.say("Mouse off: the terminal selects text again")
		return tea.DisableMouse, true
	case "theme":
		return a.nextTheme(), true
	case "quit", "interrupt":
		return a.quit(), true
	default:
		if d := a.dialogOf(id); d != nil {
			return a.push(d), true
		}
		return a.doItem(id)
	}
	return nil, true
}

// dialogOf is the dialog that an intent opens, nil for those that open none.
func (a *app) dialogOf(id string) dialog {
	switch id {
	case "help":
		return newHelp(a)
	case "palette":
		return newPalette(a)
	case "subscriptions":
		return newWatched(a)
	case "server-facet":
		return newFacet(a, "server", "Servers")
	case "mime-facet":
		return newFacet(a, "mime", "MIME types")
	case "method-facet":
		return newFacet(a, "method", "Methods")
	}
	return nil
}

// doItem runs the intents about what the cursor is on, or what runs.
func (a *app) doItem(id string) (tea.Cmd, bool) {
	switch id {
	case "answer":
		return a.answer(), true
	case "cancel":
		return a.calls.stop(a.cancellable()), true
	case "repeat":
		return a.again(*a.calls.last), true
	case "copy":
		if it := a.panes[a.open].item(); it.kind == registry.Template {
			if inv := kept(a.reg, it); inv != nil {
				return a.copy(clean(inv.Expanded), "the expanded URI"), true
			}
		}
		// What is hidden in it must not get into somebody's shell.
		return a.copy(clean(a.panes[a.open].item().listed), "the name"), true
	case "copy-content":
		return a.copyContent(), true
	case "pager":
		return a.openIn("pager"), true
	case "editor":
		return a.openIn("editor"), true
	case "save":
		return a.save(), true
	case "clear":
		return a.clearKept(), true
	case "inspect":
		return a.inspect(a.panes[a.open].item()), true
	}
	return nil, false
}

// whyNot says why an intent of every pane cannot be run; known is false for
// those that the panes know about.
func (a *app) whyNot(id string) (why string, known bool) {
	it := a.panes[a.open].item()
	switch id {
	case "cancel":
		switch {
		case a.calls.len() == 0:
			return "nothing is running", true
		case a.cancellable() == nil:
			return "several calls are running; go to the one to cancel", true
		}
	case "repeat":
		if a.calls.last == nil {
			return "nothing was called yet", true
		}
	case "answer":
		if a.questions.len() == 0 {
			return "no server asks anything", true
		}
	case "next-match", "previous-match":
		if _, n := a.details[a.open].view.Found(); n == 0 {
			return "nothing is searched for; / in the detail panel searches", true
		}
	case "detail":
		if a.panes[a.open].subject().blocks == nil {
			return "there is nothing to look at", true
		}
	case "tab-left", "tab-right":
		if a.open != paneLogs {
			return "only Logs has tabs; 5 goes there", true
		}
		return "", false
	case "inspect":
		if a.open != paneLogs && !it.ok && a.open != paneServers {
			return "there is no item here", true
		}
	default:
		return "", false
	}
	return "", true
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
	switch typed, _ := a.panes[a.open].rows().filtered(); {
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
			look: a.look, title: "Quit?",
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
	return a.push(&confirm{look: a.look, title: "Quit?", text: text, yes: "quit", then: leave})
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
