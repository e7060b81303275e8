package instance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"sync/atomic"

	"goblin/gateway"
	"goblin/gateway/downstream"
	"goblin/gateway/jsonrpc"
	"goblin/registry"
	"goblin/registry/rawjson"
)

// latestRevision is the revision that a Client asks for.
const latestRevision = "2025-11-25"

// maxAsked bounds the questions that wait for one Client's user.
const maxAsked = 256

// ErrClientClosed is what a Client's requests meet after its end.
var ErrClientClosed = errors.New("the session with the gateway has ended")

var (
	errWithdrawn = errors.New("the question was withdrawn")
	errStopped   = errors.New("the gateway has stopped")
)

// AskFunc answers one request of a server: elicitation/create or
// sampling/createMessage. ctx ends when the question is withdrawn or the
// session ends. The result is a raw object. An error with a method
// Code() int is answered with that code, any other with -32603.
type AskFunc = func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error)

// AnswerError is an error that was answered to a request.
type AnswerError struct {
	code    int
	message string
	data    json.RawMessage
}

// Error is the message as it was answered. It may come from a server.
func (e *AnswerError) Error() string { return e.message }

// Code is the JSON-RPC code.
func (e *AnswerError) Code() int { return e.code }

// Data is the raw value of the error's data, nil for none.
func (e *AnswerError) Data() json.RawMessage { return e.data }

// Client is a client session inside this process, through which a screen
// acts: for the gateway one like any other. Messages stay in memory and are
// not copied on their way to it. All methods may be called from any goroutine.
//
// The gateway never waits for a Client: answers and progress are handed over
// by a goroutine of the session, questions by a goroutine each. Notifications
// other than progress are dropped, as the registry tells the same.
type Client struct {
	instance *Instance
	session  *downstream.Session
	ask      AskFunc
	in       *feed
	ctx      context.Context // ends with the session
	over     chan struct{}   // closed when the session has ended

	last atomic.Int64 // id

	mu     sync.Mutex
	closed bool
	calls  map[int64]*clientCall
	asked  map[string]context.CancelCauseFunc
	asking sync.WaitGroup // grows only while closed is false
}

type clientCall struct {
	id       []byte // raw, also the progress token
	progress func(json.RawMessage)
	done     chan clientAnswer // capacity one

	gate  sync.Mutex // held while progress is handed over
	ended bool
}

type clientAnswer struct {
	result []byte
	err    error
}

// OpenClient opens a session inside this process, with the handshake done. It
// goes on until Close, the end of ctx or the end of Run. name is what the
// session calls itself. Questions of servers go to ask; a nil ask declares that
// there is nobody to ask.
func (i *Instance) OpenClient(ctx context.Context, name string, ask AskFunc) (*Client, error) {
	if !i.enter() {
		return nil, errStopped
	}
	ctx, cancel := context.WithCancel(ctx)
	unhook := context.AfterFunc(i.stopped, cancel)
	c := &Client{
		instance: i, ask: ask, in: newFeed(), over: make(chan struct{}),
		calls: make(map[int64]*clientCall), asked: make(map[string]context.CancelCauseFunc),
	}
	var live context.CancelFunc
	c.ctx, live = context.WithCancel(context.WithoutCancel(ctx))

	opened := make(chan *downstream.Session, 1)
	o := i.sessionOptions()
	o.Closers = []io.Closer{c.in}
	o.Handler = opener{o.Handler, func(s *downstream.Session) { opened <- s }}
	go func() {
		defer i.serving.Done()
		defer cancel()
		defer unhook()
		if err := downstream.ServeStream(ctx, o, gateway.ScreenTransport, c.in, frames{c}); err != nil {
			i.o.Logger.Debug("Session ended", "err", err)
		}
		c.shut(ErrClientClosed)
		i.screens.Delete(c.session)
		live()
		close(c.over)
	}()
	c.session = <-opened
	if err := c.handshake(ctx, name); err != nil {
		return nil, errors.Join(fmt.Errorf("open a session: %w", err), c.Close())
	}
	return c, nil
}

// opener tells the session that a stream became.
type opener struct {
	downstream.Handler
	opened func(*downstream.Session)
}

func (o opener) Opened(s *downstream.Session) {
	o.Handler.Opened(s)
	o.opened(s)
}

func (c *Client) handshake(ctx context.Context, name string) error {
	params := append([]byte(`{"protocolVersion":"`+latestRevision+`","clientInfo":{"name":`), rawjson.Quote(name)...)
	params = append(params, `,"version":`...)
	params = rawjson.AppendString(params, c.instance.o.Version)
	params = append(params, `},"capabilities":`...)
	if c.ask != nil {
		// No roots: a screen is in no folder, so gateway.roots answers.
		params = append(params, `{"elicitation":{"form":{},"url":{}},"sampling":{}}}`...)
	} else {
		params = append(params, `{}}`...)
	}
	if _, err := c.Request(ctx, "initialize", params, nil); err != nil {
		return err
	}
	c.in.push(jsonrpc.Notification("notifications/initialized", nil))
	select {
	case <-c.session.Initialized(): // from now on questions can come
		return nil
	case <-c.over:
		return ErrClientClosed
	}
}

