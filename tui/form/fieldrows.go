package form

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"goblin/tui/theme"
)

type layout struct {
	w          int
	label      int  // width of labels, in cells
	x          int  // column of values
	valueWidth int  // in cells
	stacked    bool // labels have their own lines
}

func (f *Form) layout(w int) layout {
	lay := layout{w: w}
	if w < 48 {
		lay.stacked, lay.label, lay.x = true, max(w-2, 1), min(4, w/4)
	} else {
		for _, fd := range f.fields {
			lay.label = max(lay.label, theme.Width(f.labelOf(fd)))
		}
		lay.label = min(lay.label, w/3, 32)
		lay.x = 2 + lay.label + 2
	}
	lay.valueWidth = max(w-lay.x-1, 1)
	return lay
}

// valueWidth returns the width of values in the last draw, in cells.
func (f *Form) valueWidth() int { return f.layout(f.w).valueWidth }

func (f *Form) labelOf(fd *field) string {
	label := strings.Repeat("  ", min(fd.depth, maxDepth)) + safeLabel(fd.label)
	if fd.isMarked() {
		return label + " *"
	}
	return label
}

// isMarked reports whether the label marks the field as required. Objects and switches
// always have a value.
func (f *field) isMarked() bool {
	return f.Required && f.kind != Object && f.kind != Bool && (f.parent == nil || f.parent.kind == Object)
}

// fieldBlock returns the lines of a field, and the index of the line with the cursor.
// Fields without focus are cached, which makes 512 fields 16 times faster.
func (f *Form) fieldBlock(i int, fd *field, lay layout, h int) ([]row, int) {
	focused := i == f.focus
	if !focused && !fd.stale && fd.cachedWidth == lay.w {
		return fd.cachedRows, 0
	}
	l := f.look
	label := l.Cut(f.labelOf(fd), lay.label)
	first := "  " + label
	if focused {
		first = l.Accent.On(l.Cursor+" ") + l.Bold.On(label)
	}
	values, cursor := f.valueRows(fd, lay, h, focused)
	var rows []row
	if lay.stacked {
		rows = append(rows, row{text: first})
		cursor++
	} else {
		values[0].text = first + theme.Spaces(lay.x-2-theme.Width(label)) + values[0].text
	}
	for n, v := range values {
		if n > 0 || lay.stacked {
			v.text = theme.Spaces(lay.x) + v.text
		}
		rows = append(rows, v)
	}
	for _, text := range f.remarks(fd, lay, focused) {
		rows = append(rows, row{text: theme.Spaces(lay.x) + text})
	}
	for n := range rows {
		rows[n].stop = i
		for k := range rows[n].hits {
			rows[n].hits[k].from += lay.x
			rows[n].hits[k].to += lay.x
		}
	}
	fd.cachedRows, fd.cachedWidth, fd.stale = rows, lay.w, focused
	return rows, cursor
}

// remarks returns the lines below a value: problem, kind and description.
func (f *Form) remarks(fd *field, lay layout, focused bool) []string {
	l := f.look
	var out []string
	for _, line := range wrapText(l, fd.err, lay.valueWidth-2, 3) {
		out = append(out, l.Bad.On("! "+line))
	}
	most := 2
	if focused {
		most = 6
		out = append(out, l.Dim.On(l.Cut(fd.describe(l), lay.valueWidth)))
	}
	for _, line := range wrapText(l, fd.Description, lay.valueWidth, most) {
		out = append(out, l.Dim.On(line))
	}
	return out
}

