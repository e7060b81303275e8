// Package pane implements the panes, their details and their layout.
//
// The [Layout] has the panes, which reach each other through it. A pane follows
// the registry's changes, draws exactly the lines and cells that it is given,
// and does its acts; it does no IO, what can wait is a command. The package
// knows no app: no keys but those of its dialogs, no header, no bar.
package pane

import (
	"context"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry"
	"goblin/registry/keymap"
	"goblin/tui/keys"
	"goblin/tui/list"
	"goblin/tui/theme"
	"goblin/tui/uicontext"
	"goblin/tui/viewer"
)

// Pane is one of the panes. All methods are called from Update or View only.
type Pane interface {
	Tab() (name, count string)
	Place() keymap.Place
	// Watches are the changes after which refresh is called.
	Watches() registry.Changes
	// Refresh reads the registry anew, after these changes.
	Refresh(registry.Changes) tea.Cmd
	// Heading is drawn in the list's border.
	Heading() (title, right string)
	Lines(lk *theme.Theme, w, h int, focused bool) []string
	// Rows is the list that has the cursor.
	Rows() list.Rows
	// Click puts the cursor on a line of lines, or does what stands there; false when
	// there is no row.
	Click(x, y int) (row bool, cmd tea.Cmd)
	// Wheel scrolls the list at a line of lines.
	Wheel(y, by int)
	// Subject is shown by the detail panel.
	Subject() Subject
	// Handlers returns the actions of bindings here, or why they cannot act, by their ids. The
	// others do what they do everywhere.
	Handlers() map[string]keys.Handler
	// Empty is drawn in a list without rows.
	Empty() []string
	// Item is under the cursor: for traffic, copying and the palette.
	Item() uicontext.Item
}

// Subject is shown by a detail panel. Two subjects with the same key are the
// same thing; with the same version too, they look the same.
type Subject struct {
	Key     string
	Version string
	Title   string
	Blocks  func(ctx context.Context) []viewer.Section // runs in a command
	numbers bool                                       // of lines
	// content says that there is some, so that lines which a new version brings
	// are news and get marked.
	content bool
	running *uicontext.Running // the call whose progress is shown instead
}
