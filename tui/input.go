package tui

import (
	"time"

	"goblin/tui/list"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/tui/keys"
)

// press handles keys. Keys typed fast arrive as one message, and Escape
// followed at once by another key as Alt with that key; both are taken apart.
func (a *app) press(msg tea.KeyMsg) tea.Cmd {
	if msg.Alt && (msg.Type == tea.KeyRunes || msg.Type == tea.KeyEsc || msg.Type == tea.KeyEnter || msg.Type == tea.KeySpace) && !msg.Paste {
		rest := msg
		rest.Alt = false
		return tea.Batch(a.press(tea.KeyMsg{Type: tea.KeyEsc}), a.press(rest))
	}
	if msg.Type == tea.KeyRunes && len(msg.Runes) > 1 && !msg.Paste && !a.typing() {
		var cmds []tea.Cmd
		dialogs := len(a.dialogs)
		for i, r := range msg.Runes {
			if len(a.dialogs) > dialogs && !a.typing() {
				break // nobody has seen yet what the rest would answer
			}
			if a.typing() { // one of the keys opened a text field
				cmds = append(cmds, a.press(tea.KeyMsg{Type: tea.KeyRunes, Runes: msg.Runes[i:]}))
				break
			}
			cmds = append(cmds, a.key(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune{r}}))
		}
		return tea.Batch(cmds...)
	}
	return a.key(msg)
}

// typing says whether runes are text.
func (a *app) typing() bool {
	if n := len(a.dialogs); n > 0 {
		return a.dialogs[n-1].typing()
	}
	return a.filtering
}

func (a *app) key(msg tea.KeyMsg) tea.Cmd {
	if a.now().Sub(a.flash.since) > flashLeast {
		a.flash = flash{}
	}
	if n := len(a.dialogs); n > 0 {
		return a.toDialog(msg)
	}
	if a.filtering {
		return a.typeFilter(msg)
	}
	if a.geometry().small && msg.String() != "q" && msg.Type != tea.KeyCtrlC {
		return nil // nobody sees what it would do
	}
	b := a.keys.Find(msg, a.focus())
	if b == nil {
		return nil
	}
	return a.run(b)
}

// focus is where keys work now.
func (a *app) focus() keys.Place {
	if a.inside {
		return keys.InDetail
	}
	return a.panes[a.open].in()
}

// run does what a key or the palette asks for, or says why it cannot.
func (a *app) run(b *keys.Binding) tea.Cmd {
	if why := a.why(b); why != "" {
		return a.complain("%s", why)
	}
	run := a.acts[a.open][b.ID].Run
	if run == nil {
		run = b.Run
	}
	if run == nil {
		return nil
	}
	return run()
}

// why says why a binding cannot be run now.
func (a *app) why(b *keys.Binding) string {
	why := b.Why
	if why == nil {
		why = a.acts[a.open][b.ID].Why
	}
	if why == nil {
		return ""
	}
	return why()
}

// scroll moves the cursor or scrolls the detail panel.
func (a *app) scroll(id string) func() tea.Cmd {
	return func() tea.Cmd {
		if a.inside {
			keys.Scroll(a.details[a.open].view, id)
			return nil
		}
		keys.Scroll(list.Cursor{Rows: a.panes[a.open].rows()}, id)
		a.moved()
		return nil
	}
}

// follower is a pane that wants to know that its user moved the cursor.
type follower interface{ moved() }

func (a *app) moved() {
	if p, ok := a.panes[a.open].(follower); ok {
		p.moved()
	}
}

// click remembers the last one, to know a double click.
type click struct {
	x, y int
	at   time.Time
}

const doubleClick = 400 * time.Millisecond

// point handles the mouse: a click selects, a double click opens, the wheel
// scrolls what is under it.
func (a *app) point(msg tea.MouseMsg) tea.Cmd {
	if n := len(a.dialogs); n > 0 {
		return a.toDialog(msg)
	}
	g := a.geometry()
	if g.small {
		return nil
	}
	switch {
	case msg.Button == tea.MouseButtonWheelUp:
		a.wheel(g, msg, -3)
	case msg.Button == tea.MouseButtonWheelDown:
		a.wheel(g, msg, 3)
	case msg.Button == tea.MouseButtonLeft && msg.Action == tea.MouseActionPress:
		return a.clicked(g, msg)
	}
	return nil
}

// wheel scrolls what is under the mouse.
func (a *app) wheel(g geometry, msg tea.MouseMsg, by int) {
	switch {
	case g.detail.holds(msg.X, msg.Y):
		a.details[a.open].view.Scroll(by)
	case g.list.holds(msg.X, msg.Y):
		a.panes[a.open].wheel(msg.Y-g.list.y-g.border, by)
		a.moved()
	}
}

func (a *app) clicked(g geometry, msg tea.MouseMsg) tea.Cmd {
	again := msg.X == a.lastClick.x && msg.Y == a.lastClick.y && a.now().Sub(a.lastClick.at) < doubleClick
	a.lastClick = click{msg.X, msg.Y, a.now()}
	if again {
		a.lastClick = click{} // a third click opens nothing again
	}
	if a.filtering && msg.Y != a.h-2 {
		a.endFilter()
	}
	switch {
	case msg.Y == 1:
		_, spots := a.tabs()
		for i, s := range spots {
			if msg.X >= s.x && msg.X < s.x+s.w {
				return a.show(i)
			}
		}
	case g.list.holds(msg.X, msg.Y):
		a.inside = false
		if a.panes[a.open].click(msg.Y - g.list.y - g.border) {
			a.moved()
			if again {
				return a.run(a.binding("open"))
			}
		}
	case g.detail.holds(msg.X, msg.Y):
		a.inside = true
	case msg.Y == a.h-2:
		return a.run(a.binding("filter"))
	}
	return nil
}
