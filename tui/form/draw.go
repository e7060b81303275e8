package form

import (
	"fmt"
	"slices"
	"strings"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"

	"goblin/registry/keymap"
	"goblin/registry/termtext"
	"goblin/tui/keys"
	"goblin/tui/theme"
)

type row struct {
	text string
	stop int // focus stop, or -1
	hits []hit
}

type hit struct {
	from, to int // cells [from, to)
	what     target
	index    int
}

type target uint8

const (
	optionTarget target = iota
	completionTarget
	buttonTarget
)

const (
	shortText   = 512  // bytes drawn of a label or message
	longText    = 4096 // bytes drawn of a description
	maxMenuRows = 6    // visible options or completions
)

func safeLabel(s string) string { return termtext.Line(termtext.Truncate(s, shortText)) }

// wrapText wraps text to at most most lines of at most w cells.
func wrapText(l *theme.Theme, s string, w, most int) []string {
	s = strings.TrimSpace(strings.ReplaceAll(termtext.Text(termtext.Truncate(s, longText)), "\t", " "))
	if s == "" || w < 1 {
		return nil
	}
	lines := strings.Split(ansi.Wrap(s, w, ""), "\n")
	out := lines[:0]
	for _, line := range lines {
		if strings.TrimSpace(line) != "" {
			out = append(out, strings.TrimRight(line, " "))
		}
	}
	if len(out) > most {
		out = out[:most]
		out[most-1] = l.Cut(out[most-1]+" "+l.Ellipsis, w)
		if !strings.HasSuffix(out[most-1], l.Ellipsis) {
			out[most-1] = l.Cut(out[most-1], w-1) + l.Ellipsis
		}
	}
	return out
}

// Lines draws exactly h lines of w cells, the last one with key hints. It scrolls to the
// focused field.
func (f *Form) Lines(w, h int) []string {
	if h <= 0 {
		return nil
	}
	if w <= 0 {
		return make([]string, h)
	}
	f.w = w
	above, below := f.fixedRows(w, h)
	body := h - len(above) - len(below)
	var rows []row
	if f.raw {
		rows = f.rawBody(w, body)
	} else {
		var place string
		if rows, place = f.scrollingRows(w, body); place != "" && h >= 4 {
			below[len(below)-1].text = f.look.Sides(f.hintLine(w-theme.Width(place)-1), f.look.Dim.On(place), w)
		}
	}
	f.rows = append(append(append(f.rows[:0], above...), rows...), below...)
	out := make([]string, h)
	for i := range out {
		if i >= len(f.rows) {
			out[i] = theme.Spaces(w)
			continue
		}
		out[i] = f.look.Fit(f.rows[i].text, w)
	}
	return out
}

// Height returns the lines, at most most, that show the whole form at a width.
func (f *Form) Height(w, most int) int {
	lines := f.Lines(w, most)
	_, below := f.fixedRows(w, most)
	n := most - len(below)
	for n > 0 && strings.TrimSpace(lines[n-1]) == "" {
		n--
	}
	return min(most, n+len(below)+1)
}

func (f *Form) fixedRows(w, h int) (above, below []row) {
	l := f.look
	plain := func(s string) row { return row{text: s, stop: -1} }
	if h >= 5 && f.spec.Danger != "" {
		if text := "! " + safeLabel(f.spec.Danger); theme.Width(text) < w {
			above = append(above, plain(l.Sides("", l.Warn.On(text), w)))
		} else {
			for _, line := range wrapText(l, text, w, 2) {
				above = append(above, plain(l.Warn.On(line)))
			}
		}
	}
	if f.failure != "" {
		for _, line := range wrapText(l, "! "+f.failure, w, max(1, min(3, h-4))) {
			above = append(above, plain(l.Bad.On(line)))
		}
	}
	switch {
	case h < 6 || f.raw:
	case f.preview != "":
		below = append(below, plain(l.Dim.On(l.To+" ")+l.Cut(termtext.Line(termtext.Truncate(f.preview, longText)), max(w-2, 0))))
	}
	if h >= 4 {
		below = append(below, plain(f.hintLine(w)))
	}
	if len(above) > h-len(below)-1 {
		above = above[:max(h-len(below)-1, 0)]
	}
	return above, below
}

func (f *Form) hintLine(w int) string {
	all := f.Hints()
	for i := range all {
		all[i].Label = safeLabel(all[i].Label)
	}
	var texts []string
	for _, k := range keys.FitHints(all, w) {
		texts = append(texts, f.look.Key.On(keymap.FormatKey(k.Key))+" "+f.look.Dim.On(k.Label))
	}
	return strings.Join(texts, "  ")
}

// scrollingRows draws the introduction, the fields and the buttons. place is the scroll
// position if they exceed h lines.
func (f *Form) scrollingRows(w, h int) (seen []row, place string) {
	l := f.look
	var blocks [][]row
	var intro []row
	if most := max(h-6, 4); f.introW != w || f.introH != most {
		f.introW, f.introH, f.intro = w, most, wrapText(l, f.spec.Intro, w, most)
	}
	for _, line := range f.intro {
		intro = append(intro, row{text: line, stop: -1})
	}
	if f.note != "" {
		for _, line := range wrapText(l, f.note, w, 2) {
			intro = append(intro, row{text: l.Dim.On(line), stop: -1})
		}
	}
	if len(f.fields) == 0 {
		intro = append(intro, row{text: l.Dim.On("nothing to fill in"), stop: -1})
	}
	if len(intro) > 0 {
		intro = append(intro, row{stop: -1})
	}
	blocks = append(blocks, intro)
	from := 0
	to := 0
	at := 0
	total := len(intro)
	lay := f.layout(w)
	for i, fd := range f.fields {
		block, cursor := f.fieldBlock(i, fd, lay, h)
		if i == f.focus {
			from, to, at = total, total+len(block), total+cursor
		}
		total += len(block)
		blocks = append(blocks, block)
	}
	end := []row{{stop: -1}}
	if s := f.hiddenMembers(); s != "" {
		end = append([]row{{text: l.Dim.On(s), stop: -1}}, end...)
	}
	end = append(end, f.buttonRow(w))
	if f.focusedButton() >= 0 {
		from, to, at = total, total+len(end), total+len(end)-1
	}
	total += len(end)
	blocks = append(blocks, end)
	f.scrollTo(from, to, at, total, h)
	if total > h {
		place = fmt.Sprintf("%d/%d", f.offset+h, total)
	}
	rows := slices.Concat(blocks...)
	rows = rows[min(f.offset, len(rows)):min(f.offset+max(h, 0), len(rows))]
	for len(rows) < h {
		rows = append(rows, row{stop: -1})
	}
	return rows, place
}

