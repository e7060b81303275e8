package pane

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry"
	"goblin/registry/termtext"
	"goblin/tui/dialog"
	"goblin/tui/keys"
	"goblin/tui/list"
	"goblin/tui/theme"
	"goblin/tui/uicontext"
)

// trafficRow is a record of traffic, without bodies, and what is made of it
// once.
type trafficRow struct {
	registry.TrafficRecord
	key    string
	words  string
	client string // who asked, as it is called here
	name   string // what it is about, without its server's part of a URI
	open   string // its id while it is under way, else ""
	asked  uint64 // number of the last asking at which it was
}

// number returns the sequence number of the first record in the row.
func (r *trafficRow) number() uint64 { return cmp.Or(r.First, r.Seq) }

// at returns the time of the last record in the row.
func (r *trafficRow) at() time.Time {
	if r.Times > 1 {
		return r.Last
	}
	return r.Time
}

// same tells a request that was under way when it ends.
type same struct {
	began           int64
	session, method string
}

func sameOf(r *registry.TrafficRecord) same {
	return same{r.Time.UnixNano(), r.Session, r.Method}
}

// waiting are the requests that were under way when the gateway was asked last.
type waiting struct {
	rows   []*trafficRow
	ended  map[same]uint64 // what has ended lately, and how often it was asked until then
	asking bool
	asked  uint64 // how often it was
}

// waitWords are the words for it that a row may show.
const waitWords = "waits, " + registry.StatusUnderWay

// patience is for how many askings a request that is not under way any more stays in
// Traffic as if it were: its record, which takes its place, may come a little later.
const patience = 2

// AskUnderWay reads which requests are under way: how many is told everywhere, which
// ones in Traffic.
func (p *Logs) AskUnderWay() tea.Cmd {
	if p.open.asking {
		return nil
	}
	p.open.asking = true
	maps.DeleteFunc(p.open.ended, func(_ same, asked uint64) bool { return asked+patience < p.open.asked })
	backend := p.app.Backend
	return func() tea.Msg {
		found := backend.UnderWay()
		return keys.FuncMsg(func() tea.Cmd {
			p.open.asking = false
			return p.underWay(found)
		})
	}
}

// underWay takes what was found; what has ended since is in the journal.
func (p *Logs) underWay(found []registry.UnderWay) tea.Cmd {
	p.open.asked++
	p.open.rows = nil
	for i := range found {
		u := &found[i]
		at := sameOf(&u.TrafficRecord)
		if _, ended := p.open.ended[at]; ended {
			continue
		}
		p.open.rows = append(p.open.rows, &trafficRow{
			TrafficRecord: u.TrafficRecord, key: at.key(), words: u.Method + " " + u.Name + " " + waitWords, open: u.ID, asked: p.open.asked,
			client: p.who(&u.TrafficRecord), name: OwnName(&u.TrafficRecord),
		})
	}
	if p.app.Open != PaneLogs || p.Open != TabTraffic || p.Paused {
		return nil // until it is read
	}
	p.showWaiting()
	return p.Traffic.Publish()
}

// showWaiting brings what is under way into Traffic, once the journal was read: what was
// shown before and has ended may be there.
func (p *Logs) showWaiting() {
	before, now := p.Traffic.also, slices.Clone(p.open.rows)
	for _, r := range before {
		if r.asked+patience >= p.open.asked && index(now, sameOf(&r.TrafficRecord)) < 0 {
			now = append(now, r)
		}
	}
	alike := slices.EqualFunc(before, now, func(a, b *trafficRow) bool { return a.key == b.key })
	p.Traffic.also, p.Traffic.fresh = now, p.Traffic.fresh || !alike
}

// index is where a request stands, -1 if it does not.
func index(rows []*trafficRow, at same) int {
	return slices.IndexFunc(rows, func(r *trafficRow) bool { return sameOf(&r.TrafficRecord) == at })
}

// UnderWay is how many requests are under way.
func (p *Logs) UnderWay() int { return len(p.open.rows) }

// UnderWayOf is how many of a session are.
func (p *Logs) UnderWayOf(session string) (n int) {
	for _, r := range p.open.rows {
		if r.Session == session {
			n++
		}
	}
	return n
}

func (s same) key() string { return fmt.Sprintf("%d %s %s", s.began, s.session, s.method) }

// byStart is the order of Traffic: what lasts stays where it began.
func byStart(a, b *trafficRow) int {
	return cmp.Or(a.at().Compare(b.at()), cmp.Compare(a.Seq, b.Seq))
}

