package downstream

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"goblin/gateway/jsonrpc"
	"goblin/gateway/memlimit"
	"goblin/registry/rawjson"
)

// postStream is the stream of a POSTed request. It answers with JSON, or with events if a
// frame precedes the answer.
type postStream struct {
	session       *httpSession
	listener      *limitListener
	httpRequest   *http.Request // body already read
	id            []byte        // valid while the handler runs
	acceptsJSON   bool
	acceptsEvents bool
	isInitialize  bool // no frame may precede the answer
	modern        bool // some errors have an HTTP status

	mu             sync.Mutex
	events         *eventStream
	result         []byte // for JSON
	status         int
	isError        bool
	done           bool   // answered, abandoned, or the client left
	leftUnanswered bool   // the client left before the answer
	attach         func() // see detachUntilServed; may be nil
	wake           chan struct{}
	signaled       bool
}

func (p *postStream) signalLocked() {
	if !p.signaled {
		p.signaled = true
		close(p.wake)
	}
}

func (p *postStream) upgradeLocked() *eventStream {
	if p.events == nil {
		p.events = newEventStream(p.session.share)
		p.session.addPost(p.events)
		p.signalLocked()
	}
	return p.events
}

// HTTP returns the HTTP request of x, with the status and content type of an answer. code
// is its error code, or 0. r is nil on byte streams.
func (x *Request) HTTP(code int) (r *http.Request, status int, kind string) {
	out := x.current().out
	if b, is := out.(*batch); is {
		out = b.stream
	}
	p, is := out.(*postStream)
	if !is {
		return nil, 0, ""
	}
	status, kind = http.StatusOK, "application/json"
	if p.modern {
		status = statusOf(code)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.events != nil || !p.acceptsJSON && status == http.StatusOK {
		status, kind = http.StatusOK, "text/event-stream"
	}
	return p.httpRequest, status, kind
}

// withEvents calls give with the event stream, unless the client has left. It returns
// false if the client accepts none; use the session-wide stream then.
func (p *postStream) withEvents(give func(*eventStream)) bool {
	p.mu.Lock()
	if !p.acceptsEvents || p.isInitialize {
		p.mu.Unlock()
		return false
	}
	if p.done {
		p.mu.Unlock()
		return true
	}
	f := p.upgradeLocked()
	give(f)
	p.mu.Unlock()
	p.session.checkLimit(f)
	return true
}

func (p *postStream) send(frame []byte) {
	if !p.withEvents(func(f *eventStream) { f.queue.Send(frame) }) {
		p.session.send(frame)
	}
}

// sendLow uses one lane for all servers, since there is only one answer.
func (p *postStream) sendLow(server, key string, frame []byte) (m jsonrpc.QueuePosition) {
	if !p.withEvents(func(f *eventStream) { m = f.queue.SendLow("", key, frame) }) {
		p.session.sendLow(server, key, frame)
	}
	return m
}

func (p *postStream) request(_ context.Context, frame []byte) error {
	sent := false
	if !p.withEvents(func(f *eventStream) { f.queue.Send(frame); sent = true }) {
		return errUseSessionStream
	}
	if !sent {
		return ErrNoStream
	}
	return nil
}

func (p *postStream) unsentBytes() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.events == nil {
		return 0
	}
	return p.events.queue.UnsentBytes()
}

// laneBytes returns 0, because the stream has one common limit.
func (p *postStream) laneBytes(string) int64 { return 0 }

func (p *postStream) answer(frame []byte, code int, _ *jsonrpc.WriteBatch, after []jsonrpc.QueuePosition) {
	if f := p.setAnswer(frame, code, after); f != nil {
		p.session.checkLimit(f)
	}
}

// setAnswer returns the event stream that sends the answer, or nil.
func (p *postStream) setAnswer(frame []byte, code int, after []jsonrpc.QueuePosition) *eventStream {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.done {
		p.leftUnanswered = true
		return nil
	}
	p.done, p.isError, p.status = true, code != 0, http.StatusOK
	if p.modern {
		p.status = statusOf(code)
	}
	if p.events == nil && !p.acceptsJSON && p.status == http.StatusOK {
		p.upgradeLocked()
	}
	if p.events != nil {
		if !p.events.queue.SendAfter(after, frame) {
			p.events.queue.Send(frame)
		}
		p.events.queue.Finish()
		return p.events
	}
	p.result = frame
	p.signalLocked()
	return nil
}

