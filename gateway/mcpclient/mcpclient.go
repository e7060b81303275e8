// Package mcpclient is a small MCP client for the UI, scripts and commands.
//
// It owns one connection, the handshake on it, and the requests and questions
// under way. It must not know what uses it, nor how the gateway is reached: it is
// given a connection that carries a message a line.
//
// All methods may be called from any goroutine. The gateway never waits for a
// client: one goroutine reads what it sends and hands progress over, questions
// have a goroutine each, at most 256. Notifications other than progress are
// dropped: users of it have other ways to hear of changes.
package mcpclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"time"

	"goblin/gateway/jsonrpc"
	"goblin/registry/rawjson"
)

const (
	maxQuestions = 256                    // that wait for an answer at a time
	flushTimeout = 200 * time.Millisecond // for the last frames to be taken
)

// Names and titles of Goblin's own clients that are no screens.
const (
	CommandName  = "goblin"
	CommandTitle = "Goblin command line"
	ScriptName   = "goblin lua"
)

// IsOwn reports whether these are the name and title of one of Goblin's own clients.
func IsOwn(name, title string) bool {
	return name == CommandName && title == CommandTitle || name == ScriptName
}

var (
	// ErrClosed is the error of requests after the end of the session.
	ErrClosed = errors.New("the session with the gateway has ended")
	// ErrLost is that of requests whose connection broke.
	ErrLost = errors.New("talk to the gateway")

	errCancelled = errors.New("the question was withdrawn")
)

// AskFunc answers one request of a server: elicitation/create or
// sampling/createMessage. ctx ends when the question is withdrawn or the
// session ends. The result is a raw object. An error with a method
// ErrorCode() int is answered with that code, any other with -32603.
type AskFunc = func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error)

// Options describe the client.
type Options struct {
	Name, Title, Version string
	Revision             string  // of the protocol
	MaxMessage           int64   // MaxMessage is the maximum size of a message that the gateway accepts from its servers, in bytes.
	Ask                  AskFunc // nil declares that there is nobody to ask
	// CheckAlive tells whether the gateway lives, if it is not nil: requests of one that hangs
	// fail with its error, and the session ends ([WatchLiveness]).
	CheckAlive func(ctx context.Context) error
	Logger     *slog.Logger // gets panics of the functions that the client calls; nil: nothing is logged
}

// Client is one session.
type Client struct {
	o     Options
	conn  net.Conn
	out   *jsonrpc.SendQueue
	calls jsonrpc.Pending[*progress]

	loops     sync.WaitGroup  // the reader and the writer
	ctx       context.Context // ends with the session
	end       context.CancelCauseFunc
	mu        sync.Mutex
	closed    bool                               // guards asking.Go
	questions map[string]context.CancelCauseFunc // questions, by id
	asking    sync.WaitGroup
}

// Open begins a session on conn, which belongs to the client from then on. The
// end of ctx ends the handshake only.
func Open(ctx context.Context, conn net.Conn, o Options) (*Client, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	c := &Client{o: o, conn: conn, out: jsonrpc.NewStream(conn), questions: make(map[string]context.CancelCauseFunc)}
	c.ctx, c.end = context.WithCancelCause(context.WithoutCancel(ctx))
	c.loops.Go(func() {
		_ = c.out.Run()
		_ = c.conn.Close() // the reader learns why
	})
	c.loops.Go(func() { c.shutdown(c.read()) })
	if o.CheckAlive != nil {
		c.loops.Go(func() {
			if err := WatchLiveness(c.ctx, func() bool { return c.calls.Len() > 0 }, o.CheckAlive); err != nil {
				c.shutdown(fmt.Errorf("%w: %w", ErrLost, err))
			}
		})
	}
	params, err := json.Marshal(c.hello())
	if err == nil {
		_, err = c.Request(ctx, "initialize", params, nil)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("initialize: %w", err), c.Close())
	}
	c.out.Send(jsonrpc.NotificationFrame("notifications/initialized", nil))
	return c, nil
}

