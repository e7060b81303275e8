package registry

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// plainDistance is distance without a bound, as textbooks have it.
func plainDistance(a, b string) int {
	old := make([]int, len(b)+1)
	for j := range old {
		old[j] = j
	}
	for i := range len(a) {
		row := make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(old[j]+cost, old[j+1]+1, row[j]+1)
		}
		old = row
	}
	return old[len(b)]
}

func TestDistanceIsExactUpToItsLimit(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	word := func() string {
		w := make([]byte, r.IntN(14))
		for i := range w {
			w[i] = "abc"[r.IntN(3)]
		}
		return string(w)
	}
	for range 20000 {
		a, b, limit := word(), word(), 1+r.IntN(6)
		require.Equal(t, min(plainDistance(a, b), limit+1), distance(a, b, limit), "%q %q %d", a, b, limit)
	}
}
