package timing_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/upstream/timing"
)

// Lists are fetched when calls need them, so the first call that waits requests one.
func TestACallRequestsAListThatIsNotComing(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*timing.FetchGate){
		"changed":                   (*timing.FetchGate).Invalidate,
		"fetched from another link": (*timing.FetchGate).Compare,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := timing.NewFetchGate()
			change(g)
			requests := 0
			require.NoError(t, g.Await(t.Context(), nil, func() {
				requests++
				g.End(g.Begin(), map[string]string{"tool": "digest"}, nil)
			}))
			require.Equal(t, 1, requests)
			require.True(t, g.IsCurrent())
			require.Equal(t, "digest", g.Digest("tool"))
			require.NoError(t, g.Await(t.Context(), nil, func() { requests++ }))
			require.Equal(t, 1, requests)
		})
	}
}
