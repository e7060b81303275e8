package jsonrpc

import (
	"bytes"
	"slices"
	"sync"

	"goblin/gateway/memory"
)

// maxPrefix is how much is kept of a frame that was thrown away.
const maxPrefix = 4096

// unfinished is what has been read of a frame that is longer than a chunk. While
// its reader waits for more, others may look at it and throw it away.
type unfinished struct {
	grow func(n int64) // is told what more is held; may be nil

	mu     sync.Mutex
	chunks []*chunk
	start  []byte // the first bytes
	joined int64  // bytes of the whole frame, once it is put together
	shed   bool   // the frame was thrown away
}

// Watch makes grow hear how many bytes more of an unfinished frame are held. It is
// called from the goroutine that reads, before the first Read.
func (r *Reader) Watch(grow func(n int64)) { r.part.grow = grow }

// Held is how many bytes of an unfinished frame are held beyond what is read at
// once. It may be called from any goroutine.
func (r *Reader) Held() int64 { return r.part.held() }

// Shed throws the unfinished frame away, which Read then skips, and returns how many
// bytes that were and what to tell whoever waits for it; nil when there is none, or
// it has arrived meanwhile. It may be called from any goroutine.
func (r *Reader) Shed() (int64, *TooLong) {
	n, start := r.part.throwAway()
	if n == 0 {
		return 0, nil
	}
	return n, &TooLong{Prefix: start, Limit: r.limit, Cause: memory.ErrFull}
}

func (u *unfinished) held() int64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	return int64(len(u.chunks))*int64(len(chunk{})) + u.joined
}

func (u *unfinished) throwAway() (n int64, start []byte) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.chunks) == 0 || u.joined > 0 {
		return 0, nil
	}
	u.shed = true
	return u.drop(), u.start
}

// drop gives the chunks back. The lock is held.
func (u *unfinished) drop() int64 {
	n := int64(len(u.chunks)) * int64(len(chunk{}))
	for _, c := range u.chunks {
		chunks.Put(c)
	}
	u.chunks = nil
	return n
}

// add keeps a chunk; false when the frame has been thrown away.
func (u *unfinished) add(c *chunk) bool {
	u.mu.Lock()
	if u.shed {
		u.mu.Unlock()
		chunks.Put(c)
		return false
	}
	if u.start == nil {
		u.start = slices.Clone(c[:maxPrefix])
	}
	u.chunks = append(u.chunks, c)
	u.mu.Unlock()
	u.grown(len(c))
	return true
}

func (u *unfinished) grown(n int) {
	if u.grow != nil {
		u.grow(int64(n))
	}
}

// join puts the frame together with its last part; nil when it has been thrown
// away.
func (u *unfinished) join(last []byte) []byte {
	u.mu.Lock()
	if u.shed {
		u.mu.Unlock()
		return nil
	}
	parts := make([][]byte, 0, len(u.chunks)+1)
	for _, c := range u.chunks {
		parts = append(parts, c[:])
	}
	parts = append(parts, last)
	u.joined = int64(len(u.chunks))*int64(len(chunk{})) + int64(len(last))
	u.mu.Unlock()
	u.grown(int(u.joined))
	return bytes.Join(parts, nil)
}

// prefix are the first bytes.
func (u *unfinished) prefix() []byte {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.start
}

// clear makes ready for the next frame.
func (u *unfinished) clear() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.drop()
	u.start, u.joined, u.shed = nil, 0, false
}
