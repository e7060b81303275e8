package tui

import (
	"slices"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry/keymap"
	"goblin/tui/keys"
	"goblin/tui/list"
	"goblin/tui/pane"
	"goblin/tui/uicontext"
)

// Keys typed fast arrive as one message, and Escape followed by another key as Alt with
// that key. handleKeys splits both.
func (a *app) handleKeys(msg tea.KeyMsg) tea.Cmd {
	if msg.Paste {
		return a.Paste(msg, a.isTyping(), a.key)
	}
	if msg.Alt && (msg.Type == tea.KeyRunes || msg.Type == tea.KeyEsc || msg.Type == tea.KeyEnter || msg.Type == tea.KeySpace) {
		rest := msg
		rest.Alt = false
		return tea.Batch(a.handleKeys(tea.KeyMsg{Type: tea.KeyEsc}), a.handleKeys(rest))
	}
	if msg.Type == tea.KeyRunes && len(msg.Runes) > 1 && !a.isTyping() {
		var cmds []tea.Cmd
		dialogs := len(a.Dialogs)
		for i, r := range msg.Runes {
			if n := len(a.Dialogs); n > dialogs && !a.isTyping() && uicontext.NeedsReading(a.Dialogs[n-1]) {
				break // the user has not read this dialog
			}
			if a.isTyping() { // a key opened a text field
				cmds = append(cmds, a.handleKeys(tea.KeyMsg{Type: tea.KeyRunes, Runes: msg.Runes[i:]}))
				break
			}
			cmds = append(cmds, a.key(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune{r}}))
		}
		return tea.Batch(cmds...)
	}
	return a.key(msg)
}

func (a *app) isTyping() bool {
	if n := len(a.Dialogs); n > 0 {
		return a.Dialogs[n-1].Typing()
	}
	return a.filtering
}

func (a *app) key(msg tea.KeyMsg) tea.Cmd {
	if a.Clock().Sub(a.Flash.Since) > minFlashTime {
		a.Flash = uicontext.Flash{}
	}
	if n := len(a.Dialogs); n > 0 {
		if a.Geometry().Small && msg.Type != tea.KeyCtrlC && a.smallQuestion() == nil {
			return nil // the dialog is invisible
		}
		if b := a.keys.Find(msg, keymap.Anywhere); b != nil && b.ID == "mistakes" {
			if cmd, ok := a.home().NextAfter(a.Dialogs[n-1]); ok {
				return cmd
			}
		}
		if b := a.keys.Find(msg, a.focus()); b != nil && a.worksOver(b.ID, a.Dialogs[n-1]) && a.Dialogs[n-1].Keys().WithKeys(a.Actions).Find(msg, 0) == nil {
			return a.run(b)
		}
		return a.SendToDialog(msg)
	}
	if a.filtering {
		return a.typeFilter(msg)
	}
	b := a.keys.Find(msg, a.focus())
	if b == nil || a.Geometry().Small && b.ID != "quit" && b.ID != "interrupt" && b.ID != "leave" {
		return nil // unknown key, or its effect would be invisible
	}
	return a.run(b)
}

// worksOver reports whether an action of the panes also works in a dialog that has no
// such key.
func (a *app) worksOver(id string, d uicontext.Dialog) bool {
	return id == "config" && !d.Typing() || id == "palette" && uicontext.MayLeave(d)
}

// leaveDialogs closes the dialogs from which the palette was opened.
func (a *app) leaveDialogs() tea.Cmd {
	var cmds []tea.Cmd
	for n := len(a.Dialogs); n > 0 && uicontext.MayLeave(a.Dialogs[n-1]); n = len(a.Dialogs) {
		d := a.Dialogs[n-1]
		for range 3 { // the first ones may clear a filter or restore the list
			if slices.Contains(a.Dialogs, d) {
				cmds = append(cmds, a.SendTo(d, tea.KeyMsg{Type: tea.KeyEsc}))
			}
		}
		a.Drop(d) // keys of the config may have replaced Esc
	}
	return tea.Batch(cmds...)
}

func (a *app) focus() keymap.Place {
	if a.Inside {
		return keymap.InDetail
	}
	return a.Panes[a.Open].Place()
}