func (p *postStream) abandon() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done = true
	if p.events != nil {
		p.events.queue.Finish()
	}
	p.signalLocked()
}

func (p *postStream) clientLeft() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.leftUnanswered
}

func (p *postStream) markLeft() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done = true
}

func (p *postStream) acceptable(w http.ResponseWriter, r *http.Request) bool {
	if !isJSON(r.Header.Get("Content-Type")) {
		writeRPCError(w, http.StatusUnsupportedMediaType, nil, "Content-Type must be application/json")
		return false
	}
	if e := r.Header.Get("Content-Encoding"); e != "" && e != "identity" {
		writeRPCError(w, http.StatusUnsupportedMediaType, nil, "Content-Encoding is not supported")
		return false
	}
	if p.acceptsJSON, p.acceptsEvents = accepts(r.Header); !p.acceptsJSON && !p.acceptsEvents {
		writeRPCError(w, http.StatusNotAcceptable, nil, "Accept must allow application/json or text/event-stream")
		return false
	}
	return true
}

func isJSON(contentType string) bool {
	if contentType == "application/json" { // parsing it allocates
		return true
	}
	t, _, err := mime.ParseMediaType(contentType)
	return err == nil && t == "application/json"
}

func (h *HTTP) post(w http.ResponseWriter, r *http.Request, rc *responseControl) {
	p := &postStream{httpRequest: r, listener: h.listener, wake: make(chan struct{})}
	if !p.acceptable(w, r) {
		return
	}
	sessions := headersNameLegacy(r.Header) // the headers name no other revision
	if sessions && r.Header.Get(headerSession) != "" {
		if p.session = h.session(w, r); p.session == nil {
			return
		}
		defer h.sessions.release(p.session)
		room := p.session.session.awaitRoomFor(r.Context())
		rc.expectWrite()
		if !room {
			writeUnavailable(w, nil, "Too many unread bytes in this session; read them first")
			return
		}
	}
	frame, ok := h.body(w, r, rc, p.session)
	if !ok {
		return
	}
	frame = jsonrpc.TrimBOM(frame)
	m, err := jsonrpc.ParseWithin(frame, h.opt.Limits.Depth)
	modern := headersNameModern(r.Header) || err == nil && m.IsRequest() && isModernRequest(&m, p.session != nil)
	if !modern && !checkProtocol(w, r) {
		return
	}
	if isBatch(err) {
		h.batch(w, r, rc, p, frame)
		return
	}
	if err != nil {
		h.writeMalformed(w, p, err)
		return
	}
	p.id = m.ID
	// A body may span lines, but a forwarded message must not.
	rawjson.OneLine(frame)
	switch {
	case modern:
		h.stateless(w, r, rc, p, &m)
	case p.session != nil:
		h.message(w, r, rc, p, &m)
	case m.IsRequest() && m.Method == "initialize":
		h.initialize(w, r, rc, p, &m)
	default:
		writeRPCError(w, http.StatusBadRequest, m.ID, "Header Mcp-Session-Id is missing; send initialize first")
	}
}

// awaitRoomFor waits for hasRoom, at most stallTimeout.
func (s *Session) awaitRoomFor(ctx context.Context) bool {
	if s.hasRoom() {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, stallTimeout)
	defer cancel()
	return s.awaitRoom(ctx.Done())
}

func writeUnavailable(w http.ResponseWriter, id []byte, why string) {
	w.Header().Set("Retry-After", "1")
	writeError(w, http.StatusServiceUnavailable, jsonrpc.Errorf(jsonrpc.CodeInternal, "%s", why).Frame(id))
}

func (h *HTTP) writeMalformed(w http.ResponseWriter, p *postStream, err error) {
	var answer []byte
	if p.session != nil {
		if answer = p.session.session.malformedReply(err); answer == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
	} else {
		bad := &jsonrpc.ParseError{Code: jsonrpc.CodeParse, Cause: err}
		errors.As(err, &bad)
		answer = bad.Reply().Frame(bad.ID)
	}
	writeError(w, http.StatusBadRequest, answer)
}

