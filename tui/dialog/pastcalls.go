package dialog

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry"
	"goblin/registry/export"
	"goblin/registry/savedcall"
	"goblin/registry/termtext"
	"goblin/tui/keys"
	"goblin/tui/list"
	"goblin/tui/theme"
	"goblin/tui/uicontext"
	"goblin/tui/viewer"
)

// CompareCalls marks a call for a comparison, or compares it with the marked one.
type CompareCalls struct {
	Toggle   func(uicontext.Item, *registry.Invocation) tea.Cmd
	IsMarked func(*registry.Invocation) bool
}

// PastCalls is a dialog with a snapshot of an item's recent calls, the newest first.
type PastCalls struct {
	uicontext.ListDialog
	app       *uicontext.Context
	item      uicontext.Item
	compare   CompareCalls
	addRule   func() tea.Cmd // for calls of the item
	Table     *list.Table[*registry.Invocation]
	View      *viewer.View
	theme     *theme.Theme
	callShown *registry.Invocation
	zoomed    bool // the call fills the dialog
	width     int
	gen       int
	end       context.CancelFunc
}

// NewPastCalls opens the recent calls of an item.
func NewPastCalls(a *uicontext.Context, it uicontext.Item, compare CompareCalls, addRule func() tea.Cmd) (*PastCalls, tea.Cmd) {
	calls := a.Calls.History(it)
	d := &PastCalls{app: a, item: it, compare: compare, addRule: addRule, View: viewer.NewView(a.Theme), theme: a.Theme, end: func() {}}
	d.Table = list.New(a.Ctx, a.Now,
		func(inv *registry.Invocation) string { return inv.Time.String() },
		func(inv *registry.Invocation) string { return string(inv.Params) },
		func([]*registry.Invocation) []list.Field { return nil })
	d.Table.Note = func(inv *registry.Invocation) string {
		if compare.IsMarked(inv) {
			return d.theme.Accent.On("marked A")
		}
		return ""
	}
	d.setColumns()
	fill := d.Table.Refresh(len(calls), func() []*registry.Invocation { return calls }, func() tea.Cmd { return nil })
	return d, tea.Batch(fill, a.Push(d), d.show())
}

// show lays out the selected call in a command. Only the newest command counts.
func (d *PastCalls) show() tea.Cmd {
	inv, ok := d.Table.Selected()
	w, _ := d.Size(d.app.W-2, d.app.H-2)
	if w -= 2; !ok || inv == d.callShown && w == d.width {
		return nil
	}
	d.end()
	ctx, cancel := context.WithCancel(d.app.Ctx)
	d.end = cancel
	d.gen++
	d.callShown, d.width = inv, w
	gen, lk, blocks := d.gen, d.app.Theme, d.blocks(inv)
	return func() tea.Msg {
		doc, err := viewer.Build(ctx, lk, blocks, viewer.Options{Width: w, Depth: uicontext.DefaultDepth})
		return keys.FuncMsg(func() tea.Cmd {
			if err == nil && gen == d.gen {
				d.View.Show(doc, false)
			}
			return nil
		})
	}
}

// blocks shows the arguments and the result, of a failed call the error first. Secrets of
// the config are hidden.
func (d *PastCalls) blocks(inv *registry.Invocation) []viewer.Section {
	request, result := []viewer.Section{}, []viewer.Section{{Title: "Result", Kind: viewer.Note, Text: callStatus(inv)}}
	if len(inv.Params) > 0 {
		request = append(request, viewer.Section{Title: "Arguments", Kind: viewer.JSON, Data: redacted(d.app, inv.Params)})
	}
	if len(inv.Meta) > 0 {
		request = append(request, viewer.Section{Title: "_meta", Kind: viewer.JSON, Data: redacted(d.app, inv.Meta)})
	}
	from := map[registry.Kind]func(json.RawMessage) []viewer.Section{registry.Tool: viewer.FromTool, registry.Prompt: viewer.FromPrompt}[inv.Kind]
	if from == nil {
		from = viewer.FromResource
	}
	switch {
	case inv.Cancelled:
	case inv.Error != "":
		result = append(result, viewer.Section{Kind: viewer.Error, Text: d.app.Backend.Redact(inv.Error)})
	default:
		result = append(result, from(inv.Result)...)
	}
	if !inv.Success && !inv.Cancelled {
		return append(result, request...)
	}
	return append(request, result...)
}

