package list

import (
	"slices"
	"strings"
	"unicode/utf8"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry/termtext"
	"goblin/tui/theme"
)

// RowStyle controls how rows are drawn. Only View calls its functions, which may be nil.
type RowStyle[R any] struct {
	NoHeader  bool
	MarkWidth int // cells before the first column
	// Marks returns the styled marks of a row.
	Marks func(R) string
	// Base returns the style of a row.
	Base func(R) theme.Style
	// Note returns a styled temporary text for the end of a row, or "".
	Note func(R) string
	// Overlay returns a styled text that covers the end of its row of w cells. Other rows
	// reserve no room for it.
	Overlay func(r R, w int) string
	// HiddenTexts returns searched texts that are in no column or may be cut.
	HiddenTexts func(R) []string
	// Replacement returns a text that replaces all columns with a priority above 0, or
	// "".
	Replacement func(R) (string, theme.Style)
}

const minHeaderLines = 2

// Grid draws the visible rows below the column names.
func (t *Table[R]) Grid(lk *theme.Theme, w, h int, focused bool) []string {
	t.hasHeader = h >= minHeaderLines && len(t.cols) > 0 && len(t.Rows) > 0 && !t.NoHeader
	rows := h
	if t.hasHeader {
		rows--
	}
	t.resize(rows)
	notes := t.notes()
	t.places = t.plan(w - 2 - t.MarkWidth - notes)
	lines := t.Lines(lk, w, rows, focused, func(r R, w int) string { return t.line(lk, r, w, notes) })
	if t.hasHeader {
		lines = append([]string{t.headLine(lk, w)}, lines...)
	}
	return lines
}

func (t *Table[R]) notes() (most int) {
	if t.Note == nil {
		return 0
	}
	from, to := t.window.Visible()
	for i := from; i < to; i++ {
		if note := t.Note(t.Rows[t.Matches[i]]); note != "" {
			most = max(most, theme.Width(note)+1)
		}
	}
	return most
}

// IsColumnVisible reports whether a column is visible.
func (t *Table[R]) IsColumnVisible(name string) bool {
	return slices.ContainsFunc(t.places, func(p place) bool { return t.cols[p.col].Name == name })
}

func (t *Table[R]) sorted(i int) bool { return t.Orders[t.Order].col == i+1 && !t.byMatch() }

func (t *Table[R]) headLine(lk *theme.Theme, w int) string {
	var b strings.Builder
	b.WriteString(theme.Spaces(2 + t.MarkWidth))
	for i, p := range t.places {
		if i > 0 {
			b.WriteByte(' ')
		}
		c := &t.cols[p.col]
		cell, style := lk.Cut(c.Name, p.w), lk.Dim
		if t.sorted(p.col) {
			cell, style = lk.Cut(c.Name, p.w-1)+t.arrow(lk), lk.Accent
		}
		pad := theme.Spaces(p.w - theme.Width(cell))
		cell = style.On(cell)
		if c.AlignRight {
			b.WriteString(pad + cell)
		} else {
			b.WriteString(cell + pad)
		}
	}
	return lk.Fit(b.String(), w)
}

type cell struct {
	text  string
	style theme.Style
}

func (t *Table[R]) line(lk *theme.Theme, r R, w, notes int) string {
	var b strings.Builder
	if t.MarkWidth > 0 {
		b.WriteString(lk.Fit(t.Marks(r), t.MarkWidth))
	}
	base := theme.Style("")
	if t.Base != nil {
		base = t.Base(r)
	}
	room := w - t.MarkWidth - notes
	cells := make([]cell, len(t.places))
	for i, p := range t.places {
		cells[i] = t.cell(lk, r, p, base)
	}
	instead, style := "", theme.Style("")
	if t.Replacement != nil {
		instead, style = t.Replacement(r)
	}
	t.showHit(lk, r, cells)
	for i := 0; i < len(t.places); {
		p, mine := t.places[i], cells[i]
		c := &t.cols[p.col]
		if i++; instead != "" && c.Priority > 0 {
			b.WriteString(t.Highlight(lk, lk.Fit(termtext.Line(instead), max(room-p.x, 0)), style))
			break
		}
		for !c.AlignRight && theme.Width(mine.text) > p.w && i < len(cells) && cells[i].text == "" && instead == "" {
			p.w += 1 + t.places[i].w // extends into empty neighbours
			i++
		}
		b.WriteString(t.drawn(lk, mine.text, p.w, c, mine.style))
		if i < len(cells) {
			b.WriteByte(' ')
		}
	}
	line := b.String()
	if notes > 0 {
		line = lk.Fit(line, w-notes) + " " + t.Note(r)
	}
	if t.Overlay != nil {
		if over := t.Overlay(r, w); over != "" {
			line = lk.Fit(strings.TrimRight(line, " "), max(w-theme.Width(over)-1, 0)) + " " + over
		}
	}
	return line
}

