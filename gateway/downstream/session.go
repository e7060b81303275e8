package downstream

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"maps"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"goblin/gateway/jsonrpc"
	"goblin/registry/rawjson"
)

// sender sends frames to a client. Only request may block.
type sender interface {
	send(frame []byte)
	// sendLow sends a notification of a server, or of Goblin (""), after the frames of
	// send. It replaces an unsent one with the same key.
	sendLow(server, key string, frame []byte) jsonrpc.QueuePosition
	// request fails if the client is not reachable.
	request(ctx context.Context, frame []byte) error
	unsentBytes() int64
	// laneBytes returns the unsent bytes of a server's notifications.
	laneBytes(server string) int64
}

// Session is a client's connection, or over HTTP the time from initialize to its end. It
// ends with [Handler].SessionClosed.
type Session struct {
	id             string
	transport      string
	opt            *Options
	ctx            context.Context
	cancel         context.CancelCauseFunc
	sender         sender               // session-wide
	idleTime       func() time.Duration // for HTTP, see IdleTime; otherwise nil
	share          *memoryShare
	calls          jsonrpc.Pending[struct{}]
	idle           chan struct{}  // closed when no request runs and none may start
	parkedHandlers sync.WaitGroup // handlers of requests that are or were parked
	parkedCount    atomic.Int64
	notifyMu       sync.Mutex // held while a notification is handled
	ready          chan struct{}
	stopping       chan struct{}
	stateless      bool // the session of all stateless HTTP requests
	anonymous      bool
	hasRequests    atomic.Bool               // other than initialize and ping
	address        string                    // client's address over HTTP, otherwise ""
	starter        Starter                   // may be nil
	handshake      atomic.Pointer[handshake] // nil before SetInitialized
	drops          dropCounters
	level          atomic.Int32 // above LevelUnset
	project        atomic.Pointer[string]
	startTime      time.Time
	askSlot        chan struct{} // capacity one; held while awaiting unsent bytes
	initializeDone chan struct{} // after the answer to initialize; used by read only

	mu               sync.Mutex
	closing          atomic.Bool // no request may start; changed under mu
	inFlight         map[string]*Request
	turns            map[string]chan struct{} // of the last request of each order
	runningHandlers  int                      // including cancelled requests
	seq              uint64
	firstModern      *handshake           // of the first stateless request
	statelessClients map[string]time.Time // last tools/list of each, by name
}

// Transports of UIs, and of clients bridged to the daemon.
const (
	ScreenTransport = "screen"
	SocketTransport = "socket"
)

// handshake is a client's description and the negotiated revision.
type handshake struct {
	protocol string
	client   ClientInfo
	at       time.Time
}

// ClientInfo is a client's description of itself.
type ClientInfo struct {
	Name, Version, Title string
	Capabilities         []byte // raw object; nil if missing or over 64 KiB
}

const (
	maxCapabilities = 64 << 10
	maxClientName   = 256
)

func newSession(ctx context.Context, opt *Options, transport string) *Session {
	s := &Session{
		id:        randomID(),
		startTime: time.Now(),
		transport: transport,
		opt:       opt,
		share:     newMemoryShare(opt.Memory),
		inFlight:  make(map[string]*Request),
		ready:     make(chan struct{}),
		stopping:  make(chan struct{}),
		askSlot:   make(chan struct{}, 1),
		idle:      make(chan struct{}),
	}
	// The session outlives ctx to drain.
	s.ctx, s.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	s.starter, _ = opt.Handler.(Starter)
	context.AfterFunc(s.ctx, s.notifyWaiters)
	return s
}

// notifyWaiters runs after the session closed. [Request.OnEnd] handles later waiters.
func (s *Session) notifyWaiters() {
	s.mu.Lock()
	all := slices.Collect(maps.Values(s.inFlight))
	s.mu.Unlock()
	for _, x := range all {
		x.mu.Lock()
		waiter := x.waiter
		x.mu.Unlock()
		if waiter != nil {
			waiter.RequestEnded(context.Cause(s.ctx))
		}
	}
}

func randomID() string {
	var id [16]byte
	rand.Read(id[:]) //nolint:errcheck // never fails
	return hex.EncodeToString(id[:])
}

