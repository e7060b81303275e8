package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"mime"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"goblin/gateway/jsonrpc"
	"goblin/gateway/memlimit"
	"goblin/gateway/oauth"
	"goblin/gateway/upstream/wire"
	"goblin/registry/rawjson"
)

const (
	headerSession  = "Mcp-Session-Id"
	headerProtocol = "MCP-Protocol-Version"

	// lingerTimeout is the time that a stream may stay open after its response. If the
	// server closes it within that time, the TCP connection is reused.
	lingerTimeout = time.Second
	deleteTimeout = 2 * time.Second
	// maxResumes is the maximum number of consecutive resumptions of a stream without a
	// new message.
	maxResumes = 5
	maxWait    = 30 * time.Second
	// openTimeout is the maximum delay of the first request until the GET of the stream is
	// sent. Servers drop their own requests without an open stream.
	openTimeout = time.Second
)

type streamable struct {
	*remote
	session  atomic.Pointer[string]
	protocol atomic.Pointer[string]
}

func dialHTTP(ctx context.Context, s *Server, unit string) (*link, error) {
	r, err := newRemote(ctx, s, unit, "http")
	if err != nil {
		return nil, err
	}
	h := &streamable{remote: r}
	h.wire = h
	h.target = h.base.String
	h.inSession = func() bool { return h.session.Load() != nil }
	h.setHeaders = func(head http.Header) {
		if v := h.session.Load(); v != nil {
			head.Set(headerSession, *v)
		}
		if v := h.protocol.Load(); v != nil {
			head.Set(headerProtocol, *v)
		}
	}
	h.spawn(h.postQueue)
	return h.link, nil
}

func (h *streamable) initialized(ctx context.Context, frame []byte) error {
	h.protocol.Store(&h.info.Load().Protocol)
	if err := h.post(ctx, frame); err != nil {
		return err
	}
	opened := make(chan struct{})
	h.spawn(func() { h.listen(sync.OnceFunc(func() { close(opened) })) })
	select {
	case <-opened:
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(openTimeout):
	}
	return nil
}

// request implements [transport]. Each call is its own POST.
func (h *streamable) request(c *Call, id int64, frame []byte) {
	if h.sessionEnded.Load() {
		h.failCall(id, h.sessionEndedError(ErrSessionLost))
		return
	}
	ctx, cancel := context.WithCancel(h.ctx)
	c.setAbort(cancel)
	if !h.spawn(func() {
		defer cancel()
		h.exchange(ctx, cancel, c, id, frame)
	}) {
		cancel()
	}
}

func (h *streamable) exchange(ctx context.Context, cancel context.CancelFunc, c *Call, id int64, frame []byte) {
	own := c.Header
	if c.modern {
		own = h.modernHeaders(c, frame)
		maps.Copy(own, c.Header)
	}
	resp, err := h.do(ctx, http.MethodPost, frame, acceptBoth, "", own)
	if err != nil {
		if ctx.Err() == nil {
			h.failCall(id, h.networkError(ctx, err))
		}
		return
	}
	defer drain(resp.Body)
	c.http.Store(resp)
	if v := resp.Header.Get(headerSession); v != "" && c.initialize {
		h.session.Store(&v)
	}
	switch kind := contentType(resp); {
	case resp.StatusCode >= 300:
		h.failCall(id, h.refusal(c, resp, id))
	case kind == "text/event-stream":
		h.followStream(ctx, cancel, c, id, resp)
	case resp.StatusCode == http.StatusAccepted || resp.StatusCode == http.StatusNoContent:
		h.failCall(id, h.srv.newError(BadReply, "accepted a request but sent no answer", nil))
	case kind == "application/json" || kind == "":
		h.readJSONReply(ctx, c, id, resp)
	default:
		h.failCall(id, h.srv.newError(BadReply, fmt.Sprintf("answered with %s instead of JSON", h.srv.quote(kind, 60)), nil))
	}
}

func contentType(resp *http.Response) string {
	kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return kind
}