func (c *Client) hello() any {
	type object = map[string]any
	can := object{}
	if c.o.Ask != nil {
		// No roots: a screen is in no folder, so gateway.roots answers.
		can = object{"elicitation": object{"form": object{}, "url": object{}}, "sampling": object{}}
	}
	info := object{"name": c.o.Name, "version": c.o.Version}
	if c.o.Title != "" {
		info["title"] = c.o.Title
	}
	return object{"protocolVersion": c.o.Revision, "clientInfo": info, "capabilities": can}
}

// Close ends the session: requests under way are cancelled and fail, questions
// are withdrawn. It waits for them, so it must not be called by an [AskFunc].
// Later calls do nothing.
func (c *Client) Close() error {
	c.shutdown(ErrClosed)
	c.loops.Wait()
	c.asking.Wait()
	return nil
}

// shutdown rejects new requests, ends those in flight, and closes the connection.
func (c *Client) shutdown(reason error) {
	c.mu.Lock()
	again := c.closed
	c.closed = true
	c.mu.Unlock()
	if again {
		return
	}
	for id := range c.calls.All() {
		c.cancel(id, reason)
	}
	c.calls.Close(reason)
	c.end(reason)
	c.out.Finish()
	_ = c.conn.SetWriteDeadline(time.Now().Add(flushTimeout))
}

// Request sends one MCP request and returns its raw result. params is a raw
// object, or empty for none. tell may be nil; it gets the raw params of each
// notifications/progress in order, never after Request returned, and must not
// block. The end of ctx cancels the request at the server and is returned. An
// error that was answered is a *[jsonrpc.Error], the loss of an answer that is
// too long a *[jsonrpc.TooLongError].
func (c *Client) Request(ctx context.Context, method string, params json.RawMessage, tell func(json.RawMessage)) (json.RawMessage, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err := checkParams(params); err != nil {
		return nil, err
	}
	p := &progress{tell: tell}
	defer p.stop()
	call, err := c.calls.Add(p)
	if err != nil {
		return nil, err
	}
	id := strconv.AppendInt(nil, call.ID, 10)
	if tell != nil {
		params = withToken(params, id)
	}
	if len(params) == 0 {
		params = nil
	}
	c.out.Send(jsonrpc.OneLine(jsonrpc.RequestFrame(id, method, params)))
	select {
	case o := <-call.Done():
		reply, err := o.Take()
		return result(method, reply, err)
	case <-ctx.Done():
	}
	if c.calls.Remove(call.ID) == nil { // the answer won the race
		reply, err := (<-call.Done()).Take()
		return result(method, reply, err)
	}
	c.cancel(call.ID, context.Cause(ctx))
	return nil, context.Cause(ctx)
}

// result takes the result out of an answer. What tells models that a server did not answer
// is an error here.
func result(method string, r jsonrpc.Reply, err error) (json.RawMessage, error) {
	if err == nil && r.Error != nil {
		err = jsonrpc.ParseErrorObject(r.Error)
	}
	if err == nil && method == jsonrpc.MethodToolsCall {
		if e := jsonrpc.ReadToolError(r.Result); e != nil {
			return nil, e
		}
	}
	return r.Result, err
}

// checkParams keeps what is no object from breaking the frame around it.
func checkParams(params []byte) error {
	if len(params) == 0 {
		return nil
	}
	if err := rawjson.Valid(params); err != nil {
		return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "Invalid params: %v", err)
	}
	if !rawjson.IsObject(params) {
		return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "Invalid params: they must be an object")
	}
	return nil
}

