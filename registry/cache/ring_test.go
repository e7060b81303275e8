package cache_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"goblin/registry/cache"
)

// The test compares a ring with a search of all records.
func TestRingKeepsTheNewestOfEachServersShare(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := cache.Ring[int]{Max: rapid.IntRange(1, 20).Draw(t, "max")}
		type kept struct {
			server string
			seq    uint64
		}
		var model []kept
		for i := range rapid.IntRange(0, 200).Draw(t, "records") {
			server := rapid.SampledFrom([]string{"", "a", "b", "c"}).Draw(t, "server")
			rec, seq := g.Put(server, 0, func(gone *int) int {
				require.Len(t, model, g.Max)
				has := map[string]int{}
				for _, k := range model {
					has[k.server]++
				}
				at := slices.IndexFunc(model, func(k kept) bool { return k.seq == uint64(*gone)+1 })
				victim := model[at].server
				for _, n := range has {
					require.GreaterOrEqual(t, has[victim], n)
				}
				require.Equal(t, at, slices.IndexFunc(model, func(k kept) bool { return k.server == victim }), "its oldest")
				model = slices.Delete(model, at, at+1)
				return 0
			})
			*rec = i
			model = append(model, kept{server, seq})
			require.LessOrEqual(t, len(model), g.Max)
		}
		from := rapid.Uint64Range(0, 210).Draw(t, "from")
		n := rapid.IntRange(-1, 25).Draw(t, "n")
		var want, got []uint64
		for _, k := range model {
			require.Equal(t, int(k.seq-1), *g.Find(k.seq))
			if k.seq >= from && (n < 0 || len(want) < n) {
				want = append(want, k.seq)
			}
		}
		g.Window(from, n, func(rec *int) { got = append(got, uint64(*rec)+1) })
		require.Equal(t, want, got)
		require.GreaterOrEqual(t, g.Available(from, n), len(got))
	})
}
