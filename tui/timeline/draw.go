package timeline

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"goblin/registry"
	"goblin/registry/termtext"
	"goblin/tui/theme"
)

// kind is the meaning of a cell of a bar.
type kind byte

const (
	blank    kind = iota
	tickCell      // a vertical line
	working       // at the server
	short         // less than half a cell
	starting      // waits for the server's start
	queued        // waits for a slot
	asking        // waits for the user
	failure
	head // of a running call
	dot
	folded // between equal notifications
	before // ended before the visible part
	after
)

func glyph(lk *theme.Theme, k kind) string {
	if lk.ASCII {
		return [...]string{" ", "|", "#", "#", "s", "q", ".", "x", ">", "*", "-", "<", ">"}[k]
	}
	return [...]string{" ", "│", "█", "▌", "▒", "▓", "░", "✗", "▸", "•", "·", "←", "→"}[k]
}

func (k kind) style(lk *theme.Theme, failed bool) theme.Style {
	switch k {
	case working, short, head:
		if failed {
			return lk.Bad
		}
		return lk.Good
	case failure:
		return lk.Bad
	case asking:
		return lk.Warn
	case starting, queued:
		return lk.Number
	case tickCell, before, after, folded:
		return lk.Dim
	case dot:
		return lk.Accent
	}
	return ""
}

// bar is the right part of a row: cells and a text over them.
type bar struct {
	cells  []kind
	failed bool
	text   string // styled
	textAt int
}

func (b *bar) set(from, to int, k kind) {
	for i := max(from, 0); i < min(to, len(b.cells)); i++ {
		b.cells[i] = k
	}
}

func (b *bar) String(lk *theme.Theme) string {
	var out strings.Builder
	w := theme.Width(b.text)
	for i := 0; i < len(b.cells); {
		if w > 0 && i == b.textAt {
			out.WriteString(b.text)
			i += w
			continue
		}
		k, start := b.cells[i], i
		for i < len(b.cells) && b.cells[i] == k && (w == 0 || i != b.textAt) {
			i++
		}
		out.WriteString(k.style(lk, b.failed).On(strings.Repeat(glyph(lk, k), i-start)))
	}
	return out.String()
}

// put places a text beside the cells from..to, where it has room.
func (b *bar) put(lk *theme.Theme, text string, from, to int) {
	if text == "" {
		return
	}
	from, to = max(from, 0), min(to, len(b.cells))
	w, right, left := theme.Width(text), len(b.cells)-to-1, from-1
	switch {
	case w <= right:
	case w <= left:
		b.text, b.textAt = text, from-1-w
		return
	case to-from >= w+4 && max(left, right) < w: // over the bar
		b.text, b.textAt = " "+text+" ", to-w-3
		return
	case left > right:
		b.text = lk.Cut(text, left)
		b.textAt = from - 1 - theme.Width(b.text)
		return
	}
	b.text, b.textAt = lk.Cut(text, max(right, 0)), to+1
}

// span draws an interval with at least one cell and returns its cells, clipped.
func (b *bar) span(a axis, start, last time.Time, k kind) (from, to int) {
	x0, x1 := a.at(start), a.at(last)
	switch {
	case x1 < 0:
		b.set(0, 1, before)
		return 0, 1
	case x0 >= float64(a.cells):
		b.set(a.cells-1, a.cells, after)
		return a.cells - 1, a.cells
	}
	from = int(max(x0, 0))
	to = min(max(from+1, int(math.Ceil(x1-0.5))), a.cells)
	if k == working && x1-x0 < 0.5 {
		k = short
	}
	b.set(from, to, k)
	return from, to
}

// wait draws a part of a bar, unless it is shorter than half a cell.
func (b *bar) wait(a axis, start, last time.Time, k kind) {
	x0, x1 := a.at(start), a.at(last)+0.5
	if x1-x0 < 1 || x1 < 0 || x0 > float64(a.cells) {
		return
	}
	b.set(int(max(x0, 0)), int(min(x1, float64(a.cells))), k)
}

