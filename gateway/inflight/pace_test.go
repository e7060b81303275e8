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
		require.False(t, h.quick())
		h.note(999 * time.Millisecond)
	}
	require.True(t, h.quick())
	require.True(t, table.LatencyHistory("docs_search").quick(), "it is that of the name")
	h.note(time.Second)
	for range 100 {
		require.False(t, h.quick())
		h.note(0)
	}
}
