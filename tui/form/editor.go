package form

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/bubbles/key"
	"github.com/charmbracelet/bubbles/textarea"
	"github.com/charmbracelet/bubbles/textinput"
	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"

	"goblin/gateway/display"
	"goblin/tui/look"
)

// editor is a text being typed, in one line or several. It always takes keys;
// whoever owns it decides which reach it. It draws itself, since what is
// prefilled is as foreign as any other text of a server.
type editor struct {
	look  *look.Look
	multi bool
	awake bool // area is made
	in    textinput.Model
	area  textarea.Model
	text  string   // its value
	rows  []string // the lines of text
	off   int      // the first row drawn
}

// held is where characters are kept that the text fields of bubbles would drop
// or change, such as tabs: a plane of private use.
const held = 0xf0000

func keep(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n':
			return r
		case unicode.IsControl(r):
			return held + r
		case r == utf8.RuneError:
			return held + 0xfffd
		}
		return r
	}, s)
}

func kept(s string) string {
	return strings.Map(func(r rune) rune {
		if r == held+0xfffd || r >= held && r < held+0xa0 && unicode.IsControl(r-held) {
			return r - held
		}
		return r
	}, s)
}

// newEditor is empty. Nothing reads the clipboard of the machine that this
// process runs on: it is not the one of the screen.
func newEditor(l *look.Look, multi bool) editor {
	e := editor{look: l, multi: multi, rows: []string{""}}
	if !multi {
		e.in = l.Input()
		k := &e.in.KeyMap
		none := key.NewBinding()
		k.Paste, k.AcceptSuggestion, k.NextSuggestion, k.PrevSuggestion = none, none, none, none
		e.in.Focus()
	}
	return e
}

// areaWidth is where the area believes its lines to be wrapped; they are drawn
// unwrapped. It measures every word anew with each letter of it, up to here.
const areaWidth = 200

// weightless reports a text with so many characters of no width that the area
// would take seconds to measure it. Nobody writes such a text.
func weightless(s string) bool {
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
func (e *editor) wake() bool {
	if e.awake || len(e.rows) > maxAreaLines || weightless(e.text) {
		return e.awake
	}
	e.awake = true
	e.area = e.look.Area()
	e.area.MaxWidth = 0
	e.area.SetWidth(areaWidth)
	e.area.KeyMap.Paste = key.NewBinding()
	e.area.Focus()
	e.area.SetValue(keep(e.text))
	e.home()
	return true
}

// set replaces the text and puts the cursor at its end, in an area at its
// beginning.
func (e *editor) set(s string) {
	s = strings.ToValidUTF8(s, string(utf8.RuneError))
	if e.multi {
		e.awake, e.area, e.off = false, textarea.Model{}, 0
		e.text, e.rows = s, strings.Split(s, "\n")
		return
	}
	e.in.SetValue(keep(s))
	e.in.CursorEnd()
	e.read()
}

func (e *editor) home() {
	for e.area.Line() > 0 {
		e.area.CursorStart()
		before := e.area.Line()
		e.area.CursorUp()
		if e.area.Line() == before {
			break
		}
	}
	e.area.CursorStart()
}

func (e *editor) read() {
	if e.multi {
		e.text = kept(e.area.Value())
		e.rows = strings.Split(e.text, "\n")
		return
	}
	e.text = kept(e.in.Value())
	e.rows = append(e.rows[:0], e.text)
}

// update handles a key and reports whether the text changed.
func (e *editor) update(msg tea.KeyMsg) bool {
	if msg.Type == tea.KeyRunes && (msg.Paste || len(msg.Runes) > 1) {
		s := strings.ReplaceAll(string(msg.Runes), "\r\n", "\n")
		if e.multi && weightless(s) {
			return false
		}
		if e.multi {
			s = keep(strings.ReplaceAll(s, "\r", "\n"))
		} else {
			s = strings.Trim(s, "\r\n")
		}
		// As a paste, or a burst of runes such as "end" would be taken for the
		// key of that name.
		msg.Runes, msg.Paste = []rune(s), true
	}
	before := e.text
	if e.multi {
		if !e.wake() {
			return false
		}
		e.area, _ = e.area.Update(msg)
	} else {
		e.in, _ = e.in.Update(msg)
	}
	e.read()
	return e.text != before
}

// cursor is the row and the character that the cursor stands on.
func (e *editor) cursor() (row, col int) {
	if !e.multi {
		return 0, e.in.Position()
	}
	if !e.awake {
		return 0, 0
	}
	at := e.area.LineInfo()
	return e.area.Line(), at.StartColumn + at.ColumnOffset
}

// draw is h rows of w cells around the cursor, and which of them has it. An
// empty row is filled so that it is seen to be one for typing.
func (e *editor) draw(l *look.Look, w, h int, focused bool) (rows []string, at int) {
	row, col := e.cursor()
	if focused {
		e.off = min(max(e.off, row-h+1), row)
	}
	e.off = max(min(e.off, len(e.rows)-h), 0)
	for y := e.off; y < e.off+h; y++ {
		text := ""
		if y < len(e.rows) {
			text = e.rows[y]
		}
		switch {
		case focused && y == row:
			at = len(rows)
			rows = append(rows, e.fill(l, cursorLine(l, text, col, w), w))
		default:
			rows = append(rows, e.fill(l, visible(l, clip(text, w), e.multi), w))
		}
	}
	return rows, at
}

// blankLine is how far an empty line is filled at most.
const blankLine = 48

func (e *editor) fill(l *look.Look, s string, w int) string {
	n := min(w, blankLine) - look.Width(s)
	if e.multi || n <= 0 {
		return l.Fit(s, w)
	}
	return l.Fit(s+l.Dim.On(strings.Repeat("_", n)), w)
}

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
func visible(l *look.Look, s string, tabs bool) string {
	if !tabs || !strings.Contains(s, "\t") {
		return display.Line(s)
	}
	parts := strings.Split(s, "\t")
	for i, p := range parts {
		parts[i] = display.Line(p)
	}
	return strings.Join(parts, l.To+"   ")
}

// reverse is drawn for the cursor; NO_COLOR allows it.
const reverse = "\x1b[7m"

// cursorLine is what is seen of a line through a window of w cells that holds
// the cursor.
func cursorLine(l *look.Look, text string, col, w int) string {
	runes := []rune(text)
	col = min(col, len(runes))
	from, used := col, 0
	for from > 0 {
		n := look.Width(display.Line(string(runes[from-1])))
		if used+n > w-2 {
			break
		}
		used += n
		from--
	}
	before, under, after := display.Line(string(runes[from:col])), " ", ""
	if from > 0 {
		before = l.Ellipsis + ansi.TruncateLeft(before, 1, "")
	}
	if col < len(runes) {
		under = display.Line(string(runes[col]))
		after = display.Line(string(runes[col+1 : min(len(runes), col+1+w)]))
	}
	if l.Bold == "" { // a terminal that can show nothing but characters
		if under == " " {
			under = "_"
		}
		return before + under + after
	}
	return before + reverse + under + "\x1b[m" + after
}
