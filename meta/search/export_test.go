package search

import "goblin/registry"

// WithoutMeanings runs f while no word means the same as another.
func WithoutMeanings(f func()) {
	all := meanings
	meanings = nil
	defer func() { meanings = all }()
	f()
}

// NewShort returns an index to which lists of more than so many entries are
// long ones.
func NewShort(reg *registry.Registry, short int) *Index {
	x := New(reg)
	x.short = short
	return x
}

// UpToDate reports whether a query would find nothing to read.
func UpToDate(x *Index) bool { return x.state.Load().snapshot == x.registry.Load() }
