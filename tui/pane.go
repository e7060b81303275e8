package tui

import (
	"context"
	"encoding/json"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry"
	"goblin/tui/content"
	"goblin/tui/filter"
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
	rows() rows
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

// rows is a table of any rows.
type rows interface {
	filter(typed string) tea.Cmd
	refilter() tea.Cmd
	sorted() tea.Cmd
	len() int
	move(by int)
	scroll(by int)
	to(i int)
	find(key string) bool

	total() int
	window() int // rows in sight
	position() int
	filtered() (typed string, query *filter.Query)
	sorting() string
	timing() string
	// matching finds the rows that a filter would leave. The function it gives
	// may be called from a command.
	matching(typed string) func(context.Context) ([]int32, error)
	excludes() string
	columns() []filter.Field
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

func (t *table[R]) total() int                        { return len(t.rows) }
func (t *table[R]) window() int                       { return max(t.height, 1) }
func (t *table[R]) position() int                     { return t.cur - t.off }
func (t *table[R]) filtered() (string, *filter.Query) { return t.typed, t.query }
func (t *table[R]) sorting() string                   { return t.orders[t.order].name }
func (t *table[R]) columns() []filter.Field           { return t.fields(t.rows) }
func (t *table[R]) timing() string                    { return millis(t.took) }
func (t *table[R]) excludes() string                  { return t.guilt }

func (t *table[R]) matching(typed string) func(context.Context) ([]int32, error) {
	query, index, now := filter.Parse(typed, t.fields(t.rows)), t.index, t.now
	return func(ctx context.Context) ([]int32, error) { return query.Match(ctx, index, nil, now()) }
}

// answered is an error that the other side sent.
type answered interface {
	error
	ErrorCode() int
	ErrorData() json.RawMessage
}
