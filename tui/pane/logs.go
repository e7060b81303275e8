package pane

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry"
	"goblin/registry/keymap"
	"goblin/registry/termtext"
	"goblin/tui/dialog"
	"goblin/tui/keys"
	"goblin/tui/list"
	"goblin/tui/theme"
	"goblin/tui/timeline"
	"goblin/tui/uicontext"
)

// The tabs of the Logs pane.
const (
	TabEvents = iota
	TabTraffic
	TabStderr
	TabGoblin
	TabTimeline
	LogTabs
)

var tabNames = [LogTabs]string{"Events", "Traffic", "Server stderr", "Goblin", "Time line"}

// Logs is the pane of events, traffic and logs: five tabs over the registry's two
// journals. While open and not paused, it reads new records.
type Logs struct {
	app      *Layout
	Paused   bool
	Open     int
	minLevel slog.Level

	Logs      [LogTabs]*records[*logRow] // nil for traffic and the time line
	Traffic   *records[*trafficRow]
	timeline  *timelineTab
	rangeTerm string // selected in the time line, or ""

	Log, traffic  reader  // positions in the journals
	missedRecords uint64  // dropped before they were read
	firstNumber   uint64  // of the log, when the UI started
	heldTab       int     // list that follows again when the detail loses the focus, plus one
	isFlooded     bool    // too many records to build a detail for each
	last          Subject // shown during a flood
	lastAt        time.Time
	lastOf        int

	inFlight      inFlight
	trafficFilter int             // showRequests and so on
	screens       map[string]bool // sessions that are UIs; replaced, never changed
	tabEnds       Tabs            // on their line
	resolved      resolution
	related       relatedRequests
}

type reader struct {
	stats      registry.JournalStats
	Read       uint64 // last number that was read
	pausedAt   uint64 // last number to show while paused
	seenNumber uint64 // when the tab was visible
}

func (p *Logs) reader() *reader {
	if p.IsTraffic() {
		return &p.traffic
	}
	return &p.Log
}

func newLogs(a *Layout) *Logs {
	p := &Logs{app: a, minLevel: slog.LevelDebug, inFlight: inFlight{ended: map[requestKey]uint64{}}}
	for _, tab := range []int{TabEvents, TabStderr, TabGoblin} {
		p.Logs[tab] = newLogRecords(a, tab)
	}
	p.Traffic = p.newTraffic()
	p.timeline = newTimelineTab(p)
	p.applyTrafficFilter()
	p.stats()
	p.firstNumber = p.Log.stats.Next
	p.Log.seenNumber, p.traffic.seenNumber = p.firstNumber-1, p.traffic.stats.Next-1
	return p
}

// Logs returns the pane of logs.
func (a *Layout) Logs() *Logs { return a.Panes[PaneLogs].(*Logs) }

func (p *Logs) stats() {
	p.Log.stats, p.traffic.stats = p.app.Reg.Logs().Stats(), p.app.Reg.Traffic().Stats()
}

func (p *Logs) list() tabList { return p.TabList(p.Open) }

// TabList returns a tab.
func (p *Logs) TabList(tab int) tabList {
	switch tab {
	case TabTraffic:
		return p.Traffic
	case TabTimeline:
		return p.timeline
	}
	return p.Logs[tab]
}

func (p *Logs) Place() keymap.Place       { return keymap.InLogs }
func (p *Logs) Watches() registry.Changes { return registry.Logs | registry.Traffic }
func (p *Logs) Rows() list.Rows           { return p.list().Rows() }
func (p *Logs) Wheel(_, _, by int)        { p.Rows().Scroll(by) }

// CursorMoved stops or continues following.
func (p *Logs) CursorMoved() {
	p.heldTab = 0
	p.list().CursorMoved()
}

// Tab returns the name and the number of new log records since the pane was open.
// Requests never stop, so they are not counted.
func (p *Logs) Tab() (name, count string) {
	last := p.Log.stats.Next - 1
	if n := int(last - min(p.Log.seenNumber, last)); n > 0 && p.app.Open != PaneLogs {
		count = p.app.Theme.Delta + uicontext.FormatCount(n)
	}
	return "Logs", count
}

