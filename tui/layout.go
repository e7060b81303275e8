package tui

import (
	"fmt"
	"strings"

	"goblin/tui/look"
)

// The least size that is drawn, and sizes at which the layout changes.
const (
	leastWidth, leastHeight = 40, 10
	besideWidth             = 110 // the detail panel stands beside the list
	thirdWidth              = 200 // requests about the item stand beside that
	borderHeight            = 18  // lists have borders
)

// Where the detail panel is.
const (
	placeAuto = iota
	placeBeside
	placeBelow
	placeHidden
)

// layout is what the user chose of it.
type layout struct {
	place int
	part  int // percent of the list
}

func defaultLayout() layout { return layout{part: 55} }

// rect is a part of the screen.
type rect struct{ x, y, w, h int }

func (r rect) holds(x, y int) bool { return x >= r.x && x < r.x+r.w && y >= r.y && y < r.y+r.h }

// geometry is where everything is. It follows from the size alone, so that
// drawing and clicking agree.
type geometry struct {
	small  bool
	border int // 0 or 1
	body   rect
	list   rect
	detail rect // h is 0 when it is not shown
	third  rect
}

func (a *app) geometry() geometry {
	g := geometry{small: a.w < leastWidth || a.h < leastHeight, body: rect{0, 2, a.w, a.h - 4}}
	if a.h >= borderHeight {
		g.border = 1
	}
	g.list = g.body
	if !a.detailWanted() {
		return g
	}
	if a.beside() {
		all := g.body.w
		if all >= thirdWidth {
			third := all * 25 / 100
			g.third = rect{all - third, g.body.y, third, g.body.h}
			all -= third
		}
		w := all * a.layout.part / 100
		g.list.w = w
		g.detail = rect{w, g.body.y, all - w, g.body.h}
		return g
	}
	if a.h < borderHeight { // there is room for one
		if a.inside {
			g.detail, g.list.h = g.body, 0
		}
		return g
	}
	h := max(5, g.body.h*(a.layout.part-5)/100)
	g.list.h = h
	g.detail = rect{0, g.body.y + h, g.body.w, g.body.h - h}
	return g
}

func (a *app) beside() bool {
	return a.layout.place == placeBeside || a.layout.place != placeBelow && a.w >= besideWidth
}

func (a *app) detailWanted() bool {
	return a.layout.place != placeHidden && (a.beside() || a.opened) || a.inside
}

func (a *app) detailShown() bool {
	g := a.geometry()
	return g.detail.h > 0 && g.detail.w > 0
}

// View draws the screen: exactly h lines of exactly w cells.
func (a *app) View() string {
	if a.w <= 0 || a.h <= 0 {
		return ""
	}
	g := a.geometry()
	if g.small {
		lines := a.look.Lines([]string{fmt.Sprintf("goblin needs %dx%d, has %dx%d", leastWidth, leastHeight, a.w, a.h)}, a.w, a.h)
		return strings.Join(lines, "\n")
	}
	lines := make([]string, 0, a.h)
	lines = append(lines, a.headerLine(), a.tabsLine())
	lines = append(lines, a.body(g)...)
	lines = append(lines, a.barLine(), a.footerLine())
	for _, d := range a.dialogs {
		lines = a.overlay(lines, d)
	}
	if len(a.dialogs) == 0 {
		a.parkCursor(g)
	}
	return strings.Join(lines, "\n")
}

func (a *app) parkCursor(g geometry) {
	switch {
	case a.filtering:
		a.park(min(a.w-1, 3+a.bar.Column()), a.h-2)
	case a.inside:
		a.park(g.detail.x+g.border, g.detail.y+g.border)
	default:
		a.park(g.border, g.list.y+g.border+a.panes[a.open].rows().Position())
	}
}

func (a *app) body(g geometry) []string {
	p := a.panes[a.open]
	var list, detail, third []string
	if g.list.h > 0 {
		list = a.listBox(g, p)
	}
	if g.detail.h > 0 {
		detail = a.details[a.open].lines(a, g.detail, g.border, a.inside)
	}
	if g.third.h > 0 {
		third = a.related(p.item(), g.third, g.border)
	}
	if g.detail.y != g.list.y || g.list.h == 0 || g.detail.h == 0 {
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

func (a *app) listBox(g geometry, p pane) []string {
	w, h := g.list.w-2*g.border, g.list.h-2*g.border
	lines := p.lines(a.look, w, h, !a.inside)
	none := p.rows().Len() == 0
	if s, ok := p.(interface{ bare() bool }); ok {
		none = s.bare()
	}
	if none {
		for i, text := range a.nothing(p, w) {
			if i+1 < len(lines) {
				lines[i+1] = a.look.Fit("  "+text, w)
			}
		}
	}
	style := a.look.Border
	if !a.inside {
		style = a.look.Accent
	}
	parted, cut := p.(interface {
		rule() (y int, title, right string)
	})
	if g.border == 0 {
		if cut {
			if y, title, right := parted.rule(); y >= 0 && y < len(lines) {
				lines[y] = a.look.Rule(a.look.Horizontal, title, right, a.look.Horizontal, w, style)
			}
		}
		return lines
	}
	title, right := p.heading()
	box := a.look.Frame(lines, title, right, g.list.w, g.list.h, style)
	if cut {
		if y, title, right := parted.rule(); y >= 0 && y+1 < len(box)-1 {
			box[y+1] = a.look.Rule(a.look.TeeLeft, title, right, a.look.TeeRight, g.list.w, style)
		}
	}
	return box
}

// nothing says why a list is empty and what helps.
func (a *app) nothing(p pane, w int) []string {
	r := p.rows()
	if typed, _ := r.Filtered(); typed != "" && r.Total() > 0 {
		text := "Nothing matches " + typed
		if word := r.Excludes(); word != "" && word != typed {
			text = fmt.Sprintf("Nothing matches: %s excludes everything", word)
		}
		return []string{a.look.Cut(clean(text), w-4), "", "Esc clears the filter."}
	}
	return p.empty()
}

// overlay draws a dialog in the middle.
func (a *app) overlay(lines []string, d dialog) []string {
	room := a.h - 2 // what a dialog says stands in the lines below
	w, h := d.size(a.w-2, room)
	w, h = max(min(w, a.w), 10), max(min(h, room), 3)
	box := a.look.Frame(d.lines(w-2, h-2), a.look.Title.On(clean(d.heading())), "", w, h, a.look.Accent)
	x, y := (a.w-w)/2, (room-h)/2
	a.front = rect{x + 1, y + 1, w - 2, h - 2}
	return look.Overlay(lines, box, x, y)
}

// dialogRect is where the inside of the dialog in front was drawn.
func (a *app) dialogRect(dialog) rect { return a.front }
