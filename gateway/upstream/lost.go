package upstream

import (
	"bytes"
	"io"
	"net/http"
	"time"

	"goblin/gateway/jsonrpc"
	"goblin/registry/rawjson"
)

// Servers forget sessions, mostly by a restart, and say so in many ways: by the status 404
// that the protocol demands, by 400, 401 or 410, or by a JSON-RPC error with status 200.
// Goblin then connects again, once for each session, and requests that the server refused
// for that reason are sent again.

// loss is a verdict on the session that a request was sent in.
type loss int

const (
	kept    loss = iota // nothing
	suspect             // it may be lost; the request may have been carried out
	lost                // it is lost; the request was not carried out
)

// lossOf returns what an answer with a status and a body says. probe reports whether the
// request was a ping, whose error can only be about the session.
func lossOf(status int, body []byte, probe bool) loss {
	var fault []byte
	m, err := jsonrpc.Parse(body)
	if err == nil && m.IsResponse() {
		fault = m.Error
	}
	code, _ := faultCode(rawjson.Get(fault, "code"))
	switch {
	case status == http.StatusGone:
		return lost
	case status == http.StatusNotFound && code != jsonrpc.CodeMethodNotFound:
		return lost
	case status == http.StatusBadRequest && fault == nil && bytes.Contains(bytes.ToLower(body), []byte("session")):
		return lost
	case status < 300 && fault == nil, fault == nil && !saysLost(body), fault != nil && !saysLost(fault):
		return kept
	case probe, status < 500 && (fault == nil || m.ID == nil):
		return lost
	case status >= 500:
		return suspect
	case status == http.StatusNotFound, code == codeSessionNotFound, code == jsonrpc.CodeInvalidRequest, code == codeServerError && status >= 300:
		return lost
	}
	return suspect // of a tool that has sessions of its own, perhaps
}

// Codes by which servers say that a session is lost.
const (
	codeServerError     = -32000
	codeSessionNotFound = -32001
)

// lossWords is a list of words in texts about lost sessions, without spaces and punctuation.
var lossWords = [][]byte{
	[]byte("notfound"), []byte("notexist"), []byte("nosuch"), []byte("nosession"), []byte("novalid"), []byte("noactive"),
	[]byte("nolonger"), []byte("notvalid"), []byte("notactive"), []byte("notinit"), []byte("notrecogni"), []byte("notknown"),
	[]byte("unknown"), []byte("unrecogni"), []byte("invalid"), []byte("inactive"), []byte("expired"), []byte("missing"),
	[]byte("required"), []byte("terminated"), []byte("closed"), []byte("hasended"), []byte("deleted"), []byte("isgone"),
	[]byte("sessionended"), []byte("sessionlost"), []byte("sessiongone"),
	[]byte("doesntexist"), []byte("cannotfind"), []byte("cantfind"), []byte("couldnotfind"),
}

// saysLost reports whether a text says, in any spelling, that a session is lost.
func saysLost(text []byte) bool {
	letters := make([]byte, 0, min(len(text), maxRefusal))
	for _, c := range text[:min(len(text), maxRefusal)] {
		if c |= 0x20; 'a' <= c && c <= 'z' {
			letters = append(letters, c)
		}
	}
	if !bytes.Contains(letters, []byte("session")) {
		return bytes.Contains(letters, []byte("notinitialized")) // as a server that has restarted is
	}
	for _, word := range lossWords {
		if bytes.Contains(letters, word) {
			return true
		}
	}
	return false
}

// loss is lossOf for an answer to a request of the connection. c is the call, or nil for
// other messages.
func (r *remote) loss(c *Call, status int, body []byte) loss {
	if !r.inSession() || c != nil && c.handshake {
		return kept
	}
	return lossOf(status, body, c != nil && c.own)
}

// lossIn is loss for a message of a stream or a body with status 200.
func (r *remote) lossIn(c *Call, message []byte) loss {
	if len(message) > maxRefusal || !bytes.Contains(message, []byte(`"error"`)) {
		return kept
	}
	return r.loss(c, http.StatusOK, message)
}

// take handles a message that arrived because of a call. It is handle, except for errors
// that say that the session is lost.
func (h *streamable) take(c *Call, id int64, message []byte) bool {
	switch h.lossIn(c, message) {
	case lost:
		_ = h.forgot(id)
		return true
	case suspect:
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
	return lossOf(resp.StatusCode, text, false) == lost
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
