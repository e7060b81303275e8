package memlimit_test

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/memlimit"
)

func TestAnIdleProcessKeepsNoBuffersOfABusyMoment(t *testing.T) {
	held := func() uint64 {
		all := []metrics.Sample{
			{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/free:bytes"},
		}
		metrics.Read(all)
		return all[0].Value.Uint64() + all[1].Value.Uint64()
	}
	debug.FreeOSMemory()
	before := held() // memory of other tests
	var pool sync.Pool
	large := make([]byte, 64<<20)
	pool.Put(&large)
	large = nil
	require.Greater(t, held(), before+64<<20-1<<20)

	ctx, end := context.WithCancel(t.Context())
	var work sync.WaitGroup
	work.Go(func() { memlimit.FreeOSMemory(ctx, time.Millisecond) })
	require.Eventually(t, func() bool { return held() < before+32<<20 }, time.Minute, 10*time.Millisecond)
	end()
	work.Wait()
	require.Nil(t, pool.Get())
}

func TestASmallHeapIsCollectedEarlierUnlessTheUserChose(t *testing.T) {
	percent := func() int {
		now := debug.SetGCPercent(100)
		debug.SetGCPercent(now)
		return now
	}
	defer debug.SetGCPercent(percent())
	for _, tt := range []struct {
		chosen string
		want   int
	}{{"100", 100}, {"", 75}} {
		t.Setenv("GOGC", tt.chosen)
		debug.SetGCPercent(100)
		ctx, end := context.WithCancel(t.Context())
		end()
		memlimit.FreeOSMemory(ctx, time.Hour)
		require.Equal(t, tt.want, percent())
	}
}
