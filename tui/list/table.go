// Package list is a filtered, sorted table whose cursor follows its row.
//
// The owner defines rows and columns. Searching, sorting and measuring many rows runs in
// commands, of which only the last one counts. Everything else must run on the UI's
// Update goroutine and takes time in proportion to the visible rows. The package must not
// know panes or the catalog.
package list

import (
	"context"
	"slices"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry/query"
	"goblin/tui/keys"
	"goblin/tui/theme"
)

// Field is a column that terms of a filter can name.
type Field = query.Field

// The kinds of a [Field].
const (
	Text   = query.Text
	YesNo  = query.YesNo
	Age    = query.Age
	Number = query.Number
)

// MaxSyncRows is the maximum number of rows that a filter handles inside Update, which is
// faster than a command.
const MaxSyncRows = 3000

// Table is a filtered, sorted list of rows with a cursor that follows its row. Late
// results of commands are dropped by their generation.
type Table[R any] struct {
	key    func(R) string         // identifies the cursor's row
	text   func(R) string         // searched for words
	Fields func(rows []R) []Field // of rows that will not change
	Orders []Order[R]             // at least one
	// Hidden returns a function that reports whether a row is hidden, with or without a
	// filter. Commands may call that function. Hidden may be nil.
	Hidden func() func(r R, filtered bool) bool

	// Head reports whether a row summarizes others. Heads come first in every order and
	// are not counted. Head may be nil.
	Head func(R) bool

	// Markable reports whether [Table.ToggleMarks] marks a row. Without it, it marks all
	// rows except heads.
	Markable func(R) bool

	Rows          []R
	heads         int
	index         *query.Index
	Matches       []int32 // in the order shown
	query         *query.Query
	FilterText    string
	Order         int
	Reversed      bool
	LastSearch    time.Duration
	excludingTerm string // alone excludes everything

	RowStyle[R]
	cols      []Column[R]
	extent    columnWidths
	ranks     *ranks
	needs     []widthCounts // of the matching rows
	places    []place       // as last drawn
	hasHeader bool          // … with their names

	window       Window
	cursorKey    string // key of the row under the cursor
	lostKey      string // vanished under the cursor
	toFirstMatch bool   // on the next result
	Following    bool   // stay at the end when rows are added
	unfocused    bool   // another section of the pane has the cursor
	ticked       map[string]bool

	version uint64 // of the rows and their order

	gen    int
	busy   bool // a search runs in a command
	stale  bool // its input has changed since
	cancel context.CancelFunc
	ctx    context.Context
	now    func() time.Time
}

// New returns an empty list in its first order.
func New[R any](ctx context.Context, now func() time.Time, key, text func(R) string, fields func([]R) []Field, orders ...Order[R]) *Table[R] {
	t := &Table[R]{key: key, text: text, Fields: fields, Orders: orders, ctx: ctx, now: now, cancel: func() {}}
	if len(t.Orders) == 0 {
		t.Orders = []Order[R]{{Name: "listed"}}
	}
	t.index, t.ranks = query.NewIndex(0, nil), &ranks{}
	t.query = query.Parse("", t.Fields(nil))
	return t
}

type state[R any] struct {
	rows          []R
	index         *query.Index
	extent        columnWidths
	ranks         *ranks
	query         *query.Query
	found         []int32
	needs         []widthCounts
	took          time.Duration
	excludingTerm string
	hidden        func(r R, filtered bool) bool
	heads         int
}

type sorting[R any] struct {
	Order[R]
	reversed bool
}

func (t *Table[R]) sorting() sorting[R] { return sorting[R]{t.Orders[t.Order], t.Reversed} }

// Refresh replaces the rows by the result of get, in a command if many are expected, and
// calls then. The caller must not start another Refresh before that.
func (t *Table[R]) Refresh(expected int, get func() []R, then func() tea.Cmd) tea.Cmd {
	typed, by, reversed := t.FilterText, t.Order, t.Reversed
	sorting := t.sorting()
	fields := t.Fields
	text := t.text
	hidden := t.hidden()
	head := t.Head
	now := t.now
	columns := t.cols
	find := func() state[R] {
		s := state[R]{rows: get(), ranks: &ranks{}, hidden: hidden}
		for head != nil && s.heads < len(s.rows) && head(s.rows[s.heads]) {
			s.heads++
		}
		s.extent = measure(columns, s.rows)
		s.index = query.NewIndex(len(s.rows), func(i int) string { return text(s.rows[i]) })
		s.query = query.Parse(typed, fields(s.rows))
		s.search(t.ctx, sorting, now)
		return s
	}
	take := func(s state[R]) tea.Cmd {
		t.cancel() // it searches the old rows
		t.gen++
		t.busy, t.stale = false, false
		t.setResult(s)
		if t.FilterText != typed || t.Order != by || t.Reversed != reversed {
			return tea.Batch(t.Rerun(), then())
		}
		return then()
	}
	if expected <= MaxSyncRows {
		return take(find())
	}
	return func() tea.Msg {
		s := find()
		return keys.FuncMsg(func() tea.Cmd { return take(s) })
	}
}

