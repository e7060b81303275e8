package pane

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry"
	"goblin/registry/termtext"
	"goblin/tui/dialog"
	"goblin/tui/keys"
	"goblin/tui/uicontext"
)

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
