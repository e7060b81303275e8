package list

import (
	"cmp"
	"slices"

	"goblin/registry/termtext"
	"goblin/tui/theme"
)

// Column is a column of a table. It is as wide as its longest text if there is space. A
// column that is empty in all rows is hidden. Text, HasValue and Less may be called from
// commands, so they may read only the row.
type Column[R any] struct {
	Name           string // of the header and the sort order, or ""
	Priority       int    // higher values are shrunk and hidden first; 0 is always shown
	MinWidth       int    // narrower than this, the column is hidden; 0: the full width
	PreferredWidth int    // hidden if narrower; 0: the full width
	NeededWidth    int    // kept before higher values of Priority; 0: the full width
	Optional       bool   // shown only if all others fit; lowest in rank
	Fills          bool   // shown only if all others fit in most rows; only Optional ones may follow in rank
	AlignRight     bool
	Dim            bool // unless the row has a style
	CutMiddle      bool

	Text     func(R) string // untrusted text, in which matches are highlighted
	HasValue func(R) bool   // nil: if Text is not empty
	// Show returns a cell's text for a width and its style, if that differs from Text.
	// The text must be safe for the terminal. The style "" means the row's.
	Show func(r R, w int) (string, theme.Style)
	// Less compares rows; nil compares their texts. Descending sorts the greatest row
	// first. An Unsorted column has no order.
	Less       func(a, b R) int
	Descending bool
	Unsorted   bool
}

// NumberColumn returns a column of numbers of a fixed width, sorted in descending order.
func NumberColumn[R any](name string, priority, w int, value func(R) float64, show func(R, int) (string, theme.Style)) Column[R] {
	return Column[R]{
		Name: name, Priority: priority, NeededWidth: w, AlignRight: true, Descending: true, Show: show,
		Less: func(a, b R) int { return cmp.Compare(value(a), value(b)) },
	}
}

// SetColumns sets a table's columns and adds an order for each after the first order,
// which may be a column's.
func (t *Table[R]) SetColumns(columns ...Column[R]) *Table[R] {
	t.cols = columns
	orders := t.Orders[:1:1]
	for i := range columns {
		c := &columns[i]
		if c.Name == "" || c.Unsorted {
			continue
		}
		o := Order[R]{Name: c.Name, less: c.Less, descending: c.Descending, col: i + 1}
		if o.less == nil {
			o.less = func(a, b R) int { return folded(c.Text(a), c.Text(b)) }
		}
		if c.Name == orders[0].Name {
			orders[0].col = i + 1
			continue
		}
		orders = append(orders, o)
	}
	t.Orders = append(orders, t.Orders[1:]...)
	return t
}

func folded(a, b string) int {
	for i := range min(len(a), len(b)) {
		x, y := lower(a[i]), lower(b[i])
		if x != y {
			return cmp.Compare(x, y)
		}
	}
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}

// maxCells is the maximum counted width of a text, and maxMeasured the bytes that are
// measured.
const (
	maxCells    = 400
	maxMeasured = 4 * maxCells
)

// columnWidths holds the text widths of rows, by column. It is immutable.
type columnWidths struct {
	cells [][]uint16 // per row; nil for columns of a fixed width
	all   []widthCounts
}

// widthCounts counts the rows that need at least each width.
type widthCounts []int32

// measure reads all rows once, so that search results need no further reading.
func measure[R any](columns []Column[R], rows []R) columnWidths {
	e := columnWidths{cells: make([][]uint16, len(columns)), all: make([]widthCounts, len(columns))}
	for i := range columns {
		c := &columns[i]
		if c.NeededWidth > 0 && c.HasValue == nil || c.Fills {
			continue
		}
		of := make([]uint16, len(rows))
		for j, r := range rows {
			of[j] = uint16(c.cells(r))
		}
		e.cells[i], e.all[i] = of, needOf(of, nil)
	}
	return e
}

func (c *Column[R]) cells(r R) int {
	if c.HasValue != nil && !c.HasValue(r) {
		return 0
	}
	if c.NeededWidth > 0 {
		return c.NeededWidth
	}
	return width(c.Text(r))
}

