package downstream

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"
)

// sessions is the table of HTTP sessions. It knows which are in use, so that
// neither idleness nor eviction ends one with requests under way.
type sessions struct {
	limit int

	mu  sync.Mutex
	all map[string]*hub // by key
}

func (t *sessions) len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.all)
}

func (t *sessions) list() []*hub {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Collect(maps.Values(t.all))
}

// add puts b in the table, in use. It returns the unused session that is evicted if the
// table is full; ok is false when all are in use. The session of stateless requests has a
// place of its own, because it may hold calls of many clients.
func (t *sessions) add(b *hub) (evicted *hub, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !b.s.stateless {
		all := make([]*hub, 0, len(t.all))
		for _, c := range t.all {
			if !c.s.stateless {
				all = append(all, c)
			}
		}
		if len(all) >= t.limit {
			if evicted = toEvict(all); evicted == nil {
				return nil, false
			}
			delete(t.all, evicted.key)
		}
	}
	b.uses = 1
	t.all[b.key] = b
	return evicted, true
}

// newcomersPart is the part of all places that sessions without a handshake may keep, and
// those without a request, so that clients which connect at the same time do not evict
// each other.
const newcomersPart = 64

// toEvict returns the session to evict from a full table, nil when all are in use.
// Without a token, a stranger may open sessions faster than clients use theirs:
//
//  1. Sessions that never completed the handshake go first.
//  2. Sessions that never made a request follow. A ping is no request.
//  3. Sessions of the younger half follow. A client that came before a flood of sessions
//     keeps its place, whatever these request.
//  4. The older half is last.
//
// Within each group, the session unused for longest goes.
func toEvict(all []*hub) *hub {
	var silent, newcomers []*hub
	for _, b := range all {
		if b.uses > 0 || b.s.worked.Load() {
			continue
		}
		newcomers = append(newcomers, b)
		if !b.s.Ready() {
			silent = append(silent, b)
		}
	}
	for _, group := range [][]*hub{silent, newcomers} {
		if len(group) > len(all)/newcomersPart {
			return longestUnused(group)
		}
	}
	slices.SortFunc(all, func(a, b *hub) int { return a.s.since.Compare(b.s.since) })
	half := len(all) / 2
	return cmp.Or(longestUnused(all[half:]), longestUnused(all[:half]))
}

// longestUnused returns the session unused for longest, nil when all are in use.
func longestUnused(of []*hub) (found *hub) {
	for _, b := range of {
		if b.uses == 0 && (found == nil || b.used.Before(found.used)) {
			found = b
		}
	}
	return found
}

// evict takes out the one of some sessions that is unused for longest and returns it; nil
// when all are in use. A call that waits for its client is a use.
func (t *sessions) evict(of []*hub) (evicted *hub) {
	t.mu.Lock()
	defer t.mu.Unlock()
	evicted = longestUnused(slices.DeleteFunc(of, func(b *hub) bool { return b.s.held.Load() > 0 }))
	if evicted != nil {
		delete(t.all, evicted.key)
	}
	return evicted
}

// acquire finds a session and keeps it in use until release; nil when it has ended.
func (t *sessions) acquire(key string) *hub {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := t.all[key]
	if b == nil || b.s.ctx.Err() != nil {
		return nil
	}
	b.uses++
	return b
}

// hold keeps a session in use that is so already.
func (t *sessions) hold(b *hub) {
	t.mu.Lock()
	defer t.mu.Unlock()
	b.uses++
}

func (t *sessions) release(b *hub) {
	t.mu.Lock()
	defer t.mu.Unlock()
	b.uses--
	b.used = time.Now()
	t.leave(b)
}

// quiet returns the time since a session was last used, or 0 while it is in use.
func (t *sessions) quiet(b *hub) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if b.uses > 0 {
		return 0
	}
	return time.Since(b.used)
}

// retire notes that a session has ended. What its client still reads counts
// until the session is not used any more.
func (t *sessions) retire(b *hub) {
	t.mu.Lock()
	defer t.mu.Unlock()
	b.over = true
	t.leave(b)
}

func (t *sessions) leave(b *hub) {
	if b.over && b.uses == 0 {
		b.share.Release()
	}
}

func (t *sessions) remove(b *hub) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.all, b.key)
}

// expire takes a session out that was unused for the time idle; otherwise it
// says when to ask again.
func (t *sessions) expire(b *hub, idle time.Duration) (left time.Duration, ended bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if b.uses > 0 {
		return idle, false
	}
	if left = idle - time.Since(b.used); left > 0 {
		return left, false
	}
	delete(t.all, b.key)
	return idle, true
}
