package registry

import (
	"log/slog"
	"strings"
	"sync"
	"time"
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
type JournalStats struct {
	First   uint64 // sequence number of the oldest record, 0 when empty
	Next    uint64 // number that the next record gets; the first ever is 1
	Dropped uint64 // records overwritten so far
}

// ring keeps the last records, numbered from 1. It grows up to max records
// and then overwrites in place.
type ring[T any] struct {
	max  int
	recs []T
	next uint64 // number of records ever appended
	head uint64 // records gone from the front
}

func (g *ring[T]) at(seq uint64) *T { return &g.recs[(seq-1)%uint64(g.max)] }

// put makes room for the next record and returns its place and number.
func (g *ring[T]) put(rec T) (seq uint64) {
	g.next++
	if len(g.recs) < g.max {
		g.recs = append(g.recs, rec)
	} else {
		*g.at(g.next) = rec
	}
	if g.next-g.head > uint64(g.max) {
		g.head = g.next - uint64(g.max)
	}
	return g.next
}

func (g *ring[T]) has(seq uint64) bool { return seq > g.head && seq <= g.next }

// window clamps [from, from+n) to what is there.
func (g *ring[T]) window(from uint64, n int) (lo, hi uint64) {
	lo, hi = max(from, g.head+1), g.next+1
	if n >= 0 && lo < hi && hi-lo > uint64(n) {
		hi = lo + uint64(n)
	}
	return lo, max(lo, hi)
}

func (g *ring[T]) stats() JournalStats {
	s := JournalStats{Next: g.next + 1, Dropped: g.head}
	if g.next > g.head {
		s.First = g.head + 1
	}
	return s
}

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

// LogJournal keeps the last 10,000 log records, at most 4 MiB of text.
type LogJournal struct {
	mu    sync.Mutex
	ring  ring[LogRecord]
	bytes int
	feed  *feed
}

// Append adds a record and returns its number. O(1) amortised; it allocates
// only while the journal still grows, and for texts over the bound.
func (j *LogJournal) Append(rec LogRecord) uint64 {
	rec.Text = bounded(rec.Text, maxLogText)
	rec.Server, rec.Session = bounded(rec.Server, maxField), bounded(rec.Session, maxField)
	j.mu.Lock()
	if g := &j.ring; g.next-g.head == uint64(g.max) {
		j.evict()
	}
	rec.Seq = j.ring.next + 1
	j.ring.put(rec)
	j.bytes += len(rec.Text)
	for j.bytes > maxLogBytes {
		j.evict()
	}
	j.mu.Unlock()
	j.feed.publish(Logs)
	return rec.Seq
}

func (j *LogJournal) evict() {
	j.ring.head++
	old := j.ring.at(j.ring.head)
	j.bytes -= len(old.Text)
	*old = LogRecord{}
}

// Window copies at most n records (all when n < 0) from number from on, which
// may be gone already: the copy then begins with the oldest one there.
func (j *LogJournal) Window(from uint64, n int) []LogRecord {
	j.mu.Lock()
	defer j.mu.Unlock()
	lo, hi := j.ring.window(from, n)
	out := make([]LogRecord, 0, hi-lo)
	for seq := lo; seq < hi; seq++ {
		out = append(out, *j.ring.at(seq))
	}
	return out
}

// Stats says which records are there.
func (j *LogJournal) Stats() JournalStats {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.ring.stats()
}

// Direction is the way a request or notification goes.
type Direction uint8

// The directions.
const (
	ToServer Direction = iota // from a client
	ToClient                  // from a server
)

// String returns "to server" or "to client".
func (d Direction) String() string {
	if d == ToClient {
		return "to client"
	}
	return "to server"
}

// Statuses of records besides "success" and "failure".
const (
	StatusNotification = "notification"
	// StatusToolError is that of a tools/call whose result has isError.
	StatusToolError = "tool error"
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
	Status string // "success", "failure", [StatusNotification] or [StatusToolError]
	Code   int    // of a JSON-RPC error
	// Request and Response are cut at 64 KiB each; Append copies them.
	// Window leaves them out, Record gives them while they are still held.
	Request, Response []byte
	// RequestSize and ResponseSize are the lengths before the cut.
	RequestSize, ResponseSize int
}

// stored is a record with its bodies' places in the ring of bodies, counted
// from the beginning of time: a body is gone when the ring has moved on by
// more than its size.
type stored struct {
	rec       TrafficRecord
	at        uint64
	req, resp int
}

// TrafficJournal keeps the last 10,000 records and the last 8 MiB of bodies.
type TrafficJournal struct {
	mu     sync.Mutex
	ring   ring[stored]
	bodies []byte // a ring of maxBodies bytes
	end    uint64 // bytes of bodies ever written
	asked  uint64 // records that are no notifications
	feed   *feed

	sessions  *sessions  // whose requests are counted
	latencies *latencies // of the servers that answered
}

// Append adds a record, copies its bodies and returns its number. O(1); it
// allocates only while the journal still grows.
func (j *TrafficJournal) Append(rec TrafficRecord) uint64 {
	s := stored{req: min(len(rec.Request), maxBody), resp: min(len(rec.Response), maxBody)}
	req, resp := rec.Request[:s.req], rec.Response[:s.resp]
	rec.RequestSize = max(rec.RequestSize, len(rec.Request))
	rec.ResponseSize = max(rec.ResponseSize, len(rec.Response))
	rec.Request, rec.Response = nil, nil
	for _, f := range []*string{&rec.Session, &rec.Client, &rec.Server, &rec.Method, &rec.Name, &rec.Status} {
		*f = bounded(*f, maxField)
	}
	j.mu.Lock()
	if j.bodies == nil && len(req)+len(resp) > 0 {
		j.bodies = make([]byte, maxBodies)
	}
	s.at = j.end
	j.write(req)
	j.write(resp)
	rec.Seq = j.ring.next + 1
	s.rec = rec
	j.ring.put(s)
	if rec.Status != StatusNotification {
		j.asked++
	}
	j.mu.Unlock()
	if rec.Session != "" && rec.Direction == ToServer && rec.Status != StatusNotification {
		j.sessions.count(rec.Session)
	}
	if rec.Direction == ToServer && (rec.Status == "success" || rec.Status == StatusToolError) && !rec.Asked {
		j.latencies.add(rec.Server, rec.Duration)
	}
	j.feed.publish(Traffic)
	return rec.Seq
}

func (j *TrafficJournal) write(b []byte) {
	for len(b) > 0 {
		n := copy(j.bodies[j.end%maxBodies:], b)
		j.end += uint64(n)
		b = b[n:]
	}
}

func (j *TrafficJournal) read(at uint64, n int) []byte {
	if n == 0 || j.end-at > maxBodies {
		return nil
	}
	out := make([]byte, 0, n)
	for len(out) < n {
		from := j.bodies[at%maxBodies:]
		from = from[:min(len(from), n-len(out))]
		out = append(out, from...)
		at += uint64(len(from))
	}
	return out
}

// Window copies at most n records (all when n < 0) without bodies from number
// from on, which may be gone already: the copy then begins with the oldest
// one there.
func (j *TrafficJournal) Window(from uint64, n int) []TrafficRecord {
	j.mu.Lock()
	defer j.mu.Unlock()
	lo, hi := j.ring.window(from, n)
	out := make([]TrafficRecord, 0, hi-lo)
	for seq := lo; seq < hi; seq++ {
		out = append(out, j.ring.at(seq).rec)
	}
	return out
}

// Record returns a copy of one record with its bodies. Bodies that had to
// make room are nil; RequestSize and ResponseSize tell them from empty ones.
func (j *TrafficJournal) Record(seq uint64) (TrafficRecord, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.ring.has(seq) {
		return TrafficRecord{}, false
	}
	s := j.ring.at(seq)
	rec := s.rec
	rec.Request = j.read(s.at, s.req)
	rec.Response = j.read(s.at+uint64(s.req), s.resp)
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
	return j.ring.stats()
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
