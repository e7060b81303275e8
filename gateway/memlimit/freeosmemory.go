package memlimit

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// minAllocated is the number of allocated bytes that justifies a collection. Below a
// tenth of it per interval, a process is idle.
const minAllocated = 4 << 20

// smallHeap is the live heap, in bytes, up to which the collector runs earlier than by
// default. Its work grows with the live heap. 8 MiB of that are bodies without pointers.
const (
	smallHeap        = 24 << 20
	smallHeapPercent = 75
	largeHeapPercent = 100
)

// FreeOSMemory returns unused heap to the system after each idle interval, until ctx
// ends. Go itself keeps it for minutes, and part of it permanently.
// It also limits the garbage of a small heap, unless $GOGC does.
func FreeOSMemory(ctx context.Context, interval time.Duration) {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}, {Name: "/gc/heap/live:bytes"}}
	allocated := func() uint64 {
		metrics.Read(sample)
		return sample[0].Value.Uint64()
	}
	percent, chosen := largeHeapPercent, os.Getenv("GOGC") != ""
	limitGarbage := func() {
		if wanted := garbagePercent(sample[1].Value.Uint64()); wanted != percent && !chosen {
			percent = wanted
			debug.SetGCPercent(percent)
		}
	}
	tick := time.NewTicker(interval)
	defer tick.Stop()
	var freed, before uint64
	allocated()
	limitGarbage()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := allocated()
		limitGarbage()
		if now-before < minAllocated/10 && now-freed > minAllocated {
			runtime.GC() // sync.Pools survive one collection
			debug.FreeOSMemory()
			now = allocated()
			freed = now
		}
		before = now
	}
}

func garbagePercent(live uint64) int {
	if live <= smallHeap {
		return smallHeapPercent
	}
	return largeHeapPercent
}
