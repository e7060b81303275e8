package dialog

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry/query"
	"goblin/tui/keys"
	"goblin/tui/list"
	"goblin/tui/textfield"
	"goblin/tui/theme"
	"goblin/tui/uicontext"
)

// FilterList is a dialog that selects values of a field from a list with counts. It
// writes the selection into the filter bar as text.
type FilterList struct {
	uicontext.BaseDialog
	app      FilterListOptions
	field    list.Field
	hasField bool
	title    string
	All      []value
	matches  []int // indexes into All that match the input
	window   list.Window
	Input    textfield.Field
	counted  bool

	tickedBefore []bool // selection when the dialog opened
	cancel       context.CancelFunc
}

type value struct {
	Text   string
	Rows   int
	ticked bool
}

// maxValues is the maximum number of values listed.
const maxValues = 5000

// FilterListOptions connect a FilterList with the list that it filters.
type FilterListOptions struct {
	*uicontext.Context
	Rows      list.Rows
	SetFilter func(text string) tea.Cmd
}

// NewFilterList returns a dialog for a field of o.Rows.
func NewFilterList(o FilterListOptions, field, title string) *FilterList {
	d := &FilterList{app: o, title: title, Input: textfield.New(o.Theme), cancel: func() {}}
	d.field, d.hasField = query.FindTextField(o.Rows.FilterFields(), field)
	return d
}

// Begin counts the values, in a command if there are many rows.
func (d *FilterList) Begin() tea.Cmd {
	if !d.hasField {
		d.counted = true
		return nil
	}
	ctx, cancel := context.WithCancel(d.app.Ctx)
	d.cancel = cancel
	r := d.app.Rows
	n, heads := r.Total(), r.HeadRows()
	typed, _ := r.FilterQuery()
	f := d.field
	// Only rows that pass the other parts of the filter count.
	matches := r.Matcher(query.Set(typed, f.Name, nil))
	find := func() ([]value, error) {
		all, err := CountValues(ctx, f, heads, heads+n)
		if err == nil {
			err = recount(ctx, all, f, matches)
		}
		if err == nil {
			tickFiltered(ctx, all, f, typed)
		}
		return all, err
	}
	take := func(all []value, err error) tea.Cmd {
		cancel()
		if err == nil {
			d.setCounts(all)
		}
		return nil
	}
	if n <= list.MaxSyncRows {
		return take(find())
	}
	return func() tea.Msg {
		all, err := find()
		return keys.FuncMsg(func() tea.Cmd { return take(all, err) })
	}
}

func (d *FilterList) setCounts(all []value) {
	d.All, d.counted = all, true
	d.tickedBefore = make([]bool, len(all))
	for i, v := range all {
		d.tickedBefore[i] = v.ticked
	}
	d.match()
}

func recount(ctx context.Context, all []value, f list.Field, matches func(context.Context) ([]int32, error)) error {
	rows, err := matches(ctx)
	if err != nil {
		return err
	}
	counts := make(map[string]int, len(all))
	for _, i := range rows {
		counts[f.Text(int(i))]++
	}
	for i := range all {
		all[i].Rows = counts[all[i].Text]
	}
	slices.SortStableFunc(all, func(a, b value) int { return cmp.Compare(b.Rows, a.Rows) })
	return nil
}

// CountValues counts the values of a field in rows [from, to), the most frequent first.
func CountValues(ctx context.Context, f list.Field, from, to int) ([]value, error) {
	counts := map[string]int{}
	for i := from; i < to; i++ {
		if i%4096 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		counts[f.Text(i)]++
	}
	all := make([]value, 0, len(counts))
	for text, rows := range counts {
		all = append(all, value{Text: text, Rows: rows})
	}
	slices.SortFunc(all, func(a, b value) int {
		return cmp.Or(cmp.Compare(b.Rows, a.Rows), cmp.Compare(a.Text, b.Text))
	})
	return all[:min(len(all), maxValues)], nil
}

// filteredValues returns the values that a filter requires of a field, under any of its
// names.
func filteredValues(typed string, f list.Field) []string {
	values := query.Values(typed, f.Name)
	for _, alias := range f.Aliases {
		values = append(values, query.Values(typed, alias)...)
	}
	return values
}

func tickFiltered(ctx context.Context, all []value, f list.Field, typed string) {
	values := filteredValues(typed, f)
	if len(values) == 0 {
		return
	}
	own := list.Field{Name: f.Name, Kind: list.Text, Text: func(i int) string { return all[i].Text }}
	q := query.Parse(query.Set("", f.Name, values), []list.Field{own})
	index := query.NewIndex(len(all), func(int) string { return "" })
	found, _ := q.Match(ctx, index, time.Time{}) // discarded on cancellation
	if q.IsEmpty() {
		return
	}
	for _, i := range found {
		all[i].ticked = true
	}
}

// filterTerm returns the filter term that matches only this value.
func (d *FilterList) filterTerm(text string) string {
	if text == "" {
		return ""
	}
	low := strings.ToLower(text)
	exact := strings.HasPrefix(text, "=") || strings.Contains(text, "*")
	for _, v := range d.All {
		exact = exact || v.Text != text && strings.Contains(strings.ToLower(v.Text), low)
	}
	if exact {
		return "=" + text
	}
	return text
}

