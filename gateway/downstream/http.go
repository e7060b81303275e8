package downstream

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"goblin/gateway/jsonrpc"
)

const (
	headerSession  = "Mcp-Session-Id"
	headerProtocol = "Mcp-Protocol-Version"
)

// LatestLegacy is the newest revision with a handshake, and the answer to unknown ones.
const LatestLegacy = "2025-11-25"

// DefaultProtocols lists the revisions with sessions.
var DefaultProtocols = []string{"2024-11-05", "2025-03-26", "2025-06-18", LatestLegacy}

// HTTPOptions configures an [HTTP]. Only Handler is required.
type HTTPOptions struct {
	Options
	// AuthToken is the bearer token for all but PublicHandlers; "": none.
	AuthToken string
	// AllowedOrigins are accepted in addition to loopback origins. They are compared
	// exactly.
	AllowedOrigins []string
	// AllowedHosts are accepted in addition to loopback names, without ports. If set, all
	// others are refused.
	AllowedHosts []string
	// Listen is the listening address; "": that of Serve's listener. On loopback or "",
	// only loopback hosts and AllowedHosts are served.
	Listen string
	// MaxConnections limits connections; a new one closes the longest idle one. The
	// default is twice limits.sessions plus 1024.
	MaxConnections int
	// HasProfile reports whether /mcp/p/NAME is served; nil: no profile is.
	HasProfile func(name string) bool
	// ResolveProject returns the folder of a project in a URL, or an error. If nil, any
	// path is valid.
	ResolveProject func(path string) (folder string, err error)
	// AuthHandlers are further paths that require the token, such as /metrics.
	AuthHandlers map[string]http.Handler
	// PublicHandlers are further paths without a token, such as /healthz.
	PublicHandlers map[string]http.Handler
}

// HTTP is the Streamable HTTP endpoint /mcp with further paths. A session starts with
// initialize and closes by DELETE, idleness, eviction at limits.sessions, or
// [HTTP.Close]. Requests without a session (2026-07-28) share a session per URL, which
// does not count for limits.sessions.
type HTTP struct {
	o                 HTTPOptions
	opt               *Options
	token             [sha256.Size]byte
	sessions          sessionTable
	ctx               context.Context
	cancel            context.CancelFunc
	draining          atomic.Bool
	sessionWaits      sync.WaitGroup
	closingMu         sync.Mutex // orders sessionWaits.Add before sessionWaits.Wait
	statelessMu       sync.Mutex
	statelessSessions map[urlChoices]*httpSession
	listener          *limitListener
}

// NewHTTP returns an endpoint without a listener. Close it with Serve or [HTTP.Close].
func NewHTTP(o HTTPOptions) *HTTP {
	h := &HTTP{o: o, opt: o.withDefaults(), token: sha256.Sum256([]byte(o.AuthToken))}
	h.o.MaxConnections = cmp.Or(h.o.MaxConnections, 2*h.opt.Limits.Sessions+1024)
	h.listener = newLimitListener(h.o.MaxConnections)
	h.sessions.limit = h.opt.Limits.Sessions
	h.sessions.byKey = make(map[string]*httpSession)
	h.ctx, h.cancel = context.WithCancel(context.Background())
	return h
}

// Sessions returns the number of open sessions.
func (h *HTTP) Sessions() int { return h.sessions.len() }

// Handler returns a handler for the address Listen. A public server needs the timeouts of
// [HTTP.Serve].
func (h *HTTP) Handler() http.Handler { return h.handler(h.o.Listen) }

func (h *HTTP) handler(listen string) http.Handler {
	g := guard{h: h, loopback: listensOnLoopback(listen)}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rc := &responseControl{ResponseController: http.NewResponseController(w), isHTTP2: r.ProtoMajor == 2}
		rc.expectWrite()
		if r.Body != http.NoBody {
			rc.extendRead()
		}
		if rc.isHTTP2 {
			defer rc.extendWrite() // for what the server writes after the handler
			if !h.listener.beginHTTP2(r.Context()) {
				writeUnavailable(w, nil, "Too many requests in flight over HTTP/2")
				return
			}
			defer h.listener.endHTTP2()
		}
		if g.admit(w, r) {
			h.route(w, r, rc)
		}
	})
}

