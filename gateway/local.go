package gateway

import (
	"context"
	"encoding/base64"

	"goblin/gateway/downstream"
	"goblin/gateway/jsonrpc"
	"goblin/registry"
	"goblin/registry/rawjson"
)

// callLocal runs a tool of Goblin's own.
func (g *Gateway) callLocal(r *request, t registry.Target) {
	r.server = t.Server
	args := rawjson.Get(r.Params(), "arguments")
	if args == nil || string(args) == "null" {
		args = []byte("{}")
	}
	if !rawjson.IsObject(args) {
		r.fail(jsonrpc.Errorf(jsonrpc.CodeInvalidParams, `Invalid params: member "arguments" must be an object`))
		return
	}
	tool := t.Local.Tool
	if tool.Asks && r.outer != nil {
		r.fail(jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "%s cannot be called from within itself", r.name))
		return
	}
	o, ctx := &outer{gateway: g, request: r}, r.Context()
	if tool.Asks {
		state, err := r.State()
		if err == nil && isForeign(state) {
			err = downstream.ErrForeignState
		}
		if err != nil {
			r.fail(err)
			return
		}
		ctx = context.WithValue(ctx, outerKey{}, o)
	}
	result, err := tool.Call(registry.WithRequest(ctx, o), args)
	if err == nil {
		err = r.under.Missing(r.server, jsonrpc.Reply{Result: result})
	}
	if err != nil {
		r.fail(err)
		return
	}
	r.reply(result)
}

// readLocal reads a resource of Goblin's own.
func (g *Gateway) readLocal(r *request, t registry.Target) {
	r.server = t.Server
	resource := t.Local.Resource
	contents, err := resource.Read(r.Context(), t.Name)
	if err != nil {
		r.fail(err)
		return
	}
	result := []byte(`{"contents":[`)
	for i, c := range contents {
		if i > 0 {
			result = append(result, ',')
		}
		result = appendContent(result, c, t.Listed, resource.MIME)
	}
	r.reply(append(result, "]}"...))
}

func appendContent(dst []byte, c registry.Content, uri, mime string) []byte {
	if c.URI != "" {
		uri = c.URI
	}
	if c.MIME != "" {
		mime = c.MIME
	}
	dst = append(dst, `{"uri":`...)
	dst = rawjson.AppendString(dst, uri)
	if mime != "" {
		dst = append(dst, `,"mimeType":`...)
		dst = rawjson.AppendString(dst, mime)
	}
	if c.IsBlob {
		dst = append(dst, `,"blob":"`...)
		dst = base64.StdEncoding.AppendEncode(dst, c.Blob)
		return append(dst, `"}`...)
	}
	dst = append(dst, `,"text":`...)
	dst = rawjson.AppendString(dst, c.Text)
	return append(dst, '}')
}
