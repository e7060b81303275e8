package content

import (
	"bytes"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"goblin/tui/look"
)

const reset = "\x1b[m"

// View is a window on a document. The zero value is of no use; see [NewView].
type View struct {
	lk     *look.Look
	inks   [inks]look.Style
	doc    *Doc
	top    int // the first line shown
	left   int // cells that are out of sight at the left
	w, h   int // drawn last
	marked bool
	search
	out pen
}

// NewView is a view of nothing.
func NewView(lk *look.Look) *View {
	v := &View{doc: &Doc{}}
	v.SetLook(lk)
	return v
}

// SetLook changes the theme. What was chosen from the look when the document
// was built (styles of facts, bullets) stays until it is built again.
func (v *View) SetLook(lk *look.Look) {
	v.lk = lk
	v.inks = [inks]look.Style{
		inkBold: lk.Bold, inkEm: lk.Underline, inkCode: lk.Code, inkLink: lk.Link,
		inkName: lk.Name, inkString: lk.String, inkNumber: lk.Number, inkWord: lk.Word, inkPunct: lk.Punct,
		inkDim: lk.Dim, inkHeading: lk.Heading, inkTitle: lk.Title, inkBad: lk.Bad, inkWarn: lk.Warn,
	}
}

// Show changes the document; nil shows nothing. With keep the window stays at
// the same text, or near the same place if the text is gone, and what was
// searched for stays marked; otherwise both begin anew.
func (v *View) Show(d *Doc, keep bool) {
	if d == nil {
		d = &Doc{}
	}
	old := v.doc
	v.doc, v.marked = d, d.changed != nil
	if !keep {
		v.top, v.left = 0, 0
		v.search = search{}
		return
	}
	v.top = d.like(old, v.top)
	v.Scroll(0)
	v.Right(0)
	if v.query != "" {
		v.find()
		v.at = v.matchFrom(v.top)
	}
}

// Doc is what is shown, empty but never nil.
func (v *View) Doc() *Doc { return v.doc }

// Unmark takes the edge marks away.
func (v *View) Unmark() { v.marked = false }

// Scroll moves the window down, or up if negative.
func (v *View) Scroll(lines int) {
	v.top = max(min(v.top+lines, len(v.doc.lines)-max(v.h, 1)), 0)
}

// Page moves the window by its own height, times a factor.
func (v *View) Page(pages float64) {
	n := int(pages * float64(max(v.h, 1)))
	if n == 0 && pages != 0 {
		n = 1
		if pages < 0 {
			n = -1
		}
	}
	v.Scroll(n)
}

// Top moves the window to the first line.
func (v *View) Top() { v.top = 0 }

// Bottom moves the window to the last lines.
func (v *View) Bottom() { v.Scroll(len(v.doc.lines)) }

// Right moves the window to the right over lines that are wider than it, or
// to the left if negative.
func (v *View) Right(cells int) {
	w := v.w
	if w == 0 {
		w = v.doc.width
	}
	v.left = max(min(v.left+cells, v.doc.longest-max(w-1, 1)), 0)
}

// Position is which lines are in the window, counted from 1, and how many
// there are. All are 0 when there are none.
func (v *View) Position() (first, last, total int) {
	total = len(v.doc.lines)
	return min(v.top+1, total), min(v.top+max(v.h, 1), total), total
}

// Lines draws the window: h lines of w cells.
func (v *View) Lines(w, h int) []string {
	v.w, v.h = max(w, 0), max(h, 0)
	v.Scroll(0)
	v.Right(0)
	out := make([]string, v.h)
	for i := range out {
		if k := v.top + i; k < len(v.doc.lines) && w > 0 {
			out[i] = v.draw(k)
		} else {
			out[i] = look.Blank(v.w)
		}
	}
	return out
}

