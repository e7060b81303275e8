package resourcehistory

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry"
	"goblin/registry/termtext"
	"goblin/tui/chart"
	"goblin/tui/compare"
	"goblin/tui/dialog"
	"goblin/tui/keys"
	"goblin/tui/list"
	"goblin/tui/theme"
	"goblin/tui/uicontext"
	"goblin/tui/viewer"
)

// Options contains the parts of the UI that a [View] uses.
type Options struct {
	*uicontext.Context
	Store *Store
	Marks *compare.Marks
	// Subscribe toggles this UI's subscription.
	Subscribe func(uicontext.Item) tea.Cmd
}

// View is a dialog with the reads and updates of one resource, the newest first.
type View struct {
	dialog.ListDetail[*row]
	app    *uicontext.Context
	o      Options
	item   uicontext.Item
	reader *reader
	values []float64 // of the contents, oldest first
	ends   [2]string // times of the first and the last
	kept   int       // contents
	reads  int
	busy   bool // a command collects rows
	stale  bool // … which have changed since
	first  bool // no rows were collected yet

	shown *row
	width int
	ctx   context.Context
	end   context.CancelFunc
}

// Show opens the history of a resource and follows it.
func Show(o Options, it uicontext.Item) tea.Cmd {
	d := &View{app: o.Context, o: o, item: it, first: true}
	d.reader = &reader{journal: o.Reg.Traffic(), item: it, session: o.Backend.Session()}
	d.ctx, d.end = context.WithCancel(o.Ctx)
	table := list.New(o.Ctx, o.Now, func(r *row) string { return r.key }, func(r *row) string { return r.what + " " + r.client }, func([]*row) []list.Field { return nil })
	d.ListDetail = dialog.NewListDetail(o.Context, table, d.showContent)
	d.Table.Note = func(r *row) string {
		if key := markKey(r); key != "" && o.Marks.IsMarked(key) {
			return d.Theme.Accent.On("marked A")
		}
		return ""
	}
	d.setColumns()
	if o.ReadOnly == "" {
		o.Store.Follow(it)
	}
	o.Store.view = d
	return tea.Batch(o.Push(d), d.Refresh(registry.AllChanges), o.Store.Refresh())
}

func markKey(r *row) string {
	switch {
	case r.inv != nil:
		return compare.InvocationKey(r.inv)
	case r.rec != nil:
		return compare.RecordKey(r.rec)
	}
	return ""
}

// Refresh collects rows in a command; one runs at a time.
func (d *View) Refresh(what registry.Changes) tea.Cmd {
	if what&(registry.Traffic|registry.Cached|registry.Subscriptions) == 0 {
		return nil
	}
	if d.busy {
		d.stale = true
		return nil
	}
	d.busy, d.stale = true, false
	reads, path := d.o.Store.of(d.item.Server, d.item.Name), d.o.Store.paths[d.item]
	return func() tea.Msg {
		rows := d.reader.rows(reads, path)
		return keys.FuncMsg(func() tea.Cmd { return d.take(rows) })
	}
}

func (d *View) take(rows []*row) tea.Cmd {
	d.busy, d.first, d.values, d.kept, d.reads = false, false, nil, 0, 0
	for _, r := range slices.Backward(rows) {
		if r.what == "read" {
			d.reads++
		}
		if r.content == nil || r.answer == nil && math.IsNaN(r.value) {
			continue
		}
		if r.answer != nil && !r.isError {
			d.kept++
		}
		d.values = append(d.values, r.value)
		d.ends[1] = r.at.Format("15:04:05")
		if len(d.values) == 1 {
			d.ends[0] = d.ends[1]
		}
	}
	newest := d.Table.Cursor() == 0
	cmd := d.Table.Refresh(len(rows), func() []*row { return rows }, func() tea.Cmd { return nil })
	if newest {
		d.Table.MoveTo(0)
	}
	if d.stale {
		cmd = tea.Batch(cmd, d.Refresh(registry.AllChanges))
	}
	return tea.Batch(cmd, d.showContent())
}

// showContent lays out the selected content in a command.
func (d *View) showContent() tea.Cmd {
	r, ok := d.Table.Selected()
	w := d.DetailWidth()
	if !ok || d.shown != nil && d.shown.key == r.key && sameContent(d.shown, r) && w == d.width {
		return nil
	}
	d.shown, d.width = r, w
	return d.Build(d.ctx, w, d.blocks(r))
}

