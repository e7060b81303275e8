package tui

import (
	"slices"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/tui/dialog"
	"goblin/tui/pane"
	"goblin/tui/uicontext"
)

// Limits of the list's part of the body, in percent.
const (
	leastPart = 20
	mostPart  = 80
)

// isBorder reports whether a cell is on the border between list and detail.
func isBorder(g pane.Geometry, x, y int) bool {
	if g.Border == 0 || g.List.H == 0 || g.Detail.H == 0 {
		return false
	}
	if beside := g.Detail.X > 0; beside {
		return (x == g.Detail.X-1 || x == g.Detail.X) && g.List.Contains(0, y)
	}
	return y == g.Detail.Y-1 || y == g.Detail.Y
}

// dragBorder moves the border to the mouse, as close as the limits permit.
func (a *app) dragBorder(x, y int) {
	best, nearest := a.Split.ListPercent, -1
	for part := leastPart; part <= mostPart; part++ {
		a.Split.ListPercent = part
		at := a.Geometry().Detail
		distance := abs(at.Y - y)
		if at.X > 0 {
			distance = abs(at.X - x)
		}
		if nearest < 0 || distance < nearest {
			best, nearest = part, distance
		}
	}
	a.Split.ListPercent = best
}

func abs(n int) int { return max(n, -n) }

// handleDrag handles the mouse while the border is dragged. It returns false for other
// messages.
func (a *app) handleDrag(g pane.Geometry, msg tea.MouseMsg) bool {
	switch {
	case msg.Button == tea.MouseButtonLeft && msg.Action == tea.MouseActionPress:
		a.dragging = isBorder(g, msg.X, msg.Y)
		return false // it is also a click
	case !a.dragging:
		return false
	case msg.Action == tea.MouseActionRelease:
		a.dragging = false
	case msg.Action == tea.MouseActionMotion && g.Detail.H > 0 && g.List.H > 0:
		a.dragBorder(msg.X, msg.Y)
	}
	return true
}

// rowGroups are the groups of actions in the menu of a row. otherActions are those
// without a row.
var (
	rowGroups    = []string{groupDo, groupKeep}
	otherActions = []string{"repeat", "answer", "subscribed", "subscriptions", "templates", "seen", "view"}
)

// openMenu opens the actions of the row at a cell.
func (a *app) openMenu(g pane.Geometry, msg tea.MouseMsg) tea.Cmd {
	p := a.Panes[a.Open]
	if !g.List.Contains(msg.X, msg.Y) || p.Rows().Len() == 0 {
		return nil
	}
	x, y := msg.X-g.List.X-g.Border, msg.Y-g.List.Y-g.Border
	if y < 1 { // the head, which a click sorts
		return nil
	}
	a.Inside = false
	a.endFilter()
	row, cmd := p.Click(x, y)
	if !row {
		return cmd
	}
	a.CursorMoved()
	var items []dialog.MenuItem
	for i := range a.keys {
		b := &a.keys[i]
		if b.Where&p.Place() == 0 || a.runOf(b) == nil || !slices.Contains(rowGroups, b.Group) || slices.Contains(otherActions, b.ID) {
			continue
		}
		items = append(items, dialog.MenuItem{Keys: b.Keys, Text: a.effectHere(b), Why: a.whyDisabled(b), Run: func() tea.Cmd { return a.run(b) }})
	}
	title := p.Item().Listed
	if title == "" {
		title, _ = p.Tab()
	}
	return tea.Batch(cmd, a.Push(dialog.NewMenu(a.Context, uicontext.SanitizeLine(title), msg.X, msg.Y, items)))
}