// took is how long a request took, or has taken so far.
func (p *Logs) took(r *trafficRow) time.Duration {
	if r.open != "" {
		return max(p.app.Now().Sub(r.Time), 0)
	}
	return r.Duration - r.Waited
}

// Withdrawable is the request under the cursor if it is under way.
func (p *Logs) withdrawable() *trafficRow {
	if p.Open != TabTraffic {
		return nil
	}
	r, ok := p.Traffic.Table.Selected()
	if !ok || r.open == "" {
		return nil
	}
	return r
}

// withdrawn are the requests that would be cancelled: those that are marked, else the one
// under the cursor.
func (p *Logs) withdrawn() []*trafficRow {
	if p.Open != TabTraffic {
		return nil
	}
	rows := slices.DeleteFunc(p.Traffic.Table.Ticked(), func(r *trafficRow) bool { return r.open == "" })
	if r := p.withdrawable(); len(rows) == 0 && r != nil {
		rows = append(rows, r)
	}
	return rows
}

// WhyNotWithdraw says why no request here can be cancelled.
func (p *Logs) WhyNotWithdraw() string {
	switch r, ok := p.Traffic.Table.Selected(); {
	case len(p.withdrawn()) > 0:
		return ""
	case p.Open != TabTraffic || !ok:
		return "there is no request here"
	case Notified(&r.TrafficRecord):
		return "this is a notification: nobody waits for an answer to it"
	}
	return "this request has ended already"
}

// Withdraw cancels the requests that are marked, else the one under the cursor, after
// asking if one is a client's.
func (p *Logs) Withdraw() tea.Cmd {
	a, rows := p.app, p.withdrawn()
	var all []func() tea.Cmd
	var asked []*trafficRow
	for _, r := range rows {
		all = append(all, func() tea.Cmd {
			return func() tea.Msg {
				done := a.Backend.Withdraw(r.Session, r.open)
				return keys.FuncMsg(func() tea.Cmd {
					if !done {
						return a.Complain("%s %s has ended already", uicontext.Clean(r.Method), uicontext.Clean(r.Name))
					}
					a.Say("Cancelled %s %s", uicontext.Clean(r.Method), uicontext.Clean(r.Name))
					return p.AskUnderWay()
				})
			}
		})
		if r.Session != a.Backend.Session() {
			asked = append(asked, r)
		}
	}
	cancel := func() tea.Cmd {
		p.Traffic.Table.Untick()
		cmds := make([]tea.Cmd, len(all))
		for i, one := range all {
			cmds[i] = one()
		}
		return tea.Batch(cmds...)
	}
	if len(asked) == 0 {
		return cancel()
	}
	r := asked[0]
	c := &dialog.Confirm{
		Screen: a.Common, Title: "Cancel " + strings.TrimSpace(uicontext.Clean(r.Method)+" "+uicontext.Clean(r.Name)) + "?",
		Text: []string{uicontext.Clean(cmp.Or(r.Client, "A client")) + " has waited for it for " + termtext.Age(p.took(r)) + ", and is told."},
		Yes:  "cancel it", Then: cancel,
	}
	if n := len(asked); n > 1 {
		c.Title, c.Yes = fmt.Sprintf("Cancel %d requests?", n), "cancel them"
		c.Text = []string{fmt.Sprintf("Their clients have waited for up to %s, and are told.", termtext.Age(p.took(r)))}
	}
	return a.Push(c)
}

// whyNotRecall says why the record under the cursor cannot be called anew.
func (p *Logs) whyNotRecall() string {
	r, ok := p.Traffic.Table.Selected()
	if p.Open != TabTraffic || !ok || r.Method != "tools/call" && r.Method != "prompts/get" {
		return "only recorded calls of tools and prompts have a form; " + p.app.KeyOf("inspect") + " goes to the item"
	}
	return ""
}

// recall opens the form of the recorded call under the cursor.
func (p *Logs) recall() tea.Cmd {
	r, _ := p.Traffic.Table.Selected()
	return p.app.Recall(&r.TrafficRecord)
}

// Recall opens the form of a recorded call, with its arguments.
func (a *Desk) Recall(r *registry.TrafficRecord) tea.Cmd {
	it, rec := a.Logs().itemOf(r), *r
	if full, ok := a.Reg.Traffic().Record(r.Seq); ok {
		rec = full
	}
	args, ok := Arguments(&rec)
	switch {
	case it.Blank():
		return a.Complain("%s is not listed any more", uicontext.Clean(r.Name))
	case !ok:
		return a.Complain("the journal has not kept these arguments whole")
	}
	return dialog.CallWith(a.Common, it, args)
}

