package viewer

import (
	"bytes"
	"slices"
)

// matchingLine returns the line of d that shows the text at line top of old.
func (d *Doc) matchingLine(old *Doc, top int) int {
	if top <= 0 || top >= len(old.lines) || len(d.lines) == 0 {
		return 0
	}
	if line, ok := d.toggledLine(old, top); ok {
		return line
	}
	// Index of the source line.
	first, nth := top, 0
	for first > 0 && old.lines[first].flags&continued != 0 {
		first--
	}
	for i := 0; i < first; i++ {
		if old.lines[i].flags&continued == 0 {
			nth++
		}
	}
	starts := make([]int, 0, len(d.lines))
	for i := range d.lines {
		if d.lines[i].flags&continued == 0 {
			starts = append(starts, i)
		}
	}
	// Single lines are often not unique, so longer runs are tried first.
	for _, rows := range []int{4, 2, 1} {
		if k := nearest(d, starts, old, first, nth, rows); k >= 0 {
			at := starts[k]
			_, _, next := d.sourceLine(at)
			inside := int(old.lines[top].off - old.lines[first].off)
			for at+1 < next && int(d.lines[at+1].off-d.lines[starts[k]].off) <= inside {
				at++
			}
			return at
		}
	}
	return int(int64(top) * int64(len(d.lines)) / int64(len(old.lines)))
}

// toggledLine returns the line of the node at a line of old if it was folded or unfolded
// since. Its text has changed and cannot be searched.
func (d *Doc) toggledLine(old *Doc, line int) (int, bool) {
	was := slices.IndexFunc(old.nodes, func(n docNode) bool { return n.line == line })
	if was < 0 {
		return 0, false
	}
	i := slices.IndexFunc(d.nodes, func(n docNode) bool { return n.id == old.nodes[was].id })
	if i < 0 || d.nodes[i].folded == old.nodes[was].folded {
		return 0, false
	}
	return d.nodes[i].line, true
}

// nearest returns the index into starts, closest to nth, of a run of rows lines like
// old[first:], or -1.
func nearest(d *Doc, starts []int, old *Doc, first, nth, rows int) int {
	var want [][]byte
	for i := first; i < len(old.lines) && len(want) < rows; {
		from, to, next := old.sourceLine(i)
		want = append(want, old.arena[from:to])
		i = next
	}
	same := func(k int) bool {
		if k < 0 || k+len(want) > len(starts) {
			return false
		}
		for j, text := range want {
			from, to, _ := d.sourceLine(starts[k+j])
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
