// Package textfield edits one or several lines of text.
//
// A [Field] preserves exactly the text that was typed, pasted or set. The fields of
// bubbles underneath change some of it. It draws control and invisible characters
// visibly. Only a single-line field replaces pasted line breaks and tabs by spaces. To
// keep them, the owner switches to an area first, see [HasLineBreaks]. A Field handles
// every key that its owner passes on. It never reads a clipboard, because that of this
// machine may not be the user's. The package must not import forms, dialogs or the
// filter. A Field belongs to the goroutine of its UI's Update and View.
package textfield

import (
	"math"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/bubbles/textarea"
	"github.com/charmbracelet/bubbles/textinput"
	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry/termtext"
	"goblin/tui/theme"
)

// Field is an editable text of one or several lines.
type Field struct {
	Width int // cells for View; 0: as wide as the text
	Limit int // maximum characters of an area; 0: none

	look    *theme.Theme
	multi   bool
	wrapped bool // by area
	awake   bool // area is created
	in      textinput.Model
	area    textarea.Model
	escapes escapes
	text    string
	stale   bool     // text is older than rows
	rows    []string // the lines of text
	row     int      // with the cursor, in in
	off     int      // first drawn row
	at      int      // when last drawn
	left    int      // first drawn character of it
	mask    Mask     // or nil
}

// New returns an empty single-line field.
func New(lk *theme.Theme) Field {
	t := Field{look: lk, in: lk.Input(), escapes: escapes{keeps: isUnsupported, joined: true}, rows: []string{""}}
	t.in.Focus()
	return t
}

// NewArea returns an empty field of several lines.
func NewArea(lk *theme.Theme) Field {
	t := New(lk)
	t.multi = true
	t.escapes.keeps = func(r rune) bool { return r != '\n' && isUnsupported(r) }
	return t
}

// NewWrapped returns an empty field of several lines that [Field.Wrapped] draws.
func NewWrapped(lk *theme.Theme) Field {
	return Field{look: lk, multi: true, wrapped: true, escapes: escapes{keeps: isInvisible}, rows: []string{""}}
}

// Mask returns the index in bytes from which a row is drawn as stars, or its length.
type Mask func(rows []string, row int) int

// MaskAll masks each row, except references such as ${TOKEN}.
func MaskAll(rows []string, row int) int {
	if strings.HasPrefix(rows[row], "${") {
		return len(rows[row])
	}
	return 0
}

// Mask draws parts of the text as stars. Wrapped fields ignore it.
func (t *Field) Mask(mask Mask) { t.mask = mask }

// Hides reports whether a part of the text is drawn as stars.
func (t *Field) Hides() bool {
	for row := range t.rows {
		if t.clear(row) < len(t.rows[row]) {
			return true
		}
	}
	return false
}

// clear returns the length of the readable start of a row, in bytes.
func (t *Field) clear(row int) int {
	if t.mask == nil {
		return len(t.rows[row])
	}
	return t.mask(t.rows, row)
}

func stars(n int) string { return strings.Repeat("*", n) }

// HasLineBreaks reports whether only an area preserves a pasted text.
func HasLineBreaks(msg tea.KeyMsg) bool {
	return msg.Paste && strings.ContainsFunc(string(msg.Runes), isBreak)
}

// isZeroWidth reports whether a text has so many zero-width characters that the area
// would take seconds to measure it.
func isZeroWidth(s string) bool {
	n := 0
	for _, r := range s {
		if unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf) {
			n++
		}
	}
	return n > 2000
}

