package registry

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"time"

	"goblin/registry/latency"
	"goblin/registry/ring"
	"goblin/registry/wire"
)

// Bounds of the journals.
const (
	maxLogRecords     = 10_000
	maxLogBytes       = 4 << 20
	maxLogText        = 16 << 10
	maxTrafficRecords = 10_000
	maxBody           = 64 << 10
	maxBodies         = 8 << 20
	maxField          = 1 << 10 // names and the like in records
)

// JournalStats says what a journal holds and what it no longer does.
type JournalStats = ring.Stats

// The values of LogRecord.Source.
const (
	SourceStderr  = "stderr"  // a line of a child's stderr
	SourceMessage = "message" // a server's notifications/message
	SourceGoblin  = "goblin"
	SourceEvent   = "event" // what changed in the catalog or the cache, written by the registry
)

// LogRecord is a line of a log. Redaction is the caller's business: what is
// written here is shown.
type LogRecord struct {
	Seq     uint64 // filled by Append
	Time    time.Time
	Server  string
	Session string
	Level   slog.Level
	Source  string
	Text    string // cut at 16 KiB
}

// LogJournal keeps 10,000 log records, at most 4 MiB of text. When it is full the
// server that has most gives up its oldest one, so that a server which says much
// displaces its own lines only. What belongs to no server counts as one.
type LogJournal struct {
	mu    sync.Mutex
	ring  ring.Ring[LogRecord]
	bytes int
	feed  *feed
}

// Append adds a record and returns its number. Its cost does not grow with the
// journal; it allocates only while that still grows, and for texts over the bound.
func (j *LogJournal) Append(rec LogRecord) uint64 {
	rec.Text = bounded(rec.Text, maxLogText)
	rec.Server, rec.Session = bounded(rec.Server, maxField), bounded(rec.Session, maxField)
	j.mu.Lock()
	size := len(rec.Text)
	for j.bytes+size > maxLogBytes {
		j.ring.EvictLargest(j.left)
	}
	j.bytes += size
	kept, seq := j.ring.Put(rec.Server, size, j.left)
	*kept = rec
	kept.Seq = seq
	j.mu.Unlock()
	j.feed.publish(Logs)
	return seq
}

// left takes off what a record weighed that makes room.
func (j *LogJournal) left(rec *LogRecord) int {
	j.bytes -= len(rec.Text)
	return len(rec.Text)
}

// Window copies at most n records (all when n < 0) from number from on, which
// may be gone already: the copy then begins with the oldest one there.
func (j *LogJournal) Window(from uint64, n int) []LogRecord {
	j.mu.Lock()
	defer j.mu.Unlock()
	out := make([]LogRecord, 0, j.ring.Room(from, n))
	j.ring.Window(from, n, func(rec *LogRecord) { out = append(out, *rec) })
	return out
}

// Stats says which records are there.
func (j *LogJournal) Stats() JournalStats {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.ring.Stats()
}

// Direction is the way a request or notification goes.
type Direction uint8

// The directions.
const (
	ToServer Direction = iota // from a client
	ToClient                  // from a server
)

// Statuses of records besides "success" and "failure".
const (
	StatusNotification = "notification"
	// StatusToolError is that of a tools/call whose result has isError.
	StatusToolError = "tool error"
	// StatusCancelled is that of a request that was withdrawn before its answer.
	StatusCancelled = "cancelled"
	// StatusUnderWay is that of a request which was not answered yet; the journal has none.
	StatusUnderWay = "under way"
)

// TrafficRecord is one request with its answer, or one notification.
// Redaction is the caller's business: what is written here is shown.
type TrafficRecord struct {
	Seq       uint64 // filled by Append
	Time      time.Time
	Session   string // "" for nobody, or for the many of Receivers
	Client    string
	Receivers int // of a notification that went to many sessions at once: how many
	Direction Direction
	Server    string
	Method    string
	Name      string // tool, prompt or URI, as the client spelled it
	Duration  time.Duration
	// Asked: the server asked the client meanwhile, most likely a human, so
	// Duration does not count for [ServerState.Latency].
	Asked  bool
	Size   int64  // bytes of the answer
	Status string // "success", "failure", [StatusNotification], [StatusToolError] or [StatusCancelled]
	Code   int    // of a JSON-RPC error
	// Request and Response are cut at 64 KiB each; Append copies them.
	// Window leaves them out, Record gives them while they are still held.
	Request, Response []byte
	// Wire is how it went over the wire, see [goblin/registry/wire]; kept and given as these.
	Wire []byte
	// RequestSize and ResponseSize are the lengths before the cut.
	RequestSize, ResponseSize int
}

// UnderWay is a request that was not answered yet.
type UnderWay struct {
	TrafficRecord        // without what is known at the end
	ID            string // among those of its session
}

// stored is a record with the place of its bodies.
type stored struct {
	rec             TrafficRecord
	bodies          *page
	uses            uint64 // of the page at that time: it has been emptied since if it has more
	at              int    // in the page
	req, resp, wire int
}

// TrafficJournal keeps 10,000 records, and 8 MiB of their bodies. When it is full
// the server that has most gives up its oldest, as in a [LogJournal].
type TrafficJournal struct {
	mu        sync.Mutex
	ring      ring.Ring[stored]
	bodies    bodies
	asked     uint64 // records that are no notifications
	feed      *feed
	latencies *latency.Servers // of the servers that answered
}

