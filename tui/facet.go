package tui

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"goblin/tui/list"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/tui/edit"
	"goblin/tui/filter"
	"goblin/tui/keys"
	"goblin/tui/look"
	"goblin/tui/work"
)

// facet chooses values of a field from a list with counts. What it applies is
// text in the filter bar, so there is one filter and one way to clear it.
type facet struct {
	still
	app    *app
	field  filter.Field
	known  bool // the open pane has the field
	title  string
	all    []value
	shown  []int // of all, what the typed text leaves
	cur    int
	off    int
	height int
	input  edit.Text
	ready  bool // counted

	before []bool // what was ticked at first
	cancel context.CancelFunc
}

// value is one of a field.
type value struct {
	text string
	rows int
	on   bool
}

// mostValues are listed; a field with more is not for choosing from a list.
const mostValues = 5000

// newFacet makes the list for a field of the open pane.
func newFacet(field, title string) func(*app) dialog {
	return func(a *app) dialog {
		d := &facet{app: a, title: title, input: edit.New(a.look), height: 1, cancel: func() {}}
		d.field, d.known = fieldCalled(a.panes[a.open].rows().Columns(), field)
		return d
	}
}

// fieldCalled finds a text field by name or alias.
func fieldCalled(all []filter.Field, name string) (filter.Field, bool) {
	for _, f := range all {
		if f.Kind == filter.Text && f.Text != nil && (strings.EqualFold(f.Name, name) || slices.ContainsFunc(f.Aliases, func(s string) bool { return strings.EqualFold(s, name) })) {
			return f, true
		}
	}
	return filter.Field{}, false
}

// begin counts, in a command when there are many rows.
func (d *facet) begin() tea.Cmd {
	if !d.known {
		d.ready = true
		return nil
	}
	ctx, cancel := context.WithCancel(d.app.ctx)
	d.cancel = cancel
	r := d.app.panes[d.app.open].rows()
	n := r.Total()
	typed, _ := r.Filtered()
	f := d.field
	// What other parts of the filter leave is what there is to choose from.
	matches := r.Matching(filter.Set(typed, f.Name, nil))
	find := func() ([]value, error) {
		all, err := countValues(ctx, f, n)
		if err == nil {
			err = recount(ctx, all, f, matches)
		}
		if err == nil {
			tick(ctx, all, f, typed)
		}
		return all, err
	}
	take := func(all []value, err error) tea.Cmd {
		cancel()
		if err == nil {
			d.take(all)
		}
		return nil
	}
	if n <= list.AtOnce {
		return take(find())
	}
	return func() tea.Msg {
		all, err := find()
		return work.Done(func() tea.Cmd { return take(all, err) })
	}
}

func (d *facet) take(all []value) {
	d.all, d.ready = all, true
	d.before = make([]bool, len(all))
	for i, v := range all {
		d.before[i] = v.on
	}
	d.narrow()
}

// recount leaves of the counts the rows that match.
func recount(ctx context.Context, all []value, f filter.Field, matches func(context.Context) ([]int32, error)) error {
	rows, err := matches(ctx)
	if err != nil {
		return err
	}
	counts := make(map[string]int, len(all))
	for _, i := range rows {
		counts[f.Text(int(i))]++
	}
	for i := range all {
		all[i].rows = counts[all[i].text]
	}
	slices.SortStableFunc(all, func(a, b value) int { return cmp.Compare(b.rows, a.rows) })
	return nil
}

// countValues counts the values of a field in rows 0 to n, the most frequent
// first.
func countValues(ctx context.Context, f filter.Field, n int) ([]value, error) {
	counts := map[string]int{}
	for i := range n {
		if i%4096 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		counts[f.Text(i)]++
	}
	all := make([]value, 0, len(counts))
	for text, rows := range counts {
		all = append(all, value{text: text, rows: rows})
	}
	slices.SortFunc(all, func(a, b value) int {
		return cmp.Or(cmp.Compare(b.rows, a.rows), cmp.Compare(a.text, b.text))
	})
	return all[:min(len(all), mostValues)], nil
}

