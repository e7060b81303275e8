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

// carrier takes frames to a client. Only request may wait.
type carrier interface {
	send(frame []byte)
	// chat takes a notification of a server, "" for one of ours, which waits behind
	// what send takes; with a key it replaces one of that key that still waits.
	chat(server, key string, frame []byte) jsonrpc.QueuePosition
	// request sends a frame that wants an answer. It fails when the client
	// cannot be reached.
	request(ctx context.Context, frame []byte) error
	// unsent is how many bytes wait.
	unsent() int64
	// waiting is how many of them are a server's notifications.
	waiting(server string) int64
}

// Session is one client. It begins with a connection, or over HTTP with an
// initialize, and ends with [Handler].Closed.
type Session struct {
	id        string
	transport string
	opt       *Options
	ctx       context.Context
	cancel    context.CancelCauseFunc
	base      carrier              // session-wide stream
	quiet     func() time.Duration // of an HTTP session, see Quiet; else nil
	share     *share
	calls     jsonrpc.Pending[struct{}]
	idle      chan struct{}  // closed when no exchange runs and none may begin
	away      sync.WaitGroup // handlers of requests that are, or were, parked
	held      atomic.Int64   // how many these are
	order     sync.Mutex     // held while a notification is handled
	ready     chan struct{}
	stopping  chan struct{}         // closed with closing
	stateless bool                  // what all stateless HTTP requests belong to
	anonymous bool                  // see Anonymous
	worked    atomic.Bool           // it had a request other than initialize and ping
	address   string                // of the client of an HTTP session, else ""
	starter   Starter               // the handler, if it is one; else nil
	hello     atomic.Pointer[hello] // nil before SetInitialized
	chatter   chatters
	level     atomic.Int32           // above LevelUnset
	project   atomic.Pointer[string] // see SetProject
	since     time.Time
	askTurn   chan struct{} // capacity one: held while a question waits for room
	greeting  chan struct{} // of a stream: closed when initialize was answered; belongs to read

	mu       sync.Mutex
	closing  atomic.Bool // no exchange may begin; changed under mu
	inFlight map[string]*Request
	turns    map[string]chan struct{} // of the last request of each order
	running  int                      // Handle calls, also of exchanges already cancelled
	seq      uint64
	met      *hello               // what the first stateless request said
	guests   map[string]time.Time // see Guests
}

// ScreenTransport is the transport of the sessions by which screens act, and
// SocketTransport that of clients that are bridged to the daemon.
const (
	ScreenTransport = "screen"
	SocketTransport = "socket"
)

// hello keeps the handshake.
type hello struct {
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
		since:     time.Now(),
		transport: transport,
		opt:       opt,
		share:     newShare(opt.Memory),
		inFlight:  make(map[string]*Request),
		ready:     make(chan struct{}),
		stopping:  make(chan struct{}),
		askTurn:   make(chan struct{}, 1),
		idle:      make(chan struct{}),
	}
	// The session outlives ctx by the time that draining takes.
	s.ctx, s.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	s.starter, _ = opt.Handler.(Starter)
	context.AfterFunc(s.ctx, s.withdraw)
	return s
}

