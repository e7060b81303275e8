package registry

import (
	"bytes"
	"cmp"
	"log/slog"
	"math"
	"strings"
	"sync"
	"time"

	"goblin/registry/cache"
)

const (
	maxLogRecords     = 10_000
	maxLogBytes       = 4 << 20
	maxLogText        = 16 << 10
	maxTrafficRecords = 5_000 // requests
	maxNotifications  = 500
	maxBody           = 64 << 10
	maxBodies         = 8 << 20
	maxField          = 1 << 10 // bytes of a name or similar
)

// JournalStats describes the records of a journal.
type JournalStats = cache.Stats

// Values of LogRecord.Source.
const (
	SourceStderr  = "stderr"  // a line of a process's stderr
	SourceMessage = "message" // a server's notifications/message
	SourceGoblin  = "goblin"
	SourceEvent   = "event" // a change of the catalog or the cache
	SourceBuild   = "build" // a build or restart of a server whose files changed
)

// LogRecord is a log line. Callers must redact secrets first.
type LogRecord struct {
	Seq     uint64 // set by Append
	Time    time.Time
	Server  string
	Session string
	Level   slog.Level
	Source  string
	Text    string // at most 16 KiB
}

// LogJournal keeps up to 10,000 log records with at most 4 MiB of text. When it is full,
// the server with the most records loses its oldest one. Records without a server count
// as one server.
type LogJournal struct {
	mu    sync.Mutex
	ring  cache.Ring[LogRecord]
	bytes int
	feed  *feed
}

// Append adds a record and returns its number, in O(1). It allocates only while the
// journal grows, and for texts over the limit.
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

func (j *LogJournal) subtractLocked(rec *LogRecord) int {
	j.bytes -= len(rec.Text)
	return len(rec.Text)
}

// Window copies at most n records (all if n < 0), starting at number from. If that was
// evicted, it starts at the oldest one left.
func (j *LogJournal) Window(from uint64, n int) []LogRecord {
	j.mu.Lock()
	defer j.mu.Unlock()
	out := make([]LogRecord, 0, j.ring.Available(from, n))
	j.ring.Window(from, n, func(rec *LogRecord) { out = append(out, *rec) })
	return out
}

// Stats returns the range and the losses of records.
func (j *LogJournal) Stats() JournalStats {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.ring.Stats()
}

// Direction is the direction of a request or notification.
type Direction uint8

// Values of [Direction].
const (
	ToServer Direction = iota // from a client
	ToClient                  // from a server
)

// Values of TrafficRecord.Status in addition to "success" and "failure".
const (
	StatusNotification = "notification"
	// StatusToolError marks a tools/call whose result has isError.
	StatusToolError = "tool error"
	// StatusCancelled marks a request that was cancelled before its answer.
	StatusCancelled = "cancelled"
	// StatusLeft marks a request whose client disconnected before the answer.
	StatusLeft = "client left"
	// StatusInFlight marks an unanswered request, which journals never contain.
	StatusInFlight = "running"
)

// TrafficRecord is a request with its answer, or one or more equal notifications. Callers
// must redact secrets first.
type TrafficRecord struct {
	Seq  uint64 // set by Append
	Time time.Time
	// Number identifies a request in this process. It is assigned when the request
	// arrives; 0 is unknown.
	Number uint64
	// Parent is the Number of the request that caused this one, or 0: the call of a
	// script's request, of a server's request, or of a notification.
	Parent    uint64
	Session   string // "" for no session, or for several (see Receivers)
	Client    string
	Profile   string // of the client; only set for recordings
	Receivers int    // sessions that a notification was sent to
	Direction Direction
	Server    string
	Method    string
	Name      string // tool, prompt or URI, as the client spelled it
	Original  string // the server's own name or URI; "" if equal to Name or unknown
	Duration  time.Duration
	// UserAsked reports whether the server sent a request to the client meanwhile. A user
	// probably answered it, see [TrafficRecord.ServerTime].
	UserAsked bool
	UserWait  time.Duration // waiting time for the user; part of Duration
	StartWait time.Duration // waiting time for the server's start; part of Duration
	QueueWait time.Duration // waiting time for a slot of the server's limit; part of Duration
	Size      int64         // bytes of the answer
	Status    string        // "success", "failure" or one of the constants above
	Code      int           // of a JSON-RPC error
	// Events are the steps of rules that stopped, changed or answered the request.
	Events []RuleEvent
	// Request and Response are cut at 64 KiB each. Append copies them. Window omits them;
	// Record returns them unless they were evicted.
	Request, Response []byte
	// Wire is the exchange on the wire, built with [AppendWire] and stored like Request.
	Wire []byte
	// RequestSize and ResponseSize are the lengths before the cut, in bytes.
	RequestSize, ResponseSize int
	// Count is the number of equal notifications in the record; 0 means one. First is the
	// sequence number of the first one, Last the time of the last one. Append sets all
	// three.
	Count int
	First uint64
	Last  time.Time
}

