package jsonrpc

import "slices"

// WriteBatch collects the frames of a read loop for a common write. Call Flush before
// waiting. If nil, it sends each frame at once. It is not safe for concurrent use.
type WriteBatch struct {
	queues []*SendQueue
	size   int
}

// maxBuffered is the number of bytes that triggers a flush.
const maxBuffered = 4 << 10

// Send queues frame in o until Flush.
func (b *WriteBatch) Send(o *SendQueue, frame []byte) {
	if b == nil {
		o.Send(frame)
		return
	}
	o.queueUnflushed(frame)
	if !slices.Contains(b.queues, o) {
		b.queues = append(b.queues, o)
	}
	if b.size += len(frame); b.size >= maxBuffered {
		b.Flush()
	}
}

// Flush writes the collected frames without blocking.
func (b *WriteBatch) Flush() {
	if b == nil {
		return
	}
	for i, o := range b.queues {
		o.flush()
		b.queues[i] = nil
	}
	b.queues, b.size = b.queues[:0], 0
}
