package search

import (
	"time"
)

// WithoutMeanings runs f while no word means the same as another.
func WithoutMeanings(f func()) {
	all := meanings
	meanings = func() map[string][]string { return nil }
	defer func() { meanings = all }()
	f()
}

// UpToDate reports whether a query would find nothing to read.
func UpToDate(x *Index) bool { return x.state.Load().isCurrent(x.registry.Load(), x.now()) }

// Bounds of the index.
const (
	MaxList = maxList
	MaxAll  = maxAll
)

// Room is how much a new list may take beside others.
func Room(x *Index, others int) int { return x.availableSize(others) }

// BoundList sets how many bytes the index of a list may take.
func BoundList(x *Index, most int) { x.maxListSize = most }

// Throttle makes an index read burst bytes of a list at once, and sets its clock.
func Throttle(x *Index, burst int, now func() time.Time) { x.readBurst, x.now = burst, now }

// Size is how many bytes the index takes, and how many of text it was made of.
func Size(x *Index) (size, read int) {
	for _, s := range x.state.Load().sources {
		size += s.size()
		if s.segment != nil {
			read += s.segment.read
		}
	}
	return size, read
}