// call draws a request and returns the cells of its bar.
func (b *bar) call(a axis, row *Row, c *Call, now time.Time) (from, to int) {
	r := c.Record
	last := end(r, now)
	main := working
	if isForUser(r) {
		main = asking
	}
	from, to = b.span(a, r.Time, last, main)
	if k := b.cells[from]; k == before || k == after {
		return from, to
	}
	b.failed = b.failed || isFailed(r)
	at := r.Time.Add(bounded(r.StartWait))
	b.wait(a, r.Time, at, starting)
	b.wait(a, at, at.Add(bounded(r.QueueWait)), queued)
	for _, w := range row.waits {
		b.wait(a, w.start, w.end, asking)
	}
	if len(row.waits) == 0 && r.UserWait > 0 {
		b.wait(a, last.Add(-bounded(r.UserWait)), last, asking)
	}
	switch {
	case isFailed(r) && a.at(last) < float64(a.cells):
		b.cells[to-1] = failure
	case isRunning(r) && to < a.cells:
		b.cells[to-1] = head
	}
	return from, to
}

func (c *Chart) bar(lk *theme.Theme, row *Row, a axis) string {
	b := &bar{cells: make([]kind, a.cells)}
	switch row.Role {
	case Heading:
		for _, t := range a.ticks() {
			b.set(t.cell, t.cell+1, tickCell)
		}
	case Progress:
		for _, n := range row.Progress {
			b.note(a, n)
		}
	case Notification:
		from, to := b.note(a, row.Call.Record)
		b.put(lk, timesText(lk, row.Call.Record), from, to)
	default:
		for _, p := range row.Polls {
			b.call(a, row, p, c.now)
		}
		from, to := b.call(a, row, row.Call, c.now)
		b.put(lk, c.outcome(lk, row), from, to)
	}
	return b.String(lk)
}

func (b *bar) note(a axis, n *registry.TrafficRecord) (from, to int) {
	last := end(n, n.Time)
	if n.Count > 2 {
		b.wait(a, n.Time, last, folded)
	}
	from, _ = b.span(a, n.Time, n.Time, dot)
	if n.Count > 1 {
		_, to = b.span(a, last, last, dot)
		return from, to
	}
	return from, from + 1
}

func timesText(lk *theme.Theme, r *registry.TrafficRecord) string {
	if r.Count < 2 {
		return ""
	}
	return lk.Dim.On(lk.Own("× ") + termtext.FormatCount(r.Count))
}

type wait struct {
	name string
	took time.Duration
}

// longestFirst returns the waits of a call. In a narrow chart the last ones are cut.
func longestFirst(r *registry.TrafficRecord) []wait {
	all := []wait{{"start", r.StartWait}, {"queue", r.QueueWait}, {"user", r.UserWait}}
	all = slices.DeleteFunc(all, func(w wait) bool { return w.took <= 0 })
	slices.SortStableFunc(all, func(a, b wait) int { return cmp.Compare(b.took, a.took) })
	return all
}

// outcome is the text beside a bar.
func (c *Chart) outcome(lk *theme.Theme, row *Row) string {
	r := row.Call.Record
	took := end(r, c.now).Sub(r.Time)
	shown := took
	if !isForUser(r) && !isRunning(r) {
		shown = max(took-bounded(r.UserWait), 0)
	}
	parts := []string{termtext.Duration(shown)}
	switch {
	case isRunning(r):
		parts[0] += " running"
	case isFailed(r):
		parts[0] = lk.Bad.On(parts[0])
	case r.Status == registry.StatusCancelled || r.Status == registry.StatusLeft:
		parts[0] = lk.Dim.On(r.Status+", ") + parts[0]
	}
	if f := row.Usual.Factor(Work(r, c.now)); f > 0 && row.Role != Poll {
		parts = append(parts, lk.Warn.On(lk.Own(strconv.Itoa(f)+"×")))
	}
	if row.Call.Failure != "" {
		parts = append(parts, lk.Bad.On(row.Call.Failure))
	}
	if row.Role == Poll && row.Count > 1 {
		parts = append(parts, lk.Dim.On(strconv.Itoa(row.Count)+" polls"))
	}
	var waits []string
	for _, w := range longestFirst(r) {
		waits = append(waits, w.name+" "+termtext.Duration(w.took))
	}
	if r.StartWait > 0 || r.QueueWait > 0 {
		waits = append(waits, "call "+termtext.Duration(Work(r, c.now)))
	}
	if isForUser(r) {
		waits = append(waits, "waits for the user")
	}
	if len(waits) > 0 {
		parts = append(parts, lk.Dim.On("("+strings.Join(waits, ", ")+")"))
	}
	return strings.Join(parts, " ")
}

