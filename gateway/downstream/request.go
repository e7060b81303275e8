package downstream

import (
	"context"
	"errors"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"goblin/gateway/jsonrpc"
	"goblin/registry/rawjson"
)

// errUseSessionStream means that the session-wide stream must be used.
var errUseSessionStream = errors.New("no stream of its own")

// stream is a sender for one request. No method blocks. request may return
// errUseSessionStream.
type stream interface {
	sender
	// answer sends the last frame after the given positions. code is its error code, or
	// 0. burst may be nil.
	answer(frame []byte, code int, burst *jsonrpc.WriteBatch, after []jsonrpc.QueuePosition)
	abandon()
}

// Request is a client's request until its answer. Frames sent through it precede the
// answer.
type Request struct {
	number        uint64
	session       *Session
	id            []byte
	key           string
	method        string
	params        []byte
	handlerParams []byte   // Params if different; set before Handle
	modern        *Modern  // nil up to 2025-11-25
	outer         *Request // nil unless nested
	startTime     time.Time
	seq           uint64
	share         *memoryShare // nil for nested requests
	out           stream
	onHandled     func() // may be nil
	turn          *turn  // nil if the request has no order key

	writeBatch *jsonrpc.WriteBatch
	finished   atomic.Bool // Finish was called
	uncounted  atomic.Bool // not in flight any longer

	// Only for stateless requests.
	parked atomic.Pointer[parkedCall] // nil before the first query
	parker Parker                     // may be nil
	state  *requestState              // nil before run

	mu           sync.Mutex
	done         atomic.Bool // answered or cancelled; changed under mu
	cause        error       // cause of ctx
	clientLeft   bool        // before the answer
	ctx          context.Context
	cancel       context.CancelCauseFunc
	waiter       Waiter
	predecessors []jsonrpc.QueuePosition // the answer must follow these frames
	concluded    bool                    // no more queries
}

// requestNumbers is the last assigned [Request.Number].
var requestNumbers atomic.Uint64

// NewNumber returns a number for a request that is no [Request], such as a server's.
func NewNumber() uint64 { return requestNumbers.Add(1) }

// Number identifies the request among all of this process. Unlike an id of a client, it
// is never used again.
func (x *Request) Number() uint64 { return x.number }

// turn is a request's position among those with the same order key.
type turn struct {
	key      string
	previous <-chan struct{} // closed after the previous request; may be nil
	done     chan struct{}   // closed after this request
}

func (s *Session) addTurnLocked(m *jsonrpc.Message) *turn {
	if s.opt.Order == nil {
		return nil
	}
	key := s.opt.Order(m.Method, m.Params)
	if key == "" {
		return nil
	}
	t := &turn{key: key, previous: s.turns[key], done: make(chan struct{})}
	if s.turns == nil {
		s.turns = make(map[string]chan struct{})
	}
	s.turns[t.key] = t.done
	return t
}

func (x *Request) awaitTurn() {
	if x.turn == nil || x.turn.previous == nil {
		return
	}
	select {
	case <-x.turn.previous:
	case <-x.Context().Done():
	}
}

// endTurnLocked lets the next request of the same order run. The caller holds the
// session's mu.
func (x *Request) endTurnLocked() {
	if x.turn == nil {
		return
	}
	if s := x.session; s.turns[x.turn.key] == x.turn.done {
		delete(s.turns, x.turn.key)
	}
	close(x.turn.done)
}