func (h *streamable) failCall(id int64, err error) {
	if err != nil {
		h.calls.Fail(id, err)
	}
}

func (h *streamable) isOpen(id int64) bool {
	_, open := h.calls.Lookup(id)
	return open
}

func (h *streamable) readJSONReply(ctx context.Context, c *Call, id int64, resp *http.Response) {
	body, err := h.readBody(resp)
	if err != nil {
		if large := h.tooLarge("an answer", err); large != nil {
			h.failCall(id, large)
		} else if ctx.Err() == nil {
			h.failCall(id, h.networkError(ctx, oauth.StripURL(err)))
		}
		return
	}
	if h.handleMessage(c, id, body) {
		return
	}
	h.handle(ctx, c, body)
	if !h.isOpen(id) {
		return
	}
	h.failCall(id, h.srv.newError(BadReply, fmt.Sprintf("sent no JSON-RPC answer: %q", h.srv.quote(string(body), 100)), nil))
}

// refusal returns nil if the body contains the server's own JSON-RPC error.
func (h *streamable) refusal(c *Call, resp *http.Response, id int64) error {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxRefusal))
	body = jsonrpc.TrimBOM(body)
	switch h.judgeLoss(c, resp.StatusCode, body) {
	case wire.SessionLost:
		return h.closeLostSession(id)
	case wire.SessionSuspect:
		h.requestLivenessCheck()
	}
	if m, err := jsonrpc.ParseWithin(body, h.srv.opt.Limits.Depth); err == nil && m.IsResponse() && m.Error != nil {
		if m.ID == nil && c.modern {
			m.ID = strconv.AppendInt(nil, id, 10) // refused before the body was parsed
		}
		if n, ok := rawjson.Int(m.ID); ok && n == id {
			h.resolve(&m)
			return nil
		}
	}
	return h.statusError(resp, body)
}

func (h *streamable) tooLarge(what string, err error) error {
	var long *jsonrpc.TooLongError
	switch {
	case errors.As(err, &long):
		return h.srv.newError(BadReply, "sent "+what+" over the size limit: "+long.Error(), long)
	case errors.Is(err, memlimit.ErrFull):
		return h.srv.newError(BadReply, noMemory, err)
	}
	return nil
}

// followStream resumes a stream that ends early.
func (h *streamable) followStream(ctx context.Context, cancel context.CancelFunc, c *Call, id int64, resp *http.Response) {
	body := resp.Body
	lastID, retry := "", time.Duration(0)
	answered := false
	for tries := 0; ; tries++ {
		ev := wire.NewStreamReader(body, h.srv.opt.Limits.Frame, h.srv.memory)
		ev.LastID, ev.Retry = lastID, retry
		err := h.readEvents(ctx, ev, func(data []byte) {
			tries = 0
			if !h.handleMessage(c, id, data) {
				h.handle(ctx, c, data)
			}
			if !answered && !h.isOpen(id) {
				answered = true
				time.AfterFunc(lingerTimeout, cancel)
			}
		})
		if !h.isOpen(id) || ctx.Err() != nil {
			return
		}
		if large := h.tooLarge("an event", err); large != nil {
			h.failCall(id, large)
			return
		}
		if ev.LastID == "" || tries >= maxResumes || c.modern { // 2026-07-28 has no resumption
			h.failCall(id, h.srv.newError(ConnectionError, "the stream ended before the answer", err))
			return
		}
		lastID, retry = ev.LastID, ev.Retry
		again, err := h.resume(ctx, lastID, retry)
		if err != nil {
			if ctx.Err() == nil {
				h.failCall(id, err)
			}
			return
		}
		defer drain(again.Body)
		body = again.Body
	}
}

