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

// lister serves the registry's prepared pages in constant time, without asking servers.
// The before functions return further members, with leading commas.
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
		if cursor == "" && !r.modern() { // others use listens
			g.Notifier.RecordListed(r.Session(), snapshot)
		}
		// Text around the entries, which are not copied.
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
		around = rawjson.Splice(around, r.Envelope(around, nil, nil)...) // additions come first
		at := len(around) - behind
		r.answerParts(slices.Concat([][]byte{around[:at]}, page.Chunks, [][]byte{around[at:]}))
	}
}

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
