package upstream

import (
	"container/list"
	"slices"
	"sync"
)

// ahead is how many times the free places a client may hold: one alone gets
// three quarters of all, the next one three quarters of the rest.
const ahead = 3

// few places are not shared out: whoever allows a server so few requests at a
// time means just that many.
const few = 31

// slots are the places for requests in flight, shared out so that a client with
// many slow requests leaves room for others: the more it holds, the more must be
// free for it to get another. Who waits gets a place in turn, client by client.
type slots struct {
	limit int

	mu     sync.Mutex
	taken  int
	shares map[any]*share // of clients that hold a place or wait for one
	ring   []*share       // those that wait, the next one first
	spare  []*share       // kept for reuse
}

// share is what one client has of the places.
type share struct {
	of      *slots
	who     any
	held    int
	waiting list.List // of chan struct{}, closed with the place
	release func()    // gives a place back
}

func newSlots(limit int) *slots { return &slots{limit: limit, shares: make(map[any]*share)} }

// maxSpare bounds the shares kept for reuse.
const maxSpare = 64

// share finds or makes a client's. The lock is held, here and down to settle.
func (t *slots) share(who any) *share {
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
			t.give(s)
		}
	}
	s.who = who
	t.shares[who] = s
	return s
}

// may reports whether a client may have one of the places that are free.
func (t *slots) may(s *share) bool {
	free := t.limit - t.taken
	return free > 0 && (t.limit <= few || s.held < ahead*free)
}

func (t *slots) hold(s *share) {
	t.taken++
	s.held++
}

// give takes a place back and hands it, and what is free besides, to those who
// wait.
func (t *slots) give(s *share) {
	t.taken--
	s.held--
	for {
		next := slices.IndexFunc(t.ring, t.may)
		if next < 0 {
			break
		}
		w := t.ring[next]
		t.ring = slices.Delete(t.ring, next, next+1)
		close(w.waiting.Remove(w.waiting.Front()).(chan struct{}))
		t.hold(w)
		if w.waiting.Len() > 0 {
			t.ring = append(t.ring, w)
		}
	}
	t.settle(s)
}

// settle forgets a client that neither holds a place nor waits for one.
func (t *slots) settle(s *share) {
	if s.held > 0 || s.waiting.Len() > 0 {
		return
	}
	delete(t.shares, s.who)
	s.who = nil
	if len(t.spare) < maxSpare {
		t.spare = append(t.spare, s)
	}
}

// take takes a place if there is one for the client, else nothing.
func (t *slots) take(who any) *share {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.share(who)
	if t.grant(s) {
		return s
	}
	t.settle(s)
	return nil
}

func (t *slots) grant(s *share) bool {
	if s.waiting.Len() > 0 || !t.may(s) {
		return false
	}
	t.hold(s)
	return true
}

// try takes a place if there is one for the client, else its place in the queue
// of those who wait.
func (t *slots) try(who any) (s *share, turn *list.Element) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s = t.share(who); t.grant(s) {
		return s, nil
	}
	turn = s.waiting.PushBack(make(chan struct{}))
	if s.waiting.Len() == 1 {
		t.ring = append(t.ring, s)
	}
	return s, turn
}

// leave ends the wait for a place, which may have come just now, and tells how
// many are taken.
func (t *slots) leave(s *share, turn *list.Element) (taken int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case <-turn.Value.(chan struct{}):
		t.give(s)
		return t.taken
	default:
	}
	s.waiting.Remove(turn)
	if s.waiting.Len() == 0 {
		t.ring = slices.DeleteFunc(t.ring, func(other *share) bool { return other == s })
	}
	t.settle(s)
	return t.taken
}