// scrollTo makes lines [from, to) visible, or at least line at.
func (f *Form) scrollTo(from, to, at, total, h int) {
	if to-from > h {
		from, to = max(at-h/2, from), min(max(at-h/2, from)+h, to)
	}
	if f.focus == 0 && to <= h {
		from = 0
	}
	if to > f.offset+h {
		f.offset = to - h
	}
	f.offset = max(min(f.offset, from, total-h), 0)
}

func (f *Form) buttonRow(w int) row {
	labels, _ := f.buttons()
	r := row{stop: f.stopCount()}
	var b strings.Builder
	used, full := 0, -2
	for i := range labels {
		labels[i] = safeLabel(labels[i])
		full += theme.Width(labels[i]) + len("> [  ]  ")
	}
	left, right := "[ ", " ]"
	if full > w {
		left, right = "[", "]"
	}
	for i, label := range labels {
		if full-2*len(labels) > w {
			label = f.look.Cut(label, max(w/len(labels)-6, 1))
		}
		text := left + label + right
		if f.focusedButton() == i {
			b.WriteString(f.look.Accent.On(f.look.Cursor + " " + text))
		} else {
			b.WriteString("  " + text)
		}
		n := 2 + theme.Width(text)
		r.hits = append(r.hits, hit{used, used + n, buttonTarget, i})
		b.WriteString("  ")
		used += n + 2
	}
	r.text = b.String()
	return r
}

func (f *Form) rawBody(w, h int) []row {
	l := f.look
	mark := func(stop int, s string) string {
		if f.rawFocus == stop {
			return l.Accent.On(l.Cursor+" ") + l.Bold.On(s)
		}
		return "  " + s
	}
	rows := []row{{text: mark(0, "arguments"), stop: 0}}
	var end []row
	for _, line := range wrapText(l, f.areaErr, w-6, 3) {
		end = append(end, row{text: "  " + l.Bad.On("! "+line), stop: 0})
	}
	if f.spec.Meta {
		value, _ := f.meta.Draw(max(w-9, 1), 1, f.rawFocus == 1)
		end = append(end, row{text: mark(1, "_meta") + " " + value[0], stop: 1})
		for _, line := range wrapText(l, f.metaErr, w-6, 2) {
			end = append(end, row{text: "  " + l.Bad.On("! "+line), stop: 1})
		}
	}
	end = append(end, f.buttonRow(w))
	if room := h - len(rows) - 1; len(end) > room {
		keep := end[:0:0]
		for _, r := range end {
			if len(keep) < room && (r.stop == f.rawFocus || f.rawFocus >= f.stopCount() && r.stop == f.stopCount()) {
				keep = append(keep, r)
			}
		}
		end = keep
	}
	side := l.Dim.On(l.Vertical) + " "
	high, wide := max(h-len(rows)-len(end), 1), max(w-4, 1)
	var schema []string
	if len(f.spec.Schema) > 0 && w >= 70 && !f.spec.Strings {
		f.schema.load(func() []byte { return ResolveRefs(f.spec.Schema) })
		wide = w/2 - 4
		schema = f.schema.window(l, w-wide-8, high)
	}
	lines, _ := f.area.Draw(wide, high, f.rawFocus == 0)
	for i, line := range lines {
		text := "  " + side + line
		if schema != nil {
			text += " " + l.Dim.On(l.Vertical) + " " + schema[i]
		}
		rows = append(rows, row{text: text, stop: 0})
	}
	rows = append(rows, end...)
	return rows[:min(len(rows), max(h, 0))]
}

// Click handles a click on the last drawn lines.
func (f *Form) Click(x, y int) (Action, tea.Cmd) {
	if y < 0 || y >= len(f.rows) || f.rows[y].stop < 0 {
		return None, nil
	}
	r := f.rows[y]
	for _, h := range r.hits {
		if x >= h.from && x < h.to {
			return f.clickPart(r.stop, h), nil
		}
	}
	if r.stop < f.stopCount() {
		f.focusOn(r.stop)
	}
	return None, nil
}

func (f *Form) clickPart(stop int, h hit) Action {
	switch h.what {
	case buttonTarget:
		f.focusOn(f.stopCount() + h.index)
		return f.pressButton(h.index)
	case completionTarget:
		if h.index < len(f.completions) && stop == f.focused() {
			f.chosen = h.index
			f.takeCompletion()
		}
	case optionTarget:
		f.focusOn(stop)
		fd := f.currentField()
		switch {
		case fd == nil:
		case fd.kind == Bool:
			f.toggle(fd)
		case fd.kind == Object || fd.kind == Array:
			f.toggleNested(fd)
		case h.index < len(fd.selected):
			fd.choose(h.index, true)
			f.afterEdit()
		}
	}
	f.markStale(f.focus)
	return None
}
