package home

import (
	"slices"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/tui/pane"
	"goblin/tui/theme"
	"goblin/tui/uicontext"
)

type drawer interface {
	Grid(lk *theme.Theme, w, h int, focused bool) []string
	Click(x, y int) (bool, tea.Cmd)
}

// minBoxes is the number of lines from which all lists are visible.
const minBoxes = 14

// DrawsFrames makes Lines draw the borders, too.
func (p *Pane) DrawsFrames() {}

// Heading returns the title of the list with the cursor.
func (p *Pane) Heading() (title, right string) {
	title, right = p.heading(p.current())
	return title, right
}

func (p *Pane) heading(i int) (title, right string) {
	lk, t := p.app.Theme, p.tableOf(i)
	title = lk.Title.On([lists]string{"Needs you", "Servers", "Clients", "Last calls"}[i])
	switch {
	case i == alertList:
		return title + " " + uicontext.FormatCount(p.Count()), ""
	case i == callList && p.calls.Cursor() == 0:
		right = "following"
	}
	if order := t.OrderText(lk); order != "" {
		right = order
	}
	total := t.Total()
	if i == callList && slices.ContainsFunc(p.calls.Rows, func(c *call) bool { return c.own > 0 }) {
		total--
	}
	return title + " " + uicontext.FormatCount(total), right
}

// Empty returns nothing: Lines draws the texts of empty lists.
func (p *Pane) Empty() []string { return nil }

func (p *Pane) emptyText(i int) []string {
	t := p.tableOf(i)
	if typed, _ := t.FilterQuery(); typed != "" && t.Total() > 0 {
		return []string{"No matches for " + uicontext.SanitizeLine(typed)}
	}
	switch i {
	case alertList:
		return []string{"Nothing needs you.", p.runs()}
	case serverList:
		return []string{"No servers are configured. :setup shows how to add them."}
	case clientList:
		return []string{"No clients are connected. :setup shows how to connect them."}
	}
	return []string{"No calls yet."}
}

// Lines draws all lists: below each other, or from pane.BesideWidth on with the alerts
// beside the servers. With few lines it draws only the list with the cursor.
func (p *Pane) Lines(lk *theme.Theme, w, h int, _ bool) []string {
	p.places, p.frames = [lists]uicontext.Rect{}, [lists]uicontext.Rect{}
	switch {
	case h < minBoxes:
		return p.oneList(lk, w, h)
	case w < pane.BesideWidth:
		return p.column(lk, w, h)
	}
	return p.boxes(lk, w, h)
}

func (p *Pane) oneList(lk *theme.Theme, w, h int) []string {
	at := p.current()
	title, _ := p.heading(at)
	out := []string{lk.Rule(lk.Horizontal, title, p.app.KeyOf("next")+" next list", lk.Horizontal, w, lk.Accent)}
	p.frames[at] = uicontext.Rect{W: w, H: h}
	return append(out, p.rows(lk, at, uicontext.Rect{Y: 1, W: w, H: h - 1})...)
}

// column draws one frame with a rule above each list but the first.
func (p *Pane) column(lk *theme.Theme, w, h int) []string {
	needs := p.needs()
	heights := share(h-lists-1, needs[alertList], needs)
	var inner []string
	rules := map[int]int{}
	for i := range lists {
		if i > 0 {
			rules[len(inner)+1] = i
			inner = append(inner, "")
		}
		r := uicontext.Rect{X: 1, Y: len(inner) + 1, W: w - 2, H: heights[i]}
		p.frames[i] = uicontext.Rect{Y: len(inner), W: w, H: heights[i] + 1}
		inner = append(inner, p.rows(lk, i, r)...)
	}
	title, right := p.heading(0)
	out := lk.Frame(inner, title, right, w, h, p.border(lk, 0))
	for y, i := range rules {
		title, right := p.heading(i)
		out[y] = lk.Rule(lk.TeeLeft, title, right, lk.TeeRight, w, p.border(lk, i))
	}
	return out
}