func (h *HTTP) batch(w http.ResponseWriter, r *http.Request, rc *responseControl, p *postStream, frame []byte) {
	protocol := ""
	if p.session != nil {
		protocol = p.session.session.Protocol()
	}
	rawjson.OneLine(frame)
	switch wrong := rejectBatch(frame, protocol, h.opt.Limits.Depth); {
	case len(wrong) == 1:
		writeError(w, http.StatusBadRequest, wrong[0])
	case wrong != nil:
		writeError(w, http.StatusBadRequest, joinAnswers(wrong))
	default:
		if !p.session.session.serveBatch(frame, p, p.session.share, func() func() {
			h.sessions.retain(p.session)
			return func() { h.sessions.release(p.session) }
		}) {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		p.serve(w, r, rc)
	}
}

func (h *HTTP) message(w http.ResponseWriter, r *http.Request, rc *responseControl, p *postStream, m *jsonrpc.Message) {
	s := p.session.session
	switch {
	case m.IsNotification():
		s.handleNotification(m.Method, m.Params)
		w.WriteHeader(http.StatusAccepted)
	case m.IsResponse():
		s.handleResponse(m)
		w.WriteHeader(http.StatusAccepted)
	default:
		p.isInitialize = m.Method == "initialize"
		if h.start(w, p, m) {
			p.serve(w, r, rc)
		}
	}
}

// start uses the session until the handler returns, possibly long after the client hung
// up.
func (h *HTTP) start(w http.ResponseWriter, p *postStream, m *jsonrpc.Message) bool {
	h.sessions.retain(p.session)
	x, fault := p.session.session.begin(m, nil, p, p.session.share, func() { h.sessions.release(p.session) })
	if fault != nil {
		h.sessions.release(p.session)
		writeError(w, http.StatusOK, fault.Frame(m.ID))
		return false
	}
	if !p.acceptsJSON && !p.isInitialize {
		p.mu.Lock()
		p.upgradeLocked()
		p.mu.Unlock()
	}
	x.serve(nil)
	return true
}

// initialize opens a session. If the handler fails, the client gets no id and the session
// is closed.
func (h *HTTP) initialize(w http.ResponseWriter, r *http.Request, rc *responseControl, p *postStream, m *jsonrpc.Message) {
	if p.session = h.openSession(false, h.parseChoices(r), hostname(r.RemoteAddr)); p.session == nil {
		writeUnavailable(w, m.ID, "Too many sessions (limits.sessions)")
		return
	}
	defer func() { h.sessions.release(p.session) }()
	p.isInitialize = true
	if !h.start(w, p, m) {
		p.session.session.Close(ErrSessionEnded)
		return
	}
	select {
	case <-p.wake:
	case <-r.Context().Done():
	case <-p.session.session.ctx.Done():
	}
	p.mu.Lock()
	ok := p.signaled && !p.isError
	p.mu.Unlock()
	if ok {
		w.Header().Set(headerSession, p.session.key)
	}
	p.serve(w, r, rc)
	if !ok {
		h.sessions.remove(p.session)
		p.session.session.Close(ErrSessionEnded)
	}
}

// detachUntilServed excludes a request without an answer from draining.
func (p *postStream) detachUntilServed() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.done && p.listener != nil {
		p.attach = p.listener.addStream()
	}
}

func (p *postStream) reattach() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done = true
	if p.attach != nil {
		p.attach()
		p.attach = nil
	}
}

func (p *postStream) serve(w http.ResponseWriter, r *http.Request, rc *responseControl) {
	defer p.reattach()
	s := p.session.session
	select {
	case <-p.wake:
	case <-r.Context().Done():
	case <-s.ctx.Done():
	}
	p.markLeftUnlessSignaled()
	rc.expectWrite()
	switch {
	case p.events != nil:
		defer p.session.remove(p.events)
		f := p.events
		defer context.AfterFunc(r.Context(), p.markLeft)()
		f.serve(w, r, rc, s)
		p.markLeft()
	case p.result != nil:
		p.writeJSON(w, rc)
	case r.Context().Err() != nil:
	case s.ctx.Err() != nil && p.modern:
		writeUnavailable(w, p.id, "Goblin is shutting down")
	case s.ctx.Err() != nil:
		writeRPCError(w, http.StatusNotFound, p.id, "Session closed; start a new one with initialize")
	default:
		// a cancelled request
		w.WriteHeader(http.StatusAccepted)
	}
}

// markLeftUnlessSignaled freezes events and result before they are written.
func (p *postStream) markLeftUnlessSignaled() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.signaled {
		p.done = true
	}
}

// jsonType is shared by all answers, which do not change it.
var jsonType = []string{"application/json"}

// maxMeasured is the maximum size in bytes of a body whose length [http.Server] adds.
const maxMeasured = 2048