// who names the client of a request, or the clients.
func (p *Logs) who(r *registry.TrafficRecord) string {
	switch {
	case r.Receivers > 0:
		return fmt.Sprintf("all %d", r.Receivers)
	case r.Session == "":
	case r.Session == p.app.Backend.Session():
		return "you"
	case p.screens[r.Session]:
		return "a screen"
	}
	return r.Client
}

func (p *Logs) newTraffic() *records[*trafficRow] {
	t := list.New(p.app.Ctx, p.app.Now,
		func(r *trafficRow) string { return r.key },
		func(r *trafficRow) string { return r.words },
		trafficFields, list.By("time", byStart))
	t.Tail = true
	t.Base = func(r *trafficRow) theme.Style {
		if Notified(&r.TrafficRecord) {
			return p.app.Look.Dim
		}
		return ""
	}
	t.Note = func(r *trafficRow) string {
		if r.Waited > 0 {
			return p.app.Look.Dim.On("waited " + uicontext.Millis(r.Waited))
		}
		return ""
	}
	t.Over = func(r *trafficRow) string { return timesNote(p.app.Look, r.Times, r.Last) }
	t.Also = func(r *trafficRow) []string { return []string{r.Name} }
	t.Arrange(p.trafficColumns()...)
	return &records[*trafficRow]{Table: t, most: MostTraffic, mostApart: mostNotes, apart: func(r *trafficRow) bool { return Notified(&r.TrafficRecord) }, server: func(r *trafficRow) string { return r.Server }}
}

// trafficColumns are those of Traffic. What was asked stands longest.
func (p *Logs) trafficColumns() []list.Column[*trafficRow] {
	type column = list.Column[*trafficRow]
	size := list.Figure("size", 7, 8, func(r *trafficRow) float64 { return float64(Size(&r.TrafficRecord)) }, func(r *trafficRow, _ int) (string, theme.Style) {
		if r.open != "" {
			return "", ""
		}
		return uicontext.Size(Size(&r.TrafficRecord)), p.app.Look.Dim
	})
	size.Spare = true
	took := list.Figure("took", 5, 8, func(r *trafficRow) float64 { return float64(r.Duration - r.Waited) }, func(r *trafficRow, _ int) (string, theme.Style) {
		switch {
		case r.open != "":
			return termtext.Age(p.took(r)), ""
		case Notified(&r.TrafficRecord):
			return "", ""
		}
		return uicontext.Millis(p.took(r)), ""
	})
	return []column{
		{
			Name: "time", Rank: 4, Fixed: 12, Least: 8, Wants: 8,
			Show: func(r *trafficRow, w int) (string, theme.Style) { return clock(r.Time, w), p.app.Look.Dim },
		},
		{Name: "client", Rank: 3, Least: 6, Wants: 6, Text: func(r *trafficRow) string { return r.client }},
		{Rank: 6, Fixed: 1, Show: func(r *trafficRow, _ int) (string, theme.Style) { return arrow(p.app.Look, r.Direction), "" }},
		{Name: "server", Rank: 2, Least: 6, Wants: 6, Text: func(r *trafficRow) string { return r.Server }},
		{Name: "method", Least: 11, Wants: 11, Middle: true, Text: func(r *trafficRow) string { return r.Method }},
		{Name: "name", Least: 12, Wants: 15, Middle: true, Text: func(r *trafficRow) string { return r.name }},
		{
			Name: "status", Least: 7, Wants: 12, Text: func(r *trafficRow) string { return MarkedStatus(&r.TrafficRecord) },
			Show: p.statusCell,
		},
		took, size,
	}
}

func trafficFields(rows []*trafficRow) []list.Field {
	return []list.Field{
		{Name: "server", Aliases: []string{"srv"}, Kind: list.Text, Help: "the server", Text: func(i int) string { return rows[i].Server }},
		{Name: "client", Kind: list.Text, Help: "the client", Text: func(i int) string { return rows[i].Client }},
		{Name: "method", Kind: list.Text, Help: "as in tools/call; globs as in tools/*", Text: func(i int) string { return rows[i].Method }},
		{Name: "name", Kind: list.Text, Help: "tool, prompt or URI", Text: func(i int) string { return rows[i].Name }},
		{Name: "dir", Kind: list.Text, Help: "in: from a client; out: from a server", Text: func(i int) string { return way(rows[i].Direction) }},
		{Name: "status", Kind: list.Text, Help: "ok, waits, cancelled, client left, notification, or an error's code", Text: func(i int) string {
			if rows[i].open != "" {
				return waitWords // whichever there was room for
			}
			return Status(&rows[i].TrafficRecord)
		}},
		{Name: "err", Kind: list.YesNo, Help: "failed: yes or no", YesNo: func(i int) bool { return Failed(&rows[i].TrafficRecord) }},
		{Name: "ms", Kind: list.Number, Help: "how long it took: >500", Number: func(i int) float64 {
			if Notified(&rows[i].TrafficRecord) {
				return math.NaN()
			}
			return float64(rows[i].Duration-rows[i].Waited) / float64(time.Millisecond)
		}},
		{Name: "size", Kind: list.Number, Help: "bytes of the answer: >10k", Number: func(i int) float64 {
			return float64(Size(&rows[i].TrafficRecord))
		}},
		{Name: "session", Kind: list.Text, Help: "the session of the client", Text: func(i int) string { return rows[i].Session }},
	}
}

