package pane

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry"
	"goblin/registry/recording"
	"goblin/registry/termtext"
	"goblin/tui/dialog"
	"goblin/tui/keys"
	"goblin/tui/uicontext"
)

// requestKey identifies a request from its dispatch to its record in the journal.
type requestKey struct {
	startTime       int64
	session, method string
}

func requestKeyOf(r *registry.TrafficRecord) requestKey {
	return requestKey{r.Time.UnixNano(), r.Session, r.Method}
}

type inFlight struct {
	rows    []*trafficRow
	ended   map[requestKey]uint64 // recently finished ones, with the number of reads then
	reading bool
	reads   uint64
}

// graceReads is the number of readings for which a finished request stays in Traffic. Its
// record, which replaces the row, may arrive later.
const graceReads = 2

// ReadInFlight reads the requests in flight for the header and Traffic.
func (p *Logs) ReadInFlight() tea.Cmd {
	if p.inFlight.reading {
		return nil
	}
	p.inFlight.reading = true
	maps.DeleteFunc(p.inFlight.ended, func(_ requestKey, asked uint64) bool { return asked+graceReads < p.inFlight.reads })
	backend := p.app.Backend
	return func() tea.Msg {
		found := backend.InFlight()
		return keys.FuncMsg(func() tea.Cmd {
			p.inFlight.reading = false
			return p.setInFlight(found)
		})
	}
}

func (p *Logs) setInFlight(found []registry.InFlight) tea.Cmd {
	p.inFlight.reads++
	p.inFlight.rows = nil
	for i := range found {
		u := &found[i]
		at := requestKeyOf(&u.TrafficRecord)
		if _, ended := p.inFlight.ended[at]; ended {
			continue
		}
		p.inFlight.rows = append(p.inFlight.rows, &trafficRow{
			TrafficRecord: u.TrafficRecord, key: at.key(), words: recording.Words(&u.TrafficRecord), inFlightID: u.ID, lastRead: p.inFlight.reads,
			client: p.clientText(&u.TrafficRecord), name: nameAtServer(&u.TrafficRecord),
		})
	}
	if p.app.Open != PaneLogs || !p.IsTraffic() || p.Paused {
		return nil // until it is read
	}
	p.showInFlight()
	return p.Traffic.Publish()
}

// showInFlight adds the in-flight requests to Traffic after the journal was read, which
// may already contain some that finished.
func (p *Logs) showInFlight() {
	before, now := p.Traffic.extra, slices.Clone(p.inFlight.rows)
	for _, r := range before {
		if r.lastRead+graceReads >= p.inFlight.reads && indexOfRequest(now, requestKeyOf(&r.TrafficRecord)) < 0 {
			now = append(now, r)
		}
	}
	alike := slices.EqualFunc(before, now, func(a, b *trafficRow) bool { return a.key == b.key && a.UserWait == b.UserWait })
	p.Traffic.extra, p.Traffic.changed = now, p.Traffic.changed || !alike
}

func indexOfRequest(rows []*trafficRow, at requestKey) int {
	return slices.IndexFunc(rows, func(r *trafficRow) bool { return requestKeyOf(&r.TrafficRecord) == at })
}

// InFlight returns the number of requests in flight.
func (p *Logs) InFlight() int { return len(p.inFlight.rows) }

// InFlightOf returns the number of requests of a session in flight.
func (p *Logs) InFlightOf(session string) (n int) {
	for _, r := range p.inFlight.rows {
		if r.Session == session {
			n++
		}
	}
	return n
}

func (s requestKey) key() string { return fmt.Sprintf("%d %s %s", s.startTime, s.session, s.method) }

func (p *Logs) selectedInFlight() *trafficRow {
	if !p.IsTraffic() {
		return nil
	}
	r, ok := p.Traffic.Table.Selected()
	if !ok || r.inFlightID == "" {
		return nil
	}
	return r
}

func (p *Logs) cancellable() []*trafficRow {
	if !p.IsTraffic() {
		return nil
	}
	rows := slices.DeleteFunc(p.Traffic.Table.Marked(), func(r *trafficRow) bool { return r.inFlightID == "" })
	if r := p.selectedInFlight(); len(rows) == 0 && r != nil {
		rows = append(rows, r)
	}
	return rows
}

// WhyNotCancel returns why no request here can be cancelled, or "".
func (p *Logs) WhyNotCancel() string {
	switch r, ok := p.Traffic.Table.Selected(); {
	case len(p.cancellable()) > 0:
		return ""
	case !p.IsTraffic() || !ok:
		return "no request selected"
	case isNotification(&r.TrafficRecord):
		return "a notification cannot be cancelled"
	}
	return "this request has already finished"
}

// Cancel cancels the marked requests or the one under the cursor. It asks first if one
// belongs to a client.
func (p *Logs) Cancel() tea.Cmd { return p.cancel(p.cancellable()) }

func (p *Logs) cancel(rows []*trafficRow) tea.Cmd {
	a := p.app
	var all []func() tea.Cmd
	var asked []*trafficRow
	for _, r := range rows {
		all = append(all, func() tea.Cmd {
			return func() tea.Msg {
				done := a.Backend.CancelRequest(r.Session, r.inFlightID)
				return keys.FuncMsg(func() tea.Cmd {
					if !done {
						return a.Complain("%s %s has already finished", uicontext.SanitizeLine(r.Method), uicontext.SanitizeLine(r.Name))
					}
					a.Say("Cancelled %s %s", uicontext.SanitizeLine(r.Method), uicontext.SanitizeLine(r.Name))
					return p.ReadInFlight()
				})
			}
		})
		if r.Session != a.Backend.Session() {
			asked = append(asked, r)
		}
	}
	cancel := func() tea.Cmd {
		p.Traffic.Table.ClearMarks()
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
		Screen: a.Context, Title: "Cancel " + strings.TrimSpace(uicontext.SanitizeLine(r.Method)+" "+uicontext.SanitizeLine(r.Name)) + "?",
		Text: []string{uicontext.SanitizeLine(cmp.Or(r.Client, "A client")) + " has waited " + termtext.Age(p.elapsed(r)) + " and will be notified."},
		Yes:  "cancel request", Then: cancel,
	}
	if n := len(asked); n > 1 {
		c.Title, c.Yes = fmt.Sprintf("Cancel %d requests?", n), "cancel requests"
		c.Text = []string{fmt.Sprintf("Their clients have waited up to %s and will be notified.", termtext.Age(p.elapsed(r)))}
	}
	return a.Push(c)
}

// removeInFlight reports whether it removed a finished request.
func (p *Logs) removeInFlight(at requestKey) (was bool) {
	p.inFlight.ended[at] = p.inFlight.reads
	for _, rows := range []*[]*trafficRow{&p.inFlight.rows, &p.Traffic.extra} {
		if i := indexOfRequest(*rows, at); i >= 0 {
			*rows, was = slices.Concat((*rows)[:i], (*rows)[i+1:]), true // commands read the old slice
		}
	}
	return was
}
