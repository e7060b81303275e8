// Tidy gives memory back after work that needed much of it.

package registry

import (
	"runtime/debug"
	"sync"
	"time"
)

// heavy is from how many bytes on what is made of a list leaves so much behind
// that the collector is not left to itself. It would wait until as much again
// is in use, which with a catalog that hardly changes is never.
const heavy = 8 << 20

var tidying struct {
	sync.Mutex
	began time.Time
}

// FreeAfterList gives back the memory that was needed for taking in a list whose
// definitions have size bytes; it does nothing for one below 8 MiB. It is called
// when that is over, by who took it in: it collects all garbage, which takes
// some ten milliseconds. What several are done with at a time is collected once.
func FreeAfterList(size int) {
	if size < heavy {
		return
	}
	done := time.Now()
	tidying.Lock()
	defer tidying.Unlock()
	if tidying.began.After(done) {
		return
	}
	tidying.began = time.Now()
	debug.FreeOSMemory()
}
