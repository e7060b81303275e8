package downstream

import (
	"goblin/gateway/jsonrpc"
	"goblin/gateway/memlimit"
)

// share is a client's part of what all together may make the process hold, and what
// its requests in flight take of it: their params and ids.
type share struct {
	*memlimit.Owner
	bytes int64                // of requests; guarded by the session's mu
	claim memlimit.Reservation // of bytes
}

func newShare(a *memlimit.Pool) *share {
	h := &share{Owner: a.NewOwner()}
	h.claim.SetOwner(h.Owner)
	return h
}

// addLocked counts a request until removeLocked; it reports false when there is no
// room for it.
func (h *share) addLocked(x *Request) bool {
	n := int64(len(x.params) + len(x.id))
	if !h.claim.Resize(h.bytes + n) {
		return false
	}
	h.bytes += n
	return true
}

func (h *share) removeLocked(x *Request) {
	h.bytes -= int64(len(x.params) + len(x.id))
	h.claim.Resize(h.bytes)
}

// crowded is the error for what there is no room for.
func crowded(what string) *jsonrpc.Error {
	return jsonrpc.Errorf(jsonrpc.CodeInternal, "The %s was given up: %v; send it again later", what, memlimit.ErrFull)
}

// fits reports whether there is room for an answer of so many bytes. If not, an
// error is sent in its place.
func (x *Request) fits(size int) bool {
	if x.share == nil || x.share.CanReserve(size) {
		return true
	}
	x.session.opt.Logger.Warn("an answer was refused: too much is held for all clients and servers together", "session", x.session.id, "bytes", size)
	e := crowded("answer")
	x.end(ErrAnswered, func() { x.out.answer(e.Frame(x.id), e.Code, x.burst, x.behind) })
	return false
}

// crowd ends a session that leaves more unread than there is room for.
func (s *Session) crowd(unsent int64) {
	s.opt.Logger.Warn("a session was ended: too much is held for all clients and servers together", "session", s.id, "unsent", unsent)
	s.Close(ErrNoMemory)
}
