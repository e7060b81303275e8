package list

import (
	"cmp"
	"slices"
	"sync"
)

// ranks caches the ranks of all rows by column. With them, reversing and filtering need
// no comparisons. It may be used from any goroutine.
type ranks struct {
	mu sync.Mutex
	of map[int][]int32 // of each row; equal rows have equal ranks
}

// get returns the ranks of a column, or nil. It computes missing ones only if pays is
// true.
func (k *ranks) get(col int, pays bool, find func() []int32) []int32 {
	k.mu.Lock()
	defer k.mu.Unlock()
	of := k.of[col]
	if of == nil && pays {
		if k.of == nil {
			k.of = make(map[int][]int32)
		}
		of = find()
		k.of[col] = of
	}
	return of
}

// Equal rows keep their order, and rows without a value in the order's column come last.
func (s *state[R]) sort(by sorting[R]) {
	if by.less == nil {
		if by.reversed {
			slices.Reverse(s.found)
		}
		return
	}
	some, none := s.found, []int32(nil)
	if blank := s.emptyCells(by.col); blank != nil {
		some = make([]int32, 0, len(s.found))
		for _, row := range s.found {
			if blank[row] == 0 {
				none = append(none, row)
			} else {
				some = append(some, row)
			}
		}
	}
	turned := by.reversed != by.descending
	if by.col > 0 && len(s.rows) > MaxSyncRows {
		if of := s.ranks.get(by.col, len(some) > len(s.rows)/8, func() []int32 { return s.rank(by.less) }); of != nil {
			s.found = append(byRank(some, of, turned), none...)
			return
		}
	}
	s.found = append(s.compare(some, by.less, turned), none...)
}

func (s *state[R]) moveHeadsUp() {
	for i := s.heads - 1; i >= 0; i-- {
		if at := slices.Index(s.found, int32(i)); at > 0 {
			copy(s.found[1:at+1], s.found[:at])
			s.found[0] = int32(i)
		}
	}
}

// emptyCells returns the widths of a column, 0 for empty cells, or nil if none is empty.
func (s *state[R]) emptyCells(col int) []uint16 {
	if col == 0 || col > len(s.extent.cells) {
		return nil
	}
	return s.extent.cells[col-1]
}

func (s *state[R]) compare(rows []int32, less func(a, b R) int, turned bool) []int32 {
	type standing struct{ row, at int32 }
	all := make([]standing, len(rows))
	for i, row := range rows {
		all[i] = standing{row, int32(i)}
	}
	slices.SortFunc(all, func(a, b standing) int {
		c := less(s.rows[a.row], s.rows[b.row])
		if turned {
			c = -c
		}
		return cmp.Or(c, cmp.Compare(a.at, b.at))
	})
	out := make([]int32, len(all))
	for i := range all {
		out[i] = all[i].row
	}
	return out
}

func (s *state[R]) rank(less func(a, b R) int) []int32 {
	all := make([]int32, len(s.rows))
	for i := range all {
		all[i] = int32(i)
	}
	all = s.compare(all, less, false)
	of, rank := make([]int32, len(all)), int32(0)
	for i, row := range all {
		if i > 0 && less(s.rows[all[i-1]], s.rows[row]) != 0 {
			rank++
		}
		of[row] = rank
	}
	return of
}

func byRank(rows, of []int32, turned bool) []int32 {
	next := make([]int32, len(of)+1)
	place := func(row int32) int32 {
		if turned {
			return int32(len(of)) - 1 - of[row]
		}
		return of[row]
	}
	for _, row := range rows {
		next[place(row)+1]++
	}
	for i := 1; i < len(next); i++ {
		next[i] += next[i-1]
	}
	out := make([]int32, len(rows), len(rows)+1)
	for _, row := range rows {
		at := place(row)
		out[next[at]] = row
		next[at]++
	}
	return out
}
