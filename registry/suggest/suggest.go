// Package suggest finds the names that a misspelled name may mean.
//
// It knows no kind of name and decides nothing; all of it is pure.
package suggest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

const (
	maxSuggestions = 3   // suggested names
	maxNameLen     = 256 // bytes of a name that is compared
)

// Distance is the number of insertions, deletions, replacements and swaps of
// neighbours between two words, or limit+1 when it is more than limit.
func Distance[T byte | rune](a, b []T, limit int) int {
	if len(a) > len(b) {
		a, b = b, a
	}
	far, n := limit+1, len(b)+1
	if len(b)-len(a) > limit {
		return far
	}
	var space [3 * 65]int // so that short words need no allocation
	rows := space[:]
	if 3*n > len(rows) {
		rows = make([]int, 3*n)
	}
	older, old, row := rows[:n], rows[n:2*n], rows[2*n:3*n]
	for j := range old {
		old[j] = min(j, far)
	}
	for i := range a {
		// What is further from the diagonal than limit is not looked at.
		from, to := max(0, i-limit), min(len(b), i+limit+1)
		row[from] = far
		if from == 0 {
			row[0] = min(i+1, far)
		}
		least := row[from]
		for j := from; j < to; j++ {
			d := min(old[j+1], row[j]) + 1
			if a[i] == b[j] {
				d = min(d, old[j])
			} else {
				d = min(d, old[j]+1)
			}
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				d = min(d, older[j-1]+1)
			}
			row[j+1] = min(d, far)
			least = min(least, d)
		}
		if to < len(b) {
			row[to+1] = far
		}
		if least > limit {
			return far
		}
		older, old, row = old, row, older
	}
	return old[len(b)]
}

// Finder collects the names most like a wrong one. Case does not count.
type Finder struct {
	wrong      []byte
	limit      int
	candidates []candidate
}

type candidate struct {
	name     string
	distance int
}

// New returns a Finder for a wrong name. Of one that is very long nothing is near.
func New(wrong string) *Finder {
	if len(wrong) > maxNameLen/2 {
		return &Finder{limit: -1}
	}
	return &Finder{wrong: []byte(strings.ToLower(wrong)), limit: min(6, max(1, len(wrong)/3))}
}

// Add compares a name, which may be spelled in several ways.
func (f *Finder) Add(name string, spellings ...string) {
	off := f.limit + 1
	for _, s := range spellings {
		if len(s) <= maxNameLen {
			off = min(off, Distance(f.wrong, []byte(strings.ToLower(s)), f.limit))
		}
	}
	if off <= f.limit {
		f.candidates = append(f.candidates, candidate{name, off})
	}
}

// Best are the nearest names, best first, at most three.
func (f *Finder) Best() (names []string) {
	slices.SortStableFunc(f.candidates, func(a, b candidate) int { return cmp.Compare(a.distance, b.distance) })
	for _, c := range f.candidates {
		if len(names) < maxSuggestions && !slices.Contains(names, c.name) {
			names = append(names, c.name)
		}
	}
	return names
}

// DidYouMean asks at the end of a message whether one of the names was meant; "" if
// there are none.
func DidYouMean(names ...string) string {
	if len(names) == 0 {
		return ""
	}
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = fmt.Sprintf("%q", n)
	}
	return "; did you mean " + strings.Join(quoted, " or ") + "?"
}
