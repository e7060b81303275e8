package compare_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/registry/compare"
)

// FuzzValues checks that a comparison finds a difference whenever the decoded values
// differ. It must be symmetric, and the lines must show each difference.
func FuzzValues(f *testing.F) {
	f.Add(`{"a":[1,2,{"b":"x"}]}`, `{"a":[1,{"b":"y"}],"c":1.0}`, "..b", false)
	f.Add(`{"a":[1,2`, `{"a":[1,2,3]}`, "$.a[*]", true)
	f.Add(`{"a":1,"a":2}`, `{"a":"l1\nl2"}`, "a['x.y'].*", false)
	f.Fuzz(func(t *testing.T, a, b, ignore string, cut bool) {
		if len(a)+len(b) > 2000 {
			return
		}
		patterns, err := compare.ParseIgnored(ignore)
		if err != nil {
			return
		}
		r, err := compare.Values([]byte(a), []byte(b), compare.Options{Ignore: patterns, ACut: cut, BCut: cut})
		if err != nil {
			return
		}
		lines, _ := r.Lines()
		marked := false
		for _, l := range lines {
			require.True(t, l.HasA || l.HasB)
			marked = marked || l.Op.Mark() != " "
		}
		require.Equal(t, !r.IsEqual(), marked, "the lines must show all differences")
		back, err := compare.Values([]byte(b), []byte(a), compare.Options{Ignore: patterns, ACut: cut, BCut: cut})
		require.NoError(t, err)
		require.Equal(t, r.IsEqual(), back.IsEqual())
		if patterns.Len() > 0 || cut {
			return
		}
		var va, vb any
		if json.Unmarshal([]byte(a), &va) != nil || json.Unmarshal([]byte(b), &vb) != nil {
			return // numbers that float64 cannot hold
		}
		if !reflect.DeepEqual(va, vb) {
			require.False(t, r.IsEqual())
		}
	})
}