// draw is line i in exactly v.w cells.
func (v *View) draw(i int) string {
	p := &v.out
	p.odd, p.strict = false, false
	v.paint(i)
	if p.odd && look.Width(string(p.text)) != v.w {
		// Characters that were apart in the text became one on the screen.
		p.strict = true
		v.paint(i)
	}
	return string(p.text)
}

func (v *View) paint(i int) {
	l, p := v.doc.lines[i], &v.out
	p.text, p.style = p.text[:0], ""
	edge := v.marked && v.doc.changed[i]
	if edge {
		p.set(v.lk.Changed)
		p.string(v.lk.Edge)
	} else {
		p.string(" ")
	}
	room := v.w - 1
	col := int(l.indent)
	if l.flags&numbered != 0 {
		col = 0
		room -= v.number(l, room)
	}
	for range l.depth() {
		if room < 2 {
			break
		}
		p.set(v.lk.Dim)
		p.string(v.lk.Vertical)
		p.set("")
		p.string(" ")
		room -= 2
	}
	if l.flags&ruled != 0 {
		n := max(min(room, v.doc.width-1-2*l.depth()), 0)
		p.set(v.lk.Dim)
		p.string(strings.Repeat(v.lk.Horizontal, n))
		p.set("")
		p.string(look.Blank(room - n))
		return
	}
	if room > 0 {
		v.content(l, col, room)
	}
}

// number draws a line's number, right-aligned, and returns the cells it took.
func (v *View) number(l line, room int) int {
	p, w := &v.out, min(int(l.indent), room)
	if w < 2 || l.arg == 0 || l.flags&goesOn != 0 {
		p.set("")
		p.string(look.Blank(w))
		return w
	}
	p.set(v.lk.Dim)
	p.string(v.lk.Right(strconv.Itoa(int(l.arg)), w-1))
	p.set("")
	p.string(" ")
	return w
}

// content draws the text of a line, indented, in exactly room cells.
func (v *View) content(l line, indent, room int) {
	p, text := &v.out, v.doc.text(l)
	limit := room
	over := (v.doc.longest-v.left > room || v.w < v.doc.width) && indent+cells(text, 0)-v.left > room
	if over {
		limit = room - 1
	}
	skip := v.left
	p.set("")
	n := max(min(indent-skip, limit), 0)
	p.string(look.Blank(n))
	x := n // cells drawn
	skip = max(skip-indent, 0)
	current := l.ink
	hit, last := v.hits(l)
	for i, col := 0, 0; i < len(text); {
		c := text[i]
		if isInk(c) {
			current = ink(c)
			i++
			continue
		}
		style := v.inks[current]
		if current == inkFact {
			style = v.doc.styles[l.arg]
		}
		stop := len(text)
		if at := int(l.off) + i; hit < last {
			m := v.matches[hit]
			switch {
			case at >= int(m.to):
				hit++
				continue
			case at >= int(m.from):
				style = v.lk.Match
				if hit == v.at {
					style = v.lk.Match + v.lk.Selected
				}
				stop = min(int(m.to)-int(l.off), stop)
			default:
				stop = min(int(m.from)-int(l.off), stop)
			}
		}
		// A run of plain characters is the usual case and goes in one piece.
		run := i
		for run < stop && text[run] >= ' ' && text[run] < utf8.RuneSelf {
			run++
		}
		if run > i {
			from, to := i, run
			col += run - i
			i = run
			if skip > 0 {
				k := min(skip, to-from)
				from, skip = from+k, skip-k
			}
			to = min(to, from+limit-x)
			if from < to {
				p.set(style)
				p.bytes(text[from:to])
				x += to - from
			}
			continue
		}
		n, w, kind := 1, 0, alone
		if c == '\t' {
			w = tabStop - col%tabStop
		} else {
			n, w, kind = cluster(text[i:])
		}
		piece := text[i : i+n]
		i += n
		col += w
		seen := w
		if skip > 0 {
			k := min(skip, w)
			skip, seen = skip-k, w-k
			if w == 0 {
				continue
			}
		}
		switch {
		case x+seen > limit:
			if c == '\t' {
				seen = limit - x
			} else {
				limit = min(limit, x) // no narrower one may stand after it
				continue
			}
			fallthrough
		case c == '\t', seen < w:
			p.set(style)
			p.string(look.Blank(seen))
		default:
			p.set(style)
			p.cluster(piece, w, kind)
		}
		x += seen
	}
	if over {
		p.set("")
		p.string(v.lk.Ellipsis)
		x++
	}
	p.set("")
	p.string(look.Blank(room - x))
}

