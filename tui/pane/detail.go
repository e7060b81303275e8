package pane

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/tui/dialog"
	"goblin/tui/keys"
	"goblin/tui/theme"
	"goblin/tui/uicontext"
	"goblin/tui/viewer"
)

// detail shows the subject under the cursor. Commands build its text; late results are
// dropped.
type detail struct {
	app          *Layout
	View         *viewer.View
	subject      Subject // shown or being built
	width        int
	foldLevels   int             // negative: unfolded beyond the default depth
	toggledNodes map[uint64]bool // with the opposite fold state; replaced, never changed
	gen          int
	busy         bool   // a text is being built
	dirty        bool   // … and is outdated already
	news         bool   // … and its changed lines will be marked
	AnswerOf     string // key of the subject to scroll to its answer
	cancel       context.CancelFunc
	markedAt     time.Time // when changed lines were marked

	line    int    // of the subject that is shown
	tab     string // chosen tab, kept for subjects without it
	tabEnds Tabs   // on their line
	tabLine int    // of the tabs, or -1
}

func newDetail(a *Layout) *detail {
	return &detail{app: a, View: viewer.NewView(a.Theme), cancel: func() {}, tabLine: -1}
}

func (d *detail) show(s Subject, width int) tea.Cmd {
	if width <= 0 {
		return nil
	}
	cmd := d.setSubject(s, width)
	d.scrollToAnswer()
	return cmd
}

// scrollToAnswer scrolls to an awaited answer once its text is visible. The text may be
// built before or after the answer is reported.
func (d *detail) scrollToAnswer() {
	if d.AnswerOf != "" && d.AnswerOf == d.subject.Key && !d.busy {
		d.AnswerOf = ""
		d.View.ToStart()
	}
}

// setSubject is show without scrolling to an answer.
func (d *detail) setSubject(s Subject, width int) tea.Cmd {
	d.subject.running = s.running
	if s.Key == d.subject.Key && s.Version == d.subject.Version && width == d.width {
		return nil
	}
	same := s.Key == d.subject.Key && width == d.width
	news := same && s.content && d.subject.content && s.Version != d.subject.Version
	same = s.Key == d.subject.Key
	if !same {
		d.toggledNodes = nil
		d.View.Forget()
	}
	d.subject, d.width = s, width
	if same && d.busy { // let it finish despite changes
		d.dirty, d.news = true, d.news || news
		return nil
	}
	return d.Build(same, news)
}

func (d *detail) Build(same, news bool) tea.Cmd {
	d.cancel()
	d.gen++
	d.busy, d.dirty, d.news = false, false, false
	gen, s, lk := d.gen, d.subject, d.app.Theme
	sections := s.Blocks
	if i := d.openTab(); i >= 0 {
		sections = s.Tabs[i].Sections
	}
	if sections == nil {
		d.View.Show(nil, false)
		return nil
	}
	ctx, cancel := context.WithCancel(d.app.Ctx)
	d.cancel, d.busy = cancel, true
	o := viewer.Options{Width: d.width, Depth: uicontext.DefaultDepth, Fold: d.foldLevels, Toggled: d.toggledNodes, Numbers: s.numbers, NoWrap: d.app.NoWrap, Opens: d.app.KeyOf("pager")}
	return func() tea.Msg {
		defer cancel()
		doc, err := viewer.Build(ctx, lk, sections(ctx), o)
		return keys.FuncMsg(func() tea.Cmd {
			if gen != d.gen {
				return nil
			}
			d.busy = false
			if err != nil {
				return nil
			}
			old := d.View.Doc()
			if news && old.Len() > 0 {
				doc.Mark(old)
				d.markedAt = d.app.Now()
			}
			d.View.Show(doc, same)
			if s.line > 0 && (!same || s.line != d.line) {
				d.View.GoToLine(s.line)
			}
			d.line = s.line
			if d.dirty {
				return d.Build(true, d.news)
			}
			d.scrollToAnswer()
			return nil
		})
	}
}

// openTab returns the index of the chosen tab, or 0 if the subject lacks it. It returns -1
// without tabs.
func (d *detail) openTab() int {
	if len(d.subject.Tabs) == 0 {
		return -1
	}
	return max(slices.IndexFunc(d.subject.Tabs, func(t viewer.Tab) bool { return t.Name == d.tab }), 0)
}

// switchTab opens another tab and keeps the search.
func (d *detail) switchTab(to int) tea.Cmd {
	n := len(d.subject.Tabs)
	if n == 0 {
		return nil
	}
	d.tab, d.toggledNodes = d.subject.Tabs[(to+n)%n].Name, nil
	d.View.Leave()
	return d.Build(true, false)
}

// Fold unfolds levels of JSON, or folds them if by is negative.
func (d *detail) Fold(by int) tea.Cmd {
	levels := d.View.Doc().Levels()
	shown := min(levels, uicontext.DefaultDepth)
	fold := max(shown-levels, min(min(d.foldLevels, shown)-by, shown))
	switch {
	case levels == 0:
		return d.app.Complain("no JSON to fold here")
	case fold == shown-levels:
		d.app.Say("JSON: all %d levels unfolded", levels+1)
	default:
		d.app.Say("JSON: %d of %d levels unfolded", shown-fold+1, levels+1)
	}
	d.foldLevels, d.toggledNodes = fold, nil
	return d.Build(true, false)
}

