package viewer

import (
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"goblin/tui/theme"
)

// View is a window on a document. Use [NewView] to create one.
type View struct {
	lk        *theme.Theme
	inks      [inks]theme.Style
	whole     *Doc
	doc       *Doc // whole, or only its lines with matches
	only      bool // shows only lines with matches
	target    int  // line of the last GoToLine, plus one
	leaving   bool // the next document is another text
	top       int  // first visible line
	left      int  // hidden cells at the left
	w, h      int  // size when last drawn
	beyondEnd bool // the user scrolled below the last page
	seekStart bool // the next drawing moves to the start
	marked    bool
	search
	writer lineWriter
}

// NewView returns a view of an empty document.
func NewView(lk *theme.Theme) *View {
	empty := &Doc{}
	v := &View{whole: empty, doc: empty}
	v.SetTheme(lk)
	return v
}

// SetTheme changes the theme, except the styles in the document.
func (v *View) SetTheme(lk *theme.Theme) {
	v.lk = lk
	v.inks = [inks]theme.Style{
		inkBold: lk.Bold, inkEm: lk.Underline, inkCode: lk.Code, inkLink: lk.Link,
		inkName: lk.Name, inkString: lk.String, inkNumber: lk.Number, inkWord: lk.Word, inkPunct: lk.Punct,
		inkDim: lk.Dim, inkHeading: lk.Heading, inkTitle: lk.Title, inkBad: lk.Bad, inkWarn: lk.Warn,
	}
}

// Show replaces the document; nil means an empty one. The search stays, see
// [View.Forget]. With keep, so does the scroll position.
func (v *View) Show(d *Doc, keep bool) {
	if d == nil {
		d = &Doc{}
	}
	old, top := v.whole, v.top
	if v.onlyMatches() && top < len(v.doc.lines) { // its line in the whole document
		off := v.doc.lines[top].off
		top = sort.Search(len(old.lines), func(i int) bool { return old.lines[i].off >= off })
	}
	v.whole, v.doc, v.marked, v.target = d, d, d.changed != nil, 0
	v.top = 0
	if keep && !v.leaving {
		v.top = d.matchingLine(old, top)
	}
	if !keep {
		v.left, v.beyondEnd, v.seekStart = 0, false, false
	}
	v.leaving = false
	v.Scroll(0)
	v.Right(0)
	if v.query == "" {
		return
	}
	v.find()
	v.at = v.matchFrom(v.top)
	v.showMatches()
	if v.awaited && len(v.matches) > 0 {
		v.awaited = false
		v.reveal()
	}
}

// Forget stops the search, before the document of something else is built. A search that
// starts before [View.Show] applies to that document.
func (v *View) Forget() {
	v.search, v.only = search{}, false
	v.showMatches()
}

// Doc returns the document, never nil.
func (v *View) Doc() *Doc { return v.whole }

// Unmark removes the edge marks.
func (v *View) Unmark() { v.marked = false }

// Scroll moves the window down, or up if negative, to the last page. With JSON it
// continues to the last node, so that every node can be folded.
func (v *View) Scroll(lines int) {
	v.awaited = v.awaited && lines == 0
	limit := v.bottom()
	if n := len(v.doc.nodes); n > 0 && (lines != 0 || v.beyondEnd) {
		limit = max(limit, v.doc.nodes[n-1].line)
	}
	v.top = max(min(v.top+lines, limit), 0)
	v.beyondEnd = v.top > v.bottom()
}

func (v *View) bottom() int { return max(len(v.doc.lines)-max(v.h, 1), 0) }

// Page moves the window by its own height, times a factor.
func (v *View) Page(pages float64) {
	n := int(pages * float64(max(v.h, 1)))
	if n == 0 && pages != 0 {
		n = 1
		if pages < 0 {
			n = -1
		}
	}
	v.Scroll(min(n, max(v.bottom()-v.top, 0)))
}

// Top moves the window to the first line.
func (v *View) Top() { v.top, v.beyondEnd = 0, false }

// ToStart scrolls to the start section when the view is next drawn, because only then is
// its size known. It does nothing if enough of the section is visible.
func (v *View) ToStart() { v.seekStart = true }

func (v *View) toStart() {
	const enough = 6 // lines
	if !v.seekStart || v.h == 0 {
		return
	}
	v.seekStart = false
	if start := v.doc.start; start+enough > v.top+v.h && start > v.top {
		v.top = min(start, v.bottom())
	}
}

// Bottom moves the window to the last lines.
func (v *View) Bottom() { v.top, v.beyondEnd = v.bottom(), false }

// Right moves the window right over wide lines, or left if negative.
func (v *View) Right(cells int) {
	w := v.w
	if w == 0 {
		w = v.doc.width
	}
	v.left = max(min(v.left+cells, v.doc.longest-max(w-1, 1)), 0)
}

// Position returns the visible lines, counted from 1, and the total; all are 0 without
// lines.
func (v *View) Position() (first, last, total int) {
	total = len(v.doc.lines)
	return min(v.top+1, total), min(v.top+max(v.h, 1), total), total
}

