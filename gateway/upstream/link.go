package upstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"goblin/gateway/config"
	"goblin/gateway/jsonrpc"
	"goblin/gateway/memlimit"
	"goblin/gateway/upstream/timing"
	"goblin/gateway/upstream/wire"
	"goblin/registry/rawjson"
)

// maxRequests is the maximum number of a server's open requests. Each may wait for a
// user.
const (
	maxRequests = 1024
)

// transport abstracts over the transports. Only initialized, respond and close may block.
type transport interface {
	// isLocal reports whether each connection has its own local process with its own
	// state and era.
	isLocal() bool
	// isLegacyOnly reports whether the transport lacks the modern era.
	isLegacyOnly() bool
	request(c *Call, id int64, frame []byte)
	// initialized sends the frame that completes the handshake and starts what depends on it.
	initialized(ctx context.Context, frame []byte) error
	send(frame []byte)
	respond(frame []byte)
	// close closes the transport and waits for its goroutines and process. It is called
	// once.
	close()
}

type link struct {
	srv  *Server
	unit atomic.Pointer[string]
	wire transport

	info atomic.Pointer[Info]
	// listener manages the subscriptions/listen of a modern connection, otherwise nil.
	listener     atomic.Pointer[listener]
	pid          int
	streamOpen   atomic.Bool       // the stream for the server's own messages is open
	listsFetched atomic.Bool       // at least once, all of them
	tools        *timing.FetchGate // guards the tool list
	refetchTools chan struct{}     // capacity one: followTools fetches again
	ownTools     atomic.Bool       // its lists are not the catalog, so followTools fetches tools
	follow       sync.Once
	awaited      atomic.Bool // AwaitTools was called
	second       bool        // modern beside a legacy one; used in the handshake
	kind         string
	sessionEnded atomic.Bool

	awaitsFirstReply atomic.Bool         // since the handshake; see IsUnprompted
	pendingNotices   atomic.Int32        // with unanswered pings; see IsUnprompted
	batch            *jsonrpc.WriteBatch // of the read loop; nil if there are several
	framesReceived   atomic.Uint64
	livenessRequests chan struct{} // capacity one: a call timed out

	ctx    context.Context // cancelled when the connection closes
	cancel context.CancelFunc
	calls  jsonrpc.Pending[*Call]
	expiry timing.Alarm
	// adopted signals once that a unit adopted the connection.
	adopted chan struct{}
	done    chan struct{}
	closed  chan struct{}
	once    sync.Once
	err     error // set before done is closed

	tasks        sync.WaitGroup
	mu           sync.Mutex
	ending       bool
	requests     map[*incoming]struct{}
	requestBytes int
}

type incoming struct {
	id     string
	size   int
	cancel context.CancelCauseFunc
}

func newLink(s *Server, unit, kind string) *link {
	ctx, cancel := context.WithCancel(context.Background())
	l := &link{
		srv: s, kind: kind, ctx: ctx, cancel: cancel,
		livenessRequests: make(chan struct{}, 1), adopted: make(chan struct{}, 1), done: make(chan struct{}), closed: make(chan struct{}),
		tools: timing.NewFetchGate(), refetchTools: make(chan struct{}, 1),
		requests: make(map[*incoming]struct{}),
	}
	l.calls.OnDone = func(c *Call, id int64, reply jsonrpc.Reply, err error) { l.finish(c, id, reply, err, nil) }
	l.expiry.OnFire = l.expireCalls
	l.unit.Store(&unit)
	l.info.Store(&Info{Capabilities: []byte("{}")})
	return l
}

func (l *link) Info() Info            { return *l.info.Load() }
func (l *link) Unit() string          { return *l.unit.Load() }
func (l *link) Done() <-chan struct{} { return l.done }

func (l *link) processAttrs() []any {
	if l.pid == 0 {
		return nil
	}
	return []any{"pid", l.pid}
}

func (l *link) Err() error {
	select {
	case <-l.done:
		return l.err
	default:
	}
	if l.sessionEnded.Load() {
		return l.sessionEndedError(errSessionClosed)
	}
	return nil
}

func (l *link) sessionEndedError(cause error) error {
	return l.srv.newError(ConnectionError, "the server lost the session", cause)
}

func (l *link) Close() {
	l.fail(l.srv.newError(ConnectionError, "connection closed", jsonrpc.ErrClosed))
	<-l.closed
}

// fail doesn't wait. The first error is the reason.
func (l *link) fail(err error) {
	l.once.Do(func() {
		l.err = err
		l.cancel()
		l.calls.Close(err)
		l.expiry.Stop()
		close(l.done)
		go func() {
			l.mu.Lock()
			l.ending = true
			l.mu.Unlock()
			l.wire.close()
			l.tasks.Wait()
			close(l.closed)
		}()
	})
}

