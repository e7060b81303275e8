package memory

import (
	"cmp"
	"slices"
	"sync"
)

// Stock is a [Holder] of large things, each of which can be given up by itself.
// The zero value is ready to use.
type Stock struct {
	mu     sync.Mutex
	pieces map[*Piece]struct{}
	held   int64
}

// Piece is one of the things in a [Stock].
type Piece struct {
	of   *Stock
	drop func()

	// Guarded by of.mu.
	size  int64
	shed  bool
	ended bool
}

// Add puts a thing of so many bytes into the stock, until Release. drop is called
// once when it is to be given up, perhaps just after Release; it must not block. A
// nil drop leaves it to the holder to notice.
func (s *Stock) Add(size int64, drop func()) *Piece {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := &Piece{of: s, drop: drop, size: size}
	if s.pieces == nil {
		s.pieces = make(map[*Piece]struct{})
	}
	s.pieces[p] = struct{}{}
	s.held += size
	return p
}

// Grow adds to the size of a piece; false when it was given up.
func (p *Piece) Grow(n int64) bool {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	if p.shed || p.ended {
		return false
	}
	p.size += n
	p.of.held += n
	return true
}

// Release takes a piece out. It may be called more than once, and on nil. It
// reports whether the piece had been given up.
func (p *Piece) Release() (shed bool) {
	if p == nil {
		return false
	}
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	if !p.shed && !p.ended {
		p.of.remove(p)
	}
	p.ended = true
	return p.shed
}

// Shed reports whether the piece was given up; false for nil.
func (p *Piece) Shed() bool {
	if p == nil {
		return false
	}
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	return p.shed
}

// remove takes a piece out. The lock is held.
func (s *Stock) remove(p *Piece) {
	delete(s.pieces, p)
	s.held -= p.size
}

// Held implements [Holder].
func (s *Stock) Held() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held
}

// Shed implements [Holder]: the largest pieces are given up.
func (s *Stock) Shed(need int64) (released int64) {
	s.mu.Lock()
	all := make([]*Piece, 0, len(s.pieces))
	for p := range s.pieces {
		all = append(all, p)
	}
	slices.SortFunc(all, func(x, y *Piece) int { return cmp.Compare(y.size, x.size) })
	n := 0
	for _, p := range all {
		if released >= need {
			break
		}
		released += p.size
		p.shed = true
		s.remove(p)
		n++
	}
	s.mu.Unlock()
	for _, p := range all[:n] {
		if p.drop != nil {
			p.drop()
		}
	}
	return released
}