// asked are the values that a filter asks for in a field, under any of its
// names.
func asked(typed string, f filter.Field) []string {
	values := filter.Values(typed, f.Name)
	for _, alias := range f.Aliases {
		values = append(values, filter.Values(typed, alias)...)
	}
	return values
}

// tick marks the values that a filter asks for, as the filter itself would.
func tick(ctx context.Context, all []value, f filter.Field, typed string) {
	values := asked(typed, f)
	if len(values) == 0 {
		return
	}
	own := filter.Field{Name: f.Name, Kind: filter.Text, Text: func(i int) string { return all[i].text }}
	query := filter.Parse(filter.Set("", f.Name, values), []filter.Field{own})
	index := filter.NewIndex(len(all), func(int) string { return "" })
	found, _ := query.Match(ctx, index, nil, time.Time{}) // a context that ended: nobody looks at it
	if query.Empty() {
		return
	}
	for _, i := range found {
		all[i].on = true
	}
}

// term is how the filter asks for this value and no other one.
func (d *facet) term(text string) string {
	if text == "" {
		return ""
	}
	low := strings.ToLower(text)
	exact := strings.HasPrefix(text, "=") || strings.Contains(text, "*")
	for _, v := range d.all {
		exact = exact || v.text != text && strings.Contains(strings.ToLower(v.text), low)
	}
	if exact {
		return "=" + text
	}
	return text
}

// apply writes what is ticked into the filter.
func (d *facet) apply() tea.Cmd {
	changed := false
	var values []string
	for i, v := range d.all {
		changed = changed || v.on != d.before[i]
		if v.on {
			values = append(values, d.term(v.text))
		}
	}
	if !changed {
		return nil
	}
	return d.app.setFilter(withField(d.typed(), d.field, values))
}

func (d *facet) typed() string {
	typed, _ := d.app.panes[d.app.open].rows().Filtered()
	return typed
}

// withField replaces what a filter asks for in a field, under any of its names.
func withField(typed string, f filter.Field, values []string) string {
	for _, alias := range f.Aliases {
		typed = filter.Set(typed, alias, nil)
	}
	return filter.Set(typed, f.Name, values)
}

// narrow leaves the values that contain the typed words.
func (d *facet) narrow() {
	words := strings.Fields(strings.ToLower(d.input.Value()))
	d.shown, d.cur, d.off = d.shown[:0], 0, 0
	for i, v := range d.all {
		if containsAll(strings.ToLower(v.shown()), words) {
			d.shown = append(d.shown, i)
		}
	}
}

func (v value) shown() string {
	if v.text == "" {
		return "(none)"
	}
	return clean(v.text)
}

func (d *facet) heading() string { return d.title }

func (d *facet) size(w, h int) (int, int) {
	width := 40
	for _, v := range d.all[:min(len(d.all), 200)] {
		width = max(width, look.Width(v.shown())+20)
	}
	// It does not shrink while one types.
	return min(w, width, 90), min(h, max(8, min(len(d.all), 20)+4))
}

func (d *facet) lines(w, h int) []string {
	lk := d.app.look
	d.input.Width = max(1, w-20)
	on := 0
	for _, v := range d.all {
		if v.on {
			on++
		}
	}
	left := " " + lk.Accent.On("/") + " " + d.input.View()
	out := []string{lk.Sides(left, lk.Dim.On(grouped(on)+" ticked "), w)}
	d.height = max(h-1, 1)
	switch {
	case !d.known:
		out = append(out, " This list has no such field.")
	case !d.ready:
		out = append(out, " counting"+lk.Ellipsis)
	case len(d.shown) == 0 && d.input.Value() != "":
		out = append(out, " No value contains "+clean(d.input.Value())+".")
	case len(d.shown) == 0:
		out = append(out, " There are no rows to choose from.")
	}
	d.move(0)
	for i := d.off; i < len(d.shown) && len(out) < h; i++ {
		v := d.all[d.shown[i]]
		box := "[ ] "
		if v.on {
			box = "[x] "
		}
		n := grouped(v.rows)
		line := box + lk.Fit(v.shown(), max(w-8-len(n), 1)) + " " + lk.Dim.On(n) + " "
		if i == d.cur {
			line = lk.Row(lk.Cursor+" "+line, true)
		} else {
			line = "  " + line
		}
		out = append(out, line)
	}
	return lk.Lines(out, w, h)
}

