package downstream

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"
)

// sessionTable is the table of HTTP sessions. It counts uses, so that sessions in use are
// neither idle nor evicted.
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

// add adds b, in use. In a full table it evicts and returns an unused session; ok is
// false if all are in use. Sessions of stateless requests don't count, because each may
// hold calls of many clients.
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

// newSessionDivisor limits sessions without a handshake, and those without a request, to
// this part of the table before they are evicted first. So clients that connect
// simultaneously don't evict each other.
const newSessionDivisor = 64

// evictCandidate returns the session to evict from a full table, or nil if all are in
// use. Without a token, a stranger may open sessions faster than clients use theirs. The
// order is:
//
//  1. Sessions without a completed handshake.
//  2. Sessions that never made a request other than ping.
//  3. The younger half. A client from before a flood of sessions keeps its place.
//  4. The older half.
//
// Within each group, the longest unused session is evicted.
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

// longestUnused returns the longest unused session, or nil if all are in use.
func longestUnused(of []*httpSession) (found *httpSession) {
	for _, b := range of {
		if b.refs == 0 && (found == nil || b.lastUsed.Before(found.lastUsed)) {
			found = b
		}
	}
	return found
}

// evict removes and returns the longest unused of some sessions, or nil if all are in
// use. Sessions with parked calls are in use.
func (t *sessionTable) evict(of []*httpSession) (evicted *httpSession) {
	t.mu.Lock()
	defer t.mu.Unlock()
	evicted = longestUnused(slices.DeleteFunc(of, func(b *httpSession) bool { return b.session.parkedCount.Load() > 0 }))
	if evicted != nil {
		delete(t.byKey, evicted.key)
	}
	return evicted
}

// acquire returns a session, in use until release, or nil if it was closed.
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

// retain adds a use to a session in use.
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
	t.leave(b)
}

// idleTime returns the time since a session was last used, or 0 while it is in use.
func (t *sessionTable) idleTime(b *httpSession) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if b.refs > 0 {
		return 0
	}
	return time.Since(b.lastUsed)
}

// markEnded records that a session was closed. Its unread bytes count until it is unused.
func (t *sessionTable) markEnded(b *httpSession) {
	t.mu.Lock()
	defer t.mu.Unlock()
	b.ended = true
	t.leave(b)
}

func (t *sessionTable) leave(b *httpSession) {
	if b.ended && b.refs == 0 {
		b.share.Release()
	}
}

func (t *sessionTable) remove(b *httpSession) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.byKey, b.key)
}

// expire removes a session that was unused for the time idle. Otherwise it returns the
// time until the next check.
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