func (h *streamable) resume(ctx context.Context, lastID string, wait time.Duration) (*http.Response, error) {
	if err := sleep(ctx, max(min(wait, maxWait), 100*time.Millisecond)); err != nil {
		return nil, err
	}
	resp, err := h.do(ctx, http.MethodGet, nil, acceptEvents, lastID, nil)
	if err != nil {
		return nil, h.networkError(ctx, err)
	}
	if resp.StatusCode == http.StatusOK && contentType(resp) == "text/event-stream" {
		return resp, nil
	}
	defer drain(resp.Body)
	return nil, h.srv.newError(ConnectionError, fmt.Sprintf(
		"the stream ended before the answer and could not be resumed (HTTP status %d)", resp.StatusCode), nil)
}

func (h *streamable) readEvents(ctx context.Context, ev *wire.StreamReader, take func(data []byte)) error {
	for {
		e, err := ev.Next()
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if e.Name == "message" && len(e.Data) > 0 {
			take(e.Data)
		}
	}
}

// listen reads the stream of the session. It calls opened at least once for each GET, when
// it was sent or failed.
func (h *streamable) listen(opened func()) {
	const first = time.Second
	ctx := httptrace.WithClientTrace(h.ctx, &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { opened() }})
	lastID, wait := "", first
	lost := false // notifications may have been lost
	for {
		resp, err := h.do(ctx, http.MethodGet, nil, acceptEvents, lastID, nil)
		opened()
		var retry time.Duration
		switch {
		case h.ctx.Err() != nil:
			if err == nil {
				_ = resp.Body.Close()
			}
			return
		case err != nil:
			_ = h.networkError(h.ctx, err)
		case isTemporary(resp.StatusCode):
			drain(resp.Body)
		case resp.StatusCode != http.StatusOK || contentType(resp) != "text/event-stream":
			body, _ := io.ReadAll(io.LimitReader(resp.Body, maxRefusal))
			drain(resp.Body)
			if h.judgeLoss(nil, resp.StatusCode, jsonrpc.TrimBOM(body)) != wire.SessionKept {
				// Either the session is lost, or the server has no such stream and uses
				// the wrong status instead of 405. A ping decides.
				h.requestLivenessCheck()
			}
			return
		default:
			if lost {
				h.srv.relist(h.link)
			}
			since := time.Now()
			ev := h.readStream(resp, lastID)
			h.invalidateTools() // the server may have been replaced
			lasted := time.Since(since)
			lost = ev.LastID == "" && lasted > first
			lastID, retry = ev.LastID, ev.Retry
			if lasted > 5*time.Second {
				wait = first
			}
		}
		pause := max(min(retry, maxWait), time.Duration(float64(wait)*(0.5+rand.Float64())))
		wait = min(2*wait, maxWait)
		if sleep(h.ctx, pause) != nil {
			return
		}
	}
}

func (h *streamable) readStream(resp *http.Response, lastID string) *wire.StreamReader {
	h.streamOpen.Store(true)
	defer h.streamOpen.Store(false)
	defer func() { _ = resp.Body.Close() }()
	ev := wire.NewStreamReader(resp.Body, h.srv.opt.Limits.Frame, h.srv.memory)
	ev.LastID = lastID
	err := h.readEvents(h.ctx, ev, func(data []byte) {
		if h.judgeMessage(nil, data) != wire.SessionKept {
			h.requestLivenessCheck()
		}
		h.handle(h.ctx, nil, data)
	})
	if long, ok := errors.AsType[*jsonrpc.TooLongError](err); ok {
		h.handleTooLong(long)
	}
	return ev
}

func isTemporary(status int) bool {
	return status >= 500 && status != http.StatusNotImplemented || status == http.StatusTooManyRequests
}

// close deletes the session.
func (h *streamable) close() {
	if h.session.Load() != nil && !h.sessionEnded.Load() {
		ctx, cancel := context.WithTimeout(context.Background(), deleteTimeout)
		defer cancel()
		if resp, err := h.do(ctx, http.MethodDelete, nil, acceptBoth, "", nil); err == nil {
			drain(resp.Body)
		}
	}
	h.tasks.Wait()
	h.keepNotices()
	h.client.CloseIdleConnections()
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
