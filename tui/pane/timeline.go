package pane

import (
	"hash/maphash"
	"slices"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry"
	"goblin/registry/query"
	"goblin/tui/list"
	"goblin/tui/theme"
	"goblin/tui/timeline"
)

// timelineTab shows the rows of Traffic on a time axis. Both tabs share their rows, their
// filter and the selected request.
type timelineTab struct {
	*records[*trafficRow]
	logs     *Logs
	chart    *timeline.Chart
	by       timeline.Grouping
	shown    uint64 // version of the laid out rows, plus one
	shownBy  timeline.Grouping
	filter   string // of the laid out rows
	shownAt  time.Time
	frozenAt time.Time // while paused
}

func newTimelineTab(p *Logs) *timelineTab {
	t := &timelineTab{records: p.Traffic, logs: p, chart: timeline.NewChart()}
	t.chart.Describe = t.describe
	t.chart.ProgressText = func(r *registry.TrafficRecord) string { return timeline.ProgressText(t.full(r).Request) }
	t.chart.Highlight = func(text string, style theme.Style) string {
		return t.Table.Highlight(p.app.Theme, text, style)
	}
	return t
}

// IsTraffic reports whether the open tab shows requests.
func (p *Logs) IsTraffic() bool { return p.Open == TabTraffic || p.Open == TabTimeline }

// layOutPause is the shortest time after which new records lay out more than manyRows.
const manyRows, layOutPause = 1000, 250 * time.Millisecond

// layOut lays the rows of Traffic out again if they changed.
func (t *timelineTab) layOut() {
	version, now := t.Table.Version()+1, t.logs.app.Now()
	alike := t.by == t.shownBy && t.Table.FilterText == t.filter
	if alike && version == t.shown {
		return
	}
	if wait := now.Sub(t.shownAt); alike && len(t.Table.Matches) > manyRows && wait >= 0 && wait < layOutPause {
		return // a later frame does it
	}
	t.shown, t.shownBy, t.filter, t.shownAt = version, t.by, t.Table.FilterText, now
	calls := make([]timeline.Call, len(t.Table.Matches))
	for i, at := range t.Table.Matches {
		r := t.Table.Rows[at]
		name := r.name
		if r.Original != "" {
			name = r.Original
		} else if r.inFlightID != "" { // the server's own name is not known yet
			name = strings.TrimPrefix(name, r.Server+"_")
		}
		calls[i] = timeline.Call{Record: &r.TrafficRecord, Key: r.key, Client: r.client, Name: name, Source: r}
	}
	var progress []*registry.TrafficRecord
	for _, r := range t.Held {
		if timeline.IsProgress(&r.TrafficRecord) {
			progress = append(progress, &r.TrafficRecord)
		}
	}
	t.chart.Show(timeline.New(calls, progress, t.by, t.sameArguments))
	t.selectRow()
}

// selectRow selects the chart's call in Traffic.
func (t *timelineTab) selectRow() {
	t.Table.Following = t.chart.Live()
	if key := t.chart.Key(); key != "" {
		t.Table.Find(key)
	}
}

// open shows the request that is selected in Traffic.
func (t *timelineTab) open() {
	following := t.Table.Following
	r, ok := t.Table.Selected()
	t.layOut()
	if t.chart.Follow(following); ok && !following {
		t.chart.Find(r.key)
	}
	t.selectRow()
}

func (t *timelineTab) Following() bool { return t.chart.Live() }

func (t *timelineTab) Follow(on bool) tea.Cmd {
	t.chart.Follow(on)
	t.selectRow()
	return nil
}

func (t *timelineTab) CursorMoved() {
	t.chart.CursorMoved()
	t.selectRow()
}

func (t *timelineTab) Click(_, y int) (bool, tea.Cmd) { return t.chart.Click(y), nil }

func (t *timelineTab) Lines(lk *theme.Theme, w, h int, focused bool) []string {
	t.layOut()
	now := t.logs.app.Now()
	if t.logs.Paused {
		now = t.frozenAt
	}
	return t.chart.Lines(lk, w, h, focused, now)
}

func (t *timelineTab) Rows() list.Rows { return timelineRows{tabRows[*trafficRow]{t.Table}, t} }

// timelineRows moves the cursor of the chart. Sorting changes the groups.
type timelineRows struct {
	tabRows[*trafficRow]
	t *timelineTab
}

func (r timelineRows) Move(by int)   { r.t.layOut(); r.t.chart.Move(by) }
func (r timelineRows) Scroll(by int) { r.t.layOut(); r.t.chart.Scroll(by) }
func (r timelineRows) PageSize() int { return r.t.chart.PageSize() }
func (r timelineRows) Position() int { return r.t.chart.Position() + 1 }

// MoveTo moves to the first or the last row. Other numbers count the chart's rows.
func (r timelineRows) MoveTo(row int) {
	r.t.layOut()
	if row > 0 && row >= r.Len()-1 {
		row = r.t.chart.Rows() - 1
	}
	r.t.chart.MoveTo(row)
}

func (r timelineRows) Find(key string) bool {
	r.t.layOut()
	return r.Table.Find(key) && r.t.chart.Find(key)
}

func (r timelineRows) ClearMarks() bool { return r.t.chart.Unmark() || r.Table.ClearMarks() }

