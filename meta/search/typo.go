package search

// edits returns how many edits a word of n letters may be off.
func edits(n int) int {
	switch {
	case n >= 8:
		return 2
	case n >= 4:
		return 1
	}
	return 0
}

// distance is the number of insertions, deletions, replacements and swaps of
// neighbours between two words, or limit+1 when it is more than limit. Words
// are at most maxWord long.
func distance(a, b []rune, limit int) int {
	if len(a) > len(b) {
		a, b = b, a
	}
	if len(b)-len(a) > limit {
		return limit + 1
	}
	var rows [3][maxWord + 1]int
	older, old, row := &rows[0], &rows[1], &rows[2]
	for j := range len(b) + 1 {
		old[j] = j
	}
	for i := range a {
		row[0] = i + 1
		least := row[0]
		for j := range b {
			n := min(old[j+1], row[j]) + 1
			if a[i] == b[j] {
				n = min(n, old[j])
			} else {
				n = min(n, old[j]+1)
			}
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				n = min(n, older[j-1]+1)
			}
			row[j+1] = n
			least = min(least, n)
		}
		if least > limit {
			return limit + 1
		}
		older, old, row = old, row, older
	}
	return min(old[len(b)], limit+1)
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