// ID returns the id for logs and the UI. HTTP clients use another, secret id.
func (s *Session) ID() string { return s.id }

// Transport returns "stdio", "http", [SocketTransport] or [ScreenTransport].
func (s *Session) Transport() string { return s.transport }

// Started returns the time at which the session opened.
func (s *Session) Started() time.Time { return s.startTime }

// IdleTime returns the time since an HTTP session was last used, and 0 for other
// transports.
func (s *Session) IdleTime() time.Duration {
	if s.idleTime == nil {
		return 0
	}
	return s.idleTime()
}

// IsScreen reports whether the session belongs to a UI.
func (s *Session) IsScreen() bool { return s.transport == ScreenTransport }

// Context ends when the session closes, with the reason as its cause.
func (s *Session) Context() context.Context { return s.ctx }

// Stopping is closed when only requests in flight may finish. Requests of unlimited
// duration must end then.
func (s *Session) Stopping() <-chan struct{} { return s.stopping }

// Stateless reports whether clients of stateless HTTP requests share the session.
func (s *Session) Stateless() bool { return s.stateless }

// Anonymous reports whether the client has no HTTP token and so may be any local user. It
// must not select a folder, process or environment.
func (s *Session) Anonymous() bool { return s.anonymous }

// Unit returns the isolation unit. Equal units share servers with `isolation: session`.
func (s *Session) Unit() string { return s.id }

// Location is a client's folder.
type Location struct {
	Folder    string // of the client's process or choice, or ""
	IsProject bool   // chosen as the project
}

// Location returns the client's location.
func (s *Session) Location() Location { return s.opt.Location }

// Profile returns the requested profile, or "".
func (s *Session) Profile() string { return s.opt.Profile }

// SetProject sets the client's project folder, or "".
func (s *Session) SetProject(folder string) { s.project.Store(&folder) }

// Project returns the folder of SetProject.
func (s *Session) Project() string {
	if p := s.project.Load(); p != nil {
		return *p
	}
	return ""
}

// UsesUnit reports whether the session uses connections of a unit other than "".
func (s *Session) UsesUnit(unit string) bool {
	return unit != "" && (unit == s.id || unit == s.Project())
}

// Protocol returns the negotiated revision, or "" before SetInitialized.
func (s *Session) Protocol() string {
	if h := s.handshake.Load(); h != nil {
		return h.protocol
	}
	return ""
}

// Client returns the client's description, zero before SetInitialized.
func (s *Session) Client() ClientInfo {
	if h := s.handshake.Load(); h != nil {
		return h.client
	}
	return ClientInfo{}
}

// HasCapability reports whether the client declared a capability, such as
// HasCapability("roots", "listChanged"), other than false and null.
func (s *Session) HasCapability(path ...string) bool {
	return hasCapability(s.Client().Capabilities, path)
}

func hasCapability(capabilities []byte, path []string) bool {
	v := rawjson.Path(capabilities, path...)
	return v != nil && string(v) != "false" && string(v) != "null"
}

// RecordStateless records a stateless request for the UI and reports whether it was the
// first.
func (s *Session) RecordStateless(m *Modern) (first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	first = s.firstModern == nil
	if first { // retain nothing of the request
		s.firstModern = &handshake{strings.Clone(m.Version), clientInfo(m.client), time.Now()}
	}
	return first
}

// Peer returns the revision and client of the handshake, or of the first stateless
// request. Stateless HTTP clients share a session, so their client is zero.
func (s *Session) Peer() (protocol string, c ClientInfo) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.handshake.Load() != nil || s.firstModern == nil:
		return s.Protocol(), s.Client()
	case s.stateless:
		return s.firstModern.protocol, ClientInfo{}
	}
	return s.firstModern.protocol, s.firstModern.client
}

// Name returns the client's name; see [Session.Peer].
func (s *Session) Name() string {
	_, c := s.Peer()
	return c.Name
}

