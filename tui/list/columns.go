package list

import (
	"cmp"
	"slices"

	"goblin/registry/termtext"
	"goblin/tui/theme"
)

// Column is one column of a table. It is drawn as wide as its longest text, if there is
// room for that; one that is empty in all rows takes none. Text, HasValue and Less are
// called from commands too, so they read only the row.
type Column[R any] struct {
	Name           string // in the head, and of the order by it; "" has neither
	Priority       int    // columns of a greater priority make room first; 0 always stays
	MinWidth       int    // fewer cells hide the column; 0: all that it needs
	PreferredWidth int    // cells that it gets before columns of a greater priority; 0: all that it needs
	NeededWidth    int    // cells that it needs whatever the rows hold
	Optional       bool   // shown only if the others need no room; has the greatest priority
	Fills          bool   // it takes what the others leave, and needs no more than it wants
	AlignRight     bool   // figures stand at its end
	Dim            bool   // drawn dim, unless its row has a style
	CutMiddle      bool   // what is cut is cut in its middle

	Text     func(R) string // foreign text; a filter's words are marked in it
	HasValue func(R) bool   // whether there is something in a row; nil: where there is text
	// Show returns the text of a row's cell of this width, and its style, where that is
	// not Text as it is; it is safe for the terminal. The style "" is that of the row.
	Show func(r R, w int) (string, theme.Style)
	// Less compares rows; nil compares their texts. Descending starts with the greatest row.
	// An Unsorted column has no order.
	Less       func(a, b R) int
	Descending bool
	Unsorted   bool
}

// NumberColumn returns a column of numbers of a fixed width, the greatest first.
func NumberColumn[R any](name string, priority, w int, value func(R) float64, show func(R, int) (string, theme.Style)) Column[R] {
	return Column[R]{
		Name: name, Priority: priority, NeededWidth: w, AlignRight: true, Descending: true, Show: show,
		Less: func(a, b R) int { return cmp.Compare(value(a), value(b)) },
	}
}

// SetColumns gives a table its columns, and an order by each of them: behind the first
// order, which may be that of a column itself, and before the others.
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

// folded compares texts without regard to the case of ASCII letters.
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

// mostCells is how wide a text counts at most, and mostMeasured how much of it is looked at.
const (
	maxCells    = 400
	maxMeasured = 4 * maxCells
)

// columnWidths holds how many cells the texts of some rows need, by column. It is immutable.
type columnWidths struct {
	cells [][]uint16    // of each row; nil for columns that need the same in all
	all   []widthCounts // of all rows
}

// widthCounts counts the rows that need at least a number of cells. Its length is the widest text.
type widthCounts []int32

// measure reads all rows once, so that what a search finds can be laid out at no cost.
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

// cells is how many of them a row needs.
func (c *Column[R]) cells(r R) int {
	if c.HasValue != nil && !c.HasValue(r) {
		return 0
	}
	if c.NeededWidth > 0 {
		return c.NeededWidth
	}
	return width(c.Text(r))
}

// width is that of foreign text, as far as it matters.
func width(text string) int {
	text = text[:min(len(text), maxMeasured)]
	if w := theme.Width(text); w == len(text) { // and harmless
		return min(w, maxCells)
	}
	return min(theme.Width(termtext.Line(text)), maxCells)
}

// needOf counts the cells of rows: of those in found, of all if that is nil.
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

// needs are those of the rows that were found.
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

// most is the most that a row needs.
func (n widthCounts) most() int { return max(len(n)-1, 0) }

// at is how many rows lose something if there is one cell less than w.
func (n widthCounts) at(w int) int32 {
	if w >= len(n) {
		return 0
	}
	return n[w]
}

// place is a column as it is laid out.
type place struct {
	col, rank          int
	x, w               int
	least, wants, most int
	need               widthCounts
}

// plan lays the columns out in w cells: which of them there is room for, by their rank,
// and how wide each is. If something must be cut, it is what fewest rows need.
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
	taken, stands := -1, make([]bool, len(places)) // no gap behind the last one
	for _, i := range byRank {
		p := &places[i]
		if p.rank > 0 && (taken+1+p.least > w || t.cols[p.col].Optional) {
			break
		}
		stands[i] = true
		taken += 1 + p.wants
	}
	kept := t.shared(places, stands, w)
	// What the rows in sight leave is for the columns that come next.
	for _, i := range byRank {
		if stands[i] {
			continue
		}
		stands[i] = true
		more := t.shared(places, stands, w)
		if slices.ContainsFunc(more, func(p place) bool { return p.w < p.least }) || narrower(kept, more) {
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

// shared are the places that stand, with the room shared among them.
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

// narrower reports whether a column has less in another plan, which has all of them.
func narrower(places, other []place) bool {
	j := 0
	for _, p := range places {
		for other[j].col != p.col {
			j++
		}
		if other[j].w < p.w {
			return true
		}
	}
	return false
}

// shareForVisible distributes the room by the rows in view, if there is not enough for all rows.
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

// wanted returns the width that a column asks for.
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

// share gives room cells to the columns. First to lose some are those that have more than
// they want, then those that make room for others, then any.
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

// giveSurplus gives rest the cells that other columns do not want, unless rest has plenty.
func (t *Table[R]) giveSurplus(places []place, rest *place) {
	for i := range places {
		if p := &places[i]; p.need == nil && p != rest && p.w > p.wants && rest.w < 2*rest.wants {
			rest.w, p.w = rest.w+p.w-p.wants, p.wants
		}
	}
}

// cheaper reports whether fewer rows lose something if this column has a cell less; of
// two that are alike, the wider one has.
func (p *place) cheaper(q *place) bool {
	if a, b := p.need.at(p.w), q.need.at(q.w); a != b {
		return a < b
	}
	return p.w > q.w
}