func redacted(a *uicontext.Context, text json.RawMessage) json.RawMessage {
	return json.RawMessage(a.Backend.Redact(string(text)))
}

func callStatus(inv *registry.Invocation) string {
	switch {
	case inv.Cancelled:
		return "cancelled after " + uicontext.FormatDuration(inv.Duration)
	case inv.Error != "":
		return "failed after " + uicontext.FormatDuration(inv.Duration)
	case !inv.Success:
		return "tool error after " + uicontext.FormatDuration(inv.Duration)
	}
	return "ok in " + uicontext.FormatDuration(inv.Duration) + ", " + uicontext.FormatSize(int64(len(inv.Result)))
}

func (d *PastCalls) Heading() string { return "Recent calls: " + d.item.Listed }

func (d *PastCalls) Size(w, h int) (int, int) { return min(w, 140), h }

func (d *PastCalls) Lines(w, h int) []string {
	if d.theme != d.app.Theme {
		d.theme = d.app.Theme
		d.View.SetTheme(d.theme)
	}
	lk := d.theme
	if d.zoomed {
		return ZoomedLines(lk, d.View, d.Table.Cursor(), d.Table.Len(), w, h)
	}
	above := min(max(d.Table.Total()+1, 4), max(h/3, 1))
	text := d.View.Lines(w, max(h-above-1, 0)) // must precede the position text
	out := append(d.Table.Grid(lk, w, above, true), lk.Rule(lk.Horizontal, "", uicontext.PositionText(d.View), lk.Horizontal, w, lk.Border))
	return lk.Lines(append(out, text...), w, h)
}

// ZoomedLines draws the detail of row at, which fills a dialog with a list of n rows.
func ZoomedLines(lk *theme.Theme, v *viewer.View, at, n, w, h int) []string {
	text := v.Lines(w, max(h-1, 0)) // must precede the position text
	rule := lk.Rule(lk.Horizontal, fmt.Sprintf("%d of %d", at+1, n), uicontext.PositionText(v), lk.Horizontal, w, lk.Border)
	return lk.Lines(append([]string{rule}, text...), w, h)
}

// ZoomHint returns the effect of the key that zooms the detail of a dialog.
func ZoomHint(zoomed bool) string {
	if zoomed {
		return "show list"
	}
	return "zoom"
}

func (d *PastCalls) setColumns() {
	type column = list.Column[*registry.Invocation]
	ended := func(inv *registry.Invocation) string {
		switch {
		case inv.Cancelled:
			return "cancelled"
		case !inv.Success:
			return "! error"
		}
		return "ok"
	}
	d.Table.SetColumns(
		column{Name: "time", NeededWidth: 8, Descending: true, Less: func(x, y *registry.Invocation) int { return x.Time.Compare(y.Time) }, Show: func(inv *registry.Invocation, _ int) (string, theme.Style) {
			return inv.Time.Format("15:04:05"), ""
		}},
		column{Name: "ago", Priority: 3, NeededWidth: 8, AlignRight: true, Unsorted: true, Show: func(inv *registry.Invocation, _ int) (string, theme.Style) {
			return termtext.Age(d.app.Now().Sub(inv.Time)), ""
		}},
		column{Name: "result", Text: ended, Show: func(inv *registry.Invocation, _ int) (string, theme.Style) {
			switch {
			case inv.Cancelled:
				return "cancelled", d.theme.Dim
			case inv.Success:
				return "ok", d.theme.Good
			}
			return d.theme.Failed + " error", d.theme.Bad
		}},
		list.NumberColumn("took", 1, 9, func(inv *registry.Invocation) float64 { return float64(inv.Duration) }, func(inv *registry.Invocation, _ int) (string, theme.Style) {
			return uicontext.FormatDuration(inv.Duration), ""
		}),
		list.NumberColumn("size", 2, 9, func(inv *registry.Invocation) float64 { return float64(len(inv.Result)) }, func(inv *registry.Invocation, _ int) (string, theme.Style) {
			return uicontext.FormatSize(int64(len(inv.Result))), ""
		}),
		column{Name: "arguments", MinWidth: 12, PreferredWidth: 24, Fills: true, Unsorted: true, Dim: true, Show: func(inv *registry.Invocation, _ int) (string, theme.Style) {
			args := cmp.Or(d.app.ArgumentsText(inv.Params), "no arguments")
			if failure := d.app.PastFailure(inv); failure != "" {
				return failure + "  " + args, d.theme.Bad
			}
			return args, ""
		}})
}

