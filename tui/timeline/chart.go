package timeline

import (
	"time"

	"goblin/registry"
	"goblin/registry/termtext"
	"goblin/tui/list"
	"goblin/tui/theme"
)

// Chart shows a [Layout] with a cursor on one call. Its functions may be nil.
type Chart struct {
	// Describe sets the Arguments and the Failure of a call. It runs once per drawn call.
	Describe func(*Call)
	// ProgressText returns the text of a progress notification, such as 3/10.
	ProgressText func(*registry.TrafficRecord) string
	// Highlight returns a sanitized text with its style and with highlighted matches.
	Highlight func(text string, style theme.Style) string

	layout *Layout
	window list.Window
	live   bool // the axis ends at the newest call, which has the cursor
	auto   bool // the length of the axis follows the calls
	custom bool // the user chose the length
	fitted bool // to all calls
	from   time.Time
	span   time.Duration
	mark   time.Time // one end of the range to select, or zero

	drawn axis // as last drawn
	now   time.Time
	top   int // lines above the rows
}

// NewChart returns an empty chart that follows new calls.
func NewChart() *Chart {
	return &Chart{layout: &Layout{newest: -1}, live: true, auto: true}
}

// growInterval is the shortest time after which running calls grow.
const growInterval = 250 * time.Millisecond

// Show replaces the layout. The cursor stays on its call, or follows the newest one.
func (c *Chart) Show(l *Layout) {
	key := c.Key()
	from, _ := c.window.Visible()
	line := c.window.Cursor() - from
	c.layout = l
	c.window.Resize(len(l.Rows), c.window.PageSize())
	if c.live {
		c.moveTo(l.newest)
		return
	}
	at := l.indexOf(key)
	if at < 0 {
		c.Move(0)
		return
	}
	from, _ = c.window.Visible()
	c.window.Scroll(at - line - from)
	c.moveTo(at)
}

// Selected returns the call under the cursor, or nil.
func (c *Chart) Selected() *Call {
	if r := c.row(); r != nil {
		return r.Call
	}
	return nil
}

func (c *Chart) row() *Row {
	at := c.window.Cursor()
	if at >= len(c.layout.Rows) || !c.layout.Rows[at].selectable() {
		return nil
	}
	return &c.layout.Rows[at]
}

// Key returns the key of the call under the cursor, or "".
func (c *Chart) Key() string {
	if call := c.Selected(); call != nil {
		return call.Key
	}
	return ""
}

// Find moves the cursor to a call and reports whether it has a row.
func (c *Chart) Find(key string) bool {
	at := c.layout.indexOf(key)
	if at >= 0 {
		c.moveTo(at)
		c.reveal()
	}
	return at >= 0
}

// Rows returns the number of lines of the layout.
func (c *Chart) Rows() int { return len(c.layout.Rows) }

// PageSize returns the number of visible rows.
func (c *Chart) PageSize() int { return c.window.PageSize() }

// Position returns the cursor's line.
func (c *Chart) Position() int {
	from, _ := c.window.Visible()
	return c.window.Cursor() - from + c.top
}

// Move moves the cursor by rows, past rows without a call, and shows the call's bar.
func (c *Chart) Move(by int) {
	c.moveTo(max(0, min(c.window.Cursor()+by, len(c.layout.Rows)-1)))
	c.reveal()
}

// MoveTo moves the cursor to a row or the nearest one with a call.
func (c *Chart) MoveTo(row int) { c.Move(row - c.window.Cursor()) }

func (c *Chart) moveTo(row int) {
	rows := c.layout.Rows
	if row < 0 || row >= len(rows) {
		return
	}
	step := 1
	if row < c.window.Cursor() {
		step = -1
	}
	at := row
	for at >= 0 && at < len(rows) && !rows[at].selectable() {
		at += step
	}
	for at = max(0, min(at, len(rows)-1)); at > 0 && !rows[at].selectable() && step > 0; {
		at--
	}
	for ; at < len(rows)-1 && !rows[at].selectable(); at++ {
	}
	if at > 0 && rows[at-1].Role == Heading { // keep it visible
		c.window.MoveTo(at - 1)
	}
	if at+1 < len(rows) && rows[at+1].Role == Progress {
		c.window.MoveTo(at + 1)
	}
	c.window.MoveTo(at)
}

// Scroll moves the visible rows. The cursor stays in them.
func (c *Chart) Scroll(by int) {
	c.window.Scroll(by)
	if r := c.row(); r == nil && len(c.layout.Rows) > 0 {
		at := c.window.Cursor()
		c.moveTo(at)
	}
}

// Click moves the cursor to the call at a line and reports whether there is one.
func (c *Chart) Click(line int) bool {
	at, ok := c.window.RowAt(line - c.top)
	if !ok || c.layout.Rows[at].Role == Heading {
		return false
	}
	if c.layout.Rows[at].Role == Progress {
		at = max(at-1, 0)
	}
	c.moveTo(at)
	return true
}

// SpanText returns the length of the visible part, or "" before the first drawing.
func (c *Chart) SpanText() string {
	switch {
	case c.drawn.span == 0 || len(c.layout.Rows) == 0:
		return ""
	case c.drawn.span < time.Second:
		return termtext.Duration(c.drawn.span)
	}
	return termtext.Age(c.drawn.span)
}

// Factor returns how many times as long as usual the selected call is, or 0.
func (c *Chart) Factor() int {
	r := c.row()
	if r == nil {
		return 0
	}
	return r.Usual.Factor(Work(r.Call.Record, c.now))
}

// Live reports whether the chart follows new calls.
func (c *Chart) Live() bool { return c.live }

