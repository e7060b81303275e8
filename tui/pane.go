package tui

import (
	"context"
	"encoding/json"

	"goblin/tui/list"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry"
	"goblin/tui/content"
	"goblin/tui/keys"
	"goblin/tui/look"
)

// pane is one of the five. All methods are called from Update or View only.
type pane interface {
	tab() (name, count string)
	in() keys.Place
	// follows are the changes after which refresh is called.
	follows() registry.Changes
	// refresh reads the registry anew, after these changes.
	refresh(registry.Changes) tea.Cmd
	// heading is what stands in the list's border.
	heading() (title, right string)
	lines(lk *look.Look, w, h int, focused bool) []string
	// rows is the list that has the cursor.
	rows() list.Rows
	// click puts the cursor on a line of lines; false when there is no row.
	click(y int) bool
	// wheel scrolls the list at a line of lines.
	wheel(y, by int)
	// subject is what the detail panel shows.
	subject() subject
	// acts are what bindings do here, or why they cannot, by their ids. The
	// others do what they do everywhere.
	acts() map[string]keys.Act
	// empty is what stands in a list without rows.
	empty() []string
	// item is what the cursor is on, for traffic, copying and the palette.
	item() item
}

// subject is what a detail panel shows. Two subjects with the same key are the
// same thing; with the same version too, they look the same.
type subject struct {
	key     string
	version string
	title   string
	blocks  func(ctx context.Context) []content.Block // runs in a command
	numbers bool                                      // of lines
	// content says that there is some, so that lines which a new version brings
	// are news and get marked.
	content bool
	running *running // the call whose progress is shown instead
}

// item names a thing of the catalog.
type item struct {
	kind   registry.Kind
	server string
	name   string // original
	listed string
	ok     bool
}

// answered is an error that the other side sent.
type answered interface {
	error
	ErrorCode() int
	ErrorData() json.RawMessage
}
