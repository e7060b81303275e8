package registry

import (
	"bytes"
	"log/slog"
	"math"
	"strings"
	"sync"
	"time"

	"goblin/registry/cache"
)

// Bounds of the journals.
const (
	maxLogRecords     = 10_000
	maxLogBytes       = 4 << 20
	maxLogText        = 16 << 10
	maxTrafficRecords = 5_000 // requests
	maxNotifications  = 500
	maxBody           = 64 << 10
	maxBodies         = 8 << 20
	maxField          = 1 << 10 // names and the like in records
)

// JournalStats says what a journal holds and what it no longer does.
type JournalStats = cache.Stats

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
	ring  cache.Ring[LogRecord]
	bytes int
	feed  *feed
}

// Append adds a record and returns its number. Its cost does not grow with the
// journal; it allocates only while that still grows, and for texts over the bound.
func (j *LogJournal) Append(rec LogRecord) uint64 {
	rec.Text = cutString(rec.Text, maxLogText)
	rec.Server, rec.Session = cutString(rec.Server, maxField), cutString(rec.Session, maxField)
	j.mu.Lock()
	size := len(rec.Text)
	for j.bytes+size > maxLogBytes {
		j.ring.EvictLargest(j.subtractLocked)
	}
	j.bytes += size
	kept, seq := j.ring.Put(rec.Server, size, j.subtractLocked)
	*kept = rec
	kept.Seq = seq
	j.mu.Unlock()
	j.feed.publish(Logs)
	return seq
}

// subtractLocked subtracts the size of a record that the ring evicts.
func (j *LogJournal) subtractLocked(rec *LogRecord) int {
	j.bytes -= len(rec.Text)
	return len(rec.Text)
}

// Window copies at most n records (all when n < 0) from number from on, which
// may be gone already: the copy then begins with the oldest one there.
func (j *LogJournal) Window(from uint64, n int) []LogRecord {
	j.mu.Lock()
	defer j.mu.Unlock()
	out := make([]LogRecord, 0, j.ring.Available(from, n))
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
	// StatusLeft marks a request whose client left before the answer.
	StatusLeft = "client left"
	// StatusInFlight is that of a request which was not answered yet; the journal has none.
	StatusInFlight = "under way"
)

// TrafficRecord is a request with its answer, or one or more equal notifications.
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
	// UserAsked: the server asked the client meanwhile, most likely a human, so
	// Duration does not count for [ServerState.Latency].
	UserAsked bool
	UserWait  time.Duration // for the user; part of Duration
	Size      int64         // bytes of the answer
	Status    string        // "success", "failure" or one of the constants above
	Code      int           // of a JSON-RPC error
	// Request and Response are cut at 64 KiB each; Append copies them.
	// Window leaves them out, Record gives them while they are still held.
	Request, Response []byte
	// Wire is how it went over the wire, see [goblin/registry]; kept and given as these.
	Wire []byte
	// RequestSize and ResponseSize are the lengths before the cut.
	RequestSize, ResponseSize int
	// Count counts the equal notifications in the record; 0 means one. First is the
	// sequence number of the first, and Last the time of the last. Append sets all three.
	Count int
	First uint64
	Last  time.Time
}

// InFlight is a request that was not answered yet.
type InFlight struct {
	TrafficRecord        // without what is known at the end
	ID            string // among those of its session
}

// trafficEntry is a compact [TrafficRecord] with the position of its bodies. It is small and has few
// pointers: a full journal holds thousands, and the collector follows each pointer.
type trafficEntry struct {
	*recordOrigin
	name                string
	seq                 uint64
	at                  int64 // nanoseconds since 1970; 0 for a record without time
	duration            time.Duration
	size                int64
	reqSize, respSize   int
	code                int
	userWait            time.Duration
	receivers           int32
	count               int32 // number of equal notifications in the record
	direction           Direction
	userAsked           bool
	first               uint64 // sequence number of the first one
	last                int64  // time of the last one
	contentHash         uint64 // hash of the fields that are equal
	bodies              *bodyPage
	pageUses            uint64 // uses of the page at that time; the bodies are gone once the page has more
	offset              int32  // in the page
	req, resp, wireSize int32
}

// withoutBodies returns the record without its bodies.
func (s *trafficEntry) withoutBodies() TrafficRecord {
	rec := TrafficRecord{
		Seq: s.seq, Session: s.session, Client: s.client, Receivers: int(s.receivers), Direction: s.direction,
		Server: s.server, Method: s.method, Name: s.name, Duration: s.duration, UserAsked: s.userAsked, Size: s.size,
		Status: s.status, Code: s.code, RequestSize: s.reqSize, ResponseSize: s.respSize, UserWait: s.userWait,
	}
	if s.at != 0 {
		rec.Time = time.Unix(0, s.at)
	}
	if s.count > 1 {
		rec.Count, rec.First, rec.Last = int(s.count), s.first, time.Unix(0, s.last)
	}
	return rec
}