// HandshakeTime returns the time of the handshake or first stateless request. It is
// unknown for shared sessions.
func (s *Session) HandshakeTime() (at time.Time, known bool) {
	if s.stateless {
		return time.Time{}, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := cmp.Or(s.handshake.Load(), s.firstModern); h != nil {
		return h.at, true
	}
	return time.Time{}, false
}

// SetInitialized records the handshake. Call it before answering initialize.
func (s *Session) SetInitialized(protocol string, params []byte) {
	c := clientInfo(rawjson.Get(params, "clientInfo"))
	if raw := rawjson.Get(params, "capabilities"); rawjson.IsObject(raw) && len(raw) <= maxCapabilities {
		c.Capabilities = bytes.Clone(raw)
	}
	s.handshake.Store(&handshake{protocol, c, time.Now()})
}

func clientInfo(raw []byte) (c ClientInfo) {
	if rawjson.IsObject(raw) {
		c.Name = shortString(rawjson.Get(raw, "name"))
		c.Version = shortString(rawjson.Get(raw, "version"))
		c.Title = shortString(rawjson.Get(raw, "title"))
	}
	return c
}

// shortString decodes a string for display and logs.
func shortString(v []byte) string {
	t, _ := rawjson.String(v)
	t = strings.Clone(t[:min(len(t), maxClientName*utf8.UTFMax)])
	if r := []rune(t); len(r) > maxClientName {
		t = string(r[:maxClientName])
	}
	return t
}

// Ready reports whether notifications/initialized arrived, or a request other than ping,
// since some clients omit the notification.
func (s *Session) Ready() bool {
	select {
	case <-s.ready:
		return true
	default:
		return false
	}
}

// Initialized returns a channel that closes when the session is Ready.
func (s *Session) Initialized() <-chan struct{} { return s.ready }

func (s *Session) markReadyLocked() {
	if !s.Ready() {
		close(s.ready)
	}
}

// UnsentBytes returns the number of unsent bytes.
func (s *Session) UnsentBytes() int64 { return s.sender.unsentBytes() }

// Notify sends a session-wide notification after all answers. It is dropped above a
// quarter of limits.unsent (see [Options].OnMissed), and over HTTP without a stream.
func (s *Session) Notify(method string, params []byte, edits ...rawjson.Edit) {
	s.Relay("", method, params, edits...)
}

// Relay is Notify for a server's notification. It also drops notifications above 1/16 of
// limits.unsent of that server's.
func (s *Session) Relay(server, method string, params []byte, edits ...rawjson.Edit) {
	if !s.dropNotification(server, s.sender) {
		s.sender.sendLow(server, "", jsonrpc.OneLine(jsonrpc.NotificationFrame(method, params, edits...)))
	}
}

// NotifyLatest is Notify for state: it replaces an unsent one with the same key. Over
// HTTP it waits for a stream.
func (s *Session) NotifyLatest(key, method string, params []byte, edits ...rawjson.Edit) {
	s.sender.sendLow("", "s"+key, jsonrpc.OneLine(jsonrpc.NotificationFrame(method, params, edits...)))
}

// Reachable reports whether Ask can reach the client now.
func (s *Session) Reachable() bool {
	b, ok := s.sender.(*httpSession)
	if !ok {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.newestLocked() != nil
}

// Ask sends a session-wide request to the client. If ctx ends first, it sends
// notifications/cancelled and returns the cause. Over HTTP it returns [ErrNoStream]
// without a stream for 5 s.
func (s *Session) Ask(ctx context.Context, method string, params []byte) (jsonrpc.Reply, error) {
	return s.call(ctx, s.ctx, s.sender.request, s.sender.send, method, params)
}

// call sends a request with ask, or its cancellation with tell, if ctx or scope ends
// before the answer.
func (s *Session) call(ctx, scope context.Context, ask func(context.Context, []byte) error, tell func([]byte),
	method string, params []byte,
) (jsonrpc.Reply, error) {
	if s.calls.Len() >= s.opt.Limits.InFlight {
		return jsonrpc.Reply{}, errors.New("too many requests wait for the client")
	}
	sent, err := s.awaitAskSlot(ctx, scope)
	if err != nil {
		return jsonrpc.Reply{}, err
	}
	call, err := s.calls.Add(struct{}{})
	if err != nil {
		sent()
		return jsonrpc.Reply{}, err
	}
	id := strconv.AppendInt(nil, call.ID, 10)
	jsonrpc.RelayedIDsOf(ctx).SetClient(id)
	err = ask(ctx, jsonrpc.OneLine(jsonrpc.RequestFrame(id, method, params)))
	sent()
	if err != nil {
		s.calls.Remove(call.ID)
		return jsonrpc.Reply{}, err
	}
	select {
	case o := <-call.Done():
		return o.Take()
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-scope.Done():
		err = context.Cause(scope)
	}
	if s.calls.Remove(call.ID) == nil {
		// The answer arrived first.
		return (<-call.Done()).Take()
	}
	tell(jsonrpc.CancelFrame(id, err.Error()))
	return jsonrpc.Reply{}, err
}

// awaitAskSlot waits until few bytes are unsent. Waiting callers send one at a time: call
// sent afterwards.
func (s *Session) awaitAskSlot(ctx, scope context.Context) (sent func(), err error) {
	if s.hasRoom() {
		return func() {}, nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(scope, func() { cancel(context.Cause(scope)) })()
	select {
	case s.askSlot <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if !s.awaitRoom(ctx.Done()) {
		<-s.askSlot
		return nil, cmp.Or(context.Cause(ctx), ErrSessionEnded)
	}
	return func() { <-s.askSlot }, nil
}

// Close closes the session without waiting. Only the first reason counts.
// [Handler].SessionClosed follows.
func (s *Session) Close(reason error) {
	if reason == nil {
		reason = ErrSessionEnded
	}
	s.cancel(reason)
}

func (s *Session) stop(reason error) {
	s.mu.Lock()
	if !s.closing.Swap(true) {
		close(s.stopping)
		s.closeIdleLocked()
	}
	s.mu.Unlock()
	s.calls.Close(reason)
}

func (s *Session) closeIdleLocked() {
	if s.closing.Load() && s.runningHandlers == 0 {
		close(s.idle)
	}
}

func (s *Session) finish(reason error) {
	s.stop(reason)
	s.cancel(reason)
	<-s.idle
	s.parkedHandlers.Wait()
	s.logPanic("closed", func() { s.opt.Handler.SessionClosed(s) })
}

func (s *Session) handleNotification(method string, params []byte) {
	s.notifyMu.Lock()
	defer s.notifyMu.Unlock()
	switch method {
	case "notifications/initialized":
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.handshake.Load() != nil {
			s.markReadyLocked()
		}
	case "notifications/cancelled":
		s.cancelExchange(params)
	default:
		s.logPanic("notification", func() { s.opt.Handler.HandleNotification(s, method, params) })
	}
}

// InFlight returns unanswered requests in order of arrival.
func (s *Session) InFlight() []*Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.SortedFunc(maps.Values(s.inFlight), func(a, b *Request) int { return cmp.Compare(a.seq, b.seq) })
}

func (s *Session) cancelExchange(params []byte) {
	id := rawjson.Get(params, "requestId")
	if id == nil {
		return
	}
	s.mu.Lock()
	x := s.inFlight[jsonrpc.IDString(id)]
	s.mu.Unlock()
	// The specification forbids cancelling initialize.
	if x == nil || x.method == "initialize" {
		return
	}
	reason := rawjson.GetString(params, "reason")
	x.abandon(reason)
}

func (s *Session) handleResponse(m *jsonrpc.Message) {
	s.calls.Resolve(m.ID, jsonrpc.Reply{Result: m.Result, Error: m.Error}, nil)
}

// malformedReply returns nil if the malformed frame was an answer.
func (s *Session) malformedReply(err error) []byte {
	var bad *jsonrpc.ParseError
	if !errors.As(err, &bad) {
		bad = &jsonrpc.ParseError{Code: jsonrpc.CodeParse, Cause: err}
	}
	s.opt.Logger.Debug("malformed message from client", "session", s.id, "transport", s.transport, "error", err)
	if !bad.WantsAnswer && bad.Code == jsonrpc.CodeInvalidRequest && bad.ID != nil && s.calls.Resolve(bad.ID, jsonrpc.Reply{}, err) {
		return nil
	}
	return bad.Reply().Frame(bad.ID)
}

func (s *Session) logPanic(what string, call func()) {
	defer func() {
		if r := recover(); r != nil {
			s.opt.Logger.Error("handler panicked", "in", what, "session", s.id, "panic", r, "stack", string(debug.Stack()))
		}
	}()
	call()
}