// spawn runs f, and Close waits for it. It returns false without running f if the
// connection has closed.
func (l *link) spawn(f func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ending {
		return false
	}
	l.tasks.Go(f)
	return true
}

func (l *link) Call(c *Call) (jsonrpc.Reply, error) {
	if l.info.Load().Era == Modern {
		return l.callModern(c)
	}
	return l.exchange(c)
}

// exchange sends a request once and waits for its answer. It is split in two because most
// goroutines reach their maximum depth in the first part. Growing the stack in each call
// would cost a fifth of the call.
func (l *link) exchange(c *Call) (jsonrpc.Reply, error) {
	if c.Context == nil {
		c.Context = context.Background()
	}
	if c.Context.Err() != nil {
		return jsonrpc.Reply{}, l.cancelledError(c.Context)
	}
	open, err := l.submit(c)
	if err != nil {
		return jsonrpc.Reply{}, err
	}
	defer l.calls.Release(open)
	reply, err := l.await(c, open)
	return l.stripReply(c, reply), err
}

func (l *link) submit(c *Call) (*jsonrpc.Call[*Call], error) {
	deadline := l.startTimer(c)
	open, err := l.calls.Add(c)
	switch {
	case errors.Is(err, errSessionClosed): // found by another request
		return nil, l.sessionEndedError(unsentCause(err))
	case err != nil:
		return nil, err
	}
	l.expiry.Expect(deadline)
	c.id.Store(open.ID)
	id := strconv.AppendInt(c.idBuffer[:0], open.ID, 10)
	c.findToken()
	if c.modern {
		l.wire.request(c, open.ID, l.modernFrame(c, id))
	} else {
		l.wire.request(c, open.ID, c.frame(id))
	}
	return open, nil
}

func (l *link) startTimer(c *Call) time.Time {
	limit, silence := c.Timeout, time.Duration(0)
	if limit <= 0 {
		limit = l.srv.limit(c.Method)
	}
	if usual := l.srv.cfg.Timeout; !l.wire.isLocal() && !c.probe && (limit == 0 || limit > usual) {
		silence = usual
	}
	return c.timer.Start(limit, silence, l.srv.tune.maxCallTime)
}

func (l *link) await(c *Call, open *jsonrpc.Call[*Call]) (reply jsonrpc.Reply, err error) {
	select {
	case o := <-open.Done():
		reply, err = o.Take()
	case <-c.Context.Done():
		if l.calls.Remove(open.ID) != nil {
			err = l.cancelledError(c.Context)
			l.abandonCall(c, open.ID, err)
			return jsonrpc.Reply{}, err
		}
		// The answer or the end of the connection came first.
		reply, err = (<-open.Done()).Take()
	}
	return reply, l.callError(c, open.ID, err)
}

func (l *link) callError(c *Call, id int64, err error) error {
	if !errors.Is(err, errExpired) {
		if e, own := errors.AsType[*Error](err); own && e.Code == ConnectionError && c.Method == toolCall {
			l.invalidateTools() // the server may have been replaced
		}
		c.end()
		return err
	}
	err = l.timeoutError(c)
	if !c.probe {
		l.requestLivenessCheck()
	}
	l.abandonCall(c, id, err)
	return err
}

func (l *link) timeoutError(c *Call) error {
	reason := fmt.Sprintf("no answer to %s within %s", c.Method, config.ShortDuration(c.timer.Limit()))
	if c.Timeout <= 0 {
		reason += " (" + limitKey(c.Method) + ")"
	}
	return l.srv.newError(RequestTimeout, reason, context.DeadlineExceeded)
}

func (l *link) CallAsync(c *Call, caller Caller) bool {
	if !l.wire.isLocal() || l.info.Load().Era == Modern {
		return false
	}
	c.caller = caller
	deadline := l.startTimer(c)
	id, err := l.calls.AddAsync(c)
	if err != nil {
		return false
	}
	c.id.Store(id)
	l.expiry.Expect(deadline)
	c.findToken()
	l.wire.request(c, id, c.frame(strconv.AppendInt(c.idBuffer[:0], id, 10)))
	return true
}

func (l *link) Cancel(c *Call, cause error) {
	id := c.id.Load()
	if _, open := l.calls.RemoveAsync(id); !open {
		return
	}
	l.abandonCall(c, id, cause)
	c.caller.CallEnded(jsonrpc.Reply{}, cause, nil)
}

