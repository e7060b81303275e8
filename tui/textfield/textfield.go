// Package textfield edits one or several lines of text.
//
// A [Field] holds exactly what was typed, pasted or set, on top of the fields of
// bubbles, which would drop or change some of it, and draws it so that what a
// terminal would obey or not show is seen, also under the cursor. Only a single
// line has blanks for the breaks and tabs of what is pasted: an owner that means
// them makes an area of it first, see [HasLineBreaks]. It always
// takes keys: whoever owns one decides which reach it. Nothing reads the
// clipboard of the machine that this process runs on: it is not the user's.
// The package knows no forms, no dialogs and no filter. A Text belongs to the
// goroutine of one screen's Update and View.
package textfield

import (
	"slices"
	"strings"
	"unicode"

	"github.com/charmbracelet/bubbles/textarea"
	"github.com/charmbracelet/bubbles/textinput"
	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry/termtext"
	"goblin/tui/theme"
)

// Field is a text being typed, in one line or several.
type Field struct {
	Width int // cells that View has; 0 is as many as the text needs
	Limit int // characters of an area; 0 is no limit

	look  *theme.Theme
	multi bool
	awake bool // area is made
	in    textinput.Model
	area  textarea.Model
	kept  escapes
	text  string
	rows  []string // the lines of text
	off   int      // the first row drawn
	at    int      // the row of the cursor, when last drawn
	left  int      // the first character seen of it
}

// New is an empty line.
func New(lk *theme.Theme) Field {
	t := Field{look: lk, in: lk.Input(), kept: escapes{keeps: isUnsupported, joined: true}, rows: []string{""}}
	t.in.Focus()
	return t
}

// NewArea are empty lines.
func NewArea(lk *theme.Theme) Field {
	return Field{look: lk, multi: true, kept: escapes{keeps: func(r rune) bool { return r != '\n' && isUnsupported(r) }, joined: true}, rows: []string{""}}
}

// NewWrapped are empty lines that [Field.Wrapped] draws.
func NewWrapped(lk *theme.Theme) Field {
	return Field{look: lk, multi: true, kept: escapes{keeps: isInvisible}, rows: []string{""}}
}

// HasLineBreaks reports a paste that only an area takes as it is.
func HasLineBreaks(msg tea.KeyMsg) bool {
	return msg.Paste && strings.ContainsFunc(string(msg.Runes), isBreak)
}

// MaxLines is below what an area can hold; longer texts cannot be edited.
const MaxLines = 9000

// areaWidth is where the area believes its lines to be wrapped; they are drawn
// unwrapped. It measures every word anew with each letter of it, up to here.
const areaWidth = 200

// isZeroWidth reports a text with so many characters of no width that the area
// would take seconds to measure it. Nobody writes such a text.
func isZeroWidth(s string) bool {
	n := 0
	for _, r := range s {
		if unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf) {
			n++
		}
	}
	return n > 2000
}

// wake makes the area once somebody types: it takes a quarter of a megabyte,
// which a form of hundreds of fields cannot spend on each. A text of more
// lines than it holds sleeps on.
func (t *Field) wake() bool {
	if t.awake || len(t.rows) > MaxLines || isZeroWidth(t.text) {
		return t.awake
	}
	t.awake = true
	t.area = t.look.Area()
	t.area.CharLimit = t.Limit
	t.area.MaxWidth = 0
	t.area.SetWidth(areaWidth)
	t.area.Focus()
	t.area.SetValue(t.kept.escape(t.text))
	for t.area.Line() > 0 {
		t.area.CursorStart()
		before := t.area.Line()
		t.area.CursorUp()
		if t.area.Line() == before {
			break
		}
	}
	t.area.CursorStart()
	return true
}

// SetValue replaces the text and puts the cursor at its end, in an area at its
// beginning.
func (t *Field) SetValue(s string) {
	t.left, t.off = 0, 0
	if t.multi {
		t.awake, t.area = false, textarea.Model{}
		t.text, t.rows = s, strings.Split(s, "\n")
		return
	}
	t.in.SetValue(t.kept.escape(s))
	t.in.CursorEnd()
	t.read()
}

// Value is the text.
func (t *Field) Value() string { return t.text }

// Rows are its lines.
func (t *Field) Rows() []string { return t.rows }

// Multi reports whether there may be several.
func (t *Field) Multi() bool { return t.multi }

// SetTheme draws the text in another look. An area of bubbles keeps its own.
func (t *Field) SetTheme(lk *theme.Theme) {
	t.look = lk
	if t.awake {
		row, col := t.Cursor()
		t.awake = false
		t.wake()
		t.MoveTo(row, col)
	}
}

// MoveTo puts the cursor of an area elsewhere.
func (t *Field) MoveTo(row, col int) {
	if t.wake() {
		for t.area.Line() < row {
			t.area.CursorDown()
		}
		t.area.SetCursor(col)
	}
}

func (t *Field) read() {
	if t.multi {
		t.text = t.kept.unescape(t.area.Value())
		t.rows = strings.Split(t.text, "\n")
		return
	}
	t.text = t.kept.unescape(t.in.Value())
	t.rows = append(t.rows[:0], t.text)
}