// Screen is where a screen is shown.
type Screen struct {
	Terminal      string // what the terminal calls itself: foreign text
	Width, Height int    // in cells
	Owner         bool   // the host ends with it
}

// Show makes [Instance.Status] tell where the screen is that acts through c. at
// may be called from any goroutine.
func (c *Client) Show(at func() Screen) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed { // or nobody would take it out again
		c.instance.screens.Store(c.session, at)
	}
}

// Session is the session's id, as in the registry's tables.
func (c *Client) Session() string { return c.session.ID() }

// Restart closes a server's connections and opens them anew.
func (c *Client) Restart(server string) error { return c.instance.Restart(server) }

// SetEnabled turns a server on or off, see [Instance.SetEnabled].
func (c *Client) SetEnabled(server string, on bool) error { return c.instance.SetEnabled(server, on) }

// Approve takes tools of a server for good as they were shown, see
// [Instance.Approve].
func (c *Client) Approve(server string, tools []registry.PinnedTool) error {
	what := ApproveArgs{Server: server, Seen: make(map[string]string, len(tools))}
	for i := range tools {
		what.Tools = append(what.Tools, tools[i].Name)
		what.Seen[tools[i].Name] = tools[i].Hash
	}
	_, err := c.instance.Approve(what)
	return err
}

// Close ends the session: requests under way are cancelled and fail, questions
// are withdrawn. It waits for them, so it must not be called by an [AskFunc].
// Later calls do nothing.
func (c *Client) Close() error {
	c.shut(ErrClientClosed)
	c.in.finish()
	<-c.over
	c.asking.Wait()
	return nil
}

// shut lets nothing begin any more and ends what is under way.
func (c *Client) shut(reason error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for n, call := range c.calls {
		delete(c.calls, n)
		c.in.push(cancelled(call.id, reason))
		call.done <- clientAnswer{err: reason}
	}
	for _, cancel := range c.asked {
		cancel(reason)
	}
}

// Request sends one MCP request and returns its raw result. params is a raw
// object, or empty for none. progress may be nil; it gets the raw params of
// each notifications/progress in order, never after Request returned, and must
// not block. The end of ctx cancels the request at the server and is returned.
// An error that was answered is an *[AnswerError].
func (c *Client) Request(ctx context.Context, method string, params json.RawMessage, progress func(json.RawMessage)) (json.RawMessage, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err := checkParams(params); err != nil {
		return nil, err
	}
	n := c.last.Add(1)
	call := &clientCall{id: strconv.AppendInt(nil, n, 10), progress: progress, done: make(chan clientAnswer, 1)}
	frame := call.frame(method, params)
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil, ErrClientClosed
	}
	c.calls[n] = call
	c.in.push(frame)
	c.mu.Unlock()

	select {
	case a := <-call.done:
		call.end() // a session that broke off may still hand over progress
		return a.result, a.err
	case <-ctx.Done():
	}
	if c.take(n) == nil { // the answer won the race
		a := <-call.done
		call.end()
		return a.result, a.err
	}
	call.end()
	err := context.Cause(ctx)
	c.in.push(cancelled(call.id, err))
	return nil, err
}

// checkParams keeps what is no object from breaking the frame around it.
func checkParams(params []byte) error {
	if len(params) == 0 {
		return nil
	}
	if err := rawjson.Valid(params); err != nil {
		return &AnswerError{code: jsonrpc.CodeInvalidParams, message: "Invalid params: " + err.Error()}
	}
	if !rawjson.IsObject(params) {
		return &AnswerError{code: jsonrpc.CodeInvalidParams, message: "Invalid params: they must be an object"}
	}
	return nil
}

// frame is the request in one line, whatever a user typed into params.
func (call *clientCall) frame(method string, params []byte) []byte {
	if len(params) == 0 {
		params = nil
	}
	if call.progress != nil {
		params = withToken(params, call.id)
	}
	return oneLine(jsonrpc.Request(call.id, method, params))
}

// withToken adds a progress token to params and keeps the rest of _meta. A
// _meta that is no object is left for the server to refuse.
func withToken(params, token []byte) []byte {
	if params == nil {
		params = []byte("{}")
	}
	meta := rawjson.Get(params, "_meta")
	switch {
	case meta == nil:
		meta = []byte("{}")
	case !rawjson.IsObject(meta):
		return params
	}
	return rawjson.SetMember(params, "_meta", rawjson.SetMember(meta, "progressToken", token))
}

func cancelled(id []byte, reason error) []byte {
	return jsonrpc.Cancellation(id, reason.Error())
}

