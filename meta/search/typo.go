package search

// maxEdits returns the number of edits that are tolerated in a word of n letters.
func maxEdits(n int) int {
	switch {
	case n >= 8:
		return 2
	case n >= 4:
		return 1
	}
	return 0
}

// lettersOf is a set of the bytes in a word. An edit changes two of its bits
// at most per byte of the letters it is about, so most words that are far off
// are told by it alone.
func lettersOf(word string) (set uint32) {
	for i := range len(word) {
		set |= 1 << (word[i] & 31)
	}
	return set
}
