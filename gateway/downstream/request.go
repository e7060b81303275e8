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

// errUseSessionStream means that the frame must go to the session-wide stream instead.
var errUseSessionStream = errors.New("no stream of its own")

// stream is a sender that ends with the answer to one request. None of its methods blocks;
// request may fail with errUseSessionStream.
type stream interface {
	sender
	// answer sends the last frame. code is that of the error in it, 0 for a
	// result. burst may be nil.
	// It goes behind what the marks stand for.
	answer(frame []byte, code int, burst *jsonrpc.WriteBatch, after []jsonrpc.QueuePosition)
	// abandon ends the stream without an answer.
	abandon()
}

// Request is one request of a client, until it is answered. What is sent
// through it goes to that request's stream, before the answer.
type Request struct {
	session       *Session
	id            []byte
	key           string // of Session.inFlight
	method        string
	params        []byte
	handlerParams []byte   // what Params returns, if that is not params; set before Handle
	modern        *Modern  // nil up to 2025-11-25
	outer         *Request // of a nested request, else nil
	startTime     time.Time
	seq           uint64
	share         *memoryShare // its memory is counted there; nil for nested requests
	out           stream
	onHandled     func() // called when Handle has returned; may be nil
	turn          *turn  // nil without an order

	writeBatch *jsonrpc.WriteBatch // see SetBatch
	finished   atomic.Bool         // Finish was called, or run has returned
	uncounted  atomic.Bool         // it was removed from the requests in flight

	// Of stateless requests only.
	parked atomic.Pointer[parkedCall] // nil before the first question
	parker Parker                     // may be nil
	state  *requestState              // nil before run

	mu           sync.Mutex
	done         atomic.Bool // changed under mu; answered or cancelled: nothing more is sent
	cause        error       // why ctx ends
	clientLeft   bool        // the client left before the answer
	ctx          context.Context
	cancel       context.CancelCauseFunc
	waiter       Waiter                  // see OnEnd
	predecessors []jsonrpc.QueuePosition // frames that the answer must follow
	concluded    bool                    // the answer is known: the client is asked nothing more
}

// turn is the position of a request among those with the same order key.
type turn struct {
	key      string
	previous <-chan struct{} // closed when the previous request was handled; may be nil
	done     chan struct{}   // closed when this request was handled
}

// addTurnLocked returns the turn of a new request, or nil if its order does not matter.
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

// awaitTurn waits until the previous request of the same order was handled.
func (x *Request) awaitTurn() {
	if x.turn == nil || x.turn.previous == nil {
		return
	}
	select {
	case <-x.turn.previous:
	case <-x.Context().Done():
	}
}

// endTurnLocked lets the next request of the same order run. The caller holds the session's
// mu.
func (x *Request) endTurnLocked() {
	if x.turn == nil {
		return
	}
	if s := x.session; s.turns[x.turn.key] == x.turn.done {
		delete(s.turns, x.turn.key)
	}
	close(x.turn.done)
}

