package compare

import (
	"fmt"
	"slices"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry"
	"goblin/registry/compare"
	"goblin/tui/dialog"
	"goblin/tui/keys"
	"goblin/tui/uicontext"
)

// sideBySide is the minimum width for two columns.
const sideBySide = 110

// View is a dialog with two sides and their differences.
type View struct {
	uicontext.BaseDialog
	app   *uicontext.Context
	marks *Marks
	a, b  *Side

	result  *compare.Result
	err     error
	notes   []string
	layout  *bool // unified or not, as chosen by the user; nil follows the width
	rows    []row
	unified bool // as the rows are laid out
	parts   []compare.Section
	cut     bool // lines are missing

	cursor, top int
	height      int // of the lines, as last drawn
	sideways    int // cells scrolled right
	gen         int
}

// row is a drawn line.
type row struct {
	compare.Line
	title      string // heading instead of a line
	difference int    // number of the difference it belongs to, from 1, or 0
	section    string // title of the section
}

// open compares two sides.
func (m *Marks) open(a, b *Side) tea.Cmd {
	v := &View{app: m.app, marks: m, a: a, b: b, cursor: -1}
	m.app.Flash = uicontext.Flash{} // how to compare
	return tea.Batch(m.app.Push(v), v.compute())
}

// subject returns the key of the ignored paths. Swapped sides have the same one.
func (v *View) subject() string { return max(v.a.Subject, v.b.Subject) }

func (v *View) patterns() compare.Patterns {
	p, _ := compare.ParseIgnored(v.marks.ignored[v.subject()]...) // checked before
	return p
}

// compute compares in a command. Only the newest result counts.
func (v *View) compute() tea.Cmd {
	v.gen++
	gen, a, b, patterns, reg := v.gen, v.a, v.b, v.patterns(), v.app.Reg
	return func() tea.Msg {
		var r *compare.Result
		var err error
		o := compare.Options{Ignore: patterns}
		if a.call != nil {
			r, err = compare.Calls(a.call, b.call, o)
		} else {
			r, err = compare.Values(a.definition, b.definition, o)
		}
		var parts []compare.Section
		var cut bool
		if err == nil {
			parts, cut = r.Sections()
			if a.call == nil {
				var lines []compare.Line
				lines, cut = r.Lines()
				parts = []compare.Section{{HasA: true, HasB: true, Lines: lines}}
			}
		}
		var notes []string
		for _, note := range []string{cutNote(a, b), definitionNote(reg, a, b), evictedNote(a, b)} {
			if note != "" {
				notes = append(notes, note)
			}
		}
		return keys.FuncMsg(func() tea.Cmd {
			if gen == v.gen {
				v.result, v.err, v.parts, v.cut, v.notes = r, err, parts, cut, notes
				v.layOut()
			}
			return nil
		})
	}
}

func (v *View) isUnified() bool {
	if v.layout != nil {
		return *v.layout
	}
	return v.app.W < sideBySide
}

// layOut builds the rows and keeps the cursor at its difference.
func (v *View) layOut() {
	at := 0
	if v.cursor >= 0 && v.cursor < len(v.rows) {
		at = v.rows[v.cursor].difference
	}
	first := v.cursor < 0
	v.unified = v.isUnified()
	v.rows = nil
	n := 0
	for i, s := range v.parts {
		if i > 0 {
			v.rows = append(v.rows, row{title: " "})
		}
		if s.Title != "" {
			v.rows = append(v.rows, row{title: s.Title, Line: compare.Line{HasA: s.HasA, HasB: s.HasB}})
		}
		n = v.addLines(s, n)
	}
	v.cursor = max(min(v.cursor, len(v.rows)-1), 0)
	switch {
	case first:
		v.find(1, func(r *row) bool { return r.First })
	case at > 0:
		if i := slices.IndexFunc(v.rows, func(r row) bool { return r.First && r.difference >= at }); i >= 0 {
			v.cursor = i
		}
	}
	v.reveal()
}

