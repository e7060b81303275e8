package limiter

import "sync/atomic"

// Projects limits the number of projects with a process.
type Projects struct {
	Limit int
	taken atomic.Int64
}

// TryAcquire acquires a slot, or returns false at the limit.
func (p *Projects) TryAcquire() bool {
	if p.taken.Add(1) <= int64(p.Limit) {
		return true
	}
	p.taken.Add(-1)
	return false
}

// Release releases a slot.
func (p *Projects) Release() { p.taken.Add(-1) }
