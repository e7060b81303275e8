package downstream

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestChatterThatWasSparedIsReportedOnceItGoesOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Hour)
		var c dropCounters
		next := func(much, little bool) [2]any {
			off, spared := c.decide("a", much, little)
			return [2]any{off, spared}
		}
		on, off := [2]any{false, uint64(0)}, [2]any{true, uint64(0)}
		require.Equal(t, on, next(false, false), "starts without drops")
		require.Equal(t, off, next(true, false))
		require.Equal(t, off, next(false, false), "drops until there is little")
		require.Equal(t, [2]any{false, uint64(2)}, next(false, true))
		require.Equal(t, on, next(false, false), "delivers until there is much")
		require.Equal(t, off, next(true, false))
		require.Equal(t, on, next(false, true), "reported at most once per second")
		time.Sleep(missedReportInterval)
		require.Equal(t, [2]any{false, uint64(1)}, next(false, true))
		spared, _ := c.decide("b", true, false)
		require.True(t, spared)
		require.Equal(t, on, next(false, true), "each server separately")
	})
}
