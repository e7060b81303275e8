package upstream

import (
	"bytes"
	"io"
	"net/http"
	"time"

	"goblin/gateway/upstream/wire"
	"goblin/registry/rawjson"
)

// After a server lost a session, Goblin reconnects once per session and repeats the
// refused requests.

// judgeLoss judges whether a response reports a lost session. c is the call, or nil for
// other messages.
func (r *remote) judgeLoss(c *Call, status int, body []byte) wire.SessionLoss {
	if !r.inSession() || c != nil && c.handshake {
		return wire.SessionKept
	}
	return wire.JudgeSession(status, body, c != nil && c.probe)
}

// judgeMessage is judgeLoss for a message with status 200.
func (r *remote) judgeMessage(c *Call, message []byte) wire.SessionLoss {
	if len(message) > maxRefusal || !bytes.Contains(message, []byte(`"error"`)) {
		return wire.SessionKept
	}
	return r.judgeLoss(c, http.StatusOK, message)
}

// handleMessage handles an error that reports a lost session. It returns false for other
// messages, which the caller must handle.
func (h *streamable) handleMessage(c *Call, id int64, message []byte) bool {
	switch h.judgeMessage(c, message) {
	case wire.SessionLost:
		_ = h.closeLostSession(id)
		return true
	case wire.SessionSuspect:
		h.requestLivenessCheck()
	}
	return false
}

// isSessionRefusal reports whether the body of a 401 without a challenge says that the
// session is lost. It keeps the body readable.
func (r *remote) isSessionRefusal(resp *http.Response) bool {
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

// closeLostSession closes the connection of a lost session. It fails the refused call so
// that it is repeated.
func (r *remote) closeLostSession(id int64) error {
	known := r.sessionEnded.Swap(true) // set first: callers look for another connection
	refused := r.sessionEndedError(ErrSessionLost)
	r.calls.Fail(id, refused)
	if known {
		return refused
	}
	err := r.sessionEndedError(errSessionClosed)
	if !r.spawn(func() {
		r.drainRequests()
		r.fail(err)
	}) {
		r.fail(err)
	}
	return refused
}

// drainRequests waits up to one second for requests in flight. The server refuses each,
// or answers if it arrived earlier.
func (r *remote) drainRequests() {
	for end := time.Now().Add(time.Second); r.calls.Len() > 0 && time.Now().Before(end); {
		if sleep(r.ctx, 5*time.Millisecond) != nil {
			return
		}
	}
}

// maxNotices is the maximum number of notifications that wait for a unit's next
// connection, and of units with some.
const maxNotices = 64

// keepNotices stores client notifications that a lost session did not receive for the
// unit's next connection. The queue must not be in use.
func (r *remote) keepNotices() {
	if !r.sessionEnded.Load() {
		return
	}
	for left := true; left; {
		select {
		case p := <-r.queue:
			r.refusedFrames = append(r.refusedFrames, p.frame)
		default:
			left = false
		}
	}
	s := r.srv
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := s.unsentNotices[r.Unit()]
	for _, frame := range r.refusedFrames {
		if isNotice(frame) && len(kept) < maxNotices {
			kept = append(kept, frame)
		}
	}
	if len(kept) > 0 && len(s.unsentNotices) < maxNotices {
		if s.unsentNotices == nil {
			s.unsentNotices = make(map[string][][]byte)
		}
		s.unsentNotices[r.Unit()] = kept
	}
}

// isNotice reports whether a frame is a notification that doesn't refer to its session.
func isNotice(frame []byte) bool {
	method := rawjson.GetString(frame, "method")
	switch method {
	case "", "notifications/initialized", "notifications/cancelled", "notifications/progress":
		return false
	}
	return rawjson.Get(frame, "id") == nil
}

func (s *Server) sendNotices(l *link) {
	if l.info.Load().Era != Legacy {
		return
	}
	s.mu.Lock()
	frames := s.unsentNotices[l.Unit()]
	delete(s.unsentNotices, l.Unit())
	s.mu.Unlock()
	for _, frame := range frames {
		l.wire.send(frame)
	}
}