// way is a direction as the filter spells it.
func way(d registry.Direction) string {
	if d == registry.ToClient {
		return "out"
	}
	return "in"
}

// readTraffic takes the new records up to a number.
func (p *Logs) readTraffic(upTo uint64) {
	if upTo <= p.traffic.Read {
		return
	}
	recs := p.app.Reg.Traffic().Window(p.traffic.Read+1, -1)
	for len(recs) > 0 && recs[len(recs)-1].Seq > upTo {
		recs = recs[:len(recs)-1]
	}
	p.traffic.Read = upTo
	rows := make([]trafficRow, len(recs))
	all, folded := make([]*trafficRow, len(recs)), map[uint64]bool{}
	for i := range recs {
		r := &rows[i]
		r.TrafficRecord = recs[i]
		r.key = strconv.FormatUint(r.number(), 10)
		if r.Times > 1 {
			folded[r.number()] = true
		}
		if at := sameOf(&r.TrafficRecord); !Notified(&r.TrafficRecord) && p.ended(at) {
			r.key = at.key() // the cursor follows it
		}
		r.words = r.Method + " " + r.Name
		r.client, r.name = p.who(&r.TrafficRecord), OwnName(&r.TrafficRecord)
		all[i] = r
	}
	held := p.Traffic.Held
	if len(folded) > 0 { // new records replace their rows
		held = slices.DeleteFunc(slices.Clone(held), func(r *trafficRow) bool { return folded[r.number()] })
	}
	p.Traffic.hold(slices.Concat(held, all))
}

// ended takes a request off those that are under way and that are shown so, if it was one.
func (p *Logs) ended(at same) (was bool) {
	p.open.ended[at] = p.open.asked
	for _, rows := range []*[]*trafficRow{&p.open.rows, &p.Traffic.also} {
		if i := index(*rows, at); i >= 0 {
			*rows, was = slices.Concat((*rows)[:i], (*rows)[i+1:]), true // commands read the other
		}
	}
	return was
}

// What Traffic shows: notifications may come by the second, and what screens ask
// themselves is not what one looks for.
const (
	showRequests = iota // and notifications as a count
	showAll
	showClients // only the requests of clients
	shows
)

var (
	showNames = [shows]string{"requests; notifications are counted", "everything", "requests of clients only"}
	showHints = [shows]string{"show requests", "show all", "clients only"} // what leads there
)

// hintShown says what shows more of the traffic, or less, when it is asked for next.
func (p *Logs) hintShown() string { return showHints[(p.shown+1)%shows] }

// nextShown shows more of the traffic, or less.
func (p *Logs) nextShown() tea.Cmd {
	p.shown = (p.shown + 1) % shows
	p.app.Say("Traffic: %s", showNames[p.shown])
	p.keepTraffic()
	p.Traffic.fresh = true
	return p.Traffic.Publish()
}

// keepTraffic says which records are shown.
func (p *Logs) keepTraffic() {
	p.screens = map[string]bool{}
	for _, s := range p.app.Reg.Sessions() {
		p.screens[s.ID] = s.Screen
	}
	screens := p.screens // replaced, never changed
	switch p.shown {
	case showRequests:
		p.Traffic.keep = func(r *trafficRow) bool { return !Notified(&r.TrafficRecord) }
	case showClients:
		p.Traffic.keep = func(r *trafficRow) bool { return !Notified(&r.TrafficRecord) && !screens[r.Session] }
	default:
		p.Traffic.keep = nil
	}
}