func (p *Logs) Refresh(registry.Changes) tea.Cmd {
	p.stats()
	if p.app.Open != PaneLogs {
		return nil
	}
	if p.Paused {
		return p.list().Publish()
	}
	return p.read(true)
}

// read reads up to the journals' end if on is set, otherwise up to where the view was
// paused.
func (p *Logs) read(on bool) tea.Cmd {
	if on {
		p.Log.pausedAt, p.traffic.pausedAt = p.Log.stats.Next-1, p.traffic.stats.Next-1
	}
	before := p.list().Count() + p.list().Trimmed()
	p.holdRow()
	p.readLog(p.Log.pausedAt)
	p.Log.seenNumber = p.Log.pausedAt
	if p.IsTraffic() {
		p.applyTrafficFilter()
		p.readTraffic(p.traffic.pausedAt)
		if on {
			p.showInFlight()
		}
		p.traffic.seenNumber = p.traffic.pausedAt
	}
	p.isFlooded = p.list().Count()+p.list().Trimmed()-before >= floodSize
	p.list().ClearUnread()
	return p.list().Publish()
}

// holdRow stops following while the detail has the focus, so that its text stays.
func (p *Logs) holdRow() {
	switch {
	case p.app.Inside && p.list().Following():
		p.list().Follow(false)
		p.heldTab = p.Open + 1
	case !p.app.Inside && p.heldTab == p.Open+1:
		p.list().Follow(true)
	}
	if !p.app.Inside {
		p.heldTab = 0
	}
}

// Choose opens a tab.
func (p *Logs) Choose(tab int) tea.Cmd {
	p.Open = (tab + LogTabs) % LogTabs
	p.app.Inside = false
	p.stats()
	cmd := tea.Batch(p.dropRange(), p.read(!p.Paused))
	if p.Open == TabTimeline {
		p.timeline.open()
	}
	return cmd
}

func (p *Logs) pendingCount() int {
	r := p.reader()
	return int(r.stats.Next - 1 - r.pausedAt)
}

func (p *Logs) droppedCount() int {
	if !p.IsTraffic() {
		return p.list().Trimmed() + int(p.missedRecords)
	}
	held := 0
	for _, r := range p.Traffic.Held {
		held += max(r.Count, 1)
	}
	if held == 0 {
		return int(p.traffic.stats.Dropped)
	}
	return max(int(p.traffic.Read)-held, 0)
}

func (p *Logs) Heading() (title, right string) {
	lk, r := p.app.Theme, p.Rows()
	title = lk.Title.On(tabNames[p.Open]) + " " + dialog.RowCount(r)
	var parts []string
	if p.Paused {
		text := "paused"
		if n := p.pendingCount(); n > 0 {
			text += ", " + uicontext.FormatCount(n) + " new"
		}
		parts = append(parts, text)
	}
	if n := p.droppedCount(); n > 0 {
		parts = append(parts, uicontext.FormatCount(n)+" older dropped")
	}
	if !p.IsTraffic() && p.minLevel > slog.LevelDebug {
		parts = append(parts, levelName(p.minLevel)+" and above")
	}
	if !p.IsTraffic() && !p.list().Following() && r.Len() > 0 {
		parts = append(parts, fmt.Sprintf("line %d of %d", r.Cursor()+1, r.Len()))
	}
	by := r.OrderText(lk)
	if by != "" {
		parts = append(parts, by)
	}
	if span := p.timeline.chart.SpanText(); p.Open == TabTimeline && span != "" {
		parts = append(parts, span)
	}
	if (by == "" || p.Open == TabTimeline) && p.list().Following() && !p.Paused {
		parts = append(parts, "following")
	}
	return title, strings.Join(parts, ", ")
}

func (p *Logs) tabsLine(lk *theme.Theme, w int) string {
	line := ""
	for _, detail := range []int{2, 1, 0, -1} { // counts and news, news, names, short names
		if line = p.tabsOf(lk, detail); theme.Width(strings.TrimRight(line, " ")) <= w {
			break
		}
	}
	return lk.Fit(line, w)
}