// recordOrigin holds the fields that many records share.
type recordOrigin struct{ session, client, server, method, status string }

// originTable stores each recent origin once.
type originTable struct {
	last *recordOrigin // most records are like the one before
	all  map[recordOrigin]*recordOrigin
}

// maxOrigins bounds the origins that are looked for.
const maxOrigins = 1024

// intern returns the stored copy of an origin.
func (o *originTable) intern(v *recordOrigin) *recordOrigin {
	if o.last == nil || *o.last != *v {
		o.last = o.internSlow(*v)
	}
	return o.last
}

// internSlow is intern for an origin other than the last.
func (o *originTable) internSlow(v recordOrigin) *recordOrigin {
	if found := o.all[v]; found != nil {
		return found
	}
	if o.all == nil || len(o.all) >= maxOrigins {
		o.all = make(map[recordOrigin]*recordOrigin)
	}
	kept := v // v itself stays on the stack
	o.all[kept] = &kept
	return &kept
}

// TrafficJournal keeps 5,000 requests, separately 500 notifications, and 8 MiB of bodies.
// When one of them is full, the server with the most records loses its oldest one, as in a
// [LogJournal]. Equal notifications share a record with the number of the last one.
type TrafficJournal struct {
	mu            sync.Mutex
	ring          cache.Ring[trafficEntry] // of requests
	notifications notificationLog
	origins       originTable
	bodies        bodyPages
	requests      uint64 // requests ever appended
	feed          *feed
	latencies     *ServerLatency // of the servers that answered
}

// Append adds a record, copies its bodies and returns its number. O(1); it
// allocates only while the journal still grows, and for origins it has not had of late.
func (j *TrafficJournal) Append(rec TrafficRecord) uint64 {
	req, resp := rec.Request[:min(len(rec.Request), maxBody)], rec.Response[:min(len(rec.Response), maxBody)]
	how := rec.Wire[:min(len(rec.Wire), MaxWire)]
	from := recordOrigin{
		session: cutString(rec.Session, maxField), client: cutString(rec.Client, maxField),
		server: cutString(rec.Server, maxField), method: cutString(rec.Method, maxField),
		status: cutString(rec.Status, maxField),
	}
	next := trafficEntry{
		name: cutString(rec.Name, maxField), duration: rec.Duration, userWait: rec.UserWait, size: rec.Size, code: rec.Code,
		reqSize: max(rec.RequestSize, len(rec.Request)), respSize: max(rec.ResponseSize, len(rec.Response)),
		receivers: int32(rec.Receivers), direction: rec.Direction, userAsked: rec.UserAsked,
		req: int32(len(req)), resp: int32(len(resp)), wireSize: int32(len(how)),
	}
	if !rec.Time.IsZero() {
		next.at = rec.Time.UnixNano()
	}
	j.mu.Lock()
	next.recordOrigin = j.origins.intern(&from)
	var s *trafficEntry
	if rec.Status == StatusNotification {
		next.seq = j.ring.Skip()
		s = j.notifications.put(next, req)
	} else {
		s, next.seq = j.ring.Put(from.server, 0, nil)
		*s = next
		j.requests++
	}
	if len(req)+len(resp)+len(how) > 0 {
		j.storeBodies(s, req, resp, how)
	}
	j.mu.Unlock()
	if rec.Direction == ToServer && (rec.Status == "success" || rec.Status == StatusToolError) && !rec.UserAsked {
		j.latencies.Add(rec.Server, rec.Duration)
	}
	j.feed.publish(Traffic)
	return next.seq
}

// Bodies lie in pages, each of one server, so that who has most of them can give
// up its oldest.
const (
	pageSize = 2*maxBody + MaxWire // fits any record's
	maxPages = maxBodies / pageSize
)

// bodyPage holds bodies of one owner, one after another.
type bodyPage struct {
	text        []byte
	startNumber uint64 // number of pages started before, plus one
	uses        uint64 // counts how often the page was begun
	lastRecord  uint64 // number of the last record with bodies in it
}

// bodyPages is the memory of all bodies.
type bodyPages struct {
	started uint64
	memory  []byte // for all pages; unused memory is not resident
	used    int
	pages   map[pageOwner][]*bodyPage // of each server, oldest first
	server  pageOwner                 // whose bodies came last,
	last    *bodyPage                 // and where they are
}

// pageOwner identifies the owner of pages: the requests or the notifications of a server.
type pageOwner struct {
	server        string
	notifications bool
}

