package pane

import (
	"cmp"
	"strings"

	"goblin/registry"
	"goblin/tui/theme"
	"goblin/tui/uicontext"
)

// relatedRequests holds the latest requests about one item, the newest first.
type relatedRequests struct {
	about uicontext.Item
	room  int
	all   bool   // includes notifications
	upTo  uint64 // last number that was read
	recs  []registry.TrafficRecord
}

// Related draws the latest requests about an item.
func (a *Layout) Related(it uicontext.Item, r uicontext.Rect, border int) []string {
	lk, p := a.Theme, a.Logs()
	w, h := r.W-2*border, r.H-2*border
	recs := p.related.update(a.Reg.Traffic(), it, h, p.trafficFilter == showAll)
	lines := make([]string, 0, max(h, 0))
	for i := range min(len(recs), max(h, 0)) {
		lines = append(lines, p.relatedLine(lk, &recs[i], w, it))
	}
	if len(recs) == 0 && h > 0 {
		lines = append(lines, lk.Dim.On(" none yet"))
	}
	if border == 0 {
		return lk.Lines(lines, r.W, r.H)
	}
	return lk.Frame(lines, lk.Title.On("Requests"), "", r.W, r.H, lk.Border)
}

func (n *relatedRequests) update(j *registry.TrafficJournal, it uicontext.Item, room int, all bool) []registry.TrafficRecord {
	room = max(room, 1)
	last := j.Stats().Next - 1
	if n.about == it && n.room == room && n.all == all && n.upTo == last {
		return n.recs
	}
	*n = relatedRequests{about: it, room: room, all: all, upTo: last}
	recs, fits := j.Window(0, -1), isAbout(it)
	for i := len(recs) - 1; i >= 0 && len(n.recs) < room; i-- {
		if (all || !isNotification(&recs[i])) && fits(&recs[i]) {
			n.recs = append(n.recs, recs[i])
		}
	}
	return n.recs
}

func (p *Logs) relatedLine(lk *theme.Theme, r *registry.TrafficRecord, w int, it uicontext.Item) string {
	base := theme.Style("")
	took := uicontext.FormatDuration(r.Duration)
	if isNotification(r) {
		base, took = lk.Dim, ""
	}
	const at, ms, status = 8, 7, 7
	room := max(w-at-ms-status-6, 0)
	text := r.Client
	if it.Name == "" {
		text = strings.TrimSpace(r.Method + " " + r.Name)
	} else if isNotification(r) || text == "" {
		text = r.Method
	}
	ended, style := p.statusCell(&trafficRow{TrafficRecord: *r}, status)
	if isNotification(r) {
		ended = "" // its method shows it
	}
	return " " + lk.Dim.On(clockText(r.Time, at)) + " " + base.On(arrow(lk, r.Direction)) + " " + base.On(uicontext.FitText(lk, text, room)) + " " +
		base.On(lk.Right(took, ms)) + " " + cmp.Or(style, base).On(lk.Fit(ended, status))
}
