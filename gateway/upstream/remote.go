package upstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"

	"goblin/gateway/jsonrpc"
	"goblin/gateway/memlimit"
	"goblin/gateway/oauth"
	"goblin/gateway/upstream/stderr"
	"goblin/gateway/upstream/wire"
	"goblin/registry/rawjson"
)

const (
	// maxQueue is how many notifications and refusals wait to be posted to a
	// server. More are dropped and reported.
	maxQueue = 1024
	// respondTimeout is how long a response waits for the frames queued before it, mostly progress of the same
	// request.
	respondTimeout = 2 * time.Second
	// postTimeout bounds the wait for a server to accept a queued frame.
	postTimeout = 30 * time.Second
	// maxIdleConns per server: a connection that is not kept has to be opened
	// again for the next call.
	maxIdleConns = 128
	// maxDrain is how much of a body is read to keep its connection, and
	// drainLimit how long.
	maxDrain   = 256 << 10
	drainLimit = time.Second
	// maxRefusals is the maximum number of further tokens that a refused request is sent
	// with. The server may have accepted each of them for another request.
	maxRefusals = 16
	// maxRefusal is how much of the body of an error status is looked at.
	maxRefusal = 64 << 10
)

// keepAlive finds a peer that is gone within a minute, also where nothing is
// asked of it.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 15 * time.Second, Count: 3}

// remote is shared by both HTTP transports: it has a client of our own, the configured
// headers, and a queue of frames that have no answer.
type remote struct {
	*link
	client        *http.Client
	base          *url.URL
	configHeaders map[string]string // headers of the config
	queue         chan queuedPost   // posted one after another: progress has an order
	// refusedFrames are frames of the queue that a lost session refused; see keepNotices.
	refusedFrames [][]byte
	// target is where frames are posted to; stamp adds the transport's own
	// headers.
	target     func() string
	setHeaders func(h http.Header)
	// inSession reports whether requests belong to a session that the server may lose.
	inSession func() bool
}

// queuedPost is a frame to post, or a marker whose channel is closed once the frames before it were posted.
type queuedPost struct {
	frame   []byte
	reached chan struct{}
}

func newRemote(ctx context.Context, s *Server, unit, kind string) (*remote, error) {
	cfg, err := s.definition(ctx, unit)
	if err != nil {
		return nil, err
	}
	base, err := url.Parse(cfg.URL)
	if err != nil || base.Host == "" {
		// The error of url.Parse repeats the URL, which may hold secrets.
		return nil, s.newError(ConnectionError, "the url is not valid", nil)
	}
	t := &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 10 * time.Second, KeepAliveConfig: keepAlive}).DialContext,
		ForceAttemptHTTP2:     true,
		HTTP2:                 &http.HTTP2Config{SendPingTimeout: keepAlive.Idle, PingTimeout: keepAlive.Idle},
		MaxIdleConns:          maxIdleConns,
		MaxIdleConnsPerHost:   maxIdleConns,
		IdleConnTimeout:       90 * time.Second,
		TLSHandshakeTimeout:   10 * time.Second,
		ExpectContinueTimeout: time.Second,
	}
	return &remote{
		link:   newLink(s, unit, kind),
		client: &http.Client{Transport: t, CheckRedirect: sameOrigin},
		base:   base, configHeaders: cfg.Headers,
		queue: make(chan queuedPost, maxQueue),
	}, nil
}

var errRedirect = errors.New("redirects to another origin are not followed: the configured headers would go there")

// sameOrigin keeps the configured headers, which are secrets, from other
// origins, and messages from becoming GETs.
func sameOrigin(req *http.Request, via []*http.Request) error {
	first := via[0]
	switch {
	case len(via) > 5:
		return errors.New("too many redirects")
	case req.URL.Scheme != first.URL.Scheme || req.URL.Host != first.URL.Host:
		return errRedirect
	case req.Method != first.Method:
		return errors.New("a redirect that changes the method is not followed")
	}
	return nil
}

// do sends one HTTP request; frame, lastID and own, headers of this request
// alone, may be missing. One that is refused for its login is sent again with a better
// one, if there is any. Its errors hold no URL.
func (r *remote) do(ctx context.Context, method string, frame []byte, accept, lastID string, own http.Header) (*http.Response, error) {
	auth := r.srv.opt.Authorizer
	if auth == nil {
		return r.doOnce(ctx, method, frame, accept, lastID, own, "")
	}
	for try := 0; ; try++ {
		header, err := auth.Authorization(ctx)
		if err != nil {
			return nil, r.loginError(err, 0)
		}
		resp, err := r.doOnce(ctx, method, frame, accept, lastID, own, header)
		if err != nil {
			return nil, err
		}
		if resp.StatusCode != http.StatusUnauthorized && resp.StatusCode != http.StatusForbidden {
			auth.RecordAccepted(header)
			return resp, nil
		}
		if r.isSessionRefusal(resp) {
			return resp, nil
		}
		again := false
		if try == maxRefusals {
			err = auth.Abandon(ctx, header)
		} else {
			again, err = auth.HandleRefusal(ctx, header, try > 0, resp.StatusCode, resp.Header)
		}
		if err == nil && !again {
			return resp, nil
		}
		drain(resp.Body)
		if err != nil && header == "" && resp.StatusCode == http.StatusUnauthorized && resp.Header.Get("WWW-Authenticate") == "" {
			return nil, r.srv.needsKey()
		}
		if err != nil {
			return nil, r.loginError(err, resp.StatusCode)
		}
	}
}