// Follow follows new calls, or stops at the visible time.
func (c *Chart) Follow(on bool) {
	if !on {
		c.stay()
		return
	}
	c.live, c.fitted, c.auto = true, false, !c.custom
	c.moveTo(c.layout.newest)
}

// CursorMoved follows new calls if the cursor is on the newest one.
func (c *Chart) CursorMoved() {
	c.Follow(c.window.Cursor() == c.layout.newest)
	c.reveal()
}

// Zoom shows a shorter or longer part of the axis. The start of the selected call stays
// in place if it is visible; a live axis keeps its end.
func (c *Chart) Zoom(in bool) {
	if c.drawn.cells == 0 {
		return
	}
	a := c.current()
	next := nextSpan(a.span, in)
	c.auto, c.custom, c.fitted = false, true, false
	if !c.live {
		pivot := a.from.Add(a.span / 2)
		if call := c.Selected(); call != nil && !call.Record.Time.Before(a.from) && call.Record.Time.Before(a.end()) {
			pivot = call.Record.Time
		}
		part := float64(pivot.Sub(a.from)) / float64(a.span)
		c.from = pivot.Add(-time.Duration(part * float64(next)))
	}
	c.span = next
}

// Pan moves the axis by a part of its length and stops following.
func (c *Chart) Pan(part float64) {
	if c.drawn.cells == 0 {
		return
	}
	c.stay()
	c.from = c.from.Add(time.Duration(part * float64(c.span)))
	c.fitted = false
}

// stay keeps the visible part.
func (c *Chart) stay() {
	if (c.live || c.auto) && c.drawn.cells > 0 {
		a := c.current()
		c.from, c.span, c.auto = a.from, a.span, false
	}
	c.live = false
}

// Fit shows the whole selected call, or all calls if it is already shown.
func (c *Chart) Fit() {
	if c.drawn.cells == 0 || len(c.layout.byStart) == 0 {
		return
	}
	first, last := c.layout.First, c.layout.last(c.now)
	c.stay()
	c.custom = true
	call := c.Selected()
	if call != nil && !c.fitted {
		r := call.Record
		from, span := fit(r.Time, end(r, c.now), c.drawn.cells)
		if !from.Equal(c.from) || span != c.span {
			c.from, c.span = from, span
			return
		}
	}
	c.from, c.span = fit(first, last, c.drawn.cells)
	c.fitted, c.custom = true, false
}

// ShowRange shows a part of the axis.
func (c *Chart) ShowRange(from, to time.Time) {
	if c.drawn.cells == 0 {
		return
	}
	c.stay()
	c.custom = true
	c.from, c.span = fit(from, to, c.drawn.cells)
}

// fit returns a part with room for a text beside the bar.
func fit(first, last time.Time, cells int) (from time.Time, span time.Duration) {
	need := max(last.Sub(first), 0)
	span = stepOf(time.Duration(float64(need)*float64(cells)/float64(max(cells-textRoom(cells)-1, 1))) + 1)
	span = max(span, minSpan)
	return first.Add(-span / time.Duration(max(cells, 1))), span
}

// reveal moves the axis so that the selected call is visible.
func (c *Chart) reveal() {
	call := c.Selected()
	if call == nil || c.drawn.cells == 0 || c.live {
		return
	}
	start, last := call.Record.Time, end(call.Record, c.now)
	c.stay()
	if start.Before(c.from.Add(c.span)) && !last.Before(c.from) {
		return
	}
	c.from = start.Add(-c.span / 4)
	c.fitted = false
}

// Mark sets one end of a range at the selected call. With the second mark it returns the
// range from the first start to the last end, and removes the marks.
func (c *Chart) Mark() (from, to time.Time, done bool) {
	call := c.Selected()
	if call == nil {
		return from, to, false
	}
	r := call.Record
	if c.mark.IsZero() {
		c.mark = r.Time
		return from, to, false
	}
	from, to = c.mark, c.mark
	if r.Time.Before(from) {
		from = r.Time
	}
	if last := end(r, c.now); last.After(to) {
		to = last
	}
	c.mark = time.Time{}
	return from, to, true
}

// Unmark removes the first mark and reports whether there was one.
func (c *Chart) Unmark() bool {
	had := !c.mark.IsZero()
	c.mark = time.Time{}
	return had
}

// last returns the end of the last call. Without running calls it does not depend on now.
func (l *Layout) last(now time.Time) time.Time {
	if l.Running > 0 && now.After(l.End) {
		return now
	}
	return l.End
}

// Bounds of the length that follows the calls.
const (
	minAuto = 10 * time.Millisecond
	maxAuto = 10 * time.Minute
)

// current returns the axis of the next frame.
func (c *Chart) current() axis { return c.visible(c.drawn.cells, c.window.PageSize()) }

// visible returns the axis for a number of cells and rows.
func (c *Chart) visible(cells, rows int) axis {
	if !c.live && !c.auto && !c.from.IsZero() {
		return axis{c.from, c.span, cells}
	}
	last := c.layout.last(c.now)
	span := c.span
	if c.auto || span == 0 {
		span = minAuto
		if calls := c.layout.byStart; len(calls) > 0 {
			first := calls[max(len(calls)-max(rows, 1), 0)].Record.Time
			need := float64(max(last.Sub(first), 0)) * float64(cells) / float64(max(cells-textRoom(cells)-1, 1))
			span = max(minAuto, min(stepOf(time.Duration(need)), maxAuto))
		}
	}
	margin := time.Duration(float64(span) / float64(max(cells, 1)) * float64(textRoom(cells)))
	return axis{last.Add(margin - span), span, cells}
}

// textRoom is the room for a text beside the newest bar.
func textRoom(cells int) int { return min(24, cells/4) }