// width returns the width of untrusted text, at most maxCells.
func width(text string) int {
	text = text[:min(len(text), maxMeasured)]
	if w := theme.Width(text); w == len(text) { // plain ASCII needs no sanitizing
		return min(w, maxCells)
	}
	return min(theme.Width(termtext.Line(text)), maxCells)
}

// needOf counts the widths of the rows in found, or of all if found is nil.
func needOf(cells []uint16, found []int32) widthCounts {
	var counts [maxCells + 1]int32
	if found == nil {
		for _, w := range cells {
			counts[w]++
		}
	} else {
		for _, row := range found {
			counts[cells[row]]++
		}
	}
	most := maxCells
	for most > 0 && counts[most] == 0 {
		most--
	}
	for w := most - 1; w >= 0; w-- {
		counts[w] += counts[w+1]
	}
	return slices.Clone(widthCounts(counts[:most+1]))
}

func (e *columnWidths) needs(found []int32, total int) []widthCounts {
	if len(found) == total || len(found) == 0 {
		return e.all
	}
	out := make([]widthCounts, len(e.cells))
	for i, cells := range e.cells {
		if cells != nil {
			out[i] = needOf(cells, found)
		}
	}
	return out
}

func (n widthCounts) most() int { return max(len(n)-1, 0) }

// at returns the number of rows whose text needs more than w cells.
func (n widthCounts) at(w int) int32 {
	if w >= len(n) {
		return 0
	}
	return n[w]
}

type place struct {
	col, rank          int
	x, w               int
	least, wants, most int
	need               widthCounts
}

// plan lays out the columns in w cells: which ones are shown, by priority, and how wide
// each is. It first cuts the columns whose cut affects the fewest rows.
func (t *Table[R]) plan(w int) []place {
	places := make([]place, 0, len(t.cols))
	for i := range t.cols {
		if p, ok := t.wanted(i); ok {
			places = append(places, p)
		}
	}
	byRank := make([]int, len(places))
	for i := range byRank {
		byRank[i] = i
	}
	slices.SortStableFunc(byRank, func(a, b int) int { return cmp.Compare(places[a].rank, places[b].rank) })
	taken, stands := -1, make([]bool, len(places)) // no gap after the last one
	for _, i := range byRank {
		p := &places[i]
		if p.rank > 0 && (taken+1+p.least > w || t.cols[p.col].Optional) {
			break
		}
		stands[i] = true
		taken += 1 + p.wants
	}
	kept := t.shared(places, stands, w)
	// If the visible rows leave room, the next columns are shown, too.
	for _, i := range byRank {
		if stands[i] {
			continue
		}
		stands[i] = true
		more := t.shared(places, stands, w)
		fills := t.cols[places[i].col].Fills
		if slices.ContainsFunc(more, func(p place) bool { return p.w < p.least }) || !fills && t.narrower(kept, more) || cutsMany(kept, more, fills) {
			stands[i] = false
			if t.cols[places[i].col].Optional {
				continue
			}
			break
		}
		kept = more
	}
	x := 0
	for i := range kept {
		kept[i].x = x
		x += kept[i].w + 1
	}
	return kept
}

func (t *Table[R]) shared(places []place, stands []bool, w int) []place {
	kept := make([]place, 0, len(places))
	for i, p := range places {
		if stands[i] {
			kept = append(kept, p)
		}
	}
	room := w + 1 - len(kept)
	t.share(kept, room)
	if slices.ContainsFunc(kept, func(p place) bool { return p.w < p.most }) {
		t.shareForVisible(kept, room)
	}
	return kept
}

// narrower reports whether other cuts a column. A filling one may get narrower to twice its
// preferred width.
func (t *Table[R]) narrower(places, other []place) bool {
	j := 0
	for _, p := range places {
		for other[j].col != p.col {
			j++
		}
		if w := other[j].w; w < p.w && !(t.cols[p.col].Fills && w >= 2*p.wants) {
			return true
		}
	}
	return false
}

