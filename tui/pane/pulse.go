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
	slotSeconds = 10 // length in seconds
	readSize    = 512
)

// Measure is a counted quantity.
type Measure int

// The measures.
const (
	Requests Measure = iota
	Failures
	LatencySeries // mean latency, in seconds
)

// History counts the requests to each server in the last minutes, drawn as sparklines. It
// reads the traffic journal at the UI's beats, never while a request is handled. Records
// that the journal dropped before are not counted. It must run on the UI's Update
// goroutine.
type History struct {
	failed  func(*registry.TrafficRecord) bool
	next    uint64
	all     slotRing
	servers map[string]*slotRing
}

// NewHistory returns an empty History. failed reports whether a record is a failure.
func NewHistory(failed func(*registry.TrafficRecord) bool) *History {
	return &History{failed: failed, servers: make(map[string]*slotRing)}
}

// slotRing is a ring of slots, indexed by their number modulo numSlots.
type slotRing [numSlots]slot

type slot struct {
	number                     int64 // since 1970
	requests, failed, answered int
	took                       time.Duration
}

// Read reads new records of the journal. It locks the journal for a few records at a
// time, because request handlers append to it.
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
	for server, s := range p.servers { // unused and removed servers
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

// Line draws the last w slots of a server, or returns "" if they are empty.
func (p *History) Line(lk *theme.Theme, now time.Time, server string, what Measure, w int) string {
	s := p.servers[server]
	if s == nil {
		return ""
	}
	return lk.Spark(s.last(now, what, min(w, numSlots)))
}

// Short returns the sparklines of all servers together, with their names.
func (p *History) Short(lk *theme.Theme, now time.Time, w int) []string {
	var out []string
	for what, name := range []string{"req", "err", "ms"} {
		if line := lk.Spark(p.all.last(now, Measure(what), min(w, numSlots))); line != "" {
			out = append(out, lk.Dim.On(name+" ")+p.Style(lk, Measure(what)).On(line))
		}
	}
	return out
}

// Style returns the style of a measure's sparkline.
func (p *History) Style(lk *theme.Theme, what Measure) theme.Style {
	return [...]theme.Style{lk.Good, lk.Bad, lk.Warn}[what]
}

// Fields returns the sparklines and sums of a server.
func (p *History) Fields(lk *theme.Theme, now time.Time, server string) []viewer.Field {
	s := p.servers[server]
	if s == nil {
		return nil
	}
	sum := s.total(now)
	fact := func(label string, what Measure, text string) viewer.Field {
		line := lk.Spark(s.last(now, what, numSlots))
		if line == "" {
			return viewer.Field{Label: label} // not shown
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
