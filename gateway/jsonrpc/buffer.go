package jsonrpc

import (
	"sync"
	"sync/atomic"
)

// Buffer is the memory of a large frame that a [Reader] has read, which saves
// the next one the work of making and collecting as much. It is used again when
// all holders have let go of it, and not at all if one never does: a holder that
// keeps a part of the frame, or does not know, leaves it to the collector.
type Buffer struct {
	mem     []byte
	holders atomic.Int32
}

var buffers sync.Pool // of *Buffer that nobody holds

// newBuffer returns a Buffer of at least n bytes, which the caller holds.
func newBuffer(n int) *Buffer {
	b, _ := buffers.Get().(*Buffer)
	if b == nil || cap(b.mem) < n {
		b = &Buffer{mem: make([]byte, n)}
	}
	b.holders.Store(1)
	return b
}

// hold adds a holder.
func (b *Buffer) hold() {
	if b != nil {
		b.holders.Add(1)
	}
}

// Release says that the caller, a holder of b, does not look at the frame any
// more. b may be nil.
func (b *Buffer) Release() {
	if b != nil && b.holders.Add(-1) == 0 {
		buffers.Put(b)
	}
}
