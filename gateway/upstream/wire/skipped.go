package wire

import (
	"sync"
	"time"
)

// SkipCounter counts skipped lines, so that they are reported at most once a second. It
// is safe for concurrent use.
type SkipCounter struct {
	mu    sync.Mutex
	count int
	since time.Time
}

// Add counts a line. It returns the number to report, or 0 if the last report is less
// than a second old.
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
