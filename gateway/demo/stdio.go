package demo

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/mark3labs/mcp-go/mcp"
)

const (
	maxLine          = 16 << 20
	maxCalls         = 64
	maxSubscriptions = 4096
)

// peer is the one client of a running server: its level, subscriptions, calls and
// transport.
type peer struct {
	srv         *server
	exists      func(uri string) bool
	initialized atomic.Bool
	running     sync.WaitGroup // tool calls and background work

	writing sync.Mutex
	out     *json.Encoder
	fail    context.CancelCauseFunc // with the output's error

	mu    sync.Mutex
	level mcp.LoggingLevel
	subs  map[string]bool
	calls map[string]*call // running tool calls by the text of their id
}

func newPeer() *peer {
	return &peer{level: mcp.LoggingLevelWarning, subs: map[string]bool{}, calls: map[string]*call{}}
}

type call struct {
	cancel    context.CancelFunc
	cancelled atomic.Bool
}

func (p *peer) setLevel(level mcp.LoggingLevel) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.level = level
}

func (p *peer) subscribe(uri string) error {
	if !p.exists(uri) {
		return errNoResource(uri)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.subs) >= maxSubscriptions && !p.subs[uri] {
		return fmt.Errorf("too many subscriptions; the limit is %d", maxSubscriptions)
	}
	p.subs[uri] = true
	return nil
}

func (p *peer) unsubscribe(uri string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.subs, uri)
}

func (p *peer) subscribed() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Keys(p.subs))
}

func (p *peer) notify(method string, params map[string]any) {
	if p.initialized.Load() {
		p.write(mcp.JSONRPCNotification{JSONRPC: mcp.JSONRPC_VERSION, Notification: mcp.Notification{
			Method: method,
			Params: mcp.NotificationParams{AdditionalFields: params},
		}})
	}
}

func (p *peer) listChanged() { p.notify(mcp.MethodNotificationResourcesListChanged, nil) }

func (p *peer) notifyUpdated(uri string) {
	p.mu.Lock()
	wanted := p.subs[uri]
	p.mu.Unlock()
	if wanted {
		p.notify(mcp.MethodNotificationResourceUpdated, map[string]any{"uri": uri})
	}
}

func (p *peer) log(logger, text string) {
	p.mu.Lock()
	level := p.level
	p.mu.Unlock()
	if mcp.LoggingLevelInfo.ShouldSendTo(level) {
		p.notify("notifications/message", map[string]any{"level": "info", "logger": logger, "data": text})
	}
}

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
	ended := make(chan error, 1)
	go func() {
		// When the client closes its side, running calls are cancelled, but their answers
		// are still written.
		requests, end := context.WithCancel(ctx)
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
	case <-ctx.Done(): // a read or write may still be blocked
		err = context.Cause(ctx)
	}
	if asked.Err() != nil { // the error comes from closing in and out
		return nil
	}
	return err
}

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

// dispatch runs tool calls in their own goroutines.
func (p *peer) dispatch(ctx context.Context, line []byte) {
	if len(bytes.TrimSpace(line)) == 0 {
		return
	}
	var msg struct {
		JSONRPC string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Method  string          `json:"method"`
		Result  json.RawMessage `json:"result"`
		Params  json.RawMessage `json:"params"`
	}
	if json.Unmarshal(line, &msg) != nil {
		p.refuse(json.RawMessage("null"), &failure{code: mcp.PARSE_ERROR, message: "Failed to parse message"})
		return
	}
	notification := len(msg.ID) == 0 || string(msg.ID) == "null"
	switch {
	case msg.JSONRPC != mcp.JSONRPC_VERSION:
		if notification {
			msg.ID = json.RawMessage("null")
		}
		p.refuse(msg.ID, &failure{code: mcp.INVALID_REQUEST, message: "Invalid JSON-RPC version"})
	case msg.Method == "notifications/cancelled":
		var params struct {
			RequestID json.RawMessage `json:"requestId"`
		}
		if json.Unmarshal(msg.Params, &params) == nil {
			p.cancel(string(params.RequestID))
		}
	case notification || msg.Result != nil: // this server sends no requests
	case msg.Method == string(mcp.MethodToolsCall):
		p.run(ctx, msg.ID, line)
	default:
		p.answer(ctx, &call{}, msg.ID, msg.Method, line)
	}
}

func (p *peer) run(ctx context.Context, id json.RawMessage, line []byte) {
	c := &call{}
	ctx, c.cancel = context.WithCancel(ctx)
	if err := p.admit(string(id), c); err != nil {
		c.cancel()
		p.refuse(id, &failure{code: mcp.INVALID_REQUEST, message: err.Error()})
		return
	}
	p.running.Go(func() {
		p.answer(ctx, c, id, string(mcp.MethodToolsCall), line)
		p.release(string(id))
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
		return fmt.Errorf("%d tool calls are running; try again later", maxCalls)
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

func (p *peer) answer(ctx context.Context, c *call, id json.RawMessage, method string, line []byte) {
	result, err := p.srv.answer(ctx, method, line)
	switch {
	case c.cancelled.Load(): // a cancelled request gets no response
	case err != nil:
		p.refuse(id, err)
	default:
		p.write(mcp.JSONRPCResponse{JSONRPC: mcp.JSONRPC_VERSION, ID: mcp.NewRequestId(id), Result: result})
	}
}

func (p *peer) refuse(id json.RawMessage, err error) {
	var f *failure
	if !errors.As(err, &f) {
		f = &failure{code: mcp.INTERNAL_ERROR, message: err.Error()}
	}
	p.write(mcp.NewJSONRPCError(mcp.NewRequestId(id), f.code, f.message, f.data))
}

func (p *peer) write(message any) {
	p.writing.Lock()
	defer p.writing.Unlock()
	if err := p.out.Encode(message); err != nil {
		p.fail(err)
	}
}
