package list

import (
	tea "github.com/charmbracelet/bubbletea"

	"goblin/tui/theme"
)

// Window is the visible part of a list of lines, with a cursor. Its owner reports the
// number of rows by Reset or Resize. A Window scrolls without regard to the cursor;
// [Cursor] scrolls it by the cursor.
type Window struct {
	cursor int
	offset int // first visible row
	rows   int
	height int // visible rows, 0 before the first drawing
}

// Reset sets the number of rows and moves the cursor to the first one.
func (w *Window) Reset(rows int) { w.cursor, w.offset, w.rows = 0, 0, rows }

// Resize sets the numbers of all and of visible rows, and keeps the cursor visible.
func (w *Window) Resize(rows, height int) {
	w.rows, w.height = rows, max(height, 1)
	w.Move(0)
}

// Len returns the number of rows.
func (w *Window) Len() int { return w.rows }

// PageSize returns the number of visible rows, at least 1.
func (w *Window) PageSize() int { return max(w.height, 1) }

// Cursor returns the row under the cursor.
func (w *Window) Cursor() int { return w.cursor }

// Move moves the cursor and keeps it inside the list and visible.
func (w *Window) Move(by int) {
	w.cursor = max(0, min(w.cursor+by, w.rows-1))
	if w.height > 0 {
		w.offset = max(0, min(w.offset, w.cursor, w.rows-w.height), w.cursor-w.height+1)
	}
}

// MoveTo moves the cursor to a row.
func (w *Window) MoveTo(row int) { w.Move(row - w.cursor) }

// Scroll moves the visible part. The cursor stays in it.
func (w *Window) Scroll(by int) {
	w.offset = max(0, min(w.offset+by, w.rows-w.height))
	w.cursor = max(w.offset, min(w.cursor, w.offset+w.height-1))
	w.Move(0)
}

// Page scrolls by a part of the visible rows.
func (w *Window) Page(part float64) { w.Scroll(int(part * float64(w.PageSize()))) }

// Top scrolls to the first row.
func (w *Window) Top() { w.Scroll(-w.rows) }

// Bottom scrolls to the last row.
func (w *Window) Bottom() { w.Scroll(w.rows) }

// Visible returns the first visible row and the end of the visible rows.
func (w *Window) Visible() (from, to int) { return w.offset, min(w.offset+w.height, w.rows) }

// RowAt returns the row at a visible line. It returns false if there is none.
func (w *Window) RowAt(line int) (row int, ok bool) {
	row = w.offset + line
	return row, line >= 0 && line < w.height && row < w.rows
}

// Mouse moves the cursor by the wheel or to a clicked row. top is the line of the first
// visible row. It reports whether a row was clicked.
func (w *Window) Mouse(m tea.MouseMsg, top int) (clicked bool) {
	switch {
	case m.Button == tea.MouseButtonWheelDown:
		w.Move(wheelRows)
	case m.Button == tea.MouseButtonWheelUp:
		w.Move(-wheelRows)
	case m.Button == tea.MouseButtonLeft && m.Action == tea.MouseActionPress && m.X >= 0:
		row, ok := w.RowAt(m.Y - top)
		if ok {
			w.MoveTo(row)
		}
		return ok
	}
	return false
}

const wheelRows = 3

// Lines draws at most height rows. draw returns a row without the cursor mark, which
// takes two cells.
func (w *Window) Lines(lk *theme.Theme, height int, draw func(row int) string) []string {
	w.Resize(w.rows, height)
	from, to := w.Visible()
	out := make([]string, 0, to-from)
	for row := from; row < to; row++ {
		if row == w.cursor {
			out = append(out, lk.Row(lk.Cursor+" "+draw(row), true))
		} else {
			out = append(out, "  "+draw(row))
		}
	}
	return out
}

// Cursor scrolls a list by its cursor.
type Cursor struct {
	List interface {
		Move(by int)
		MoveTo(row int)
		Len() int
		PageSize() int
	}
}

// Scroll moves the cursor.
func (c Cursor) Scroll(by int) { c.List.Move(by) }

// Page moves the cursor by a part of the visible rows.
func (c Cursor) Page(part float64) { c.List.Move(int(part * float64(c.List.PageSize()))) }

// Top moves the cursor to the first row.
func (c Cursor) Top() { c.List.MoveTo(0) }

// Bottom moves the cursor to the last row.
func (c Cursor) Bottom() { c.List.MoveTo(c.List.Len() - 1) }
