package gateway

import (
	"context"
	"errors"
	"time"

	"goblin/gateway/downstream"
	"goblin/gateway/jsonrpc"
	"goblin/gateway/upstream"
	"goblin/registry"
	"goblin/registry/members"
	"goblin/registry/rawjson"
)

func (g *Gateway) callTool(r *request) {
	r.ignoreTask()
	t, edits, ok := g.route(r, "name", (*registry.Registry).ResolveTool)
	if !ok {
		return
	}
	if err := checkParamHeaders(r, t); err != nil {
		r.fail(err)
		return
	}
	if t.Local != nil {
		if r.taskUse(t) == clientTask {
			r.fail(noTaskSupport(r.name))
			return
		}
		g.callLocal(r, t)
		return
	}
	if r.tasks = r.taskUse(t); r.tasks == clientTask {
		g.createTask(r, t, edits)
		return
	}
	g.forward(r, t, edits)
}

func (g *Gateway) fetchPrompt(r *request) {
	t, edits, ok := g.route(r, "name", (*registry.Registry).ResolvePrompt)
	if !ok {
		return
	}
	g.forward(r, t, edits)
}

func (g *Gateway) readResource(r *request) {
	t, edits, ok := g.route(r, "uri", (*registry.Registry).ResolveResource)
	if !ok {
		return
	}
	if t.Local != nil {
		g.readLocal(r, t)
		return
	}
	g.forward(r, t, edits)
	if !r.parked {
		g.countRead(r, t)
	}
}

// countRead counts a read that a server has answered, or failed to.
func (g *Gateway) countRead(r *request, t registry.Target) {
	mime := ""
	for first := range r.rewriter.shape.Elements(r.rewriter.shape.Get(r.answer, "contents")) {
		mime, _ = rawjson.String(r.rewriter.shape.Get(first, "mimeType"))
		break
	}
	g.metrics.Read(t.Server, mime, r.code == 0)
	if r.code != 0 {
		g.log.Warn("Resource read failed", "server", t.Server, "uri", t.Name, "err", jsonrpc.ParseErrorObject(r.answer).Message)
	}
}

// complete asks the server that owns the reference for values.
func (g *Gateway) complete(r *request) {
	ref := rawjson.Get(r.Params(), "ref")
	kind, _ := rawjson.String(rawjson.Get(ref, "type"))
	member, resolve := "", (*registry.Registry).ResolvePrompt
	switch kind {
	case "ref/prompt":
		member = "name"
	case "ref/resource":
		member, resolve = "uri", (*registry.Registry).ResolveTemplate
	default:
		r.fail(jsonrpc.Errorf(jsonrpc.CodeInvalidParams,
			`Invalid params: member "ref.type" must be "ref/prompt" or "ref/resource"`))
		return
	}
	name, raw, err := stringMember(ref, member)
	if err != nil {
		r.fail(err)
		return
	}
	r.name = name
	t, err := g.find(r.Context(), resolve, name)
	if err != nil {
		r.fail(err)
		return
	}
	if t.Local != nil {
		r.reply([]byte(`{"completion":{"values":[]}}`))
		return
	}
	g.forward(r, t, r.edit(raw, t.Name))
}

// route resolves the name in params.member and makes the edit that turns it
// into the server's own. It answers the request itself when that fails.
func (g *Gateway) route(r *request, member string, resolve resolver) (t registry.Target, edits []rawjson.Edit, ok bool) {
	name, raw, err := stringMember(r.Params(), member)
	if err != nil {
		r.fail(err)
		return t, nil, false
	}
	r.name = name
	if t, err = g.find(r.Context(), resolve, name); err != nil {
		r.fail(err)
		return t, nil, false
	}
	if t.Name != name || escaped(raw) {
		edits = r.edit(raw, t.Name)
	}
	return t, edits, true
}

// forward sends a request to the server that owns its target and answers with
// what comes back.
func (g *Gateway) forward(r *request, t registry.Target, edits []rawjson.Edit) {
	r.server, r.target = t.Server, t
	reply, err := g.passOn(r, edits)
	left := err == nil && reply.Error != nil && jsonrpc.ParseErrorObject(reply.Error).Code == downstream.CodeUnsupportedVersion
	if left || g.rejoined(r, err) {
		reply, err = g.passOn(r, edits) // over another connection: that one has ended
	}
	switch {
	case err != nil:
		r.fail(err)
		return
	case r.parked:
		return
	}
	if reply.Error == nil && r.tasks == noTask && !r.modern() && r.outer == nil {
		r.buffer = reply.Buffer // nobody else keeps anything of it
	}
	g.answer(r, t.Server, t.Name, reply)
}

// Waiting for the connection after one whose session the server has forgotten.
const (
	rejoinLimit = 5 * time.Second
	rejoinLook  = 20 * time.Millisecond
)

// rejoined waits for another connection to the server of a request that it did
// not carry out, as err says; false when there is none soon.
func (g *Gateway) rejoined(r *request, err error) bool {
	if err == nil || !errors.Is(err, upstream.ErrForgotten) || rawjson.Get(r.Exchange.Params(), "requestState") != nil {
		return false
	}
	b := g.server(r.server)
	if b == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(r.Context(), rejoinLimit)
	defer cancel()
	look := time.NewTicker(rejoinLook)
	defer look.Stop()
	for {
		if conn, err := g.conn(ctx, b, r.Session(), r.modern()); err == nil && conn.Err() == nil {
			return true
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return false
		}
	}
}

