package list

import (
	tea "github.com/charmbracelet/bubbletea"

	"goblin/tui/keys"
	"goblin/tui/theme"
)

// Fold shows a head row instead of its parts until the user unfolds it. A filter shows
// matching parts and no head.
type Fold[R any] struct {
	Unfolded bool
	table    *Table[R]
	isHead   func(R) bool
	isPart   func(R) bool
}

// NewFold folds rows of a table. Commands may call isHead and isPart.
func NewFold[R any](t *Table[R], isHead, isPart func(R) bool) *Fold[R] {
	f := &Fold[R]{table: t, isHead: isHead, isPart: isPart}
	t.Hidden = f.Hidden
	return f
}

// Hidden returns the function for [Table.Hidden].
func (f *Fold[R]) Hidden() func(r R, filtered bool) bool {
	folds := !f.Unfolded
	return func(r R, filtered bool) bool {
		if f.isHead(r) {
			return filtered
		}
		return folds && !filtered && f.isPart(r)
	}
}

// Toggle folds or unfolds the parts.
func (f *Fold[R]) Toggle() tea.Cmd {
	f.Unfolded = !f.Unfolded
	return f.table.Refilter()
}

// onHead reports whether the cursor is on the head.
func (f *Fold[R]) onHead() bool {
	r, ok := f.table.Selected()
	return ok && f.isHead(r)
}

// Mark returns the mark of the head.
func (f *Fold[R]) Mark(lk *theme.Theme) string {
	if f.Unfolded {
		return lk.Unfolded
	}
	return lk.Folded
}

// Opens returns a handler that toggles the fold on its head, and opens other rows.
func (f *Fold[R]) Opens(open keys.Handler) keys.Handler {
	return keys.Handler{
		WhyDisabled: func() string {
			if f.onHead() || open.WhyDisabled == nil {
				return ""
			}
			return open.WhyDisabled()
		},
		Run: func() tea.Cmd {
			if f.onHead() {
				return f.Toggle()
			}
			return open.Run()
		},
		Label: func() string {
			switch {
			case !f.onHead() && open.Label != nil:
				return open.Label()
			case !f.onHead():
				return "open"
			case f.Unfolded:
				return "fold"
			}
			return "unfold"
		},
	}
}