func (p *postStream) writeJSON(w http.ResponseWriter, rc *responseControl) {
	var room memlimit.Reservation
	room.SetOwner(p.session.share.Owner)
	left := int64(len(p.result))
	if !room.Resize(left) {
		writeUnavailable(w, nil, errTooMuch)
		return
	}
	defer room.Resize(0)
	w.Header()["Content-Type"] = jsonType
	if len(p.result) > maxMeasured {
		w.Header().Set("Content-Length", strconv.Itoa(len(p.result)))
	}
	w.WriteHeader(p.status)
	p.session.writing.Add(left)
	writePieces(w, rc, p.result, nil, func(n int) { //nolint:errcheck // the client has gone
		left -= int64(n)
		p.session.writing.Add(int64(-n))
	})
	p.session.writing.Add(-left)
}

// maxPart is the maximum size of a body's parts, in bytes.
const maxPart = 1 << 20

// body reads a message within limits.frame, the timeouts and the memory limit, or refuses
// it.
func (h *HTTP) body(w http.ResponseWriter, r *http.Request, rc *responseControl, session *httpSession) (frame []byte, ok bool) {
	limit := h.opt.Limits.Frame
	var room memlimit.Reservation
	if session != nil {
		room.SetOwner(session.share.Owner)
	} else {
		room.SetOwner(h.opt.Memory.NewOwner())
	}
	defer room.Resize(0)
	if r.ContentLength > limit {
		writeTooLarge(w, limit)
		return nil, false
	}
	start := time.Now()
	rc.extendRead()
	body := http.MaxBytesReader(w, r.Body, limit)
	// Growing one buffer takes several times the memory.
	var parts [][]byte
	part := make([]byte, 0, min(max(r.ContentLength+1, 512), maxPart))
	size, renewed := 0, 0
	for {
		if len(part) == cap(part) {
			parts, part = append(parts, part), make([]byte, 0, min(2*cap(part), maxPart))
		}
		if !room.Resize(int64(size + cap(part) - len(part))) {
			h.rejectNoMemory(w, size)
			return nil, false
		}
		n, err := body.Read(part[len(part):cap(part)])
		part, size = part[:len(part)+n], size+n
		if err != nil {
			rc.expectWrite() // reading may have taken long
		}
		switch {
		case err == nil:
		case errors.Is(err, io.EOF):
			if parts != nil {
				part = slices.Concat(append(parts, part)...)
			}
			return part, true
		case errors.As(err, new(*http.MaxBytesError)):
			writeTooLarge(w, limit)
			return nil, false
		default:
			w.Header().Set("Connection", "close")
			writeRPCError(w, http.StatusRequestTimeout, nil, "The message was incomplete or too slow")
			return nil, false
		}
		if size-renewed >= bodyRate {
			renewed = size
			now := time.Now()
			slack := time.Duration(size/bodyRate)*time.Second - now.Sub(start)
			rc.SetReadDeadline(now.Add(bodyTimeout + min(slack, 0))) //nolint:errcheck // not every reader can
		}
	}
}

func writeTooLarge(w http.ResponseWriter, limit int64) {
	w.Header().Set("Connection", "close")
	writeRPCError(w, http.StatusRequestEntityTooLarge, nil, "Invalid request: message exceeds the limit of %d bytes (limits.frame)", limit)
}

const errTooMuch = "Too many large messages at once"

func (h *HTTP) rejectNoMemory(w http.ResponseWriter, size int) {
	h.opt.Logger.Warn("message refused: memory limit for all clients and servers reached", "bytes", size)
	w.Header().Set("Connection", "close")
	writeUnavailable(w, nil, errTooMuch)
}

// accepts returns the accepted content types. A missing header allows both.
func accepts(head http.Header) (json, events bool) {
	values := head.Values("Accept")
	if len(values) == 0 {
		return true, true
	}
	for _, v := range values {
		for part := range strings.SplitSeq(v, ",") {
			kind, params, _ := strings.Cut(part, ";")
			if isRejected(params) {
				continue
			}
			switch strings.ToLower(strings.TrimSpace(kind)) {
			case "*/*":
				json, events = true, true
			case "application/json", "application/*":
				json = true
			case "text/event-stream", "text/*":
				events = true
			}
		}
	}
	return json, events
}

func isRejected(params string) bool {
	for p := range strings.SplitSeq(params, ";") {
		k, v, _ := strings.Cut(strings.TrimSpace(p), "=")
		if strings.EqualFold(k, "q") {
			q, err := strconv.ParseFloat(v, 64)
			return err == nil && q == 0
		}
	}
	return false
}
