package telemetry

import (
	"cmp"
	"context"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"goblin/registry"
	"goblin/registry/report"
)

const (
	// Limits on separately counted tools, servers and clients; further ones count in the
	// sums.
	maxTools   = 4096
	maxServers = 1024
	maxClients = 256
	maxLabels  = 4096
	// maxName is the maximum length of a name, in bytes.
	maxName = 512
	// saveInterval is the minimum time between writes.
	saveInterval = time.Minute
)

// MeteredCall is an answered call of a tool.
type MeteredCall struct {
	Server, Tool, Client string
	At                   time.Time
	Duration             time.Duration
	Bytes                int // of the answer
	Failed               bool
	Cancelled            bool          // or its client left
	NoDuration           bool          // Duration does not measure the server
	UserWait             time.Duration // for the user
	StartWait            time.Duration // for the server's start; not part of Duration
}

// MeteredCallOf returns the call of a tool in a record. tool is the server's own name.
func MeteredCallOf(rec *registry.TrafficRecord, tool string) MeteredCall {
	took, measured := rec.ServerTime()
	cancelled := rec.Status == registry.StatusCancelled || rec.Status == registry.StatusLeft
	return MeteredCall{
		Server: rec.Server, Tool: tool, Client: rec.Client, At: rec.Time, Duration: took, Bytes: int(rec.Size),
		Failed: !cancelled && rec.Status != StatusLabel(true), Cancelled: cancelled, NoDuration: !measured,
		UserWait: rec.UserWait, StartWait: rec.StartWait,
	}
}

// ListedTool is a tool as clients see it.
type ListedTool struct {
	Server, Tool, Name string
	Bytes              int  // of the definition
	Disabled           bool // hidden from all clients
	Unlisted           bool // in no list, so without a row
}

// rowKey identifies a server, tool or client.
type rowKey struct {
	client       bool
	server, name string
}

// callLabels identifies a call's server, tool and client.
type callLabels struct{ server, tool, client string }

type counters struct {
	counts             // not yet in the file
	minutes [60]minute // by minute of the hour
}

type minute struct {
	at            int64 // minutes since 1970
	calls, errors uint32
	duration      time.Duration
	timedCalls    uint32
}

// counts are also in the file.
type counts struct {
	calls, errors, bytes uint64
	last                 int64 // seconds since 1970, or 0
	durations            [report.Bins]uint64
	waits, waitMillis    uint64 // calls that waited for the user
	starts, startMillis  uint64 // calls that waited for the server's start
	cancelled            uint64 // calls that were cancelled, or whose client left
}

func (c *counts) add(o *counts) {
	c.calls += o.calls
	c.errors += o.errors
	c.bytes += o.bytes
	c.last = max(c.last, o.last)
	c.waits += o.waits
	c.waitMillis += o.waitMillis
	c.starts += o.starts
	c.startMillis += o.startMillis
	c.cancelled += o.cancelled
	for i, n := range o.durations {
		c.durations[i] += n
	}
}

// addCall counts a call. at is in Unix seconds.
func (r *counters) addCall(c *MeteredCall, at int64, bin int) {
	m := &r.minutes[at/60%60]
	if m.at != at/60 {
		*m = minute{at: at / 60}
	}
	r.calls++
	m.calls++
	if c.Failed {
		r.errors++
		m.errors++
	}
	r.bytes += uint64(max(c.Bytes, 0))
	r.last = max(r.last, at)
	if c.UserWait > 0 {
		r.waits++
		r.waitMillis += uint64(c.UserWait.Milliseconds())
	}
	if c.StartWait > 0 {
		r.starts++
		r.startMillis += uint64(c.StartWait.Milliseconds())
	}
	if c.Cancelled {
		r.cancelled++
	}
	if !c.NoDuration {
		r.durations[bin]++
		m.duration += c.Duration
		m.timedCalls++
	}
}

// MeterOptions configures a Meter.
type MeterOptions struct {
	Path   string              // "": nothing is saved
	Logger *slog.Logger        // for failures to save; may be nil
	Listed func() []ListedTool // visible tools
	Now    func() time.Time
}

// Meter counts calls per server, tool and client, over restarts. Once a minute it adds
// them to a file, which other processes may share. A nil Meter counts nothing.
// [Meter.Add] never waits for I/O and allocates only for new names. All methods are safe
// for concurrent use.
type Meter struct {
	o        MeterOptions
	openTime time.Time

	mu               sync.Mutex
	all              counters
	rows             map[rowKey]*counters
	labels           map[callLabels]*labelCounters // cache
	lastLabels       *labelCounters                // most calls equal the previous one
	rowCounts        [3]int                        // servers, tools and clients
	saved            *usageState                   // content of the file; immutable
	writeErrorLogged bool

	saving      sync.Mutex
	replaced    bool // moved a bad file aside
	disabled    bool // found another bad file: nothing is saved
	listWritten bool // the file has listed tools
}

