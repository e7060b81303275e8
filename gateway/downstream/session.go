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
	// sendLow sends a notification of a server, "" for Goblin's own, after the frames of
	// send. With a key it replaces an unsent one with that key.
	sendLow(server, key string, frame []byte) jsonrpc.QueuePosition
	// request sends a frame that wants an answer. It fails when the client
	// cannot be reached.
	request(ctx context.Context, frame []byte) error
	// unsentBytes returns the number of unsent bytes.
	unsentBytes() int64
	// laneBytes returns how many of the unsent bytes are a server's notifications.
	laneBytes(server string) int64
}

// Session is one client. It begins with a connection, or over HTTP with an
// initialize, and ends with [Handler].Closed.
type Session struct {
	id             string
	transport      string
	opt            *Options
	ctx            context.Context
	cancel         context.CancelCauseFunc
	sender         sender               // session-wide stream
	idleTime       func() time.Duration // of an HTTP session, see IdleTime; else nil
	share          *memoryShare
	calls          jsonrpc.Pending[struct{}]
	idle           chan struct{}  // closed when no request runs and none may begin
	parkedHandlers sync.WaitGroup // handlers of requests that are, or were, parked
	parkedCount    atomic.Int64   // number of parkedHandlers
	notifyMu       sync.Mutex     // held while a notification is handled
	ready          chan struct{}
	stopping       chan struct{}             // closed with closing
	stateless      bool                      // what all stateless HTTP requests belong to
	anonymous      bool                      // see Anonymous
	hasRequests    atomic.Bool               // other than initialize and ping
	address        string                    // of the client of an HTTP session, else ""
	starter        Starter                   // the handler, if it is one; else nil
	handshake      atomic.Pointer[handshake] // nil before SetInitialized
	drops          dropCounters
	level          atomic.Int32           // above LevelUnset
	project        atomic.Pointer[string] // see SetProject
	startTime      time.Time
	askSlot        chan struct{} // capacity one: held while a question waits for unsent bytes
	initializeDone chan struct{} // of a stream: closed when initialize was answered; belongs to read

	mu               sync.Mutex
	closing          atomic.Bool // no exchange may begin; changed under mu
	inFlight         map[string]*Request
	turns            map[string]chan struct{} // of the last request of each order
	runningHandlers  int                      // also of cancelled requests
	seq              uint64
	firstModern      *handshake           // from the first stateless request
	statelessClients map[string]time.Time // last tools/list of each, by name
}

// ScreenTransport is the transport of the sessions by which screens act, and
// SocketTransport that of clients that are bridged to the daemon.
const (
	ScreenTransport = "screen"
	SocketTransport = "socket"
)

// handshake is the client's description of itself and the agreed revision.
type handshake struct {
	protocol string
	client   ClientInfo
	at       time.Time
}

// ClientInfo is a client's description of itself in initialize.
type ClientInfo struct {
	Name, Version, Title string
	Capabilities         []byte // the capabilities object; nil when absent or over 64 KiB
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
	// The session outlives ctx by the time that draining takes.
	s.ctx, s.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	s.starter, _ = opt.Handler.(Starter)
	context.AfterFunc(s.ctx, s.notifyWaiters)
	return s
}

// notifyWaiters notifies the waiters of requests in flight that the session has ended.
// [Request.OnEnd] does so for later ones.
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

// randomID is 128 bits in visible ASCII.
func randomID() string {
	var id [16]byte
	rand.Read(id[:]) //nolint:errcheck // never fails
	return hex.EncodeToString(id[:])
}

// ID tells sessions apart in logs and on screens. It opens nothing: what an HTTP
// client names its session by is another.
func (s *Session) ID() string { return s.id }

// Transport is "stdio", "socket", "http" or, inside this process, "screen".
func (s *Session) Transport() string { return s.transport }

// Started is when the session began.
func (s *Session) Started() time.Time { return s.startTime }

// IdleTime returns the time since an HTTP session last had a stream or a request. It is 0 for
// other transports: their clients leave by closing the connection.
func (s *Session) IdleTime() time.Duration {
	if s.idleTime == nil {
		return 0
	}
	return s.idleTime()
}

// IsScreen reports whether the session is one by which a screen acts.
func (s *Session) IsScreen() bool { return s.transport == ScreenTransport }

// Context ends when the session ends; its cause says why.
func (s *Session) Context() context.Context { return s.ctx }

// Stopping is closed when the session takes no more requests and waits only
// for those under way: what goes on for ever has to end then.
func (s *Session) Stopping() <-chan struct{} { return s.stopping }

