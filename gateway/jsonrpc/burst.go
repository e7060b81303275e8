package jsonrpc

import "slices"

// WriteBatch collects what a read loop sends because of what it reads, so that one
// write takes what answers, or passes on, one read. The loop flushes it before
// it waits for anything, or else its peers would wait too. A nil Burst sends
// each frame at once. It belongs to one goroutine.
type WriteBatch struct {
	boxes []*SendQueue
	size  int
}

// maxHeld is how many bytes a Burst holds back: whoever gets them can work
// meanwhile.
const maxHeld = 4 << 10

// Send is [SendQueue.Send] to o, at Flush at the latest.
func (b *WriteBatch) Send(o *SendQueue, frame []byte) {
	if b == nil {
		o.Send(frame)
		return
	}
	o.hold(frame)
	if !slices.Contains(b.boxes, o) {
		b.boxes = append(b.boxes, o)
	}
	if b.size += len(frame); b.size >= maxHeld {
		b.Flush()
	}
}

// Flush writes what was held back, without waiting.
func (b *WriteBatch) Flush() {
	if b == nil {
		return
	}
	for i, o := range b.boxes {
		o.flush()
		b.boxes[i] = nil
	}
	b.boxes, b.size = b.boxes[:0], 0
}
