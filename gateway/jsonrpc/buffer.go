package jsonrpc

import (
	"sync"
	"sync/atomic"
	"weak"
)

// Buffer is the pooled memory of a large frame of a [Reader]. It returns to the pool when
// each holder has called Release. A holder that keeps part of the frame must not release
// it.
type Buffer struct {
	mem  []byte
	refs atomic.Int32
}

// freeBuffers lists unused buffers until the next garbage collection. A sync.Pool keeps
// some per processor, and for another collection.
var freeBuffers struct {
	sync.Mutex
	list []weak.Pointer[Buffer] // at most maxFreeBuffers
}

const maxFreeBuffers = 64

func newBuffer(n int) *Buffer {
	b := freeBuffer(n)
	if b == nil {
		b = &Buffer{mem: make([]byte, n)}
	}
	b.refs.Store(1)
	return b
}

// freeBuffer takes a buffer of at least n bytes from the pool, or returns nil. It forgets
// smaller ones.
func freeBuffer(n int) *Buffer {
	f := &freeBuffers
	f.Lock()
	defer f.Unlock()
	for last := len(f.list) - 1; last >= 0; last-- {
		b := f.list[last].Value()
		f.list = f.list[:last]
		if b != nil && cap(b.mem) >= n {
			return b
		}
	}
	return nil
}

func (b *Buffer) retain() {
	if b != nil {
		b.refs.Add(1)
	}
}

// Release drops a holder, which must not read the frame afterwards. b may be nil.
func (b *Buffer) Release() {
	if b == nil || b.refs.Add(-1) != 0 {
		return
	}
	f := &freeBuffers
	f.Lock()
	defer f.Unlock()
	if len(f.list) < maxFreeBuffers {
		f.list = append(f.list, weak.Make(b))
	}
}