// Stateless reports whether the session is the one that stands for all
// clients that send stateless requests over HTTP.
func (s *Session) Stateless() bool { return s.stateless }

// Anonymous reports whether the client came over HTTP without a token, so that any user
// of this machine may be it. Its own statements select no folder, process or environment.
func (s *Session) Anonymous() bool { return s.anonymous }

// Unit is the isolation unit: sessions of equal units share backends that are
// isolated per session.
func (s *Session) Unit() string { return s.id }

// Location is where a client is.
type Location struct {
	Folder    string // of the process that it speaks through, or of its choice; "" when nobody knows
	IsProject bool   // it named the folder as that of its project
}

// Location is where the client is.
func (s *Session) Location() Location { return s.opt.Location }

// Profile is the view of the catalog that the client asked for, "" for none.
func (s *Session) Profile() string { return s.opt.Profile }

// SetProject notes the folder of the project that the client is in, "" for none.
func (s *Session) SetProject(folder string) { s.project.Store(&folder) }

// Project returns the folder that SetProject noted.
func (s *Session) Project() string {
	if p := s.project.Load(); p != nil {
		return *p
	}
	return ""
}

// UsesUnit reports whether the session uses the connections of an isolation unit that
// is not everybody's.
func (s *Session) UsesUnit(unit string) bool {
	return unit != "" && (unit == s.id || unit == s.Project())
}

// Protocol is the negotiated revision, "" before SetInitialized.
func (s *Session) Protocol() string {
	if h := s.handshake.Load(); h != nil {
		return h.protocol
	}
	return ""
}

// Client returns the client's description of itself; zero before SetInitialized.
func (s *Session) Client() ClientInfo {
	if h := s.handshake.Load(); h != nil {
		return h.client
	}
	return ClientInfo{}
}

// HasCapability reports whether the client declared a capability, for example
// Can("elicitation") or Can("roots", "listChanged"): its value is there and
// neither false nor null.
func (s *Session) HasCapability(path ...string) bool {
	return hasCapability(s.Client().Capabilities, path)
}

func hasCapability(capabilities []byte, path []string) bool {
	v := rawjson.Path(capabilities, path...)
	return v != nil && string(v) != "false" && string(v) != "null"
}

// RecordStateless notes a stateless request of the session, for screens that show
// who is there. It reports whether it was the first.
func (s *Session) RecordStateless(m *Modern) (first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	first = s.firstModern == nil
	if first { // of the request itself nothing is kept
		s.firstModern = &handshake{strings.Clone(m.Version), clientInfo(m.client), time.Now()}
	}
	return first
}

// Peer is who is there, and the revision that is spoken: as agreed in the
// handshake, else as in the first stateless request. Stateless clients over
// HTTP have no name in common.
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

// Name returns the client's name for itself; see [Session.Peer].
func (s *Session) Name() string {
	_, c := s.Peer()
	return c.Name
}

// HandshakeTime returns the time of the handshake or of the first stateless request. It is not
// known for clients that share a session.
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

// SetInitialized records the handshake: the revision that was agreed on and
// the params of the client's initialize. Call it before answering.
func (s *Session) SetInitialized(protocol string, params []byte) {
	c := clientInfo(rawjson.Get(params, "clientInfo"))
	if raw := rawjson.Get(params, "capabilities"); rawjson.IsObject(raw) && len(raw) <= maxCapabilities {
		c.Capabilities = bytes.Clone(raw)
	}
	s.handshake.Store(&handshake{protocol, c, time.Now()})
}

// clientInfo decodes a clientInfo object; zero when it is none.
func clientInfo(raw []byte) (c ClientInfo) {
	if rawjson.IsObject(raw) {
		c.Name = shortString(rawjson.Get(raw, "name"))
		c.Version = shortString(rawjson.Get(raw, "version"))
		c.Title = shortString(rawjson.Get(raw, "title"))
	}
	return c
}

// shortString decodes a string that will be shown and logged.
func shortString(v []byte) string {
	t, _ := rawjson.String(v)
	t = strings.Clone(t[:min(len(t), maxClientName*utf8.UTFMax)])
	if r := []rune(t); len(r) > maxClientName {
		t = string(r[:maxClientName])
	}
	return t
}

// Ready reports whether the handshake is complete: notifications/initialized
// arrived, or a request other than ping after the answer to initialize, for
// clients that forget it.
func (s *Session) Ready() bool {
	select {
	case <-s.ready:
		return true
	default:
		return false
	}
}

// Initialized is closed once the session is Ready.
func (s *Session) Initialized() <-chan struct{} { return s.ready }