func (t *Table[R]) cell(lk *theme.Theme, r R, p place, base theme.Style) cell {
	c, out := &t.cols[p.col], cell{}
	if c.Show != nil {
		out.text, out.style = c.Show(r, p.w)
	} else {
		out.text = termtext.Line(c.Text(r))
	}
	switch {
	case out.style != "":
	case base == "" && c.Dim:
		out.style = lk.Dim
	default:
		out.style = base
	}
	return out
}

func (t *Table[R]) drawn(lk *theme.Theme, text string, w int, c *Column[R], style theme.Style) string {
	n := theme.Width(text)
	if n > w {
		text = t.cut(lk, text, w, c.CutMiddle)
		n = theme.Width(text)
	}
	out := t.Highlight(lk, text, style)
	if c.AlignRight {
		return theme.Spaces(w-n) + out
	}
	return out + theme.Spaces(w-n)
}

func (t *Table[R]) cut(lk *theme.Theme, text string, w int, middle bool) string {
	short := func(text string) string {
		if middle {
			return lk.Middle(text, w)
		}
		return lk.Cut(text, w)
	}
	cut := short(text)
	if t.FilterText == "" || len(t.query.Spans(cut)) > 0 {
		return cut
	}
	return lk.Cut(t.cutToMatch(lk, text, w), w)
}

// maxSearched limits the search for the match to show to the beginning of a text, in bytes.
const maxSearched = 4096

// cutToMatch cuts the beginning of a text so that its first match is visible in w cells.
func (t *Table[R]) cutToMatch(lk *theme.Theme, text string, w int) string {
	spans := t.query.Spans(text[:min(len(text), maxSearched)])
	if len(spans) == 0 {
		return text
	}
	at := spans[0]
	if theme.Width(text[:at.End]) <= w-1 {
		return text
	}
	from := max(at.Start-w/3, 0)
	if space := strings.IndexByte(text[from:at.Start], ' '); space >= 0 {
		from += space + 1
	}
	for from < at.Start && !utf8.RuneStart(text[from]) {
		from++
	}
	return lk.Ellipsis + text[from:]
}

// showHit shows a match that no visible column contains.
func (t *Table[R]) showHit(lk *theme.Theme, r R, cells []cell) {
	if t.FilterText == "" || t.HiddenTexts == nil || len(cells) == 0 {
		return
	}
	into := 0
	for i, p := range t.places {
		if len(t.query.Spans(t.cut(lk, cells[i].text, p.w, t.cols[p.col].CutMiddle))) > 0 {
			return
		}
		if rest := t.cols[t.places[into].col].Fills; !rest && (t.cols[p.col].Fills || p.w > t.places[into].w) {
			into = i
		}
	}
	w := t.places[into].w
	for _, text := range t.HiddenTexts(r) {
		text = strings.Join(strings.Fields(termtext.Line(text[:min(len(text), maxSearched)])), " ")
		if len(t.query.Spans(text)) == 0 {
			continue
		}
		if t.cols[t.places[into].col].Fills {
			cells[into].text = t.cutToMatch(lk, text, w)
		} else if w >= 24 {
			cells[into].text = lk.Middle(cells[into].text, w-w/2) + " " + lk.Cut(t.cutToMatch(lk, text, w/2-1), w/2-1)
		}
		return
	}
}

// Click selects the row at a line, or sorts by the clicked column name.
func (t *Table[R]) Click(x, y int) (row bool, cmd tea.Cmd) {
	if t.hasHeader {
		if y--; y < 0 {
			return false, t.clickHead(x - 2 - t.MarkWidth)
		}
	}
	i, ok := t.window.RowAt(y)
	if ok {
		t.MoveTo(i)
	}
	return ok, nil
}

func (t *Table[R]) clickHead(x int) tea.Cmd {
	for _, p := range t.places {
		if x >= p.x && x <= p.x+p.w && t.cols[p.col].Name != "" {
			return t.Sort(t.cols[p.col].Name)
		}
	}
	return nil
}
