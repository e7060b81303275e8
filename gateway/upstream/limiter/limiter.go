// Package limiter divides the request slots of one server fairly among clients.
//
// It knows neither requests nor clients, only who is who. All methods may be called from
// any goroutine; none waits.
package limiter

import (
	"container/list"
	"slices"
	"sync"
)

// ahead is how many times the free places a client may hold: one alone gets
// three quarters of all, the next one three quarters of the rest.
const ahead = 3

// crowd is ahead for all clients of a group together: they may be one by many names.
const crowd = 15

// few places are not shared out further: a config that allows a server so few requests
// at a time means just that many.
const few = 31

// Member is a client that belongs to a group.
type Member interface{ Group() any }

// Limiter are as many as there may be requests in flight. The more a client holds, the
// more must be free for it to get another. Waiting calls get a place in turn, client
// by client.
type Limiter struct {
	limit int

	mu     sync.Mutex
	taken  int
	shares map[any]*share // of clients that hold a place or wait for one
	groups map[any]int    // how many places those of a group hold
	ring   []*share       // those that wait, the next one first
	spare  []*share       // kept for reuse
}

// share counts the places that one client has.
type share struct {
	of      *Limiter
	who     any
	group   any // nil for none
	held    int
	waiting list.List // of chan struct{}, closed with the place
	release func()    // gives a place back
}

// New returns limit places, all of them free.
func New(limit int) *Limiter {
	return &Limiter{limit: limit, shares: make(map[any]*share), groups: make(map[any]int)}
}

// maxSpare bounds the shares kept for reuse.
const maxSpare = 64

// shareLocked finds or makes a client's.
func (t *Limiter) shareLocked(who any) *share {
	s := t.shares[who]
	if s != nil {
		return s
	}
	if last := len(t.spare) - 1; last >= 0 {
		s, t.spare = t.spare[last], t.spare[:last]
	} else {
		s = &share{of: t}
		s.release = func() {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.giveLocked(s)
		}
	}
	s.who = who
	if m, ok := who.(Member); ok {
		s.group = m.Group()
	}
	t.shares[who] = s
	return s
}

// mayLocked reports whether a client may have one of the places that are free.
func (t *Limiter) mayLocked(s *share) bool {
	free := t.limit - t.taken
	most := max(t.limit-1, 1) // no client gets all
	if t.limit <= few {
		return free > 0 && s.held < most && t.groups[s.group] < most
	}
	return free > 0 && s.held < min(ahead*free, most) && t.groups[s.group] < crowd*free
}

func (t *Limiter) holdLocked(s *share) {
	t.taken++
	s.held++
	if s.group != nil {
		t.groups[s.group]++
	}
}

// giveLocked takes a place back and hands it, and what is free besides, to those who
// wait.
func (t *Limiter) giveLocked(s *share) {
	t.taken--
	s.held--
	if s.group != nil {
		if t.groups[s.group]--; t.groups[s.group] == 0 {
			delete(t.groups, s.group)
		}
	}
	for {
		next := slices.IndexFunc(t.ring, t.mayLocked)
		if next < 0 {
			break
		}
		w := t.ring[next]
		t.ring = slices.Delete(t.ring, next, next+1)
		close(w.waiting.Remove(w.waiting.Front()).(chan struct{}))
		t.holdLocked(w)
		if w.waiting.Len() > 0 {
			t.ring = append(t.ring, w)
		}
	}
	t.settleLocked(s)
}

// settleLocked forgets a client that neither holds a place nor waits for one.
func (t *Limiter) settleLocked(s *share) {
	if s.held > 0 || s.waiting.Len() > 0 {
		return
	}
	delete(t.shares, s.who)
	s.who, s.group = nil, nil
	if len(t.spare) < maxSpare {
		t.spare = append(t.spare, s)
	}
}

// TryAcquire takes a place for a client, to be given back by calling release once; nil if it
// would have to wait.
func (t *Limiter) TryAcquire(who any) (release func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.shareLocked(who)
	if t.grantLocked(s) {
		return s.release
	}
	t.settleLocked(s)
	return nil
}

func (t *Limiter) grantLocked(s *share) bool {
	if s.waiting.Len() > 0 || !t.mayLocked(s) {
		return false
	}
	t.holdLocked(s)
	return true
}

// Wait is a client's turn in the queue for a place.
type Wait struct {
	share *share
	turn  *list.Element
}

// Acquire is Take with a turn in the queue where the client would have to wait.
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

// Done is closed when the place is there, to be given back by the release that came
// with the turn.
func (w *Wait) Done() <-chan struct{} { return w.turn.Value.(chan struct{}) }

// Cancel cancels the wait for a place, which may have come just now. It returns how many
// places the client holds, and how many others do.
func (w *Wait) Cancel() (own, others int) {
	s, t := w.share, w.share.of
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case <-w.Done():
		held := s.held - 1
		t.giveLocked(s)
		return held, t.taken - held
	default:
	}
	s.waiting.Remove(w.turn)
	if s.waiting.Len() == 0 {
		t.ring = slices.DeleteFunc(t.ring, func(other *share) bool { return other == s })
	}
	held := s.held
	t.settleLocked(s)
	return held, t.taken - held
}
