// Package mcpclient is a small MCP client for the UI, scripts and commands.
//
// It owns one connection that carries one message per line, and must not depend on how
// the gateway is reached.
//
// All methods are safe for concurrent use. The gateway never waits for a client: one
// goroutine reads its messages and reports progress. Each request from the gateway has
// its own goroutine, at most 256. Notifications other than progress are dropped.
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
	maxQuestions = 256                    // unanswered at a time
	flushTimeout = 200 * time.Millisecond // for sending the last frames
)

// Names and titles of Goblin's own clients, except the UI.
const (
	CommandName  = "goblin"
	CommandTitle = "Goblin command line"
	ScriptName   = "goblin lua"
)

// IsOwn reports whether name and title belong to one of Goblin's own clients.
func IsOwn(name, title string) bool {
	return name == CommandName && title == CommandTitle || name == ScriptName
}

var (
	// ErrClosed is the error of requests after the session was closed.
	ErrClosed = errors.New("the session with the gateway is closed")
	// ErrLost is the error of requests whose connection broke.
	ErrLost = errors.New("connection to the gateway lost")

	errCancelled = errors.New("the request was cancelled")
)

// AskFunc answers one elicitation/create or sampling/createMessage request. ctx is
// cancelled when the request is cancelled or the session closes. The result is a raw
// object. An error with a method ErrorCode() int is returned with that code, any other
// with -32603.
type AskFunc = func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error)

// Options configures a Client.
type Options struct {
	Name, Title, Version string
	Revision             string  // protocol revision
	MaxMessage           int64   // limit of the gateway for servers, in bytes
	Ask                  AskFunc // nil: declare no elicitation and sampling
	// CheckAlive checks the gateway, or is nil. If it keeps failing, requests fail with
	// its error and the session closes (see [WatchLiveness]).
	CheckAlive func(ctx context.Context) error
	Logger     *slog.Logger // for panics in callbacks; may be nil
	// Notify receives other notifications than progress, in order. It must not block, and
	// may be nil.
	Notify func(method string, params json.RawMessage)
}

// Client is a session with Goblin. It is safe for concurrent use.
type Client struct {
	o     Options
	conn  net.Conn
	out   *jsonrpc.SendQueue
	calls jsonrpc.Pending[*progress]

	loops     sync.WaitGroup
	ctx       context.Context // cancelled when the session closes
	end       context.CancelCauseFunc
	mu        sync.Mutex
	closed    bool // guards asking.Go
	questions map[string]context.CancelCauseFunc
	asking    sync.WaitGroup
}

// Open starts a session on conn and takes ownership of it. ctx only limits the handshake.
func Open(ctx context.Context, conn net.Conn, o Options) (*Client, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	c := &Client{o: o, conn: conn, out: jsonrpc.NewStream(conn), questions: make(map[string]context.CancelCauseFunc)}
	c.ctx, c.end = context.WithCancelCause(context.WithoutCancel(ctx))
	c.loops.Go(func() {
		_ = c.out.Run()
		_ = c.conn.Close() // stops the reader
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
		// No roots: the UI has no directory, so gateway.roots applies.
		can = object{"elicitation": object{"form": object{}, "url": object{}}, "sampling": object{}}
	}
	info := object{"name": c.o.Name, "version": c.o.Version}
	if c.o.Title != "" {
		info["title"] = c.o.Title
	}
	return object{"protocolVersion": c.o.Revision, "clientInfo": info, "capabilities": can}
}

// Done is closed when the session has closed or was lost.
func (c *Client) Done() <-chan struct{} { return c.ctx.Done() }

// Close closes the session and cancels all requests in both directions. It waits for
// them, so an [AskFunc] must not call it. It is idempotent.
func (c *Client) Close() error {
	c.shutdown(ErrClosed)
	c.loops.Wait()
	c.asking.Wait()
	return nil
}

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

// Request sends one MCP request and returns its raw result. params is a raw object or
// empty.
//
// onProgress may be nil. It receives the raw params of each notifications/progress in order,
// never after Request returned, and must not block.
//
// Cancelling ctx cancels the request at the server; its cause is returned. An error
// answer is a *[jsonrpc.Error], an answer over the size limit a *[jsonrpc.TooLongError].
func (c *Client) Request(ctx context.Context, method string, params json.RawMessage, onProgress func(json.RawMessage)) (json.RawMessage, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err := checkParams(params); err != nil {
		return nil, err
	}
	p := &progress{onProgress: onProgress}
	defer p.stop()
	call, err := c.calls.Add(p)
	if err != nil {
		return nil, err
	}
	id := strconv.AppendInt(nil, call.ID, 10)
	if onProgress != nil {
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
	if c.calls.Remove(call.ID) == nil {
		reply, err := (<-call.Done()).Take()
		return result(method, reply, err)
	}
	c.cancel(call.ID, context.Cause(ctx))
	return nil, context.Cause(ctx)
}

// result returns the result of an answer. Tool results that report a failed server become
// errors.
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

// withToken adds a progress token to params and keeps other members of _meta. A _meta
// that is not an object is left for the server to refuse.
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

type progress struct {
	mu         sync.Mutex
	onProgress func(json.RawMessage)
}

func (p *progress) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.onProgress = nil
}

func (c *Client) read() error {
	// Names added by the gateway can lengthen a message.
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
			return fmt.Errorf("invalid message from the gateway: %w", err)
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
	case c.o.Notify != nil:
		defer c.recoverPanic("notification", nil)
		c.o.Notify(m.Method, m.Params)
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
	if p.onProgress != nil {
		defer c.recoverPanic("progress", nil)
		p.onProgress(params)
	}
}

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
		c.out.Send(jsonrpc.Errorf(jsonrpc.CodeInternal, "Too many open requests; the maximum is %d", maxQuestions).Frame(m.ID))
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
		if ctx.Err() == nil {
			c.out.Send(answer)
		}
	})
}

func (c *Client) ask(ctx context.Context, m *jsonrpc.Message) (frame []byte) {
	defer c.recoverPanic("request", func() {
		frame = jsonrpc.Errorf(jsonrpc.CodeInternal, "Internal error: the request was not answered").Frame(m.ID)
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

// recoverPanic logs a panic and then calls then, so that a UI cannot crash the gateway.
func (c *Client) recoverPanic(in string, then func()) {
	if r := recover(); r != nil {
		c.o.Logger.Error("UI panicked", "in", in, "panic", r)
		if then != nil {
			then()
		}
	}
}
