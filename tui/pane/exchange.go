package pane

import (
	"context"
	"slices"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry"
	"goblin/tui/dialog"
	"goblin/tui/exchange"
	"goblin/tui/keys"
	"goblin/tui/theme"
	"goblin/tui/uicontext"
	"goblin/tui/viewer"
)

// sideBySide is the minimum width for drawing request and response side by side.
const sideBySide = 140

// Exchange is a dialog with a request and its response.
type Exchange struct {
	uicontext.BaseDialog
	app       *Layout
	rec       registry.TrafficRecord // without bodies
	theme     *theme.Theme
	Views     [2]*viewer.View
	viewRects [2]uicontext.Rect // where the views were drawn
	focused   int               // the view that scrolls
	width     [2]int            // of the built texts
	gen       int
	ctx       context.Context
	end       context.CancelFunc
}

// OpenExchange shows a record's request and response.
func (a *Layout) OpenExchange(rec registry.TrafficRecord) tea.Cmd {
	d := &Exchange{app: a, rec: rec, theme: a.Theme}
	for i := range d.Views {
		d.Views[i] = viewer.NewView(a.Theme)
	}
	d.focused = 1
	if isNotification(&rec) {
		d.focused = 0
	}
	d.ctx, d.end = context.WithCancel(a.Ctx)
	return tea.Batch(a.Push(d), d.build())
}

func (d *Exchange) Heading() string {
	text := arrow(d.app.Theme, d.rec.Direction) + " " + d.rec.Method
	if d.rec.Name != "" {
		text += " " + d.rec.Name
	}
	return text
}

func (d *Exchange) Size(w, h int) (int, int) { return w, h }

func (d *Exchange) Hints() []keys.Hint {
	t := d.Keys().WithKeys(d.app.Actions)
	if isNotification(&d.rec) {
		t = slices.DeleteFunc(t, func(b keys.Binding) bool { return b.ID == "exchange.other" })
	}
	return t.Hints()
}

func (d *Exchange) innerSize() (w, h int) { return max(d.app.W-4, 1), max(d.app.H-4, 1) }

func (d *Exchange) isSideBySide() bool { return d.app.W >= sideBySide && !isNotification(&d.rec) }

func (d *Exchange) widths() [2]int {
	w, _ := d.innerSize()
	if d.isSideBySide() {
		return [2]int{(w - 1) / 2, w - 1 - (w-1)/2}
	}
	return [2]int{w, w}
}

func (d *Exchange) build() tea.Cmd {
	d.gen++
	gen := d.gen
	widths := d.widths()
	lk := d.app.Theme
	seq := d.rec.Seq
	d.width = widths
	app := d.app
	rec := d.rec
	ctx := d.ctx
	wide := d.app.NoWrap
	return func() tea.Msg {
		if full, ok := app.Reg.Traffic().Record(seq); ok {
			rec = full
		}
		var docs [2]*viewer.Doc
		for i, blocks := range [][]viewer.Section{exchange.RequestSide(app.Context, &rec, lk), exchange.ResponseSide(app.Context, &rec)} {
			doc, err := viewer.Build(ctx, lk, blocks, viewer.Options{Width: widths[i], Depth: uicontext.DefaultDepth, NoWrap: wide})
			if err != nil {
				return nil // closed meanwhile
			}
			docs[i] = doc
		}
		return keys.FuncMsg(func() tea.Cmd {
			if gen == d.gen {
				for i, doc := range docs {
					d.Views[i].Show(doc, true)
				}
			}
			return nil
		})
	}
}

func (d *Exchange) Lines(w, h int) []string {
	if d.theme != d.app.Theme {
		d.theme = d.app.Theme
		for _, v := range d.Views {
			v.SetTheme(d.theme)
		}
	}
	if isNotification(&d.rec) {
		d.viewRects = [2]uicontext.Rect{{X: 0, Y: 0, W: w, H: h}, {}}
		return d.Views[0].Lines(w, h)
	}
	if d.isSideBySide() {
		left := (w - 1) / 2
		d.viewRects = [2]uicontext.Rect{{X: 0, Y: 1, W: left, H: h - 1}, {X: left + 1, Y: 1, W: w - 1 - left, H: h - 1}}
	} else {
		// The request gets the room that it needs, up to half.
		most := max((h-2)/2, h-2-max(d.Views[1].Doc().Len(), 1))
		first := max(min(d.Views[0].Doc().Len(), most), 0)
		d.viewRects = [2]uicontext.Rect{{X: 0, Y: 1, W: w, H: first}, {X: 0, Y: first + 2, W: w, H: max(h-first-2, 0)}}
	}
	a, b := d.side(0), d.side(1)
	if !d.isSideBySide() {
		return d.theme.Lines(append(a, b...), w, h)
	}
	out := make([]string, 0, h)
	bar := d.theme.Border.On(d.theme.Vertical)
	for i := range min(len(a), h) {
		out = append(out, a[i]+bar+b[i])
	}
	return out
}

