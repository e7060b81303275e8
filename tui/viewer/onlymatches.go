package viewer

import (
	"fmt"
	"sort"

	"goblin/registry/termtext"
)

// ToggleOnlyMatches shows only source lines with matches of the search, or all lines
// again. It reports whether only those are shown. Without matches it shows all lines.
func (v *View) ToggleOnlyMatches() bool {
	v.only = !v.only
	v.showMatches()
	return v.only
}

// HidesOthers reports whether lines without matches are hidden, also by the next search.
func (v *View) HidesOthers() bool { return v.only }

// onlyMatches reports whether lines without matches are hidden.
func (v *View) onlyMatches() bool { return v.only && v.doc != v.whole }

// showMatches replaces the visible document by the whole one or by its lines with
// matches. The first visible line stays visible, if possible.
func (v *View) showMatches() {
	off := uint32(0)
	if v.top < len(v.doc.lines) {
		off = v.doc.lines[v.top].off
	}
	v.doc, v.target = v.whole, 0
	if v.only && len(v.matches) > 0 {
		v.doc = v.whole.withMatches(v.matches)
	}
	v.top = sort.Search(len(v.doc.lines), func(i int) bool { return v.doc.lines[i].off >= off })
	v.Scroll(0)
}

// withMatches returns a document with the source lines that have matches. It shares the
// text.
func (d *Doc) withMatches(matches []span) *Doc {
	out := *d
	out.lines, out.changed, out.nodes, out.start = nil, nil, nil, 0
	node := 0
	for i, m := 0, 0; i < len(d.lines) && m < len(matches); {
		_, to, next := d.sourceLine(i)
		found := matches[m].from >= d.lines[i].off && matches[m].from < uint32(to)
		for ; found && i < next; i++ {
			for node < len(d.nodes) && d.nodes[node].line < i {
				node++
			}
			if node < len(d.nodes) && d.nodes[node].line == i {
				n := d.nodes[node]
				n.line = len(out.lines)
				out.nodes = append(out.nodes, n)
			}
			if d.changed != nil {
				out.changed = append(out.changed, d.changed[i])
			}
			out.lines = append(out.lines, d.lines[i])
		}
		for i = next; m < len(matches) && matches[m].from < uint32(to); {
			m++
		}
	}
	return &out
}

// GoToLine moves to a line by its drawn number, or by its position if the lines have no
// numbers. It returns false if there is no such line.
func (v *View) GoToLine(number int) bool {
	if v.onlyMatches() {
		v.ToggleOnlyMatches()
	}
	nth, numbers := 0, v.doc.numbers > 0
	for i, l := range v.doc.lines {
		if l.flags&continued != 0 {
			continue
		}
		nth++
		if numbers && l.flags&numbered != 0 && int(l.arg) == number || !numbers && nth == number {
			v.top, v.target = i, i+1
			v.Scroll(0)
			return true
		}
	}
	return false
}

// LineText describes the position by the last visible line, or the line of the last
// [View.GoToLine] while that is visible. It is "" if all lines are visible.
func (v *View) LineText() string {
	first, last, total := v.Position()
	if total == 0 || first <= 1 && last >= total && !v.onlyMatches() {
		return ""
	}
	text := termtext.FormatCount(last) + "/" + termtext.FormatCount(total)
	switch {
	case v.onlyMatches():
		text += " matching"
	case v.doc.numbers > 0:
		at := last - 1
		if v.target > first-1 && v.target <= last {
			at = v.target - 1
		}
		for at > first-1 && (v.doc.lines[at].flags&numbered == 0 || v.doc.lines[at].flags&continued != 0) {
			at--
		}
		if l := v.doc.lines[at]; l.flags&numbered != 0 {
			text = fmt.Sprintf("line %d of %d", l.arg, v.doc.numbers)
		}
	}
	return text
}

// Leave makes the next [View.Show] start at the first line of another text. The search
// stays.
func (v *View) Leave() { v.left, v.leaving = 0, true }
