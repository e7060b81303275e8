package demo

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

const (
	maxLine          = 16 << 20
	maxCalls         = 64
	maxSubscriptions = 4096
)

// peer is the one client of a running server: its session, as mcp-go sees it,
// and its transport. mcp-go's own stdio session is a global of the process,
// does not track subscriptions and may write a call's progress after its
// response, hence this one.
type peer struct {
	srv         *server.MCPServer
	exists      func(uri string) bool
	initialized atomic.Bool
	notes       chan mcp.JSONRPCNotification // those of mcp-go's own
	running     sync.WaitGroup               // tool calls and what goes on in the background

	writing sync.Mutex
	out     *json.Encoder
	fail    context.CancelCauseFunc // with why the output failed

	mu    sync.Mutex
	level mcp.LoggingLevel
	subs  map[string]bool
	calls map[string]*call // running requests by the text of their id
}

var (
	_ server.SessionWithLogging                  = (*peer)(nil)
	_ server.SessionWithResourceSubscriptionsErr = (*peer)(nil)
)

func newPeer() *peer {
	return &peer{
		notes: make(chan mcp.JSONRPCNotification, 64),
		level: mcp.LoggingLevelWarning,
		subs:  map[string]bool{},
		calls: map[string]*call{},
	}
}

// call is one request being answered.
type call struct {
	cancel    context.CancelFunc
	cancelled atomic.Bool
	missing   string // the URI of a resource that turned out not to exist
}

type callKey struct{}

// rememberMissing is an mcp-go error hook. It notes on the call what mcp-go's
// answer will not say: that the error was about an unknown resource.
func rememberMissing(ctx context.Context, _ any, _ mcp.MCPMethod, message any, err error) {
	if c, ok := ctx.Value(callKey{}).(*call); ok {
		if uri, ok := missing(message, err); ok {
			c.missing = uri
		}
	}
}

// SessionID implements server.ClientSession.
func (p *peer) SessionID() string { return "stdio" }

// Initialize implements server.ClientSession.
func (p *peer) Initialize() { p.initialized.Store(true) }

// Initialized implements server.ClientSession.
func (p *peer) Initialized() bool { return p.initialized.Load() }

// NotificationChannel implements server.ClientSession.
func (p *peer) NotificationChannel() chan<- mcp.JSONRPCNotification { return p.notes }

// SetLogLevel implements server.SessionWithLogging.
func (p *peer) SetLogLevel(level mcp.LoggingLevel) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.level = level
}

// GetLogLevel implements server.SessionWithLogging.
func (p *peer) GetLogLevel() mcp.LoggingLevel {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.level
}

// SubscribeToResource implements server.SessionWithResourceSubscriptions; the
// server prefers SubscribeToResourceErr.
func (p *peer) SubscribeToResource(uri string) { _ = p.SubscribeToResourceErr(uri) }

// SubscribeToResourceErr implements server.SessionWithResourceSubscriptionsErr.
func (p *peer) SubscribeToResourceErr(uri string) error {
	if !p.exists(uri) {
		return errNoResource(uri)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.subs) >= maxSubscriptions && !p.subs[uri] {
		return fmt.Errorf("%d subscriptions are the most this server keeps", maxSubscriptions)
	}
	p.subs[uri] = true
	return nil
}

// UnsubscribeFromResource implements server.SessionWithResourceSubscriptions.
func (p *peer) UnsubscribeFromResource(uri string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.subs, uri)
}

// SubscribedResources implements server.SessionWithResourceSubscriptions.
func (p *peer) SubscribedResources() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Keys(p.subs))
}

// IsSubscribedToResource implements server.SessionWithResourceSubscriptions.
func (p *peer) IsSubscribedToResource(uri string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.subs[uri]
}

func (p *peer) notify(method string, params map[string]any) {
	if p.Initialized() {
		p.write(mcp.JSONRPCNotification{JSONRPC: mcp.JSONRPC_VERSION, Notification: mcp.Notification{
			Method: method,
			Params: mcp.NotificationParams{AdditionalFields: params},
		}})
	}
}

// updated tells the client of a change, if it subscribed to the resource.
func (p *peer) updated(uri string) {
	if p.IsSubscribedToResource(uri) {
		p.notify(mcp.MethodNotificationResourceUpdated, map[string]any{"uri": uri})
	}
}

// log sends a log line that the client sees at level info and below.
func (p *peer) log(logger, text string) {
	if mcp.LoggingLevelInfo.ShouldSendTo(p.GetLogLevel()) {
		p.notify("notifications/message", map[string]any{"level": "info", "logger": logger, "data": text})
	}
}

