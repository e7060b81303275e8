package registry

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Session is what screens show of a client or of another screen. Who the
// clients are, and when one comes or goes, is the gateway's business.
// Strings are cut at 1 KiB.
type Session struct {
	ID          string
	Transport   string // "stdio", "socket", "http", "screen"
	Client      string // clientInfo.name
	ClientTitle string // clientInfo.title
	Version     string // clientInfo.version
	Protocol    string // negotiated revision
	Screen      bool   // a screen of Goblin's, not a client
	Since       time.Time
	// Requests is counted by the registry: records of the session in
	// [Registry.Traffic] that go to servers, but for notifications. SetSession
	// can only raise it.
	Requests uint64
}

// sessions is the table of sessions. Counting takes the read lock only: it
// happens for every request.
type sessions struct {
	mu   sync.RWMutex
	rows map[string]*sessionRow
}

type sessionRow struct {
	Session
	requests *atomic.Uint64 // the same for all rows of an ID
}

func (t *sessions) count(id string) {
	t.mu.RLock()
	row := t.rows[id]
	t.mu.RUnlock()
	if row != nil {
		row.requests.Add(1)
	}
}

// SetSession adds or replaces the session with the ID. The counter of one
// that exists goes on, and so does its Since when s has none. An empty ID is
// ignored.
func (r *Registry) SetSession(s Session) {
	for _, f := range []*string{&s.ID, &s.Transport, &s.Client, &s.ClientTitle, &s.Version, &s.Protocol} {
		*f = bounded(*f, maxField)
	}
	if s.ID == "" {
		return
	}
	row := &sessionRow{Session: s, requests: new(atomic.Uint64)}
	t := &r.sessions
	t.mu.Lock()
	if old := t.rows[s.ID]; old != nil {
		row.requests = old.requests
		if s.Since.IsZero() {
			row.Since = old.Since
		}
	}
	for n := row.requests.Load(); n < s.Requests && !row.requests.CompareAndSwap(n, s.Requests); n = row.requests.Load() {
	}
	if row.Since.IsZero() {
		row.Since = r.opt.Now()
	}
	if t.rows == nil {
		t.rows = map[string]*sessionRow{}
	}
	t.rows[s.ID] = row
	t.mu.Unlock()
	r.feed.publish(Sessions)
}

// DropSession removes a session.
func (r *Registry) DropSession(id string) {
	id = bounded(id, maxField)
	t := &r.sessions
	t.mu.Lock()
	_, ok := t.rows[id]
	delete(t.rows, id)
	t.mu.Unlock()
	if ok {
		r.feed.publish(Sessions)
	}
}

// Sessions returns all sessions, the oldest first. Counting a request sets no
// [Sessions] bit, since the record sets [Traffic].
func (r *Registry) Sessions() []Session {
	t := &r.sessions
	t.mu.RLock()
	out := make([]Session, 0, len(t.rows))
	for _, row := range t.rows {
		s := row.Session
		s.Requests = row.requests.Load()
		out = append(out, s)
	}
	t.mu.RUnlock()
	slices.SortFunc(out, func(a, b Session) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.ID, b.ID))
	})
	return out
}