// storeBodies copies the bodies of a record into a page.
func (j *TrafficJournal) storeBodies(s *trafficEntry, req, resp, how []byte) {
	b, of := &j.bodies, pageOwner{s.server, s.status == StatusNotification}
	p := b.last
	if p == nil || b.server != of {
		p = nil
		if own := b.pages[of]; len(own) > 0 {
			p = own[len(own)-1]
		}
	}
	if p == nil || len(p.text)+len(req)+len(resp)+len(how) > pageSize {
		oldest := j.ring.Oldest(s.server)
		if of.notifications {
			oldest = j.notifications.oldest(s.server)
		}
		p = b.startPage(of, oldest)
	}
	b.server, b.last = of, p
	s.bodies, s.pageUses, s.offset = p, p.uses, int32(len(p.text))
	p.lastRecord = s.seq
	p.text = append(append(append(p.text, req...), resp...), how...)
}

// startPage returns an empty page for an owner. It reuses the owner's oldest page if all its records
// are older than oldest.
// Otherwise it takes a new page, or else the oldest page of the owner with the most pages.
func (b *bodyPages) startPage(of pageOwner, oldest uint64) (p *bodyPage) {
	if b.pages == nil {
		b.pages = make(map[pageOwner][]*bodyPage)
	}
	if own := b.pages[of]; len(own) > 0 && own[0].lastRecord < oldest {
		p = own[0]
		b.pages[of] = append(own[:0], own[1:]...)
	} else if b.used < maxPages {
		if b.memory == nil {
			b.memory = make([]byte, maxPages*pageSize)
		}
		at := b.used * pageSize
		b.used++
		p = &bodyPage{text: b.memory[at : at : at+pageSize]}
	} else {
		var from pageOwner
		var most []*bodyPage
		for s, has := range b.pages {
			if len(has) > len(most) || len(has) == len(most) && has[0].startNumber < most[0].startNumber {
				from, most = s, has
			}
		}
		p = most[0]
		if b.pages[from] = append(most[:0], most[1:]...); len(most) == 1 {
			delete(b.pages, from)
		}
	}
	b.started++
	p.startNumber, p.uses, p.text = b.started, p.uses+1, p.text[:0]
	b.pages[of] = append(b.pages[of], p)
	return p
}

// copyBody copies n bytes of the bodies, or returns nil if their page was reused.
func (s *trafficEntry) copyBody(from, n int32) []byte {
	if n == 0 || s.bodies.uses != s.pageUses {
		return nil
	}
	from += s.offset
	return bytes.Clone(s.bodies.text[from : from+n])
}

// Window copies at most n records (all when n < 0) without bodies from number
// from on, which may be gone already: the copy then begins with the oldest
// one there.
func (j *TrafficJournal) Window(from uint64, n int) []TrafficRecord {
	j.mu.Lock()
	defer j.mu.Unlock()
	notes := j.notifications.from(from)
	most := j.ring.Available(from, n) + len(notes)
	if n >= 0 {
		most = min(most, n)
	}
	out := make([]TrafficRecord, 0, most)
	before := func(seq uint64) {
		for len(notes) > 0 && notes[0].seq < seq && len(out) != n {
			out, notes = append(out, notes[0].withoutBodies()), notes[1:]
		}
	}
	j.ring.Window(from, n, func(s *trafficEntry) {
		if before(s.seq); len(out) != n {
			out = append(out, s.withoutBodies())
		}
	})
	before(math.MaxUint64)
	return out
}

// Record returns a copy of one record with its bodies. Bodies that had to
// make room are nil; RequestSize and ResponseSize tell them from empty ones.
func (j *TrafficJournal) Record(seq uint64) (TrafficRecord, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := j.ring.Find(seq)
	if s == nil {
		s = j.notifications.find(seq)
	}
	if s == nil {
		return TrafficRecord{}, false
	}
	rec := s.withoutBodies()
	rec.Request, rec.Response, rec.Wire = s.copyBody(0, s.req), s.copyBody(s.req, s.resp), s.copyBody(s.req+s.resp, s.wireSize)
	return rec, true
}

// Requests counts the records ever appended that are no notifications.
func (j *TrafficJournal) Requests() uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.requests
}

// Stats says which records are there.
func (j *TrafficJournal) Stats() JournalStats {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := j.ring.Stats()
	if all := j.notifications.all; len(all) > 0 && (s.First == 0 || all[0].seq < s.First) {
		s.First = all[0].seq
	}
	s.Dropped += j.notifications.dropped
	return s
}

// Len returns the number of records.
func (j *TrafficJournal) Len() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.ring.Available(0, -1) + len(j.notifications.all)
}

// Logs returns the journal of log lines.
func (r *Registry) Logs() *LogJournal { return &r.logs }

// Traffic returns the journal of requests.
func (r *Registry) Traffic() *TrafficJournal { return &r.traffic }

// cutString returns s, cut to at most n bytes. A cut is a copy, so that it does not keep all of s in
// memory.
func cutString(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.Clone(strings.ToValidUTF8(s[:n], ""))
}