// begin registers a request; modern is what a stateless one says of itself,
// else nil. The error is the answer to a request that may not begin.
// Afterwards x.serve or x.run must be called, once.
func (s *Session) begin(m *jsonrpc.Message, modern *Modern, out stream, of *memoryShare, after func()) (*Request, *jsonrpc.Error) {
	key := jsonrpc.IDString(m.ID)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stateless {
		// Clients that know nothing of each other may choose the same id.
		key = "#" + strconv.FormatUint(s.seq+1, 10)
	}
	if s.closing.Load() {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInternal, "The session is ending")
	}
	if s.inFlight[key] != nil {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "Invalid request: id %s is already in use by a request in flight", truncate(key))
	}
	if s.runningHandlers >= s.opt.Limits.InFlight {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInternal, "Too many requests in flight in this session (limit %d)", s.opt.Limits.InFlight)
	}
	x := &Request{session: s, id: m.ID, key: key, method: m.Method, params: m.Params, modern: modern, startTime: time.Now(), seq: s.seq + 1, out: out, share: of, onHandled: after}
	if !of.addLocked(x) {
		s.opt.Logger.Warn("a request was refused: too much is held for all clients and servers together", "session", s.id, "bytes", len(m.Params))
		return nil, noMemoryError("request")
	}
	if s.handshake.Load() != nil && modern == nil && m.Method != "initialize" && m.Method != "ping" {
		s.markReadyLocked() // a ping may come before the answer to initialize
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

// serve handles the request, without an own goroutine if a Starter takes it.
func (x *Request) serve(burst *jsonrpc.WriteBatch) {
	if x.turn != nil || !x.tryStart(burst) {
		go x.run()
	}
}

// tryStart offers the request to the [Starter] and reports whether it took it.
func (x *Request) tryStart(burst *jsonrpc.WriteBatch) (taken bool) {
	starter := x.session.starter
	if starter == nil {
		return false
	}
	taken = true // unless Start returns and says otherwise
	defer x.Recover()
	return starter.Start(x, burst)
}

// run calls the handler.
func (x *Request) run() {
	if x.modern != nil {
		x.handlerParams = stripEnvelope(x.params, x.method == "tasks/update")
		if x.resume() {
			return // the call that it has come back for finishes it
		}
	}
	defer x.Finish()
	defer x.Recover()
	x.awaitTurn()
	x.session.opt.Handler.Handle(x)
}

// Finish says that nothing more is done for a request that a [Starter] has
// taken. One that has no answer yet is answered with -32603.
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

// removeInFlight removes the request from those in flight, once.
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

// Recover is deferred by whatever works on a request that a [Starter] has
// taken: a panic is logged, and is the end of the request, as it is in Handle.
func (x *Request) Recover() {
	if r := recover(); r != nil {
		s := x.session
		s.opt.Logger.Error("handler panicked", "in", "request", "method", x.method, "session", s.id, "panic", r, "stack", string(debug.Stack()))
		x.Finish()
	}
}

// SetBatch has the answer, which the caller is about to give, sent with a burst.
func (x *Request) SetBatch(burst *jsonrpc.WriteBatch) { x.writeBatch = burst }

// Waiter waits for something without a goroutine.
type Waiter interface {
	// RequestEnded says that the context of the request has ended before its
	// answer, with the cause. It may be called more than once, in any goroutine,
	// and must not block.
	RequestEnded(cause error)
}

// OnEnd has w told when the client does not wait for the answer any more: at once if that is
// so already. It is for handlers that do not look at Context, and called once.
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

// Session is the client that asks.
func (x *Request) Session() *Session { return x.session }

// Outer is the client's own request: x, or the one that a nested x belongs to.
func (x *Request) Outer() *Request {
	if x.outer != nil {
		return x.outer
	}
	return x
}

// A stateless client that is asked something comes back with another request, which
// then stands for the first: ID, Sent, Began, Modern, Client, Can, Cancelled and
// Reason are those of the last that came.

// ID is the request's id as it stood in the frame.
func (x *Request) ID() []byte { return x.current().id }

// Key tells the request from the others of its session.
func (x *Request) Key() string { return x.key }

// Method is the request's method.
func (x *Request) Method() string { return x.method }

// Params is the request's raw params object, nil when absent, without what only a
// stateless request says.
func (x *Request) Params() []byte {
	if x.handlerParams != nil {
		return x.handlerParams
	}
	return x.params
}

// OmitParam leaves a member out of Params. The handler may call it before it shares x.
func (x *Request) OmitParam(member string) {
	x.handlerParams = rawjson.RemoveMember(x.Params(), member)
}

// SetParams gives the request other Params: those of the one that it stands for. The handler
// may call it before it shares x.
func (x *Request) SetParams(params []byte) { x.handlerParams = params }

// OmitForeignMeta leaves what is not the protocol's out of the `_meta` of Params. The handler
// may call it before it shares x.
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

// protocolMeta lists the members of `_meta` without MetaPrefix that the protocol defines.
var protocolMeta = []string{"progressToken", "traceparent", "tracestate", "baggage"}

// SentParams is the params as the client sent them.
func (x *Request) SentParams() []byte { return x.current().params }

// Started is when the request arrived.
func (x *Request) Started() time.Time { return x.current().startTime }

// Modern returns the envelope of a stateless request (2026-07-28); nil for requests of the
// revisions with a handshake.
func (x *Request) Modern() *Modern { return x.current().modern }

// Client returns the client's description of itself: of the request, or of initialize.
func (x *Request) Client() ClientInfo {
	if m := x.Modern(); m != nil {
		return m.Client()
	}
	return x.session.Client()
}

// ClientName returns the name in Client.
func (x *Request) ClientName() string {
	if m := x.Modern(); m != nil {
		return m.name()
	}
	if h := x.session.handshake.Load(); h != nil {
		return h.client.Name
	}
	return ""
}

// HasCapability is [Session.HasCapability] for the capabilities that hold for this request.
func (x *Request) HasCapability(path ...string) bool {
	if m := x.Modern(); m != nil {
		return hasCapability(m.Capabilities, path)
	}
	return x.session.HasCapability(path...)
}

// Context ends when the client cancels the request (cause [ErrCancelled]),
// when the session ends (its cause), and after the answer ([ErrAnswered]).
// Over HTTP a client that hangs up does not end it, unless the request is
// stateless, where that is how it is cancelled.
func (x *Request) Context() context.Context {
	x.mu.Lock()
	defer x.mu.Unlock()
	// Made on demand: many requests are answered without one.
	if x.ctx == nil {
		x.ctx, x.cancel = context.WithCancelCause(context.WithValue(x.session.ctx, requestKey{}, x))
		if x.done.Load() {
			x.cancel(x.cause)
		}
	}
	return x.ctx
}

// Cancelled reports whether the client cancelled the request before it was
// answered.
func (x *Request) Cancelled() bool {
	if x = x.current(); !x.answered() {
		return false
	}
	_, is := x.cancellation()
	return is
}

// ClientLeft reports whether the client left before the answer. It leaves by closing its session
// or the connection of the request.
func (x *Request) ClientLeft() bool {
	x = x.current()
	x.mu.Lock()
	defer x.mu.Unlock()
	if c, is := errors.AsType[*cancelled](x.cause); is {
		return c.disconnected
	}
	return x.clientLeft
}

// CancelReason returns the client's words in notifications/cancelled, "" for none.
func (x *Request) CancelReason() string {
	reason, _ := x.current().cancellation()
	return reason
}

// cancellation reports whether the request was cancelled, with the client's reason.
func (x *Request) cancellation() (reason string, is bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	c, is := errors.AsType[*cancelled](x.cause)
	if is {
		reason = c.reason
	}
	return reason, is
}

// Notify sends a notification on this request's stream; nothing, and false,
// once the request was answered or cancelled. While more than 1 MiB waits for
// the client, a notification with a key may be replaced by a newer one of that
// key; one without is left out while more than a quarter of limits.unsent does.
// Over HTTP, when the client takes no event stream as an answer, it goes to the
// session-wide stream.
func (x *Request) Notify(key, method string, params []byte, edits ...rawjson.Edit) bool {
	_, sent := x.Relay("", key, method, params, edits...)
	return sent
}

// Relay is Notify for what a server says: it also is left out while a sixteenth of
// limits.unsent of that server's notifications wait. The answer goes behind it, and
// so do those of other requests that are given its Mark; see [Request.AnswerAfter].
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
	if _, one := x.session.sender.(*byteStream); !one { // the answers to others have streams of their own
		m = jsonrpc.QueuePosition{}
	}
	return m, true
}

