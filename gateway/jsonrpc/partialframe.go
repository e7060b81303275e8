package jsonrpc

import (
	"bytes"
	"slices"
	"sync/atomic"
	"time"

	"goblin/gateway/memlimit"
)

// maxPrefix is the number of bytes kept of a discarded frame.
const maxPrefix = 4096

// partialFrame is the part read so far of a frame that is longer than a chunk. It belongs to
// the reading goroutine, except its timer.
type partialFrame struct {
	expectedSize int // from the recent frames, in bytes

	line   []byte // the beginning of the frame, or all of it if it stays small
	buffer *Buffer
	chunks []*chunk // the rest of the frame

	reservation memlimit.Reservation // of line and chunks
	onStalled   func()
	timer       *time.Timer  // nil before the first frame
	lastRead    atomic.Int64 // in Unix milliseconds
	pool        *memlimit.Pool
}

// A frame is expected to be as long as those before it and slack bytes. Up to
// maxLine its memory grows as it comes. Larger ones are kept as they were read
// until they are whole: what peers send who stop in the middle must take no more
// memory than that.
const (
	slack   = 4 << 10
	maxLine = 1<<20 + 64<<10
)

// stallTimeout is how long a peer may be silent within a frame while memory is short.
const stallTimeout = time.Minute

// SetOwner counts unfinished frames in p's share and discards a frame that exceeds it. stalled
// is called if a peer is silent within a frame for a minute while memory is short. Call
// SetOwner before the first Read.
func (r *Reader) SetOwner(p *memlimit.Owner, stalled func()) {
	r.part.reservation.SetOwner(p)
	r.part.pool, r.part.onStalled = p.Pool(), stalled
}

// checkStalled calls onStalled if the peer makes no progress while memory is short.
func (u *partialFrame) checkStalled() {
	silent := time.Since(time.UnixMilli(u.lastRead.Load()))
	switch {
	case !u.reservation.IsCounted():
	case silent >= stallTimeout && u.pool.IsShort():
		u.onStalled()
	default:
		u.timer.Reset(max(stallTimeout-silent, time.Second))
	}
}

// size returns the number of bytes held.
func (u *partialFrame) size() int64 {
	return int64(cap(u.line)) + int64(len(u.chunks))*int64(len(chunk{}))
}

// add stores a full chunk and returns an empty one. line is the contiguous beginning of the
// frame so far. room is false if the memory limit refuses the frame.
func (u *partialFrame) add(c *chunk) (next *chunk, line []byte, room bool) {
	next = c
	if len(u.chunks) > 0 || !u.append(c[:]) {
		u.chunks = append(u.chunks, c)
		next = chunkPool.Get().(*chunk)
	}
	begun := u.reservation.IsCounted()
	room = u.reservation.Resize(u.size())
	if u.pool != nil {
		u.lastRead.Store(time.Now().UnixMilli())
		switch {
		case u.timer == nil:
			u.timer = time.AfterFunc(stallTimeout, u.checkStalled)
		case !begun:
			u.timer.Reset(stallTimeout)
		}
	}
	return next, u.line, room
}

// append appends to line unless that would exceed maxLine.
func (u *partialFrame) append(more []byte) bool {
	need := len(u.line) + len(more)
	if need > maxLine {
		return false
	}
	if need > cap(u.line) {
		size := max(4*len(chunk{}), 2*cap(u.line))
		if u.line == nil {
			size = max(size, u.expectedSize)
		}
		old, line := u.buffer, u.line
		u.buffer = newBuffer(min(size, maxLine))
		u.line = append(u.buffer.mem[:0], line...)
		old.Release()
	}
	u.line = append(u.line, more...)
	return true
}

// finish returns the whole frame, including last, and its memory, nil if that is not reusable.
func (u *partialFrame) finish(last []byte) ([]byte, *Buffer) {
	if len(u.chunks) == 0 && u.append(last) {
		return u.takeLine()
	}
	parts := make([][]byte, 0, len(u.chunks)+2)
	parts = append(parts, u.line)
	for _, c := range u.chunks {
		parts = append(parts, c[:])
	}
	u.expectedSize = maxLine
	return bytes.Join(append(parts, last), nil), nil
}

// takeLine returns line with its memory, and forgets both.
func (u *partialFrame) takeLine() ([]byte, *Buffer) {
	line, buffer := u.line, u.buffer
	u.line, u.buffer = nil, nil
	u.expectedSize = min(max(len(line)+slack, u.expectedSize-u.expectedSize/8), maxLine)
	if cap(line) > 2*len(line) { // who keeps it must not keep all that room
		line = bytes.Clone(line)
		buffer.Release()
		buffer = nil
	}
	return line, buffer
}

// prefix returns a copy of the frame's first bytes.
func (u *partialFrame) prefix() []byte { return slices.Clone(u.line[:maxPrefix]) }

// clear prepares for the next frame.
func (u *partialFrame) clear() {
	for _, c := range u.chunks {
		chunkPool.Put(c)
	}
	u.buffer.Release()
	u.line, u.buffer, u.chunks = nil, nil, nil
	u.reservation.Resize(0)
}