func (d *PastCalls) Keys() keys.Table {
	move := func(by int) func() tea.Cmd {
		return func() tea.Cmd {
			d.Table.Move(by)
			return d.show()
		}
	}
	return append(keys.Table{
		{ID: "past.down", Hint: "down", Long: "Older call", Run: move(1)},
		{ID: "past.up", Hint: "up", Long: "Newer call", Run: move(-1)},
		{ID: "past.zoom", Hint: ZoomHint(d.zoomed), Long: "Maximize the call, or show the list again", Run: func() tea.Cmd { d.zoomed = !d.zoomed; return nil }},
		{ID: "past.call", Hint: "call", Long: "Open the form with these arguments", Run: d.Table.WithSelected(d.call)},
		{ID: "past.copy", Hint: "copy arguments", Long: "Copy the arguments", Run: d.Table.WithSelected(func(inv *registry.Invocation) tea.Cmd {
			return d.app.Copy(string(redacted(d.app, inv.Params)), "the arguments")
		})},
		{ID: "past.copy-content", Hint: "copy as", Long: "Copy the raw result, or the request as command or program", Run: d.Table.WithSelected(func(inv *registry.Invocation) tea.Cmd {
			return NewSnippets(d.app, requestOf(d.app, d.item, inv), export.Snippet{Language: "result", Text: string(inv.Result), Why: "the call has no result"})
		})},
		{ID: "past.compare", Hint: "compare", Long: "Mark for a comparison; on another: compare", Run: d.Table.WithSelected(func(inv *registry.Invocation) tea.Cmd {
			return d.compare.Toggle(d.item, inv)
		})},
		{ID: "past.save-call", Hint: "save call", Long: "Save the call as a file", Run: d.Table.WithSelected(func(inv *registry.Invocation) tea.Cmd {
			rec := requestOf(d.app, d.item, inv)
			return d.app.SaveCall(rec.Method, rec.Request, savedcall.Answer{Result: inv.Result})
		})},
		{ID: "past.break", Hint: "break", Long: "Add a rule for such calls, or show it", Run: func() tea.Cmd { return d.addRule() }},
		{ID: "past.close", Hint: "close", Long: "Close", Run: d.leave},
	}, keys.Scrolling("scroll", func() keys.Scroller { return d.View }, "half-down", "half-up", "page-down", "page-up", "top", "bottom")...)
}

func (d *PastCalls) leave() tea.Cmd {
	if d.zoomed {
		d.zoomed = false
		return nil
	}
	return d.close()
}

func (d *PastCalls) close() tea.Cmd {
	d.end()
	return d.app.Drop(d)
}

func (d *PastCalls) call(inv *registry.Invocation) tea.Cmd {
	d.close()
	return CallWith(d.app, d.item, inv.Params)
}

func (d *PastCalls) Update(msg tea.Msg) tea.Cmd {
	if m, ok := msg.(tea.MouseMsg); ok && uicontext.LeftPress(m) && !d.zoomed {
		row, cmd := d.Table.Click(m.X, m.Y)
		if row {
			return d.show()
		}
		return cmd
	}
	uicontext.ScrollWheel(d.View.Scroll, msg)
	return nil
}

func (d *PastCalls) Background(msg tea.Msg) tea.Cmd {
	if _, ok := msg.(tea.WindowSizeMsg); ok {
		return d.show()
	}
	return nil
}
