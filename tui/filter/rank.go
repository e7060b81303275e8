package filter

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/sahilm/fuzzy"
)

// Scoring is what costs, about a microsecond for a URI, so only so many rows
// and bytes of text are scored.
const (
	scoredRows  = 2000
	scoredBytes = 512 << 10
)

// rank orders rows by how well the ~words match. If there are too many to
// score, those are scored in which the characters lie closest together; the
// others follow them in that order. far has the spread of each row.
func (q *Query) rank(ctx context.Context, ix *Index, rows []int32, far []uint8) ([]int32, error) {
	rows = bySpread(rows, far)
	n, bytes := 0, 0
	for n < len(rows) && n < scoredRows && bytes < scoredBytes {
		bytes += len(ix.folded(rows[n]))
		n++
	}
	type scored struct {
		row   int32
		score int
	}
	best := make([]scored, n)
	for i := range best {
		best[i].row = rows[i]
	}
	for i := range q.fuzzies {
		f := &q.fuzzies[i]
		if f.not {
			continue
		}
		for k := range best {
			if k%64 == 0 {
				if err := ctx.Err(); err != nil {
					return nil, err
				}
			}
			best[k].score += f.score(ix.original(best[k].row), ix.folded(best[k].row))
		}
	}
	slices.SortFunc(best, func(a, b scored) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.row, b.row))
	})
	for i := range best {
		rows[i] = best[i].row
	}
	return rows, nil
}

// bySpread orders rows by spread, then number. It counts instead of comparing.
func bySpread(rows []int32, far []uint8) []int32 {
	if !slices.IsSorted(rows) { // within was in another order
		order := make([]int, len(rows))
		for i := range order {
			order[i] = i
		}
		slices.SortFunc(order, func(a, b int) int { return cmp.Compare(rows[a], rows[b]) })
		sorted, sortedFar := make([]int32, len(rows)), make([]uint8, len(rows))
		for i, k := range order {
			sorted[i], sortedFar[i] = rows[k], far[k]
		}
		rows, far = sorted, sortedFar
	}
	var next [257]int
	for _, s := range far {
		next[int(s)+1]++
	}
	for i := 1; i < len(next); i++ {
		next[i] += next[i-1]
	}
	out := make([]int32, len(rows))
	for i, row := range rows {
		out[next[far[i]]] = row
		next[far[i]]++
	}
	return out
}

// score is higher for a better match.
func (f *fuzzyWord) score(text, low string) int {
	if m, ok := f.match(text, low); ok {
		return m.Score
	}
	return -len(low)
}

// match asks the scorer, first about the text as it is, for camel case counts.
// That one misses characters that only folding makes equal, so offsets may be
// those in the folded text: then Str is low.
func (f *fuzzyWord) match(text, low string) (fuzzy.Match, bool) {
	for _, s := range []string{text, low} {
		one := func(yield func(string) bool) {
			yield(strings.ReplaceAll(s, "\x00", "\x01")) // it would stop there
		}
		if m := fuzzy.FindFromIterNoSort(f.low, one); len(m) > 0 {
			m[0].Str = s
			return m[0], true
		}
	}
	return fuzzy.Match{}, false
}
