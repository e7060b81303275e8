package registry

import (
	"cmp"
	"slices"
	"strings"
)

// Bounds of the search for names that a wrong one may have meant.
const (
	maxNearest = 3
	maxTried   = 5000
)

// Nearest returns the listed names that look most like a wrong one, best first,
// at most three; only those of owner, unless that is "". Of long lists only the
// first 5,000 entries are looked at, after those that the caller knows to be
// likely.
func (s *Snapshot) Nearest(k Kind, owner, name string, likely ...*Entry) []string {
	if len(name) > 2*maxToolName {
		return nil
	}
	type found struct {
		listed string
		off    int
	}
	want := strings.ToLower(name)
	limit := min(6, max(1, len(want)/3))
	var best []found
	try := func(e *Entry) {
		off := limit + 1
		for _, known := range []string{e.Listed, e.Name} {
			if len(known) <= 4*maxToolName {
				off = min(off, distance(want, strings.ToLower(known), limit))
			}
		}
		if off <= limit && (owner == "" || e.Server == owner) {
			best = append(best, found{e.Listed, off})
		}
	}
	for _, e := range likely {
		try(e)
	}
	tried := 0
	all := s.All(k)
	if owner != "" {
		all = s.Server(owner, k)
	}
	for e := range all {
		if tried++; tried > maxTried {
			break
		}
		try(e)
	}
	slices.SortStableFunc(best, func(a, b found) int { return cmp.Compare(a.off, b.off) })
	var names []string
	for _, f := range best {
		if len(names) < maxNearest && !slices.Contains(names, f.listed) {
			names = append(names, f.listed)
		}
	}
	return names
}

// distance is the number of insertions, deletions and replacements between
// two names, or limit+1 when it is more than limit.
func distance(a, b string, limit int) int {
	if len(a) > len(b) {
		a, b = b, a
	}
	if len(b)-len(a) > limit || len(b) > 4*maxToolName {
		return limit + 1
	}
	// What is further from the diagonal than limit is not looked at.
	far := limit + 1
	var rows [2][4*maxToolName + 2]int
	old, row := rows[0][:], rows[1][:]
	for j := range len(b) + 1 {
		old[j] = min(j, far)
	}
	for i := range len(a) {
		from, to := max(0, i-limit), min(len(b), i+limit+1)
		row[from] = far
		if from == 0 {
			row[0] = min(i+1, far)
		}
		least := row[from]
		for j := from; j < to; j++ {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(old[j]+cost, old[j+1]+1, row[j]+1)
			least = min(least, row[j+1])
		}
		row[to+1] = far
		if least > limit {
			return far
		}
		old, row = row, old
	}
	return min(old[len(b)], far)
}