func (p *Logs) tabsOf(lk *theme.Theme, detail int) string {
	texts := make([]string, len(tabNames))
	for i, name := range tabNames {
		text := name
		count, news := p.TabList(i).Count(), p.TabList(i).Unread()
		switch i {
		case TabTimeline: // as many as in Traffic
			count, news = 0, 0
		case TabTraffic:
			count, _ = p.app.Reg.Traffic().Len()
			news = int(p.traffic.stats.Next - 1 - p.traffic.seenNumber)
		}
		if detail < 0 && i != p.Open {
			text = name[:4]
		}
		news = min(news, count) // equal records share a row
		if detail >= 2 && i != TabTimeline {
			text += " " + uicontext.FormatCount(count)
		}
		if detail >= 1 && news > 0 && i != p.Open {
			text += " " + lk.Delta + uicontext.FormatCount(news)
		}
		texts[i] = text
	}
	var line string
	line, p.tabEnds = DrawTabs(lk, texts, p.Open)
	return line
}

func (p *Logs) Lines(lk *theme.Theme, w, h int, focused bool) []string {
	if h < 1 {
		return nil
	}
	if text := p.foldedLine(); p.Open == TabTraffic && text != "" && h > 4 {
		lines := append([]string{p.tabsLine(lk, w)}, p.list().Lines(lk, w, h-2, focused)...)
		return append(lines, lk.Fit(lk.Sides(" "+lk.Dim.On("+ "+text), lk.Key.On(p.app.KeyOf("shown"))+lk.Dim.On(" "+p.trafficFilterHint()+" "), w), w))
	}
	return append([]string{p.tabsLine(lk, w)}, p.list().Lines(lk, w, h-1, focused)...)
}

func (p *Logs) Click(x, y int) (bool, tea.Cmd) {
	if y > 0 {
		return p.list().Click(x, y-1)
	}
	if i := p.tabEnds.At(x); i >= 0 && i != p.Open {
		return false, p.Choose(i)
	}
	return false, nil
}

func (p *Logs) Empty() []string {
	if !p.IsTraffic() && p.minLevel > slog.LevelDebug && p.list().Count() > 0 {
		return []string{"No records at level " + levelName(p.minLevel) + " or above.", "", "L changes the level."}
	}
	if hidden := p.foldedLine(); p.IsTraffic() && hidden != "" {
		return []string{"Hidden: " + hidden + ".", "", p.app.KeyOf("shown") + " changes the filter."}
	}
	switch {
	case p.app.ReadOnly == "":
	case p.IsTraffic():
		return []string{"No requests in this recording."}
	case p.Open == TabStderr:
		return []string{"Recordings contain no output of servers."}
	case p.Open == TabGoblin:
		return []string{"No problems in this recording."}
	}
	switch p.Open {
	case TabTraffic:
		return []string{"No requests yet.", "", "Requests between clients and servers appear here."}
	case TabTimeline:
		return []string{"No requests yet.", "", "Requests appear here as bars: how long they take and what they wait for."}
	case TabStderr:
		return []string{"No server output yet."}
	case TabGoblin:
		return []string{"No log records of Goblin yet."}
	}
	return []string{"No events yet."}
}

