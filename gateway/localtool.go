package gateway

import (
	"context"
	"fmt"

	"goblin/gateway/downstream"
	"goblin/gateway/jsonrpc"
	"goblin/registry"
	"goblin/registry/rawjson"
)

func (g *Gateway) callLocal(r *request, t registry.Target) {
	r.server, r.target = t.Server, t
	if !r.intercept() {
		return
	}
	args := rawjson.Get(r.Params(), "arguments")
	if args == nil || string(args) == "null" {
		args = []byte("{}")
	}
	if !rawjson.IsObject(args) {
		r.fail(jsonrpc.Errorf(jsonrpc.CodeInvalidParams, `Invalid params: member "arguments" must be an object`))
		return
	}
	tool := t.Local.Tool
	if tool.MakesRequests && r.outer != nil {
		r.fail(jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "%s cannot be called from within itself", r.name))
		return
	}
	o, ctx := &localCall{gateway: g, request: r}, r.Context()
	if tool.MakesRequests {
		state, err := r.State()
		if err == nil && hasServerState(state) {
			err = downstream.ErrForeignState
		}
		if err != nil {
			r.fail(err)
			return
		}
		ctx = context.WithValue(ctx, localCallKey{}, o)
	}
	result, err := tool.Call(registry.WithRequest(ctx, o), args)
	if err == nil {
		err = r.call.MissingCapability(r.server, jsonrpc.Reply{Result: result})
	}
	if err != nil {
		r.fail(err)
		return
	}
	if short := g.truncateResult(r, t.Server, result, nil); short != nil {
		result = short
	}
	r.reply(result)
}

func (g *Gateway) readLocal(r *request, t registry.Target) {
	r.server = t.Server
	if !r.intercept() {
		return
	}
	resource := t.Local.Resource
	text, err := resource.Read(registry.WithRequest(r.Context(), &localCall{gateway: g, request: r}))
	if err != nil {
		r.fail(fmt.Errorf("read %s: %w", t.Listed, err))
		return
	}
	result := rawjson.AppendString([]byte(`{"contents":[{"uri":`), t.Listed)
	if resource.MIME != "" {
		result = rawjson.AppendString(append(result, `,"mimeType":`...), resource.MIME)
	}
	result = rawjson.AppendString(append(result, `,"text":`...), text)
	r.reply(append(result, "}]}"...))
}
