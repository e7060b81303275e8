package suggest_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/registry/suggest"
)

// plainDistance is the textbook version of Distance, without a limit.
func plainDistance(a, b []byte) int {
	d := make([][]int, len(a)+1)
	for i := range d {
		d[i] = make([]int, len(b)+1)
		for j := range d[i] {
			if i == 0 || j == 0 {
				d[i][j] = i + j
				continue
			}
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			d[i][j] = min(d[i-1][j-1]+cost, d[i-1][j]+1, d[i][j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d[i][j] = min(d[i][j], d[i-2][j-2]+1)
			}
		}
	}
	return d[len(a)][len(b)]
}

func TestDistanceIsExactUpToItsLimit(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	word := func() []byte {
		w := make([]byte, r.IntN(14))
		for i := range w {
			w[i] = "abc"[r.IntN(3)]
		}
		return w
	}
	for range 20000 {
		a, b, limit := word(), word(), 1+r.IntN(6)
		require.Equal(t, min(plainDistance(a, b), limit+1), suggest.Distance(a, b, limit), "%q %q %d", a, b, limit)
	}
}

func TestNearestNamesComeFirst(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ wrong, want string }{
		{"notes_ad", `; did you mean "notes_add" or "notes_old"?`},
		{"NOTES_ADD", `; did you mean "notes_add" or "notes_old"?`},
		{"tiem", `; did you mean "time"?`},
		{"clock", `; did you mean "time"?`}, // another spelling of it
		{"nothing like it", ""},
		{strings.Repeat("x", 129), ""},
	} {
		f := suggest.New(c.wrong)
		for _, name := range []string{"notes_old", "notes_add", "notes_add", strings.Repeat("x", 130)} {
			f.Add(name, name)
		}
		f.Add("time", "time", "clock")
		require.Equal(t, c.want, suggest.DidYouMean(f.Best()...), c.wrong)
	}
}