func (h *HTTP) route(w http.ResponseWriter, r *http.Request, rc *responseControl) {
	if !h.isMCP(r) {
		for _, m := range []map[string]http.Handler{h.o.AuthHandlers, h.o.PublicHandlers} {
			if other := m[r.URL.Path]; other != nil {
				rc.extendWrite()
				other.ServeHTTP(w, r)
				return
			}
		}
		if strings.HasPrefix(r.URL.Path, profilePath) {
			http.Error(w, "Not found: unknown profile", http.StatusNotFound)
			return
		}
		http.Error(w, "Not found: MCP is served at /mcp and /mcp/p/PROFILE", http.StatusNotFound)
		return
	}
	if queryProject(r) != "" && h.o.AuthToken == "" {
		writeRPCError(w, http.StatusForbidden, nil, "A project in the URL needs gateway.auth_token; otherwise any local user could point a server at another folder")
		return
	}
	if r.Method != http.MethodPost && headersNameModern(r.Header) {
		w.Header().Set("Allow", "POST")
		writeRPCError(w, http.StatusMethodNotAllowed, nil, "Method %s is not allowed: this revision has no sessions", r.Method)
		return
	}
	switch r.Method {
	case http.MethodPost:
		h.post(w, r, rc)
	case http.MethodGet:
		h.get(w, r, rc)
	case http.MethodDelete:
		h.delete(w, r)
	default:
		w.Header().Set("Allow", "GET, POST, DELETE")
		writeRPCError(w, http.StatusMethodNotAllowed, nil, "Method %s is not allowed here", r.Method)
	}
}

type urlChoices struct{ project, profile string }

const profilePath = "/mcp/p/"

func (h *HTTP) parseChoices(r *http.Request) urlChoices {
	profile, named := strings.CutPrefix(endpoint(r), profilePath)
	if !named {
		profile = h.o.Profile
	}
	return urlChoices{queryProject(r), profile}
}

// endpoint returns the path without trailing slashes, which some clients add.
func endpoint(r *http.Request) string { return strings.TrimRight(r.URL.Path, "/") }

func queryProject(r *http.Request) string {
	if r.URL.RawQuery == "" {
		return ""
	}
	return r.URL.Query().Get("project")
}

func (h *HTTP) isMCP(r *http.Request) bool {
	path := endpoint(r)
	if name, ok := strings.CutPrefix(path, profilePath); ok {
		return h.o.HasProfile != nil && h.o.HasProfile(name)
	}
	return path == "/mcp"
}

func writeRPCError(w http.ResponseWriter, status int, id []byte, format string, args ...any) {
	writeError(w, status, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, format, args...).Frame(id))
}

func writeError(w http.ResponseWriter, status int, frame []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(frame) //nolint:errcheck // fails only if the client disconnected
}

// headersNameLegacy reports whether the headers name only revisions with sessions.
func headersNameLegacy(head http.Header) bool {
	return !slices.ContainsFunc(head.Values(headerProtocol), func(v string) bool { return !slices.Contains(DefaultProtocols, v) })
}

func checkProtocol(w http.ResponseWriter, r *http.Request) bool {
	if headersNameLegacy(r.Header) {
		return true
	}
	named := strings.Join(r.Header.Values(headerProtocol), ", ")
	writeRPCError(w, http.StatusBadRequest, nil, "Unsupported MCP-Protocol-Version %q; supported: %v", truncate(named), DefaultProtocols)
	return false
}

// session returns the session of a request until release, or nil after refusing it.
func (h *HTTP) session(w http.ResponseWriter, r *http.Request) *httpSession {
	id := r.Header.Get(headerSession)
	if id == "" {
		writeRPCError(w, http.StatusBadRequest, nil, "Header Mcp-Session-Id is missing; send initialize first")
		return nil
	}
	b := h.sessions.acquire(id)
	if b != nil && b.session.Profile() != h.parseChoices(r).profile { // unknown under this URL
		h.sessions.release(b)
		b = nil
	}
	if b == nil {
		writeRPCError(w, http.StatusNotFound, nil, "Session not found; start a new one with initialize")
	}
	return b
}

func (h *HTTP) delete(w http.ResponseWriter, r *http.Request) {
	if !checkProtocol(w, r) {
		return
	}
	if b := h.session(w, r); b != nil {
		h.sessions.remove(b)
		h.sessions.release(b)
		b.session.Close(ErrSessionEnded)
		w.WriteHeader(http.StatusNoContent)
	}
}

// openSession returns a new session, or nil at the limit or during shutdown.
func (h *HTTP) openSession(stateless bool, a urlChoices, address string) *httpSession {
	h.closingMu.Lock()
	defer h.closingMu.Unlock()
	if h.ctx.Err() != nil || h.draining.Load() {
		return nil
	}
	opt := *h.opt
	if a.project != "" {
		opt.Location = Location{Folder: a.project, IsProject: true}
	}
	opt.Profile = a.profile
	s := newSession(h.ctx, &opt, "http")
	s.stateless, s.address = stateless, address
	s.anonymous = h.o.AuthToken == ""
	b := newHTTPSession(s)
	s.idleTime = func() time.Duration { return h.sessions.idleTime(b) }
	evicted, ok := h.sessions.add(b)
	if !ok {
		return nil
	}
	if evicted != nil {
		h.opt.Logger.Info("unused session evicted", "session", evicted.session.id, "limit", h.sessions.limit)
		evicted.session.Close(ErrIdle)
	}
	h.sessionWaits.Go(func() { h.awaitEnd(b) })
	s.logPanic("opened", func() { h.opt.Handler.SessionOpened(s) })
	return b
}