// begin registers a request; call x.serve or x.run once afterwards. modern may be nil.
// The error is the answer to a refused request.
func (s *Session) begin(m *jsonrpc.Message, modern *Modern, out stream, of *memoryShare, after func()) (*Request, *jsonrpc.Error) {
	key := jsonrpc.IDString(m.ID)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stateless {
		// Independent clients may use the same id.
		key = "#" + strconv.FormatUint(s.seq+1, 10)
	}
	if s.closing.Load() {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInternal, "The session is closing")
	}
	if s.inFlight[key] != nil {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "Invalid request: id %s is already in use by a request in flight", truncate(key))
	}
	if s.runningHandlers >= s.opt.Limits.InFlight {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInternal, "Too many requests in flight in this session (limit %d)", s.opt.Limits.InFlight)
	}
	x := &Request{number: requestNumbers.Add(1), session: s, id: m.ID, key: key, method: m.Method, params: m.Params, modern: modern, startTime: time.Now(), seq: s.seq + 1, out: out, share: of, onHandled: after}
	if !of.addLocked(x) {
		s.opt.Logger.Warn("request refused: memory limit for all clients and servers reached", "session", s.id, "bytes", len(m.Params))
		return nil, noMemoryError("request")
	}
	if s.handshake.Load() != nil && modern == nil && m.Method != "initialize" && m.Method != "ping" {
		s.markReadyLocked() // a ping may come earlier
		s.hasRequests.Store(true)
	}
	if s.stateless && m.Method == "tools/list" {
		s.recordStatelessLocked(x.ClientName(), x.startTime)
	}
	s.seq++
	x.turn = s.addTurnLocked(m)
	s.inFlight[key] = x
	s.runningHandlers++
	return x, nil
}

func truncate(s string) string {
	if len(s) > 64 {
		return s[:64] + "…"
	}
	return s
}

func (x *Request) serve(burst *jsonrpc.WriteBatch) {
	if x.turn != nil || !x.tryStart(burst) {
		go x.run()
	}
}

// tryStart reports whether the [Starter] took the request.
func (x *Request) tryStart(burst *jsonrpc.WriteBatch) (taken bool) {
	starter := x.session.starter
	if starter == nil {
		return false
	}
	taken = true // also after a panic
	defer x.Recover()
	return starter.Start(x, burst)
}

func (x *Request) run() {
	if x.modern != nil {
		x.handlerParams = stripEnvelope(x.params, x.method == "tasks/update")
		if x.resume() {
			return // the parked call finishes it
		}
	}
	defer x.Finish()
	defer x.Recover()
	x.awaitTurn()
	x.session.opt.Handler.Handle(x)
}

// Finish completes a request that a [Starter] has taken. A missing answer becomes -32603.
func (x *Request) Finish() {
	if x.finished.Swap(true) {
		return
	}
	x.mu.Lock()
	x.concluded = true
	x.mu.Unlock()
	at := x
	if p := x.parked.Load(); p != nil {
		defer x.session.parkedHandlers.Done()
		defer x.session.parkedCount.Add(-1)
		at = p.finish()
	}
	if !at.answered() {
		_ = at.Fail(jsonrpc.Errorf(jsonrpc.CodeInternal, "Internal error: the request was not answered"))
	}
	at.removeInFlight()
}

func (x *Request) removeInFlight() {
	if x.uncounted.Swap(true) {
		return
	}
	if x.onHandled != nil {
		x.onHandled()
	}
	s := x.session
	s.mu.Lock()
	x.endTurnLocked()
	x.share.removeLocked(x)
	s.runningHandlers--
	s.closeIdleLocked()
	s.mu.Unlock()
}

// Recover logs a panic and finishes the request. Defer it in code for requests that a
// [Starter] has taken.
func (x *Request) Recover() {
	if r := recover(); r != nil {
		s := x.session
		s.opt.Logger.Error("handler panicked", "in", "request", "method", x.method, "session", s.id, "panic", r, "stack", string(debug.Stack()))
		x.Finish()
	}
}

// SetBatch sends the answer, which must follow soon, with a burst.
func (x *Request) SetBatch(burst *jsonrpc.WriteBatch) { x.writeBatch = burst }

// Waiter waits without a goroutine.
type Waiter interface {
	// RequestEnded reports that the request ended before its answer. It may be called
	// several times, in any goroutine, and must not block.
	RequestEnded(cause error)
}

// OnEnd calls w.RequestEnded when the client no longer waits, possibly now. Call it once,
// instead of using Context.
func (x *Request) OnEnd(w Waiter) {
	x.mu.Lock()
	x.waiter = w
	over, cause := x.done.Load(), x.cause
	x.mu.Unlock()
	if !over && x.session.ctx.Err() != nil {
		over, cause = true, context.Cause(x.session.ctx)
	}
	if over && !errors.Is(cause, ErrAnswered) {
		w.RequestEnded(cause)
	}
}

// Session returns the session of the request.
func (x *Request) Session() *Session { return x.session }

// Outer returns x, or the request around a nested x.
func (x *Request) Outer() *Request {
	if x.outer != nil {
		return x.outer
	}
	return x
}