func (t *Table[R]) hidden() func(R, bool) bool {
	if t.Hidden == nil {
		return nil
	}
	return t.Hidden()
}

// Filter replaces the query.
func (t *Table[R]) Filter(typed string) tea.Cmd {
	t.toFirstMatch = typed != "" && typed != t.FilterText
	t.FilterText = typed
	return t.Rerun()
}

// Rerun runs the query again after it or its fields' data changed. Only the last of
// several searches counts.
func (t *Table[R]) Rerun() tea.Cmd {
	s := state[R]{rows: t.Rows, index: t.index, extent: t.extent, ranks: t.ranks, query: query.Parse(t.FilterText, t.Fields(t.Rows)), hidden: t.hidden(), heads: t.heads}
	sorting, now := t.sorting(), t.now
	t.cancel()
	t.gen++
	gen := t.gen
	t.busy, t.stale = false, false
	if len(t.Rows) <= MaxSyncRows {
		t.cancel = func() {}
		if s.search(t.ctx, sorting, now) {
			t.setResult(s)
		}
		return nil
	}
	ctx, cancel := context.WithCancel(t.ctx)
	t.cancel, t.busy = cancel, true
	return func() tea.Msg {
		defer cancel()
		ok := s.search(ctx, sorting, now)
		return keys.FuncMsg(func() tea.Cmd {
			if gen != t.gen {
				return nil
			}
			t.busy = false
			if ok {
				t.setResult(s)
			}
			if t.stale {
				return t.Rerun()
			}
			return nil
		})
	}
}

// Refilter runs the query again after data of its fields or order changed. It never
// interrupts a running search.
func (t *Table[R]) Refilter() tea.Cmd {
	if t.busy {
		t.stale = true
		return nil
	}
	return t.Rerun()
}

// search fills found. It returns false if it was cancelled.
func (s *state[R]) search(ctx context.Context, by sorting[R], now func() time.Time) bool {
	began := time.Now()
	found, err := s.query.Match(ctx, s.index, now())
	if err != nil {
		return false
	}
	if s.hidden != nil {
		filtered := !s.query.IsEmpty()
		found = slices.DeleteFunc(found, func(i int32) bool { return s.hidden(s.rows[i], filtered) })
	}
	s.found = found
	if !s.query.IsRanked() {
		s.sort(by)
		s.moveHeadsUp()
	}
	s.needs = s.extent.needs(s.found, len(s.rows))
	s.took = time.Since(began)
	if len(found) == 0 && !s.query.IsEmpty() {
		s.excludingTerm = s.query.ExcludingTerm(ctx, s.index, now())
	}
	return true
}

func (t *Table[R]) setResult(s state[R]) {
	was := int32(-1) // or -1 if row numbers changed
	if len(s.rows) == len(t.Rows) && len(s.rows) > 0 && &s.rows[0] == &t.Rows[0] && t.hasKeyAt(t.window.cursor, t.cursorKey) {
		was = t.Matches[t.window.cursor]
	}
	t.version++
	t.Rows = s.rows
	t.heads = s.heads
	t.index = s.index
	t.query = s.query
	t.Matches = s.found
	t.window.rows = len(t.Matches)
	t.LastSearch = s.took
	t.excludingTerm = s.excludingTerm
	t.extent, t.ranks, t.needs = s.extent, s.ranks, s.needs
	if t.Following {
		t.Move(len(t.Matches))
		return
	}
	if t.toFirstMatch {
		t.toFirstMatch, t.lostKey = false, ""
		t.MoveTo(0)
		return
	}
	if t.lostKey != "" {
		if i := t.indexOfKey(t.lostKey); i >= 0 { // the row is visible again
			t.moveInPlace(i)
			t.lostKey = ""
		}
	}
	if t.cursorKey != "" && !t.hasKeyAt(t.window.cursor, t.cursorKey) {
		i := slices.Index(t.Matches, was)
		if was < 0 {
			i = t.indexOfKey(t.cursorKey)
		}
		if i >= 0 {
			t.moveInPlace(i)
		} else if t.lostKey == "" {
			t.lostKey = t.cursorKey
		}
	}
	t.Move(0)
}

