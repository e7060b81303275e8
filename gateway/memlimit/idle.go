package memlimit

import (
	"context"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// worthwhile is how much must have been allocated, in bytes, before it pays to look for
// what can be given back; a tenth of it in one interval is work.
const worthwhile = 4 << 20

// GiveBack returns what Go keeps for later use to the system, as soon as the process has
// had next to nothing to do for an interval. Go itself would keep buffers and garbage of a
// busy moment for minutes, and part of it for good. It returns when ctx ends.
func GiveBack(ctx context.Context, interval time.Duration) {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	allocated := func() uint64 {
		metrics.Read(sample)
		return sample[0].Value.Uint64()
	}
	look := time.NewTicker(interval)
	defer look.Stop()
	var clean, before uint64
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
		now := allocated()
		if now-before < worthwhile/10 && now-clean > worthwhile {
			runtime.GC() // pools keep theirs for one collection longer
			debug.FreeOSMemory()
			now = allocated()
			clean = now
		}
		before = now
	}
}