func (d *FilterList) apply() tea.Cmd {
	if !d.isChanged() {
		return nil
	}
	var values []string
	for _, v := range d.All {
		if v.ticked {
			values = append(values, d.filterTerm(v.Text))
		}
	}
	return d.app.SetFilter(query.SetField(d.typed(), d.field, values))
}

func (d *FilterList) typed() string {
	typed, _ := d.app.Rows.FilterQuery()
	return typed
}

func (d *FilterList) match() {
	words := strings.Fields(strings.ToLower(d.Input.Value()))
	d.matches = d.matches[:0]
	for i, v := range d.All {
		if uicontext.ContainsAll(strings.ToLower(v.label()), words) {
			d.matches = append(d.matches, i)
		}
	}
	d.window.Reset(len(d.matches))
}

func (v value) label() string {
	if v.Text == "" {
		return "(none)"
	}
	return uicontext.SanitizeLine(v.Text)
}

func (d *FilterList) Heading() string { return d.title }

func (d *FilterList) Size(w, h int) (int, int) {
	width := 40
	for _, v := range d.All[:min(len(d.All), 200)] {
		width = max(width, theme.Width(v.label())+20)
	}
	// The size stays the same while the user types.
	return min(w, width, 90), min(h, max(8, min(len(d.All), 20)+4))
}

func (d *FilterList) Lines(w, h int) []string {
	lk := d.app.Theme
	d.Input.Width = max(1, w-20)
	on := 0
	for _, v := range d.All {
		if v.ticked {
			on++
		}
	}
	left := " " + lk.Accent.On("/") + " " + d.Input.View()
	out := []string{lk.Sides(left, lk.Dim.On(uicontext.FormatCount(on)+" selected "), w)}
	switch {
	case !d.hasField:
		out = append(out, " This list doesn't have that field.")
	case !d.counted:
		out = append(out, " counting"+lk.Ellipsis)
	case len(d.matches) == 0 && d.Input.Value() != "":
		out = append(out, " No matching values.")
	case len(d.matches) == 0:
		out = append(out, " No values.")
	}
	rows := d.window.Lines(lk, h-1, func(i int) string {
		v := d.All[d.matches[i]]
		box := "[ ] "
		if v.ticked {
			box = "[x] "
		}
		n := uicontext.FormatCount(v.Rows)
		return box + lk.Fit(v.label(), max(w-8-len(n), 1)) + " " + lk.Dim.On(n) + " "
	})
	return lk.Lines(append(out, rows...), w, h)
}

func (d *FilterList) toggle() tea.Cmd {
	if i := d.window.Cursor(); i < len(d.matches) {
		v := &d.All[d.matches[i]]
		v.ticked = !v.ticked
	}
	return nil
}

func (d *FilterList) toggleAll() tea.Cmd {
	all := !slices.ContainsFunc(d.matches, func(i int) bool { return !d.All[i].ticked })
	for _, i := range d.matches {
		d.All[i].ticked = !all
	}
	return nil
}

func (d *FilterList) isChanged() bool {
	for i, v := range d.All {
		if v.ticked != d.tickedBefore[i] {
			return true
		}
	}
	return false
}

func (d *FilterList) Keys() keys.Table {
	return append(keys.Table{
		{ID: "values.tick", Hint: "select", Long: "Select or deselect the value", Run: d.toggle},
		{ID: "values.apply", Hint: "apply", Long: "Apply (typed text selects the first match)", Run: d.enter},
		{ID: "values.all", Hint: "select all", Long: "Select all listed values, or deselect them", Run: d.toggleAll},
		{ID: "values.none", Hint: "clear", Long: "Deselect all values", Run: d.untick},
		{ID: "values.close", Hint: "back", Long: "Close without changes", Run: d.close},
	}, keys.Scrolling("values", func() keys.Scroller { return list.Cursor{List: &d.window} }, "up", "down", "page-up", "page-down")...)
}

func (d *FilterList) close() tea.Cmd {
	d.cancel()
	return d.app.Drop(d)
}

func (d *FilterList) enter() tea.Cmd {
	if !d.counted {
		return nil
	}
	if d.Input.Value() != "" && !d.isChanged() {
		d.toggle() // a typed value and Enter select the first match
	}
	d.app.Drop(d)
	return d.apply()
}

func (d *FilterList) untick() tea.Cmd {
	for i := range d.All {
		d.All[i].ticked = false
	}
	return nil
}

func (d *FilterList) Update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case tea.MouseMsg:
		if d.window.Mouse(msg, 1) {
			d.toggle()
		}
	case tea.KeyMsg:
		d.typeKey(msg)
	}
	return nil
}

// Fast typing arrives as one message; spaces and stars in it select values.
func (d *FilterList) typeKey(msg tea.KeyMsg) {
	if msg.Type != tea.KeyRunes || msg.Paste {
		if d.Input.Update(msg) {
			d.match()
		}
		return
	}
	for _, r := range msg.Runes {
		if r == ' ' {
			d.toggle()
		} else if r == '*' {
			d.toggleAll()
		} else if d.Input.Update(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune{r}}) {
			d.match()
		}
	}
}

func (d *FilterList) Typing() bool { return true }

func (d *FilterList) Hints() []keys.Hint {
	return append(d.Keys().WithKeys(d.app.Actions).Hints(), keys.Hint{Key: "a-z", Label: "narrow"})
}