// Append adds a record, copies its bodies and returns its number. O(1); it
// allocates only while the journal still grows.
func (j *TrafficJournal) Append(rec TrafficRecord) uint64 {
	req, resp := rec.Request[:min(len(rec.Request), maxBody)], rec.Response[:min(len(rec.Response), maxBody)]
	how := rec.Wire[:min(len(rec.Wire), wire.Most)]
	rec.RequestSize = max(rec.RequestSize, len(rec.Request))
	rec.ResponseSize = max(rec.ResponseSize, len(rec.Response))
	rec.Request, rec.Response, rec.Wire = nil, nil, nil
	for _, f := range []*string{&rec.Session, &rec.Client, &rec.Server, &rec.Method, &rec.Name, &rec.Status} {
		*f = bounded(*f, maxField)
	}
	j.mu.Lock()
	s, seq := j.ring.Put(rec.Server, 0, (*stored).gone)
	*s = stored{rec: rec, req: len(req), resp: len(resp), wire: len(how)}
	s.rec.Seq = seq
	if len(req)+len(resp)+len(how) > 0 {
		s.bodies, s.at = j.bodies.keep(rec.Server, req, resp, how)
		s.uses = s.bodies.uses
	}
	if rec.Status != StatusNotification {
		j.asked++
	}
	j.mu.Unlock()
	if rec.Direction == ToServer && (rec.Status == "success" || rec.Status == StatusToolError) && !rec.Asked {
		j.latencies.Add(rec.Server, rec.Duration)
	}
	j.feed.publish(Traffic)
	return seq
}

// Bodies lie in pages, each of one server, so that who has most of them can give
// up its oldest.
const (
	pageSize = 2*maxBody + wire.Most // fits any record's
	maxPages = maxBodies / pageSize
)

type page struct {
	text []byte
	born uint64 // counts the pages ever begun
	uses uint64 // counts how often the page was begun
	left int    // records whose bodies are in it and that are still there
}

type bodies struct {
	begun uint64
	room  []byte // for all pages, at once: what is not used of it takes no memory
	used  int
	pages map[string][]*page // of each server, oldest first
}

// keep copies the bodies of a record.
func (b *bodies) keep(server string, req, resp, how []byte) (p *page, at int) {
	if own := b.pages[server]; len(own) > 0 {
		p = own[len(own)-1]
	}
	if p == nil || len(p.text)+len(req)+len(resp)+len(how) > pageSize {
		p = b.begin(server)
	}
	at, p.left = len(p.text), p.left+1
	p.text = append(append(append(p.text, req...), resp...), how...)
	return p, at
}

// gone is told of a record that had to make room.
func (s *stored) gone() int {
	if s.bodies != nil && s.bodies.uses == s.uses {
		s.bodies.left--
	}
	return 0
}

// begin gives a server an empty page: its oldest one if nobody can ask for what is in
// it, else a new one, or the oldest one of those that have most.
func (b *bodies) begin(server string) (p *page) {
	if b.pages == nil {
		b.pages = make(map[string][]*page)
	}
	if own := b.pages[server]; len(own) > 0 && own[0].left == 0 {
		p = own[0]
		b.pages[server] = append(own[:0], own[1:]...)
	} else if b.used < maxPages {
		if b.room == nil {
			b.room = make([]byte, maxPages*pageSize)
		}
		at := b.used * pageSize
		b.used++
		p = &page{text: b.room[at : at : at+pageSize]}
	} else {
		var from string
		var most []*page
		for s, has := range b.pages {
			if len(has) > len(most) || len(has) == len(most) && has[0].born < most[0].born {
				from, most = s, has
			}
		}
		p = most[0]
		if b.pages[from] = append(most[:0], most[1:]...); len(most) == 1 {
			delete(b.pages, from)
		}
	}
	b.begun++
	p.born, p.uses, p.left, p.text = b.begun, p.uses+1, 0, p.text[:0]
	b.pages[server] = append(b.pages[server], p)
	return p
}

// read copies one body of a record; nil when it is gone.
func (s *stored) read(at, n int) []byte {
	if n == 0 || s.bodies.uses != s.uses {
		return nil
	}
	return bytes.Clone(s.bodies.text[at : at+n])
}

// Window copies at most n records (all when n < 0) without bodies from number
// from on, which may be gone already: the copy then begins with the oldest
// one there.
func (j *TrafficJournal) Window(from uint64, n int) []TrafficRecord {
	j.mu.Lock()
	defer j.mu.Unlock()
	out := make([]TrafficRecord, 0, j.ring.Room(from, n))
	j.ring.Window(from, n, func(s *stored) { out = append(out, s.rec) })
	return out
}

// Record returns a copy of one record with its bodies. Bodies that had to
// make room are nil; RequestSize and ResponseSize tell them from empty ones.
func (j *TrafficJournal) Record(seq uint64) (TrafficRecord, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := j.ring.Find(seq)
	if s == nil {
		return TrafficRecord{}, false
	}
	rec := s.rec
	rec.Request, rec.Response, rec.Wire = s.read(s.at, s.req), s.read(s.at+s.req, s.resp), s.read(s.at+s.req+s.resp, s.wire)
	return rec, true
}

// Requests counts the records ever appended that are no notifications.
func (j *TrafficJournal) Requests() uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.asked
}

// Stats says which records are there.
func (j *TrafficJournal) Stats() JournalStats {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.ring.Stats()
}

// Logs returns the journal of log lines.
func (r *Registry) Logs() *LogJournal { return &r.logs }

// Traffic returns the journal of requests.
func (r *Registry) Traffic() *TrafficJournal { return &r.traffic }

// bounded returns s, or a copy of its beginning: a cut that shared memory
// with s would keep all of it alive.
func bounded(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.Clone(strings.ToValidUTF8(s[:n], ""))
}