func (r timelineRows) SortNext() tea.Cmd {
	names := timeline.Groupings()
	return r.Sort(names[(int(r.t.by)+1)%len(names)])
}

func (r timelineRows) SortNextColumn() tea.Cmd { return r.SortNext() }

func (r timelineRows) Sort(name string) tea.Cmd {
	if i := slices.Index(timeline.Groupings(), name); i >= 0 {
		r.t.by = timeline.Grouping(i)
		r.t.layOut()
	}
	return nil
}

func (r timelineRows) OrderNames() []string { return timeline.Groupings() }

func (r timelineRows) OrderText(*theme.Theme) string { return "by " + r.t.by.String() }

func (t *timelineTab) describe(c *timeline.Call) {
	r := c.Source.(*trafficRow)
	t.logs.describe(r)
	c.Arguments, c.Failure = r.arguments, r.failure
	if text := t.logs.app.StopText(r.Number); text != "" {
		c.Arguments = strings.TrimSpace("[" + text + "] " + c.Arguments)
	}
	if t.logs.app.IsMarked(&r.TrafficRecord) {
		c.Arguments = strings.TrimSpace("[A] " + c.Arguments)
	}
}

// full returns a record with its bodies, unless they were evicted.
func (t *timelineTab) full(r *registry.TrafficRecord) registry.TrafficRecord {
	if rec, ok := t.logs.app.Reg.Traffic().Record(r.Seq); ok {
		return rec
	}
	return *r
}

func (t *timelineTab) sameArguments(a, b *timeline.Call) bool {
	return t.hash(a.Source.(*trafficRow)) == t.hash(b.Source.(*trafficRow))
}

// hash returns a hash of the arguments. Evicted arguments equal no others.
func (t *timelineTab) hash(r *trafficRow) uint64 {
	if r.argumentHash == 0 {
		rec := t.full(&r.TrafficRecord)
		args, ok := callArguments(&rec)
		if !ok {
			args = []byte(r.key)
		}
		r.argumentHash = maphash.Bytes(argumentSeed, args) | 1
	}
	return r.argumentHash
}

var argumentSeed = maphash.MakeSeed()

// onTimeline returns an action of the time line, or the usual one elsewhere.
func (p *Logs) onTimeline(do func(*timeline.Chart), otherwise func() tea.Cmd) func() tea.Cmd {
	return func() tea.Cmd {
		if p.Open != TabTimeline || p.app.Inside {
			return otherwise()
		}
		p.timeline.layOut()
		do(p.timeline.chart)
		p.timeline.selectRow()
		return nil
	}
}

const (
	panPart  = 0.25 // of the axis, per key
	sideStep = 8    // cells by which long lines scroll
)

// moveDetail runs a function of the detail.
func (p *Logs) moveDetail(do func(*detail) tea.Cmd) func() tea.Cmd {
	return func() tea.Cmd { return do(p.app.Details[PaneLogs]) }
}

// needsWidth reports whether the list needs the whole width: beside a detail, requests
// have no room for their arguments.
func (p *Logs) needsWidth() bool { return p.IsTraffic() }

func (p *Logs) whyNoTimeline() string {
	if p.Open != TabTimeline {
		return "only the time line has an axis; :timeline shows it"
	}
	return ""
}

// selectRange marks one end of a range, then filters all tabs by it.
func (p *Logs) selectRange() tea.Cmd {
	p.timeline.layOut()
	if p.timeline.chart.Selected() == nil {
		return p.app.Complain("no request selected")
	}
	from, to, done := p.timeline.chart.Mark()
	if !done {
		return p.app.Say("Range starts here; select its end and press %s again", p.app.KeyOf("range"))
	}
	p.rangeTerm = timeline.RangeText(from, to, p.app.Now())
	var cmds []tea.Cmd
	for tab := range LogTabs {
		if tab != p.Open {
			rows := p.TabList(tab).Rows()
			typed, _ := rows.FilterQuery()
			cmds = append(cmds, rows.Filter(query.Set(typed, rangeField, []string{p.rangeTerm})))
		}
	}
	typed, _ := p.Rows().FilterQuery()
	cmds = append(cmds, p.app.SetFilter(query.Set(typed, rangeField, []string{p.rangeTerm})))
	p.timeline.chart.ShowRange(from, to)
	p.app.Say("All tabs show only %s", p.rangeTerm)
	return tea.Batch(cmds...)
}

const rangeField = "at"

// dropRange removes the selected range from the other tabs after it was removed from the
// time line.
func (p *Logs) dropRange() tea.Cmd {
	typed, _ := p.Traffic.Table.FilterQuery()
	if p.rangeTerm == "" || slices.Contains(query.Values(typed, rangeField), p.rangeTerm) {
		return nil
	}
	var cmds []tea.Cmd
	for _, f := range p.Logs {
		if f == nil {
			continue
		}
		rows := f.Rows()
		typed, _ := rows.FilterQuery()
		if slices.Contains(query.Values(typed, rangeField), p.rangeTerm) {
			cmds = append(cmds, rows.Filter(query.Set(typed, rangeField, nil)))
		}
	}
	p.rangeTerm = ""
	p.app.Say("The range is removed from all tabs")
	return tea.Batch(cmds...)
}
