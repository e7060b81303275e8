package search

func maxEdits(n int) int {
	switch {
	case n >= 8:
		return 2
	case n >= 4:
		return 1
	}
	return 0
}

// lettersOf returns a set of the bytes in a word. An edit changes at most two bits per
// byte of a letter, so the set alone rules out most words.
func lettersOf(word string) (set uint32) {
	for i := range len(word) {
		set |= 1 << (word[i] & 31)
	}
	return set
}
