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

// post is the stream of one POSTed request: a JSON answer, or an event stream
// as soon as something has to go before the answer.
type post struct {
	hub    *hub
	from   *http.Request // its body is read
	id     []byte        // of the request; valid while its handler runs
	json   bool          // the client takes JSON
	events bool          // the client takes an event stream
	first  bool          // initialize: nothing may go before the answer
	modern bool          // stateless: errors have a status of their own

	mu     sync.Mutex
	feed   *feed
	result []byte // the answer, when it goes out as JSON
	status int    // of result
	failed bool   // the answer is an error
	over   bool   // answered, abandoned, or the client hung up
	lost   bool   // the client had hung up before the answer
	wake   chan struct{}
	awake  bool
}

// rouseLocked tells the request's goroutine that there is something to write.
func (p *post) rouseLocked() {
	if !p.awake {
		p.awake = true
		close(p.wake)
	}
}

// upgradeLocked makes the answer an event stream.
func (p *post) upgradeLocked() *feed {
	if p.feed == nil {
		p.feed = newFeed(p.hub.share)
		p.hub.add(p.feed)
		p.rouseLocked()
	}
	return p.feed
}

// HTTP is the request that the exchange came by, with the status and the type of the answer
// if that has an error with a code, 0 for none; nil over byte streams.
func (x *Request) HTTP(code int) (r *http.Request, status int, kind string) {
	out := x.now().out
	if b, is := out.(*batch); is {
		out = b.stream
	}
	p, is := out.(*post)
	if !is {
		return nil, 0, ""
	}
	status, kind = http.StatusOK, "application/json"
	if p.modern {
		status = statusOf(code)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.feed != nil || !p.json && status == http.StatusOK {
		status, kind = http.StatusOK, "text/event-stream"
	}
	return p.from, status, kind
}

// put hands the event stream to give. It reports false when there can be
// none; what was to be sent then goes to the session-wide stream. It is
// dropped when the client has hung up.
func (p *post) put(give func(*feed)) bool {
	p.mu.Lock()
	if !p.events || p.first {
		p.mu.Unlock()
		return false
	}
	if p.over {
		p.mu.Unlock()
		return true
	}
	f := p.upgradeLocked()
	give(f)
	p.mu.Unlock()
	p.hub.check(f)
	return true
}

func (p *post) send(frame []byte) {
	if !p.put(func(f *feed) { f.out.Send(frame) }) {
		p.hub.send(frame)
	}
}

// chat keeps what all servers say in one order: there is one answer only.
func (p *post) chat(server, key string, frame []byte) (m jsonrpc.QueuePosition) {
	if !p.put(func(f *feed) { m = f.out.SendLow("", key, frame) }) {
		p.hub.chat(server, key, frame)
	}
	return m
}

func (p *post) request(_ context.Context, frame []byte) error {
	sent := false
	if !p.put(func(f *feed) { f.out.Send(frame); sent = true }) {
		return errDetour
	}
	if !sent {
		return ErrNoStream
	}
	return nil
}

func (p *post) unsent() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.feed == nil {
		return 0
	}
	return p.feed.out.UnsentBytes()
}

// waiting is 0: a stream of one request is bounded as a whole.
func (p *post) waiting(string) int64 { return 0 }

func (p *post) answer(frame []byte, code int, _ *jsonrpc.WriteBatch, after []jsonrpc.QueuePosition) {
	if f := p.finish(frame, code, after); f != nil {
		p.hub.check(f)
	}
}

// finish takes the answer. It returns the event stream that it goes to; nil for
// none.
func (p *post) finish(frame []byte, code int, after []jsonrpc.QueuePosition) *feed {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		p.lost = true
		return nil
	}
	p.over, p.failed, p.status = true, code != 0, http.StatusOK
	if p.modern {
		p.status = statusOf(code)
	}
	if p.feed == nil && !p.json && p.status == http.StatusOK {
		p.upgradeLocked()
	}
	if p.feed != nil {
		if !p.feed.out.SendAfter(after, frame) {
			p.feed.out.Send(frame)
		}
		p.feed.out.Finish()
		return p.feed
	}
	p.result = frame
	p.rouseLocked()
	return nil
}

