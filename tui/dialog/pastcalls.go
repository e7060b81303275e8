package dialog

import (
	"cmp"
	"context"
	"encoding/json"

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
	ListDetail[*registry.Invocation]
	item      uicontext.Item
	compare   CompareCalls
	addRule   func() tea.Cmd // for calls of the item
	callShown *registry.Invocation
	width     int
	end       context.CancelFunc
}

// NewPastCalls opens the recent calls of an item.
func NewPastCalls(a *uicontext.Context, it uicontext.Item, compare CompareCalls, addRule func() tea.Cmd) (*PastCalls, tea.Cmd) {
	calls := a.Calls.History(it)
	d := &PastCalls{item: it, compare: compare, addRule: addRule, end: func() {}}
	table := list.New(a.Ctx, a.Now,
		func(inv *registry.Invocation) string { return inv.Time.String() },
		func(inv *registry.Invocation) string { return string(inv.Params) },
		func([]*registry.Invocation) []list.Field { return nil })
	d.ListDetail = NewListDetail(a, table, d.showCall)
	table.Note = func(inv *registry.Invocation) string {
		if compare.IsMarked(inv) {
			return d.Theme.Accent.On("marked A")
		}
		return ""
	}
	d.setColumns()
	fill := d.Table.Refresh(len(calls), func() []*registry.Invocation { return calls }, func() tea.Cmd { return nil })
	return d, tea.Batch(fill, a.Push(d), d.showCall())
}

// showCall lays out the selected call in a command.
func (d *PastCalls) showCall() tea.Cmd {
	inv, ok := d.Table.Selected()
	w := d.DetailWidth()
	if !ok || inv == d.callShown && w == d.width {
		return nil
	}
	d.end()
	ctx, cancel := context.WithCancel(d.app.Ctx)
	d.end = cancel
	d.callShown, d.width = inv, w
	blocks := d.blocks(inv)
	return d.Build(ctx, w, func() []viewer.Section { return blocks })
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

func (d *PastCalls) Lines(w, h int) []string {
	if lines := d.Zoomed(w, h); lines != nil {
		return lines
	}
	return d.Below(nil, w, h, h/3)
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
				return "cancelled", d.Theme.Dim
			case inv.Success:
				return "ok", d.Theme.Good
			}
			return d.Theme.Failed + " error", d.Theme.Bad
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
				return failure + "  " + args, d.Theme.Bad
			}
			return args, ""
		}})
}

func (d *PastCalls) Keys() keys.Table {
	return append(keys.Table{
		{ID: "past.down", Long: "Older call", Run: d.Move(1)},
		{ID: "past.up", Long: "Newer call", Run: d.Move(-1)},
		{ID: "past.zoom", Hint: d.ZoomHint(), Long: "Maximize the call, or show the list again", Run: d.Zoom},
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
	if d.Unzoom() {
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