// wake creates the area of a wrapped field on first input. It returns false for text that the
// area cannot hold, which stays read-only.
func (t *Field) wake() bool {
	if t.awake || isZeroWidth(t.text) {
		return t.awake
	}
	t.awake = true
	t.area = t.look.Area()
	t.area.CharLimit = t.Limit
	t.area.MaxWidth = 0
	t.area.Focus()
	t.area.SetValue(t.escapes.escape(t.text))
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

// SetValue replaces the text. The cursor moves to the end, or to the start of an area.
func (t *Field) SetValue(s string) {
	t.left, t.off = 0, 0
	switch {
	case t.wrapped:
		t.awake, t.area = false, textarea.Model{}
		t.text, t.rows = s, strings.Split(s, "\n")
		return
	case t.multi:
		t.setRows(strings.Split(s, "\n"), 0, 0)
		return
	}
	t.in.SetValue(t.escapes.escape(s))
	t.in.CursorEnd()
	t.read()
}

// Value returns the text.
func (t *Field) Value() string {
	if t.stale {
		t.text, t.stale = strings.Join(t.rows, "\n"), false
	}
	return t.text
}

// Rows returns the lines of the text.
func (t *Field) Rows() []string { return t.rows }

// Multi reports whether the field allows several lines.
func (t *Field) Multi() bool { return t.multi }

// SetTheme changes the theme and recreates the area.
func (t *Field) SetTheme(lk *theme.Theme) {
	t.look = lk
	if t.awake {
		row, col := t.Cursor()
		t.awake = false
		t.wake()
		for t.area.Line() < row {
			t.area.CursorDown()
		}
		t.area.SetCursor(col)
	}
}

// MoveTo moves the cursor of an area.
func (t *Field) MoveTo(row, col int) {
	if t.multi && !t.wrapped {
		t.goTo(row, col)
	}
}

func (t *Field) read() {
	if t.wrapped {
		t.text = t.escapes.unescape(t.area.Value())
		t.rows = strings.Split(t.text, "\n")
		return
	}
	t.text = t.escapes.unescape(t.in.Value())
	t.rows = append(t.rows[:0], t.text)
}

// Update handles a key and reports whether the text changed. Several runes at once are
// text, even if they spell a key such as "end".
func (t *Field) Update(msg tea.KeyMsg) bool {
	if t.multi && !t.wrapped {
		return t.updateRows(msg)
	}
	before := t.text
	switch {
	case t.wrapped && !t.wake():
		return false
	case t.wrapped:
		msg = t.escapes.typed(msg, true)
		if isZeroWidth(string(msg.Runes)) {
			return false
		}
		t.area, _ = t.area.Update(msg)
	default:
		t.in, _ = t.in.Update(t.escapes.typed(msg, false))
	}
	t.read()
	return t.text != before
}

// Cursor returns the row and the character of the cursor.
func (t *Field) Cursor() (row, col int) {
	if !t.wrapped {
		return t.row, t.in.Position()
	}
	if !t.awake {
		return 0, 0
	}
	at := t.area.LineInfo()
	return t.area.Line(), at.StartColumn + at.ColumnOffset
}

// View draws the row of the cursor in Width cells.
func (t *Field) View() string {
	row, _ := t.Cursor()
	before, under, after := t.around(t.rows[row], t.Width)
	if t.look.Bold != "" {
		return before + reversed + under + "\x1b[m" + after
	}
	return before + under + after
}

// reversed styles the cursor; https://no-color.org allows it.
const reversed = "\x1b[7m"

// Column returns the cell of the cursor in the result of View.
func (t *Field) Column() int {
	row, _ := t.Cursor()
	before, _, _ := t.around(t.rows[row], t.Width)
	return theme.Width(before)
}

// around cuts a line to a window of w cells around the cursor.
func (t *Field) around(line string, w int) (before, under, after string) {
	row, col := t.Cursor()
	readable := math.MaxInt // characters of the line
	if from := t.clear(row); from < len(line) {
		readable = utf8.RuneCountInString(t.escapes.escape(line[:from]))
	}
	shown := func(runes []rune, at int) string {
		n := min(max(readable-at, 0), len(runes))
		return termtext.Line(t.escapes.unescape(string(runes[:n]))) + stars(len(runes)-n)
	}
	if t.at != row {
		t.at, t.left = row, 0
	}
	room := max(w-2, 1) // without the cursor and the ellipsis
	last := len(line)
	if w > 0 { // lines of forms may be very long, and most characters take cells
		t.left = max(min(t.left, col), col-4*(room+8))
		last = col + 1 + w
	} else {
		t.left = 0
	}
	runes := between(t.escapes.escape(line), t.left, last)
	at := min(col-t.left, len(runes))
	for w > 0 && at > 0 && theme.Width(shown(runes[:at], t.left)) > room-1 {
		runes, at = runes[1:], at-1
		t.left++
	}
	before, under = shown(runes[:at], t.left), " "
	if t.left > 0 {
		before = t.look.Ellipsis + before
	}
	if at < len(runes) {
		under, after = shown(runes[at:at+1], t.left+at), shown(runes[at+1:], t.left+at+1)
	}
	if t.look.Bold == "" && under == " " { // a terminal without styles
		under = "_"
	}
	if w > 0 {
		after = t.look.Cut(after, max(w-theme.Width(before+under), 0))
	}
	return before, under, after
}

// between returns the characters of s with the indexes [from, to).
func between(s string, from, to int) []rune {
	var out []rune
	n := 0
	for _, r := range s {
		if n >= to {
			break
		}
		if n >= from {
			out = append(out, r)
		}
		n++
	}
	return out
}

// Draw returns h rows of w cells around the cursor, and the row of the cursor. An empty
// single-line field is underlined.
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
			shown := clip(t.rows[y], w)
			from := min(t.clear(y), len(shown))
			text = t.visible(shown[:from]) + stars(utf8.RuneCountInString(shown[from:]))
		}
		if n := min(w, blankLine) - theme.Width(text); !t.multi && n > 0 {
			text += t.look.Dim.On(strings.Repeat("_", n))
		}
		rows = append(rows, t.look.Fit(text, w))
	}
	return rows, at
}

// blankLine is the maximum underline, in cells.
const blankLine = 48

// clip cuts a line to a bit more than w cells.
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

// visible returns sanitized text; in an area, tabs become arrows.
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

// Wrapped draws the text in h rows of w cells. A mark replaces each character that must
// not reach the terminal; hidden lists these.
func (t *Field) Wrapped(w, h int, mark string) (rows, hidden []string) {
	t.wake()
	t.area.SetWidth(w)
	t.area.SetHeight(h)
	view := t.area.View()
	for i, piece := range t.escapes.all {
		if c := string(rune(standIn + i)); strings.Contains(view, c) {
			view = strings.ReplaceAll(view, c, mark)
			hidden = append(hidden, piece)
		}
	}
	return strings.Split(view, "\n"), hidden
}
