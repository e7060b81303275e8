package registry

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"
)

// Session describes a session of a client or a UI. Strings are cut at 1 KiB.
type Session struct {
	ID          string
	Transport   string // such as "stdio", "socket" or "http"
	Client      string // clientInfo.name
	ClientTitle string // clientInfo.title
	Version     string // clientInfo.version
	Protocol    string // negotiated revision
	Screen      bool   // a Goblin UI, not a client
	Since       time.Time
	// IdleTime returns the time since the client's last stream or request, or is nil if
	// unknown. It must be safe for concurrent use.
	IdleTime func() time.Duration
}

// SilentAfter is the time without a stream or request after which an HTTP client counts
// as silent. HTTP clients may disconnect without closing their session.
const SilentAfter = 5 * time.Minute

// SilentFor returns the idle time of a silent client, or 0.
func (s *Session) SilentFor() time.Duration {
	if s.IdleTime == nil {
		return 0
	}
	if d := s.IdleTime(); d >= SilentAfter {
		return d
	}
	return 0
}

type sessionTable struct {
	mu   sync.RWMutex
	rows map[string]Session
}

// SetSession adds or replaces the session with the ID. A zero Since keeps the previous
// time, or is set to now. An empty ID is ignored.
func (r *Registry) SetSession(s Session) {
	for _, f := range []*string{&s.ID, &s.Transport, &s.Client, &s.ClientTitle, &s.Version, &s.Protocol} {
		*f = cutString(*f, maxField)
	}
	if s.ID == "" {
		return
	}
	t := &r.sessions
	t.mu.Lock()
	if s.Since.IsZero() {
		s.Since = t.rows[s.ID].Since
	}
	if s.Since.IsZero() {
		s.Since = r.opt.Now()
	}
	if t.rows == nil {
		t.rows = map[string]Session{}
	}
	t.rows[s.ID] = s
	t.mu.Unlock()
	r.feed.publish(Sessions)
}

// DropSession removes a session.
func (r *Registry) DropSession(id string) {
	id = cutString(id, maxField)
	t := &r.sessions
	t.mu.Lock()
	_, ok := t.rows[id]
	delete(t.rows, id)
	t.mu.Unlock()
	if ok {
		r.feed.publish(Sessions)
	}
}

// Sessions returns all sessions, oldest first.
func (r *Registry) Sessions() []Session {
	t := &r.sessions
	t.mu.RLock()
	out := slices.Collect(maps.Values(t.rows))
	t.mu.RUnlock()
	slices.SortFunc(out, func(a, b Session) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.ID, b.ID))
	})
	return out
}
