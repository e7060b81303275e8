package wire

import (
	"sync"
	"time"
)

// SkipCounter counts what was no message at all, so that a flood of it is told of once a
// second. It may be used from any goroutine.
type SkipCounter struct {
	mu    sync.Mutex
	count int
	since time.Time
}

// Add counts one more. It returns how many there were that nobody was told of, or 0
// while it is too early to tell.
func (s *SkipCounter) Add() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count++
	if time.Since(s.since) < time.Second {
		return 0
	}
	n := s.count
	s.count, s.since = 0, time.Now()
	return n
}
