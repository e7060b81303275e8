// Pulse is what was asked of servers in the last minutes, as one screen saw it in
// the journal of traffic: requests, failures and how long answers took, in short spans of
// time, and as lines and facts to be drawn.
//
// It reads the journal when its screen's clock beats, never on the way of a request, and
// costs a comparison when nothing was asked since. What the journal has dropped before it
// was read is not counted. It knows no pane; it belongs to the goroutine of one screen's
// Update and View.

package pane

import (
	"fmt"
	"time"

	"goblin/registry"
	"goblin/tui/theme"
	"goblin/tui/uicontext"
	"goblin/tui/viewer"
)

const (
	numSlots    = 30 // five minutes
	slotSeconds = 10 // seconds
	readSize    = 512
)

// Measure is counted.
type Measure int

// All of it.
const (
	Requests Measure = iota
	Failures
	LatencySeries // the mean time of answers, in seconds
)

// History has what was asked of each server.
type History struct {
	failed  func(*registry.TrafficRecord) bool
	next    uint64 // record of the journal that is read next
	all     slotRing
	servers map[string]*slotRing
}

// NewHistory is an empty one; failed says which records are failures.
func NewHistory(failed func(*registry.TrafficRecord) bool) *History {
	return &History{failed: failed, servers: make(map[string]*slotRing)}
}

// slotRing is a ring of slots. A slot's index is its number since 1970, modulo numSlots.
type slotRing [numSlots]slot

type slot struct {
	number                     int64 // since 1970
	requests, failed, answered int
	took                       time.Duration
}

// Read takes over what the journal got since the last time. The journal is locked for a
// few records at a time: who appends to it has a request to answer.
func (p *History) Read(j *registry.TrafficJournal, now time.Time) {
	if j.Stats().Next <= p.next {
		return
	}
	for {
		recs := j.Window(p.next, readSize)
		for i := range recs {
			p.next = recs[i].Seq + 1
			p.add(&recs[i], now)
		}
		if len(recs) < readSize {
			break
		}
	}
	for server, s := range p.servers { // a server that is gone is asked no more
		if s.total(now).requests == 0 {
			delete(p.servers, server)
		}
	}
}

func (p *History) add(rec *registry.TrafficRecord, now time.Time) {
	at := slotNumber(rec.Time.Add(rec.Duration))
	if rec.Status == registry.StatusNotification || rec.Direction != registry.ToServer || slotNumber(now)-at >= numSlots || at > slotNumber(now)+1 {
		return
	}
	s := p.servers[rec.Server]
	if s == nil {
		s = new(slotRing)
		p.servers[rec.Server] = s
	}
	failed := p.failed(rec)
	for _, s := range []*slotRing{s, &p.all} {
		c := &s[at%numSlots]
		if c.number != at {
			*c = slot{number: at}
		}
		c.requests++
		switch {
		case failed:
			c.failed++
		case rec.Status != registry.StatusCancelled && rec.Status != registry.StatusLeft && !rec.UserAsked:
			c.answered++
			c.took += rec.Duration
		}
	}
}

func slotNumber(t time.Time) int64 { return t.Unix() / slotSeconds }

// last are the values of the last n spans, the one of now at the end.
func (s *slotRing) last(now time.Time, what Measure, n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		at := slotNumber(now) - int64(n-1-i)
		c := &s[at%numSlots]
		switch {
		case c.number != at:
		case what == Requests:
			out[i] = float64(c.requests)
		case what == Failures:
			out[i] = float64(c.failed)
		case c.answered > 0:
			out[i] = (c.took / time.Duration(c.answered)).Seconds()
		}
	}
	return out
}

// total is the sum of all spans that are not over.
func (s *slotRing) total(now time.Time) slot {
	var sum slot
	for i := range s {
		if c := &s[i]; slotNumber(now)-c.number < numSlots {
			sum.requests, sum.failed = sum.requests+c.requests, sum.failed+c.failed
			sum.answered, sum.took = sum.answered+c.answered, sum.took+c.took
		}
	}
	return sum
}

// Line draws the last w spans of a server, as high as the highest of them; "" if there
// is nothing to draw.
func (p *History) Line(lk *theme.Theme, now time.Time, server string, what Measure, w int) string {
	s := p.servers[server]
	if s == nil {
		return ""
	}
	return lk.Spark(s.last(now, what, min(w, numSlots)))
}

// Short are the lines of all servers together, each of w spans, with their names.
func (p *History) Short(lk *theme.Theme, now time.Time, w int) []string {
	var out []string
	for what, name := range []string{"req", "err", "ms"} {
		if line := lk.Spark(p.all.last(now, Measure(what), min(w, numSlots))); line != "" {
			out = append(out, lk.Dim.On(name+" ")+p.Style(lk, Measure(what)).On(line))
		}
	}
	return out
}

// Style is how a line of it is drawn.
func (p *History) Style(lk *theme.Theme, what Measure) theme.Style {
	return [...]theme.Style{lk.Good, lk.Bad, lk.Warn}[what]
}

// Fields tell of a server at length.
func (p *History) Fields(lk *theme.Theme, now time.Time, server string) []viewer.Field {
	s := p.servers[server]
	if s == nil {
		return nil
	}
	sum := s.total(now)
	fact := func(label string, what Measure, text string) viewer.Field {
		line := lk.Spark(s.last(now, what, numSlots))
		if line == "" {
			return viewer.Field{Label: label} // which is not shown
		}
		return viewer.Field{Label: label, Value: line + " " + text}
	}
	mean := time.Duration(0)
	if sum.answered > 0 {
		mean = sum.took / time.Duration(sum.answered)
	}
	return []viewer.Field{
		fact("requests", Requests, fmt.Sprintf("%s in %d min", uicontext.FormatCount(sum.requests), numSlots*slotSeconds/60)),
		fact("failed", Failures, uicontext.FormatCount(sum.failed)),
		fact("took", LatencySeries, uicontext.FormatDuration(mean)+" on average"),
	}
}