// moveInPlace moves the cursor to a row and keeps the cursor's line if possible.
func (t *Table[R]) moveInPlace(i int) {
	t.window.offset += i - t.window.cursor
	t.window.cursor, t.cursorKey = i, t.key(t.Rows[t.Matches[i]])
}

func (t *Table[R]) hasKeyAt(i int, key string) bool {
	return i >= 0 && i < len(t.Matches) && t.key(t.Rows[t.Matches[i]]) == key
}

func (t *Table[R]) indexOfKey(key string) int {
	for i := range t.Matches {
		if t.hasKeyAt(i, key) {
			return i
		}
	}
	return -1
}

// Version returns a number that changes with the rows and their order.
func (t *Table[R]) Version() uint64 { return t.version }

// Len returns the number of rows that match.
func (t *Table[R]) Len() int { return t.window.Len() }

// Cursor returns the number of the row under the cursor.
func (t *Table[R]) Cursor() int { return t.window.cursor }

// Move moves the cursor and keeps it inside the list and visible.
func (t *Table[R]) Move(by int) {
	if by != 0 {
		t.lostKey = ""
	}
	t.window.Move(by)
	if r, ok := t.Selected(); ok {
		t.cursorKey = t.key(r)
	}
}

// Scroll moves the window. The cursor stays in it.
func (t *Table[R]) Scroll(by int) {
	t.window.Scroll(by)
	t.Move(0)
}

// MoveTo moves the cursor to a row.
func (t *Table[R]) MoveTo(i int) { t.Move(i - t.window.cursor) }

// Find moves the cursor to the row with a key. If the row is hidden, it returns false and
// moves the cursor as soon as it is visible.
func (t *Table[R]) Find(key string) bool {
	i := t.indexOfKey(key)
	if i < 0 {
		t.lostKey = key
		return false
	}
	t.lostKey = ""
	t.MoveTo(i)
	return true
}

// Selected returns the row under the cursor.
func (t *Table[R]) Selected() (r R, ok bool) {
	if t.window.cursor >= len(t.Matches) {
		return r, false
	}
	return t.Rows[t.Matches[t.window.cursor]], true
}

// WithSelected returns a function that calls do with the row under the cursor, if any.
func (t *Table[R]) WithSelected(do func(R) tea.Cmd) func() tea.Cmd {
	return func() tea.Cmd {
		r, ok := t.Selected()
		if !ok {
			return nil
		}
		return do(r)
	}
}

func (t *Table[R]) resize(h int) {
	if t.window.height != h {
		t.window.height = h
		t.Move(0)
	}
}

// Lines draws the visible rows. draw returns a row as one line of w cells. The first two
// cells are the table's.
func (t *Table[R]) Lines(lk *theme.Theme, w, h int, focused bool, draw func(r R, w int) string) []string {
	t.resize(h)
	out := make([]string, 0, h)
	for i := t.window.offset; i < len(t.Matches) && len(out) < h; i++ {
		line := draw(t.Rows[t.Matches[i]], w-2)
		switch {
		case i != t.window.cursor || t.unfocused:
			line = " " + t.tick(lk, i) + line
		default:
			line = lk.Row(lk.Fit(lk.Cursor+t.tick(lk, i)+line, w), focused)
		}
		out = append(out, lk.Fit(line, w))
	}
	for len(out) < h {
		out = append(out, theme.Spaces(w))
	}
	return out
}

func (t *Table[R]) tick(lk *theme.Theme, i int) string {
	if len(t.ticked) > 0 && t.ticked[t.key(t.Rows[t.Matches[i]])] {
		return lk.Tick
	}
	return " "
}

// ToggleMark marks or unmarks the row under the cursor, moves to the next one, and
// returns the number of marks.
func (t *Table[R]) ToggleMark() int {
	r, ok := t.Selected()
	if !ok {
		return len(t.ticked)
	}
	if t.ticked == nil {
		t.ticked = make(map[string]bool)
	}
	if key := t.key(r); t.ticked[key] {
		delete(t.ticked, key)
	} else {
		t.ticked[key] = true
	}
	t.Following = false
	t.Move(1)
	return len(t.ticked)
}

// ToggleMarks marks the rows that match, or unmarks them if all are marked. It returns the
// number of marks.
func (t *Table[R]) ToggleMarks() int {
	var found []string
	all := true
	for _, i := range t.Matches {
		r := t.Rows[i]
		if t.Head != nil && t.Head(r) || t.Markable != nil && !t.Markable(r) {
			continue
		}
		key := t.key(r)
		found, all = append(found, key), all && t.ticked[key]
	}
	if t.ticked == nil {
		t.ticked = make(map[string]bool, len(found))
	}
	for _, key := range found {
		if all {
			delete(t.ticked, key)
		} else {
			t.ticked[key] = true
		}
	}
	return len(t.ticked)
}

