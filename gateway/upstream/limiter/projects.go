package limiter

import "sync/atomic"

// Projects counts those that have a process.
type Projects struct {
	Limit int
	taken atomic.Int64
}

// Take takes a place; it reports false when there is none.
func (p *Projects) Take() bool {
	if p.taken.Add(1) <= int64(p.Limit) {
		return true
	}
	p.taken.Add(-1)
	return false
}

// Give gives one back.
func (p *Projects) Give() { p.taken.Add(-1) }