// boxes draws a frame around each list.
func (p *Pane) boxes(lk *theme.Theme, w, h int) []string {
	needs := p.needs()
	heights := share(h-6, needs[alertList], []int{max(needs[alertList], needs[serverList]), needs[clientList], needs[callList]})
	left := w / 2
	top := heights[0] + 2
	out := p.box(lk, serverList, uicontext.Rect{W: left, H: top})
	for y, line := range p.box(lk, alertList, uicontext.Rect{X: left, W: w - left, H: top}) {
		out[y] += line
	}
	out = append(out, p.box(lk, clientList, uicontext.Rect{Y: top, W: w, H: heights[1] + 2})...)
	y := top + heights[1] + 2
	return append(out, p.box(lk, callList, uicontext.Rect{Y: y, W: w, H: h - y})...)
}

func (p *Pane) box(lk *theme.Theme, i int, r uicontext.Rect) []string {
	p.frames[i] = r
	title, right := p.heading(i)
	rows := p.rows(lk, i, uicontext.Rect{X: r.X + 1, Y: r.Y + 1, W: r.W - 2, H: r.H - 2})
	return lk.Frame(rows, title, right, r.W, r.H, p.border(lk, i))
}

func (p *Pane) border(lk *theme.Theme, i int) theme.Style {
	if i == p.current() {
		return lk.Accent
	}
	return lk.Border
}

// rows draws a list in a part of the pane.
func (p *Pane) rows(lk *theme.Theme, i int, r uicontext.Rect) []string {
	p.places[i] = r
	focused := i == p.current()
	switch i {
	case alertList:
		p.alerts.SetFocused(focused)
	case serverList:
		p.servers.SetFocused(focused)
	case clientList:
		p.clients.SetFocused(focused)
	default:
		p.calls.SetFocused(focused)
	}
	lines := p.tableOf(i).Grid(lk, r.W, r.H, focused)
	if p.tableOf(i).Len() == 0 {
		for y, text := range p.emptyText(i) {
			if y < len(lines) {
				lines[y] = lk.Fit("  "+lk.Dim.On(text), r.W)
			}
		}
	}
	return lines
}

// needs returns the number of lines that show everything.
func (p *Pane) needs() []int {
	out := make([]int, lists)
	for i := range out {
		out[i] = p.tableOf(i).Len() + 1 // with the names of the columns
	}
	if out[alertList]--; out[alertList] == 0 {
		out[alertList] = len(p.emptyText(alertList))
	}
	return out
}

// leastLines is the minimum number of lines of a list.
const leastLines = 2

// share divides lines fairly by need, after the first list got the lines for all alerts. The
// last list gets the rest.
func share(total, alerts int, needs []int) []int {
	out := make([]int, len(needs))
	for i := range out {
		out[i] = leastLines
	}
	total -= leastLines * len(out)
	more := max(min(alerts-leastLines, total), 0)
	out[0], total = out[0]+more, total-more
	for given := true; given && total > 0; {
		given = false
		for i := range out {
			if out[i] < needs[i] && total > 0 {
				out[i]++
				total--
				given = true
			}
		}
	}
	out[len(out)-1] += total
	return out
}

// listAt returns the list at a cell, or -1, with the cell's place in the pane.
func (p *Pane) listAt(x, y int) (i, px, py int) {
	border := p.app.Geometry().Border
	px, py = x+border, y+border
	return slices.IndexFunc(p.frames[:], func(r uicontext.Rect) bool { return r.Contains(px, py) }), px, py
}

// Click moves the cursor to the clicked list and row.
func (p *Pane) Click(x, y int) (bool, tea.Cmd) {
	i, x, y := p.listAt(x, y)
	if i < 0 {
		return false, nil
	}
	p.at = i
	r := p.places[i]
	if !r.Contains(x, y) {
		return false, nil
	}
	return p.tableOf(i).Click(x-r.X, y-r.Y)
}

// Wheel scrolls the list at a cell.
func (p *Pane) Wheel(x, y, by int) {
	if i, _, _ := p.listAt(x, y); i >= 0 {
		p.tableOf(i).Scroll(by)
	}
}