func (s *Session) markReadyLocked() {
	if !s.Ready() {
		close(s.ready)
	}
}

// UnsentBytes is how many bytes wait for the client.
func (s *Session) UnsentBytes() int64 { return s.sender.unsentBytes() }

// Notify sends a notification on the session-wide stream, behind all answers. It
// is left out while more than a quarter of limits.unsent waits for the client (see
// [Options].OnMissed), and over HTTP dropped when the client has no such stream open.
func (s *Session) Notify(method string, params []byte, edits ...rawjson.Edit) {
	s.Relay("", method, params, edits...)
}

// Relay is Notify for what a server says: it also is left out while a sixteenth of
// limits.unsent of that server's notifications wait.
func (s *Session) Relay(server, method string, params []byte, edits ...rawjson.Edit) {
	if !s.dropNotification(server, s.sender) {
		s.sender.sendLow(server, "", jsonrpc.OneLine(jsonrpc.NotificationFrame(method, params, edits...)))
	}
}

// NotifyLatest is Notify for state: it replaces an earlier notification of the same
// key that still waits. Over HTTP it waits for a session-wide stream.
func (s *Session) NotifyLatest(key, method string, params []byte, edits ...rawjson.Edit) {
	s.sender.sendLow("", "s"+key, jsonrpc.OneLine(jsonrpc.NotificationFrame(method, params, edits...)))
}

// Reachable reports whether a request outside of any exchange could be sent
// now: over HTTP that takes a session-wide stream.
func (s *Session) Reachable() bool {
	b, ok := s.sender.(*httpSession)
	if !ok {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.newestLocked() != nil
}

// Ask asks the client, outside of any exchange. When ctx ends first, the
// client is sent notifications/cancelled and the cause returned. Over HTTP it
// fails with [ErrNoStream] when the client opens no session-wide stream
// within some seconds.
func (s *Session) Ask(ctx context.Context, method string, params []byte) (jsonrpc.Reply, error) {
	return s.call(ctx, s.ctx, s.sender.request, s.sender.send, method, params)
}

// call sends a request with ask and waits for its answer, ctx or scope. tell
// takes the notice that nobody waits any longer.
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
		// The answer won the race.
		return (<-call.Done()).Take()
	}
	tell(jsonrpc.CancelFrame(id, err.Error()))
	return jsonrpc.Reply{}, err
}

// awaitAskSlot waits until the client has read enough to be asked something, or
// returns the cause with which one of the contexts ended. Those who wait send
// one after another: sent must be called then.
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

// Close ends the session; only the first reason counts. It does not wait:
// [Handler].Closed tells when all is over.
func (s *Session) Close(reason error) {
	if reason == nil {
		reason = ErrSessionEnded
	}
	s.cancel(reason)
}

// stop lets no exchange begin any more and fails what waits for the client,
// which will not be heard again.
func (s *Session) stop(reason error) {
	s.mu.Lock()
	if !s.closing.Swap(true) {
		close(s.stopping)
		s.closeIdleLocked()
	}
	s.mu.Unlock()
	s.calls.Close(reason)
}

// closeIdleLocked closes idle if no request runs and none may begin.
func (s *Session) closeIdleLocked() {
	if s.closing.Load() && s.runningHandlers == 0 {
		close(s.idle)
	}
}

// finish ends the session and waits for its exchanges.
func (s *Session) finish(reason error) {
	s.stop(reason)
	s.cancel(reason)
	<-s.idle
	s.parkedHandlers.Wait()
	s.logPanic("closed", func() { s.opt.Handler.SessionClosed(s) })
}

// handleNotification handles a notification, one at a time.
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

// InFlight are the requests of the session that were not answered yet, in the order
// in which they came.
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
	// The specification forbids clients to cancel initialize.
	if x == nil || x.method == "initialize" {
		return
	}
	reason := rawjson.GetString(params, "reason")
	x.abandon(reason)
}

// handleResponse passes a client's answer to the waiting request, and ignores unknown ones.
func (s *Session) handleResponse(m *jsonrpc.Message) {
	s.calls.Resolve(m.ID, jsonrpc.Reply{Result: m.Result, Error: m.Error}, nil)
}

// malformedReply returns the answer to a malformed frame, or nil for a malformed answer.
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

// logPanic recovers and logs a panic of the handler.
func (s *Session) logPanic(what string, call func()) {
	defer func() {
		if r := recover(); r != nil {
			s.opt.Logger.Error("handler panicked", "in", what, "session", s.id, "panic", r, "stack", string(debug.Stack()))
		}
	}()
	call()
}