const (
	// idleTimeout limits the idle time without streams and requests in flight.
	idleTimeout = 30 * time.Minute
	// handshakeTimeout limits the time from initialize to the next message.
	handshakeTimeout = time.Minute
)

// idle returns the idle timeout. It is short at first, because a client that hung up
// during initialize does not know its session.
func (b *httpSession) idle() time.Duration {
	if b.session.stateless || b.session.Ready() {
		return idleTimeout
	}
	return handshakeTimeout
}

// awaitEnd waits for the end of a session and closes idle ones.
func (h *HTTP) awaitEnd(b *httpSession) {
	timer := time.NewTimer(b.idle())
	defer timer.Stop()
	for b.session.ctx.Err() == nil {
		select {
		case <-b.session.ctx.Done():
		case <-timer.C:
			left, ended := h.sessions.expire(b, b.idle())
			if ended {
				b.session.Close(ErrIdle)
			}
			timer.Reset(left)
		}
	}
	h.sessions.remove(b)
	b.session.finish(context.Cause(b.session.ctx))
	h.sessions.markEnded(b)
}

// Close closes all sessions and waits for them. Requests in flight may finish within
// Options.Drain. Nothing is served afterwards.
func (h *HTTP) Close() {
	h.draining.Store(true)
	limit := time.After(h.opt.Drain)
	all := h.sessions.list()
	for _, b := range all {
		b.session.stop(ErrShutdown)
	}
wait:
	for _, b := range all {
		select {
		case <-b.session.idle:
		case <-limit:
			break wait
		}
	}
	h.closingMu.Lock()
	h.cancel()
	h.closingMu.Unlock()
	for _, b := range h.sessions.list() {
		b.session.Close(ErrShutdown)
	}
	h.sessionWaits.Wait()
}

// Timeouts against clients that hold connections.
const (
	headerTimeout = 10 * time.Second
	bodyTimeout   = 20 * time.Second // between reads; in all, plus 1 s per bodyRate bytes
	bodyRate      = 16 << 10
	keepAliveIdle = 2 * time.Minute
	maxHeaders    = 64 << 10
	shutdownGrace = 2 * time.Second
)

// Serve serves on l, which it closes, until ctx ends, and returns nil after [HTTP.Close].
// With [ErrDrain] as the cause it drains first. It refuses a non-loopback address without
// a token.
func (h *HTTP) Serve(ctx context.Context, l net.Listener) error {
	listen := h.o.Listen
	if listen == "" && l.Addr().Network() != "unix" {
		listen = l.Addr().String()
	}
	if !listensOnLoopback(listen) && h.o.AuthToken == "" {
		l.Close() //nolint:errcheck // the error below says more
		return fmt.Errorf("listen on %s: a non-loopback address needs gateway.auth_token", listen)
	}
	h.listener.Listener = l
	srv := &http.Server{
		ConnState:         h.listener.setState,
		Handler:           h.handler(listen),
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       keepAliveIdle,
		MaxHeaderBytes:    maxHeaders,
		// check "OPTIONS *" too
		DisableGeneralOptionsHandler: true,
		ErrorLog:                     slog.NewLogLogger(h.opt.Logger.With("endpoint", "http").Handler(), slog.LevelDebug),
	}
	useHTTP2(srv)
	served := make(chan error, 1)
	go func() { served <- srv.Serve(h.listener) }()

	var err error
	select {
	case err = <-served:
		h.Close()
	case <-ctx.Done():
		h.drain(ctx, srv)
		stopped := make(chan struct{})
		sctx, cancel := context.WithCancel(context.Background())
		go func() {
			defer close(stopped)
			srv.Shutdown(sctx) //nolint:errcheck // Close below does the rest
		}()
		h.Close()
		grace := time.AfterFunc(shutdownGrace, cancel)
		<-stopped
		grace.Stop()
		cancel()
		err = <-served
	}
	srv.Close() //nolint:errcheck // nothing is left to lose
	if errors.Is(err, http.ErrServerClosed) || ctx.Err() != nil && errors.Is(err, net.ErrClosed) {
		return nil
	}
	return fmt.Errorf("serve on %s: %w", listen, err)
}