func (p *post) abandon() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
	if p.feed != nil {
		p.feed.out.Finish()
	}
	p.rouseLocked()
}

// missed reports whether the client had hung up before the answer.
func (p *post) missed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lost
}

// hangUp takes nothing any more, unless there is something to write already.
func (p *post) hangUp() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
}

// acceptable refuses what is not sent, or may not be answered, as JSON.
func (p *post) acceptable(w http.ResponseWriter, r *http.Request) bool {
	if t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || t != "application/json" {
		refuse(w, http.StatusUnsupportedMediaType, nil, "Content-Type must be application/json")
		return false
	}
	if e := r.Header.Get("Content-Encoding"); e != "" && e != "identity" {
		refuse(w, http.StatusUnsupportedMediaType, nil, "Content-Encoding is not supported")
		return false
	}
	if p.json, p.events = accepts(r.Header); !p.json && !p.events {
		refuse(w, http.StatusNotAcceptable, nil, "Accept must allow application/json or text/event-stream")
		return false
	}
	return true
}

// post takes one message.
func (h *HTTP) post(w http.ResponseWriter, r *http.Request, rc *http.ResponseController) {
	p := &post{from: r, wake: make(chan struct{})}
	if !p.acceptable(w, r) {
		return
	}
	sessions := namesLegacy(r.Header) // the headers name no other revision
	if sessions && r.Header.Get(headerSession) != "" {
		if p.hub = h.session(w, r); p.hub == nil {
			return
		}
		defer h.sessions.release(p.hub)
		room := p.hub.s.waitRoom(r.Context())
		renewWrite(rc)
		if !room {
			unavailable(w, nil, "Too many bytes wait to be read by this session")
			return
		}
	}
	frame, ok := h.body(w, r, rc, p.hub)
	if !ok {
		return
	}
	frame = jsonrpc.TrimBOM(frame)
	m, err := jsonrpc.ParseWithin(frame, h.opt.Limits.Depth)
	modern := namesModern(r.Header) || err == nil && m.IsRequest() && looksModern(&m, p.hub != nil)
	if !modern && !checkProtocol(w, r) {
		return
	}
	if isBatch(err) {
		h.batch(w, r, rc, p, frame)
		return
	}
	if err != nil {
		h.malformed(w, p, err)
		return
	}
	p.id = m.ID
	// A body may be spread over lines; what is passed on must not be.
	rawjson.OneLine(frame)
	switch {
	case modern:
		h.stateless(w, r, rc, p, &m)
	case p.hub != nil:
		h.message(w, r, rc, p, &m)
	case m.IsRequest() && m.Method == "initialize":
		h.initialize(w, r, rc, p, &m)
	default:
		refuse(w, http.StatusBadRequest, m.ID, "Header Mcp-Session-Id is missing; begin with initialize")
	}
}

// waitRoom waits until the client has read enough to be asked for more, for
// as long as a write may stall.
func (s *Session) waitRoom(ctx context.Context) bool {
	if s.roomy() {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, stallTimeout)
	defer cancel()
	return s.room(ctx.Done())
}

func unavailable(w http.ResponseWriter, id []byte, why string) {
	w.Header().Set("Retry-After", "1")
	writeError(w, http.StatusServiceUnavailable, jsonrpc.Errorf(jsonrpc.CodeInternal, "%s", why).Frame(id))
}