func (f *field) describe(l *theme.Theme) string {
	parts := []string{safeLabel(f.Name)}
	if f.Title == "" || f.Title == f.Name {
		parts = nil
	}
	kind := ""
	if f.isNested() {
		kind = f.describeNested()
	} else {
		kind = [...]string{
			"text", "number", "whole number", "true or false", "one of " + strconv.Itoa(len(f.Options)),
			"any of " + strconv.Itoa(len(f.Options)), "one per line", "JSON",
		}[f.kind]
	}
	if f.kind == List {
		kind = map[Kind]string{Number: "numbers", Integer: "whole numbers"}[f.Item] + ", one per line"
		kind = strings.TrimPrefix(kind, ", ")
	}
	if f.Format != "" && (f.kind == Text || f.kind == List) {
		kind += ", " + safeLabel(f.Format)
		if example := formats[f.Format].example; example != "" {
			kind += ", e.g. " + example
		}
	}
	parts = append(parts, kind)
	if f.isMarked() { // first, because the rest may be cut
		parts = append(parts, "* required")
	}
	unit := "character"
	switch {
	case f.kind == Array:
		unit = "item"
	case f.Kind != Text:
		unit = "value"
	}
	parts = append(parts, rangeText(f.Min, f.Max, "")...)
	parts = append(parts, rangeText(f.MinLen, f.MaxLen, unit)...)
	if f.Pattern != "" {
		parts = append(parts, cmp.Or(f.PatternHelp, "matches "+safeLabel(f.Pattern)))
	}
	if !f.Required {
		parts = append(parts, "optional")
	}
	return strings.Join(parts, " "+l.Sep+" ")
}

// rangeText describes the limits, or returns nil. unit is a singular noun or "".
func rangeText[N int | float64](least, most *N, unit string) []string {
	text := func(n *N) string { return formatNumber(float64(*n)) }
	withUnit := func(n *N) string {
		switch {
		case unit == "":
			return text(n)
		case *n == 1:
			return "1 " + unit
		}
		return text(n) + " " + unit + "s"
	}
	switch {
	case least != nil && most != nil:
		return []string{text(least) + " to " + withUnit(most)}
	case least != nil:
		return []string{"at least " + withUnit(least)}
	case most != nil:
		return []string{"at most " + withUnit(most)}
	}
	return nil
}

func (f *Form) valueRows(fd *field, lay layout, h int, focused bool) ([]row, int) {
	switch fd.kind {
	case Bool:
		return []row{f.boolRow(fd)}, 0
	case Object, Array:
		return []row{f.nestedRow(fd)}, 0
	case Enum, MultiEnum, Choice:
		if fd.fitsLine(lay.valueWidth) {
			return []row{f.optionLine(fd, focused)}, 0
		}
		return f.optionList(fd, lay, focused)
	}
	if fd.text.Multi() {
		return f.areaRows(fd, lay, h, focused)
	}
	lines, _ := fd.text.Draw(lay.valueWidth, 1, focused)
	rows := []row{{text: lines[0]}}
	if focused {
		rows = append(rows, f.completionRows(lay)...)
	}
	return rows, 0
}

func (f *Form) boolRow(fd *field) row {
	text := "[-] not sent"
	if fd.selected[0] {
		text = "[x] true"
	} else if fd.selected[1] {
		text = "[ ] false"
	}
	return row{text: text, hits: []hit{{0, len(text), optionTarget, 0}}}
}

func (f *Form) optionMark(fd *field, i int) string {
	on := fd.selected[i]
	switch {
	case fd.kind == MultiEnum && on:
		return "[x]"
	case fd.kind == MultiEnum:
		return "[ ]"
	case on && f.look.ASCII:
		return "(*)"
	case on:
		return "(•)"
	}
	return "( )"
}

func (f *Form) optionLine(fd *field, focused bool) row {
	var r row
	var b strings.Builder
	used := 0
	for i, o := range fd.Options {
		text := f.optionMark(fd, i) + " " + safeLabel(o.Label)
		n := theme.Width(text)
		if focused && i == fd.cursor {
			text = f.look.Underline.On(text)
		}
		gap := "  "
		if i == 0 {
			gap = ""
		}
		if fd.kind == MultiEnum {
			gap = gap[:min(len(gap), 1)] + " "
			if focused && i == fd.cursor {
				gap = gap[1:] + f.look.Cursor
			}
		}
		b.WriteString(gap)
		used += len(gap)
		b.WriteString(text)
		r.hits = append(r.hits, hit{used, used + n, optionTarget, i})
		used += n
	}
	r.text = b.String()
	return r
}

