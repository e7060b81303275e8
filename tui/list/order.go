package list

import (
	"slices"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/tui/theme"
)

// Order is one way to sort a table.
type Order[R any] struct {
	Name       string
	less       func(a, b R) int
	descending bool // the first click sorts in descending order
	col        int  // its column, from 1
}

// NewOrder returns an order. If less is nil, rows keep their order.
func NewOrder[R any](name string, less func(a, b R) int) Order[R] {
	return Order[R]{Name: name, less: less}
}

// Descending returns the order with the greatest row first.
func (o Order[R]) Descending() Order[R] {
	o.descending = true
	return o
}

// SortNext reverses the order, then changes to the next visible column.
func (t *Table[R]) SortNext() tea.Cmd {
	if o := &t.Orders[t.Order]; !t.Reversed && (o.col > 0 || o.less != nil) {
		t.Reversed = true
		return t.Rerun()
	}
	return t.SortNextColumn()
}

// SortNextColumn changes to the next order.
func (t *Table[R]) SortNextColumn() tea.Cmd {
	t.Reversed = false
	for range t.Orders {
		t.Order = (t.Order + 1) % len(t.Orders)
		if t.isVisibleOrder(&t.Orders[t.Order]) {
			break
		}
	}
	return t.Rerun()
}

func (t *Table[R]) isVisibleOrder(o *Order[R]) bool {
	return o.col == 0 || len(t.places) == 0 || slices.ContainsFunc(t.places, func(p place) bool { return p.col == o.col-1 })
}

// Sort sorts by the named order, or reverses it if it is current.
func (t *Table[R]) Sort(name string) tea.Cmd {
	i := slices.IndexFunc(t.Orders, func(o Order[R]) bool { return o.Name == name })
	if i < 0 {
		return nil
	}
	t.Reversed = i == t.Order && !t.Reversed
	t.Order = i
	return t.Rerun()
}

// OrderNames returns the names of all orders.
func (t *Table[R]) OrderNames() []string {
	var names []string
	for i := range t.Orders {
		names = append(names, t.Orders[i].Name)
	}
	return names
}

// byMatch reports whether rows are sorted by how well they match the filter, regardless
// of the order.
func (t *Table[R]) byMatch() bool {
	return t.query.IsRanked() || t.FilterText != "" && t.Order == 0 && !t.Reversed && t.query.HasWords() && t.index.SplitParts()
}

// OrderText returns the order and its direction, or "" for the first order.
func (t *Table[R]) OrderText(lk *theme.Theme) string {
	o := &t.Orders[t.Order]
	switch {
	case t.byMatch() && len(t.Matches) < 2:
		return ""
	case t.byMatch():
		return "best match first"
	case o.less == nil && o.col == 0:
		return ""
	case t.Order == 0 && !t.Reversed:
		return ""
	}
	return "by " + o.Name + " " + t.arrow(lk)
}

func (t *Table[R]) arrow(lk *theme.Theme) string {
	if t.Orders[t.Order].descending != t.Reversed {
		return lk.Falling
	}
	return lk.Rising
}