// Lines draws the chart in w by h cells. now is the time at which running calls end.
func (c *Chart) Lines(lk *theme.Theme, w, h int, focused bool, now time.Time) []string {
	if d := now.Sub(c.now); d >= growInterval || d < 0 {
		c.now = now
	}
	labels := labelWidth(w)
	cells := max(w-2-labels-1, 1)
	lanes, legend := c.below(h)
	c.top = 0
	if h >= 3 {
		c.top = 1
	}
	height := h - c.top - len(lanes)
	if legend {
		height--
	}
	a := c.visible(cells, height)
	c.drawn = a
	c.window.Resize(len(c.layout.Rows), height)
	out := make([]string, 0, h)
	if c.top > 0 {
		out = append(out, lk.Fit(c.axisLine(lk, labels, a), w))
	}
	from, to := c.window.Visible()
	for i := from; i < to; i++ {
		row := &c.layout.Rows[i]
		line := " " + c.label(lk, row, labels) + " " + c.bar(lk, row, a)
		if i == c.window.Cursor() && row.selectable() {
			line = lk.Row(lk.Cursor+line, focused)
		} else {
			line = " " + line
		}
		out = append(out, lk.Fit(line, w))
	}
	for len(out) < h-len(lanes) && (!legend || len(out) < h-len(lanes)-1) {
		out = append(out, theme.Spaces(w))
	}
	for _, l := range lanes {
		out = append(out, lk.Fit(l.line(lk, labels, a, c.lastOf(c.now)), w))
	}
	if legend {
		out = append(out, lk.Fit(legendLine(lk, w), w))
	}
	return out[:h]
}

// lastOf returns the time up to which concurrency is known.
func (c *Chart) lastOf(now time.Time) time.Time {
	if c.layout.End.After(now) {
		return c.layout.End
	}
	return now
}

// labelWidth is the room for names beside the bars.
func labelWidth(w int) int {
	if w < 60 {
		return max(w*2/5, 8)
	}
	return max(24, min(w*3/10, 44))
}

// below returns the lanes below the rows, and whether there is a legend.
func (c *Chart) below(h int) (lanes []lane, legend bool) {
	if len(c.layout.Rows) == 0 {
		return nil, false
	}
	most := max(0, min((h-7)/3, 6))
	lanes = c.layout.lanes[:min(len(c.layout.lanes), most)]
	if len(c.layout.queue.changes) > 0 && len(lanes) > 0 {
		lanes = append([]lane{c.layout.queue}, lanes[:min(len(lanes), max(most-1, 1))]...)
	}
	return lanes, h >= 12
}

// legendLine explains the cells of bars, in short words if w is small.
func legendLine(lk *theme.Theme, w int) string {
	long, short := "", ""
	for _, k := range []struct {
		kind        kind
		name, short string
	}{
		{working, "works", "works"},
		{starting, "server starts", "start"},
		{queued, "waits in queue", "queue"},
		{asking, "waits for user", "user"},
		{dot, "progress", "progress"},
		{failure, "failed", "failed"},
		{head, "running", "running"},
	} {
		mark := "  " + k.kind.style(lk, false).On(glyph(lk, k.kind)) + " "
		long += mark + lk.Dim.On(k.name)
		if add := mark + lk.Dim.On(k.short); theme.Width(short)+theme.Width(add) <= w {
			short += add
		}
	}
	if theme.Width(long) <= w {
		return long
	}
	return short
}

