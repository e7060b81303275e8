package downstream

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"goblin/gateway/jsonrpc"
	"goblin/gateway/memory"
)

// crowded ends the context of a request that was given up, with a reason for
// whoever passes that on.
type crowded struct{ error }

func (crowded) Reason() string { return "no room for the request" }

var errCrowdedRequest = crowded{memory.ErrFull}

// holding counts the params of the requests that a session has in flight. It is
// guarded by the session's mu.
type holding struct {
	bytes int64
	told  int64 // what the Account knows of
}

// hold counts the params and the id of a request until release. The session's mu is held.
func (s *Session) hold(x *Exchange) {
	x.held = int64(len(x.params) + len(x.id))
	h := &s.holding
	if h.bytes += x.held; h.bytes-h.told >= memory.Free {
		s.opt.Memory.Grow(h.bytes - h.told)
		h.told = h.bytes
	}
}

// release undoes hold. The session's mu is held.
func (s *Session) release(x *Exchange) {
	h := &s.holding
	h.bytes -= x.held
	h.told = min(h.told, h.bytes)
	x.held = 0
}

func (s *Session) requestBytes() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.holding.bytes
}

// refuse gives up requests in flight, the largest first, until need bytes are
// free.
func (s *Session) refuse(need int64) (released int64) {
	s.mu.Lock()
	all := make([]*Exchange, 0, len(s.inFlight))
	for _, x := range s.inFlight {
		if x.held > 0 {
			all = append(all, x)
		}
	}
	slices.SortFunc(all, func(x, y *Exchange) int { return cmp.Compare(y.held, x.held) })
	n := 0
	for released < need && n < len(all) {
		released += all[n].held
		s.release(all[n])
		n++
	}
	s.mu.Unlock()
	s.giveUp(released, all[:n]...)
	return released
}

// giveUp answers requests for whose params, of so many bytes, there is no room any
// more.
func (s *Session) giveUp(bytes int64, all ...*Exchange) {
	if len(all) == 0 {
		return
	}
	s.opt.Logger.Warn("requests were refused: too much is held for all clients and servers together",
		"session", s.id, "requests", len(all), "bytes", bytes)
	e := jsonrpc.Errorf(jsonrpc.CodeInternal, "The request was given up: %v; send it again later", memory.ErrFull)
	for _, x := range all {
		x.end(errCrowdedRequest, "", func() { x.out.answer(e.Frame(x.id), e.Code, nil, x.behind) })
	}
}

// streamHolder is what the client of a byte stream makes us hold.
type streamHolder struct {
	s   *Session
	in  *jsonrpc.Reader
	out *wire
}

// Held implements [memory.Holder].
func (h *streamHolder) Held() int64 {
	if h.s.ctx.Err() != nil {
		return 0
	}
	return h.in.Held() + h.s.requestBytes() + h.s.base.unsent()
}

// Shed implements [memory.Holder]: what is most of it is given up.
func (h *streamHolder) Shed(need int64) int64 {
	frame, requests, unsent := h.in.Held(), h.s.requestBytes(), h.s.base.unsent()
	switch {
	case frame >= max(requests, unsent):
		n, lost := h.in.Shed()
		if lost != nil {
			h.s.tooLong(lost, h.out)
		}
		return n
	case requests >= unsent:
		return h.s.refuse(need)
	}
	return h.s.overcrowded(frame+requests, unsent)
}

// overcrowded ends a session that reads too little.
func (s *Session) overcrowded(rest, unsent int64) int64 {
	s.opt.Logger.Warn("a session was ended: too much is held for all clients and servers together", "session", s.id, "unsent", unsent)
	s.Close(ErrCrowded)
	return rest + unsent
}

// Held implements [memory.Holder], for a session or for one stateless request. What
// is on its way to a client outlives its session.
func (b *hub) Held() int64 {
	held := b.large.Held() + b.queued()
	if b.s.ctx.Err() == nil {
		held += b.requestBytes()
	}
	return held
}

// requestBytes are those of the session's requests in flight, or of the one
// stateless request.
func (b *hub) requestBytes() int64 {
	if b.drop == nil {
		return b.s.requestBytes()
	}
	b.s.mu.Lock()
	defer b.s.mu.Unlock()
	if b.own == nil {
		return 0
	}
	return b.own.held
}

// Shed implements [memory.Holder]: what is most of it is given up.
func (b *hub) Shed(need int64) int64 {
	large, requests, queued := b.large.Held(), b.requestBytes(), b.queued()
	switch {
	case large >= max(requests, queued):
		return b.large.Shed(need)
	case requests < queued:
		b.cut(ErrCrowded)
		if b.drop == nil {
			return b.s.overcrowded(requests, queued)
		}
		b.s.opt.Logger.Warn("an answer was cut off: too much is held for all clients and servers together", "session", b.s.id, "bytes", queued)
		return queued
	case b.drop == nil:
		return b.s.refuse(need)
	}
	b.s.mu.Lock()
	x := b.own
	b.s.release(x)
	b.s.mu.Unlock()
	b.s.giveUp(requests, x)
	return requests
}

// grew tells the Account of n bytes more for a client that has not read what
// came before them.
func (b *hub) grew(n int) {
	b.joinAlone()
	b.s.opt.Memory.Grow(int64(n))
}

// joinAlone makes what a stateless request holds count for itself: its session
// stands for many clients.
func (b *hub) joinAlone() {
	if b.drop != nil {
		b.s.opt.Memory.Join(b)
	}
}

// owns makes x the stateless request that the hub is for.
func (b *hub) owns(x *Exchange) {
	b.s.mu.Lock()
	b.own = x
	large := x.held > memory.Free
	b.s.mu.Unlock()
	if large {
		b.joinAlone()
	}
}

// upload is a body that is being read. What it takes counts for its session, or
// for itself where there is none yet.
type upload struct {
	account *memory.Account
	session *hub
	alone   memory.Stock
	drop    func()
	piece   *memory.Piece
}

// room takes n bytes more; false when they have been given up.
func (u *upload) room(n int) bool {
	switch {
	case u.piece != nil:
		if !u.piece.Grow(int64(n)) {
			return false
		}
	case u.session != nil:
		u.piece = u.session.large.Add(int64(n), u.drop)
	default:
		u.account.Join(&u.alone)
		u.piece = u.alone.Add(int64(n), u.drop)
	}
	u.account.Grow(int64(n))
	return true
}

// end gives back what the body took. It reports whether that had been given up
// before.
func (u *upload) end() (shed bool) {
	if u.piece != nil && u.session == nil {
		u.account.Leave(&u.alone)
	}
	return u.piece.Release()
}

// stopReading ends a blocked read, stopWriting a blocked write.
func stopReading(rc *http.ResponseController) {
	rc.SetReadDeadline(time.Unix(1, 0)) //nolint:errcheck // not every reader can
}

func stopWriting(rc *http.ResponseController) {
	rc.SetWriteDeadline(time.Unix(1, 0)) //nolint:errcheck // not every writer can
}