// loginError returns the Error of a request that cannot be authorized, or was refused with a status.
func (r *remote) loginError(err error, status int) error {
	if !oauth.NeedsUser(err) {
		return r.srv.newError(ConnectionError, err.Error(), err)
	}
	cause := errLogin
	if status == http.StatusForbidden { // others may be allowed
		cause = err
	}
	return r.srv.LoginError(err, cause)
}

// doOnce is do without a retry, with the given Authorization header.
func (r *remote) doOnce(ctx context.Context, method string, frame []byte, accept, lastID string, own http.Header, authorization string) (*http.Response, error) {
	var content io.Reader
	if frame != nil {
		content = bytes.NewReader(frame)
	}
	ctx, cancel := context.WithCancel(ctx)
	req, err := http.NewRequestWithContext(ctx, method, r.target(), content)
	if err != nil {
		cancel()
		return nil, oauth.StripURL(err)
	}
	r.headers(req.Header)
	if authorization != "" {
		req.Header.Set("Authorization", authorization)
	}
	if host := req.Header.Get("Host"); host != "" {
		req.Host = host
	}
	for k, v := range own {
		req.Header[k] = v
	}
	req.Header.Set("Accept", accept)
	if frame != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if lastID != "" {
		req.Header.Set("Last-Event-ID", lastID)
	}
	release, ok := r.srv.reserve(len(frame))
	if !ok {
		cancel()
		return nil, memlimit.ErrFull
	}
	resp, err := r.client.Do(req)
	release()
	if err != nil {
		cancel()
		return nil, oauth.StripURL(err)
	}
	resp.Body = &body{ReadCloser: resp.Body, cancel: cancel}
	return resp, nil
}

// body is the body of an answer. Closing it ends the request.
type body struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (b *body) Close() error {
	err := b.ReadCloser.Close()
	b.cancel()
	return err
}

func (r *remote) headers(h http.Header) {
	h.Set("User-Agent", "goblin/"+r.srv.opt.Version)
	for k, v := range r.configHeaders {
		h.Set(k, v)
	}
	if r.setHeaders != nil {
		r.setHeaders(h)
	}
}

const (
	acceptBoth   = "application/json, text/event-stream"
	acceptEvents = "text/event-stream"
)

// post posts a frame that has no response and waits until the server accepted it.
func (r *remote) post(ctx context.Context, frame []byte) error {
	resp, err := r.do(ctx, http.MethodPost, frame, acceptBoth, "", nil)
	if err != nil {
		return r.networkError(ctx, err)
	}
	defer drain(resp.Body)
	if resp.StatusCode >= 300 || contentType(resp) == "application/json" {
		body, _ := io.ReadAll(io.LimitReader(resp.Body, maxRefusal))
		switch r.judgeLoss(nil, resp.StatusCode, jsonrpc.TrimBOM(body)) {
		case wire.SessionLost:
			return r.closeLostSession(0)
		case wire.SessionSuspect:
			r.requestLivenessCheck()
		}
	}
	if resp.StatusCode >= 300 {
		return r.statusError(resp, nil)
	}
	return nil
}

func (r *remote) isLocal() bool      { return false }
func (r *remote) isLegacyOnly() bool { return false }

// send implements [transport].
func (r *remote) send(frame []byte) {
	select {
	case r.queue <- queuedPost{frame: frame}:
	default:
		r.srv.note(slog.LevelWarn, "a notification to the server was dropped: too many wait to be posted")
	}
}

// postQueue posts the frames that send queues.
func (r *remote) postQueue() {
	for {
		select {
		case <-r.ctx.Done():
			return
		case p := <-r.queue:
			if p.reached != nil {
				close(p.reached)
				continue
			}
			ctx, cancel := context.WithTimeout(r.ctx, postTimeout)
			err := r.post(ctx, p.frame)
			switch {
			case errors.Is(err, ErrSessionLost):
				r.refusedFrames = append(r.refusedFrames, p.frame)
			case err != nil && r.ctx.Err() == nil:
				r.srv.log.Debug("a notification was not accepted", "err", err)
			}
			cancel()
		}
	}
}

