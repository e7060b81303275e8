package gateway

import (
	"goblin/gateway/downstream"
	"goblin/gateway/jsonrpc"
	"goblin/gateway/upstream"
	"goblin/registry"
	"goblin/registry/rawjson"
)

// Start is the fast path of requests and acquireConn in calls.go the other one. A check of every
// request belongs into both.
//
// Most requests need no goroutine: their name stands in the table, their server
// is a connected process with a place free, and what it answers is passed on.
// They are sent where the client's messages are read, and answered where the
// server's are, which saves the start of a goroutine, two switches and a context
// for each. All that may have to wait goes to Handle instead.

// asyncMethod describes a method whose requests may run without a goroutine. Their targets are
// listed ones only.
type asyncMethod struct {
	member string
	kind   registry.Kind
	params *rawjson.KeyTree

	name, meta, task int // places of the members, -1 for none
}

var asyncMethods = map[string]*asyncMethod{
	"tools/call":     newAsyncMethod("tools/call", "name", registry.Tool),
	"prompts/get":    newAsyncMethod("prompts/get", "name", registry.Prompt),
	"resources/read": newAsyncMethod("resources/read", "uri", registry.Resource),
}

func newAsyncMethod(method, member string, kind registry.Kind) *asyncMethod {
	t := rawjson.Params(method)
	return &asyncMethod{member, kind, t, t.Place(member), t.Place("_meta"), t.Place("task")}
}

// readParams returns the members of the params that decide about a request.
func (p *asyncMethod) readParams(params []byte) (name, meta []byte, ok bool) {
	var values [8][]byte
	err := p.params.Split(params, values[:])
	return values[p.name], values[p.meta], err == nil && (p.task < 0 || values[p.task] == nil)
}

// maxInline is how large an answer may be, in bytes, that is passed on by the
// read loop itself: larger ones would keep what follows waiting.
const maxInline = 32 << 10

// Start implements [downstream.Starter].
func (g *Gateway) Start(x *downstream.Request, burst *jsonrpc.WriteBatch) bool {
	p := asyncMethods[x.Method()]
	if p == nil || x.Modern() != nil || len(x.Params()) > maxInline {
		return false
	}
	epoch := g.Servers.Epoch()
	raw, meta, ok := p.readParams(x.Params())
	name, isString := rawjson.String(raw)
	if !ok || !isString {
		return false
	}
	seen := g.Views.For(x)
	t, listed := seen.LookupListed(p.kind, name)
	if !listed || t.Entry.TaskOnly {
		return false // lists may have to be waited for, or it is Goblin's own, or has to pass the filters first
	}
	b := g.Servers.Get(t.Server)
	if b == nil || !b.Shared() || meta != nil && !b.Config().ForwardMeta || g.Servers.Epoch() != epoch || epoch%2 != 0 {
		return false // or the target may be one that the config denies by now
	}
	conn, err := b.Ready()
	if err != nil || g.Servers.VerifiesLists() && g.Views.For(x) != seen {
		return false // the target may be older than the list by which the server is ready
	}
	s := &asyncRequest{
		request: request{Request: x, gateway: g, server: t.Server, name: name, target: t},
		method:  p, conn: conn,
	}
	r := &s.request
	edits, err := r.targetEdits(t, raw)
	if err != nil {
		return false
	}
	release := b.TryAcquire(x.Owner())
	if release == nil {
		return false
	}
	u := &r.call
	u.Begin(x, nil, release, edits)
	u.Call.Batch = burst
	u.AttachProgressToken(g.journal, r.server, name, meta, g.calls.LatencyHistory(name))
	if !g.calls.DoAsync(conn, u, s) {
		return false
	}
	x.OnEnd(s)
	return true
}

// asyncRequest is a request that waits for its answer without a goroutine.
type asyncRequest struct {
	request
	method *asyncMethod
	conn   upstream.Conn
}

// RequestEnded implements [downstream.Waiter].
func (s *asyncRequest) RequestEnded(cause error) { s.conn.Cancel(&s.call.Call, cause) }

// CallEnded implements [upstream.Caller].
func (s *asyncRequest) CallEnded(reply jsonrpc.Reply, err error, burst *jsonrpc.WriteBatch) {
	s.gateway.calls.End(&s.call, err == nil)
	if err != nil || reply.Error != nil || len(reply.Result) > maxInline {
		go s.complete(reply, err)
		return
	}
	s.SetBatch(burst)
	s.complete(reply, nil)
}

// complete answers the request.
func (s *asyncRequest) complete(reply jsonrpc.Reply, err error) {
	defer s.Recover()
	g, r := s.gateway, &s.request
	if err != nil {
		r.fail(err)
	} else {
		if reply.Error == nil {
			r.buffer = reply.Buffer // nobody else keeps anything of it
		}
		g.relayReply(r, s.target.Server, s.target.Name, reply)
	}
	if s.method.member == "uri" {
		g.countRead(r, s.target)
	}
	g.record(r, r.Method())
	r.Finish()
}
