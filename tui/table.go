package tui

import (
	"context"
	"slices"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/tui/filter"
	"goblin/tui/look"
)

// atOnce is the number of rows up to which a filter runs inside Update: below
// it, scanning takes less time than handing the work over.
const atOnce = 3000

// done is a message that carries what is to be done with a result. Commands
// return it, Update runs it.
type done func() tea.Cmd

// order is one way to sort a table.
type order[R any] struct {
	name string
	less func(a, b R) int // nil: as the rows come
}

// table is a filtered, sorted list of rows with a cursor that follows its row.
// Filtering many rows happens in commands; results that come too late are
// dropped by their generation.
type table[R any] struct {
	key    func(R) string                // what the cursor follows
	text   func(R) string                // what words are looked for in
	fields func(rows []R) []filter.Field // over rows that will not change
	orders []order[R]                    // at least one

	rows  []R
	index *filter.Index
	found []int32 // rows that match, in the order shown
	bare  []int32 // found before sorting, to narrow from
	query *filter.Query
	typed string
	order int
	took  time.Duration // of the last search
	guilt string        // the term that alone excludes everything

	cur, off, height int
	at               string // key of the row under the cursor
	lost             string // key of the row that went from under it
	first            bool   // the cursor goes to the first match
	tail             bool   // the cursor stays at the end as rows come
	aside            bool   // another section of the pane has the cursor

	gen    int
	busy   bool // a search runs in a command
	stale  bool // what it read has changed since
	cancel context.CancelFunc
	ctx    context.Context
	now    func() time.Time
}

func newTable[R any](ctx context.Context, now func() time.Time, key, text func(R) string, fields func([]R) []filter.Field, orders ...order[R]) *table[R] {
	t := &table[R]{key: key, text: text, fields: fields, orders: orders, ctx: ctx, now: now, cancel: func() {}}
	if len(t.orders) == 0 {
		t.orders = []order[R]{{name: "listed"}}
	}
	t.index = filter.NewIndex(0, nil)
	t.query = filter.Parse("", t.fields(nil))
	return t
}

// state is what a search works on and what it gives.
type state[R any] struct {
	rows  []R
	index *filter.Index
	query *filter.Query
	found []int32
	bare  []int32
	took  time.Duration
	guilt string
}

// refresh replaces the rows by what get gives, in a command when many are
// expected. The caller starts no second one before it is taken.
func (t *table[R]) refresh(expected int, get func() []R) tea.Cmd {
	typed, by := t.typed, t.order
	sorting, fields, text, now := t.orders[by], t.fields, t.text, t.now
	work := func() state[R] {
		s := state[R]{rows: get()}
		s.index = filter.NewIndex(len(s.rows), func(i int) string { return text(s.rows[i]) })
		s.query = filter.Parse(typed, fields(s.rows))
		s.search(t.ctx, nil, sorting, now)
		return s
	}
	take := func(s state[R]) tea.Cmd {
		t.cancel() // a search in the rows before
		t.gen++
		t.busy, t.stale = false, false
		t.take(s)
		if t.typed != typed || t.order != by {
			return t.again(false)
		}
		return nil
	}
	if expected <= atOnce {
		return take(work())
	}
	return func() tea.Msg {
		s := work()
		return done(func() tea.Cmd { return take(s) })
	}
}

// filter replaces the query.
func (t *table[R]) filter(typed string) tea.Cmd {
	t.first = typed != "" && typed != t.typed
	t.typed = typed
	return t.again(true)
}

// again runs the query once more: it changed, or what its fields read did. Of
// several searches only the last one counts.
func (t *table[R]) again(narrow bool) tea.Cmd {
	s := state[R]{rows: t.rows, index: t.index, query: filter.Parse(t.typed, t.fields(t.rows))}
	var within []int32
	if narrow && t.bare != nil && s.query.Narrows(t.query) {
		within = t.bare
	}
	sorting, now := t.orders[t.order], t.now
	t.cancel()
	t.gen++
	gen := t.gen
	t.busy, t.stale = false, false
	if len(t.rows) <= atOnce {
		t.cancel = func() {}
		if s.search(t.ctx, within, sorting, now) {
			t.take(s)
		}
		return nil
	}
	ctx, cancel := context.WithCancel(t.ctx)
	t.cancel, t.busy = cancel, true
	return func() tea.Msg {
		defer cancel()
		ok := s.search(ctx, within, sorting, now)
		return done(func() tea.Cmd {
			if gen != t.gen {
				return nil
			}
			t.busy = false
			if ok {
				t.take(s)
			}
			if t.stale {
				return t.again(false)
			}
			return nil
		})
	}
}

// refilter runs the query once more because what its fields or its order read
// has changed. One that runs is let run, however often that is.
func (t *table[R]) refilter() tea.Cmd {
	if t.busy {
		t.stale = true
		return nil
	}
	return t.again(false)
}