func (c *Chart) axisLine(lk *theme.Theme, labels int, a axis) string {
	left := ""
	for i, _ := c.window.Visible(); i >= 0 && i < len(c.layout.Rows); i-- { // of the first row
		if row := &c.layout.Rows[i]; row.Role == Heading {
			left = termtext.Line(row.Title)
			break
		}
	}
	if first, _ := c.window.Visible(); first < len(c.layout.Rows) && c.layout.Rows[first].Role == Heading {
		left = ""
	}
	if !c.mark.IsZero() {
		left = "range from " + c.mark.Format("15:04:05.000")
	}
	line := make([]byte, 0, a.cells)
	for _, t := range a.ticks() {
		if t.label == "" {
			continue
		}
		for len(line) < t.cell {
			line = append(line, ' ')
		}
		line = append(line, t.label...)
	}
	return "  " + lk.Title.On(lk.Fit(left, labels)) + " " + lk.Dim.On(string(line))
}

// maxIndent is the depth up to which rows are indented, in levels.
const maxIndent = 5

// label draws the names of a row.
func (c *Chart) label(lk *theme.Theme, row *Row, w int) string {
	if row.Role == Heading {
		return lk.Fit(lk.Title.On(termtext.Line(row.Title))+" "+lk.Dim.On(termtext.FormatCount(row.Count)), w)
	}
	r := row.Call.Record
	text := theme.Spaces(2 * min(row.Depth, maxIndent))
	show := c.Highlight
	if show == nil {
		show = func(text string, style theme.Style) string { return style.On(text) }
	}
	switch row.Role {
	case Progress:
		note := row.Progress[len(row.Progress)-1]
		text += lk.Dim.On(lk.From + " progress ")
		if c.ProgressText != nil {
			text += lk.Dim.On(c.ProgressText(note))
		}
		return lk.Fit(text, w)
	case Notification:
		return lk.Fit(text+lk.Dim.On(lk.From+" ")+show(termtext.Line(r.Server), lk.Dim)+" "+show(termtext.Line(r.Method), lk.Dim), w)
	case FromServer:
		text += lk.From + " "
		if row.Depth == 0 {
			text += show(termtext.Line(r.Server), lk.Dim) + " "
		}
		return lk.Fit(text+show(termtext.Line(r.Method), ""), w)
	case Retry:
		text += lk.Warn.On("retry " + strconv.Itoa(row.Count) + " ")
	}
	if !row.Call.described && c.Describe != nil {
		row.Call.described = true
		c.Describe(row.Call)
	}
	if r.Server != "" && row.Role != Retry {
		text += show(lk.Cut(termtext.Line(r.Server), max(w/3, 6)), lk.Dim) + " "
	}
	text += show(termtext.Line(callName(row.Call)), "")
	if row.Call.Arguments != "" && theme.Width(text)+2 < w {
		text += " " + lk.Dim.On(row.Call.Arguments)
	}
	return lk.Fit(text, w)
}

// callName is the name of a call's target, with the method unless it is the usual one.
func callName(c *Call) string {
	switch r := c.Record; {
	case c.Name == "":
		return r.Method
	case r.Method == "tools/call":
		return c.Name
	case r.Method == "resources/read":
		return c.Name + " (read)"
	case r.Method == "prompts/get":
		return c.Name + " (prompt)"
	default:
		return r.Method + " " + c.Name
	}
}

// minScale is the number of calls at which a column has its full height, unless there
// are more.
const minScale = 4

func (l *lane) line(lk *theme.Theme, labels int, a axis, now time.Time) string {
	cells, most := l.peaks(a, now)
	values := make([]float64, len(cells)+1)
	for i, n := range cells {
		values[i] = float64(n)
	}
	values[len(cells)] = float64(max(most, minScale))
	marks := []rune(lk.Spark(values))
	name, what := termtext.Line(l.server), "in flight"
	if l.server == "" {
		name, what = "queue", "waiting"
	}
	text := lk.Cut(name, max(labels/2, 6)) + " " + what
	if most > 0 {
		text += ", max " + strconv.Itoa(most)
	}
	return "  " + lk.Dim.On(lk.Fit(text, labels)) + " " + lk.Dim.On(string(marks[:len(cells)]))
}