// addLines appends the lines of a section. In the unified layout, the lines of A precede
// those of B in each group of changed lines.
func (v *View) addLines(s compare.Section, n int) int {
	var added []row // of B
	for i, l := range s.Lines {
		if l.First {
			n++
		}
		r := row{Line: l, section: s.Title}
		if l.Op.Mark() != " " {
			r.difference = n
		}
		if !v.unified || l.Op != compare.Changed {
			v.rows = append(v.rows, r)
			continue
		}
		for _, op := range []compare.Op{compare.Removed, compare.Added} {
			one := r
			one.Op = op
			if one.HasA, one.HasB = op == compare.Removed && l.HasA, op == compare.Added && l.HasB; op == compare.Added {
				one.First = false
				added = append(added, one)
			} else {
				v.rows = append(v.rows, one)
			}
		}
		if next := i + 1; next == len(s.Lines) || s.Lines[next].Op != compare.Changed || s.Lines[next].First {
			v.rows, added = append(v.rows, added...), nil
		}
	}
	return n
}

// Heading returns the title.
func (v *View) Heading() string { return "Compare " + sameTitles(v.a, v.b) }

// Size returns the whole area.
func (v *View) Size(w, h int) (int, int) { return w, h }

// Where returns the number of the difference at the cursor.
func (v *View) Where() string {
	if v.result == nil || v.result.IsEqual() {
		return ""
	}
	if v.cursor < len(v.rows) && v.rows[v.cursor].difference > 0 {
		return fmt.Sprintf("%d of %d", v.rows[v.cursor].difference, v.result.Count())
	}
	return uicontext.FormatCount(v.result.Count())
}

// Refresh shows when a row was evicted meanwhile.
func (v *View) Refresh(what registry.Changes) tea.Cmd {
	note := evictedNote(v.a, v.b)
	if what&registry.Traffic != 0 && note != "" && !slices.Contains(v.notes, note) {
		v.notes = append(v.notes, note)
	}
	return nil
}

// Background lays out again if the width calls for the other form.
func (v *View) Background(msg tea.Msg) tea.Cmd {
	if _, ok := msg.(tea.WindowSizeMsg); ok && v.isUnified() != v.unified {
		v.layOut()
	}
	return nil
}

// Update handles the mouse.
func (v *View) Update(msg tea.Msg) tea.Cmd {
	m, ok := msg.(tea.MouseMsg)
	if !ok {
		return nil
	}
	uicontext.ScrollWheel(v.Scroll, msg)
	if at := v.top + m.Y - v.headHeight(); uicontext.LeftPress(m) && m.Y >= v.headHeight() && m.Y < v.headHeight()+v.height && at < len(v.rows) {
		v.cursor = at
	}
	return nil
}

// Scroll moves the cursor by lines.
func (v *View) Scroll(by int) {
	v.cursor = max(min(v.cursor+by, len(v.rows)-1), 0)
	v.reveal()
}

// Page moves the cursor by pages.
func (v *View) Page(part float64) { v.Scroll(int(part * float64(max(v.height, 2)))) }

// Top moves the cursor to the first line.
func (v *View) Top() { v.Scroll(-len(v.rows)) }

// Bottom moves the cursor to the last line.
func (v *View) Bottom() { v.Scroll(len(v.rows)) }

// reveal scrolls to the cursor, once the height is known.
func (v *View) reveal() {
	if v.height > 0 {
		v.top = max(min(v.top, v.cursor), v.cursor-v.height+1, 0)
	}
}

// find moves the cursor to the next row in a direction that fits and reports whether there
// is one.
func (v *View) find(step int, fits func(*row) bool) bool {
	for i := v.cursor + step; i >= 0 && i < len(v.rows); i += step {
		if fits(&v.rows[i]) {
			v.cursor = i
			// The lines around it show where it is.
			v.reveal()
			if v.height > 0 {
				v.top = max(min(v.top, v.cursor-min(2, v.height/3)), 0)
			}
			return true
		}
	}
	return false
}

// Keys returns the keys of all comparisons, for the documentation.
func Keys() keys.Table { return new(View).keys(true) }

// Keys returns the keys of the comparison.
func (v *View) Keys() keys.Table {
	t := v.keys(v.app.W >= sideBySide)
	if v.isUnified() {
		t[slices.IndexFunc(t, func(b keys.Binding) bool { return b.ID == "compare.unified" })].Hint = "two columns"
	}
	if v.whyNotRun() != "" {
		t = slices.DeleteFunc(t, func(b keys.Binding) bool { return b.ID == "compare.run" })
	}
	return t
}

