package inflight

import (
	"hash/maphash"
	"sync/atomic"
	"time"
)

// latencyTable tracks which names answer so fast that they need no progress token. With
// some SDKs a token adds a tenth to a short call. It only matters if a call may exceed
// its timeout.
type latencyTable struct {
	seed      maphash.Seed
	histories [1 << 10]LatencyHistory // by hash: colliding names share one
}

// LatencyHistory counts the consecutive quick answers of one name. After a slow answer it
// stays slow. A nil history is never quick.
type LatencyHistory struct{ quickAnswers atomic.Uint32 }

const (
	// quickLimit is the maximum duration of a quick answer. It is far below any
	// reasonable timeout, and above the delays of a busy machine.
	quickLimit = time.Second
	// quickAnswersNeeded is the number of consecutive quick answers after which a name is
	// quick.
	quickAnswersNeeded = 16
	slowState          = quickAnswersNeeded + 1
)

// LatencyHistory returns the history of a listed name.
func (t *Table) LatencyHistory(listed string) *LatencyHistory {
	return &t.latencies.histories[maphash.String(t.latencies.seed, listed)%uint64(len(t.latencies.histories))]
}

func (h *LatencyHistory) isQuick() bool {
	return h != nil && h.quickAnswers.Load() == quickAnswersNeeded
}

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
