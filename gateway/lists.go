package gateway

import (
	"goblin/gateway/jsonrpc"
	"goblin/registry"
	"goblin/registry/rawjson"
)

// lister serves one kind of list from the registry's prepared pages: no
// backend is asked, and the work does not grow with the catalog.
func lister(kind registry.Kind, member string) method {
	open := []byte(`{"` + member + `":[`)
	return func(g *Gateway, r *request) {
		cursor, err := cursorOf(r.Params())
		if err != nil {
			r.fail(err)
			return
		}
		if cursor == "" {
			g.AwaitLists(r.Context())
		}
		snapshot := g.reg.Load()
		page, err := snapshot.Page(kind, cursor)
		if err != nil {
			r.fail(err)
			return
		}
		if cursor == "" && !r.modern() { // stateless clients are told by their listens
			r.client.listed(kind, snapshot.Version(kind))
		}
		size := len(open) + len(page.Next) + 32
		for _, c := range page.Chunks {
			size += len(c)
		}
		result := append(make([]byte, 0, size), open...)
		for _, c := range page.Chunks {
			result = append(result, c...)
		}
		result = append(result, ']')
		if page.Next != "" {
			result = append(result, `,"nextCursor":`...)
			result = rawjson.AppendString(result, page.Next)
		}
		r.reply(append(result, '}'))
	}
}

// cursorOf reads params.cursor; "" and null mean the first page.
func cursorOf(params []byte) (string, error) {
	raw := rawjson.Get(params, "cursor")
	if raw == nil || string(raw) == "null" {
		return "", nil
	}
	cursor, ok := rawjson.String(raw)
	if !ok {
		return "", jsonrpc.Errorf(jsonrpc.CodeInvalidParams, `Invalid params: member "cursor" must be a string`)
	}
	return cursor, nil
}
