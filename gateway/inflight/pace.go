package inflight

import (
	"hash/maphash"
	"sync/atomic"
	"time"
)

// paces remember which names answer so quickly that they need no progress token. One
// that no client has asked for costs the servers of some SDKs a tenth of a short call, and
// only matters where a call may outlast its timeout.
type paces struct {
	seed  maphash.Seed
	names [1 << 10]LatencyHistory // by their hashes: names that share a place count as one
}

// LatencyHistory counts the quick answers in a row of one name; after a slow one it stays slow. nil
// is never quick.
type LatencyHistory struct{ answers atomic.Uint32 }

const (
	// quickly is how long a quick answer may take: far less than any timeout that makes
	// sense, and more than a busy machine adds.
	quickly = time.Second
	// enough are the quick answers in a row that make a habit.
	enough = 16
	slow   = enough + 1
)

// LatencyHistory returns the habit of a listed name.
func (t *Table) LatencyHistory(listed string) *LatencyHistory {
	return &t.paces.names[maphash.String(t.paces.seed, listed)%uint64(len(t.paces.names))]
}

// quick reports whether the next answer will probably be quick.
func (h *LatencyHistory) quick() bool { return h != nil && h.answers.Load() == enough }

// note counts an answer that took so long. One that was not quick is never forgotten.
func (h *LatencyHistory) note(took time.Duration) {
	if h == nil {
		return
	}
	switch n := h.answers.Load(); {
	case n == slow:
	case took >= quickly:
		h.answers.Store(slow)
	case n < enough:
		h.answers.CompareAndSwap(n, n+1)
	}
}
