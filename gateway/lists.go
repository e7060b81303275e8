package gateway

import (
	"slices"
	"strconv"
	"time"

	"goblin/gateway/jsonrpc"
	"goblin/registry"
	"goblin/registry/rawjson"
)

// listTTL is the cache lifetime for stateless clients. Changes are announced.
const listTTL = time.Minute

// lister serves a list from the registry's prepared pages, without asking servers and in
// constant time. The before functions run first. Each returns further members of the
// result, with a leading comma.
func lister(kind registry.Kind, member string, before ...func(g *Gateway, r *request, first bool) ([]byte, error)) method {
	open := []byte(`{"` + member + `":[`)
	return func(g *Gateway, r *request) {
		cursor, err := parseCursor(r.Params())
		if err != nil {
			r.fail(err)
			return
		}
		if cursor == "" {
			ctx, cancel := r.listContext()
			g.Servers.AwaitVisibleLists(ctx, r.view())
			cancel()
		}
		var more []byte
		for _, f := range before {
			if more, err = f(g, r, cursor == ""); err != nil {
				r.fail(err)
				return
			}
		}
		snapshot := g.Views.ListsFor(r.Request)
		turn := snapshot.LegacyPage
		if r.modern() {
			turn = snapshot.Page
		}
		page, err := turn(kind, cursor)
		if err != nil {
			r.fail(err)
			return
		}
		if cursor == "" && !r.modern() { // stateless clients use listens instead
			g.Notifier.RecordListed(r.Session(), snapshot)
		}
		// Build the text around the entries, which are not copied.
		around := append(open[:len(open):len(open)], ']')
		if page.Next != "" {
			around = append(around, `,"nextCursor":`...)
			around = rawjson.AppendString(around, page.Next)
		}
		if len(before) == 0 && r.modern() && len(snapshot.KnownServers(g.Servers.Starting())) == 0 { // the list is complete
			around = append(around, `,"ttlMs":`...)
			around = strconv.AppendInt(around, listTTL.Milliseconds(), 10)
		}
		around = append(append(around, more...), '}')
		behind := len(around) - len(open)
		around = rawjson.Splice(around, r.Envelope(around, nil, nil)...) // its additions come first
		at := len(around) - behind
		r.answerParts(slices.Concat([][]byte{around[:at]}, page.Chunks, [][]byte{around[at:]}))
	}
}

// parseCursor returns params.cursor. "" and null mean the first page.
func parseCursor(params []byte) (string, error) {
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
