package demo

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

const (
	maxLine          = 16 << 20
	maxCalls         = 64
	maxSubscriptions = 4096
	maxNotifications = 1024
)

// peer is the one client of a running server: its session, as mcp-go sees it,
// and its transport. mcp-go's own stdio session is a global of the process,
// does not track subscriptions and may write a call's progress after its
// response, hence this one.
type peer struct {
	srv         *server.MCPServer
	exists      func(uri string) bool
	initialized atomic.Bool

	notes     chan mcp.JSONRPCNotification
	responses chan mcp.JSONRPCMessage
	stopped   <-chan struct{} // closed when nothing will be written any more
	running   sync.WaitGroup  // tool calls and the backend's background

	mu    sync.Mutex
	level mcp.LoggingLevel
	subs  map[string]struct{}
	calls map[string]*call // running requests by the text of their id
	// subsChanged is closed and replaced when subs changes.
	subsChanged chan struct{}
}

var (
	_ server.SessionWithLogging                  = (*peer)(nil)
	_ server.SessionWithResourceSubscriptionsErr = (*peer)(nil)
)

func newPeer() *peer {
	return &peer{
		notes:       make(chan mcp.JSONRPCNotification, maxNotifications),
		responses:   make(chan mcp.JSONRPCMessage, maxCalls),
		level:       mcp.LoggingLevelWarning,
		subs:        map[string]struct{}{},
		calls:       map[string]*call{},
		subsChanged: make(chan struct{}),
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
	if _, ok := p.subs[uri]; ok {
		return nil
	}
	if len(p.subs) >= maxSubscriptions {
		return fmt.Errorf("%d subscriptions are the most this server keeps", maxSubscriptions)
	}
	p.subs[uri] = struct{}{}
	p.signalSubs()
	return nil
}

// UnsubscribeFromResource implements server.SessionWithResourceSubscriptions.
func (p *peer) UnsubscribeFromResource(uri string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, ok := p.subs[uri]; ok {
		delete(p.subs, uri)
		p.signalSubs()
	}
}

// SubscribedResources implements server.SessionWithResourceSubscriptions.
func (p *peer) SubscribedResources() []string {
	uris, _ := p.subscriptions()
	return uris
}

// IsSubscribedToResource implements server.SessionWithResourceSubscriptions.
func (p *peer) IsSubscribedToResource(uri string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, ok := p.subs[uri]
	return ok
}

func (p *peer) signalSubs() {
	close(p.subsChanged)
	p.subsChanged = make(chan struct{})
}

// subscriptions returns what is subscribed to, and a channel that is closed
// when that is no longer true.
func (p *peer) subscriptions() (uris []string, changed <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for uri := range p.subs {
		uris = append(uris, uri)
	}
	return uris, p.subsChanged
}

// notify queues a notification; it is dropped if maxNotifications wait already.
func (p *peer) notify(method string, params map[string]any) {
	if !p.Initialized() {
		return
	}
	n := mcp.JSONRPCNotification{JSONRPC: mcp.JSONRPC_VERSION, Notification: mcp.Notification{
		Method: method,
		Params: mcp.NotificationParams{AdditionalFields: params},
	}}
	select {
	case p.notes <- n:
	default:
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
	err := p.exchange(ctx, b, in, out)
	if ctx.Err() != nil {
		return nil // asked to stop; in and out were closed for that
	}
	return err
}

func (p *peer) exchange(ctx context.Context, b backend, in io.Reader, out io.Writer) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	p.exists, p.stopped = b.exists, ctx.Done()
	defer closeWith(ctx, in)()
	defer closeWith(ctx, out)()
	if err := b.srv.RegisterSession(ctx, p); err != nil {
		return fmt.Errorf("register session: %w", err)
	}
	written := make(chan error, 1)
	go func() {
		written <- p.write(ctx, out)
		stop()
	}()

	// Requests have a context of their own: when the client is done talking,
	// running calls are cancelled, but what was answered is still written.
	requests, end := context.WithCancel(b.srv.WithContext(ctx, p))
	defer end()
	if b.background != nil {
		p.running.Go(func() { b.background(requests) })
	}
	err := p.read(requests, in)
	end()
	p.running.Wait()
	close(p.responses)

	select {
	case failed := <-written:
		return errors.Join(err, failed)
	case <-ctx.Done():
	}
	// Either write just returned and called stop, or it may hang in a client
	// that does not read: then the end of ctx is not made to wait for it.
	select {
	case failed := <-written:
		return errors.Join(err, failed)
	default:
		return err
	}
}

// closeWith closes a side as soon as ctx ends, if it can be closed. The function
// it returns ends the watch, without missing an end that came just before.
func closeWith(ctx context.Context, side any) func() {
	closer, ok := side.(io.Closer)
	if !ok {
		return func() {}
	}
	unwatch := context.AfterFunc(ctx, func() { _ = closer.Close() })
	return func() {
		if unwatch() && ctx.Err() != nil {
			_ = closer.Close()
		}
	}
}

// read dispatches lines until there are no more or ctx ends. The goroutine
// that waits for input ends with the input, see Run.
func (p *peer) read(ctx context.Context, in io.Reader) error {
	lines := make(chan []byte)
	failed := make(chan error, 1)
	go func() {
		scanner := bufio.NewScanner(in)
		scanner.Buffer(make([]byte, 0, 64<<10), maxLine)
		for scanner.Scan() {
			select {
			case lines <- bytes.Clone(scanner.Bytes()):
			case <-ctx.Done():
				return
			}
		}
		failed <- scanner.Err()
	}()
	for {
		select {
		case line := <-lines:
			p.dispatch(ctx, line)
		case err := <-failed:
			if err != nil {
				return fmt.Errorf("read: %w", err)
			}
			return nil
		case <-ctx.Done():
			return nil
		}
	}
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
		p.release(string(msg.ID), c)
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

func (p *peer) release(id string, c *call) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.calls[id] == c {
		delete(p.calls, id)
	}
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
	response := p.handle(ctx, line)
	if response == nil || c.cancelled.Load() { // a cancelled request gets no response
		return
	}
	if failure, ok := response.(mcp.JSONRPCError); ok && c.missing != "" {
		failure.Error.Code = mcp.RESOURCE_NOT_FOUND
		failure.Error.Data = map[string]any{"uri": c.missing}
		response = failure
	}
	p.send(response)
}

// handle lets mcp-go answer; a bug in one handler must not end the server.
func (p *peer) handle(ctx context.Context, line []byte) (response mcp.JSONRPCMessage) {
	defer func() {
		if r := recover(); r != nil {
			var msg struct {
				ID any `json:"id"`
			}
			_ = json.Unmarshal(line, &msg)
			response = mcp.NewJSONRPCError(mcp.NewRequestId(msg.ID), mcp.INTERNAL_ERROR, fmt.Sprint("panic: ", r), nil)
		}
	}()
	return p.srv.HandleMessage(ctx, line)
}

func (p *peer) refuse(id json.RawMessage, code int, message string) {
	if len(id) == 0 {
		return
	}
	var v any
	_ = json.Unmarshal(id, &v)
	p.send(mcp.NewJSONRPCError(mcp.NewRequestId(v), code, message, nil))
}

// send queues a response.
func (p *peer) send(response mcp.JSONRPCMessage) {
	select {
	case p.responses <- response:
	case <-p.stopped:
	}
}

// write is the only writer of out. Notifications that were queued before a
// response go before it.
func (p *peer) write(ctx context.Context, out io.Writer) error {
	buffered := bufio.NewWriterSize(out, 64<<10)
	enc := json.NewEncoder(buffered)
	enc.SetEscapeHTML(false)
	for {
		select {
		case n := <-p.notes:
			if err := enc.Encode(n); err != nil {
				return err
			}
		case r, ok := <-p.responses:
			for len(p.notes) > 0 {
				if err := enc.Encode(<-p.notes); err != nil {
					return err
				}
			}
			if !ok {
				return buffered.Flush()
			}
			if err := enc.Encode(r); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
		if len(p.notes)+len(p.responses) == 0 {
			if err := buffered.Flush(); err != nil {
				return err
			}
		}
	}
}
