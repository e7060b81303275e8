package inflight

import (
	"hash/maphash"
	"sync/atomic"
	"time"
)

// latencyTable tracks which names answer so quickly that they need no progress token. With
// some SDKs a token costs the server a tenth of a short call, and it only matters where a call
// may outlast its timeout.
type latencyTable struct {
	seed      maphash.Seed
	histories [1 << 10]LatencyHistory // by hash: names with the same place share one
}

// LatencyHistory counts the consecutive quick answers of one name. After a slow answer it
// stays slow. nil is never quick.
type LatencyHistory struct{ quickAnswers atomic.Uint32 }

const (
	// quickLimit is the maximum time of a quick answer: far less than any reasonable
	// timeout, and more than a busy machine adds.
	quickLimit = time.Second
	// quickAnswersNeeded is the number of consecutive quick answers after which a name
	// counts as quick.
	quickAnswersNeeded = 16
	slowState          = quickAnswersNeeded + 1
)

// LatencyHistory returns the history of a listed name.
func (t *Table) LatencyHistory(listed string) *LatencyHistory {
	return &t.latencies.histories[maphash.String(t.latencies.seed, listed)%uint64(len(t.latencies.histories))]
}

// isQuick reports whether the next answer will probably be quick.
func (h *LatencyHistory) isQuick() bool {
	return h != nil && h.quickAnswers.Load() == quickAnswersNeeded
}

// record counts an answer after that time.
func (h *LatencyHistory) record(took time.Duration) {
	if h == nil {
		return
	}
	switch n := h.quickAnswers.Load(); {
	case n == slowState:
	case took >= quickLimit:
		h.quickAnswers.Store(slowState)
	case n < quickAnswersNeeded:
		h.quickAnswers.CompareAndSwap(n, n+1)
	}
}
