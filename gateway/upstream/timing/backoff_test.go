package timing_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/upstream/timing"
)

func TestCrashLoopsStartSlowerAndSlowerForEver(t *testing.T) {
	t.Parallel()
	for name, policy := range map[string]func(*timing.Backoff) time.Duration{
		"failed starts":      func(b *timing.Backoff) time.Duration { return b.Failed.NextBackOff() },
		"lost after a start": func(b *timing.Backoff) time.Duration { return b.Lost.NextBackOff() },
	} {
		for range 50 {
			b := timing.DefaultBackoff()
			b.Reset()
			first := policy(&b)
			require.Less(t, first, 300*time.Millisecond, "%s: a flaky start recovers soon", name)
			starts, at := 2, first
			for {
				if at += policy(&b); at > 6*time.Second {
					break
				}
				starts++
			}
			require.LessOrEqual(t, starts, 15, name)
			var d time.Duration
			for range 40 {
				d = policy(&b)
				require.LessOrEqual(t, d, 36*time.Second, "it never gives up")
			}
			require.Greater(t, d, 20*time.Second, name)
		}
	}
}