// take removes an open call from the table; nil when it is over.
func (c *Client) take(id int64) *clientCall {
	c.mu.Lock()
	defer c.mu.Unlock()
	call := c.calls[id]
	delete(c.calls, id)
	return call
}

// end makes sure that no progress is handed over any more.
func (call *clientCall) end() {
	call.gate.Lock()
	defer call.gate.Unlock()
	call.ended = true
}

// frames is where the session writes. The frames are not used by anybody else,
// so that what is handed over are parts of them.
type frames struct{ *Client }

// WriteFrames implements [jsonrpc.Sink].
func (c frames) WriteFrames(all [][]byte) error {
	for _, f := range all {
		c.handle(f)
	}
	return nil
}

// Write implements io.Writer, for completeness: see [downstream.ServeStream].
func (c frames) Write(frame []byte) (int, error) {
	c.handle(append([]byte(nil), frame...))
	return len(frame), nil
}

// handle takes one message of the gateway.
func (c *Client) handle(frame []byte) {
	m, err := jsonrpc.Parse(frame)
	if err != nil {
		c.instance.o.Logger.Error("Message to a screen is broken", "err", err)
		return
	}
	switch {
	case m.IsResponse():
		c.answered(&m)
	case m.IsRequest():
		c.question(m)
	case m.Method == "notifications/progress":
		c.progressed(m.Params)
	case m.Method == "notifications/cancelled":
		c.mu.Lock()
		cancel := c.asked[jsonrpc.IDString(rawjson.Get(m.Params, "requestId"))]
		c.mu.Unlock()
		if cancel != nil {
			cancel(errWithdrawn)
		}
	}
}

func (c *Client) answered(m *jsonrpc.Message) {
	n, _ := jsonrpc.IDInt(m.ID)
	call := c.take(n)
	if call == nil {
		return
	}
	a := clientAnswer{result: m.Result}
	if m.Error != nil {
		e := jsonrpc.ParseErrorObject(m.Error)
		a.err = &AnswerError{code: e.Code, message: e.Message, data: e.Data}
	}
	call.done <- a
}

func (c *Client) progressed(params []byte) {
	n, ok := jsonrpc.IDInt(rawjson.Get(params, "progressToken"))
	if !ok {
		return
	}
	c.mu.Lock()
	call := c.calls[n]
	c.mu.Unlock()
	if call == nil || call.progress == nil {
		return
	}
	call.gate.Lock()
	defer call.gate.Unlock()
	if call.ended {
		return
	}
	defer c.caught("progress", nil)
	call.progress(params)
}

// question works on a request of the gateway.
func (c *Client) question(m jsonrpc.Message) {
	if m.Method == "ping" {
		c.in.push(jsonrpc.Result(m.ID, []byte("{}")))
		return
	}
	if c.ask == nil {
		c.in.push(jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "Method not found: %s", m.Method).Frame(m.ID))
		return
	}
	ctx, cancel := context.WithCancelCause(c.ctx)
	key := jsonrpc.IDString(m.ID)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || len(c.asked) >= maxAsked {
		cancel(nil)
		c.in.push(jsonrpc.Errorf(jsonrpc.CodeInternal, "Too many questions at a time; at most %d", maxAsked).Frame(m.ID))
		return
	}
	c.asked[key] = cancel
	c.asking.Go(func() {
		answer := c.put(ctx, &m)
		c.mu.Lock()
		delete(c.asked, key)
		c.mu.Unlock()
		if ctx.Err() == nil { // else nobody waits for it
			c.in.push(answer)
		}
		cancel(nil)
	})
}

// put asks the user and makes the answer's frame.
func (c *Client) put(ctx context.Context, m *jsonrpc.Message) (frame []byte) {
	defer c.caught("question", func() {
		frame = jsonrpc.Errorf(jsonrpc.CodeInternal, "Internal error: the question was not answered").Frame(m.ID)
	})
	result, err := c.ask(ctx, m.Method, m.Params)
	if err != nil {
		code := jsonrpc.CodeInternal
		var coded interface{ Code() int }
		if errors.As(err, &coded) {
			code = coded.Code()
		}
		return jsonrpc.Errorf(code, "%s", err).Frame(m.ID)
	}
	if rawjson.Valid(result) != nil || !rawjson.IsObject(result) {
		return jsonrpc.Errorf(jsonrpc.CodeInternal, "The answer is not an object").Frame(m.ID)
	}
	return oneLine(jsonrpc.Result(m.ID, result))
}

// caught keeps a panic of a screen from ending everybody's gateway.
func (c *Client) caught(in string, then func()) {
	if r := recover(); r != nil {
		c.instance.o.Logger.Error("Screen panicked", "in", in, "session", c.session.ID(), "panic", r)
		if then != nil {
			then()
		}
	}
}

// oneLine makes sure that a frame has no line break but its last byte.
func oneLine(frame []byte) []byte {
	rawjson.OneLine(frame[:len(frame)-1])
	return frame
}