// ClearMarks removes all marks and reports whether there were any.
func (t *Table[R]) ClearMarks() bool {
	had := len(t.ticked) > 0
	t.ticked = nil
	return had
}

// HasMarks reports whether rows are marked.
func (t *Table[R]) HasMarks() bool { return len(t.ticked) > 0 }

// Marked returns the marked rows in list order, including hidden ones. Without marks it
// returns the row under the cursor.
func (t *Table[R]) Marked() []R {
	var out []R
	if len(t.ticked) == 0 {
		if r, ok := t.Selected(); ok {
			out = append(out, r)
		}
		return out
	}
	for _, r := range t.Rows {
		if t.ticked[t.key(r)] {
			out = append(out, r)
		}
	}
	return out
}

// Highlight returns unstyled text with highlighted matches.
func (t *Table[R]) Highlight(lk *theme.Theme, text string, base theme.Style) string {
	if t.FilterText == "" {
		return base.On(text)
	}
	spans := t.query.Spans(text)
	if len(spans) == 0 {
		return base.On(text)
	}
	var b strings.Builder
	at := 0
	for _, s := range spans {
		b.WriteString(base.On(text[at:s.Start]))
		b.WriteString(lk.Match.On(text[s.Start:s.End]))
		at = s.End
	}
	b.WriteString(base.On(text[at:]))
	return b.String()
}

// SetFocused sets whether this list of a pane has the cursor.
func (t *Table[R]) SetFocused(current bool) *Table[R] {
	t.unfocused = !current
	return t
}

// NewestLast reports whether the last row is the newest one.
func (t *Table[R]) NewestLast() bool { return t.Order == 0 && !t.Reversed && !t.query.IsRanked() }

// StopFollowing moves the cursor to the first row and keeps it there.
func (t *Table[R]) StopFollowing() {
	t.Following, t.cursorKey = false, ""
	t.window.Reset(len(t.Matches))
}

// Total returns the number of rows without the filter, except heads.
func (t *Table[R]) Total() int { return len(t.Rows) - t.heads }

// HeadRows returns the number of leading rows that are heads.
func (t *Table[R]) HeadRows() int { return t.heads }

// PageSize returns the number of visible rows.
func (t *Table[R]) PageSize() int { return t.window.PageSize() }

// Position returns the cursor's line.
func (t *Table[R]) Position() int {
	if t.hasHeader {
		return t.window.cursor - t.window.offset + 1
	}
	return t.window.cursor - t.window.offset
}

// FilterQuery returns the filter as typed and as parsed.
func (t *Table[R]) FilterQuery() (string, *query.Query) { return t.FilterText, t.query }

// FilterFields returns the fields that a filter can name.
func (t *Table[R]) FilterFields() []Field { return t.Fields(t.Rows) }

// SearchTime returns the duration of the last search.
func (t *Table[R]) SearchTime() time.Duration { return t.LastSearch }

// ExcludingTerm returns the term of the filter that alone hides all rows.
func (t *Table[R]) ExcludingTerm() string { return t.excludingTerm }

// Matcher implements [Rows].
func (t *Table[R]) Matcher(typed string) func(context.Context) ([]int32, error) {
	q, index, now := query.Parse(typed, t.Fields(t.Rows)), t.index, t.now
	return func(ctx context.Context) ([]int32, error) { return q.Match(ctx, index, now()) }
}

// Rows is a table of rows of any type.
type Rows interface {
	Filter(typed string) tea.Cmd
	Refilter() tea.Cmd
	SortNext() tea.Cmd
	SortNextColumn() tea.Cmd
	Sort(name string) tea.Cmd
	OrderNames() []string
	Len() int
	Move(by int)
	Scroll(by int)
	MoveTo(i int)
	Find(key string) bool
	Cursor() int
	ToggleMark() int
	ToggleMarks() int
	ClearMarks() bool

	Total() int
	HeadRows() int // leading rows that Total leaves out
	PageSize() int
	Position() int
	FilterQuery() (typed string, query *query.Query)
	OrderText(lk *theme.Theme) string
	SearchTime() time.Duration
	// Matcher returns a function that finds the rows matching a filter. It may be called
	// from a command.
	Matcher(typed string) func(context.Context) ([]int32, error)
	ExcludingTerm() string
	FilterFields() []Field
}