// keys returns all keys. Their hints are long in wide terminals.
func (v *View) keys(wide bool) keys.Table {
	next, ignore, run := "next", "ignore", "run B again"
	if wide {
		next, ignore, run = "next difference", "ignore path", "run B with A's arguments"
	}
	step := func(by int, none string) func() tea.Cmd {
		return func() tea.Cmd {
			if !v.find(by, func(r *row) bool { return r.First }) {
				return v.app.Say("%s", none)
			}
			return nil
		}
	}
	t := keys.Table{
		{ID: "compare.next", Hint: next, Long: "Next difference", Run: step(1, "No further differences")},
		{ID: "compare.previous", Long: "Previous difference", Run: step(-1, "No earlier differences")},
		{ID: "compare.ignore", Hint: ignore, Long: "Ignore the path under the cursor", Run: v.ignore},
		{ID: "compare.ignored", Hint: "ignored", Long: "Show and edit the ignored paths", Run: v.editIgnored},
		{ID: "compare.unified", Hint: "unified", Long: "Switch between one and two columns", Run: v.switchLayout},
		{ID: "compare.swap", Hint: "swap", Long: "Swap A and B", Run: v.swap},
		{ID: "compare.run", Hint: run, Long: "Run B again with A's arguments", Run: v.runAgain},
		{ID: "compare.right", Long: "Scroll long lines right", Run: v.scrollSideways(8)},
		{ID: "compare.left", Long: "Scroll long lines left", Run: v.scrollSideways(-8)},
		{ID: "compare.close", Hint: "back", Long: "Close", Run: func() tea.Cmd { return v.app.Drop(v) }},
	}
	return append(t, keys.Scrolling("scroll", func() keys.Scroller { return v })...)
}

func (v *View) scrollSideways(by int) func() tea.Cmd {
	return func() tea.Cmd {
		v.sideways = max(v.sideways+by, 0)
		return nil
	}
}

func (v *View) ignore() tea.Cmd {
	if v.cursor >= len(v.rows) || len(v.rows[v.cursor].Path) == 0 {
		return v.app.Complain("this line has no value of its own")
	}
	path := v.rows[v.cursor].Path.General()
	if slices.Contains(v.marks.ignored[v.subject()], path) {
		return v.app.Say("%s is already ignored; %s edits the paths", uicontext.SanitizeLine(path), v.app.KeyOf("compare.ignored"))
	}
	return v.setIgnored(append(slices.Clone(v.marks.ignored[v.subject()]), path))
}

func (v *View) setIgnored(paths []string) tea.Cmd {
	patterns, err := compare.ParseIgnored(paths...)
	if err != nil {
		return v.app.Complain("%s", uicontext.SanitizeLine(err.Error()))
	}
	v.marks.ignored[v.subject()] = patterns.Texts()
	return v.compute()
}

func (v *View) editIgnored() tea.Cmd {
	d := dialog.NewTextPrompt(v.app, "Ignored paths, such as $.result.rows[*].when ..id", strings.Join(v.marks.ignored[v.subject()], " "), func(text string) tea.Cmd {
		return v.setIgnored([]string{text})
	})
	d.Optional = true
	return v.app.Push(d)
}

func (v *View) switchLayout() tea.Cmd {
	unified := !v.isUnified()
	v.layout = &unified
	v.layOut()
	return nil
}

func (v *View) swap() tea.Cmd {
	v.a, v.b = v.b, v.a
	return v.compute()
}

// whyNotRun explains why B cannot be called with A's arguments, or returns "".
func (v *View) whyNotRun() string {
	it := v.b.item
	switch {
	case v.b.call == nil || v.a.call == nil || it.IsEmpty():
		return "only calls of listed tools, prompts and resources can be repeated"
	case it.Kind != registry.Tool && it.Kind != registry.Prompt && it.Kind != registry.Resource:
		return "calls of templates cannot be repeated here"
	case v.a.call.Method != v.b.call.Method:
		return "A and B are different methods"
	case v.a.call.ParamsCut:
		return "the arguments of A are truncated"
	}
	return ""
}

func (v *View) runAgain() tea.Cmd {
	if why := v.whyNotRun(); why != "" {
		return v.app.Complain("%s", why)
	}
	it := v.b.item
	return dialog.Again(v.app, uicontext.Request{
		Item: it, Method: methods[it.Kind], Args: v.a.args,
		Done: func(inv *registry.Invocation) tea.Cmd {
			v.b = newInvocation(it, inv)
			return v.compute()
		},
	})
}
