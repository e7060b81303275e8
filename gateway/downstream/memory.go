package downstream

import (
	"goblin/gateway/jsonrpc"
	"goblin/gateway/memlimit"
)

type memoryShare struct {
	*memlimit.Owner
	bytes       int64 // of requests; guarded by the session's mu
	reservation memlimit.Reservation
}

func newMemoryShare(a *memlimit.Pool) *memoryShare {
	h := &memoryShare{Owner: a.NewOwner()}
	h.reservation.SetOwner(h.Owner)
	return h
}

// addLocked counts a request until removeLocked. It returns false over the memory limit.
func (h *memoryShare) addLocked(x *Request) bool {
	n := int64(len(x.params) + len(x.id))
	if !h.reservation.Resize(h.bytes + n) {
		return false
	}
	h.bytes += n
	return true
}

func (h *memoryShare) removeLocked(x *Request) {
	h.bytes -= int64(len(x.params) + len(x.id))
	h.reservation.Resize(h.bytes)
}

func noMemoryError(what string) *jsonrpc.Error {
	return jsonrpc.Errorf(jsonrpc.CodeInternal, "The %s was discarded: %v; send it again later", what, memlimit.ErrFull)
}

// checkMemory answers with an error and returns false if the memory limit refuses an
// answer of size bytes.
func (x *Request) checkMemory(size int) bool {
	if x.share == nil || x.share.CanReserve(size) {
		return true
	}
	x.session.opt.Logger.Warn("answer refused: memory limit for all clients and servers reached", "session", x.session.id, "bytes", size)
	e := noMemoryError("answer")
	x.end(ErrAnswered, func() { x.out.answer(e.Frame(x.id), e.Code, x.writeBatch, x.predecessors) })
	return false
}

func (s *Session) closeNoMemory(unsent int64) {
	s.opt.Logger.Warn("session closed: memory limit for all clients and servers reached", "session", s.id, "unsent", unsent)
	s.Close(ErrNoMemory)
}