// InFlight is an unanswered request.
type InFlight struct {
	TrafficRecord        // without fields that the answer sets, except UserWait so far
	ID            string // unique in its session
}

// trafficEntry is a compact [TrafficRecord] with few pointers: a full journal holds
// thousands, and the garbage collector follows each pointer.
type trafficEntry struct {
	*recordOrigin
	name, original      string
	seq                 uint64
	number, parent      uint64
	at                  int64 // nanoseconds since 1970, or 0
	duration            time.Duration
	size                int64
	reqSize, respSize   int
	code                int
	userWait            time.Duration
	startWait           time.Duration
	queueWait           time.Duration
	receivers           int32
	count               int32 // equal notifications in the record
	direction           Direction
	userAsked           bool
	first               uint64 // sequence number of the first one
	last                int64  // time of the last one
	events              []RuleEvent
	contentHash         uint64 // hash of the fields that are equal
	bodies              *bodyPage
	pageUses            uint64 // bodies.uses when stored; a higher value now means eviction
	offset              int32  // in the page
	req, resp, wireSize int32
}

func (s *trafficEntry) withoutBodies() TrafficRecord {
	rec := TrafficRecord{
		Seq: s.seq, Session: s.session, Client: s.client, Receivers: int(s.receivers), Direction: s.direction,
		Server: s.server, Method: s.method, Name: s.name, Duration: s.duration, UserAsked: s.userAsked, Size: s.size,
		Status: s.status, Code: s.code, RequestSize: s.reqSize, ResponseSize: s.respSize, UserWait: s.userWait,
		Number: s.number, Parent: s.parent, Profile: s.profile, Original: s.original, StartWait: s.startWait, QueueWait: s.queueWait, Events: s.events,
	}
	if s.at != 0 {
		rec.Time = time.Unix(0, s.at)
	}
	if s.count > 1 {
		rec.Count, rec.First, rec.Last = int(s.count), s.first, time.Unix(0, s.last)
	}
	return rec
}

type recordOrigin struct{ session, client, profile, server, method, status string }

type originTable struct {
	last *recordOrigin // most records repeat the previous origin
	all  map[recordOrigin]*recordOrigin
}

const maxOrigins = 1024

func (o *originTable) intern(v *recordOrigin) *recordOrigin {
	if o.last == nil || *o.last != *v {
		o.last = o.internSlow(*v)
	}
	return o.last
}

func (o *originTable) internSlow(v recordOrigin) *recordOrigin {
	if found := o.all[v]; found != nil {
		return found
	}
	if o.all == nil || len(o.all) >= maxOrigins {
		o.all = make(map[recordOrigin]*recordOrigin)
	}
	kept := v // keeps v itself on the stack
	o.all[kept] = &kept
	return &kept
}

// TrafficLimits are the limits of a [TrafficJournal].
type TrafficLimits struct {
	Requests      int // default 5,000
	Notifications int // default 500; adding one scans all
	Bodies        int // bytes, default 8 MiB
}

func (l TrafficLimits) withDefaults() TrafficLimits {
	return TrafficLimits{cmp.Or(l.Requests, maxTrafficRecords), cmp.Or(l.Notifications, maxNotifications), max(cmp.Or(l.Bodies, maxBodies), pageSize)}
}

// TrafficJournal keeps a limited number of requests, notifications, and bytes of bodies,
// see [TrafficLimits]. When one of these is full, the server with the most records loses its oldest one. Equal
// notifications share one record, which has the number of the last one.
type TrafficJournal struct {
	mu            sync.Mutex
	ring          cache.Ring[trafficEntry] // of requests
	notifications notificationLog
	origins       originTable
	bodies        bodyPages
	requests      uint64 // ever appended
	feed          *feed
	latencies     *ServerLatency
	limits        TrafficLimits
	complete      func(*TrafficRecord) // see Options.CompleteBodies
}

// Limits returns the limits of the journal.
func (j *TrafficJournal) Limits() TrafficLimits { return j.limits }

