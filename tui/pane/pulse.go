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
	spans = 30 // that are kept, so five minutes
	span  = 10 // seconds
	chunk = 512
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
	all     series
	servers map[string]*series
}

// NewHistory is an empty one; failed says which records are failures.
func NewHistory(failed func(*registry.TrafficRecord) bool) *History {
	return &History{failed: failed, servers: make(map[string]*series)}
}

// series is a ring: the span of a time stands at that time modulo their number.
type series [spans]counts

type counts struct {
	at                      int64 // which span, since 1970
	asked, failed, answered int
	took                    time.Duration
}

// Read takes over what the journal got since the last time. The journal is locked for a
// few records at a time: who appends to it has a request to answer.
func (p *History) Read(j *registry.TrafficJournal, now time.Time) {
	if j.Stats().Next <= p.next {
		return
	}
	for {
		recs := j.Window(p.next, chunk)
		for i := range recs {
			p.next = recs[i].Seq + 1
			p.add(&recs[i], now)
		}
		if len(recs) < chunk {
			break
		}
	}
	for server, s := range p.servers { // a server that is gone is asked no more
		if s.total(now).asked == 0 {
			delete(p.servers, server)
		}
	}
}

func (p *History) add(rec *registry.TrafficRecord, now time.Time) {
	at := spanOf(rec.Time.Add(rec.Duration))
	if rec.Status == registry.StatusNotification || rec.Direction != registry.ToServer || spanOf(now)-at >= spans || at > spanOf(now)+1 {
		return
	}
	s := p.servers[rec.Server]
	if s == nil {
		s = new(series)
		p.servers[rec.Server] = s
	}
	failed := p.failed(rec)
	for _, s := range []*series{s, &p.all} {
		c := &s[at%spans]
		if c.at != at {
			*c = counts{at: at}
		}
		c.asked++
		switch {
		case failed:
			c.failed++
		case rec.Status != registry.StatusCancelled && rec.Status != registry.StatusLeft && !rec.UserAsked:
			c.answered++
			c.took += rec.Duration
		}
	}
}

func spanOf(t time.Time) int64 { return t.Unix() / span }

// last are the values of the last n spans, the one of now at the end.
func (s *series) last(now time.Time, what Measure, n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		at := spanOf(now) - int64(n-1-i)
		c := &s[at%spans]
		switch {
		case c.at != at:
		case what == Requests:
			out[i] = float64(c.asked)
		case what == Failures:
			out[i] = float64(c.failed)
		case c.answered > 0:
			out[i] = (c.took / time.Duration(c.answered)).Seconds()
		}
	}
	return out
}

// total is the sum of all spans that are not over.
func (s *series) total(now time.Time) counts {
	var sum counts
	for i := range s {
		if c := &s[i]; spanOf(now)-c.at < spans {
			sum.asked, sum.failed = sum.asked+c.asked, sum.failed+c.failed
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
	return lk.Spark(s.last(now, what, min(w, spans)))
}

// Short are the lines of all servers together, each of w spans, with their names.
func (p *History) Short(lk *theme.Theme, now time.Time, w int) []string {
	var out []string
	for what, name := range []string{"req", "err", "ms"} {
		if line := lk.Spark(p.all.last(now, Measure(what), min(w, spans))); line != "" {
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
		line := lk.Spark(s.last(now, what, spans))
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
		fact("requests", Requests, fmt.Sprintf("%s in %d min", uicontext.FormatCount(sum.asked), spans*span/60)),
		fact("failed", Failures, uicontext.FormatCount(sum.failed)),
		fact("took", LatencySeries, uicontext.FormatDuration(mean)+" on average"),
	}
}
