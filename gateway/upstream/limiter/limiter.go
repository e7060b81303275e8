// Package limiter divides the request slots of one server fairly among clients.
//
// Clients are opaque keys. All methods are safe for concurrent use and don't block.
package limiter

import (
	"container/list"
	"slices"
	"sync"
)

// shareFactor limits a client's requests in flight to this multiple of the free slots. A
// single client gets three quarters of all slots, the next one three quarters of the
// rest.
const shareFactor = 3

// groupFactor is shareFactor for all clients of a group together, since one program may
// use many names.
const groupFactor = 15

// minShared is the largest limit that is not divided. A user who configures so few slots
// wants to use them all.
const minShared = 31

// Member is a client that belongs to a group.
type Member interface{ Group() any }

// Limiter limits the requests in flight. The more slots a client holds, the more must be
// free for its next one. Waiting clients take turns.
type Limiter struct {
	limit int

	mu         sync.Mutex
	inUse      int
	shares     map[any]*share // of clients that hold or await slots
	groups     map[any]int
	ring       []*share // waiting clients, the next one first
	freeShares []*share
}

type share struct {
	limiter *Limiter
	client  any
	group   any
	inUse   int
	waiting list.List // of chan struct{}, closed when acquired
	release func()
}

// New returns a Limiter with limit slots.
func New(limit int) *Limiter {
	return &Limiter{limit: limit, shares: make(map[any]*share), groups: make(map[any]int)}
}

const maxFreeShares = 64

func (t *Limiter) shareLocked(who any) *share {
	s := t.shares[who]
	if s != nil {
		return s
	}
	if last := len(t.freeShares) - 1; last >= 0 {
		s, t.freeShares = t.freeShares[last], t.freeShares[:last]
	} else {
		s = &share{limiter: t}
		s.release = func() {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.releaseLocked(s)
		}
	}
	s.client = who
	if m, ok := who.(Member); ok {
		s.group = m.Group()
	}
	t.shares[who] = s
	return s
}

func (t *Limiter) canAcquireLocked(s *share) bool {
	free := t.limit - t.inUse
	most := max(t.limit-1, 1) // no client gets all slots
	if t.limit <= minShared {
		return free > 0 && s.inUse < most && t.groups[s.group] < most
	}
	return free > 0 && s.inUse < min(shareFactor*free, most) && t.groups[s.group] < groupFactor*free
}

func (t *Limiter) acquireLocked(s *share) {
	t.inUse++
	s.inUse++
	if s.group != nil {
		t.groups[s.group]++
	}
}

// releaseLocked releases a slot and gives free slots to waiting clients.
func (t *Limiter) releaseLocked(s *share) {
	t.inUse--
	s.inUse--
	if s.group != nil {
		if t.groups[s.group]--; t.groups[s.group] == 0 {
			delete(t.groups, s.group)
		}
	}
	for {
		next := slices.IndexFunc(t.ring, t.canAcquireLocked)
		if next < 0 {
			break
		}
		w := t.ring[next]
		t.ring = slices.Delete(t.ring, next, next+1)
		close(w.waiting.Remove(w.waiting.Front()).(chan struct{}))
		t.acquireLocked(w)
		if w.waiting.Len() > 0 {
			t.ring = append(t.ring, w)
		}
	}
	t.forgetIdleLocked(s)
}

func (t *Limiter) forgetIdleLocked(s *share) {
	if s.inUse > 0 || s.waiting.Len() > 0 {
		return
	}
	delete(t.shares, s.client)
	s.client, s.group = nil, nil
	if len(t.freeShares) < maxFreeShares {
		t.freeShares = append(t.freeShares, s)
	}
}

// TryAcquire acquires a slot for a client, or returns nil if the client would have to
// wait. release must be called exactly once.
func (t *Limiter) TryAcquire(who any) (release func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.shareLocked(who)
	if t.grantLocked(s) {
		return s.release
	}
	t.forgetIdleLocked(s)
	return nil
}

func (t *Limiter) grantLocked(s *share) bool {
	if s.waiting.Len() > 0 || !t.canAcquireLocked(s) {
		return false
	}
	t.acquireLocked(s)
	return true
}

// Wait is a client's place in the queue for a slot.
type Wait struct {
	share *share
	turn  *list.Element
}

// Acquire is TryAcquire, but returns a Wait if the client must wait.
func (t *Limiter) Acquire(who any) (release func(), wait *Wait) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.shareLocked(who)
	if t.grantLocked(s) {
		return s.release, nil
	}
	turn := s.waiting.PushBack(make(chan struct{}))
	if s.waiting.Len() == 1 {
		t.ring = append(t.ring, s)
	}
	return s.release, &Wait{s, turn}
}

// Done is closed when the slot was acquired. The release function of Acquire releases it.
func (w *Wait) Done() <-chan struct{} { return w.turn.Value.(chan struct{}) }

// Cancel cancels the wait, releasing the slot if it was just acquired. It returns the
// numbers of slots held by the client and by others.
func (w *Wait) Cancel() (own, others int) {
	s, t := w.share, w.share.limiter
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case <-w.Done():
		own = s.inUse - 1
		t.releaseLocked(s)
		return own, t.inUse - own
	default:
	}
	s.waiting.Remove(w.turn)
	if s.waiting.Len() == 0 {
		t.ring = slices.DeleteFunc(t.ring, func(other *share) bool { return other == s })
	}
	own = s.inUse
	t.forgetIdleLocked(s)
	return own, t.inUse - own
}
