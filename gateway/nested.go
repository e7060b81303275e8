package gateway

import (
	"context"
	"errors"
	"runtime/debug"
	"strconv"
	"time"

	"goblin/gateway/downstream"
	"goblin/gateway/jsonrpc"
	"goblin/registry"
	"goblin/registry/rawjson"
)

var nestedMethods = map[string]method{
	"tools/call":          (*Gateway).callTool,
	"prompts/get":         (*Gateway).getPrompt,
	"resources/read":      (*Gateway).readResource,
	"completion/complete": (*Gateway).complete,
}

// localCall is a client's call of a local tool, whose requests share its client,
// connections and stream. It is the tool's [registry.Request].
type localCall struct {
	gateway *Gateway
	request *request
}

type localCallKey struct{}

// Progress implements [registry.Request] with the client's token.
func (o *localCall) Progress(done, total float64, message string) {
	r := o.request
	token := r.ProgressToken(rawjson.Path(r.Params(), "_meta", "progressToken"))
	if token == nil || len(token) > downstream.MaxToken {
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
	o.gateway.journal.RecordCausedNotification(r.Request, registry.Local, "notifications/progress", r.name, params)
}

// UserWait implements [registry.Request].
func (o *localCall) UserWait() time.Duration { return o.request.call.PromptTime() }

// Client implements [registry.Request].
func (o *localCall) Client() any { return o.request.Owner() }

// Catalog implements [registry.Request].
func (o *localCall) Catalog() *registry.Snapshot { return o.request.view() }

// Ask sends a request for the client whose call of a local tool ctx belongs to (see
// [registry.LocalTool].MakesRequests): tools/call, prompts/get, resources/read or
// completion/complete. It is handled like a client's request. An error answer is an
// *[jsonrpc.Error].
func (g *Gateway) Ask(ctx context.Context, method string, params []byte) (result []byte, err error) {
	o, ok := ctx.Value(localCallKey{}).(*localCall)
	if !ok {
		return nil, errors.New("this request does not belong to a client's call")
	}
	serve, ok := nestedMethods[method]
	if !ok {
		return nil, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "Method not found: %s", method)
	}
	within := rawjson.Checker{Depth: g.o.Config.Gateway.Limits.Depth - 1} // the request adds one level
	if err := within.End(params); err != nil {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "Invalid params: must be an object: %v", err)
	}
	if !rawjson.IsObject(params) {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "Invalid params: must be an object")
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	x := o.request.Nested(ctx, method, params)
	r := &request{Request: &x.Request, gateway: g, outer: o}
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

// serveNested recovers panics, since it runs on the tool's goroutine.
func (g *Gateway) serveNested(serve method, r *request) {
	defer g.record(r, r.Method())
	defer func() {
		if p := recover(); p != nil {
			g.log.Error("handler panicked", "in", "nested request", "method", r.Method(), "panic", p, "stack", string(debug.Stack()))
		}
	}()
	serve(g, r)
}