// After a query, a stateless client repeats its request. ID, SentParams, Started, Modern,
// Client, HasCapability, Cancelled and CancelReason then refer to the latest one.

// ID returns the raw id.
func (x *Request) ID() []byte { return x.current().id }

// Key returns a key of the request that is unique in its session.
func (x *Request) Key() string { return x.key }

// Method returns the method.
func (x *Request) Method() string { return x.method }

// Params returns the raw params without the envelope, or nil.
func (x *Request) Params() []byte {
	if x.handlerParams != nil {
		return x.handlerParams
	}
	return x.params
}

// OmitParam removes a member of Params, before x is shared.
func (x *Request) OmitParam(member string) {
	x.handlerParams = rawjson.RemoveMember(x.Params(), member)
}

// SetParams replaces Params, before x is shared.
func (x *Request) SetParams(params []byte) { x.handlerParams = params }

// OmitForeignMeta removes members of `_meta` that the protocol does not define, before x
// is shared.
func (x *Request) OmitForeignMeta() {
	meta := rawjson.Get(x.Params(), "_meta")
	if meta == nil {
		return
	}
	kept := rawjson.Filter(meta, func(k rawjson.Key, v []byte) ([]byte, bool) {
		name, ok := rawjson.String(k)
		return v, ok && (strings.HasPrefix(name, MetaPrefix) || slices.Contains(protocolMeta, name))
	})
	x.handlerParams = rawjson.SetMember(x.Params(), "_meta", kept)
}

// protocolMeta lists the protocol's members of `_meta` without MetaPrefix.
var protocolMeta = []string{"progressToken", "traceparent", "tracestate", "baggage"}

// SentParams returns the params as the client sent them.
func (x *Request) SentParams() []byte { return x.current().params }

// Started returns the time of arrival.
func (x *Request) Started() time.Time { return x.current().startTime }

// Modern returns the envelope of a stateless request (2026-07-28), or nil.
func (x *Request) Modern() *Modern { return x.current().modern }

// Client returns the client's description, from the request or initialize.
func (x *Request) Client() ClientInfo {
	if m := x.Modern(); m != nil {
		return m.Client()
	}
	return x.session.Client()
}

// ClientName returns the client's name, or "" if it is not known.
func (x *Request) ClientName() string {
	if m := x.Modern(); m != nil {
		return m.name()
	}
	if h := x.session.handshake.Load(); h != nil {
		return h.client.Name
	}
	if x.method == "initialize" {
		return clientInfo(rawjson.Get(x.SentParams(), "clientInfo")).Name
	}
	return ""
}

// HasCapability is [Session.HasCapability] for this request.
func (x *Request) HasCapability(path ...string) bool {
	if m := x.Modern(); m != nil {
		return hasCapability(m.Capabilities, path)
	}
	return x.session.HasCapability(path...)
}

// Context is cancelled with [ErrCancelled] by the client, with [ErrAnswered] after the
// answer, and when the session closes (its cause). An HTTP disconnect cancels only
// stateless requests.
func (x *Request) Context() context.Context {
	x.mu.Lock()
	defer x.mu.Unlock()
	// Created on demand, since many requests need none.
	if x.ctx == nil {
		x.ctx, x.cancel = context.WithCancelCause(context.WithValue(x.session.ctx, requestKey{}, x))
		if x.done.Load() {
			x.cancel(x.cause)
		}
	}
	return x.ctx
}

// Cancelled reports whether the client cancelled the request.
func (x *Request) Cancelled() bool {
	if x = x.current(); !x.answered() {
		return false
	}
	_, is := x.cancellation()
	return is
}

// ClientLeft reports whether the client disconnected before the answer.
func (x *Request) ClientLeft() bool {
	x = x.current()
	x.mu.Lock()
	defer x.mu.Unlock()
	if c, is := errors.AsType[*cancelled](x.cause); is {
		return c.disconnected
	}
	return x.clientLeft
}

// CancelReason returns the reason in notifications/cancelled, or "".
func (x *Request) CancelReason() string {
	reason, _ := x.current().cancellation()
	return reason
}

func (x *Request) cancellation() (reason string, is bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	c, is := errors.AsType[*cancelled](x.cause)
	if is {
		reason = c.reason
	}
	return reason, is
}