func sameContent(a, b *row) bool {
	if a.content == nil || b.content == nil {
		return a.content == b.content
	}
	return len(a.answer) == len(b.answer) && (len(a.answer) == 0 || &a.answer[0] == &b.answer[0])
}

func (d *View) blocks(r *row) func() []viewer.Section {
	note := func(text string) func() []viewer.Section {
		return func() []viewer.Section { return []viewer.Section{{Kind: viewer.Note, Text: text}} }
	}
	switch {
	case r.what == "update":
		return note("Updates carry no content." + d.hint())
	case r.content == nil:
		return note("No content.")
	case r.answer == nil:
		return note("The content is not kept: " + d.app.MissingBody() + ", or older than the last " + strconv.Itoa(maxContents) + ".")
	}
	answer, isError, cut := r.answer, r.isError, r.cut
	return func() []viewer.Section {
		switch {
		case isError:
			return []viewer.Section{{Kind: viewer.JSON, Data: answer}}
		case cut:
			return []viewer.Section{{Kind: viewer.Note, Text: "Only the start was recorded."}, {Kind: viewer.Text, Text: string(answer)}}
		}
		return viewer.FromResource(answer)
	}
}

// hint describes how new contents are kept, or returns "".
func (d *View) hint() string {
	if d.app.ReadOnly != "" {
		return ""
	}
	if _, subscribed := d.o.Store.subscription(d.item); subscribed {
		if !d.o.Store.follows(d.item) {
			return fmt.Sprintf(" New contents are not kept: %d other subscribed resources are.", maxFollowed)
		}
		return " Each new content is read and kept."
	}
	return " " + d.app.KeyOf("past.subscribe") + " subscribes and keeps each new content."
}

func (d *View) Heading() string { return "History: " + d.item.Listed }

func (d *View) Lines(w, h int) []string {
	if lines := d.Zoomed(w, h); lines != nil {
		return lines
	}
	lk := d.Theme
	summary := fmt.Sprintf("%s, %s kept, at most %d and %s.", termtext.Count(d.reads, "read"), termtext.Count(d.kept, "content"), maxContents, uicontext.FormatSize(maxBytes))
	var out []string
	for _, line := range uicontext.WrapText(summary+d.hint(), w-2, 2) {
		out = append(out, " "+lk.Dim.On(line))
	}
	if d.Table.Total() == 0 && !d.first {
		return lk.Lines(append(out, "", " No reads or updates yet. "+d.app.KeyOf("reload")+" in the pane reads it."), w, h)
	}
	out = append(out, d.plot(w, h)...)
	return d.Below(out, w, h, max(h-len(out), 0)/2)
}

// plot returns the chart of the numbers, if there are any and room for it.
func (d *View) plot(w, h int) []string {
	path := d.o.Store.paths[d.item]
	low, high, ok := chart.Range(d.values)
	if !ok {
		if path == "" {
			return nil
		}
		return []string{d.Theme.Warn.On(d.Theme.Cut(" no number at "+uicontext.SanitizeLine(path), w))}
	}
	name := "value"
	if path != "" {
		name = uicontext.SanitizeLine(path)
	}
	text := fmt.Sprintf(" %s: %s to %s", d.Theme.Cut(name, max(w-40, 8)), formatNumber(low), formatNumber(high))
	if last := d.values[len(d.values)-1]; !math.IsNaN(last) {
		text += ", now " + formatNumber(last)
	}
	if h < 16 {
		return []string{text}
	}
	s := chart.Series{Values: d.values, Format: formatNumber, From: d.ends[0], To: d.ends[1]}
	return append([]string{text}, chart.Plot(d.Theme, s, w-1, 3)...)
}

func formatNumber(v float64) string { return strconv.FormatFloat(v, 'g', 5, 64) }

