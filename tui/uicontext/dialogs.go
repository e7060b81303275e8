package uicontext

import (
	"slices"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/tui/keys"
)

// Dialog is something in front of the panes. The last one of app.dialogs sees
// the input first. It takes itself off the screen with [app.drop].
type Dialog interface {
	Heading() string
	// Size is the room that it wants, with its border, of w by h cells.
	Size(w, h int) (int, int)
	Lines(w, h int) []string
	// Keys returns the actions of keys now, without the keys: those are [Common.Actions].
	Keys() keys.Table
	// Update handles other keys and the mouse (in coordinates of lines).
	Update(msg tea.Msg) tea.Cmd
	// Background handles messages that are no input.
	Background(msg tea.Msg) tea.Cmd
	// Typing reports whether runes are text now.
	Typing() bool
}

// Still is embedded by dialogs that wait for keys alone.
type Still struct{}

func (Still) Update(tea.Msg) tea.Cmd     { return nil }
func (Still) Background(tea.Msg) tea.Cmd { return nil }
func (Still) Typing() bool               { return false }

// Listing is embedded by dialogs that list what there is: keys typed ahead choose in them.
type Listing struct{ Still }

func (Listing) lists() {}

// Asks reports whether a key may be an answer to a dialog, which has to be seen before that.
func Asks(d Dialog) bool {
	_, lists := d.(interface{ lists() })
	return !lists
}

// Far is how far down a dialog's text is, as it was drawn; "" if it does not tell.
func Far(d Dialog) string {
	if d, ok := d.(interface{ Where() string }); ok {
		return d.Where()
	}
	return ""
}

// Press gives input to a dialog.
func (a *Common) Press(d Dialog, msg tea.Msg) tea.Cmd {
	if key, ok := msg.(tea.KeyMsg); ok {
		if b := d.Keys().On(a.Actions).Find(key, 0); b != nil {
			return b.Run()
		}
	}
	return d.Update(msg)
}

// HintsOf returns the footer's words on a dialog.
func (a *Common) HintsOf(d Dialog) []keys.Hint {
	if d, ok := d.(interface{ Hints() []keys.Hint }); ok {
		return d.Hints()
	}
	return d.Keys().On(a.Actions).Hints()
}

// Push puts a dialog in front.
func (a *Common) Push(d Dialog) tea.Cmd {
	a.Dialogs = append(a.Dialogs, d)
	if d, ok := d.(interface{ Begin() tea.Cmd }); ok {
		return d.Begin()
	}
	return nil
}

// ToDialog hands input to the dialog in front.
func (a *Common) ToDialog(msg tea.Msg) tea.Cmd {
	if m, ok := msg.(tea.MouseMsg); ok {
		m.X, m.Y = m.X-a.Front.X, m.Y-a.Front.Y
		msg = m
	}
	return a.Press(a.Dialogs[len(a.Dialogs)-1], msg)
}

// Drop closes a dialog, wherever it stands.
func (a *Common) Drop(d Dialog) tea.Cmd {
	a.Dialogs = slices.DeleteFunc(slices.Clone(a.Dialogs), func(o Dialog) bool { return o == d })
	return nil
}

// ScrollWheel moves what is under the mouse when its wheel turns.
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

// Restyle draws a dialog in the screen's new look, if it keeps anything that
// was made for the one before.
func Restyle(d Dialog) {
	if d, ok := d.(interface{ SetLook() }); ok {
		d.SetLook()
	}
}