// ToggleNode toggles one node of JSON: the one that begins in line y, or, if near is set,
// the first visible one.
func (d *detail) ToggleNode(y int, near bool) tea.Cmd {
	node, ok := d.View.Node(y, near)
	if !ok {
		if near {
			return d.app.Complain("no JSON to fold here")
		}
		return nil
	}
	turned := maps.Clone(d.toggledNodes)
	if turned == nil {
		turned = map[uint64]bool{}
	}
	turned[node] = !turned[node]
	d.toggledNodes = turned
	return d.Build(true, false)
}

// Rewrap toggles the wrapping of long lines.
func (a *Layout) Rewrap() tea.Cmd {
	a.NoWrap = !a.NoWrap
	a.Say("Line wrapping enabled")
	if a.NoWrap {
		a.Say("Line wrapping disabled: { and } scroll sideways")
	}
	return a.Redraw()
}

// Redraw rebuilds the visible texts.
func (a *Layout) Redraw() tea.Cmd {
	var cmds []tea.Cmd
	for _, d := range a.Details {
		cmds = append(cmds, d.Build(true, false))
	}
	return tea.Batch(cmds...)
}

// QueryContent opens the dialog for a path in the JSON of the content, or of the
// definition without content.
func (a *Layout) QueryContent() tea.Cmd {
	c, p := a.Content(), a.Panes[a.Open]
	of, texts := uicontext.SanitizeLine(c.Name), [][]byte{c.Data}
	_, shows := p.(interface {
		ShownContent() uicontext.CachedContent
	})
	if inv := uicontext.CachedInvocation(a.Reg, p.Item()); inv != nil && inv.Result != nil {
		texts = append(texts, inv.Result)
	} else if !shows && !p.Item().IsEmpty() {
		of = "the definition of " + uicontext.SanitizeLine(p.Item().Listed)
		for _, b := range p.Subject().Blocks(a.Ctx) { // the definition is the last one
			if b.Kind == viewer.JSON {
				texts[0] = b.Data
			}
		}
	}
	return dialog.NewQuery(a.Context, of, &a.queryPath, texts...)
}

func (d *detail) Click(x, y int) tea.Cmd {
	switch {
	case d.subject.running != nil:
		return nil // the progress is drawn above the lines
	case d.tabLine < 0:
		return d.ToggleNode(y, false)
	case y == d.tabLine && d.tabEnds.At(x) >= 0:
		return d.switchTab(d.tabEnds.At(x))
	case y > d.tabLine:
		return d.ToggleNode(y-d.tabLine-1, false)
	}
	return nil
}

// Fade removes the marks of lines that changed a while ago.
func (d *detail) Fade(now time.Time) {
	if !d.markedAt.IsZero() && now.Sub(d.markedAt) > changeMarkTime {
		d.View.Unmark()
		d.markedAt = time.Time{}
	}
}

func (d *detail) Lines(a *Layout, r uicontext.Rect, border int, focused bool) []string {
	w, h := r.W-2*border, r.H-2*border
	var lines []string
	if run := d.subject.running; run != nil {
		lines = run.Lines(a.Context, w, min(h, 4))
		h -= len(lines)
	}
	above := d.above(w, h)
	lines = append(append(lines, above...), d.View.Lines(w, max(h-len(above), 0))...)
	if d.subject.Blocks == nil && len(d.subject.Tabs) == 0 && focused && len(lines) > 1 {
		lines[1] = a.Theme.Fit("  No row selected. "+a.KeyOf("back")+" goes back to the list.", w)
	}
	if border == 0 {
		return lines
	}
	style := a.Theme.Border
	if focused {
		style = a.Theme.Accent
	}
	return a.Theme.Frame(lines, uicontext.SanitizeLine(d.subject.Title), d.Position(focused, r.W), r.W, r.H, style)
}

// Position returns the number of the row if the detail has the focus. The position in a
// long text follows.
func (d *detail) Position(focused bool, w int) string {
	var parts []string
	if row, rows := d.app.rowNumber(); focused && rows > 1 && row > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d", row, rows))
	}
	if text := d.View.LineText(); text != "" {
		parts = append(parts, text)
	}
	for len(parts) > 1 && theme.Width(strings.Join(parts, ", ")) > w/2 {
		parts = parts[1:]
	}
	return strings.Join(parts, ", ")
}

// above draws the head and the tabs of the subject, if there is room.
func (d *detail) above(w, h int) []string {
	d.tabLine = -1
	open := d.openTab()
	if open < 0 || h < 4 {
		return nil
	}
	lk := d.app.Theme
	var lines []string
	if d.subject.Head != nil {
		lines = d.subject.Head(lk)
		lines = lines[:min(len(lines), max((h-4)/2, 0))]
	}
	for i := range lines {
		lines[i] = lk.Fit(" "+lines[i], w)
	}
	names := make([]string, len(d.subject.Tabs))
	for i, t := range d.subject.Tabs {
		names[i] = t.Name
	}
	line, ends := DrawTabs(lk, names, open)
	d.tabLine, d.tabEnds = len(lines), ends
	return append(lines, lk.Fit(line, w))
}

const changeMarkTime = 3 * time.Second
