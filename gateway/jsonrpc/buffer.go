package jsonrpc

import (
	"sync"
	"sync/atomic"
)

// Buffer is the pooled memory of a large frame that a [Reader] has read. It returns to
// the pool after every holder called Release. A holder that keeps part of the frame must
// not call Release; the garbage collector then frees the memory.
type Buffer struct {
	mem  []byte
	refs atomic.Int32
}

var bufferPool sync.Pool

// newBuffer returns a Buffer of at least n bytes, held by the caller.
func newBuffer(n int) *Buffer {
	b, _ := bufferPool.Get().(*Buffer)
	if b == nil || cap(b.mem) < n {
		b = &Buffer{mem: make([]byte, n)}
	}
	b.refs.Store(1)
	return b
}

// retain adds a holder.
func (b *Buffer) retain() {
	if b != nil {
		b.refs.Add(1)
	}
}

// Release drops one holder, which must not read the frame afterwards. b may be nil.
func (b *Buffer) Release() {
	if b != nil && b.refs.Add(-1) == 0 {
		bufferPool.Put(b)
	}
}
