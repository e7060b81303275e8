package tui

import (
	"fmt"
	"strings"

	"goblin/tui/dialog"
	"goblin/tui/pane"
	"goblin/tui/theme"
	"goblin/tui/uicontext"
)

// View draws the UI as exactly h lines of exactly w cells.
func (a *app) View() string {
	if a.W <= 0 || a.H <= 0 {
		return ""
	}
	g := a.Geometry()
	if g.Small {
		text := fmt.Sprintf("goblin needs %dx%d, has %dx%d", pane.LeastWidth, pane.LeastHeight, a.W, a.H)
		lines := append([]string{text}, a.smallQuestion()...)
		return strings.Join(a.Theme.Lines(lines, a.W, a.H), "\n")
	}
	lines := make([]string, 0, a.H)
	lines = append(lines, a.headerLine(), a.tabsLine())
	lines = append(lines, a.body(g)...)
	lines = append(lines, a.barLine(), a.footerLine())
	for _, d := range a.Dialogs {
		lines = a.drawDialog(lines, d)
	}
	if len(a.Dialogs) == 0 {
		a.parkCursor(g)
	}
	return strings.Join(lines, "\n")
}

// smallQuestion returns the open confirmation for a terminal that is too small for dialogs.
// It is nil if there is none or not all of its text would be visible.
func (a *app) smallQuestion() []string {
	if n := len(a.Dialogs); n > 0 {
		if c, ok := a.Dialogs[n-1].(*dialog.Confirm); ok {
			return c.Small(a.W, a.H-1)
		}
	}
	return nil
}

func (a *app) parkCursor(g pane.Geometry) {
	switch {
	case a.filtering:
		a.parkedCursor(min(a.W-1, 3+a.bar.Column()), a.H-2)
	case a.Inside:
		a.parkedCursor(g.Detail.X+g.Border, g.Detail.Y+g.Border)
	default:
		x := g.Border
		if p, ok := a.Panes[a.Open].(interface{ CursorX() int }); ok {
			x = p.CursorX()
		}
		a.parkedCursor(x, g.List.Y+g.Border+a.Panes[a.Open].Rows().Position())
	}
}

// hasFocus reports whether the list or the detail of the pane has the focus. Only one
// border has the color of the focus.
func (a *app) hasFocus(detail bool) bool { return a.Inside == detail && len(a.Dialogs) == 0 }

func (a *app) body(g pane.Geometry) []string {
	p := a.Panes[a.Open]
	var list, detail, third []string
	if g.List.H > 0 {
		list = a.listBox(g, p)
	}
	if g.Detail.H > 0 {
		detail = a.Details[a.Open].Lines(a.Layout, g.Detail, g.Border, a.hasFocus(true))
	}
	if g.Third.H > 0 {
		third = a.Related(p.Item(), g.Third, g.Border)
	}
	if g.Detail.Y != g.List.Y || g.List.H == 0 || g.Detail.H == 0 {
		return append(list, detail...)
	}
	for i := range list {
		list[i] += detail[i]
		if third != nil {
			list[i] += third[i]
		}
	}
	return list
}

func (a *app) listBox(g pane.Geometry, p pane.Pane) []string {
	if _, frames := p.(interface{ DrawsFrames() }); frames {
		return p.Lines(a.Theme, g.List.W, g.List.H, a.hasFocus(false))
	}
	w, h := g.List.W-2*g.Border, g.List.H-2*g.Border
	lines := p.Lines(a.Theme, w, h, a.hasFocus(false))
	none := p.Rows().Len() == 0
	if s, ok := p.(interface{ IsEmpty() bool }); ok {
		none = s.IsEmpty()
	}
	if none {
		for i, text := range a.emptyText(p, w) {
			if i+1 < len(lines) {
				lines[i+1] = a.Theme.Fit("  "+text, w)
			}
		}
	}
	style := a.Theme.Border
	if a.hasFocus(false) {
		style = a.Theme.Accent
	}
	parted, cut := p.(interface {
		Rule() (y int, title, right string)
	})
	if g.Border == 0 {
		if cut {
			if y, title, right := parted.Rule(); y >= 0 && y < len(lines) {
				lines[y] = a.Theme.Rule(a.Theme.Horizontal, title, right, a.Theme.Horizontal, w, style)
			}
		}
		return lines
	}
	title, right := p.Heading()
	if theme.Width(title)+theme.Width(right)+10 > g.List.W {
		right = "" // the count is more important
	}
	box := a.Theme.Frame(lines, title, right, g.List.W, g.List.H, style)
	if cut {
		if y, title, right := parted.Rule(); y >= 0 && y+1 < len(box)-1 {
			box[y+1] = a.Theme.Rule(a.Theme.TeeLeft, title, right, a.Theme.TeeRight, g.List.W, style)
		}
	}
	return box
}

func (a *app) emptyText(p pane.Pane, w int) []string {
	r := p.Rows()
	if typed, _ := r.FilterQuery(); typed != "" && r.Total() > 0 {
		if why := a.WhyNothingFound(typed); why != "" {
			return []string{why, "", a.KeyOf("back") + " goes back."}
		}
		text := "No matches for " + typed
		if word := r.ExcludingTerm(); word != "" && word != typed {
			text = fmt.Sprintf("No matches: %s excludes everything", word)
		}
		return []string{a.Theme.Cut(uicontext.SanitizeLine(text), w-4), "", a.KeyOf("back") + " clears the filter."}
	}
	return p.Empty()
}

func (a *app) drawDialog(lines []string, d uicontext.Dialog) []string {
	w, h := a.DialogSize(d)
	room := a.H - 2
	text, where := d.Lines(w-2, h-2), uicontext.ScrollPosition(d)
	style := a.Theme.Border
	if d == a.Dialogs[len(a.Dialogs)-1] {
		style = a.Theme.Accent
	}
	box := a.Theme.Frame(text, a.Theme.Title.On(uicontext.SanitizeLine(d.Heading())), where, w, h, style)
	x, y := (a.W-w)/2, (room-h)/2
	if near, ok := d.(interface {
		Place(w, h, roomW, roomH int) (x, y int)
	}); ok {
		x, y = near.Place(w, h, a.W, room)
	}
	a.FrontRect = uicontext.Rect{X: x + 1, Y: y + 1, W: w - 2, H: h - 2}
	return theme.Overlay(lines, box, x, y)
}
