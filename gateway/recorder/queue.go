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
	maxLineGuess = 1 << 10  // bytes of a usual line
)

// queue holds encoded lines, and records whose bodies the writer still has to mask. If it
// is full, records are dropped and counted.
type queue struct {
	full chan struct{} // capacity one

	mu      sync.Mutex
	lines   []byte
	large   []largeRecord
	held    int // bytes of large
	dropped int
}

// largeRecord is a record with copies of its unmasked bodies.
type largeRecord struct {
	at   int // position in the lines
	rec  registry.TrafficRecord
	full telemetry.Bodies
}

// batch is the content of the queue.
type batch struct {
	lines   []byte
	large   []largeRecord
	dropped int
}

func (q *queue) add(line []byte) {
	q.mu.Lock()
	if len(q.lines)+q.held+len(line) > maxQueue {
		q.dropped++
		q.mu.Unlock()
		return
	}
	before := len(q.lines) + q.held
	q.lines = append(q.lines, line...)
	q.mu.Unlock()
	q.wake(before, before+len(line))
}

func (q *queue) addLarge(rec *registry.TrafficRecord, full telemetry.Bodies) {
	size := 0
	for _, b := range []*[]byte{&full.Request, &full.Response, &full.Sent, &full.Answer} {
		if len(*b) > maxBody {
			*b = nil
		}
		size += len(*b)
	}
	q.mu.Lock()
	before := len(q.lines) + q.held
	if before > 0 && before+size > maxQueue || len(q.large) == maxLarge {
		q.dropped++
		q.mu.Unlock()
		return
	}
	q.held += size // reserves the memory before it is copied
	q.mu.Unlock()

	one := largeRecord{rec: *rec, full: full}
	one.rec.Request, one.rec.Response, one.rec.Wire = nil, nil, bytes.Clone(rec.Wire)
	for _, b := range []*[]byte{&one.full.Request, &one.full.Response, &one.full.Sent, &one.full.Answer} {
		*b = bytes.Clone(*b)
	}
	q.mu.Lock()
	one.at = len(q.lines)
	q.large = append(q.large, one)
	q.mu.Unlock()
	q.wake(before, before+size)
}

// wake starts the writer if the size has exceeded wakeSize.
func (q *queue) wake(before, after int) {
	if before < wakeSize && after >= wakeSize {
		select {
		case q.full <- struct{}{}:
		default:
		}
	}
}

// take empties the queue. spare is reused memory for lines.
func (q *queue) take(spare []byte) batch {
	q.mu.Lock()
	defer q.mu.Unlock()
	b := batch{q.lines, q.large, q.dropped}
	for i := range q.large {
		f := &q.large[i].full
		q.held -= len(f.Request) + len(f.Response) + len(f.Sent) + len(f.Answer)
	}
	q.lines, q.large, q.dropped = spare[:0], nil, 0
	return b
}