func (p *Logs) Handlers() map[string]keys.Handler {
	none := keys.DisabledUnless("no record selected", func() bool { return p.Rows().Len() > 0 })
	key, next := p.app.KeyOf, p.app.KeyOf("tab-right")
	hint := func(text string) func() string { return func() string { return text } }
	return map[string]keys.Handler{
		"pager": {WhyDisabled: none}, "editor": {WhyDisabled: none}, "save": {WhyDisabled: none},
		"open":         {WhyDisabled: none, Run: p.openRecord},
		"copy":         {WhyDisabled: none, Run: p.copyRecord},
		"copy-content": {WhyDisabled: none, Run: p.copyLines},
		"inspect":      {Run: p.inspectRecord},
		"method-facet": {WhyDisabled: keys.DisabledUnless("only requests have methods; "+next+" goes to Traffic", p.IsTraffic)},
		"level":        {WhyDisabled: keys.DisabledUnless("requests have no level; "+key("filter")+"err:yes shows failed ones", func() bool { return !p.IsTraffic() }), Run: p.nextLevel},
		"subscribe":    {WhyDisabled: keys.AlwaysDisabled("records cannot be subscribed to; " + key("inspect") + " goes to a request's item")},
		"call":         {WhyDisabled: p.whyNotRecall, Run: p.recall},
		"reload":       {WhyDisabled: keys.AlwaysDisabled("records arrive automatically")},
		"shown":        {WhyDisabled: keys.DisabledUnless("only traffic has notifications; "+next+" goes there", p.IsTraffic), Run: p.nextTrafficFilter, Label: p.trafficFilterHint},
		"tab-left":     {Run: func() tea.Cmd { return p.stepTab(-1) }},
		"tab-right":    {Run: func() tea.Cmd { return p.stepTab(1) }},
		"follow":       {Run: p.toggleFollow},
		"pause":        {Run: p.pause, Label: p.pauseHint},
		"compare":      p.compareHandler(),

		"unfold":        {Run: p.onTimeline(func(c *timeline.Chart) { c.Zoom(true) }, p.moveDetail(func(d *detail) tea.Cmd { return d.Fold(1) })), Label: hint("zoom")},
		"fold":          {Run: p.onTimeline(func(c *timeline.Chart) { c.Zoom(false) }, p.moveDetail(func(d *detail) tea.Cmd { return d.Fold(-1) }))},
		"sideways":      {Run: p.onTimeline(func(c *timeline.Chart) { c.Pan(panPart) }, p.moveDetail(func(d *detail) tea.Cmd { d.View.Right(sideStep); return nil }))},
		"sideways-back": {Run: p.onTimeline(func(c *timeline.Chart) { c.Pan(-panPart) }, p.moveDetail(func(d *detail) tea.Cmd { d.View.Right(-sideStep); return nil })), Label: hint("pan")},
		"fit":           {WhyDisabled: p.whyNoTimeline, Run: p.onTimeline((*timeline.Chart).Fit, func() tea.Cmd { return nil })},
		"range":         {WhyDisabled: p.whyNoTimeline, Run: p.selectRange},
	}
}

// stepTab opens another tab of the detail if that has the focus, otherwise of Logs.
func (p *Logs) stepTab(by int) tea.Cmd {
	if d := p.app.Details[PaneLogs]; p.app.Inside && d.openTab() >= 0 {
		return d.switchTab(d.openTab() + by)
	}
	return p.Choose(p.Open + by)
}

func (p *Logs) toggleFollow() tea.Cmd {
	on := !p.list().Following()
	p.app.Say("Following new records")
	if !on {
		p.app.Say("Staying at this row; f or G follows again")
	}
	return p.list().Follow(on)
}

func (p *Logs) nextLevel() tea.Cmd {
	next := (slices.Index(minLevels[:], p.minLevel) + 1) % len(minLevels)
	least := minLevels[next]
	p.minLevel = least
	for _, f := range p.Logs {
		if f != nil {
			f.filter, f.changed = nil, true
			if next > 0 {
				f.filter = func(r *logRow) bool { return r.Level >= least }
			}
		}
	}
	text := "Showing all levels"
	if next > 0 {
		text = "Showing " + levelName(p.minLevel) + " and above"
	}
	p.app.Say("%s", text)
	return p.list().Publish()
}

// pause pauses the view, or continues and reports dropped records.
func (p *Logs) marksRequest() bool { return p.selectedInFlight() != nil && p.Open != TabTimeline }

func (p *Logs) pauseHint() string {
	switch {
	case p.marksRequest():
		return "mark"
	case p.Paused:
		return "continue"
	}
	return "pause"
}

func (p *Logs) pause() tea.Cmd {
	if p.marksRequest() {
		p.app.Say("%d marked; %s cancels them", p.Traffic.Table.ToggleMark(), p.app.KeyOf("cancel"))
		return nil
	}
	p.Paused = !p.Paused
	a := p.app
	if p.Paused {
		p.timeline.frozenAt = a.Now()
		return a.Say("Paused; requests continue")
	}
	p.stats()
	a.Say("Continued")
	if r := p.reader(); r.stats.First > r.Read+1 {
		a.Complain("Continued; %s dropped meanwhile", termtext.Count(int(r.stats.First-r.Read-1), "record"))
	}
	return p.Refresh(registry.AllChanges)
}

