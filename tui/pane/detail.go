package pane

import (
	"context"
	"maps"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/tui/dialog"
	"goblin/tui/keys"
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
}

func newDetail(a *Layout) *detail {
	return &detail{app: a, View: viewer.NewView(a.Theme), cancel: func() {}}
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
	if s.Blocks == nil {
		d.View.Show(nil, false)
		return nil
	}
	ctx, cancel := context.WithCancel(d.app.Ctx)
	d.cancel, d.busy = cancel, true
	o := viewer.Options{Width: d.width, Depth: uicontext.DefaultDepth, Fold: d.foldLevels, Toggled: d.toggledNodes, Numbers: s.numbers, NoWrap: d.app.NoWrap, Opens: d.app.KeyOf("pager")}
	return func() tea.Msg {
		defer cancel()
		doc, err := viewer.Build(ctx, lk, s.Blocks(ctx), o)
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
			if d.dirty {
				return d.Build(true, d.news)
			}
			d.scrollToAnswer()
			return nil
		})
	}
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
	if d := a.FrontExchange(); d != nil {
		cmds = append(cmds, d.build())
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

func (d *detail) Click(y int) tea.Cmd {
	if d.subject.running != nil {
		return nil // the progress is drawn above the lines
	}
	return d.ToggleNode(y, false)
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
	lines = append(lines, d.View.Lines(w, max(h, 0))...)
	if border == 0 {
		return lines
	}
	style := a.Theme.Border
	if focused {
		style = a.Theme.Accent
	}
	return a.Theme.Frame(lines, uicontext.SanitizeLine(d.subject.Title), uicontext.PositionText(d.View), r.W, r.H, style)
}

const changeMarkTime = 3 * time.Second
