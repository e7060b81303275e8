// Package activity counts the requests to each server and draws the counts.
//
// A [History] reads the traffic journal at the UI's beats, never while a request is
// handled. All methods must run on the UI's Update goroutine.
package activity

import (
	"fmt"
	"math"
	"strings"
	"time"

	"goblin/registry"
	"goblin/registry/report"
	"goblin/registry/termtext"
	"goblin/tui/chart"
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

// History counts the requests to each server: in the last minutes, and since the oldest
// record in the journal when the UI started. Records that the journal dropped before are
// not counted.
type History struct {
	failed  func(*registry.TrafficRecord) bool
	next    uint64
	all     slotRing
	servers map[string]*slotRing
	totals  map[string]*totals
}

// maxTotals limits the servers with totals. Removed servers keep theirs.
const maxTotals = 2048

// totals are all requests to a server that the History has read.
type totals struct {
	since     time.Time
	requests  int
	cancelled int
	user      waits
	start     waits
	durations [report.Bins]uint64
}

type waits struct {
	calls int
	time  time.Duration
}

func (w *waits) add(d time.Duration) {
	if d > 0 {
		w.calls++
		w.time += d
	}
}

func (t *totals) add(rec *registry.TrafficRecord) {
	if t.requests == 0 || rec.Time.Before(t.since) {
		t.since = rec.Time
	}
	t.requests++
	if rec.Status == registry.StatusCancelled || rec.Status == registry.StatusLeft {
		t.cancelled++
	}
	t.user.add(rec.UserWait)
	t.start.add(rec.StartWait)
	if took, measured := rec.ServerTime(); measured {
		t.durations[report.BinOf(took)]++
	}
}

// NewHistory returns an empty History. failed reports whether a record is a failure.
func NewHistory(failed func(*registry.TrafficRecord) bool) *History {
	return &History{failed: failed, servers: make(map[string]*slotRing), totals: make(map[string]*totals)}
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
	if rec.Status == registry.StatusNotification || rec.Direction != registry.ToServer {
		return
	}
	all := p.totals[rec.Server]
	if all == nil && len(p.totals) < maxTotals {
		all = &totals{}
		p.totals[rec.Server] = all
	}
	if all != nil {
		all.add(rec)
	}
	if slotNumber(now)-at >= numSlots || at > slotNumber(now)+1 {
		return
	}
	s := p.servers[rec.Server]
	if s == nil {
		s = new(slotRing)
		p.servers[rec.Server] = s
	}
	failed := p.failed(rec)
	took, measured := rec.ServerTime()
	for _, s := range []*slotRing{s, &p.all} {
		c := &s[at%numSlots]
		if c.number != at {
			*c = slot{number: at}
		}
		c.requests++
		switch {
		case failed:
			c.failed++
		case measured:
			c.answered++
			c.took += took
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

// plotWidth is the width of the charts, in cells. Text as wide fits in each detail.
const plotWidth = 44

// Sections returns the charts, waits and durations of a server's requests.
func (p *History) Sections(lk *theme.Theme, now time.Time, server string) []viewer.Section {
	all := p.totals[server]
	if all == nil {
		return nil
	}
	out := p.plots(lk, now, server)
	p50, p95 := report.Quantile(&all.durations, 0.5), report.Quantile(&all.durations, 0.95)
	waited := func(w waits) string {
		if w.calls == 0 {
			return ""
		}
		return termtext.Count(w.calls, "request") + ", " + uicontext.FormatDuration(w.time)
	}
	text := func(label, value string) viewer.Field { return viewer.Field{Label: label, Value: value} }
	fields := []viewer.Field{
		text("requests", uicontext.FormatCount(all.requests)),
		text("p50, p95", strings.TrimPrefix(termtext.Millis(p50)+", "+termtext.Millis(p95), ", ")),
		text("waited for user", waited(all.user)), text("server start", waited(all.start)),
	}
	if all.cancelled > 0 {
		fields = append(fields, text("cancelled", uicontext.FormatCount(all.cancelled)))
	}
	out = append(out, viewer.Section{Title: "Since " + all.since.Format("15:04:05"), Kind: viewer.Fields, Fields: fields})
	if lines := chart.Histogram(lk, report.Distribution(&all.durations), p50, p95, plotWidth+4); len(lines) > 0 {
		out = append(out, viewer.Section{Title: "Durations", Kind: viewer.Text, Text: strings.Join(lines, "\n")})
	}
	return out
}

// plots returns the charts of the last minutes.
func (p *History) plots(lk *theme.Theme, now time.Time, server string) []viewer.Section {
	s := p.servers[server]
	if s == nil {
		return nil
	}
	sum := s.total(now)
	var out []viewer.Section
	plot := func(title string, what Measure, format func(float64) string) {
		values := s.last(now, what, numSlots)
		if low, high, _ := chart.Range(values); low == 0 && high == 0 {
			return
		}
		if what == LatencySeries {
			for i, v := range values {
				if v == 0 {
					values[i] = math.NaN() // no answer
				}
			}
		}
		start := now.Add(-numSlots * slotSeconds * time.Second)
		lines := chart.Plot(lk, chart.Series{Values: values, FromZero: true, Format: format, From: start.Format("15:04:05"), To: now.Format("15:04:05")}, plotWidth, 3)
		out = append(out, viewer.Section{Title: title, Kind: viewer.Text, Text: strings.Join(lines, "\n")})
	}
	count := func(v float64) string { return uicontext.FormatCount(int(v)) }
	plot(fmt.Sprintf("Requests: %s in %d min", uicontext.FormatCount(sum.requests), numSlots*slotSeconds/60), Requests, count)
	plot(fmt.Sprintf("Failed: %s", uicontext.FormatCount(sum.failed)), Failures, count)
	if sum.answered > 0 {
		mean := sum.took / time.Duration(sum.answered)
		plot("Times: "+uicontext.FormatDuration(mean)+" on average", LatencySeries, func(v float64) string { return termtext.Millis(v * 1000) })
	}
	return out
}