// respond implements [transport]. There is no time limit: a human may have taken an
// hour, and the server takes what it takes. Progress that was queued before it
// goes first, unless the server is slow to take that.
func (r *remote) respond(frame []byte) {
	mark := queuedPost{reached: make(chan struct{})}
	select {
	case r.queue <- mark:
		select {
		case <-mark.reached:
		case <-time.After(respondTimeout):
		case <-r.ctx.Done():
		}
	default: // full of what the server does not take
	}
	if err := r.post(r.ctx, frame); err != nil && r.ctx.Err() == nil {
		r.srv.note(slog.LevelWarn, "the answer to a request of the server was not accepted: "+err.Error())
	}
}

// networkError returns the Error of a request without an HTTP response. It closes the connection if the
// server cannot be reached at all.
func (r *remote) networkError(ctx context.Context, err error) error {
	var own *Error
	if errors.As(err, &own) { // about the login
		if errors.Is(own, errLogin) {
			r.fail(own)
		}
		return own
	}
	var op *net.OpError
	unreachable := errors.As(err, &op) && op.Op == "dial"
	reason := err.Error()
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		reason = "the server closed the connection without an answer"
	case unreachable:
		reason = "the server cannot be reached: " + reason
	}
	e := r.srv.newError(ConnectionError, reason, err)
	if unreachable && ctx.Err() == nil {
		r.fail(e)
	}
	return e
}

// statusError returns the Error for an HTTP status other than success. body is the start of the response, or
// nil if it was not read.
func (r *remote) statusError(resp *http.Response, body []byte) error {
	code := resp.StatusCode
	if code == http.StatusUnauthorized {
		e := r.srv.newError(ConnectionError, "needs login (HTTP 401)", errLogin)
		e.Fix = "configure a header, for example " + stderr.KeyHeader(&r.srv.cfg, "Bearer")
		if r.srv.cfg.Authorized() {
			e.Reason, e.Fix = "needs login: the configured Authorization header was refused (HTTP 401)", ""
		}
		r.fail(e)
		return e
	}
	reason := strings.TrimSpace(fmt.Sprintf("HTTP status %d %s", code, http.StatusText(code)))
	if words := r.errorPageText(resp, body); words != "" {
		reason += ": " + words
	}
	return r.srv.newError(ConnectionError, reason, errStatus(code))
}

// maxPageText is the maximum size of a quotation from an error page, in bytes.
const maxPageText = 200

// errorPageText returns the text of an error response in one line, "" if it is a web page or repeats the
// status.
func (r *remote) errorPageText(resp *http.Response, body []byte) string {
	text := string(body)
	switch contentType(resp) {
	case "text/html":
		return ""
	case "application/json", "application/problem+json":
		text = errorText(body)
	}
	text = r.srv.quote(strings.Join(strings.Fields(strings.ToValidUTF8(text, "\uFFFD")), " "), maxPageText)
	if strings.EqualFold(text, http.StatusText(resp.StatusCode)) || strings.HasPrefix(text, "<") {
		return ""
	}
	return strings.Map(func(c rune) rune {
		if unicode.IsControl(c) {
			return ' '
		}
		return c
	}, text)
}

// errorText returns the message of an error in JSON, "" if no member has a usual name.
func errorText(body []byte) string {
	if rawjson.Valid(body) != nil {
		return ""
	}
	for _, path := range [][]string{{"error", "message"}, {"error_description"}, {"message"}, {"detail"}, {"title"}, {"error"}} {
		if text, ok := rawjson.String(rawjson.Path(body, path...)); ok && text != "" {
			return text
		}
	}
	return ""
}

// readBody reads a body up to limits.frame, as far as there is room.
func (r *remote) readBody(resp *http.Response) ([]byte, error) {
	limit := r.srv.opt.Limits.Frame
	var buf bytes.Buffer
	var room memlimit.GrowingReservation
	room.SetOwner(r.srv.memory)
	defer room.Release()
	body := room.Reader(resp.Body)
	if n := resp.ContentLength; n > 0 && n <= limit {
		if err := room.Grow(int(n)); err != nil {
			return nil, err
		}
		buf.Grow(int(n) + bytes.MinRead)
		body = resp.Body
	}
	n, err := buf.ReadFrom(io.LimitReader(body, limit+1))
	if err != nil {
		return nil, err
	}
	if n > limit {
		return nil, &jsonrpc.TooLongError{Prefix: buf.Bytes()[:4096:4096], Limit: limit}
	}
	return jsonrpc.TrimBOM(buf.Bytes()), nil
}

// drain reads the body of an answer of do to its end, if that is near, so that
// its connection can be used again.
func drain(rest io.ReadCloser) {
	if b, ok := rest.(*body); ok {
		defer time.AfterFunc(drainLimit, b.cancel).Stop()
	}
	_, _ = io.CopyN(io.Discard, rest, maxDrain)
	_ = rest.Close()
}
