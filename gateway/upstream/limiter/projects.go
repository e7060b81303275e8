package limiter

import "sync/atomic"

// Projects counts those that have a process.
type Projects struct {
	Limit int
	taken atomic.Int64
}

// TryAcquire takes a place; it reports false when there is none.
func (p *Projects) TryAcquire() bool {
	if p.taken.Add(1) <= int64(p.Limit) {
		return true
	}
	p.taken.Add(-1)
	return false
}

// Release gives one back.
func (p *Projects) Release() { p.taken.Add(-1) }