func (d *facet) move(by int) {
	d.cur = max(0, min(d.cur+by, len(d.shown)-1))
	d.off = max(0, min(d.off, d.cur, len(d.shown)-d.height), d.cur-d.height+1)
}

func (d *facet) toggle() tea.Cmd {
	if d.cur < len(d.shown) {
		v := &d.all[d.shown[d.cur]]
		v.on = !v.on
	}
	return nil
}

func (d *facet) touched() bool {
	for i, v := range d.all {
		if v.on != d.before[i] {
			return true
		}
	}
	return false
}

func (d *facet) keys() keys.Table {
	move := func(rows, pages int) func() tea.Cmd {
		return func() tea.Cmd { d.move(rows + pages*d.height); return nil }
	}
	return keys.Table{
		{ID: "tick", Keys: []string{" "}, Hint: "tick", Long: "Tick the value, or untick it", Run: d.toggle},
		{ID: "apply", Keys: []string{"enter"}, Hint: "apply", Long: "Apply; what was typed means the first value", Run: d.enter},
		{ID: "none", Keys: []string{"delete", "ctrl+x"}, Hint: "untick all", Long: "Untick all of them", Run: d.untick},
		{ID: "close", Keys: []string{"esc", "ctrl+c"}, Hint: "leave", Long: "Close and change nothing", Run: d.close},
		{ID: "up", Keys: []string{"up", "ctrl+p"}, Long: "One line up", Run: move(-1, 0)},
		{ID: "down", Keys: []string{"down", "ctrl+n"}, Long: "One line down", Run: move(1, 0)},
		{ID: "page-up", Keys: []string{"pgup"}, Long: "A page up", Run: move(0, -1)},
		{ID: "page-down", Keys: []string{"pgdown"}, Long: "A page down", Run: move(0, 1)},
	}
}

func (d *facet) close() tea.Cmd {
	d.cancel()
	return d.app.drop(d)
}

// enter applies, unless nothing was counted yet.
func (d *facet) enter() tea.Cmd {
	if !d.ready {
		return nil
	}
	if d.input.Value() != "" && !d.touched() {
		d.toggle() // who typed a value and pressed Enter means that one
	}
	d.app.drop(d)
	return d.apply()
}

func (d *facet) untick() tea.Cmd {
	for i := range d.all {
		d.all[i].on = false
	}
	return nil
}

func (d *facet) update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case tea.MouseMsg:
		scrollWheel(d.move, msg)
		if i := d.off + msg.Y - 1; leftPress(msg) && msg.Y >= 1 && msg.X >= 0 && i < len(d.shown) {
			d.cur = i
			d.toggle()
		}
	case tea.KeyMsg:
		d.typeKey(msg)
	}
	return nil
}

// typeKey narrows the list. Keys typed fast are taken apart: a space among them
// toggles.
func (d *facet) typeKey(msg tea.KeyMsg) {
	if msg.Type != tea.KeyRunes || msg.Paste {
		if d.input.Update(msg) {
			d.narrow()
		}
		return
	}
	for _, r := range msg.Runes {
		if r == ' ' {
			d.toggle()
		} else if d.input.Update(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune{r}}) {
			d.narrow()
		}
	}
}

func (d *facet) typing() bool { return true }

func (d *facet) hints() []keys.Hint {
	return append(d.keys().Hints(), keys.Hint{Key: "a-z", Does: "narrow"})
}
