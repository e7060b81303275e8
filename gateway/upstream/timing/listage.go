package timing

import (
	"sync"
	"time"

	"goblin/registry/rawjson"
)

const (
	defaultTTL = time.Minute // if the server sends none
	minTTL     = time.Second // limits fetches by busy clients
	maxTTL     = 24 * time.Hour
)

// Hints are a server's cache hints for a list.
type Hints struct {
	TTL    time.Duration
	Public bool // the same for all clients
	IsSet  bool // sent by the server
}

// ListAge tracks the age of a list whose changes the server doesn't announce. A zero
// ListAge was never fetched.
type ListAge struct {
	mu      sync.Mutex
	hints   Hints
	expires time.Time
	fetched chan struct{} // closed after the next fetch; nil without waiters
}

// SetHints reads the hints from a raw result.
func (l *ListAge) SetHints(result []byte) {
	ms, said := rawjson.Int(rawjson.Get(result, "ttlMs"))
	scope := rawjson.GetString(result, "cacheScope")
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hints = Hints{TTL: defaultTTL, Public: scope == "public", IsSet: said && ms >= 0}
	if l.hints.IsSet {
		l.hints.TTL = time.Duration(min(ms, maxTTL.Milliseconds())) * time.Millisecond
	}
}

// FetchEnded records the end of a fetch.
func (l *ListAge) FetchEnded() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expires = time.Now().Add(max(l.hints.TTL, minTTL))
	if l.fetched != nil {
		close(l.fetched)
		l.fetched = nil
	}
}

// AwaitFresh returns a channel to wait for if the list must be fetched, otherwise nil.
// The first caller's fetch is called.
func (l *ListAge) AwaitFresh(fetch func()) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Now().Before(l.expires) {
		return nil
	}
	if l.fetched == nil {
		l.fetched = make(chan struct{})
		fetch()
	}
	return l.fetched
}

// Hints returns the last hints with their remaining time.
func (l *ListAge) Hints() Hints {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.hints
	h.TTL = max(min(h.TTL, time.Until(l.expires)), 0)
	return h
}
