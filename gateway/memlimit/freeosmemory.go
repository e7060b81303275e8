package memlimit

import (
	"context"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// minAllocated is the number of allocated bytes that justifies a collection. Below a
// tenth of it per interval, a process is idle.
const minAllocated = 4 << 20

// FreeOSMemory returns unused heap to the system after each idle interval, until ctx
// ends. Go itself keeps it for minutes, and part of it permanently.
func FreeOSMemory(ctx context.Context, interval time.Duration) {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	allocated := func() uint64 {
		metrics.Read(sample)
		return sample[0].Value.Uint64()
	}
	tick := time.NewTicker(interval)
	defer tick.Stop()
	var freed, before uint64
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := allocated()
		if now-before < minAllocated/10 && now-freed > minAllocated {
			runtime.GC() // sync.Pools survive one collection
			debug.FreeOSMemory()
			now = allocated()
			freed = now
		}
		before = now
	}
}
