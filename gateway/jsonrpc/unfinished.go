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
	grow  func(n int64) // is told what more is held; may be nil
	usual int           // how long frames were of late

	mu     sync.Mutex
	line   []byte  // what is there
	buffer *Buffer // its memory; nil where that is of no use for others
	start  []byte  // the first bytes of what was thrown away
	shed   bool    // the frame was thrown away
}

// A frame is expected to be as long as those before it and slack bytes, up to
// maxUsual: peers that stop in the middle of one must not take much more memory
// than they have sent. Where it is longer, room for it grows as it comes, in
// memory that is used again up to maxBuffer.
const (
	slack     = 4 << 10
	maxUsual  = 1 << 20
	maxBuffer = 8 << 20
)

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
	return int64(cap(u.line))
}

func (u *unfinished) throwAway() (n int64, start []byte) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.line == nil {
		return 0, nil
	}
	n = int64(cap(u.line))
	u.start, u.shed = slices.Clone(u.line[:min(len(u.line), maxPrefix)]), true
	// The reader may be looking at it: it is left to the collector.
	u.line, u.buffer = nil, nil
	return n, u.start
}

// add keeps a copy of what follows and returns all that is there, until then; not
// kept when the frame has been thrown away.
func (u *unfinished) add(more []byte, limit int64) (line []byte, kept bool) {
	u.mu.Lock()
	if u.shed {
		u.mu.Unlock()
		return nil, false
	}
	before := cap(u.line)
	u.append(more, limit)
	line = u.line
	u.mu.Unlock()
	if u.grow != nil && cap(line) > before {
		u.grow(int64(cap(line) - before))
	}
	return line, true
}

// append makes room where it is needed, but not much more than limit allows to
// come. The lock is held.
func (u *unfinished) append(more []byte, limit int64) {
	need := len(u.line) + len(more)
	if need > cap(u.line) {
		size := max(4*len(more), 2*cap(u.line), need)
		if u.line == nil {
			size = max(size, u.usual)
		}
		size = max(need, int(min(int64(size), limit+int64(len(chunk{})))))
		old, line := u.buffer, u.line
		if size > maxBuffer {
			u.buffer, u.line = nil, make([]byte, 0, size)
		} else {
			u.buffer = newBuffer(size)
			u.line = u.buffer.mem[:0]
		}
		u.line = append(u.line, line...)
		old.Release()
	}
	u.line = append(u.line, more...)
}

// finish is the whole frame, with its last part, and its memory; nil when it has
// been thrown away.
func (u *unfinished) finish(last []byte, limit int64) ([]byte, *Buffer) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.shed {
		return nil, nil
	}
	u.append(last, limit)
	line, buffer := u.line, u.buffer
	u.line, u.buffer = nil, nil
	u.usual = min(max(len(line)+slack, u.usual-u.usual/8), maxUsual)
	if cap(line) > 2*len(line) { // who keeps it must not keep all that room
		line = bytes.Clone(line)
		buffer.Release()
		buffer = nil
	}
	return line, buffer
}

// prefix are the first bytes.
func (u *unfinished) prefix() []byte {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.shed {
		return u.start
	}
	return u.line[:min(len(u.line), maxPrefix)]
}

// clear makes ready for the next frame.
func (u *unfinished) clear() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.buffer.Release()
	u.line, u.buffer, u.start, u.shed = nil, nil, nil, false
}
