package registry

import (
	"runtime/debug"
	"sync"
	"time"
)

const minFreeSize = 8 << 20

var lastFree struct {
	sync.Mutex
	start time.Time
}

// FreeAfterList collects all garbage after a list with size bytes of definitions was
// processed and dropped. Otherwise the collector waits until the heap doubles, which
// never happens with a stable catalog. It does nothing below 8 MiB and otherwise takes
// about 10 ms. Concurrent calls share one collection.
func FreeAfterList(size int) {
	if size < minFreeSize {
		return
	}
	done := time.Now()
	lastFree.Lock()
	defer lastFree.Unlock()
	if lastFree.start.After(done) {
		return
	}
	lastFree.start = time.Now()
	debug.FreeOSMemory()
}
