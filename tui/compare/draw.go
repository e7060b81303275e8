package compare

import (
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"goblin/registry/compare"
	"goblin/tui/theme"
	"goblin/tui/uicontext"
)

// maxFacts is the number of lines with notes and ignored paths.
const maxFacts = 4

func (v *View) headHeight() int {
	if v.unified {
		return 2
	}
	return 1
}

// Lines draws the sides, their lines, and the differences below.
func (v *View) Lines(w, h int) []string {
	lk := v.app.Theme
	out := v.head(w)
	below := v.below(w, max(min(h/3, 7), 2))
	v.height = max(h-len(out)-len(below), 1)
	v.reveal()
	for i := range v.height {
		at := v.top + i
		switch {
		case at >= len(v.rows):
			out = append(out, " "+v.line(&row{title: " ", Line: compare.Line{HasA: true, HasB: true}}, w-1))
		case at == v.cursor:
			out = append(out, lk.Row(lk.Cursor+lk.Fit(v.line(&v.rows[at], w-1), w-1), true))
		default:
			out = append(out, " "+v.line(&v.rows[at], w-1))
		}
	}
	return lk.Lines(append(out, below...), w, h)
}

// head names the sides.
func (v *View) head(w int) []string {
	lk := v.app.Theme
	title := func(name string, s *Side, w int) string {
		return lk.Fit(lk.Title.On(name)+"  "+uicontext.SanitizeLine(s.Facts), w)
	}
	if v.unified {
		return []string{" " + title("A", v.a, w-1), " " + title("B", v.b, w-1)}
	}
	left, right := columns(w - 1)
	return []string{" " + title("A", v.a, left) + lk.Border.On(lk.Vertical) + title("B", v.b, right)}
}

func columns(w int) (left, right int) {
	left = max((w-1)/2, 0)
	return left, max(w-1-left, 0)
}

func (v *View) line(r *row, w int) string {
	lk := v.app.Theme
	if v.unified {
		if r.title != "" {
			return lk.Heading.On(" " + uicontext.SanitizeLine(r.title))
		}
		text := r.A
		if !r.HasA {
			text = r.B
		}
		return v.cell(r.Op, text, w)
	}
	left, right := columns(w)
	bar := lk.Border.On(lk.Vertical)
	if r.title != "" {
		heading := func(has bool, w int) string {
			if !has {
				return theme.Spaces(w)
			}
			return lk.Fit(lk.Heading.On(uicontext.SanitizeLine(r.title)), w)
		}
		return heading(r.HasA, left) + bar + heading(r.HasB, right)
	}
	cell := func(has bool, text string, w int) string {
		if !has {
			return theme.Spaces(w)
		}
		return lk.Fit(v.cell(r.Op, text, w), w)
	}
	return cell(r.HasA, r.A, left) + bar + cell(r.HasB, r.B, right)
}

// cell draws the text of one side with its mark.
func (v *View) cell(op compare.Op, text string, w int) string {
	lk := v.app.Theme
	text = strings.ReplaceAll(uicontext.SanitizeLine(text), "\t", "    ")
	if v.sideways > 0 {
		text = ansi.TruncateLeft(text, v.sideways, "")
	}
	text = lk.Cut(op.Mark()+" "+text, w)
	switch op {
	case compare.Changed:
		return lk.Changed.On(text)
	case compare.Removed:
		return lk.Bad.On(text)
	case compare.Added:
		return lk.Good.On(text)
	case compare.Ignored, compare.Unknown:
		return lk.Dim.On(text)
	}
	return text
}

// below returns the differences, the ignored paths and notes, in at most most lines.
func (v *View) below(w, most int) []string {
	lk := v.app.Theme
	texts := v.marks.ignored[v.subject()]
	title := "comparing"
	switch {
	case v.err != nil:
		title = "not compared"
	case v.result != nil:
		title = v.result.Summary(len(texts))
	}
	out := []string{lk.Rule(lk.Horizontal, lk.Title.On(title), "", lk.Horizontal, w, lk.Border)}
	if v.err != nil {
		return append(out, " "+lk.Bad.On(uicontext.SanitizeLine(v.err.Error())))
	}
	if v.result == nil {
		return out
	}
	var facts []string
	if len(texts) > 0 {
		facts = append(facts, lk.Dim.On("ignored: "+uicontext.SanitizeLine(strings.Join(texts, "  "))))
	}
	for _, note := range v.notes {
		facts = append(facts, uicontext.SanitizeLine(note))
	}
	if v.cut {
		facts = append(facts, fmt.Sprintf("only the first %d lines are shown", compare.MaxLines))
	}
	facts = facts[:min(len(facts), maxFacts, max(most-2, 0))]
	for _, line := range v.differences(w-2, most-1-len(facts)) {
		out = append(out, " "+line)
	}
	for _, line := range facts {
		out = append(out, " "+lk.Cut(line, w-2))
	}
	return out
}

// differences returns the differences around the current one, several in a line.
func (v *View) differences(w, most int) (lines []string) {
	lk := v.app.Theme
	current := 0
	if v.cursor < len(v.rows) {
		current = v.rows[v.cursor].difference
	}
	line, width, at := "", 0, 0
	flush := func() {
		if line != "" {
			lines = append(lines, line)
		}
		line, width = "", 0
	}
	const around = 40 // more than fit
	first := max(current-around, 0)
	for i := first; i < min(first+2*around, len(v.result.Differences)); i++ {
		text := lk.Cut(lk.Own(differenceText(&v.result.Differences[i])), max(min(w, 60), 1))
		n := theme.Width(text)
		if width > 0 && width+n+3 > w {
			flush()
		}
		if i+1 == current {
			at, text = len(lines), lk.Accent.On(text)
		}
		if width > 0 {
			line, width = line+"   ", width+3
		}
		line, width = line+text, width+n
	}
	flush()
	from := max(min(at-most+1, len(lines)-most), 0)
	return lines[from:min(from+most, len(lines))]
}

func differenceText(d *compare.Difference) string {
	path := uicontext.SanitizeLine(strings.TrimPrefix(d.Path.String(), "$."))
	brief := func(v []byte) string { return uicontext.SanitizeLine(uicontext.CutText(string(v), 200)) }
	switch d.Op {
	case compare.Removed:
		return path + "  only in A"
	case compare.Added:
		return path + "  only in B"
	}
	return path + "  " + brief(d.A) + " → " + brief(d.B)
}
