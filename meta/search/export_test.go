package search

import (
	"time"
)

// WithoutMeanings runs f with no synonyms.
func WithoutMeanings(f func()) {
	all := meanings
	meanings = func() map[string][]string { return nil }
	defer func() { meanings = all }()
	f()
}

// UpToDate reports whether a query would read nothing.
func UpToDate(x *Index) bool { return x.state.Load().isCurrent(x.registry.Load(), x.now()) }

// Limits of the index.
const (
	MaxList = maxList
	MaxAll  = maxAll
)

// Room returns the available size for a new list beside others.
func Room(x *Index, others int) int { return x.availableSize(others) }

// BoundList sets the maximum size of a list's index, in bytes.
func BoundList(x *Index, most int) { x.maxListSize = most }

// BoundComparisons sets the maximum number of terms compared with misspelled words.
func BoundComparisons(x *Index, most int) { x.maxCompared = most }

// Throttle sets the number of bytes of a list that are read at once, and the clock.
func Throttle(x *Index, burst int, now func() time.Time) { x.readBurst, x.now = burst, now }

// Size returns the size of the index and of its texts, in bytes.
func Size(x *Index) (size, read int) {
	for _, s := range x.state.Load().sources {
		size += s.size()
		if s.segment != nil {
			read += s.segment.read
		}
	}
	return size, read
}