// search fills found. It is false when it was cancelled.
func (s *state[R]) search(ctx context.Context, within []int32, by order[R], now func() time.Time) bool {
	began := time.Now()
	found, err := s.query.Match(ctx, s.index, within, now())
	if err != nil {
		return false
	}
	s.bare, s.found = found, found
	if by.less != nil && !s.query.Ranked() {
		s.found = slices.Clone(found)
		slices.SortStableFunc(s.found, func(a, b int32) int { return by.less(s.rows[a], s.rows[b]) })
	}
	s.took = time.Since(began)
	if len(found) == 0 && !s.query.Empty() {
		s.guilt = s.query.Excludes(ctx, s.index, now())
	}
	return true
}

// take shows a result; the cursor goes where its row went.
func (t *table[R]) take(s state[R]) {
	t.rows, t.index, t.query, t.found, t.bare, t.took, t.guilt = s.rows, s.index, s.query, s.found, s.bare, s.took, s.guilt
	if t.tail {
		t.move(len(t.found))
		return
	}
	if t.first {
		t.first, t.lost = false, ""
		t.to(0)
		return
	}
	if i := t.place(t.lost); t.lost != "" && i >= 0 { // it came back
		t.goes(i)
		t.lost = ""
	}
	if t.at != "" && !t.holds(t.cur, t.at) {
		if i := t.place(t.at); i >= 0 {
			t.goes(i)
		} else if t.lost == "" {
			t.lost = t.at
		}
	}
	t.move(0)
}

// goes puts the cursor on another row, which keeps the place on the screen
// where that is possible.
func (t *table[R]) goes(i int) {
	t.off += i - t.cur
	t.cur, t.at = i, t.key(t.rows[t.found[i]])
}

func (t *table[R]) holds(i int, key string) bool {
	return i >= 0 && i < len(t.found) && t.key(t.rows[t.found[i]]) == key
}

// place is where the row with a key stands, -1 if it is not shown.
func (t *table[R]) place(key string) int {
	for i := range t.found {
		if t.holds(i, key) {
			return i
		}
	}
	return -1
}

// sorted walks to the next order.
func (t *table[R]) sorted() tea.Cmd {
	t.order = (t.order + 1) % len(t.orders)
	return t.again(false)
}

// sum of rows that match.
func (t *table[R]) len() int { return len(t.found) }

// move moves the cursor and keeps it inside and in sight.
func (t *table[R]) move(by int) {
	if by != 0 {
		t.lost = ""
	}
	t.cur = max(0, min(t.cur+by, len(t.found)-1))
	if t.height > 0 {
		t.off = min(t.off, t.cur)
		t.off = max(t.off, t.cur-t.height+1)
		t.off = max(0, min(t.off, len(t.found)-t.height))
	}
	if r, ok := t.selected(); ok {
		t.at = t.key(r)
	}
}

// scroll moves the window; the cursor stays in it.
func (t *table[R]) scroll(by int) {
	t.off = max(0, min(t.off+by, len(t.found)-t.height))
	t.cur = max(t.off, min(t.cur, t.off+t.height-1))
	t.move(0)
}

func (t *table[R]) to(i int) { t.move(i - t.cur) }

// find puts the cursor on the row with a key, if it is shown.
func (t *table[R]) find(key string) bool {
	i := t.place(key)
	if i >= 0 {
		t.lost = ""
		t.to(i)
	}
	return i >= 0
}

func (t *table[R]) selected() (r R, ok bool) {
	if t.cur < 0 || t.cur >= len(t.found) {
		return r, false
	}
	return t.rows[t.found[t.cur]], true
}

// lines draws the window. draw gives a row as one line of w cells, without its
// cursor; the first two cells are the table's.
func (t *table[R]) lines(lk *look.Look, w, h int, focused bool, draw func(r R, w int) string) []string {
	if t.height != h {
		t.height = h
		t.move(0)
	}
	out := make([]string, 0, h)
	for i := t.off; i < len(t.found) && len(out) < h; i++ {
		line := draw(t.rows[t.found[i]], w-2)
		switch {
		case i != t.cur || t.aside:
			line = "  " + line
		default:
			line = lk.Row(lk.Cursor+" "+line, focused)
		}
		out = append(out, lk.Fit(line, w))
	}
	for len(out) < h {
		out = append(out, look.Blank(w))
	}
	return out
}

// mark draws unstyled text with what the filter looks for highlighted.
func (t *table[R]) mark(lk *look.Look, text string, base look.Style) string {
	if t.typed == "" {
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

// click puts the cursor on a line of the window.
func (t *table[R]) click(y int) bool {
	i := t.off + y
	if y < 0 || y >= t.height || i >= len(t.found) {
		return false
	}
	t.to(i)
	return true
}

// section says whether this list of several has the cursor.
func (t *table[R]) section(current bool) *table[R] {
	t.aside = !current
	return t
}
