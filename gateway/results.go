package gateway

import (
	"goblin/gateway/jsonrpc"
	"goblin/gateway/shape"
	"goblin/registry"
	"goblin/registry/rawjson"
)

// truncateResult returns a shortened result, or nil if no limit applies. Scripts get
// complete results.
func (g *Gateway) truncateResult(r *request, server string, result []byte, edits []rawjson.Edit) []byte {
	if r.outer != nil || !CanTruncate(r.Method(), result) {
		return nil
	}
	limit := int64(0) // of Goblin's own tools
	if b := g.Servers.Get(server); b != nil {
		limit = b.Config().MaxResult
	}
	if limit = g.Views.MaxResult(r.Request, limit); limit == 0 {
		return nil
	}
	bound := ResultLimit{Limit: int(limit), Owner: resultOwner(r), Tool: r.target.Listed, Links: r.modern() || r.Session().Protocol() >= "2025-06-18"}
	if e := r.target.Entry; e != nil {
		bound.RequestedBy = RequestedLimit(e.Original)
	}
	return g.results.Truncate(r.Method(), result, edits, bound)
}

func (r *request) repair(server, name string, reply jsonrpc.Reply) []byte {
	w := &r.rewriter
	result, kinds := shape.Repair(shape.Rules{Method: r.Method(), URI: name, AnyStructured: r.modern()}, w.Shape, reply.Result)
	if kinds == 0 {
		return result
	}
	w.Shape = nil // it describes the original bytes
	if b := r.gateway.Servers.Get(server); b != nil {
		for _, text := range kinds.Texts() {
			b.LogRepaired(r.Method(), text)
		}
	}
	return result
}

// resultOwner returns a session, or the profile and project that stateless clients share.
// So no profile can read the results of another.
func resultOwner(r *request) string {
	s := r.Session()
	if s.Stateless() {
		return "profile " + s.Profile() + " project " + s.Location().Folder
	}
	return s.ID()
}

func (g *Gateway) readTruncated(r *request, uri string) {
	r.name, r.server = uri, registry.Local
	if !r.intercept() {
		return
	}
	if result, err := g.results.Read(resultOwner(r), uri); err != nil {
		r.fail(err)
	} else {
		r.reply(result)
	}
}
