package pane

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry"
	"goblin/registry/recording"
	"goblin/registry/termtext"
	"goblin/tui/dialog"
	"goblin/tui/list"
	"goblin/tui/theme"
	"goblin/tui/uicontext"
)

// trafficRow is a record without bodies, with cached values.
type trafficRow struct {
	registry.TrafficRecord
	key        string
	words      string
	client     string // as shown
	name       string // without the server's part of a URI, for the time line
	inFlightID string // while in flight, or ""
	lastRead   uint64 // last reading that included it

	arguments, failure string // safe to draw
	isDescribed        bool
	argumentHash       uint64 // 0: not computed
}

func (r *trafficRow) number() uint64 { return cmp.Or(r.First, r.Seq) }

func (r *trafficRow) at() time.Time {
	if r.Count > 1 {
		return r.Last
	}
	return r.Time
}

// Long requests stay in place.
func byStart(a, b *trafficRow) int {
	return cmp.Or(a.at().Compare(b.at()), cmp.Compare(a.Seq, b.Seq))
}

func (p *Logs) elapsed(r *trafficRow) time.Duration {
	if r.inFlightID != "" {
		return max(p.app.Now().Sub(r.Time), 0)
	}
	return r.Duration - r.UserWait
}

func (p *Logs) whyNotRecall() string {
	r, ok := p.Traffic.Table.Selected()
	if !p.IsTraffic() || !ok || r.Method != "tools/call" && r.Method != "prompts/get" {
		return "only recorded tool and prompt calls can be repeated; " + p.app.KeyOf("inspect") + " goes to the item"
	}
	return ""
}

func (p *Logs) recall() tea.Cmd {
	r, _ := p.Traffic.Table.Selected()
	return p.app.Recall(&r.TrafficRecord)
}

// Recall opens the form of a recorded call, with its arguments.
func (a *Layout) Recall(r *registry.TrafficRecord) tea.Cmd {
	it, rec := a.Logs().itemOf(r), *r
	if full, ok := a.Reg.Traffic().Record(r.Seq); ok {
		rec = full
	}
	args, ok := callArguments(&rec)
	switch {
	case it.IsEmpty():
		return a.Complain("%s is no longer listed", uicontext.SanitizeLine(r.Name))
	case !ok:
		return a.Complain("the recorded arguments are truncated")
	}
	return dialog.CallWith(a.Context, it, args)
}

func (p *Logs) clientText(r *registry.TrafficRecord) string {
	switch {
	case r.Receivers > 0:
		return fmt.Sprintf("all %d", r.Receivers)
	case r.Session == "":
	case r.Session == p.app.Backend.Session():
		return "you"
	case p.screens[r.Session]:
		return "another UI"
	}
	return r.Client
}

func (p *Logs) newTraffic() *records[*trafficRow] {
	t := list.New(p.app.Ctx, p.app.Now,
		func(r *trafficRow) string { return r.key },
		func(r *trafficRow) string { return r.words },
		p.trafficFields, list.NewOrder("time", byStart))
	t.Following = true
	t.Base = func(r *trafficRow) theme.Style {
		if isNotification(&r.TrafficRecord) {
			return p.app.Theme.Dim
		}
		return ""
	}
	t.Markable = func(r *trafficRow) bool { return r.inFlightID != "" }
	t.Overlay = func(r *trafficRow, w int) string {
		if p.app.IsMarked(&r.TrafficRecord) {
			return p.app.Theme.Accent.On("marked A")
		}
		return timesNote(p.app.Theme, r.Count, r.Last, w)
	}
	t.HiddenTexts = func(r *trafficRow) []string { return []string{r.Server} }
	t.SetColumns(p.trafficColumns()...)
	return &records[*trafficRow]{Table: t, limit: max(MaxTraffic, p.app.Reg.Traffic().Limits().Requests), separateLimit: max(maxNotifications, p.app.Reg.Traffic().Limits().Notifications), separate: func(r *trafficRow) bool { return isNotification(&r.TrafficRecord) }, server: func(r *trafficRow) string { return r.Server }}
}