// hits are the matches that may stand in a line, as a range of v.matches.
func (v *View) hits(l line) (from, to int) {
	if len(v.matches) == 0 {
		return 0, 0
	}
	from = sort.Search(len(v.matches), func(i int) bool { return v.matches[i].to > l.off })
	return from, len(v.matches)
}

// pen writes text in styles; a style is changed only when text follows.
type pen struct {
	text   []byte
	style  look.Style
	odd    bool // a character may have joined with its neighbours
	strict bool // no such character is drawn
}

func (p *pen) set(s look.Style) {
	if s == p.style {
		return
	}
	if p.style != "" {
		p.text = append(p.text, reset...)
	}
	p.text = append(p.text, s...)
	p.style = s
}

func (p *pen) string(s string) { p.text = append(p.text, s...) }

func (p *pen) bytes(s []byte) { p.text = append(p.text, s...) }

// cluster writes one character of so many cells.
func (p *pen) cluster(s []byte, cells int, f form) {
	switch {
	case f == alone:
		p.bytes(s)
		return
	case f == huge || p.strict && cells > 0:
		p.string(replacement)
		p.string(look.Blank(cells - 1))
	case !p.strict:
		p.bytes(s)
	}
	p.odd = true
}

// like is the line of d at which a window shows what it showed of old at top.
func (d *Doc) like(old *Doc, top int) int {
	if top <= 0 || top >= len(old.lines) || len(d.lines) == 0 {
		return 0
	}
	// The place in lines of the original.
	first, nth := top, 0
	for first > 0 && old.lines[first].flags&goesOn != 0 {
		first--
	}
	for i := 0; i < first; i++ {
		if old.lines[i].flags&goesOn == 0 {
			nth++
		}
	}
	starts := make([]int, 0, len(d.lines))
	for i := range d.lines {
		if d.lines[i].flags&goesOn == 0 {
			starts = append(starts, i)
		}
	}
	// A few lines in a row are looked for first, as many a line is not unique.
	for _, rows := range []int{4, 2, 1} {
		if k := nearest(d, starts, old, first, nth, rows); k >= 0 {
			at := starts[k]
			_, _, next := d.whole(at)
			inside := int(old.lines[top].off - old.lines[first].off)
			for at+1 < next && int(d.lines[at+1].off-d.lines[starts[k]].off) <= inside {
				at++
			}
			return at
		}
	}
	return int(int64(top) * int64(len(d.lines)) / int64(len(old.lines)))
}

// nearest is the index into starts, as near to nth as there is, of where rows
// lines are those of old from first on; -1 if there are none.
func nearest(d *Doc, starts []int, old *Doc, first, nth, rows int) int {
	var want [][]byte
	for i := first; i < len(old.lines) && len(want) < rows; {
		from, to, next := old.whole(i)
		want = append(want, old.arena[from:to])
		i = next
	}
	same := func(k int) bool {
		if k < 0 || k+len(want) > len(starts) {
			return false
		}
		for j, text := range want {
			from, to, _ := d.whole(starts[k+j])
			if !bytes.Equal(d.arena[from:to], text) {
				return false
			}
		}
		return true
	}
	const far = 100_000
	for step := range min(max(nth+1, len(starts)), far) {
		if same(nth + step) {
			return nth + step
		}
		if same(nth - step) {
			return nth - step
		}
	}
	return -1
}
