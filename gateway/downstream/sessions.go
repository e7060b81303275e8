package downstream

import (
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

// add puts b in the table, in use. When the table is full, the session unused
// for longest is taken out and returned; ok is false when all are in use. The
// one of stateless requests has a place of its own: calls of many clients may
// be held in it that are to come back.
func (t *sessions) add(b *hub) (evicted *hub, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	taken := 0
	for _, c := range t.all {
		if c.s.stateless {
			continue
		}
		taken++
		if c.uses == 0 && (evicted == nil || c.used.Before(evicted.used)) {
			evicted = c
		}
	}
	if b.s.stateless || taken < t.limit {
		evicted = nil
	} else {
		if evicted == nil {
			return nil, false
		}
		delete(t.all, evicted.key)
	}
	b.uses = 1
	t.all[b.key] = b
	return evicted, true
}

// evict takes out the one of some sessions that is unused for longest and returns it; nil
// when all are in use. A call that waits for its client is a use.
func (t *sessions) evict(of []*hub) (evicted *hub) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, b := range of {
		if b.uses == 0 && b.s.held.Load() == 0 && (evicted == nil || b.used.Before(evicted.used)) {
			evicted = b
		}
	}
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
		b.share.Leave()
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
