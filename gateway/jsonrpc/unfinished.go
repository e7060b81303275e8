package jsonrpc

import (
	"bytes"
	"slices"
	"sync/atomic"
	"time"

	"goblin/gateway/memlimit"
)

// maxPrefix is how much is kept of a frame that was thrown away.
const maxPrefix = 4096

// unfinished is the part read so far of a frame that is longer than a chunk. It
// belongs to the goroutine that reads, but for its timer.
type unfinished struct {
	usual int // how long frames were of late

	line   []byte // its beginning, and if it stays as small as most do, all of it
	buffer *Buffer
	chunks []*chunk // what follows

	claim   memlimit.Reservation // of all that
	stalled func()
	late    *time.Timer // nil before the first frame
	last    atomic.Int64
	pool    *memlimit.Pool
}

// A frame is expected to be as long as those before it and slack bytes. Up to
// maxLine its memory grows as it comes. Larger ones are kept as they were read
// until they are whole: what peers send who stop in the middle must take no more
// memory than that.
const (
	slack   = 4 << 10
	maxLine = 1<<20 + 64<<10
)

// stallTimeout is how long a peer may be silent in the middle of a frame when there
// is little room for others.
const stallTimeout = time.Minute

// SetOwner counts unfinished frames for p: one for which there is no room is thrown
// away. stalled is called when the peer has not gone on with a frame for a minute,
// and others are short of room. Bound is called before the first Read.
func (r *Reader) SetOwner(p *memlimit.Owner, stalled func()) {
	r.part.claim.SetOwner(p)
	r.part.pool, r.part.stalled = p.Pool(), stalled
}

// overdue ends a peer that makes no progress, when that matters to others.
func (u *unfinished) overdue() {
	silent := time.Since(time.UnixMilli(u.last.Load()))
	switch {
	case !u.claim.IsCounted():
	case silent >= stallTimeout && u.pool.IsShort():
		u.stalled()
	default:
		u.late.Reset(max(stallTimeout-silent, time.Second))
	}
}

// size is how many bytes are held.
func (u *unfinished) size() int64 {
	return int64(cap(u.line)) + int64(len(u.chunks))*int64(len(chunk{}))
}

// add keeps what fills a chunk and returns one to go on with. line is the
// beginning of the frame so far; there may be no room for more of it.
func (u *unfinished) add(c *chunk) (next *chunk, line []byte, room bool) {
	next = c
	if len(u.chunks) > 0 || !u.append(c[:]) {
		u.chunks = append(u.chunks, c)
		next = chunks.Get().(*chunk)
	}
	begun := u.claim.IsCounted()
	room = u.claim.Resize(u.size())
	if u.pool != nil {
		u.last.Store(time.Now().UnixMilli())
		switch {
		case u.late == nil:
			u.late = time.AfterFunc(stallTimeout, u.overdue)
		case !begun:
			u.late.Reset(stallTimeout)
		}
	}
	return next, u.line, room
}

// append puts more into line, unless that became too long.
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
// of no use for others.
func (u *unfinished) finish(last []byte) ([]byte, *Buffer) {
	if len(u.chunks) == 0 && u.append(last) {
		return u.release()
	}
	parts := make([][]byte, 0, len(u.chunks)+2)
	parts = append(parts, u.line)
	for _, c := range u.chunks {
		parts = append(parts, c[:])
	}
	u.usual = maxLine
	return bytes.Join(append(parts, last), nil), nil
}

// release hands line over.
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

// start is a copy of the frame's first bytes.
func (u *unfinished) start() []byte { return slices.Clone(u.line[:maxPrefix]) }

// clear makes ready for the next frame.
func (u *unfinished) clear() {
	for _, c := range u.chunks {
		chunks.Put(c)
	}
	u.buffer.Release()
	u.line, u.buffer, u.chunks = nil, nil, nil
	u.claim.Resize(0)
}
