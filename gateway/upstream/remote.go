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
	// maxQueue is the maximum number of queued notifications and refusals for a server.
	// More are dropped and reported.
	maxQueue = 1024
	// respondTimeout is the maximum time that a response waits for frames queued before
	// it, mostly progress of the same request.
	respondTimeout = 2 * time.Second
	postTimeout    = 30 * time.Second
	// maxIdleConns is the maximum number of idle TCP connections per server. Too few
	// would make calls reconnect.
	maxIdleConns = 128
	// maxDrain and drainLimit limit the bytes and the time of reading a body to reuse its
	// connection.
	maxDrain   = 256 << 10
	drainLimit = time.Second
	// maxRefusals is the maximum number of retries of a refused request with another
	// token. The server may have accepted each token for another request.
	maxRefusals = 16
	// maxRefusal is the maximum size read from the body of an error status, in bytes.
	maxRefusal = 64 << 10
)

// keepAlive detects a vanished peer within a minute, even when idle.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 15 * time.Second, Count: 3}

// remote is the common part of both HTTP transports: HTTP client, configured headers, and
// a queue of frames without answers.
type remote struct {
	*link
	client        *http.Client
	base          *url.URL
	configHeaders map[string]string
	queue         chan queuedPost // posted in order, for progress
	// refusedFrames are queued frames that a lost session refused; see keepNotices.
	refusedFrames [][]byte
	// target returns the URL to post to. setHeaders adds the transport's own headers.
	target     func() string
	setHeaders func(h http.Header)
	inSession  func() bool
}

// queuedPost is a frame to post, or a marker. The channel of a marker is closed after the
// frames before it.
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
		// The error of url.Parse repeats the URL, which may contain secrets.
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

var errRedirect = errors.New("redirect to another origin refused: it would get the configured headers")

// sameOrigin keeps configured headers, which are secrets, from other origins, and POSTs
// from becoming GETs.
func sameOrigin(req *http.Request, via []*http.Request) error {
	first := via[0]
	switch {
	case len(via) > 5:
		return errors.New("too many redirects")
	case req.URL.Scheme != first.URL.Scheme || req.URL.Host != first.URL.Host:
		return errRedirect
	case req.Method != first.Method:
		return errors.New("redirect that changes the method refused")
	}
	return nil
}

// do sends one HTTP request. frame, lastID and own (headers of this request) are
// optional. A request refused for its login is retried with a better one if there is any.
// Errors contain no URL.
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

func (r *remote) loginError(err error, status int) error {
	if !oauth.NeedsUser(err) {
		return r.srv.newError(ConnectionError, err.Error(), err)
	}
	cause := errLogin
	if status == http.StatusForbidden { // other requests may be permitted
		cause = err
	}
	return r.srv.LoginError(err, cause)
}

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

// body also cancels the request when it is closed.
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

func (r *remote) send(frame []byte) {
	select {
	case r.queue <- queuedPost{frame: frame}:
	default:
		r.srv.note(slog.LevelWarn, "notification to the server dropped: queue full")
	}
}

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
				r.srv.log.Debug("notification not accepted", "err", err)
			}
			cancel()
		}
	}
}

// respond implements [transport]. It has no timeout: after an hour of a user's time, a
// slow server is acceptable. Progress queued before it goes first, unless that takes too
// long.
func (r *remote) respond(frame []byte) {
	mark := queuedPost{reached: make(chan struct{})}
	select {
	case r.queue <- mark:
		select {
		case <-mark.reached:
		case <-time.After(respondTimeout):
		case <-r.ctx.Done():
		}
	default:
	}
	if err := r.post(r.ctx, frame); err != nil && r.ctx.Err() == nil {
		r.srv.note(slog.LevelWarn, "the server did not accept the answer to its request: "+err.Error())
	}
}

// networkError closes the connection if the server is unreachable.
func (r *remote) networkError(ctx context.Context, err error) error {
	var own *Error
	if errors.As(err, &own) {
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
		reason = "cannot reach the server: " + reason
	}
	e := r.srv.newError(ConnectionError, reason, err)
	if unreachable && ctx.Err() == nil {
		r.fail(e)
	}
	return e
}

// statusError closes the connection after a 401. body is the start of the response, or nil
// if unread.
func (r *remote) statusError(resp *http.Response, body []byte) error {
	code := resp.StatusCode
	if code == http.StatusUnauthorized {
		e := r.srv.newError(ConnectionError, "needs login (HTTP 401)", errLogin)
		e.Fix = "add a header, for example " + stderr.KeyHeader(&r.srv.cfg, "Bearer")
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

const maxPageText = 200

// errorPageText returns "" for web pages and text that repeats the status.
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

// drain reads a short rest of a response body, so that its connection can be reused.
func drain(rest io.ReadCloser) {
	if b, ok := rest.(*body); ok {
		defer time.AfterFunc(drainLimit, b.cancel).Stop()
	}
	_, _ = io.CopyN(io.Discard, rest, maxDrain)
	_ = rest.Close()
}