func (l *link) finish(c *Call, id int64, reply jsonrpc.Reply, err error, burst *jsonrpc.WriteBatch) {
	if err = l.callError(c, id, err); err != nil {
		reply = jsonrpc.Reply{}
	}
	c.caller.CallEnded(l.stripReply(c, reply), err, burst)
}

// abandonCall cancels a call without a waiting caller.
func (l *link) abandonCall(c *Call, id int64, why error) {
	abort := c.end()
	// In the modern era over HTTP, closing the stream cancels.
	if !c.handshake && !c.probe && !(c.modern && !l.wire.isLocal()) {
		reason := "cancelled by the client"
		var given interface{ CancelReason() string }
		switch {
		case errors.Is(why, context.DeadlineExceeded):
			reason = "timed out"
		case errors.As(why, &given) && given.CancelReason() != "":
			reason = given.CancelReason()
		}
		l.wire.send(jsonrpc.CancelFrame(strconv.AppendInt(nil, id, 10), reason))
	}
	if abort != nil {
		abort()
	}
}

func (l *link) cancelledError(ctx context.Context) error {
	if cause := context.Cause(ctx); !errors.Is(cause, context.DeadlineExceeded) {
		return cause
	}
	return l.srv.newError(RequestTimeout, "no answer in time", context.DeadlineExceeded)
}

func (l *link) Notify(method string, params []byte) error {
	select {
	case <-l.done:
		return l.err
	default: // if the session is lost, the next connection sends it
	}
	if l.info.Load().Era == Legacy {
		l.wire.send(jsonrpc.NotificationFrame(method, params))
	}
	return nil
}

// handle runs on read loops. ctx and c belong to the stream of a call, otherwise c is nil.
func (l *link) handle(ctx context.Context, c *Call, frame []byte) {
	m, err := wire.ParseFrame(frame, l.srv.opt.Limits.Depth)
	l.handleParsed(ctx, c, frame, &m, err)
}

func (l *link) handleParsed(ctx context.Context, c *Call, frame []byte, m *jsonrpc.Message, err error) {
	l.framesReceived.Add(1)
	if err != nil && rawjson.IsArray(frame) && rawjson.Valid(frame) == nil {
		for m := range rawjson.Elements(bytes.Clone(frame)) { // a batch, as in 2025-03-26
			l.handle(ctx, c, m)
		}
		return
	}
	if err != nil {
		l.handleMalformed(frame, err)
		return
	}
	m.OneLine()
	if m.IsResponse() {
		if l.awaitsFirstReply.Load() {
			l.awaitsFirstReply.Store(false)
		}
		l.resolve(m)
		return
	}
	message := *m // only this copy escapes to the heap
	message.Params = rawjson.Params(m.Method).Clean(m.Shape, m.Params)
	if m.IsRequest() {
		l.serveRequest(ctx, c, &message)
	} else {
		l.handleNotification(c, &message)
	}
}

func (l *link) resolve(m *jsonrpc.Message) {
	reply, err := l.parseReply(m)
	id, _ := rawjson.Int(m.ID)
	if c, started := l.calls.RemoveAsync(id); started {
		l.finish(c, id, reply, err, l.batch)
		return
	}
	l.calls.Resolve(m.ID, reply, err)
}

func (l *link) handleMalformed(frame []byte, err error) {
	var bad *jsonrpc.ParseError
	if !errors.As(err, &bad) || bad.ID == nil {
		l.srv.reportSkipped(frame, err)
		return
	}
	if wire.AsksForAnswer(frame) {
		l.wire.send(bad.Reply().Frame(bad.ID))
		return
	}
	l.srv.reportSkipped(frame, err)
	l.calls.Resolve(bad.ID, jsonrpc.Reply{}, l.srv.newError(BadReply, fmt.Sprintf("sent a malformed answer: %v", err), err))
}

func (l *link) handleTooLong(e *jsonrpc.TooLongError) {
	id := e.ID()
	l.srv.reportSkipped(e.Prefix, e)
	switch {
	case id == nil:
	case wire.AsksForAnswer(e.Prefix):
		l.wire.send(jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "%v", e).Frame(id))
	default:
		l.calls.Resolve(id, jsonrpc.Reply{}, l.srv.newError(BadReply, tooLongReason(e), e))
	}
}

func tooLongReason(e *jsonrpc.TooLongError) string {
	if e.Cause != nil {
		return "its answer was lost: " + e.Error()
	}
	return "sent an answer over the size limit: " + e.Error()
}

