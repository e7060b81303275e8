// Package suggest finds the names that a misspelled name may mean.
package suggest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

const (
	maxSuggestions = 3
	maxNameLen     = 256 // bytes of a compared name
)

// Distance returns the number of insertions, deletions, replacements and swaps of
// neighbors between two words. Above limit it returns limit+1.
func Distance[T byte | rune](a, b []T, limit int) int {
	if len(a) > len(b) {
		a, b = b, a
	}
	far, n := limit+1, len(b)+1
	if len(b)-len(a) > limit {
		return far
	}
	var space [3 * 65]int // short words need no allocation
	rows := space[:]
	if 3*n > len(rows) {
		rows = make([]int, 3*n)
	}
	older, old, row := rows[:n], rows[n:2*n], rows[2*n:3*n]
	for j := range old {
		old[j] = min(j, far)
	}
	for i := range a {
		// Only cells within limit of the diagonal matter.
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

// Finder collects the names most similar to a wrong one, ignoring case.
type Finder struct {
	wrong      []byte
	limit      int
	candidates []candidate
}

type candidate struct {
	name     string
	distance int
}

// New returns a Finder for a wrong name. It finds nothing for names over 128 bytes.
func New(wrong string) *Finder {
	if len(wrong) > maxNameLen/2 {
		return &Finder{limit: -1}
	}
	return &Finder{wrong: []byte(strings.ToLower(wrong)), limit: min(6, max(1, len(wrong)/3))}
}

// Add compares a name by its best matching spelling.
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

// Best returns up to three most similar names, best first.
func (f *Finder) Best() (names []string) {
	slices.SortStableFunc(f.candidates, func(a, b candidate) int { return cmp.Compare(a.distance, b.distance) })
	for _, c := range f.candidates {
		if len(names) < maxSuggestions && !slices.Contains(names, c.name) {
			names = append(names, c.name)
		}
	}
	return names
}

// DidYouMean returns a question for the end of a message, or "" without names.
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