// withdraw tells the handlers of requests under way that the session has
// ended. [Request.OnEnd] sees to those that come later.
func (s *Session) withdraw() {
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
func (s *Session) Started() time.Time { return s.since }

// IdleTime returns the time since an HTTP session last had a stream or a request. It is 0 for
// other transports: their clients leave by closing the connection.
func (s *Session) IdleTime() time.Duration {
	if s.quiet == nil {
		return 0
	}
	return s.quiet()
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
	if h := s.hello.Load(); h != nil {
		return h.protocol
	}
	return ""
}

// Client returns the client's description of itself; zero before SetInitialized.
func (s *Session) Client() ClientInfo {
	if h := s.hello.Load(); h != nil {
		return h.client
	}
	return ClientInfo{}
}

// HasCapability reports whether the client declared a capability, for example
// Can("elicitation") or Can("roots", "listChanged"): its value is there and
// neither false nor null.
func (s *Session) HasCapability(path ...string) bool { return declared(s.Client().Capabilities, path) }

func declared(capabilities []byte, path []string) bool {
	v := rawjson.Path(capabilities, path...)
	return v != nil && string(v) != "false" && string(v) != "null"
}

// RecordStateless notes a stateless request of the session, for screens that show
// who is there. It reports whether it was the first.
func (s *Session) RecordStateless(m *Modern) (first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	first = s.met == nil
	if first { // of the request itself nothing is kept
		s.met = &hello{strings.Clone(m.Version), clientInfo(m.client), time.Now()}
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
	case s.hello.Load() != nil || s.met == nil:
		return s.Protocol(), s.Client()
	case s.stateless:
		return s.met.protocol, ClientInfo{}
	}
	return s.met.protocol, s.met.client
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
	if h := cmp.Or(s.hello.Load(), s.met); h != nil {
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
	s.hello.Store(&hello{protocol, c, time.Now()})
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
func (s *Session) UnsentBytes() int64 { return s.base.unsent() }

// Notify sends a notification on the session-wide stream, behind all answers. It
// is left out while more than a quarter of limits.unsent waits for the client (see
// [Options].Spared), and over HTTP dropped when the client has no such stream open.
func (s *Session) Notify(method string, params []byte, edits ...rawjson.Edit) {
	s.Relay("", method, params, edits...)
}

// Relay is Notify for what a server says: it also is left out while a sixteenth of
// limits.unsent of that server's notifications wait.
func (s *Session) Relay(server, method string, params []byte, edits ...rawjson.Edit) {
	if !s.spare(server, s.base) {
		s.base.chat(server, "", jsonrpc.OneLine(jsonrpc.NotificationFrame(method, params, edits...)))
	}
}

// NotifyLatest is Notify for state: it replaces an earlier notification of the same
// key that still waits. Over HTTP it waits for a session-wide stream.
func (s *Session) NotifyLatest(key, method string, params []byte, edits ...rawjson.Edit) {
	s.base.chat("", "s"+key, jsonrpc.OneLine(jsonrpc.NotificationFrame(method, params, edits...)))
}

// Reachable reports whether a request outside of any exchange could be sent
// now: over HTTP that takes a session-wide stream.
func (s *Session) Reachable() bool {
	b, ok := s.base.(*hub)
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
	return s.call(ctx, s.ctx, s.base.request, s.base.send, method, params)
}

// call sends a request with ask and waits for its answer, ctx or scope. tell
// takes the notice that nobody waits any longer.
func (s *Session) call(ctx, scope context.Context, ask func(context.Context, []byte) error, tell func([]byte),
	method string, params []byte,
) (jsonrpc.Reply, error) {
	if s.calls.Len() >= s.opt.Limits.InFlight {
		return jsonrpc.Reply{}, errors.New("too many requests wait for the client")
	}
	sent, err := s.roomToAsk(ctx, scope)
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

// roomToAsk waits until the client has read enough to be asked something, or
// returns the cause with which one of the contexts ended. Those who wait send
// one after another: sent must be called then.
func (s *Session) roomToAsk(ctx, scope context.Context) (sent func(), err error) {
	if s.roomy() {
		return func() {}, nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(scope, func() { cancel(context.Cause(scope)) })()
	select {
	case s.askTurn <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if !s.room(ctx.Done()) {
		<-s.askTurn
		return nil, cmp.Or(context.Cause(ctx), ErrSessionEnded)
	}
	return func() { <-s.askTurn }, nil
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
		s.settleLocked()
	}
	s.mu.Unlock()
	s.calls.Close(reason)
}

// settleLocked closes idle when its time has come.
func (s *Session) settleLocked() {
	if s.closing.Load() && s.running == 0 {
		close(s.idle)
	}
}

// finish ends the session and waits for its exchanges.
func (s *Session) finish(reason error) {
	s.stop(reason)
	s.cancel(reason)
	<-s.idle
	s.away.Wait()
	s.guard("closed", func() { s.opt.Handler.SessionClosed(s) })
}

// notified handles a notification, one at a time.
func (s *Session) notified(method string, params []byte) {
	s.order.Lock()
	defer s.order.Unlock()
	switch method {
	case "notifications/initialized":
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.hello.Load() != nil {
			s.markReadyLocked()
		}
	case "notifications/cancelled":
		s.cancelExchange(params)
	default:
		s.guard("notification", func() { s.opt.Handler.HandleNotification(s, method, params) })
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
	reason, _ := rawjson.String(rawjson.Get(params, "reason"))
	x.abandon(reason)
}

// responded hands an answer of the client to the waiting request; others are
// ignored.
func (s *Session) responded(m *jsonrpc.Message) {
	s.calls.Resolve(m.ID, jsonrpc.Reply{Result: m.Result, Error: m.Error}, nil)
}

// malformed says what to answer to a frame that is no message; nil when it
// was a broken answer to a call of ours, which fails.
func (s *Session) malformed(err error) []byte {
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

// guard keeps a panic of the handler from ending the process.
func (s *Session) guard(what string, call func()) {
	defer func() {
		if r := recover(); r != nil {
			s.opt.Logger.Error("handler panicked", "in", what, "session", s.id, "panic", r, "stack", string(debug.Stack()))
		}
	}()
	call()
}
