package dialog

import (
	"context"
	"fmt"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/tui/keys"
	"goblin/tui/list"
	"goblin/tui/theme"
	"goblin/tui/uicontext"
	"goblin/tui/viewer"
)

// ListDetail is the common part of dialogs with a list above the detail of its row. The
// detail can fill the dialog.
type ListDetail[R any] struct {
	uicontext.ListDialog
	app   *uicontext.Context
	Table *list.Table[R]
	View  *viewer.View
	Theme *theme.Theme // as last drawn
	show  func() tea.Cmd

	zoomed bool // the detail fills the dialog
	above  int  // lines above the table, as last drawn
	gen    int
}

// NewListDetail returns the common part of a dialog. show lays out the selected row, by
// [ListDetail.Build].
func NewListDetail[R any](a *uicontext.Context, table *list.Table[R], show func() tea.Cmd) ListDetail[R] {
	return ListDetail[R]{app: a, Table: table, View: viewer.NewView(a.Theme), Theme: a.Theme, show: show}
}

// Size limits the width.
func (d *ListDetail[R]) Size(w, h int) (int, int) { return min(w, 140), h }

// DetailWidth returns the width of the detail, in cells.
func (d *ListDetail[R]) DetailWidth() int {
	w, _ := d.app.DialogSize(d)
	return w - 2
}

// Build lays out a detail in a command. Only the newest command counts.
func (d *ListDetail[R]) Build(ctx context.Context, w int, sections func() []viewer.Section) tea.Cmd {
	d.gen++
	gen, lk := d.gen, d.app.Theme
	return func() tea.Msg {
		doc, err := viewer.Build(ctx, lk, sections(), viewer.Options{Width: w, Depth: uicontext.DefaultDepth})
		return keys.FuncMsg(func() tea.Cmd {
			if err == nil && gen == d.gen {
				d.View.Show(doc, false)
			}
			return nil
		})
	}
}

// Zoomed draws the detail if it fills the dialog. Otherwise it returns nil. Call it first
// in each drawing.
func (d *ListDetail[R]) Zoomed(w, h int) []string {
	if d.Theme != d.app.Theme {
		d.Theme = d.app.Theme
		d.View.SetTheme(d.Theme)
	}
	if !d.zoomed || d.Table.Len() == 0 {
		return nil
	}
	lk := d.Theme
	text := d.View.Lines(w, max(h-1, 0)) // must precede the position text
	rule := lk.Rule(lk.Horizontal, fmt.Sprintf("%d of %d", d.Table.Cursor()+1, d.Table.Len()), uicontext.PositionText(d.View), lk.Horizontal, w, lk.Border)
	return lk.Lines(append([]string{rule}, text...), w, h)
}

// Below draws the list, with at most most lines, and the detail below the lines of head.
func (d *ListDetail[R]) Below(head []string, w, h, most int) []string {
	lk := d.Theme
	d.above = len(head)
	rows := min(max(d.Table.Total()+1, 4), max(most, 1))
	text := d.View.Lines(w, max(h-len(head)-rows-1, 0)) // must precede the position text
	out := append(head, d.Table.Grid(lk, w, rows, true)...)
	out = append(out, lk.Rule(lk.Horizontal, "", uicontext.PositionText(d.View), lk.Horizontal, w, lk.Border))
	return lk.Lines(append(out, text...), w, h)
}

// Move returns a handler that moves the cursor and shows the row.
func (d *ListDetail[R]) Move(by int) func() tea.Cmd {
	return func() tea.Cmd {
		d.Table.Move(by)
		return d.show()
	}
}

// Zoom toggles whether the detail fills the dialog.
func (d *ListDetail[R]) Zoom() tea.Cmd {
	d.zoomed = !d.zoomed
	return nil
}

// Unzoom shows the list again and reports whether the detail filled the dialog.
func (d *ListDetail[R]) Unzoom() bool {
	was := d.zoomed
	d.zoomed = false
	return was
}

// ZoomHint returns the effect of the key that zooms the detail.
func (d *ListDetail[R]) ZoomHint() string {
	if d.zoomed {
		return "show list"
	}
	return "zoom"
}

// Update handles the mouse.
func (d *ListDetail[R]) Update(msg tea.Msg) tea.Cmd {
	if m, ok := msg.(tea.MouseMsg); ok && uicontext.LeftPress(m) && !d.zoomed {
		row, cmd := d.Table.Click(m.X, m.Y-d.above)
		if row {
			return d.show()
		}
		return cmd
	}
	uicontext.ScrollWheel(d.View.Scroll, msg)
	return nil
}

// Background lays out the detail again for another width.
func (d *ListDetail[R]) Background(msg tea.Msg) tea.Cmd {
	if _, ok := msg.(tea.WindowSizeMsg); ok {
		return d.show()
	}
	return nil
}