func (l *link) serveRequest(ctx context.Context, c *Call, m *jsonrpc.Message) {
	if l.info.Load().Era == Modern {
		// 2026-07-28 has no requests from servers (basic, statelessness).
		l.srv.reportSkipped(nil, fmt.Errorf("request %q, which revision %s does not allow", l.srv.quote(m.Method, 60), modernRevision))
		if l.wire.isLocal() {
			l.wire.send(jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "revision %s allows no requests from servers", modernRevision).Frame(m.ID))
		}
		return
	}
	if m.Method == "ping" {
		l.wire.send(jsonrpc.ResultFrame(m.ID, []byte("{}")))
		return
	}
	q := &incoming{id: jsonrpc.IDString(m.ID), size: len(m.Params) + len(m.ID)}
	ctx, q.cancel = context.WithCancelCause(l.markUnprompted(ctx))
	release, room := l.srv.reserve(q.size)
	end := func() {
		release()
		q.cancel(nil)
		l.mu.Lock()
		defer l.mu.Unlock()
		if _, counted := l.requests[q]; counted {
			delete(l.requests, q)
			l.requestBytes -= q.size
		}
	}
	if why := l.admit(q, room); why != "" {
		end()
		l.wire.send(jsonrpc.Errorf(jsonrpc.CodeInternal, "%s", why).Frame(m.ID))
		return
	}
	if !l.spawn(func() {
		defer end()
		result, err := l.srv.opt.Handler.HandleRequest(jsonrpc.WithServerID(ctx, m.ID), l.srv, l, c, m.Method, m.Params)
		switch {
		case errors.Is(context.Cause(ctx), errCancelled):
			// MCP: a cancelled request gets no answer.
		case err != nil:
			l.wire.respond(err.Frame(m.ID))
		default:
			l.wire.respond(jsonrpc.ResultFrame(m.ID, result))
		}
	}) {
		end()
	}
}

// admit counts a request of the server or returns the reason for refusing it. room is
// false if memory is exhausted.
func (l *link) admit(q *incoming, room bool) (refusal string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case len(l.requests) >= maxRequests:
		return fmt.Sprintf("too many open requests; at most %d", maxRequests)
	case !room, l.requestBytes > 0 && l.requestBytes+q.size > l.srv.tune.requestBytes:
		return fmt.Sprintf("open requests are too large; at most %d MiB in total, memory permitting", l.srv.tune.requestBytes>>20)
	}
	l.requests[q] = struct{}{}
	l.requestBytes += q.size
	return ""
}

var errCancelled = errors.New("the server cancelled its request")

func (l *link) handleNotification(c *Call, m *jsonrpc.Message) {
	if ls := l.listener.Load(); ls != nil {
		if ls.take(c, m) {
			return
		}
		if c != nil && c.listen != nil {
			c = nil // no caller's call caused it
		}
	}
	switch m.Method {
	case "notifications/progress":
		if l.handleProgress(m.Params) {
			return
		}
	case "notifications/cancelled":
		id := jsonrpc.IDString(rawjson.Get(m.Params, "requestId"))
		l.mu.Lock()
		defer l.mu.Unlock()
		for q := range l.requests {
			if q.id == id {
				q.cancel(errCancelled)
			}
		}
		return // ids are local to this connection
	case "notifications/tools/list_changed", "notifications/prompts/list_changed", "notifications/resources/list_changed":
		l.srv.listChanged(l, m.Method)
		return
	}
	tell := func() { l.srv.opt.Handler.HandleNotification(l.srv, l, c, m.Method, m.Params) }
	switch {
	case c == nil:
		tell()
	case c.deliver(tell):
	case m.Method == "notifications/message", m.Method == "notifications/progress":
		// Drop it: its call is over.
	default:
		c = nil
		tell()
	}
}

// handleProgress returns false if no call has the token.
func (l *link) handleProgress(params []byte) bool {
	token := rawjson.Get(params, "progressToken")
	if s, ok := rawjson.String(token); ok {
		token = []byte(s) // some servers convert tokens to strings
	}
	id, ok := rawjson.Int(token)
	if !ok {
		return false
	}
	c, ok := l.calls.Lookup(id)
	if !ok {
		return false
	}
	c.timer.Extend()
	if c.Progress != nil {
		c.deliver(func() { c.Progress(params) })
	}
	return true
}

// reserve reserves n bytes for a large object until release, which is idempotent. ok is
// false if the limit is exceeded.
func (s *Server) reserve(n int) (release func(), ok bool) {
	r := new(memlimit.Reservation)
	r.SetOwner(s.memory)
	return func() { r.Resize(0) }, r.Resize(int64(n))
}

var noMemory = "no memory for its answer: " + memlimit.ErrFull.Error()
