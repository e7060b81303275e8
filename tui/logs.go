package tui

import (
	"log/slog"
	"strings"
	"time"

	"goblin/tui/list"
	"goblin/tui/work"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry"
	"goblin/tui/keys"
	"goblin/tui/look"
)

// The tabs of the Logs pane.
const (
	tabEvents = iota
	tabTraffic
	tabStderr
	tabGoblin
	logTabs
)

var tabNames = [logTabs]string{"Events", "Traffic", "Server stderr", "Goblin"}

// logs is the pane of what happens: four tabs over the registry's two
// journals. It reads them while it is open and not paused, each time only what
// is new.
type logs struct {
	app    *app
	paused bool
	open   int        // tab
	least  slog.Level // that is shown of the log

	logs    [logTabs]*records[*logRow] // without that of traffic
	traffic *records[*trafficRow]

	logStats, trafficStats registry.JournalStats
	logAt, trafficAt       uint64  // the last numbers that were read
	logEnd, trafficEnd     uint64  // where reading ended when the view was paused
	missed                 uint64  // of the log, gone before they were read
	began                  uint64  // number that the log's next record had when the screen began
	logSeen, trafficSeen   uint64  // last numbers when they were looked at
	flood                  bool    // so much comes that details are not worth making for each
	last                   subject // of the detail, while there is a flood
	lastAt                 time.Time
	lastOf                 int // tab

	spots []tab // where the tabs stand on their line
	found resolved
	near  nearby
}

func newLogs(a *app) *logs {
	p := &logs{app: a, least: slog.LevelDebug}
	for _, tab := range []int{tabEvents, tabStderr, tabGoblin} {
		p.logs[tab] = newLogRecords(a, p.logLine(tab))
	}
	p.traffic = newTrafficRecords(a, p.trafficLine)
	p.stats()
	p.began = p.logStats.Next
	p.logSeen, p.trafficSeen = p.logStats.Next-1, p.trafficStats.Next-1
	return p
}

func (a *app) logs() *logs { return a.panes[paneLogs].(*logs) }

func (p *logs) stats() {
	p.logStats, p.trafficStats = p.app.reg.Logs().Stats(), p.app.reg.Traffic().Stats()
}

// list is the open tab.
func (p *logs) list() tabList { return p.at(p.open) }

func (p *logs) at(tab int) tabList {
	if tab == tabTraffic {
		return p.traffic
	}
	return p.logs[tab]
}

func (p *logs) in() keys.Place            { return keys.InLogs }
func (p *logs) follows() registry.Changes { return registry.Logs | registry.Traffic }
func (p *logs) rows() list.Rows           { return p.list().rows() }
func (p *logs) wheel(_, by int)           { p.rows().Scroll(by) }
func (p *logs) moved()                    { p.list().moved() }

// tab counts what came into the log since the pane was open. Requests are not
// counted: they never end.
func (p *logs) tabNews() int {
	return int(p.logStats.Next - 1 - min(p.logSeen, p.logStats.Next-1))
}

func (p *logs) tab() (name, count string) {
	if n := p.tabNews(); n > 0 && p.app.open != paneLogs {
		count = p.app.look.Delta + grouped(n)
	}
	return "Logs", count
}

// refresh reads what is new, if somebody looks.
func (p *logs) refresh(registry.Changes) tea.Cmd {
	p.stats()
	if p.app.open != paneLogs {
		return nil
	}
	if p.paused {
		return p.list().publish()
	}
	p.logEnd, p.trafficEnd = p.logStats.Next-1, p.trafficStats.Next-1
	return p.read()
}

// read brings the open tab to where reading ends.
func (p *logs) read() tea.Cmd {
	before := p.list().count() + p.list().fewer()
	p.readLog(p.logEnd)
	p.logSeen = p.logEnd
	if p.open == tabTraffic {
		p.readTraffic(p.trafficEnd)
		p.trafficSeen = p.trafficEnd
	}
	p.flood = p.list().count()+p.list().fewer()-before >= floods
	p.list().chosen()
	return p.list().publish()
}

// choose opens a tab.
func (p *logs) choose(tab int) tea.Cmd {
	p.open = (tab + logTabs) % logTabs
	p.app.inside = false
	if !p.paused {
		p.stats()
		p.logEnd, p.trafficEnd = p.logStats.Next-1, p.trafficStats.Next-1
	}
	return p.read()
}

// waiting is how much came while the view was paused.
func (p *logs) waiting() int {
	if p.open == tabTraffic {
		return int(p.trafficStats.Next - 1 - p.trafficEnd)
	}
	return int(p.logStats.Next - 1 - p.logEnd)
}

// older is how many records that came before are not here any more.
func (p *logs) older() int {
	if p.open != tabTraffic {
		return p.list().fewer() + int(p.missed)
	}
	if len(p.traffic.held) == 0 {
		return int(p.trafficStats.Dropped)
	}
	return int(p.trafficAt) - len(p.traffic.held)
}