// Node returns the JSON container that begins in line y. With near, it also accepts the
// next one in the window, or the last one above.
func (v *View) Node(y int, near bool) (id uint64, ok bool) {
	nodes, at := v.doc.nodes, v.top+y
	i := sort.Search(len(nodes), func(i int) bool { return nodes[i].line >= at })
	switch {
	case i < len(nodes) && (nodes[i].line == at || near && nodes[i].line < v.top+v.h):
		return nodes[i].id, true
	case near && i > 0:
		return nodes[i-1].id, true
	}
	return 0, false
}

// Lines draws the window: h lines of w cells.
func (v *View) Lines(w, h int) []string {
	v.w, v.h = max(w, 0), max(h, 0)
	v.toStart()
	v.Scroll(0)
	v.Right(0)
	out := make([]string, v.h)
	for i := range out {
		if k := v.top + i; k < len(v.doc.lines) && w > 0 {
			out[i] = v.draw(k)
		} else {
			out[i] = theme.Spaces(v.w)
		}
	}
	return out
}

func (v *View) draw(i int) string {
	p := &v.writer
	p.uncertain, p.strict = false, false
	v.paint(i)
	if p.uncertain && theme.Width(string(p.text)) != v.w {
		// Separate characters joined on the terminal.
		p.strict = true
		v.paint(i)
	}
	return string(p.text)
}

func (v *View) paint(i int) {
	l, p := v.doc.lines[i], &v.writer
	p.text, p.style = p.text[:0], ""
	switch {
	case v.target == i+1:
		p.setStyle(v.lk.Accent)
		p.writeString(v.lk.Cursor)
	case v.marked && v.doc.changed != nil && v.doc.changed[i]:
		p.setStyle(v.lk.Changed)
		p.writeString(v.lk.Edge)
	default:
		p.writeString(" ")
	}
	room := v.w - 1
	col := int(l.indent)
	if l.flags&numbered != 0 {
		col = 0
		room -= v.number(l, room)
	}
	if l.flags&pictured != 0 {
		v.picture(l, max(room, 0))
		return
	}
	for range l.depth() {
		if room < 2 {
			break
		}
		p.setStyle(v.lk.Dim)
		p.writeString(v.lk.Vertical)
		p.setStyle("")
		p.writeString(" ")
		room -= 2
	}
	if l.flags&ruled != 0 {
		n := max(min(room, v.doc.width-1-2*l.depth()), 0)
		p.setStyle(v.lk.Dim)
		p.writeString(strings.Repeat(v.lk.Horizontal, n))
		p.setStyle("")
		p.writeString(theme.Spaces(room - n))
		return
	}
	if room > 0 {
		v.content(l, col, room)
	}
}

func (v *View) number(l line, room int) int {
	p, w := &v.writer, min(int(l.indent), room)
	if w < 2 || l.arg == 0 || l.flags&continued != 0 {
		p.setStyle("")
		p.writeString(theme.Spaces(w))
		return w
	}
	p.setStyle(v.lk.Dim)
	p.writeString(v.lk.Right(strconv.Itoa(int(l.arg)), w-1))
	p.setStyle("")
	p.writeString(" ")
	return w
}

func (v *View) content(l line, indent, room int) {
	p, text := &v.writer, v.doc.text(l)
	over := (v.doc.longest-v.left > room || v.w < v.doc.width) &&
		indent+cellWidth(text, v.left+room-indent+1)-v.left > room
	p.skip = v.left
	p.limit = room
	p.x = 0
	p.full = false
	if over {
		p.limit--
	}
	p.writeSpaces("", indent)
	current := l.ink
	hit := v.firstMatch(l)
	for i, col := 0, 0; i < len(text) && !p.full; {
		c := text[i]
		if isInk(c) {
			current = ink(c)
			i++
			continue
		}
		style := v.inks[current]
		if current == inkField {
			style = v.doc.styles[l.arg]
		}
		stop := len(text)
		style, stop, hit = v.matchStyle(style, l, i, stop, hit)
		// Fast path for runs of plain characters.
		run := i
		for run < stop && text[run] >= ' ' && text[run] < utf8.RuneSelf {
			run++
		}
		n, w := run-i, run-i
		switch {
		case n > 0:
			p.writeASCII(style, text[i:run])
		case c == '\t':
			n, w = 1, tabStop-col%tabStop
			p.writeSpaces(style, w)
		default:
			var f clusterKind
			n, w, f = cluster(text[i:])
			p.writeCluster(style, text[i:i+n], w, f)
		}
		i += n
		col += w
	}
	p.setStyle("")
	if over {
		p.writeString(v.lk.Ellipsis)
		p.x++
	}
	p.writeString(theme.Spaces(room - p.x))
}

func (v *View) firstMatch(l line) int {
	return sort.Search(len(v.matches), func(i int) bool { return v.matches[i].to > l.off })
}

// matchStyle returns the style at offset i of a line, its next change, and the current or
// next match.
func (v *View) matchStyle(style theme.Style, l line, i, stop, hit int) (theme.Style, int, int) {
	at := l.off + uint32(i)
	for hit < len(v.matches) && v.matches[hit].to <= at {
		hit++
	}
	if hit == len(v.matches) {
		return style, stop, hit
	}
	m := v.matches[hit]
	if at < m.from {
		return style, min(stop, int(m.from-l.off)), hit
	}
	style = v.lk.Match
	if hit == v.at {
		style += v.lk.Selected
	}
	return style, min(stop, int(m.to-l.off)), hit
}