func (p *Logs) trafficColumns() []list.Column[*trafficRow] {
	type column = list.Column[*trafficRow]
	size := list.NumberColumn("size", 10, 8, func(r *trafficRow) float64 { return float64(recordSize(&r.TrafficRecord)) }, func(r *trafficRow, _ int) (string, theme.Style) {
		if r.inFlightID != "" {
			return "", ""
		}
		return uicontext.FormatSize(recordSize(&r.TrafficRecord)), p.app.Theme.Dim
	})
	size.Optional = true
	took := list.NumberColumn("took", 1, 7, func(r *trafficRow) float64 { return float64(max(r.Duration-r.UserWait, 0)) }, func(r *trafficRow, _ int) (string, theme.Style) {
		switch {
		case r.inFlightID != "":
			return termtext.Age(p.elapsed(r)), ""
		case isNotification(&r.TrafficRecord):
			return "", ""
		}
		return uicontext.FormatDuration(p.elapsed(r)), ""
	})
	return []column{
		{
			Name: "date", Priority: 8, NeededWidth: 5, Unsorted: true, HasValue: p.isOtherDay,
			Show: func(r *trafficRow, _ int) (string, theme.Style) {
				if !p.isOtherDay(r) {
					return "", ""
				}
				return r.Time.Format("01-02"), p.app.Theme.Dim
			},
		},
		{Name: "time", Priority: 3, NeededWidth: 8, Show: func(r *trafficRow, w int) (string, theme.Style) { return clockText(r.Time, w), p.app.Theme.Dim }},
		{Name: "client", Priority: 2, MinWidth: 6, PreferredWidth: 6, Text: func(r *trafficRow) string { return r.client }},
		{Priority: 6, NeededWidth: 1, Show: func(r *trafficRow, _ int) (string, theme.Style) { return arrow(p.app.Theme, r.Direction), "" }},
		{
			Name: "server", Priority: 4, MinWidth: 6, PreferredWidth: 6, Text: unnamedServer,
			Less: func(a, b *trafficRow) int { return cmp.Compare(a.Server, b.Server) },
		},
		{Name: "method", MinWidth: 10, PreferredWidth: 10, CutMiddle: true, Text: func(r *trafficRow) string { return r.Method }},
		{Name: "name", MinWidth: 12, PreferredWidth: 15, CutMiddle: true, Text: func(r *trafficRow) string { return r.Name }},
		{
			Name: "status", MinWidth: 7, PreferredWidth: 11, Text: func(r *trafficRow) string { return markedStatusText(&r.TrafficRecord) },
			Show: p.statusCell,
		},
		took,
		{
			Name: "waited", Priority: 3, AlignRight: true, Dim: true, Descending: true, Text: waitText,
			Less: func(a, b *trafficRow) int { return cmp.Compare(a.UserWait, b.UserWait) },
		},
		size,
		{Name: "arguments", Priority: 9, MinWidth: 16, PreferredWidth: 20, Fills: true, Optional: true, Unsorted: true, Show: p.callTexts},
	}
}

// waitText returns how long the call waited for the user, or "".
func waitText(r *trafficRow) string {
	if r.UserWait <= 0 {
		return ""
	}
	return uicontext.FormatDuration(r.UserWait)
}

func (p *Logs) isOtherDay(r *trafficRow) bool {
	y, m, d := p.app.Now().Date()
	ry, rm, rd := r.Time.Date()
	return !r.Time.IsZero() && (d != rd || m != rm || y != ry)
}

// unnamedServer returns the server unless the name contains it. Goblin's own names are
// known, too.
func unnamedServer(r *trafficRow) string {
	if r.Server == registry.Local {
		return ""
	}
	if rest, ok := strings.CutPrefix(strings.TrimPrefix(r.Name, "mcp://"), r.Server); ok && rest != "" && strings.ContainsRune("_/", rune(rest[0])) {
		return ""
	}
	return r.Server
}

// describe sets the texts of a call once, when it is drawn first.
func (p *Logs) describe(r *trafficRow) {
	if !r.isDescribed {
		r.isDescribed = true
		r.arguments, r.failure = p.app.CallTexts(&r.TrafficRecord)
	}
}

func (p *Logs) callTexts(r *trafficRow, _ int) (string, theme.Style) {
	p.describe(r)
	if r.failure != "" {
		return strings.TrimSpace(r.failure + "  " + r.arguments), p.app.Theme.Bad
	}
	return r.arguments, p.app.Theme.Dim
}

func (p *Logs) trafficFields(rows []*trafficRow) []list.Field {
	traffic := p.app.Reg.Traffic()
	return recording.Fields(
		func(i int) *registry.TrafficRecord { return &rows[i].TrafficRecord },
		func(i int) (params, response []byte) {
			rec, _ := traffic.Record(rows[i].Seq)
			return rec.Request, rec.Response
		})
}

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
		if r.Count > 1 {
			folded[r.number()] = true
		}
		if at := requestKeyOf(&r.TrafficRecord); !isNotification(&r.TrafficRecord) && p.removeInFlight(at) {
			r.key = at.key() // the cursor follows the request
		}
		r.words = recording.Words(&r.TrafficRecord)
		r.client, r.name = p.clientText(&r.TrafficRecord), nameAtServer(&r.TrafficRecord)
		all[i] = r
	}
	held := p.Traffic.Held
	if len(folded) > 0 { // new records replace their rows
		held = slices.DeleteFunc(slices.Clone(held), func(r *trafficRow) bool { return folded[r.number()] })
	}
	p.Traffic.setHeld(slices.Concat(held, all))
}

