package gateway

import (
	"encoding/base64"

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
	var result []byte
	var err error
	if tool.Asks {
		result, r.parked, err = g.callAsking(r, tool, args)
	} else {
		result, err = tool.Call(registry.WithRequest(r.Context(), &outer{gateway: g, request: r}), args)
	}
	switch {
	case err != nil:
		r.fail(err)
	case !r.parked:
		r.reply(result)
	}
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
