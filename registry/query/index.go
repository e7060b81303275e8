package query

import "strings"

// Index is the folded text of rows in one arena, with the letters of each row as a 64-bit
// mask. A row without a letter of the word is skipped after one comparison. It is
// immutable.
type Index struct {
	arena string
	ends  []int // in the arena; ends[0] is 0
	masks []uint64
	parts bool     // some text has several parts
	asIs  []string // original text where folding changed it, or nil
}

// NewIndex indexes n rows. It calls text once for each of them, in order.
func NewIndex(n int, text func(row int) string) *Index {
	ix := &Index{ends: make([]int, n+1), masks: make([]uint64, n)}
	var arena strings.Builder
	for i := range n {
		if i == 256 { // the average length is known
			arena.Grow(min(arena.Len()/i, 128) * (n - i))
		}
		s := text(i)
		low, _ := fold(s)
		if low != s {
			if ix.asIs == nil {
				ix.asIs = make([]string, n)
			}
			ix.asIs[i] = s
		}
		ix.parts = ix.parts || strings.IndexByte(low, 0) >= 0
		arena.WriteString(low)
		ix.ends[i+1] = arena.Len()
		ix.masks[i] = maskOf(low)
	}
	ix.arena = arena.String()
	if arena.Cap() > arena.Len()+arena.Len()/4 {
		ix.arena = strings.Clone(ix.arena) // an index lives long
	}
	return ix
}

// Len returns the number of rows.
func (ix *Index) Len() int { return len(ix.masks) }

// SplitParts reports whether a text has several parts, separated by NUL.
func (ix *Index) SplitParts() bool { return ix.parts }

func (ix *Index) folded(row int32) string {
	return ix.arena[ix.ends[row]:ix.ends[row+1]]
}

func (ix *Index) original(row int32) string {
	if ix.asIs != nil && ix.asIs[row] != "" {
		return ix.asIs[row]
	}
	return ix.folded(row)
}