func (a *app) run(b *keys.Binding) tea.Cmd {
	if why := a.whyDisabled(b); why != "" {
		return a.Complain("%s", why)
	}
	run := a.runOf(b)
	if run == nil {
		return nil
	}
	return a.RunBinding(b.ID, run)
}

// runOf returns the function of a binding in the open pane, or nil.
func (a *app) runOf(b *keys.Binding) func() tea.Cmd {
	if run := a.Handlers[a.Open][b.ID].Run; run != nil {
		return run
	}
	return b.Run
}

func (a *app) whyDisabled(b *keys.Binding) string {
	if why := a.whyReadOnly(b.ID); why != "" {
		return why
	}
	why := a.Handlers[a.Open][b.ID].WhyDisabled
	if why == nil {
		why = b.WhyDisabled
	}
	if why == nil {
		return ""
	}
	return why()
}

func (a *app) scroll(id string) func() tea.Cmd {
	return func() tea.Cmd {
		if a.Inside {
			keys.Scroll(a.Details[a.Open].View, id)
			return nil
		}
		keys.Scroll(list.Cursor{List: a.Panes[a.Open].Rows()}, id)
		a.CursorMoved()
		return nil
	}
}

const doubleClick = 400 * time.Millisecond

func (a *app) handleMouse(msg tea.MouseMsg) tea.Cmd {
	if !a.mouse { // sent before the terminal disabled it
		return nil
	}
	g := a.Geometry()
	if n := len(a.Dialogs); n > 0 || g.Small {
		a.dragging = false
		if g.Small {
			return nil
		}
		return a.SendToDialog(msg)
	}
	if a.handleDrag(g, msg) {
		return nil
	}
	a.UsedPanes[a.Open] = true
	switch {
	case msg.Button == tea.MouseButtonWheelUp:
		a.scrollAt(g, msg, -3)
	case msg.Button == tea.MouseButtonWheelDown:
		a.scrollAt(g, msg, 3)
	case msg.Button == tea.MouseButtonLeft && msg.Action == tea.MouseActionPress:
		return a.clicked(g, msg)
	case msg.Button == tea.MouseButtonRight && msg.Action == tea.MouseActionPress:
		return a.openMenu(g, msg)
	}
	return nil
}

func (a *app) scrollAt(g pane.Geometry, msg tea.MouseMsg, by int) {
	switch {
	case g.Detail.Contains(msg.X, msg.Y):
		a.Details[a.Open].View.Scroll(by)
	case g.List.Contains(msg.X, msg.Y):
		a.Panes[a.Open].Wheel(msg.X-g.List.X-g.Border, msg.Y-g.List.Y-g.Border, by)
		a.CursorMoved()
	}
}

func (a *app) clicked(g pane.Geometry, msg tea.MouseMsg) tea.Cmd {
	again := msg.X == a.LastClick.X && msg.Y == a.LastClick.Y && a.Clock().Sub(a.LastClick.Time) < doubleClick
	a.LastClick = pane.Click{X: msg.X, Y: msg.Y, Time: a.Clock()}
	if again {
		a.LastClick = pane.Click{} // does not open it again
	}
	if a.filtering && msg.Y != a.H-2 {
		a.endFilter()
	}
	switch {
	case msg.Y == 0:
		return a.clickHeader(msg.X)
	case msg.Y == 1:
		if _, tabs := a.tabs(); tabs.At(msg.X) >= 0 {
			return a.Visit(tabs.At(msg.X))
		}
	case g.List.Contains(msg.X, msg.Y):
		a.Inside = false
		row, cmd := a.Panes[a.Open].Click(msg.X-g.List.X-g.Border, msg.Y-g.List.Y-g.Border)
		if !row {
			return cmd
		}
		a.CursorMoved()
		if again {
			return a.run(a.binding("open"))
		}
	case g.Detail.Contains(msg.X, msg.Y):
		a.Inside = true
		return a.Details[a.Open].Click(msg.X-g.Detail.X-g.Border, msg.Y-g.Detail.Y-g.Border)
	case msg.Y == a.H-2:
		return a.run(a.binding("filter"))
	}
	return nil
}