// OpenMeter reads the file. It logs and moves aside a bad one.
func OpenMeter(o MeterOptions) *Meter {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Listed == nil {
		o.Listed = func() []ListedTool { return nil }
	}
	now := o.Now()
	m := &Meter{o: o, openTime: now, rows: make(map[rowKey]*counters), labels: make(map[callLabels]*labelCounters), saved: &usageState{start: now.Unix()}}
	m.saving.Lock()
	defer m.saving.Unlock()
	if s := m.read(); s != nil {
		m.saved = s
	}
	return m
}

// Add counts a call. A nil Meter counts nothing.
func (m *Meter) Add(c MeteredCall) {
	if m == nil {
		return
	}
	at, bin := c.At.Unix(), report.BinOf(c.Duration)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all.addCall(&c, at, bin)
	for _, r := range m.counters(callLabels{c.Server, c.Tool, c.Client}) {
		if r != nil {
			r.addCall(&c, at, bin)
		}
	}
}

// labelCounters holds counters, nil above the limits, which are never replaced.
type labelCounters struct {
	labels callLabels
	rows   [3]*counters
}

func (m *Meter) counters(w callLabels) [3]*counters {
	if m.lastLabels != nil && m.lastLabels.labels == w {
		return m.lastLabels.rows
	}
	k := m.labels[w]
	if k == nil {
		k = &labelCounters{rows: [3]*counters{m.row(rowKey{server: w.server}), m.row(rowKey{server: w.server, name: w.tool}), m.row(rowKey{client: true, name: w.client})}}
		if len(w.tool) > maxName || len(w.client) > maxName {
			return k.rows
		}
		if len(m.labels) >= maxLabels {
			clear(m.labels)
		}
		k.labels = callLabels{strings.Clone(w.server), strings.Clone(w.tool), strings.Clone(w.client)}
		m.labels[k.labels] = k
	}
	m.lastLabels = k
	return k.rows
}

// row returns nil above the limits.
func (m *Meter) row(k rowKey) *counters {
	if len(k.name) > maxName {
		k.name = k.name[:maxName]
	}
	if r := m.rows[k]; r != nil {
		return r
	}
	class := k.class()
	if m.rowCounts[class] >= rowLimits[class] {
		return nil
	}
	m.rowCounts[class]++
	r := &counters{}
	m.rows[rowKey{k.client, strings.Clone(k.server), strings.Clone(k.name)}] = r
	return r
}

var rowLimits = [3]int{maxServers, maxTools, maxClients}

// class returns 0 for a server, 1 for a tool and 2 for a client.
func (k rowKey) class() int {
	switch {
	case k.client:
		return 2
	case k.name != "":
		return 1
	}
	return 0
}

// Run saves counts periodically and when ctx ends.
func (m *Meter) Run(ctx context.Context) {
	tick := time.NewTicker(saveInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			m.Save()
		case <-ctx.Done():
			m.Save()
			return
		}
	}
}

// total returns all processes' counts, and this one's minutes.
func (m *Meter) total() (*usageState, map[rowKey]*[60]minute) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.saved.clone()
	hours := make(map[rowKey]*[60]minute, len(m.rows)+1)
	s.all.add(&m.all.counts)
	for k, r := range m.rows {
		if r.calls > 0 {
			s.row(k).add(&r.counts)
		}
		minutes := r.minutes
		hours[k] = &minutes
	}
	minutes := m.all.minutes
	hours[rowKey{}] = &minutes
	return s, hours
}

// Report returns the usage with the listed tools. It only has clients with calls.
func (m *Meter) Report() report.Report {
	if m == nil {
		m = OpenMeter(MeterOptions{})
	}
	s, hours := m.total()
	if listed := m.o.Listed(); len(listed) > 0 {
		s.list(listed)
	}
	now := m.o.Now()
	r := s.report(now)
	if s.start < m.openTime.Unix() && now.Sub(m.openTime) < time.Hour {
		r.Minutes = m.openTime.UTC().Truncate(time.Second)
	}
	r.All.Hour = lastHour(hours[rowKey{}], now)
	for i := range r.Servers {
		r.Servers[i].Hour = lastHour(hours[rowKey{server: r.Servers[i].Name}], now)
	}
	for i := range r.Tools {
		r.Tools[i].Hour = lastHour(hours[rowKey{server: r.Tools[i].Server, name: r.Tools[i].Name}], now)
	}
	for i := range r.Clients {
		r.Clients[i].Hour = lastHour(hours[rowKey{client: true, name: r.Clients[i].Name}], now)
	}
	return r
}

