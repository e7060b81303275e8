package jsonrpc

import (
	"sync"
	"sync/atomic"
)

// Buffer is the pooled memory of a large frame of a [Reader]. It returns to the pool when
// each holder has called Release. A holder that keeps part of the frame must not release
// it.
type Buffer struct {
	mem  []byte
	refs atomic.Int32
}

var bufferPool sync.Pool

func newBuffer(n int) *Buffer {
	b, _ := bufferPool.Get().(*Buffer)
	if b == nil || cap(b.mem) < n {
		b = &Buffer{mem: make([]byte, n)}
	}
	b.refs.Store(1)
	return b
}

func (b *Buffer) retain() {
	if b != nil {
		b.refs.Add(1)
	}
}

// Release drops a holder, which must not read the frame afterwards. b may be nil.
func (b *Buffer) Release() {
	if b != nil && b.refs.Add(-1) == 0 {
		bufferPool.Put(b)
	}
}