// serve answers the client until in ends, ctx is done or a side fails.
func (p *peer) serve(ctx context.Context, b backend, in io.Reader, out io.Writer) error {
	asked := ctx
	ctx, p.fail = context.WithCancelCause(ctx)
	defer p.fail(nil)
	p.exists = b.exists
	p.out = json.NewEncoder(out)
	p.out.SetEscapeHTML(false)
	for _, side := range []any{in, out} {
		if closer, ok := side.(io.Closer); ok {
			defer context.AfterFunc(ctx, func() { _ = closer.Close() })()
		}
	}
	if err := b.srv.RegisterSession(ctx, p); err != nil {
		return fmt.Errorf("register session: %w", err)
	}
	go p.relay(ctx)
	ended := make(chan error, 1)
	go func() {
		// When the client is done talking, running calls are cancelled, but what
		// they answer is still written.
		requests, end := context.WithCancel(b.srv.WithContext(ctx, p))
		if b.background != nil {
			p.running.Go(func() { b.background(requests) })
		}
		err := p.read(requests, in)
		end()
		p.running.Wait()
		ended <- err
	}()
	var err error
	select {
	case err = <-ended:
	case <-ctx.Done(): // a read or write may still hang in a client that does nothing
		err = context.Cause(ctx)
	}
	if asked.Err() != nil { // what failed is what was closed for that
		return nil
	}
	return err
}

// relay writes what mcp-go tells by itself.
func (p *peer) relay(ctx context.Context) {
	for {
		select {
		case n := <-p.notes:
			p.write(n)
		case <-ctx.Done():
			return
		}
	}
}

// read dispatches lines until there are no more.
func (p *peer) read(ctx context.Context, in io.Reader) error {
	scanner := bufio.NewScanner(in)
	scanner.Buffer(make([]byte, 0, 64<<10), maxLine)
	for scanner.Scan() {
		p.dispatch(ctx, bytes.Clone(scanner.Bytes()))
	}
	if err := scanner.Err(); err != nil {
		return fmt.Errorf("read: %w", err)
	}
	return nil
}

// dispatch answers one message, tool calls on a goroutine of their own.
func (p *peer) dispatch(ctx context.Context, line []byte) {
	if len(bytes.TrimSpace(line)) == 0 {
		return
	}
	var msg struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params struct {
			RequestID json.RawMessage `json:"requestId"`
		} `json:"params"`
	}
	// What does not parse here is answered by mcp-go.
	_ = json.Unmarshal(line, &msg)
	switch msg.Method {
	case "notifications/cancelled":
		p.cancel(string(msg.Params.RequestID))
		return
	case "server/discover", "subscriptions/listen":
		p.refuse(msg.ID, mcp.METHOD_NOT_FOUND, "method "+msg.Method+" is not served here")
		return
	}

	c := &call{}
	ctx = context.WithValue(ctx, callKey{}, c)
	if msg.Method != string(mcp.MethodToolsCall) || len(msg.ID) == 0 {
		p.answer(ctx, c, line)
		return
	}
	ctx, c.cancel = context.WithCancel(ctx)
	if err := p.admit(string(msg.ID), c); err != nil {
		c.cancel()
		p.refuse(msg.ID, mcp.INVALID_REQUEST, err.Error())
		return
	}
	p.running.Go(func() {
		p.answer(ctx, c, line)
		p.release(string(msg.ID))
		c.cancel()
	})
}

func (p *peer) admit(id string, c *call) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.calls[id] != nil {
		return fmt.Errorf("request id %s is in use", id)
	}
	if len(p.calls) >= maxCalls {
		return fmt.Errorf("%d tool calls are running, try again later", maxCalls)
	}
	p.calls[id] = c
	return nil
}

func (p *peer) release(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.calls, id)
}

func (p *peer) cancel(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.calls[id]; c != nil {
		c.cancelled.Store(true)
		c.cancel()
	}
}

func (p *peer) answer(ctx context.Context, c *call, line []byte) {
	response := p.srv.HandleMessage(ctx, line)
	if response == nil || c.cancelled.Load() { // a cancelled request gets no response
		return
	}
	if failure, ok := response.(mcp.JSONRPCError); ok && c.missing != "" {
		failure.Error.Code = mcp.RESOURCE_NOT_FOUND
		failure.Error.Data = map[string]any{"uri": c.missing}
		response = failure
	}
	p.write(response)
}

func (p *peer) refuse(id json.RawMessage, code int, message string) {
	if len(id) == 0 {
		return
	}
	var v any
	_ = json.Unmarshal(id, &v)
	p.write(mcp.NewJSONRPCError(mcp.NewRequestId(v), code, message, nil))
}

func (p *peer) write(message any) {
	p.writing.Lock()
	defer p.writing.Unlock()
	if err := p.out.Encode(message); err != nil {
		p.fail(err)
	}
}