// Notify sends a notification before the answer. It returns false once the request was
// answered or cancelled. Above 1 MiB of unsent bytes, a newer notification with the same
// key replaces it. Without a key, it is dropped above a quarter of limits.unsent. If an
// HTTP client accepts no events, it uses the session-wide stream.
func (x *Request) Notify(key, method string, params []byte, edits ...rawjson.Edit) bool {
	_, sent := x.Relay("", key, method, params, edits...)
	return sent
}

// Relay is Notify for a server's notification. It also drops notifications above 1/16 of
// limits.unsent of that server's. The answer follows m; for other requests, use
// [Request.AnswerAfter].
func (x *Request) Relay(server, key, method string, params []byte, edits ...rawjson.Edit) (m jsonrpc.QueuePosition, sent bool) {
	frame := jsonrpc.OneLine(jsonrpc.NotificationFrame(method, params, edits...))
	x = x.current()
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case x.done.Load():
		return m, false
	case key == "" && x.session.dropNotification(server, x.out):
	case key != "" && x.out.unsentBytes() > mergeThreshold:
		m = x.notifyLocked(server, "x"+strconv.FormatUint(x.seq, 10)+"."+key, frame)
	default:
		m = x.notifyLocked(server, "", frame)
	}
	if _, one := x.session.sender.(*byteStream); !one { // other requests have separate streams
		m = jsonrpc.QueuePosition{}
	}
	return m, true
}

func (x *Request) notifyLocked(server, key string, frame []byte) jsonrpc.QueuePosition {
	m := x.out.sendLow(server, key, frame)
	x.addPredecessorLocked(m)
	return m
}

func (x *Request) addPredecessorLocked(m jsonrpc.QueuePosition) {
	if !m.IsBlocked() {
		return
	}
	for i := range x.predecessors {
		if x.predecessors[i].Lane() == m.Lane() {
			x.predecessors[i] = m
			return
		}
	}
	x.predecessors = append(x.predecessors, m)
}

// AnswerAfter makes the answer follow another request's notification that may concern
// this one.
func (x *Request) AnswerAfter(m jsonrpc.QueuePosition) {
	if n, ok := x.out.(*nestedStream); ok {
		n.outer.AnswerAfter(m)
		return
	}
	x = x.current()
	x.mu.Lock()
	defer x.mu.Unlock()
	x.addPredecessorLocked(m)
}

// UnsentBytes returns the unsent bytes on the request's stream.
func (x *Request) UnsentBytes() int64 { return x.current().out.unsentBytes() }

// NotifyLatest is Notify for state: it replaces an unsent one with the same key.
func (x *Request) NotifyLatest(key, method string, params []byte, edits ...rawjson.Edit) {
	frame := jsonrpc.OneLine(jsonrpc.NotificationFrame(method, params, edits...))
	x = x.current()
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.done.Load() {
		x.notifyLocked("", "x"+strconv.FormatUint(x.seq, 10)+"."+key, frame)
	}
}

// Ask sends a request to the client on this request's stream and waits for the answer. If
// ctx or x ends first, it sends notifications/cancelled and returns the cause.
//
// A stateless client gets it as the answer to its request. Its next request replaces x;
// see [Request.CanAsk]. The reply has no error object. [ErrNoRoom] means that too many
// calls are parked.
func (x *Request) Ask(ctx context.Context, method string, params []byte) (jsonrpc.Reply, error) {
	scope := x.Context()
	if scope.Err() != nil {
		return jsonrpc.Reply{}, context.Cause(scope)
	}
	if x.modern != nil {
		return x.Outer().askStateless(ctx, scope, method, params)
	}
	return x.session.call(ctx, scope, x.ask, x.sendFrame, method, params)
}

func (x *Request) ask(ctx context.Context, frame []byte) error {
	x.mu.Lock()
	err := x.cause
	if !x.done.Load() {
		err = x.out.request(ctx, frame)
	}
	x.mu.Unlock()
	if errors.Is(err, errUseSessionStream) {
		return x.session.sender.request(ctx, frame)
	}
	return err
}

// sendFrame uses the session-wide stream after the answer.
func (x *Request) sendFrame(frame []byte) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.done.Load() {
		x.session.sender.send(frame)
	} else {
		x.out.send(frame)
	}
}
