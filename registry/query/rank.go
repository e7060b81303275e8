package query

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/sahilm/fuzzy"
)

// Limits of the rows and bytes that are scored, which takes about a microsecond per URI.
const (
	scoredRows  = 2000
	scoredBytes = 512 << 10
)

// rank sorts rows by how well the ~words match. If there are too many to score, it scores
// those with the smallest spread; the others follow, sorted by spread. far has the spread
// of each row.
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
		next := 0
		matches := fuzzy.FindFromIterNoSort(f.low, func(yield func(string) bool) {
			for ; next < n && (next%64 != 0 || ctx.Err() == nil); next++ {
				if !yield(scorable(ix.original(rows[next]))) {
					return
				}
			}
		})
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		missed := 0
		for _, m := range matches {
			for ; missed < m.Index; missed++ {
				best[missed].score += f.scoreFolded(ix.folded(rows[missed]))
			}
			best[m.Index].score += m.Score
			missed++
		}
		for ; missed < n; missed++ {
			best[missed].score += f.scoreFolded(ix.folded(rows[missed]))
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

// bySpread sorts rows by spread, then number, by counting.
func bySpread(rows []int32, far []uint8) []int32 {
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

// scorable replaces NUL, at which the scorer would stop.
func scorable(text string) string { return strings.ReplaceAll(text, "\x00", "\x01") }

// The scorer folds fewer characters than fold.
func (f *fuzzyWord) scoreFolded(low string) int {
	m, _ := f.match(low) // always matches
	return m.Score
}

func (f *fuzzyWord) match(text string) (fuzzy.Match, bool) {
	one := func(yield func(string) bool) { yield(scorable(text)) }
	if found := fuzzy.FindFromIterNoSort(f.low, one); len(found) > 0 {
		return found[0], true
	}
	return fuzzy.Match{}, false
}