func (p *logs) heading() (title, right string) {
	lk, r := p.app.look, p.rows()
	title = lk.Title.On(tabNames[p.open]) + " " + grouped(r.Total())
	if typed, _ := r.Filtered(); typed != "" {
		title = lk.Title.On(tabNames[p.open]) + " " + grouped(r.Len()) + "/" + grouped(r.Total())
	}
	var parts []string
	if p.paused {
		text := "paused"
		if n := p.waiting(); n > 0 {
			text += ", " + grouped(n) + " more"
		}
		parts = append(parts, text)
	}
	if n := p.older(); n > 0 {
		parts = append(parts, grouped(n)+" older dropped")
	}
	if p.open != tabTraffic && p.least > slog.LevelDebug {
		parts = append(parts, levelName(p.least)+" and worse")
	}
	if by := r.Sorting(); by != "time" {
		parts = append(parts, "by "+by)
	} else if p.list().following() && !p.paused {
		parts = append(parts, "following")
	}
	return title, strings.Join(parts, ", ")
}

// tabsLine draws the tabs, and remembers where they stand.
func (p *logs) tabsLine(lk *look.Look, w int) string {
	for _, detail := range []int{2, 1, 0} { // counts and news, news, names
		line := p.tabsOf(lk, detail)
		if look.Width(line) <= w || detail == 0 {
			return lk.Fit(line, w)
		}
	}
	return look.Blank(w)
}

func (p *logs) tabsOf(lk *look.Look, detail int) string {
	var b strings.Builder
	p.spots = p.spots[:0]
	x := 0
	for i, name := range tabNames {
		text := name
		count, news := p.at(i).count(), p.at(i).unread()
		if i == tabTraffic {
			count = int(min(p.trafficStats.Next-1, mostTraffic))
			news = int(p.trafficStats.Next - 1 - p.trafficSeen)
		}
		if detail >= 2 {
			text += " " + grouped(count)
		}
		if detail >= 1 && news > 0 && i != p.open {
			text += " " + lk.Delta + grouped(news)
		}
		style := look.Style("")
		if i == p.open {
			text, style = "["+text+"]", lk.Accent
		} else {
			text = " " + text + " "
		}
		p.spots = append(p.spots, tab{x, look.Width(text)})
		x += look.Width(text)
		b.WriteString(style.On(text))
	}
	return b.String()
}

func (p *logs) lines(lk *look.Look, w, h int, focused bool) []string {
	if h < 1 {
		return nil
	}
	return append([]string{p.tabsLine(lk, w)}, p.list().lines(lk, w, h-1, focused)...)
}

// click on the first line chooses a tab; the app knows where on the line.
func (p *logs) click(y int) bool {
	if y > 0 {
		return p.list().click(y - 1)
	}
	g := p.app.geometry()
	x := p.app.lastClick.x - g.list.x - g.border
	for i, s := range p.spots {
		if x >= s.x && x < s.x+s.w && i != p.open {
			// A click cannot hand a command back; this one is short.
			for cmd := p.choose(i); cmd != nil; {
				d, ok := cmd().(work.Done)
				if !ok {
					break
				}
				cmd = d()
			}
			break
		}
	}
	return false
}

func (p *logs) empty() []string {
	if p.open != tabTraffic && p.least > slog.LevelDebug && p.list().count() > 0 {
		return []string{"Nothing is at level " + levelName(p.least) + " or worse.", "", "L changes the level."}
	}
	switch p.open {
	case tabTraffic:
		return []string{"No requests yet.", "", "What clients ask of servers comes here, and what servers ask of clients."}
	case tabStderr:
		return []string{"No server has printed or logged anything."}
	case tabGoblin:
		return []string{"Goblin itself has nothing to say."}
	}
	return []string{"Nothing has changed yet."}
}

func (p *logs) acts() map[string]keys.Act {
	return map[string]keys.Act{
		"pager": {Why: p.none}, "editor": {Why: p.none}, "save": {Why: p.none},
		"open":         {Why: p.none, Run: p.openRecord},
		"copy":         {Why: p.none, Run: p.copyRecord},
		"copy-content": {Why: p.none, Run: p.copyMore},
		"inspect":      {Run: p.inspectRecord},
		"method-facet": {Why: p.whyNoMethods},
		"level":        {Why: p.whyNoLevel, Run: p.nextLevel},
		"subscribe":    {Why: keys.Never("a record is no item; i goes to the item of a request")},
		"call":         {Why: keys.Never("a record is no item; i goes to the item of a request")},
		"reload":       {Why: keys.Never("records come by themselves")},
		"tab-left":     {Run: func() tea.Cmd { return p.choose(p.open - 1) }},
		"tab-right":    {Run: func() tea.Cmd { return p.choose(p.open + 1) }},
		"follow":       {Run: p.toggleFollow},
		"pause":        {Run: p.pause},
	}
}

func (p *logs) none() string {
	if p.rows().Len() == 0 {
		return "there is no record here"
	}
	return ""
}

func (p *logs) whyNoMethods() string {
	if p.open != tabTraffic {
		return "only requests have methods; ] goes to Traffic"
	}
	return ""
}

