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
	line   []byte // its beginning, and if it stays as small as most do, all of it
	buffer *Buffer
	chunks []*chunk // what follows
	joined int64    // bytes of the whole frame, once it is put together from them
	shed   bool     // the frame was thrown away
}

// A frame is expected to be as long as those before it and slack bytes. Up to
// maxLine its memory grows as it comes. Larger ones are kept as they were read
// until they are whole: what peers send who stop in the middle must take no more
// memory than that.
const (
	slack   = 4 << 10
	maxLine = 1<<20 + 64<<10
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
	return u.size() + u.joined
}

// size is what is held of parts. The lock is held.
func (u *unfinished) size() int64 {
	return int64(cap(u.line)) + int64(len(u.chunks))*int64(len(chunk{}))
}

func (u *unfinished) throwAway() (n int64, start []byte) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.line == nil || u.joined > 0 {
		return 0, nil
	}
	n = u.size()
	start, u.shed = slices.Clone(u.line[:maxPrefix]), true
	// The reader may be looking at it: it is left to the collector.
	u.line, u.buffer = nil, nil
	u.drop()
	return n, start
}

// drop gives the chunks back. The lock is held.
func (u *unfinished) drop() {
	for _, c := range u.chunks {
		chunks.Put(c)
	}
	u.chunks = nil
}

// add keeps what fills a chunk and returns one to go on with. line is the
// beginning of the frame so far; not kept when it has been thrown away.
func (u *unfinished) add(c *chunk) (next *chunk, line []byte, kept bool) {
	u.mu.Lock()
	if u.shed {
		u.mu.Unlock()
		return c, nil, false
	}
	before := u.size()
	if next = c; len(u.chunks) > 0 || !u.append(c[:]) {
		u.chunks = append(u.chunks, c)
		next = chunks.Get().(*chunk)
	}
	line, before = u.line, u.size()-before
	u.mu.Unlock()
	u.grown(before)
	return next, line, true
}

func (u *unfinished) grown(n int64) {
	if u.grow != nil && n > 0 {
		u.grow(n)
	}
}

// append puts more into line, unless that became too long. The lock is held.
func (u *unfinished) append(more []byte) bool {
	need := len(u.line) + len(more)
	if need > maxLine {
		return false
	}
	if need > cap(u.line) {
		size := max(4*len(chunk{}), 2*cap(u.line))
		if u.line == nil {
			size = max(size, u.usual)
		}
		old, line := u.buffer, u.line
		u.buffer = newBuffer(min(size, maxLine))
		u.line = append(u.buffer.mem[:0], line...)
		old.Release()
	}
	u.line = append(u.line, more...)
	return true
}

// finish is the whole frame, with its last part, and its memory, nil where that is
// of no use for others; nil when it has been thrown away.
func (u *unfinished) finish(last []byte) ([]byte, *Buffer) {
	u.mu.Lock()
	if u.shed {
		u.mu.Unlock()
		return nil, nil
	}
	if len(u.chunks) == 0 && u.append(last) {
		defer u.mu.Unlock()
		return u.release()
	}
	parts := make([][]byte, 0, len(u.chunks)+2)
	parts = append(parts, u.line)
	for _, c := range u.chunks {
		parts = append(parts, c[:])
	}
	u.joined = int64(len(u.line)) + int64(len(u.chunks))*int64(len(chunk{})) + int64(len(last))
	u.usual = maxLine
	u.mu.Unlock()
	u.grown(u.joined)
	return bytes.Join(append(parts, last), nil), nil
}

// release hands line over. The lock is held.
func (u *unfinished) release() ([]byte, *Buffer) {
	line, buffer := u.line, u.buffer
	u.line, u.buffer = nil, nil
	u.usual = min(max(len(line)+slack, u.usual-u.usual/8), maxLine)
	if cap(line) > 2*len(line) { // who keeps it must not keep all that room
		line = bytes.Clone(line)
		buffer.Release()
		buffer = nil
	}
	return line, buffer
}

// discard drops a frame that is too long and returns its first bytes; not ok when
// it was thrown away before.
func (u *unfinished) discard() (start []byte, ok bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.shed {
		return nil, false
	}
	start = slices.Clone(u.line[:maxPrefix])
	u.reset()
	return start, true
}

// clear makes ready for the next frame.
func (u *unfinished) clear() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.reset()
}

// reset forgets the frame. The lock is held.
func (u *unfinished) reset() {
	u.drop()
	u.buffer.Release()
	u.line, u.buffer, u.joined, u.shed = nil, nil, 0, false
}