// cutsMany reports whether other makes a column too narrow: less than it wants, or so that
// more than a quarter of the rows are cut. If fills is set, half a long name is enough.
func cutsMany(places, other []place, fills bool) bool {
	const most, legible = 4, 24
	return slices.ContainsFunc(other, func(p place) bool {
		before := slices.IndexFunc(places, func(q place) bool { return q.col == p.col })
		return before >= 0 && p.w < places[before].w && (p.w < p.wants || p.need.at(p.w) > p.need.at(0)/most && !(fills && p.w >= legible))
	})
}

// shareForVisible shares the room by the visible rows, because not all rows fit.
func (t *Table[R]) shareForVisible(places []place, room int) {
	from := t.window.offset - t.window.offset%t.PageSize()
	near := t.Matches[min(from, len(t.Matches)):min(from+2*t.window.height, len(t.Matches))]
	if len(near) == 0 {
		return
	}
	for i := range places {
		p := &places[i]
		if cells := t.extent.cells[p.col]; cells != nil {
			p.need = needOf(cells, near)
			p.most = min(p.most, max(p.need.most(), theme.Width(t.cols[p.col].Name)+1))
			p.least, p.wants = min(p.least, p.most), min(p.wants, p.most)
		}
	}
	t.share(places, room)
}

func (t *Table[R]) wanted(i int) (p place, ok bool) {
	c := &t.cols[i]
	p = place{col: i, rank: c.Priority, most: c.NeededWidth}
	switch {
	case c.Fills:
		p.most = c.PreferredWidth
	case c.NeededWidth > 0 && c.HasValue == nil:
	case i >= len(t.needs) || t.needs[i].most() == 0:
		return p, false
	default:
		p.need, p.most = t.needs[i], t.needs[i].most()
	}
	head := theme.Width(c.Name)
	if t.sorted(i) {
		head++
	}
	p.most = max(p.most, head)
	p.least, p.wants = p.most, p.most
	if c.MinWidth > 0 {
		p.least = min(p.most, max(c.MinWidth, head))
	}
	if c.PreferredWidth > 0 {
		p.wants = min(p.most, max(c.PreferredWidth, p.least))
	}
	return p, true
}

// share first cuts columns beyond their preferred width, then those with a high Priority
// value, then any.
func (t *Table[R]) share(places []place, room int) {
	for i := range places {
		places[i].w = places[i].most
		room -= places[i].most
	}
	less := func(may func(p *place) bool, before func(p, q *place) bool) {
		for ; room < 0; room++ {
			var best *place
			for i := range places {
				if p := &places[i]; may(p) && (best == nil || before(p, best)) {
					best = p
				}
			}
			if best == nil {
				return
			}
			best.w--
		}
	}
	less(func(p *place) bool { return p.w > p.wants }, (*place).cheaper)
	less(func(p *place) bool { return p.w > p.least }, func(p, q *place) bool {
		return p.rank > q.rank || p.rank == q.rank && p.cheaper(q)
	})
	less(func(p *place) bool { return p.w > 1 }, func(p, q *place) bool { return p.w > q.w })
	for i := range places {
		if rest := &places[i]; t.cols[rest.col].Fills {
			rest.w += max(room, 0)
			t.giveSurplus(places, rest)
			return
		}
	}
}

// The filling column gets surplus cells of other columns, up to twice its preferred
// width.
func (t *Table[R]) giveSurplus(places []place, rest *place) {
	for i := range places {
		if p := &places[i]; p.need == nil && p != rest && p.w > p.wants && rest.w < 2*rest.wants {
			rest.w, p.w = rest.w+p.w-p.wants, p.wants
		}
	}
}

// cheaper reports whether narrowing p cuts fewer rows than narrowing q. Of equal ones it
// prefers the wider one.
func (p *place) cheaper(q *place) bool {
	if a, b := p.need.at(p.w), q.need.at(q.w); a != b {
		return a < b
	}
	return p.w > q.w
}