// Append adds a record, copies its bodies and returns its number, in O(1). It allocates
// only while the journal grows, and for new origins.
func (j *TrafficJournal) Append(rec TrafficRecord) uint64 {
	req, resp := rec.Request[:min(len(rec.Request), maxBody)], rec.Response[:min(len(rec.Response), maxBody)]
	how := rec.Wire[:min(len(rec.Wire), MaxWire)]
	from := recordOrigin{
		session: cutString(rec.Session, maxField), client: cutString(rec.Client, maxField),
		profile: cutString(rec.Profile, maxField),
		server:  cutString(rec.Server, maxField), method: cutString(rec.Method, maxField),
		status: cutString(rec.Status, maxField),
	}
	next := trafficEntry{
		name: cutString(rec.Name, maxField), duration: rec.Duration, userWait: rec.UserWait, size: rec.Size, code: rec.Code,
		reqSize: max(rec.RequestSize, len(rec.Request)), respSize: max(rec.ResponseSize, len(rec.Response)),
		receivers: int32(rec.Receivers), direction: rec.Direction, userAsked: rec.UserAsked,
		req: int32(len(req)), resp: int32(len(resp)), wireSize: int32(len(how)),
		number: rec.Number, parent: rec.Parent, original: cutString(rec.Original, maxField),
		startWait: rec.StartWait, queueWait: rec.QueueWait, events: rec.Events,
	}
	if !rec.Time.IsZero() {
		next.at = rec.Time.UnixNano()
	}
	j.mu.Lock()
	next.recordOrigin = j.origins.intern(&from)
	var s *trafficEntry
	if rec.Status == StatusNotification {
		next.seq = j.ring.Skip()
		s = j.notifications.put(next, req, j.limits.Notifications)
	} else {
		s, next.seq = j.ring.Put(from.server, 0, nil)
		*s = next
		j.requests++
	}
	if len(req)+len(resp)+len(how) > 0 {
		j.storeBodies(s, req, resp, how)
	}
	j.mu.Unlock()
	if took, measured := rec.ServerTime(); measured {
		j.latencies.Add(rec.Server, took)
	}
	j.feed.publish(Traffic)
	return next.seq
}

// Bodies are stored in pages of one owner each. So the owner with most pages can lose its
// oldest.
const (
	pageSize = 2*maxBody + MaxWire // fits the bodies of any record
)

type bodyPage struct {
	text        []byte
	startNumber uint64 // number of pages started before, plus one
	uses        uint64 // times the page was started
	lastRecord  uint64 // number of the last record with bodies in it
}

type bodyPages struct {
	started uint64
	memory  []byte // for all pages; unused memory is not resident
	used    int
	pages   map[pageOwner][]*bodyPage // of each owner, oldest first
	server  pageOwner                 // owner of the last stored bodies
	last    *bodyPage                 // their page
}

// pageOwner is the requests or the notifications of a server.
type pageOwner struct {
	server        string
	notifications bool
}

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
		p = b.startPage(of, oldest, j.limits.Bodies/pageSize)
	}
	b.server, b.last = of, p
	s.bodies, s.pageUses, s.offset = p, p.uses, int32(len(p.text))
	p.lastRecord = s.seq
	p.text = append(append(append(p.text, req...), resp...), how...)
}

// startPage reuses the owner's oldest page if all its records are older than oldest.
// Otherwise it takes an unused page, or the oldest page of the owner with the most pages.
func (b *bodyPages) startPage(of pageOwner, oldest uint64, maxPages int) (p *bodyPage) {
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

// copyBody returns nil if the page was reused.
func (s *trafficEntry) copyBody(from, n int32) []byte {
	if n == 0 || s.bodies.uses != s.pageUses {
		return nil
	}
	from += s.offset
	return bytes.Clone(s.bodies.text[from : from+n])
}

// Window copies at most n records (all if n < 0) without bodies, starting at number from.
// If that was evicted, it starts at the oldest one left.
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

// Record returns a copy of one record with its bodies. Evicted bodies are nil;
// RequestSize and ResponseSize distinguish them from empty ones.
func (j *TrafficJournal) Record(seq uint64) (TrafficRecord, bool) {
	rec, ok := j.record(seq)
	if ok && j.complete != nil {
		j.complete(&rec)
	}
	return rec, ok
}

func (j *TrafficJournal) record(seq uint64) (TrafficRecord, bool) {
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

// Requests returns the number of requests ever appended, without notifications.
func (j *TrafficJournal) Requests() uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.requests
}

// Stats returns the range and the losses of records.
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

// Len returns the number of held requests and notifications.
func (j *TrafficJournal) Len() (requests, notifications int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.ring.Available(0, -1), len(j.notifications.all)
}

// Logs returns the journal of log lines.
func (r *Registry) Logs() *LogJournal { return &r.logs }

// Traffic returns the journal of requests and notifications.
func (r *Registry) Traffic() *TrafficJournal { return &r.traffic }

// cutString copies a cut string so that the rest of s can be freed.
func cutString(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.Clone(strings.ToValidUTF8(s[:n], ""))
}
