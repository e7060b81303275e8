package upstream

import (
	"bytes"
	"io"
	"net/http"
	"time"

	"goblin/gateway/upstream/wire"
	"goblin/registry/rawjson"
)

// A server that forgets a session is connected to again, once for each session. Requests
// that the server refused for that reason are sent again.

// loss judges an answer to a request of the connection. c is the call, or nil for
// other messages.
func (r *remote) loss(c *Call, status int, body []byte) wire.SessionLoss {
	if !r.inSession() || c != nil && c.handshake {
		return wire.SessionKept
	}
	return wire.JudgeSession(status, body, c != nil && c.own)
}

// lossIn is loss for a message of a stream or a body with status 200.
func (r *remote) lossIn(c *Call, message []byte) wire.SessionLoss {
	if len(message) > maxRefusal || !bytes.Contains(message, []byte(`"error"`)) {
		return wire.SessionKept
	}
	return r.loss(c, http.StatusOK, message)
}

// take handles a message that arrived because of a call. It is handle, except for errors
// that say that the session is lost.
func (h *streamable) take(c *Call, id int64, message []byte) bool {
	switch h.lossIn(c, message) {
	case wire.SessionLost:
		_ = h.forgot(id)
		return true
	case wire.SessionSuspect:
		h.doubt()
	}
	return false
}

// refusedSession reads the body of an answer of status 401 without a challenge, and
// reports whether it says that the session is lost, rather than the login.
func (r *remote) refusedSession(resp *http.Response) bool {
	if resp.StatusCode != http.StatusUnauthorized || resp.Header.Get("WWW-Authenticate") != "" || !r.inSession() {
		return false
	}
	text, _ := io.ReadAll(io.LimitReader(resp.Body, maxRefusal))
	b := resp.Body.(*body)
	b.ReadCloser = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(text), b.ReadCloser), b.ReadCloser}
	return wire.JudgeSession(resp.StatusCode, text, false) == wire.SessionLost
}

// forgot closes the connection because the server has lost its session. It fails the call
// that was refused for that, so that it is sent again. Other calls may have been carried out.
func (r *remote) forgot(id int64) error {
	known := r.over.Swap(true) // before the call fails: its caller looks for another connection
	refused := r.sessionOver(ErrForgotten)
	r.calls.Fail(id, refused)
	if known {
		return refused
	}
	err := r.sessionOver(errSessionOver)
	if !r.spawn(func() {
		r.drain()
		r.fail(err)
	}) {
		r.fail(err)
	}
	return refused
}

// drain waits for requests in flight, a second at most: the server refuses each by itself,
// or answers it if it arrived before.
func (r *remote) drain() {
	for end := time.Now().Add(time.Second); r.calls.Len() > 0 && time.Now().Before(end); {
		if sleep(r.ctx, 5*time.Millisecond) != nil {
			return
		}
	}
}

// maxNotices is the maximum number of notifications that wait for the next connection of
// a unit, and of units that have some.
const maxNotices = 64

// keepNotices keeps the notifications of clients that a lost session did not get for the
// next connection of the unit. It is called when nothing else uses the queue.
func (r *remote) keepNotices() {
	if !r.over.Load() {
		return
	}
	for left := true; left; {
		select {
		case p := <-r.queue:
			r.refused = append(r.refused, p.frame)
		default:
			left = false
		}
	}
	s := r.srv
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := s.notices[r.Unit()]
	for _, frame := range r.refused {
		if isNotice(frame) && len(kept) < maxNotices {
			kept = append(kept, frame)
		}
	}
	if len(kept) > 0 && len(s.notices) < maxNotices {
		if s.notices == nil {
			s.notices = make(map[string][][]byte)
		}
		s.notices[r.Unit()] = kept
	}
}

// isNotice reports whether a frame is a notification that does not refer to a request of
// its session.
func isNotice(frame []byte) bool {
	method, _ := rawjson.String(rawjson.Get(frame, "method"))
	switch method {
	case "", "notifications/initialized", "notifications/cancelled", "notifications/progress":
		return false
	}
	return rawjson.Get(frame, "id") == nil
}

// sendNotices sends over a new connection what keepNotices has kept.
func (s *Server) sendNotices(l *link) {
	if l.info.Load().Era != Legacy {
		return
	}
	s.mu.Lock()
	kept := s.notices[l.Unit()]
	delete(s.notices, l.Unit())
	s.mu.Unlock()
	for _, frame := range kept {
		l.wire.send(frame)
	}
}
