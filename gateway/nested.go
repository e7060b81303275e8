package gateway

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"goblin/gateway/downstream"
	"goblin/gateway/jsonrpc"
	"goblin/registry"
	"goblin/registry/rawjson"
)

// nestable are the requests that a local tool may make of its own.
var nestable = map[string]method{
	"tools/call":          (*Gateway).callTool,
	"prompts/get":         (*Gateway).fetchPrompt,
	"resources/read":      (*Gateway).readResource,
	"completion/complete": (*Gateway).complete,
}

// outer is a client's call of a local tool, as the requests that the tool makes
// of its own see it: they have its client, its session's connections and its
// stream. It is the [registry.Request] of the tool.
type outer struct {
	gateway *Gateway
	request *request
	held    *held // of a stateless client, which may come back for it; else nil

	mu     sync.Mutex
	asking int           // questions that people think about now
	since  time.Time     // of the first of them
	waited time.Duration // for those before
}

type outerKey struct{}

// within is the context for the handler of a local tool.
func (o *outer) within(ctx context.Context) context.Context {
	return registry.WithRequest(context.WithValue(ctx, outerKey{}, o), o)
}

// now is the request that waits for the call now, or did last.
func (o *outer) now() *request {
	if o.held != nil {
		return o.held.request()
	}
	return o.request
}

// at is its exchange.
func (o *outer) at() *downstream.Exchange { return o.now().Exchange }

// Progress implements [registry.Request], by the client's own token.
func (o *outer) Progress(done, total float64, message string) {
	r := o.now()
	token := rawjson.Path(r.Params(), "_meta", "progressToken")
	if token == nil || len(token) > maxToken {
		return
	}
	params := append([]byte(`{"progressToken":`), token...)
	params = append(params, `,"progress":`...)
	params = strconv.AppendFloat(params, done, 'f', -1, 64)
	if total > 0 {
		params = append(params, `,"total":`...)
		params = strconv.AppendFloat(params, total, 'f', -1, 64)
	}
	if message != "" {
		params = append(params, `,"message":`...)
		params = rawjson.AppendString(params, message)
	}
	params = append(params, '}')
	r.Notify("progress:"+string(token), "notifications/progress", params)
	o.gateway.journal.Notification(registry.ToClient, r.Session(), registry.Local, "notifications/progress", r.name, params)
}

// Waited implements [registry.Request].
func (o *outer) Waited() time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.asking > 0 {
		return o.waited + time.Since(o.since)
	}
	return o.waited
}

// Client implements [registry.Request].
func (o *outer) Client() string { return o.now().Session().ID() }

// pause notes that people are asked, until as many calls of resume.
func (o *outer) pause() {
	if o == nil {
		return
	}
	o.now().flight.asked.Store(true)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.asking++; o.asking == 1 {
		o.since = time.Now()
	}
}

func (o *outer) resume() {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.asking--; o.asking == 0 {
		o.waited += time.Since(o.since)
	}
}

// Ask makes a request in the name of the client whose call of a local tool ctx
// belongs to (see [registry.LocalTool].Asks): tools/call, prompts/get,
// resources/read or completion/complete, with params, an object, as a client
// sends them. It goes the way of every request: servers' questions reach the
// client, and metrics and journals tell of it. An error that was answered is a
// *[jsonrpc.Error].
func (g *Gateway) Ask(ctx context.Context, method string, params []byte) (result []byte, err error) {
	o, ok := ctx.Value(outerKey{}).(*outer)
	if !ok {
		return nil, errors.New("no client made the call that this request belongs to")
	}
	serve, ok := nestable[method]
	if !ok {
		return nil, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "Method not found: %s", method)
	}
	within := rawjson.Check{Depth: g.o.Config.Gateway.Limits.Depth - 1} // the request is an object around them
	if err := within.End(params); err != nil {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "Invalid params: they must be an object: %v", err)
	}
	if !rawjson.IsObject(params) {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "Invalid params: they must be an object")
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	x := o.at().Nested(ctx, method, withProgress(params), o.at)
	r := &request{Exchange: &x.Exchange, gateway: g, client: g.client(x.Session()), outer: o}
	if r.modern() {
		r.stripped = x.Params()
	}
	g.serveNested(serve, r)
	switch reply := x.Answer(); {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case reply.Error != nil:
		return nil, jsonrpc.ParseErrorObject(reply.Error)
	case reply.Result != nil:
		return reply.Result, nil
	}
	return nil, jsonrpc.Errorf(jsonrpc.CodeInternal, "Internal error: the request was not answered")
}

// serveNested answers a nested request, whose goroutine is the tool's: what
// panics here must not end the process there.
func (g *Gateway) serveNested(serve method, r *request) {
	defer g.record(r, r.Method())
	defer func() {
		if p := recover(); p != nil {
			g.log.Error("handler panicked", "in", "nested request", "method", r.Method(), "panic", p, "stack", string(debug.Stack()))
		}
	}()
	serve(g, r)
}

// withProgress asks for progress, which extends the time that a server has.
func withProgress(params []byte) []byte {
	meta := rawjson.Get(params, "_meta")
	if !rawjson.IsObject(meta) {
		meta = emptyResult
	}
	return rawjson.SetMember(params, "_meta", rawjson.SetMember(meta, "progressToken", nestedToken))
}

var nestedToken = []byte(`"goblin"`)

// callAsking calls a local tool that makes requests of its own. parked says
// that the request was answered by what a server asks meanwhile.
func (g *Gateway) callAsking(r *request, t *registry.LocalTool, args []byte) (result []byte, parked bool, err error) {
	switch {
	case r.outer != nil:
		return nil, false, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "%s cannot be called from within itself", r.name)
	case !r.modern():
		o := &outer{gateway: g, request: r}
		result, err = t.Call(o.within(r.Context()), args)
		return result, false, err
	}
	h, _, foreign, err := g.resumed(r)
	switch {
	case err != nil:
		return nil, false, err
	case foreign:
		return nil, false, errForeignState
	case h == nil:
		h = g.startLocal(r, t, args)
	}
	reply, parked, err := h.attend(r)
	return reply.Result, parked, err
}

// startLocal begins a call of a local tool that may outlive the request.
func (g *Gateway) startLocal(r *request, t *registry.LocalTool, args []byte) *held {
	h, ctx := g.newHeld(r)
	o := &outer{gateway: g, held: h}
	g.work.Go(func() {
		var reply jsonrpc.Reply
		err := errors.New("the tool failed")
		defer func() {
			if p := recover(); p != nil {
				g.log.Error("handler panicked", "in", "local tool", "panic", p, "stack", string(debug.Stack()))
				err = fmt.Errorf("internal error: the tool failed")
			}
			h.finish(reply, err)
			h.cancel(nil)
		}()
		reply.Result, err = t.Call(o.within(ctx), args)
	})
	return h
}
