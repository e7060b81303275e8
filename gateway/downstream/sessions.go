package downstream

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"
)

// sessionTable counts the uses of HTTP sessions, so that used ones are neither idle nor
// evicted.
type sessionTable struct {
	limit int

	mu    sync.Mutex
	byKey map[string]*httpSession
}

func (t *sessionTable) len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.byKey)
}

func (t *sessionTable) list() []*httpSession {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Collect(maps.Values(t.byKey))
}

// add adds b, in use. In a full table it returns an evicted session; ok is false if all
// are in use. Sessions of stateless requests don't count, since each may have many
// clients.
func (t *sessionTable) add(b *httpSession) (evicted *httpSession, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !b.session.stateless {
		all := make([]*httpSession, 0, len(t.byKey))
		for _, c := range t.byKey {
			if !c.session.stateless {
				all = append(all, c)
			}
		}
		if len(all) >= t.limit {
			if evicted = evictCandidate(all); evicted == nil {
				return nil, false
			}
			delete(t.byKey, evicted.key)
		}
	}
	b.refs = 1
	t.byKey[b.key] = b
	return evicted, true
}

// Sessions without a handshake, or without requests, are evicted first if they exceed
// 1/newSessionDivisor of the table. Fewer are kept, so that clients don't evict each
// other while they connect.
const newSessionDivisor = 64

// evictCandidate returns the session to evict from a full table, or nil if all are in
// use. Without a token, a stranger may open sessions faster than clients use theirs. So
// the order is:
//
//  1. sessions without a completed handshake
//  2. sessions without a request other than ping
//  3. the younger half, so that clients from before a flood stay
//  4. the older half
//
// Within a group, it is the longest unused one.
func evictCandidate(all []*httpSession) *httpSession {
	var silent, newcomers []*httpSession
	for _, b := range all {
		if b.refs > 0 || b.session.hasRequests.Load() {
			continue
		}
		newcomers = append(newcomers, b)
		if !b.session.Ready() {
			silent = append(silent, b)
		}
	}
	for _, group := range [][]*httpSession{silent, newcomers} {
		if len(group) > len(all)/newSessionDivisor {
			return longestUnused(group)
		}
	}
	slices.SortFunc(all, func(a, b *httpSession) int { return a.session.startTime.Compare(b.session.startTime) })
	half := len(all) / 2
	return cmp.Or(longestUnused(all[half:]), longestUnused(all[:half]))
}

func longestUnused(of []*httpSession) (found *httpSession) {
	for _, b := range of {
		if b.refs == 0 && (found == nil || b.lastUsed.Before(found.lastUsed)) {
			found = b
		}
	}
	return found
}

// evict removes and returns the longest unused session, or nil if all are in use. Parked
// calls are a use.
func (t *sessionTable) evict(of []*httpSession) (evicted *httpSession) {
	t.mu.Lock()
	defer t.mu.Unlock()
	evicted = longestUnused(slices.DeleteFunc(of, func(b *httpSession) bool { return b.session.parkedCount.Load() > 0 }))
	if evicted != nil {
		delete(t.byKey, evicted.key)
	}
	return evicted
}

// acquire returns an open session until release, or nil.
func (t *sessionTable) acquire(key string) *httpSession {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := t.byKey[key]
	if b == nil || b.session.ctx.Err() != nil {
		return nil
	}
	b.refs++
	return b
}

func (t *sessionTable) retain(b *httpSession) {
	t.mu.Lock()
	defer t.mu.Unlock()
	b.refs++
}

func (t *sessionTable) release(b *httpSession) {
	t.mu.Lock()
	defer t.mu.Unlock()
	b.refs--
	b.lastUsed = time.Now()
	t.releaseEndedLocked(b)
}

func (t *sessionTable) idleTime(b *httpSession) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if b.refs > 0 {
		return 0
	}
	return time.Since(b.lastUsed)
}

// markEnded keeps counting unread bytes until the session is unused.
func (t *sessionTable) markEnded(b *httpSession) {
	t.mu.Lock()
	defer t.mu.Unlock()
	b.ended = true
	t.releaseEndedLocked(b)
}

func (t *sessionTable) releaseEndedLocked(b *httpSession) {
	if b.ended && b.refs == 0 {
		b.share.Release()
	}
}

func (t *sessionTable) remove(b *httpSession) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.byKey, b.key)
}

// expire removes a session unused for the time idle. Otherwise it returns the time until
// the next check.
func (t *sessionTable) expire(b *httpSession, idle time.Duration) (left time.Duration, ended bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if b.refs > 0 {
		return idle, false
	}
	if left = idle - time.Since(b.lastUsed); left > 0 {
		return left, false
	}
	delete(t.byKey, b.key)
	return idle, true
}
