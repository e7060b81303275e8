// Package pane implements the panes, their details and their layout.
//
// The [Layout] holds the panes, which reach each other through it. A pane follows the
// registry's changes, draws exactly the given lines and cells, and implements its
// actions. It does no I/O; slow work goes into commands. The package must not know the
// app: no keys except those of its dialogs, no header, no filter bar.
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

// Pane is one of the panes. All methods must be called from Update or View.
type Pane interface {
	Tab() (name, count string)
	Place() keymap.Place
	// Watches returns the changes that require a Refresh.
	Watches() registry.Changes
	// Refresh reads the registry after these changes.
	Refresh(registry.Changes) tea.Cmd
	// Heading is drawn in the list's border.
	Heading() (title, right string)
	Lines(lk *theme.Theme, w, h int, focused bool) []string
	// Rows returns the list that has the cursor.
	Rows() list.Rows
	// Click selects a row or activates the clicked element. It returns false if there is
	// no row.
	Click(x, y int) (row bool, cmd tea.Cmd)
	// Wheel scrolls the list at a cell.
	Wheel(x, y, by int)
	// Subject is shown by the detail.
	Subject() Subject
	// Handlers returns this pane's actions by binding id. Other bindings have their
	// default action.
	Handlers() map[string]keys.Handler
	// Empty is drawn in a list without rows.
	Empty() []string
	// Item returns the item under the cursor, for traffic, copying and the palette.
	Item() uicontext.Item
}

// Subject is the content of a detail. Subjects with the same key are the same thing; with
// the same version too, they look the same.
type Subject struct {
	Key     string
	Version string
	Title   string
	Blocks  func(ctx context.Context) []viewer.Section // runs in a command
	// Tabs replace Blocks: the detail shows one of them, with tabs above. Head draws lines
	// above the tabs.
	Tabs    []viewer.Tab
	Head    func(lk *theme.Theme) []string
	numbers bool // show line numbers
	line    int  // goes to this line of a new text, if not 0
	// content reports whether there is content, so that lines changed by a new version
	// are marked.
	content bool
	running *uicontext.Running // its progress is shown above
}