// optionList draws a filter and matching options, or one line without focus.
func (f *Form) optionList(fd *field, lay layout, focused bool) ([]row, int) {
	l := f.look
	if !focused {
		var chosen []string
		for i, on := range fd.selected {
			if on && len(chosen) < 20 {
				chosen = append(chosen, safeLabel(fd.Options[i].Label))
			}
		}
		text := strings.Join(chosen, ", ")
		if text == "" {
			text = l.Dim.On(fmt.Sprintf("none of %d", len(fd.Options)))
		}
		return []row{{text: l.Cut(text, lay.valueWidth)}}, 0
	}
	count := fmt.Sprintf(" %d/%d", len(fd.matches), len(fd.Options))
	typed, _ := fd.filter.Draw(max(lay.valueWidth-len(count)-2, 1), 1, true)
	rows := []row{{text: l.Dim.On("/ ") + typed[0] + l.Dim.On(count)}}
	at := 0
	for n, i := range fd.matches {
		if i == fd.cursor {
			at = n
		}
	}
	from := max(min(at-maxMenuRows/2, len(fd.matches)-maxMenuRows), 0)
	cursor := 0
	for n := from; n < min(from+maxMenuRows, len(fd.matches)); n++ {
		i := fd.matches[n]
		text := f.optionMark(fd, i) + " " + l.Cut(safeLabel(fd.Options[i].Label), max(lay.valueWidth-6, 1))
		if i == fd.cursor {
			cursor = len(rows)
			text = l.Cursor + " " + l.Bold.On(text)
		} else {
			text = "  " + text
		}
		rows = append(rows, row{text: text, hits: []hit{{0, lay.valueWidth, optionTarget, i}}})
	}
	if len(fd.matches) == 0 {
		rows = append(rows, row{text: l.Dim.On("  no matches; " + f.keyOf(doCancel) + " clears the filter")})
	}
	return rows, cursor
}

func (f *Form) completionRows(lay layout) []row {
	if !f.hasCompletions() {
		return nil
	}
	l := f.look
	from := max(min(f.chosen-maxMenuRows/2, len(f.completions)-maxMenuRows), 0)
	var rows []row
	for i := from; i < min(from+maxMenuRows, len(f.completions)); i++ {
		text := l.Cut(safeLabel(f.completions[i]), max(lay.valueWidth-4, 1))
		if i == f.chosen {
			text = l.Selected.On(l.Cursor + " " + text)
		} else {
			text = "  " + text
		}
		rows = append(rows, row{text: l.Dim.On(l.Vertical) + text, hits: []hit{{0, lay.valueWidth, completionTarget, i}}})
	}
	n := len(f.completions)
	switch {
	case f.total > n:
		rows = append(rows, row{text: l.Dim.On(fmt.Sprintf("%s %d of %d", l.Vertical, n, f.total))})
	case f.more:
		rows = append(rows, row{text: l.Dim.On(fmt.Sprintf("%s first %d", l.Vertical, n))})
	case n > maxMenuRows:
		rows = append(rows, row{text: l.Dim.On(fmt.Sprintf("%s %d total", l.Vertical, n))})
	}
	return rows
}

// areaRows draws a multi-line text, with the schema of JSON beside or below.
func (f *Form) areaRows(fd *field, lay layout, h int, focused bool) ([]row, int) {
	l := f.look
	high := min(len(fd.text.Rows()), h/2, 12)
	if focused || fd.text.Value() != "" {
		high = max(high, 3)
	}
	high = max(high, 1)
	side := l.Dim.On(l.Vertical) + " "
	wide := lay.valueWidth - 2
	var schema []string
	if fd.kind == JSON && len(fd.Schema) > 0 && (focused || fd.text.Value() != "") {
		fd.schema.load(func() []byte { return fd.Schema })
		if lay.valueWidth >= 70 {
			wide = lay.valueWidth/2 - 2
			high = max(high, min(len(fd.schema.lines), 8))
			schema = fd.schema.window(l, lay.valueWidth-wide-5, high)
		}
	}
	lines, cursor := fd.text.Draw(max(wide, 1), high, focused)
	rows := make([]row, 0, len(lines)+4)
	for i, line := range lines {
		text := side + line
		if schema != nil {
			text += " " + l.Dim.On(l.Vertical) + " " + schema[i]
		}
		rows = append(rows, row{text: text})
	}
	if schema == nil && fd.schema.lines != nil && focused {
		for _, line := range fd.schema.window(l, max(lay.valueWidth-2, 1), min(len(fd.schema.lines), 6)) {
			rows = append(rows, row{text: "  " + line})
		}
	}
	return rows, cursor
}