// answer answers with what came back from a server for what it calls name.
func (g *Gateway) answer(r *request, server, name string, reply jsonrpc.Reply) {
	w := &r.rewriter
	w.registry, w.server, w.shape = g.reg, server, reply.Shape
	if e := reply.Error; e != nil {
		own := jsonrpc.ParseErrorObject(e)
		if hopLocal(own.Code) {
			r.fail(&upstream.Error{Code: upstream.BadReply, Server: server, Reason: "it refused the message itself: " + own.Message})
			return
		}
		if own.Code == codeURLElicitation && r.modern() && r.outer == nil {
			if err := g.demandURLs(r, own.Data); err != nil {
				r.fail(err)
			}
			return
		}
		e = g.fromModern(r, server, name, e)
		g.rememberElicitations(r, server, e)
		e = w.read(members.Fault, e)
		r.refuse(e, w.edits...)
		return
	}
	if !rawjson.IsObject(reply.Result) {
		r.fail(&upstream.Error{Code: upstream.BadReply, Server: server, Reason: "its result is not an object"})
		return
	}
	result := w.read(members.Result(r.Method()), reply.Result)
	r.pass(result, w.edits...)
}

// passOn passes a request on in the way of its era, and waits for the answer.
// r.parked is set when it was answered by what the server asks.
func (g *Gateway) passOn(r *request, edits []rawjson.Edit) (reply jsonrpc.Reply, err error) {
	if r.modern() && holdable[r.Method()] && r.outer == nil {
		reply, r.parked, err = g.callHeld(r, edits)
		return reply, err
	}
	conn, release, err := g.slot(r)
	if err != nil {
		return reply, err
	}
	return g.call(r, r.fly(), conn, release, edits)
}

// fly gives a request a flight of its own, which is part of it for the first.
func (r *request) fly() *flight {
	if r.flight.exchange == nil {
		return &r.flight
	}
	return new(flight)
}

// slot finds the connection for a request and a place in its server's limit,
// which release gives back.
func (g *Gateway) slot(r *request) (conn upstream.Conn, release func(), err error) {
	b := g.server(r.server)
	if b == nil {
		return nil, nil, &upstream.Error{Code: upstream.ConnectionError, Server: r.server, Reason: "it was removed"}
	}
	if r.target.Name != "" && !b.permits(r.target) { // by a config that is newer than the target
		return nil, nil, forbidden(r.target, r.name)
	}
	if conn, err = g.conn(r.Context(), b, r.Session(), r.modern()); err != nil {
		return nil, nil, err
	}
	if r.Method() == "completion/complete" && !conn.Info().Has("completions") {
		return nil, nil, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "Server '%s' offers no completions", r.server)
	}
	if r.modern() && conn.Info().Era == upstream.Legacy {
		g.lendLevel(r, conn)
	}
	release, err = b.Acquire(r.Context(), r.Session())
	return conn, release, err
}

// call sends a request over a connection and waits for the answer. What the
// call needs besides is set in f.
func (g *Gateway) call(r *request, f *flight, conn upstream.Conn, release func(), edits []rawjson.Edit) (jsonrpc.Reply, error) {
	f.exchange, f.release, r.era = r.Exchange, release, conn.Info().Era
	if f.outer = r.outer; f.outer != nil {
		f.held = f.outer.held
	}
	defer f.land()
	f.call.Context, f.call.Cause = r.Context(), f
	f.call.Method, f.call.Params, f.call.Edits = r.Method(), r.Params(), edits
	g.trackProgress(r, &f.call, rawjson.Path(r.Params(), "_meta", "progressToken"))
	g.stampModern(r, conn, &f.call)
	g.flights.add(conn, f)
	reply, err := g.perform(r, conn, f)
	g.flights.remove(f, err == nil)
	return reply, err
}

// maxToken bounds the progress tokens of clients, in bytes. Each progress repeats
// its token on the read loop of a server that others use too, so those who choose
// longer ones hear of none.
const maxToken = 1 << 10

// trackProgress gives a request's progress token, nil for none, to the call,
// which replaces it by one of its own, and restores value and type on the way
// back.
func (g *Gateway) trackProgress(r *request, c *upstream.Call, token []byte) {
	if token == nil {
		return
	}
	c.Token = rawjson.Replace(r.Params(), token, nil)
	if r.outer != nil || len(token) > maxToken { // that its time is extended is all it is good for
		c.Progress = func([]byte) {}
		return
	}
	key := "progress:" + string(token)
	c.Progress = func(params []byte) {
		params = unrelated(params)
		own := rawjson.Get(params, "progressToken")
		if own == nil {
			return
		}
		r.Relay(r.server, key, "notifications/progress", params, rawjson.Replace(params, own, token))
		g.journal.Notification(registry.ToClient, r.Session(), r.server, "notifications/progress", r.name, params)
	}
}