func (p *logs) whyNoLevel() string {
	if p.open == tabTraffic {
		return "requests have no level; /err:yes shows those that failed"
	}
	return ""
}

// toggleFollow follows the end, or stays where the cursor is.
func (p *logs) toggleFollow() tea.Cmd {
	on := !p.list().following()
	p.app.say("Following the end")
	if !on {
		p.app.say("Staying here; f or G follows again")
	}
	return p.list().follow(on)
}

func (p *logs) nextLevel() tea.Cmd {
	next := 0
	for i, l := range levels {
		if l == p.least {
			next = (i + 1) % len(levels)
		}
	}
	least := levels[next]
	p.least = least
	for _, f := range p.logs {
		if f != nil {
			f.keep, f.fresh = nil, true
			if next > 0 {
				f.keep = func(r *logRow) bool { return r.Level >= least }
			}
		}
	}
	text := "Showing every level"
	if next > 0 {
		text = "Showing " + levelName(p.least) + " and worse"
	}
	p.app.say("%s", text)
	return p.list().publish()
}

// pause stops the view, or lets it go on and says what it cannot show any
// more.
func (p *logs) pause() tea.Cmd {
	p.paused = !p.paused
	a := p.app
	if p.paused {
		return a.say("Paused; the gateway goes on")
	}
	p.stats()
	var lost uint64
	if first := p.logStats.First; p.open != tabTraffic && first > p.logAt+1 {
		lost = first - p.logAt - 1
	}
	if first := p.trafficStats.First; p.open == tabTraffic && first > p.trafficAt+1 {
		lost = first - p.trafficAt - 1
	}
	a.say("Going on")
	if lost > 0 {
		a.complain("Going on; %s were dropped meanwhile", count(int(lost), "record"))
	}
	return p.refresh(registry.AllChanges)
}

// openRecord shows an exchange, of the log the detail.
func (p *logs) openRecord() tea.Cmd {
	if r, ok := p.traffic.t.Selected(); ok && p.open == tabTraffic {
		return p.app.openExchange(r.TrafficRecord)
	}
	return p.app.toDetail()
}

// copyRecord copies an exchange, or a line of the log.
func (p *logs) copyRecord() tea.Cmd {
	if p.open == tabTraffic {
		r, _ := p.traffic.t.Selected()
		return p.app.copyExchange(r.Seq)
	}
	r, _ := p.logs[p.open].t.Selected()
	return p.app.copy(clean(r.Text), "the line")
}

// copyMore copies a command that asks for the same, or the lines of the log.
func (p *logs) copyMore() tea.Cmd {
	if p.open == tabTraffic {
		r, _ := p.traffic.t.Selected()
		return p.app.copyCommand(r.Seq)
	}
	return p.app.copy(string(p.shown().data), "the lines")
}

// inspectRecord goes to what a request is about, or to the server of a line.
func (p *logs) inspectRecord() tea.Cmd {
	a := p.app
	if p.open == tabTraffic {
		if r, ok := p.traffic.t.Selected(); ok {
			return a.goToItem(&r.TrafficRecord)
		}
		return a.complain("there is no record here")
	}
	switch r, ok := p.logs[p.open].t.Selected(); {
	case !ok:
		return a.inspect(blankItem)
	case r.Server == "":
		return a.complain("this record is about no server")
	default:
		return a.goTo(paneServers, r.Server)
	}
}

// shown is what pagers, editors and files get: of stderr all lines of the
// server, of the other logs the lines that the filter leaves, of traffic the
// exchange.
func (p *logs) shown() shown {
	if p.open == tabTraffic {
		return p.shownTraffic()
	}
	f := p.logs[p.open]
	r, ok := f.t.Selected()
	if !ok {
		return shown{}
	}
	name := strings.ToLower(tabNames[p.open])
	var b strings.Builder
	if p.open == tabStderr {
		name = clean(r.Server) + "-stderr"
		for _, line := range f.held {
			if line.Server == r.Server {
				b.WriteString(line.plain() + "\n")
			}
		}
	} else {
		for _, i := range f.t.Found {
			b.WriteString(f.t.Rows[i].plain() + "\n")
		}
	}
	return shown{name: name + ".log", data: []byte(b.String())}
}

// subject is the selected record. In a flood that is followed, one record is
// shown for a moment, not each of hundreds.
func (p *logs) subject() subject {
	now := p.app.now()
	if p.flood && p.list().following() && p.lastOf == p.open && p.last.blocks != nil && now.Sub(p.lastAt) < calm {
		return p.last
	}
	p.last, p.lastAt, p.lastOf = subject{}, now, p.open
	if p.open == tabTraffic {
		p.last = p.trafficSubject()
	} else if r, ok := p.logs[p.open].t.Selected(); ok {
		p.last = r.subject(tabNames[p.open], p.app.reg)
	}
	return p.last
}

func (p *logs) item() item {
	if p.open != tabTraffic {
		return blankItem
	}
	r, ok := p.traffic.t.Selected()
	if !ok {
		return blankItem
	}
	return p.itemOf(&r.TrafficRecord)
}
