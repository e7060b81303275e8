package registry

import (
	"runtime/debug"
	"sync"
	"time"
)

// minFreeSize is the size of a list from which its garbage is collected at once, in bytes.
// The collector would wait until the heap doubles, which never happens with a stable catalog.
const minFreeSize = 8 << 20

// lastFree holds the time of the last collection.
var lastFree struct {
	sync.Mutex
	start time.Time
}

// FreeAfterList gives back the memory that was needed for taking in a list whose
// definitions have size bytes; it does nothing for one below 8 MiB. It is called
// when that is over, by who took it in: it collects all garbage, which takes
// some ten milliseconds. What several are done with at a time is collected once.
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