// ForEach yields the counts of tools and clients with calls.
func (m *Meter) ForEach(yield func(server, tool, client string, calls, errors, bytes uint64)) {
	s, _ := m.total()
	for k, r := range s.rows {
		if r.calls > 0 && k.class() != 0 {
			client := ""
			if k.client {
				k.name, client = "", k.name
			}
			yield(k.server, k.name, client, r.calls, r.errors, r.bytes)
		}
	}
}

// lastHour returns nil without calls.
func lastHour(minutes *[60]minute, now time.Time) []report.Minute {
	if minutes == nil {
		return nil
	}
	last, any := now.Unix()/60, false
	out := make([]report.Minute, 60)
	for i := range out {
		at := last - 59 + int64(i)
		m := &minutes[(at%60+60)%60]
		if m.at != at || m.calls == 0 {
			continue
		}
		any = true
		out[i] = report.Minute{Calls: m.calls, Errors: m.errors}
		if m.timedCalls > 0 {
			out[i].NoDuration = m.calls - m.timedCalls
			out[i].Millis = toMillis(float64(m.duration) / float64(time.Millisecond) / float64(m.timedCalls))
		}
	}
	if !any {
		return nil
	}
	return out
}

func toMillis(ms float64) float64 { return math.Round(ms*100) / 100 }

func (c *counts) figures() report.Figures {
	f := report.Figures{
		Calls: c.calls, Errors: c.errors, Bytes: c.bytes, P50: toMillis(report.Quantile(&c.durations, 0.5)), P95: toMillis(report.Quantile(&c.durations, 0.95)),
		Waits: c.waits, WaitedMs: c.waitMillis, Starts: c.starts, StartMs: c.startMillis, Cancelled: c.cancelled, Spread: report.Distribution(&c.durations),
	}
	if c.last > 0 {
		f.LastUsed = time.Unix(c.last, 0).UTC()
	}
	return f
}

// report omits the last hour.
func (s *usageState) report(now time.Time) report.Report {
	r := report.Report{
		Since: time.Unix(s.start, 0).UTC(), All: s.all.figures(), Latency: report.Distribution(&s.all.durations),
		Servers: []report.Server{}, Tools: []report.Tool{}, Clients: []report.Client{},
	}
	before := now.Add(-report.UnusedAfter).Unix()
	idle := make(map[string]int)
	for k, c := range s.rows {
		switch k.class() {
		case 1:
			t := report.Tool{
				Server: k.server, Name: k.name, Listed: c.listed, Disabled: c.disabled, Unused: c.definition > 0 && c.last < before,
				Definitions: report.DefinitionSize(c.definition), Figures: c.figures(),
			}
			if t.Unused {
				idle[k.server]++
			}
			r.Tools = append(r.Tools, t)
		case 2:
			r.Clients = append(r.Clients, report.Client{Name: k.name, Figures: c.figures()})
		}
	}
	for k, c := range s.rows {
		if k.class() == 0 {
			r.Servers = append(r.Servers, report.Server{Name: k.server, Tools: c.tools, UnusedTools: idle[k.server], Definitions: report.DefinitionSize(c.definition), Figures: c.figures()})
		}
	}
	r.Sort()
	return r
}

// list updates the servers that list tools.
func (s *usageState) list(all []ListedTool) {
	listing := make(map[string]bool)
	for _, l := range all {
		listing[l.Server] = true
	}
	for k, c := range s.rows {
		if !k.client && listing[k.server] {
			c.definition = 0
			c.tools = 0
			c.listed = ""
			c.disabled = false
		}
	}
	for _, l := range all {
		if l.Unlisted {
			continue
		}
		server := s.row(rowKey{server: l.Server})
		tool := s.row(rowKey{server: l.Server, name: l.Tool})
		tool.listed, tool.disabled = l.Name, l.Disabled
		if l.Disabled {
			continue // costs no tokens
		}
		server.tools++
		server.definition += l.Bytes
		tool.definition = l.Bytes
	}
}

// trim removes missing and long unused rows, and rows over the limits: the longest unused
// first, then the smallest.
func (s *usageState) trim(now time.Time) {
	const maxUnused = 180 * 24 * time.Hour
	var classes [3][]rowKey
	for k, c := range s.rows {
		if c.definition == 0 && !c.disabled && c.last < now.Add(-maxUnused).Unix() {
			delete(s.rows, k)
			continue
		}
		classes[k.class()] = append(classes[k.class()], k)
	}
	for class, keys := range classes {
		if len(keys) <= rowLimits[class] {
			continue
		}
		slices.SortFunc(keys, func(a, b rowKey) int {
			x, y := s.rows[a], s.rows[b]
			return cmp.Or(cmp.Compare(y.last, x.last), cmp.Compare(y.definition, x.definition), strings.Compare(a.server, b.server), strings.Compare(a.name, b.name))
		})
		for _, k := range keys[rowLimits[class]:] {
			delete(s.rows, k)
		}
	}
}