// withToken adds a progress token to params and keeps the rest of _meta. A
// _meta that is no object is left for the server to refuse.
func withToken(params, token []byte) []byte {
	if len(params) == 0 {
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

func (c *Client) cancel(id int64, reason error) {
	c.out.Send(jsonrpc.CancelFrame(strconv.AppendInt(nil, id, 10), reason.Error()))
}

// progress hands over the progress of a request until that has returned.
type progress struct {
	mu   sync.Mutex
	tell func(json.RawMessage) // nil: not wanted, or not any more
}

func (p *progress) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tell = nil
}

// read handles what the gateway sends, and returns why that ended.
func (c *Client) read() error {
	// A message may grow by the names that are put into it.
	in := jsonrpc.NewReader(c.conn, 4*c.o.MaxMessage+1<<20)
	for {
		frame, err := in.Read()
		var long *jsonrpc.TooLongError
		switch {
		case errors.As(err, &long):
			c.calls.Resolve(long.ID(), jsonrpc.Reply{}, long)
			continue
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrClosedPipe), errors.Is(err, net.ErrClosed):
			return ErrClosed
		case err != nil:
			return fmt.Errorf("%w: %w", ErrLost, err)
		}
		m, err := jsonrpc.Parse(frame)
		if err != nil {
			return fmt.Errorf("the gateway's answer is broken: %w", err)
		}
		c.handle(m)
	}
}

func (c *Client) handle(m jsonrpc.Message) {
	switch {
	case m.IsResponse():
		c.calls.Resolve(m.ID, jsonrpc.Reply{Result: m.Result, Error: m.Error}, nil)
	case m.IsRequest():
		c.handleRequest(m)
	case m.Method == "notifications/progress":
		c.handleProgress(m.Params)
	case m.Method == "notifications/cancelled":
		c.mu.Lock()
		withdraw := c.questions[jsonrpc.IDString(rawjson.Get(m.Params, "requestId"))]
		c.mu.Unlock()
		if withdraw != nil {
			withdraw(errCancelled)
		}
	}
}

func (c *Client) handleProgress(params []byte) {
	id, _ := rawjson.Int(rawjson.Get(params, "progressToken"))
	p, ok := c.calls.Lookup(id)
	if !ok {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.tell != nil {
		defer c.recoverPanic("progress", nil)
		p.tell(params)
	}
}

// handleRequest handles a request of the gateway.
func (c *Client) handleRequest(m jsonrpc.Message) {
	switch {
	case m.Method == "ping":
		c.out.Send(jsonrpc.ResultFrame(m.ID, []byte("{}")))
		return
	case c.o.Ask == nil:
		c.out.Send(jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "Method not found: %s", m.Method).Frame(m.ID))
		return
	}
	key := jsonrpc.IDString(m.ID)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || len(c.questions) >= maxQuestions {
		c.out.Send(jsonrpc.Errorf(jsonrpc.CodeInternal, "Too many questions at a time; at most %d", maxQuestions).Frame(m.ID))
		return
	}
	ctx, withdraw := context.WithCancelCause(c.ctx)
	c.questions[key] = withdraw
	c.asking.Go(func() {
		defer withdraw(nil)
		answer := c.ask(ctx, &m)
		c.mu.Lock()
		delete(c.questions, key)
		c.mu.Unlock()
		if ctx.Err() == nil { // else nobody waits for it
			c.out.Send(answer)
		}
	})
}

// ask asks the user and makes the answer's frame.
func (c *Client) ask(ctx context.Context, m *jsonrpc.Message) (frame []byte) {
	defer c.recoverPanic("question", func() {
		frame = jsonrpc.Errorf(jsonrpc.CodeInternal, "Internal error: the question was not answered").Frame(m.ID)
	})
	result, err := c.o.Ask(ctx, m.Method, m.Params)
	if err != nil {
		code := jsonrpc.CodeInternal
		var coded interface{ ErrorCode() int }
		if errors.As(err, &coded) {
			code = coded.ErrorCode()
		}
		return jsonrpc.Errorf(code, "%s", err).Frame(m.ID)
	}
	if rawjson.Valid(result) != nil || !rawjson.IsObject(result) {
		return jsonrpc.Errorf(jsonrpc.CodeInternal, "The answer is not an object").Frame(m.ID)
	}
	return jsonrpc.OneLine(jsonrpc.ResultFrame(m.ID, result))
}

// recoverPanic runs then and logs a panic, so that a screen cannot end the gateway.
func (c *Client) recoverPanic(in string, then func()) {
	if r := recover(); r != nil {
		c.o.Logger.Error("Screen panicked", "in", in, "panic", r)
		if then != nil {
			then()
		}
	}
}
