package inflight

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestQuicknessIsAHabitOfManyAnswersAndSlownessIsNeverForgotten(t *testing.T) {
	table := NewTable()
	h := table.LatencyHistory("docs_search")
	for range 16 {
		require.False(t, h.isQuick())
		h.record(999 * time.Millisecond)
	}
	require.True(t, h.isQuick())
	require.True(t, table.LatencyHistory("docs_search").isQuick(), "from the name")
	h.record(time.Second)
	for range 100 {
		require.False(t, h.isQuick())
		h.record(0)
	}
}
