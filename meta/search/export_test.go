package search

// WithoutMeanings runs f while no word means the same as another.
func WithoutMeanings(f func()) {
	all := meanings
	meanings = nil
	defer func() { meanings = all }()
	f()
}