func (h *HTTP) malformed(w http.ResponseWriter, p *post, err error) {
	var answer []byte
	if p.hub != nil {
		if answer = p.hub.s.malformed(err); answer == nil {
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

// batch handles a batch of messages.
func (h *HTTP) batch(w http.ResponseWriter, r *http.Request, rc *http.ResponseController, p *post, frame []byte) {
	protocol := ""
	if p.hub != nil {
		protocol = p.hub.s.Protocol()
	}
	rawjson.OneLine(frame)
	switch wrong := wrongBatch(frame, protocol, h.opt.Limits.Depth); {
	case len(wrong) == 1:
		writeError(w, http.StatusBadRequest, wrong[0])
	case wrong != nil:
		writeError(w, http.StatusBadRequest, array(wrong))
	default:
		if !p.hub.s.batched(frame, p, p.hub.share, func() func() {
			h.sessions.hold(p.hub)
			return func() { h.sessions.release(p.hub) }
		}) {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		p.serve(w, r, rc)
	}
}

// message handles a message of a session.
func (h *HTTP) message(w http.ResponseWriter, r *http.Request, rc *http.ResponseController, p *post, m *jsonrpc.Message) {
	s := p.hub.s
	switch {
	case m.IsNotification():
		s.notified(m.Method, m.Params)
		w.WriteHeader(http.StatusAccepted)
	case m.IsResponse():
		s.responded(m)
		w.WriteHeader(http.StatusAccepted)
	default:
		p.first = m.Method == "initialize"
		if h.start(w, p, m) {
			p.serve(w, r, rc)
		}
	}
}

// start begins the exchange. The session is in use until it has ended, which
// may be long after the client hung up.
func (h *HTTP) start(w http.ResponseWriter, p *post, m *jsonrpc.Message) bool {
	h.sessions.hold(p.hub)
	x, fault := p.hub.s.begin(m, nil, p, p.hub.share, func() { h.sessions.release(p.hub) })
	if fault != nil {
		h.sessions.release(p.hub)
		writeError(w, http.StatusOK, fault.Frame(m.ID))
		return false
	}
	if !p.json && !p.first {
		p.mu.Lock()
		p.upgradeLocked()
		p.mu.Unlock()
	}
	x.serve(nil)
	return true
}

// initialize begins a session. The client learns its id only when the
// handler agreed; else it ends at once.
func (h *HTTP) initialize(w http.ResponseWriter, r *http.Request, rc *http.ResponseController, p *post, m *jsonrpc.Message) {
	if p.hub = h.open(false, h.askedBy(r), hostname(r.RemoteAddr)); p.hub == nil {
		unavailable(w, m.ID, "No room for another session (limits.sessions)")
		return
	}
	defer func() { h.sessions.release(p.hub) }()
	p.first = true
	if !h.start(w, p, m) {
		p.hub.s.Close(ErrSessionEnded)
		return
	}
	select {
	case <-p.wake:
	case <-r.Context().Done():
	case <-p.hub.s.ctx.Done():
	}
	p.mu.Lock()
	ok := p.awake && !p.failed
	p.mu.Unlock()
	if ok {
		w.Header().Set(headerSession, p.hub.key)
	}
	p.serve(w, r, rc)
	if !ok {
		h.sessions.remove(p.hub)
		p.hub.s.Close(ErrSessionEnded)
	}
}

// serve writes what the exchange makes of the answer.
func (p *post) serve(w http.ResponseWriter, r *http.Request, rc *http.ResponseController) {
	s := p.hub.s
	select {
	case <-p.wake:
	case <-r.Context().Done():
	case <-s.ctx.Done():
	}
	p.hangUpUnlessAwake()
	renewWrite(rc)
	switch {
	case p.feed != nil:
		defer p.hub.remove(p.feed)
		f := p.feed
		defer context.AfterFunc(r.Context(), p.hangUp)()
		f.serve(w, r, rc, s)
		p.hangUp()
	case p.result != nil:
		p.writeJSON(w, rc)
	case r.Context().Err() != nil:
	case s.ctx.Err() != nil && p.modern:
		unavailable(w, p.id, "The server is shutting down")
	case s.ctx.Err() != nil:
		refuse(w, http.StatusNotFound, p.id, "The session has ended; begin a new one with initialize")
	default:
		// Cancelled: there is no answer.
		w.WriteHeader(http.StatusAccepted)
	}
}

// hangUpUnlessAwake settles what is written: after it, feed and result stay
// as they are.
func (p *post) hangUpUnlessAwake() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.awake {
		p.over = true
	}
}

func (p *post) writeJSON(w http.ResponseWriter, rc *http.ResponseController) {
	var room memlimit.Reservation
	room.SetOwner(p.hub.share.Owner)
	left := int64(len(p.result))
	if !room.Resize(left) {
		unavailable(w, nil, tooMuch)
		return
	}
	defer room.Resize(0)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(p.result)))
	w.WriteHeader(p.status)
	p.hub.writing.Add(left)
	writePieces(w, rc, p.result, nil, func(n int) { //nolint:errcheck // the client has gone
		left -= int64(n)
		p.hub.writing.Add(int64(-n))
	})
	p.hub.writing.Add(-left)
}

// maxPart is the size of the parts in which a large body is collected.
const maxPart = 1 << 20

// body reads the message, within limits.frame and the time that its size allows,
// and as far as there is room for it; false when it was refused.
func (h *HTTP) body(w http.ResponseWriter, r *http.Request, rc *http.ResponseController, session *hub) (frame []byte, ok bool) {
	limit := h.opt.Limits.Frame
	var room memlimit.Reservation
	if session != nil {
		room.SetOwner(session.share.Owner)
	} else {
		room.SetOwner(h.opt.Memory.NewOwner())
	}
	defer room.Resize(0)
	if r.ContentLength > limit {
		tooLarge(w, limit)
		return nil, false
	}
	start := time.Now()
	rc.SetReadDeadline(start.Add(bodyTimeout)) //nolint:errcheck // not every reader can
	body := http.MaxBytesReader(w, r.Body, limit)
	// In parts: growing one piece of memory would take several times its size.
	var parts [][]byte
	part := make([]byte, 0, min(max(r.ContentLength+1, 512), maxPart))
	size, renewed := 0, 0
	for {
		if len(part) == cap(part) {
			parts, part = append(parts, part), make([]byte, 0, min(2*cap(part), maxPart))
		}
		if !room.Resize(int64(size + cap(part) - len(part))) {
			h.crowdedOut(w, size)
			return nil, false
		}
		n, err := body.Read(part[len(part):cap(part)])
		part, size = part[:len(part)+n], size+n
		if err != nil {
			renewWrite(rc) // the body may have taken long
		}
		switch {
		case err == nil:
		case errors.Is(err, io.EOF):
			rc.SetReadDeadline(time.Time{}) //nolint:errcheck // not every reader can
			if parts != nil {
				part = slices.Concat(append(parts, part)...)
			}
			return part, true
		case errors.As(err, new(*http.MaxBytesError)):
			tooLarge(w, limit)
			return nil, false
		default:
			w.Header().Set("Connection", "close")
			refuse(w, http.StatusRequestTimeout, nil, "The message did not arrive in time or whole")
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

func tooLarge(w http.ResponseWriter, limit int64) {
	w.Header().Set("Connection", "close")
	refuse(w, http.StatusRequestEntityTooLarge, nil, "Invalid request: a message is larger than the limit of %d bytes (limits.frame)", limit)
}

const tooMuch = "Too many large messages at once"

// crowdedOut refuses a message for which there is no room.
func (h *HTTP) crowdedOut(w http.ResponseWriter, size int) {
	h.opt.Logger.Warn("a message was refused: too much is held for all clients and servers together", "bytes", size)
	w.Header().Set("Connection", "close")
	unavailable(w, nil, tooMuch)
}

// accepts tells which kinds of answer a client takes; an absent header, as a
// wildcard, allows both.
func accepts(head http.Header) (json, events bool) {
	values := head.Values("Accept")
	if len(values) == 0 {
		return true, true
	}
	for _, v := range values {
		for part := range strings.SplitSeq(v, ",") {
			kind, params, _ := strings.Cut(part, ";")
			if refusesKind(params) {
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

// refusesKind reports a quality of zero.
func refusesKind(params string) bool {
	for p := range strings.SplitSeq(params, ";") {
		k, v, _ := strings.Cut(strings.TrimSpace(p), "=")
		if strings.EqualFold(k, "q") {
			q, err := strconv.ParseFloat(v, 64)
			return err == nil && q == 0
		}
	}
	return false
}