// Filters of Traffic. Notifications may arrive every second, and requests of UIs are
// rarely wanted.
const (
	showRequests = iota // notifications only as a count
	showAll
	showClients // only requests of clients
	trafficFilters
)

var (
	trafficFilterNames = [trafficFilters]string{"requests (notifications are counted)", "everything", "clients' requests only"}
	trafficFilterHints = [trafficFilters]string{"show requests", "show all", "clients only"} // of the key that selects the filter
)

func (p *Logs) trafficFilterHint() string {
	return trafficFilterHints[(p.trafficFilter+1)%trafficFilters]
}

func (p *Logs) nextTrafficFilter() tea.Cmd {
	p.trafficFilter = (p.trafficFilter + 1) % trafficFilters
	p.app.Say("Traffic: %s", trafficFilterNames[p.trafficFilter])
	p.applyTrafficFilter()
	p.Traffic.changed = true
	return p.Traffic.Publish()
}

func (p *Logs) applyTrafficFilter() {
	p.screens = map[string]bool{}
	for _, s := range p.app.Reg.Sessions() {
		p.screens[s.ID] = s.Screen
	}
	screens := p.screens // replaced, never changed
	switch p.trafficFilter {
	case showRequests:
		p.Traffic.filter = func(r *trafficRow) bool { return !isNotification(&r.TrafficRecord) }
	case showClients:
		p.Traffic.filter = func(r *trafficRow) bool { return !isNotification(&r.TrafficRecord) && !screens[r.Session] }
	default:
		p.Traffic.filter = nil
	}
}

func (p *Logs) foldedLine() string {
	if p.Traffic.filter == nil {
		return ""
	}
	from, own := map[string]int{}, 0
	for _, r := range p.Traffic.Held {
		switch {
		case p.Traffic.filter(r):
		case isNotification(&r.TrafficRecord):
			from[cmp.Or(r.Server, r.Client, registry.Local)] += max(r.Count, 1)
		default:
			own++
		}
	}
	var parts []string
	for _, source := range slices.SortedFunc(maps.Keys(from), func(a, b string) int {
		return cmp.Or(cmp.Compare(from[b], from[a]), cmp.Compare(a, b))
	}) {
		parts = append(parts, uicontext.SanitizeLine(source)+" "+uicontext.FormatCount(from[source]))
	}
	var all []string
	if len(parts) > 0 {
		all = append(all, "notifications: "+strings.Join(parts, ", "))
	}
	if own > 0 {
		all = append(all, termtext.Count(own, "request")+" of UIs")
	}
	return strings.Join(all, "; ")
}

// With floodSize records per reading, the detail shows one at a time for floodPause.
const (
	floodSize  = 20
	floodPause = 250 * time.Millisecond
)

func arrow(lk *theme.Theme, d registry.Direction) string {
	if d == registry.ToClient {
		return lk.From
	}
	return lk.To
}

func (p *Logs) statusCell(r *trafficRow, w int) (string, theme.Style) {
	lk, text := p.app.Theme, uicontext.SanitizeLine(markedStatusText(&r.TrafficRecord))
	switch {
	case r.Status == registry.StatusInFlight && p.app.StopText(r.Number) != "":
		text = "! " + p.app.StopText(r.Number)
		if theme.Width(text) > w {
			text = strings.NewReplacer("stopped, ", "", " left", "").Replace(text)
		}
		return text, lk.Warn
	case r.Status == registry.StatusInFlight:
		text = p.app.Spin.View() + " " + runningText
		if theme.Width(text) > w {
			text = p.app.Spin.View() + " waits"
		}
		return text, lk.Accent
	case IsFailure(&r.TrafficRecord):
		return text, lk.Bad
	case r.Status == registry.StatusLeft || r.Status == registry.StatusCancelled:
		return text, lk.Dim
	}
	return text, ""
}

type resolution struct {
	seq  uint64
	snap *registry.Snapshot
	item uicontext.Item
}

// itemOf returns the tool, prompt, resource or template that a record is about, or an
// empty item. It caches the last result.
func (p *Logs) itemOf(r *registry.TrafficRecord) uicontext.Item {
	snap := p.app.Reg.Load()
	if r.Seq == 0 { // in flight
		return itemOfRecord(p.app.Reg, r)
	}
	if p.resolved.seq != r.Seq || p.resolved.snap != snap {
		p.resolved = resolution{r.Seq, snap, itemOfRecord(p.app.Reg, r)}
	}
	return p.resolved.item
}
