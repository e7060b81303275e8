package upstream

import (
	"time"

	"goblin/gateway/jsonrpc"
	"goblin/gateway/memory"
)

// childHolder is what a child process makes us hold: what it has not finished to
// say, and what it does not read.
type childHolder struct {
	c  *stdio
	in *jsonrpc.Reader
}

// account counts what a child makes us hold until leave.
func (c *stdio) account(in *jsonrpc.Reader) (leave func()) {
	a := c.srv.opt.Memory
	h := &childHolder{c, in}
	in.Watch(a.Grow)
	a.Join(h)
	return func() { a.Leave(h) }
}

// Held implements [memory.Holder].
func (h *childHolder) Held() int64 {
	if h.c.ctx.Err() != nil {
		return 0
	}
	return h.in.Held() + h.c.out.Unsent()
}

// notReading is how long a child may leave its stdin unread while what waits for it
// is needed. While it reads, clients that send much give way: many may share it.
const notReading = 5 * time.Second

// Shed implements [memory.Holder].
func (h *childHolder) Shed(int64) int64 {
	frame, unsent := h.in.Held(), h.c.out.Unsent()
	if frame >= unsent || h.c.out.Stalled() < notReading {
		n, lost := h.in.Shed()
		if lost != nil {
			h.c.tooLong(lost)
		}
		return n
	}
	h.c.fail(h.c.srv.failure(ConnectionError, "the process does not read its stdin: "+memory.ErrFull.Error(), memory.ErrFull))
	return frame + unsent
}

// spawnHolding is spawn for work on a large thing, which is released in the end.
func (l *link) spawnHolding(p *memory.Piece, f func()) {
	if !l.spawn(func() {
		defer p.Release()
		f()
	}) {
		p.Release()
	}
}

// lost says why an answer was thrown away.
func lost(e *jsonrpc.TooLong) string {
	if e.Cause != nil {
		return "its answer was lost: " + e.Error()
	}
	return "sent an answer that is too large: " + e.Error()
}
