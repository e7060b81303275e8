package uicontext

import (
	"slices"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/tui/keys"
)

// Dialog is a box in front of the panes. The last one in [Context.Dialogs] receives the
// input. It closes itself by [Context.Drop].
type Dialog interface {
	Heading() string
	// Size returns the preferred size with the border, at most w by h cells.
	Size(w, h int) (int, int)
	Lines(w, h int) []string
	// Keys returns the current bindings, without keys: those come from [Context.Actions].
	Keys() keys.Table
	// Update handles other keys and the mouse, in coordinates of Lines.
	Update(msg tea.Msg) tea.Cmd
	// Background handles messages that are not input.
	Background(msg tea.Msg) tea.Cmd
	// Typing reports whether runes are text now.
	Typing() bool
}

// BaseDialog is embedded by dialogs that only react to keys.
type BaseDialog struct{}

func (BaseDialog) Update(tea.Msg) tea.Cmd     { return nil }
func (BaseDialog) Background(tea.Msg) tea.Cmd { return nil }
func (BaseDialog) Typing() bool               { return false }

// ListDialog is embedded by dialogs with a list, in which keys typed ahead may choose.
type ListDialog struct{ BaseDialog }

func (ListDialog) lists() {}

// NeedsReading reports whether keys typed before the dialog is visible could answer it by
// mistake.
func NeedsReading(d Dialog) bool {
	_, lists := d.(interface{ lists() })
	return !lists
}

// BrowserDialog is embedded by dialogs that the user can leave at any time. Their keys
// must not be typed ahead.
type BrowserDialog struct{ BaseDialog }

func (BrowserDialog) browses() {}

// MayLeave reports whether the user can leave the dialog without losing input.
func MayLeave(d Dialog) bool {
	_, browses := d.(interface{ browses() })
	return (browses || !NeedsReading(d)) && !d.Typing()
}

// leastMargin is the minimum number of columns beside a dialog. A narrower strip of the
// pane would look like a second border, so such a dialog has the full width.
const leastMargin = 3

// DialogSize returns the size of a dialog with its border. The lines for messages and keys
// stay visible.
func (a *Context) DialogSize(d interface{ Size(w, h int) (int, int) }) (w, h int) {
	room := a.H - 2
	w, h = d.Size(a.W, room)
	if a.W-w < 2*leastMargin {
		w = a.W
	}
	return max(w, 10), max(min(h, room), 3)
}

// ScrollPosition returns "" for a dialog that does not scroll.
func ScrollPosition(d Dialog) string {
	if d, ok := d.(interface{ Where() string }); ok {
		return d.Where()
	}
	return ""
}

// SendTo sends input to a dialog.
func (a *Context) SendTo(d Dialog, msg tea.Msg) tea.Cmd {
	if key, ok := msg.(tea.KeyMsg); ok {
		if b := d.Keys().WithKeys(a.Actions).Find(key, 0); b != nil {
			if a.ReadOnly != "" && slices.Contains(gatewayActions, b.ID) {
				return a.Complain("%s; nothing can be changed", a.ReadOnly)
			}
			return b.Run()
		}
	}
	return d.Update(msg)
}

// DialogHints returns the hints of a dialog for the footer.
func (a *Context) DialogHints(d Dialog) []keys.Hint {
	if d, ok := d.(interface{ Hints() []keys.Hint }); ok {
		return d.Hints()
	}
	t := d.Keys().WithKeys(a.Actions)
	if a.ReadOnly != "" {
		t = slices.DeleteFunc(t, func(b keys.Binding) bool { return slices.Contains(gatewayActions, b.ID) })
	}
	return t.Hints()
}

// gatewayActions are the actions of dialogs that need a running gateway.
var gatewayActions = []string{"clients.disconnect", "subscriptions.toggle", "past.call", "past.subscribe", "compare.run", "rules.add", "approval.approve"}

// Push opens a dialog in front.
func (a *Context) Push(d Dialog) tea.Cmd {
	a.Dialogs = append(a.Dialogs, d)
	if d, ok := d.(interface{ Begin() tea.Cmd }); ok {
		return d.Begin()
	}
	return nil
}

// SendToDialog sends input to the dialog in front.
func (a *Context) SendToDialog(msg tea.Msg) tea.Cmd {
	if m, ok := msg.(tea.MouseMsg); ok {
		m.X, m.Y = m.X-a.FrontRect.X, m.Y-a.FrontRect.Y
		msg = m
	}
	return a.SendTo(a.Dialogs[len(a.Dialogs)-1], msg)
}

// Drop closes a dialog at any position of the stack.
func (a *Context) Drop(d Dialog) tea.Cmd {
	a.Dialogs = slices.DeleteFunc(slices.Clone(a.Dialogs), func(o Dialog) bool { return o == d })
	return nil
}

// ScrollWheel scrolls if the message is a turn of the mouse wheel.
func ScrollWheel(scroll func(by int), msg tea.Msg) {
	switch m, _ := msg.(tea.MouseMsg); m.Button {
	case tea.MouseButtonWheelDown:
		scroll(3)
	case tea.MouseButtonWheelUp:
		scroll(-3)
	}
}

// LeftPress reports whether a message is a click.
func LeftPress(m tea.MouseMsg) bool {
	return m.Button == tea.MouseButtonLeft && m.Action == tea.MouseActionPress
}

// SetTheme applies a new theme to a dialog that caches styles.
func SetTheme(d Dialog) {
	if d, ok := d.(interface{ SetTheme() }); ok {
		d.SetTheme()
	}
}
