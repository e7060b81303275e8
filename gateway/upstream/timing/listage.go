// Freshness knows how long a list that a server has no notice for counts as
// fresh: as the server says, within bounds. It knows neither lists nor servers. All
// methods may be called from any goroutine and do not block.

package timing

import (
	"sync"
	"time"

	"goblin/registry/rawjson"
)

const (
	defaultTTL = time.Minute // where the server says nothing
	minTTL     = time.Second // or clients that ask often would make servers list all the time
	maxTTL     = 24 * time.Hour
)

// Hints are a server's words on how long its list may be kept.
type Hints struct {
	TTL    time.Duration
	Public bool // it is the same for everybody
	IsSet  bool // the server said so
}

// ListAge tracks the age of a list. The zero value was never fetched.
type ListAge struct {
	mu      sync.Mutex
	hints   Hints
	expires time.Time
	fetched chan struct{} // closed at the end of the next fetch; nil while nobody waits
}

// SetHints takes the hints of a result, a raw object.
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

// AwaitFresh gives what to wait for if the list has to be fetched again, else nil. fetch is
// called by the first caller.
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

// Hints are those noted last, with the time that is left.
func (l *ListAge) Hints() Hints {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.hints
	h.TTL = max(min(h.TTL, time.Until(l.expires)), 0)
	return h
}