func (d *View) setColumns() {
	type column = list.Column[*row]
	d.Table.SetColumns(
		column{Name: "time", NeededWidth: 12, Descending: true, Less: func(x, y *row) int { return x.at.Compare(y.at) }, Show: func(r *row, _ int) (string, theme.Style) {
			return r.at.Format("15:04:05.000"), ""
		}},
		column{Name: "what", NeededWidth: 11, Unsorted: true, Show: func(r *row, _ int) (string, theme.Style) {
			if r.what == "read" {
				return r.what, ""
			}
			return r.what, d.Theme.Dim
		}},
		column{Name: "client", MinWidth: 8, PreferredWidth: 16, Unsorted: true, Text: func(r *row) string { return r.client }},
		column{Name: "result", Unsorted: true, Text: func(r *row) string { return r.result }, Show: func(r *row, _ int) (string, theme.Style) {
			if r.failed {
				return d.Theme.Failed + " " + r.result, d.Theme.Bad
			}
			return r.result, ""
		}},
		column{Name: "content", NeededWidth: 9, Unsorted: true, Show: func(r *row, _ int) (string, theme.Style) {
			if r.change == "changed" {
				return r.change, d.Theme.Changed
			}
			return r.change, d.Theme.Dim
		}},
		number("size", 1, func(r *row) float64 { return float64(r.size) }, func(r *row) string { return uicontext.FormatSize(r.size) }),
		number("took", 3, func(r *row) float64 { return float64(r.took) }, func(r *row) string { return uicontext.FormatDuration(r.took) }),
		number("value", 2, func(r *row) float64 {
			if r.content == nil || math.IsNaN(r.value) {
				return 0
			}
			return r.value
		}, func(r *row) string { return formatNumber(r.value) }))
}

// number returns a column that is hidden without values.
func number(name string, priority int, value func(*row) float64, text func(*row) string) list.Column[*row] {
	has := func(r *row) bool {
		return name != "value" && value(r) > 0 || name == "value" && r.content != nil && !math.IsNaN(r.value)
	}
	c := list.NumberColumn(name, priority, 10, value, func(r *row, _ int) (string, theme.Style) {
		if !has(r) {
			return "", ""
		}
		return text(r), ""
	})
	c.HasValue = has
	return c
}

// Keys returns the keys of the dialog.
func (d *View) Keys() keys.Table {
	does := "subscribe"
	if d.o.Store != nil { // nil in the list of all keys
		if _, subscribed := d.o.Store.subscription(d.item); subscribed {
			does = "unsubscribe"
		}
	}
	return append(keys.Table{
		{ID: "past.down", Long: "Older row", Run: d.Move(1)},
		{ID: "past.up", Long: "Newer row", Run: d.Move(-1)},
		{ID: "past.zoom", Hint: d.ZoomHint(), Long: "Maximize the content, or show the list again", Run: d.Zoom},
		{ID: "past.compare", Hint: "compare", Long: "Mark a read for a comparison; on another: compare", Run: d.compare},
		{ID: "past.path", Hint: "number", Long: "Draw the number at a JSONPath over time", Run: d.askPath},
		{ID: "past.subscribe", Hint: does, Long: "Subscribe, and keep each new content", Run: func() tea.Cmd { return d.o.Subscribe(d.item) }},
		{ID: "past.copy", Hint: "copy", Long: "Copy the answer", Run: d.copyAnswer},
		{ID: "past.close", Hint: "close", Long: "Close", Run: d.close},
	}, keys.Scrolling("scroll", func() keys.Scroller { return d.View }, "half-down", "half-up", "page-down", "page-up", "top", "bottom")...)
}

func (d *View) close() tea.Cmd {
	if d.Unzoom() {
		return nil
	}
	d.end()
	d.o.Store.view = nil
	return d.app.Drop(d)
}

func (d *View) compare() tea.Cmd {
	r, ok := d.Table.Selected()
	switch {
	case !ok || r.content == nil || r.answer == nil:
		return d.app.Complain("this row has no content to compare")
	}
	d.o.Marks.ForgetOthers(d.item)
	if r.inv != nil {
		return d.o.Marks.ToggleInvocation(d.item, r.inv)
	}
	return d.o.Marks.ToggleRecord(r.rec, d.item, r.client)
}

func (d *View) copyAnswer() tea.Cmd {
	r, ok := d.Table.Selected()
	if !ok || r.content == nil || r.answer == nil {
		return d.app.Complain("this row has no content")
	}
	return d.app.Copy(string(r.answer), "the answer")
}

// askPath suggests the first number of the selected content.
func (d *View) askPath() tea.Cmd {
	text := d.o.Store.paths[d.item]
	if r, ok := d.Table.Selected(); text == "" && ok && r.content != nil {
		text = suggestPath(textOf(r.answer))
	}
	p := dialog.NewTextPrompt(d.app, "JSONPath of a number, such as $.load; empty: the text", text, func(path string) tea.Cmd {
		d.o.Store.setPath(d.item, path)
		return d.Refresh(registry.AllChanges)
	})
	p.Optional = true
	return d.app.Push(p)
}