// Update handles a key and reports whether the text changed. Runes that came
// at once are text, also where they spell a key's name, such as "end".
func (t *Field) Update(msg tea.KeyMsg) bool {
	before := t.text
	switch {
	case t.multi && !t.wake():
		return false
	case t.multi:
		msg = t.kept.typed(msg, true)
		s := t.kept.unescape(string(msg.Runes))
		switch strange := isZeroWidth(s); {
		case strange && t.Limit > 0:
			return false
		case t.Limit == 0 && (strange || len(t.rows)+strings.Count(s, "\n") > MaxLines):
			t.splice(s)
			return true
		}
		t.area, _ = t.area.Update(msg)
	default:
		t.in, _ = t.in.Update(t.kept.typed(msg, false))
	}
	t.read()
	return t.text != before
}

// splice puts in what the area would cut off; the text cannot be edited after it.
func (t *Field) splice(s string) {
	row, col := t.Cursor()
	rows := slices.Clone(t.rows)
	line := []rune(t.kept.escape(rows[row]))
	rows[row] = t.kept.unescape(string(line[:col])) + s + t.kept.unescape(string(line[col:]))
	t.SetValue(strings.Join(rows, "\n"))
}

// Cursor is the row and the character that the cursor stands on.
func (t *Field) Cursor() (row, col int) {
	if !t.multi {
		return 0, t.in.Position()
	}
	if !t.awake {
		return 0, 0
	}
	at := t.area.LineInfo()
	return t.area.Line(), at.StartColumn + at.ColumnOffset
}

// View draws the row of the cursor around it, in Width cells.
func (t *Field) View() string {
	row, _ := t.Cursor()
	before, under, after := t.around(t.rows[row], t.Width)
	if t.look.Bold != "" {
		return before + reversed + under + "\x1b[m" + after
	}
	return before + under + after
}

// reversed is drawn under the cursor; https://no-color.org allows it.
const reversed = "\x1b[7m"

// Column is the cell of the cursor in what View draws.
func (t *Field) Column() int {
	row, _ := t.Cursor()
	before, _, _ := t.around(t.rows[row], t.Width)
	return theme.Width(before)
}

// around cuts a line to a window of w cells that holds the
// cursor, which stays where it is as far as it can.
func (t *Field) around(line string, w int) (before, under, after string) {
	row, col := t.Cursor()
	runes := []rune(t.kept.escape(line))
	col = min(col, len(runes))
	shown := func(runes []rune) string { return termtext.Line(t.kept.unescape(string(runes))) }
	if t.at != row {
		t.at, t.left = row, 0
	}
	t.left = min(t.left, col)
	if w > 0 {
		room := max(w-2, 1) // the cursor, and a sign that something is before
		for t.left < col && theme.Width(shown(runes[t.left:col])) > room-1 {
			t.left++
		}
		// No more of it than can be seen: lines of forms may be very long.
		runes = runes[:min(len(runes), col+1+w)]
	} else {
		t.left = 0
	}
	before, under = shown(runes[t.left:col]), " "
	if t.left > 0 {
		before = t.look.Ellipsis + before
	}
	if col < len(runes) {
		under, after = shown(runes[col:col+1]), shown(runes[col+1:])
	}
	if t.look.Bold == "" && under == " " { // a terminal that shows nothing but characters
		under = "_"
	}
	if w > 0 {
		after = t.look.Cut(after, max(w-theme.Width(before+under), 0))
	}
	return before, under, after
}

// Draw is h rows of w cells around the cursor, and which of them has it. An
// empty line is filled so that it is seen to be one for typing.
func (t *Field) Draw(w, h int, focused bool) (rows []string, at int) {
	row, _ := t.Cursor()
	if focused {
		t.off = min(max(t.off, row-h+1), row)
	}
	t.off = max(min(t.off, len(t.rows)-h), 0)
	t.Width = w
	for y := t.off; y < t.off+h; y++ {
		text := ""
		switch {
		case focused && y == row:
			at = len(rows)
			text = t.View()
		case y < len(t.rows):
			text = t.visible(clip(t.rows[y], w))
		}
		if n := min(w, blankLine) - theme.Width(text); !t.multi && n > 0 {
			text += t.look.Dim.On(strings.Repeat("_", n))
		}
		rows = append(rows, t.look.Fit(text, w))
	}
	return rows, at
}

// blankLine is how far an empty line is filled at most.
const blankLine = 48

// clip is enough of a line for w cells, and a bit more so that what is cut is
// seen to be.
func clip(s string, w int) string {
	n := 0
	for i := range s {
		if n > 2*w+16 {
			return s[:i]
		}
		n++
	}
	return s
}

// visible is text for the screen; in several lines a tab is an arrow.
func (t *Field) visible(s string) string {
	if !t.multi {
		return termtext.Line(s)
	}
	parts := strings.Split(s, "\t")
	for i, p := range parts {
		parts[i] = termtext.Line(p)
	}
	return strings.Join(parts, t.look.To+"   ")
}

// Wrapped draws the text wrapped in h rows of w cells. What must not reach the
// terminal is a mark in it, as the rows are as wide as their characters; hidden
// is what the marks stand for.
func (t *Field) Wrapped(w, h int, mark string) (rows, hidden []string) {
	t.wake()
	t.area.SetWidth(w)
	t.area.SetHeight(h)
	view := t.area.View()
	for i, piece := range t.kept.all {
		if c := string(rune(standIn + i)); strings.Contains(view, c) {
			view = strings.ReplaceAll(view, c, mark)
			hidden = append(hidden, piece)
		}
	}
	return strings.Split(view, "\n"), hidden
}
