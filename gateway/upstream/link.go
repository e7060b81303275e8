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

	"goblin/gateway/jsonrpc"
	"goblin/gateway/memlimit"
	"goblin/gateway/upstream/timing"
	"goblin/gateway/upstream/wire"
	"goblin/registry/rawjson"
)

// Bounds of a backend's requests that are worked on at once: each may wait for a
// human, and many clients may share the backend.
const (
	maxRequests = 1024
)

// transport hides the differences of the transports. Nothing but answer and shut blocks.
type transport interface {
	// isLocal reports whether each connection has its own process on this machine. Its state and its era belong
	// to that process alone.
	isLocal() bool
	// isLegacyOnly reports whether the transport has no modern era.
	isLegacyOnly() bool
	// request sends the frame of a call. Failures resolve the call.
	request(c *Call, id int64, frame []byte)
	// initialized sends the given frame, which ends the handshake, and starts what has to wait for that.
	initialized(ctx context.Context, frame []byte) error
	// send sends a frame that has no answer.
	send(frame []byte)
	// respond sends the response to a request of the server.
	respond(frame []byte)
	// close ends the transport and returns when all of it is gone. It is called once.
	close()
}

// link is shared by the connections of all transports: it has the table of calls, the
// dispatch of messages that arrive, and the end.
type link struct {
	srv  *Server
	unit atomic.Pointer[string]
	wire transport

	info atomic.Pointer[Info] // set by handshake
	// listener holds the subjects of a modern connection's subscriptions/listen; nil in the
	// other era.
	listener     atomic.Pointer[listener]
	pid          int
	streamOpen   atomic.Bool       // of Streamable HTTP: its stream of notices is open
	listsFetched atomic.Bool       // all its lists have been fetched
	tools        *timing.FetchGate // of its list of tools
	refetchTools chan struct{}     // capacity one: followTools fetches again
	second       bool              // of the modern era, beside one of the legacy era; belongs to the handshake
	kind         string            // name of the transport
	sessionEnded atomic.Bool       // of Streamable HTTP: the server ended the session

	awaitsFirstReply atomic.Bool         // no answer has arrived since the handshake; see IsUnprompted
	pendingNotices   atomic.Int32        // counts notices whose ping is unanswered; see IsUnprompted
	batch            *jsonrpc.WriteBatch // of the read loop; nil where there are several
	framesReceived   atomic.Uint64       // counts frames that arrived
	livenessRequests chan struct{}       // capacity one: a call was not answered in time

	ctx    context.Context // ends with the connection
	cancel context.CancelFunc
	calls  jsonrpc.Pending[*Call]
	expiry timing.Alarm
	// adopted tells once that a unit has taken the connection.
	adopted chan struct{}
	done    chan struct{}
	closed  chan struct{} // everything has ended
	once    sync.Once
	err     error // set before done is closed

	tasks        sync.WaitGroup // goroutines that spawn has started
	mu           sync.Mutex
	ending       bool                   // spawn starts no more
	requests     map[*incoming]struct{} // requests of the backend that are worked on
	requestBytes int                    // bytes of their params
}

// incoming is a request of the backend.
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

// processAttrs returns log attributes of the server's process, nil without one.
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

// sessionEndedError returns the error of a connection whose session the server has ended.
func (l *link) sessionEndedError(cause error) error {
	return l.srv.newError(ConnectionError, "the server has ended the session", cause)
}

func (l *link) Close() {
	l.fail(l.srv.newError(ConnectionError, "the connection was closed", jsonrpc.ErrClosed))
	<-l.closed
}

// fail ends the connection, for the reason given if it is the first one. It
// does not wait.
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

// spawn runs f in a goroutine that Close waits for. It reports false, and
// runs nothing, when the connection has ended.
func (l *link) spawn(f func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ending {
		return false
	}
	l.tasks.Go(f)
	return true
}

// Call implements [Conn].
func (l *link) Call(c *Call) (jsonrpc.Reply, error) {
	if l.info.Load().Era == Modern {
		return l.callModern(c)
	}
	return l.exchange(c)
}

// exchange sends a request once and waits for its answer. It is in two parts
// because most goroutines reach their greatest depth in the first: a stack that
// has to grow for each call costs a fifth of the call.
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

