package gateway

import (
	"sync"

	"goblin/gateway/downstream"
	"goblin/gateway/jsonrpc"
	"goblin/gateway/upstream"
	"goblin/registry"
	"goblin/registry/rawjson"
)

// Start is the fast path of requests, acquireConn in calls.go the slow one. Add each
// check of requests to both.
//
// Most requests name a listed entry of a connected process with a free slot. They are
// sent on the client's read loop and answered on the server's. That saves a goroutine,
// two switches and a context. Requests that may have to wait go to Handle.

// asyncMethod is a method on the fast path, for listed targets.
type asyncMethod struct {
	member string
	kind   registry.Kind
	params *rawjson.KeyTree

	name, meta, task int // indexes of the members, or -1
}

// asyncMethods is built at first use, not at each start of a command.
var asyncMethods = sync.OnceValue(func() map[string]*asyncMethod {
	return map[string]*asyncMethod{
		"tools/call":     newAsyncMethod("tools/call", "name", registry.Tool),
		"prompts/get":    newAsyncMethod("prompts/get", "name", registry.Prompt),
		"resources/read": newAsyncMethod("resources/read", "uri", registry.Resource),
	}
})

func newAsyncMethod(method, member string, kind registry.Kind) *asyncMethod {
	t := rawjson.Params(method)
	return &asyncMethod{member, kind, t, t.Place(member), t.Place("_meta"), t.Place("task")}
}

func (p *asyncMethod) readParams(params []byte) (raw []byte, name string, meta []byte, ok bool) {
	var values [8][]byte
	if err := p.params.Split(params, values[:]); err != nil || p.task >= 0 && values[p.task] != nil {
		return nil, "", nil, false
	}
	name, ok = rawjson.String(values[p.name])
	return values[p.name], name, values[p.meta], ok
}

// maxInline is the maximum size of messages on the fast path, in bytes. Larger answers
// would delay a read loop.
const maxInline = 32 << 10

// Start implements [downstream.Starter].
func (g *Gateway) Start(x *downstream.Request, burst *jsonrpc.WriteBatch) bool {
	p := asyncMethods()[x.Method()]
	if p == nil || x.Modern() != nil || g.Rules.IsActive() || len(x.Params()) > maxInline {
		return false
	}
	epoch := g.Servers.Epoch()
	raw, name, meta, ok := p.readParams(x.Params())
	if !ok {
		return false
	}
	seen := g.Views.For(x)
	t, listed := seen.LookupListed(p.kind, name)
	if !listed || t.Entry.TaskOnly {
		return false // it may have to wait, or filters apply
	}
	b := g.Servers.Get(t.Server)
	if b == nil || !b.Shared() || meta != nil && !b.Config().ForwardMeta || g.Servers.Epoch() != epoch || epoch%2 != 0 {
		return false // the config may deny it now
	}
	conn, err := b.Ready()
	if err != nil || g.Servers.VerifiesLists() && g.Views.For(x) != seen {
		return false // the server's list may be newer
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
	r.trace(u, b, conn)
	if !g.calls.DoAsync(conn, u, s) {
		return false
	}
	x.OnEnd(s)
	return true
}

// asyncRequest waits without a goroutine.
type asyncRequest struct {
	request
	method *asyncMethod
	conn   upstream.Conn
}

// RequestEnded implements [downstream.Waiter].
func (s *asyncRequest) RequestEnded(cause error) { s.conn.Cancel(&s.call.Call, cause) }

// CallEnded implements [upstream.Caller].
func (s *asyncRequest) CallEnded(reply jsonrpc.Reply, err error, burst *jsonrpc.WriteBatch) {
	s.call.Trace.End(reply, err)
	s.gateway.calls.End(&s.call, err == nil)
	if err != nil || reply.Error != nil || s.gateway.Rules.IsActive() || len(reply.Result) > maxInline {
		go s.complete(reply, err)
		return
	}
	s.SetBatch(burst)
	s.answerSeen = true // a rule that is added now must not block this read loop
	s.complete(reply, nil)
}

func (s *asyncRequest) complete(reply jsonrpc.Reply, err error) {
	defer s.Recover()
	g, r := s.gateway, &s.request
	if err != nil {
		r.fail(err)
	} else {
		if reply.Error == nil {
			r.buffer = reply.Buffer // nothing else refers to it
		}
		g.relayReply(r, s.target.Server, s.target.Name, reply)
	}
	if s.method.member == "uri" {
		g.countRead(r, s.target)
	}
	g.record(r, r.Method())
	r.Finish()
}