func (p *Logs) openRecord() tea.Cmd {
	return p.app.focusDetail(true)
}

func (p *Logs) copyRecord() tea.Cmd {
	if p.IsTraffic() {
		var seqs []uint64
		for _, r := range p.Traffic.Table.Marked() {
			seqs = append(seqs, r.Seq)
		}
		return p.app.copyExchange(seqs...)
	}
	r, _ := p.Logs[p.Open].Table.Selected()
	return p.app.Copy(uicontext.SanitizeLine(r.Text), "the line")
}

func (p *Logs) copyLines() tea.Cmd {
	if p.IsTraffic() {
		r, _ := p.Traffic.Table.Selected()
		return p.app.copyAs(r.Seq)
	}
	return p.app.Copy(string(p.ShownContent().Data), "the lines")
}

func (p *Logs) inspectRecord() tea.Cmd {
	a := p.app
	if p.IsTraffic() {
		if r, ok := p.Traffic.Table.Selected(); ok {
			return a.GoToItem(&r.TrafficRecord)
		}
		return a.Complain("no record selected")
	}
	switch r, ok := p.Logs[p.Open].Table.Selected(); {
	case !ok:
		return a.Inspect(uicontext.Item{})
	case r.Server == "":
		return a.Complain("this record has no server")
	default:
		return a.GoTo(PaneServers, r.Server)
	}
}

// ShownContent returns the content for pagers, editors and files: all stderr lines of the
// server, the filtered lines of other logs, or the exchange.
func (p *Logs) ShownContent() uicontext.CachedContent {
	if p.IsTraffic() {
		return p.shownTraffic()
	}
	f := p.Logs[p.Open]
	r, ok := f.Table.Selected()
	if !ok {
		return uicontext.CachedContent{}
	}
	name := strings.ToLower(tabNames[p.Open])
	var b strings.Builder
	if p.Open == TabStderr {
		name = uicontext.SanitizeLine(r.Server) + "-stderr"
		for _, line := range f.Held {
			if line.Server == r.Server {
				b.WriteString(line.plain() + "\n")
			}
		}
	} else {
		for _, i := range f.Table.Matches {
			b.WriteString(f.Table.Rows[i].plain() + "\n")
		}
	}
	return uicontext.CachedContent{Name: name + ".log", Data: []byte(b.String())}
}

// Subject returns the selected record. While a flood of records is followed, it changes
// at most once per floodPause.
func (p *Logs) Subject() Subject {
	now := p.app.Now()
	if p.isFlooded && p.list().Following() && p.lastOf == p.Open && p.last.Blocks != nil && now.Sub(p.lastAt) < floodPause {
		return p.last
	}
	p.last, p.lastAt, p.lastOf = Subject{}, now, p.Open
	if p.IsTraffic() {
		p.last = p.trafficSubject()
	} else if r, ok := p.Logs[p.Open].Table.Selected(); ok {
		p.last = p.logSubject(r)
	}
	return p.last
}

func (p *Logs) Item() uicontext.Item {
	if !p.IsTraffic() {
		return uicontext.Item{}
	}
	r, ok := p.Traffic.Table.Selected()
	if !ok {
		return uicontext.Item{}
	}
	return p.itemOf(&r.TrafficRecord)
}

// Tabs holds the ends of tabs on their line, for clicks.
type Tabs []int

// DrawTabs draws tabs side by side, the open one in brackets.
func DrawTabs(lk *theme.Theme, texts []string, open int) (line string, ends Tabs) {
	end := 0
	for i, text := range texts {
		if i == open {
			line += lk.Accent.On("[" + text + "]")
		} else {
			line += " " + text + " "
		}
		end += theme.Width(text) + 2
		ends = append(ends, end)
	}
	return line, ends
}

// At returns the tab at a cell of the line, or -1.
func (t Tabs) At(x int) int {
	if x < 0 {
		return -1
	}
	return slices.IndexFunc(t, func(end int) bool { return x < end })
}