// submit sends the request of a call and starts its time.
func (l *link) submit(c *Call) (*jsonrpc.Call[*Call], error) {
	deadline := l.startTimer(c)
	open, err := l.calls.Add(c)
	switch {
	case errors.Is(err, errSessionClosed): // another request found it out
		return nil, l.sessionEndedError(unsentCause(err))
	case err != nil:
		return nil, err
	}
	l.expiry.Expect(deadline)
	c.id = open.ID
	id := strconv.AppendInt(c.idBuffer[:0], open.ID, 10)
	c.findToken()
	if c.modern {
		l.wire.request(c, open.ID, l.modernFrame(c, id))
	} else {
		l.wire.request(c, open.ID, c.frame(id))
	}
	return open, nil
}

// startTimer starts the timeout of a call and returns its next check.
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

// await waits for the answer to a call, or for its end without one.
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
		// The answer, or the connection's end, came first.
		reply, err = (<-open.Done()).Take()
	}
	return reply, l.callError(c, open.ID, err)
}

// callError returns the error for the caller of a call that ended; err is the error of Pending.
func (l *link) callError(c *Call, id int64, err error) error {
	if !errors.Is(err, errExpired) {
		if e, own := errors.AsType[*Error](err); own && e.Code == ConnectionError && c.Method == toolCall {
			l.invalidateTools() // the server may be another process by now
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

// timeoutError returns the error of a call that timed out.
func (l *link) timeoutError(c *Call) error {
	reason := fmt.Sprintf("no answer to %s within %v", c.Method, c.timer.Limit())
	if c.Timeout <= 0 {
		reason += " (" + limitKey(c.Method) + ")"
	}
	return l.srv.newError(RequestTimeout, reason, context.DeadlineExceeded)
}

// CallAsync implements [Conn].
func (l *link) CallAsync(c *Call, caller Caller) bool {
	if !l.wire.isLocal() || l.info.Load().Era == Modern {
		return false
	}
	c.caller = caller
	deadline := l.startTimer(c)
	var err error
	if c.id, err = l.calls.AddAsync(c); err != nil {
		return false
	}
	l.expiry.Expect(deadline)
	c.findToken()
	l.wire.request(c, c.id, c.frame(strconv.AppendInt(c.idBuffer[:0], c.id, 10)))
	return true
}

// Cancel implements [Conn].
func (l *link) Cancel(c *Call, cause error) {
	if _, open := l.calls.RemoveAsync(c.id); !open {
		return
	}
	l.abandonCall(c, c.id, cause)
	c.caller.CallEnded(jsonrpc.Reply{}, cause, nil)
}

// finish is the end of a call that Start has begun.
func (l *link) finish(c *Call, id int64, reply jsonrpc.Reply, err error, burst *jsonrpc.WriteBatch) {
	if err = l.callError(c, id, err); err != nil {
		reply = jsonrpc.Reply{}
	}
	c.caller.CallEnded(l.stripReply(c, reply), err, burst)
}

// abandonCall ends a call that has no waiting caller any more.
func (l *link) abandonCall(c *Call, id int64, why error) {
	abort := c.end()
	// In the modern era over HTTP the end of the stream says it.
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

// cancelledError returns the error of a call whose context has ended.
func (l *link) cancelledError(ctx context.Context) error {
	if cause := context.Cause(ctx); !errors.Is(cause, context.DeadlineExceeded) {
		return cause
	}
	return l.srv.newError(RequestTimeout, "no answer in time", context.DeadlineExceeded)
}

// Notify implements [Conn].
func (l *link) Notify(method string, params []byte) error {
	select {
	case <-l.done:
		return l.err
	default: // maybe the session is lost; then the next connection gets it
	}
	if l.info.Load().Era == Legacy {
		l.wire.send(jsonrpc.NotificationFrame(method, params))
	}
	return nil
}

// handle takes a frame that arrived; ctx and c belong to the stream of a
// call, else c is nil. It runs on read loops.
func (l *link) handle(ctx context.Context, c *Call, frame []byte) {
	m, err := wire.ParseFrame(frame, l.srv.opt.Limits.Depth)
	l.handleParsed(ctx, c, frame, &m, err)
}

// handleParsed is handle for a frame of which parse made m and err.
func (l *link) handleParsed(ctx context.Context, c *Call, frame []byte, m *jsonrpc.Message, err error) {
	l.framesReceived.Add(1)
	if err != nil && rawjson.IsArray(frame) && rawjson.Valid(frame) == nil {
		for m := range rawjson.Elements(bytes.Clone(frame)) { // a batch, as 2025-03-26 had them
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
	kept := *m // of the copies only this one goes to the heap
	kept.Params = rawjson.Params(m.Method).Clean(m.Shape, m.Params)
	if m.IsRequest() {
		l.serveRequest(ctx, c, &kept)
	} else {
		l.handleNotification(c, &kept)
	}
}

// resolve ends the call that an answer belongs to.
func (l *link) resolve(m *jsonrpc.Message) {
	reply, err := l.parseReply(m)
	id, _ := rawjson.Int(m.ID)
	if c, started := l.calls.RemoveAsync(id); started {
		l.finish(c, id, reply, err, l.batch)
		return
	}
	l.calls.Resolve(m.ID, reply, err)
}

// handleMalformed handles a malformed frame. If it responds to a call, that call fails.
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
	l.calls.Resolve(bad.ID, jsonrpc.Reply{}, l.srv.newError(BadReply, fmt.Sprintf("sent a broken answer: %v", err), err))
}

// handleTooLong handles a frame that was dropped for its size.
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

// tooLongReason words the error for an answer that was too long.
func tooLongReason(e *jsonrpc.TooLongError) string {
	if e.Cause != nil {
		return "its answer was lost: " + e.Error()
	}
	return "sent an answer that is too large: " + e.Error()
}

// serveRequest handles a request of the server.
func (l *link) serveRequest(ctx context.Context, c *Call, m *jsonrpc.Message) {
	if l.info.Load().Era == Modern {
		// There are none any more (2026-07-28, basic, statelessness).
		l.srv.reportSkipped(nil, fmt.Errorf("a request %q over a connection of revision %s", l.srv.quote(m.Method, 60), modernRevision))
		if l.wire.isLocal() {
			l.wire.send(jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "clients of revision %s take no requests", modernRevision).Frame(m.ID))
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
		result, err := l.srv.opt.Handler.HandleRequest(ctx, l.srv, l, c, m.Method, m.Params)
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

// admit counts a request of the backend, for which there is room in memory or not; or
// it says why it is refused.
func (l *link) admit(q *incoming, room bool) (refusal string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case len(l.requests) >= maxRequests:
		return fmt.Sprintf("too many requests at a time; at most %d", maxRequests)
	case !room, l.requestBytes > 0 && l.requestBytes+q.size > l.srv.tune.requestBytes:
		return fmt.Sprintf("too large requests at a time; at most %d MiB together, if there is room", l.srv.tune.requestBytes>>20)
	}
	l.requests[q] = struct{}{}
	l.requestBytes += q.size
	return ""
}

var errCancelled = errors.New("the server has withdrawn its request")

// handleNotification handles a notification.
func (l *link) handleNotification(c *Call, m *jsonrpc.Message) {
	if ls := l.listener.Load(); ls != nil {
		if ls.take(c, m) {
			return
		}
		if c != nil && c.listen != nil {
			c = nil // caused by no call of anybody
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
		return // ids are a matter of this connection
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
		// Belongs to a call that is over.
	default:
		c = nil
		tell()
	}
}

// handleProgress passes progress to its open call. It reports false if the token belongs to no call.
func (l *link) handleProgress(params []byte) bool {
	token := rawjson.Get(params, "progressToken")
	if s, ok := rawjson.String(token); ok {
		token = []byte(s) // some backends turn tokens into strings
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

// reserve counts n bytes of a large object until release, which may be called more than
// once. ok is false if they do not fit.
func (s *Server) reserve(n int) (release func(), ok bool) {
	r := new(memlimit.Reservation)
	r.SetOwner(s.memory)
	return func() { r.Resize(0) }, r.Resize(int64(n))
}

const noMemory = "no room for its answer: too many bytes are held for all clients and servers together"
