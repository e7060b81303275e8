package downstream

import (
	"goblin/gateway/jsonrpc"
	"goblin/gateway/memlimit"
)

// memoryShare is a client's share of the memory limit, with the part used by its
// requests.
type memoryShare struct {
	*memlimit.Owner
	bytes       int64                // of requests; guarded by the session's mu
	reservation memlimit.Reservation // of bytes
}

func newMemoryShare(a *memlimit.Pool) *memoryShare {
	h := &memoryShare{Owner: a.NewOwner()}
	h.reservation.SetOwner(h.Owner)
	return h
}

// addLocked counts a request until removeLocked. It returns false if the memory limit
// refuses it.
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

// noMemoryError returns the error for a message that the memory limit refuses.
func noMemoryError(what string) *jsonrpc.Error {
	return jsonrpc.Errorf(jsonrpc.CodeInternal, "The %s was discarded: %v; send it again later", what, memlimit.ErrFull)
}

// checkMemory reports whether the memory limit allows an answer of size bytes. If not, it
// answers with an error.
func (x *Request) checkMemory(size int) bool {
	if x.share == nil || x.share.CanReserve(size) {
		return true
	}
	x.session.opt.Logger.Warn("answer refused: memory limit for all clients and servers reached", "session", x.session.id, "bytes", size)
	e := noMemoryError("answer")
	x.end(ErrAnswered, func() { x.out.answer(e.Frame(x.id), e.Code, x.writeBatch, x.predecessors) })
	return false
}

// closeNoMemory closes a session whose unsent bytes exceed the memory limit.
func (s *Session) closeNoMemory(unsent int64) {
	s.opt.Logger.Warn("session closed: memory limit for all clients and servers reached", "session", s.id, "unsent", unsent)
	s.Close(ErrNoMemory)
}