// notifyLocked sends a notification before the answer.
func (x *Request) notifyLocked(server, key string, frame []byte) jsonrpc.QueuePosition {
	m := x.out.sendLow(server, key, frame)
	x.addPredecessorLocked(m)
	return m
}

// addPredecessorLocked makes the answer follow the frame at a position.
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

// AnswerAfter puts the answer behind a notification that another request of the session
// has sent, but that may be this one's.
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

// UnsentBytes is how many bytes wait to go where this request's answer goes.
func (x *Request) UnsentBytes() int64 { return x.current().out.unsentBytes() }

// NotifyLatest is Notify for state: it replaces an earlier notification of the same
// key that still waits.
func (x *Request) NotifyLatest(key, method string, params []byte, edits ...rawjson.Edit) {
	frame := jsonrpc.OneLine(jsonrpc.NotificationFrame(method, params, edits...))
	x = x.current()
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.done.Load() {
		x.notifyLocked("", "x"+strconv.FormatUint(x.seq, 10)+"."+key, frame)
	}
}

// Ask asks the client on this request's stream and waits for the answer,
// for ctx, or for the end of the exchange; in the latter cases the client is
// sent notifications/cancelled and the cause returned.
//
// A stateless client is asked by the answer to its request, and comes back with
// another one, which then waits in the place of the first; see [Request.CanAsk]. The
// result is its answer, and there is never an error object. [ErrNoRoom] says that
// too many calls wait for the client.
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

// ask sends a request unless the exchange is over.
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

// sendFrame sends a frame on the request's stream, or on the session's after the answer.
func (x *Request) sendFrame(frame []byte) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.done.Load() {
		x.session.sender.send(frame)
	} else {
		x.out.send(frame)
	}
}