func (d *Exchange) side(i int) []string {
	lk, r := d.theme, d.viewRects[i]
	title := [2]string{"Request", "Response"}[i]
	style := lk.Border
	if i == d.focused {
		title, style = "["+title+"]", lk.Accent
	}
	body := d.Views[i].Lines(r.W, max(r.H, 0))
	return append([]string{lk.Rule(lk.Horizontal, style.On(title), uicontext.PositionText(d.Views[i]), lk.Horizontal, r.W, style)}, body...)
}

func (d *Exchange) Keys() keys.Table {
	do := func(run func(*Layout) tea.Cmd) func() tea.Cmd { return func() tea.Cmd { return run(d.app) } }
	t := keys.Scrolling("scroll", func() keys.Scroller { return d.Views[d.focused] })
	t[0].Hint, t[1].Hint = "scroll", ""
	return append(t,
		keys.Binding{ID: "exchange.other", Hint: "other side", Long: "Switch between request and response", Run: d.switchFocus},
		keys.Binding{ID: "exchange.copy", Hint: "copy JSON-RPC", Long: "Copy the JSON-RPC", Run: do(func(a *Layout) tea.Cmd { return a.copyExchange(d.rec.Seq) })},
		keys.Binding{ID: "exchange.command", Hint: "copy as", Long: "Copy the request as command, JSON-RPC or program", Run: do(func(a *Layout) tea.Cmd { return a.copyAs(d.rec.Seq) })},
		keys.Binding{ID: "exchange.call", Hint: "call", Long: "Call again with these arguments", Run: d.recall},
		keys.Binding{ID: "exchange.item", Hint: "item", Long: "Go to the item", Run: do(func(a *Layout) tea.Cmd {
			d.close()
			return a.GoToItem(&d.rec)
		})},
		keys.Binding{ID: "exchange.query", Long: "Filter JSON by a path", Run: do((*Layout).QueryContent)},
		keys.Binding{ID: "exchange.wrap", Long: "Toggle line wrapping", Run: do((*Layout).Rewrap)},
		keys.Binding{ID: "exchange.right", Long: "Scroll long lines right", Run: func() tea.Cmd { d.Views[d.focused].Right(8); return nil }},
		keys.Binding{ID: "exchange.left", Long: "Scroll long lines left", Run: func() tea.Cmd { d.Views[d.focused].Right(-8); return nil }},
		keys.Binding{ID: "exchange.pager", Hint: "open in $PAGER", Long: "Open in $PAGER", Run: do(func(a *Layout) tea.Cmd { return dialog.OpenIn(a.Context, "pager", a.Content()) })},
		keys.Binding{ID: "exchange.editor", Long: "Open in $EDITOR", Run: do(func(a *Layout) tea.Cmd { return dialog.OpenIn(a.Context, "editor", a.Content()) })},
		keys.Binding{ID: "exchange.save", Long: "Save to a file", Run: do(func(a *Layout) tea.Cmd { return dialog.Save(a.Context, a.Content()) })},
		keys.Binding{ID: "exchange.save-call", Hint: "save call", Long: "Save the call as a file", Run: func() tea.Cmd { return d.app.SaveRecord(d.rec.Seq) }},
		keys.Binding{ID: "exchange.close", Hint: "back", Long: "Close", Run: d.close})
}

// recall opens the form of the call and closes this dialog: the new call appears in the
// list behind it.
func (d *Exchange) recall() tea.Cmd {
	n := len(d.app.Dialogs)
	cmd := d.app.Recall(&d.rec)
	if len(d.app.Dialogs) > n {
		return tea.Batch(cmd, d.close())
	}
	return cmd
}

func (d *Exchange) close() tea.Cmd {
	d.end()
	return d.app.Drop(d)
}

func (d *Exchange) switchFocus() tea.Cmd {
	if !isNotification(&d.rec) {
		d.focused = 1 - d.focused
	}
	return nil
}

func (d *Exchange) Update(msg tea.Msg) tea.Cmd {
	if m, ok := msg.(tea.MouseMsg); ok {
		d.handleMouse(m)
	}
	return nil
}

func (d *Exchange) handleMouse(m tea.MouseMsg) {
	for i, r := range d.viewRects {
		r.Y, r.H = r.Y-1, r.H+1 // including its title
		if !r.Contains(m.X, m.Y) {
			continue
		}
		uicontext.ScrollWheel(d.Views[i].Scroll, m)
		if uicontext.LeftPress(m) {
			d.focused = i
		}
		return
	}
}

func (d *Exchange) Background(msg tea.Msg) tea.Cmd {
	if _, ok := msg.(tea.WindowSizeMsg); ok && d.widths() != d.width {
		return d.build()
	}
	return nil
}

// FrontExchange returns the open exchange, or nil.
func (a *Layout) FrontExchange() *Exchange {
	for i := len(a.Dialogs) - 1; i >= 0; i-- {
		if d, ok := a.Dialogs[i].(*Exchange); ok {
			return d
		}
	}
	return nil
}