// foldedLine counts what is not shown, by where it comes from; "" if all is shown.
func (p *Logs) foldedLine() string {
	if p.Traffic.keep == nil {
		return ""
	}
	from, own := map[string]int{}, 0
	for _, r := range p.Traffic.Held {
		switch {
		case p.Traffic.keep(r):
		case Notified(&r.TrafficRecord):
			from[cmp.Or(r.Server, r.Client, registry.Local)] += max(r.Times, 1)
		default:
			own++
		}
	}
	var parts []string
	for _, source := range slices.SortedFunc(maps.Keys(from), func(a, b string) int {
		return cmp.Or(cmp.Compare(from[b], from[a]), cmp.Compare(a, b))
	}) {
		parts = append(parts, uicontext.Clean(source)+" "+uicontext.Grouped(from[source]))
	}
	var all []string
	if len(parts) > 0 {
		all = append(all, "notifications of "+strings.Join(parts, ", "))
	}
	if own > 0 {
		all = append(all, termtext.Count(own, "request")+" of screens")
	}
	return strings.Join(all, "; ")
}

// floods is how many records at a time are too many to show each of them in
// the detail panel, and calm how long one is shown then.
const (
	floods = 20
	calm   = 250 * time.Millisecond
)

// arrow points the way a record went.
func arrow(lk *theme.Look, d registry.Direction) string {
	if d == registry.ToClient {
		return lk.From
	}
	return lk.To
}

func (p *Logs) statusCell(r *trafficRow, w int) (string, theme.Style) {
	lk, text := p.app.Look, uicontext.Clean(MarkedStatus(&r.TrafficRecord))
	switch {
	case r.Status == registry.StatusUnderWay:
		text = p.app.Spin.View() + " " + r.Status
		if theme.Width(text) > w {
			text = p.app.Spin.View() + " waits"
		}
		return text, lk.Accent
	case Failed(&r.TrafficRecord):
		return text, lk.Bad
	case r.Status == registry.StatusLeft || r.Status == registry.StatusCancelled:
		return text, lk.Dim
	}
	return text, ""
}

// resolution is the item of the record that was asked for last.
type resolution struct {
	seq  uint64
	snap *registry.Snapshot
	item uicontext.Item
}

// itemOf is the tool, prompt, resource or template that a record is about,
// blank if it is about none that is there. Asking again costs nothing.
func (p *Logs) itemOf(r *registry.TrafficRecord) uicontext.Item {
	snap := p.app.Reg.Load()
	if r.Seq == 0 { // under way
		return ItemOf(p.app.Reg, r)
	}
	if p.found.seq != r.Seq || p.found.snap != snap {
		p.found = resolution{r.Seq, snap, ItemOf(p.app.Reg, r)}
	}
	return p.found.item
}

// Inspect shows the requests about an item.
func (a *Desk) Inspect(it uicontext.Item) tea.Cmd { return a.showTraffic(about(it)) }

// showTraffic shows the requests that a filter leaves.
func (a *Desk) showTraffic(typed string) tea.Cmd {
	return a.showLogs(TabTraffic, typed)
}

// TrafficOf shows the requests of a session.
func (a *Desk) TrafficOf(session string) tea.Cmd {
	return a.showTraffic(list.Set("", "session", []string{"=" + session}))
}

// showLogs jumps to what a filter leaves in a tab of Logs.
func (a *Desk) showLogs(tab int, typed string) tea.Cmd {
	return a.jumps(PaneLogs,
		func() tea.Cmd { return tea.Batch(a.Show(PaneLogs), a.Logs().Choose(tab)) },
		func() tea.Cmd { return a.SetFilter(typed) })
}

// about is the filter for the requests about an item: by its listed name, its
// own, or, for a template, by anything that it may have been expanded to.
func about(it uicontext.Item) string {
	text := ""
	if it.Server != "" {
		text = list.Set(text, "server", []string{"=" + it.Server})
	}
	var names []string
	for _, name := range []string{it.Listed, it.Name} {
		switch {
		case name == "" || it.Name == "" || len(names) > 0 && it.Listed == it.Name:
		case it.Kind == registry.Template:
			names = append(names, strings.Join(Literals(name), "*"))
		default:
			names = append(names, "="+name)
		}
	}
	if len(names) > 0 {
		text = list.Set(text, "name", names)
	}
	return text
}

// GoToItem goes to what a record is about, else to its server.
func (a *Desk) GoToItem(r *registry.TrafficRecord) tea.Cmd {
	switch it := a.Logs().itemOf(r); {
	case !it.Blank():
		return a.GoToListed(it.Kind, it.Listed)
	case r.Server == "" || r.Server == registry.Local:
		return a.Complain("%s is about nothing that is listed", r.Method)
	}
	a.Say("%s is about no item; this is its server", uicontext.Clean(r.Method))
	return a.GoTo(PaneServers, r.Server)
}
