package recorder

import (
	"bytes"
	"sync"

	"goblin/gateway/telemetry"
	"goblin/registry"
)

// Limits of the queue.
const (
	maxQueue     = 32 << 20 // bytes, with the bodies of large records
	maxLarge     = 4096     // large records
	wakeSize     = 1 << 20  // bytes after which the writer starts before its next round
	blockSize    = 256 << 10
	maxSpare     = 2 * wakeSize / blockSize
	maxLineGuess = 1 << 10 // bytes of a usual line
)

// queue holds encoded lines, and records whose bodies the writer still has to mask. If it
// is full, records are dropped and counted.
type queue struct {
	full chan struct{} // capacity one

	mu      sync.Mutex
	items   []item
	size    int // bytes of all items
	large   int // large records
	dropped int
	spare   [][]byte // empty blocks
}

// item is a block of lines, one large record, or a view: the catalog from there on.
type item struct {
	lines []byte
	large *largeRecord
	view  *view
}

// largeRecord is a record with copies of its unmasked bodies: params, answer, sent, own.
type largeRecord struct {
	rec      registry.TrafficRecord
	answered bool
	bodies   [4][]byte
	omitted  [4]int // sizes of the bodies over maxBody
}

func (l *largeRecord) size() (n int) {
	for _, b := range l.bodies {
		n += len(b)
	}
	return n
}

func (q *queue) add(line []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.growLocked(len(line)) {
		return
	}
	if n := len(q.items); n > 0 {
		if last := &q.items[n-1]; last.large == nil && last.view == nil && cap(last.lines)-len(last.lines) >= len(line) {
			last.lines = append(last.lines, line...)
			return
		}
	}
	q.items = append(q.items, item{lines: append(q.blockLocked(len(line)), line...)})
}

// addView adds a view. It replaces one that no record follows, so that views take no room.
func (q *queue) addView(v *view) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if n := len(q.items); n > 0 && q.items[n-1].view != nil {
		q.items[n-1].view = v
		return
	}
	q.items = append(q.items, item{view: v})
}

// growLocked reserves bytes, or counts a dropped record.
func (q *queue) growLocked(n int) bool {
	before := q.size
	if before > 0 && before+n > maxQueue {
		q.dropped++
		return false
	}
	q.size += n
	if before < wakeSize && q.size >= wakeSize {
		select {
		case q.full <- struct{}{}:
		default:
		}
	}
	return true
}

func (q *queue) blockLocked(n int) []byte {
	if last := len(q.spare) - 1; last >= 0 && n <= blockSize {
		b := q.spare[last]
		q.spare = q.spare[:last]
		return b
	}
	return make([]byte, 0, max(n, blockSize))
}

func (q *queue) addLarge(rec *registry.TrafficRecord, full telemetry.Bodies) {
	one := &largeRecord{answered: full.Answered, bodies: [4][]byte{full.Request, full.Response, full.Sent, full.Answer}}
	for i, b := range one.bodies {
		if len(b) > maxBody {
			one.bodies[i], one.omitted[i] = nil, len(b)
		}
	}
	size := one.size()
	q.mu.Lock()
	ok := q.large < maxLarge && q.growLocked(size) // before the copy, to bound the memory
	if ok {
		q.large++
	} else if q.large == maxLarge {
		q.dropped++
	}
	q.mu.Unlock()
	if !ok {
		return
	}
	one.rec = *rec
	one.rec.Request, one.rec.Response, one.rec.Wire = nil, nil, bytes.Clone(rec.Wire)
	for i, b := range one.bodies {
		one.bodies[i] = bytes.Clone(b)
	}
	q.mu.Lock()
	q.items = append(q.items, item{large: one})
	q.mu.Unlock()
}

// take empties the queue.
func (q *queue) take() (items []item, dropped int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	items, dropped = q.items, q.dropped
	for _, one := range items {
		q.size -= len(one.lines)
		if one.large != nil {
			q.size -= one.large.size()
			q.large--
		}
	}
	q.items, q.dropped = nil, 0
	return items, dropped
}

// reuse returns a written block to the queue.
func (q *queue) reuse(block []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if cap(block) == blockSize && len(q.spare) < maxSpare {
		q.spare = append(q.spare, block[:0])
	}
}
