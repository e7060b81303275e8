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

// partialFrame holds the bytes of a frame longer than a chunk. All but its timer belongs
// to the reading goroutine.
type partialFrame struct {
	expectedSize int // estimate from recent frames, in bytes

	line   []byte // the beginning, or all of it
	buffer *Buffer
	chunks []*chunk // the rest of the frame

	reservation memlimit.Reservation // of line and chunks
	onStalled   func()
	timer       *time.Timer  // nil before the first frame
	lastRead    atomic.Int64 // in Unix milliseconds
	pool        *memlimit.Pool
}

// Up to maxLine, memory grows from expectedSize. Larger frames stay in chunks, so a peer
// that stops halfway costs only what it sent.
const (
	slack   = 4 << 10
	maxLine = 1<<20 + 64<<10
)

// stallTimeout limits silence within a frame while memory is short.
const stallTimeout = time.Minute

// SetOwner counts unfinished frames in p's share and discards frames that exceed it.
// stalled is called if a peer pauses in a frame for a minute while memory is short. Call
// it before the first Read.
func (r *Reader) SetOwner(p *memlimit.Owner, stalled func()) {
	r.part.reservation.SetOwner(p)
	r.part.pool, r.part.onStalled = p.Pool(), stalled
}

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

func (u *partialFrame) size() int64 {
	return int64(cap(u.line)) + int64(len(u.chunks))*int64(len(chunk{}))
}

// add stores a full chunk and returns an empty one and the contiguous beginning of the
// frame. room is false over the memory limit.
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

// finish returns the frame ending with last, and its memory or nil.
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

func (u *partialFrame) takeLine() ([]byte, *Buffer) {
	line, buffer := u.line, u.buffer
	u.line, u.buffer = nil, nil
	u.expectedSize = min(max(len(line)+slack, u.expectedSize-u.expectedSize/8), maxLine)
	if cap(line) > 2*len(line) { // do not retain the unused half
		line = bytes.Clone(line)
		buffer.Release()
		buffer = nil
	}
	return line, buffer
}

func (u *partialFrame) prefix() []byte { return slices.Clone(u.line[:maxPrefix]) }

func (u *partialFrame) clear() {
	for _, c := range u.chunks {
		chunkPool.Put(c)
	}
	u.buffer.Release()
	u.line, u.buffer, u.chunks = nil, nil, nil
	u.reservation.Resize(0)
}
