package gateway

import (
	"context"
	"errors"
	"strings"
	"time"

	"goblin/gateway/downstream"
	"goblin/gateway/inflight"
	"goblin/gateway/jsonrpc"
	"goblin/gateway/policy"
	"goblin/gateway/serverreq"
	"goblin/gateway/tasks"
	"goblin/gateway/upstream"
	"goblin/gateway/view"
	"goblin/registry"
	"goblin/registry/rawjson"
)

func (g *Gateway) callTool(r *request) {
	wantsTask := rawjson.Get(r.Params(), "task") != nil && tasks.WantsTask(r.Request)
	t, edits, err := r.resolveParam("name", (*registry.Snapshot).ResolveTool)
	passed := err == nil && t.Local != nil && t.Local.Tool.ForwardsCall
	if passed {
		t, edits, err = r.unwrapCallTool()
	}
	if err == nil && t.Entry != nil && rawjson.MayContain(t.Entry.JSON(), headerMark) {
		err = checkHeaders(r.Request, t.Entry.JSON(), !passed)
	}
	if err != nil {
		r.fail(err)
		return
	}
	if t.Local != nil {
		if wantsTask {
			r.fail(tasks.UnsupportedError(r.name))
			return
		}
		g.callLocal(r, t)
		return
	}
	if wantsTask {
		g.createTask(r, t, edits)
		return
	}
	r.taskOnly = t.Entry != nil && t.Entry.TaskOnly && (passed || tasks.NeedsDirectResult(r.Request))
	g.forward(r, t, edits)
}

// unwrapCallTool replaces a call of call_tool by the call in its arguments.
func (r *request) unwrapCallTool() (t registry.Target, edits []rawjson.Edit, err error) {
	r.server = registry.Local
	params, err := NestedParams(r.Params())
	if err == nil {
		r.SetParams(params)
		t, edits, err = r.resolveParam("name", (*registry.Snapshot).ResolveTool)
	}
	if err == nil {
		err = ValidateNested(t, rawjson.Get(params, "arguments"))
	}
	if err == nil {
		return t, edits, nil
	}
	if e := view.ToJSONRPC(err); e.Code == jsonrpc.CodeInvalidParams {
		r.badArguments, err = true, formatError(e)
	}
	return t, nil, err
}

func (g *Gateway) getPrompt(r *request) {
	t, edits, ok := g.route(r, "name", (*registry.Snapshot).ResolvePrompt)
	if !ok {
		return
	}
	g.forward(r, t, edits)
}

func (g *Gateway) readResource(r *request) {
	if uri := rawjson.GetString(r.Params(), "uri"); isResultURI(uri) {
		g.readTruncated(r, uri)
		return
	}
	t, edits, ok := g.route(r, "uri", (*registry.Snapshot).ResolveResource)
	if !ok {
		return
	}
	if t.Local != nil {
		g.readLocal(r, t)
		return
	}
	if g.forward(r, t, edits) {
		g.countRead(r, t)
	}
}

// MayReturn implements [downstream.Parker]. It refuses a returning client whose name is
// no longer known.
func (r *request) MayReturn() bool {
	resolve := (*registry.Snapshot).ResolveTool
	switch r.Method() {
	case "prompts/get":
		resolve = (*registry.Snapshot).ResolvePrompt
	case "resources/read":
		if isResultURI(r.name) {
			return true
		}
		resolve = (*registry.Snapshot).ResolveResource
	}
	_, err := r.gateway.Views.Find(r.Context(), r.Request, resolve, r.name)
	return err == nil || r.locating.Load()
}

func (g *Gateway) countRead(r *request, t registry.Target) {
	mime := ""
	for first := range r.rewriter.Shape.Elements(r.rewriter.Shape.Get(r.answer, "contents")) {
		mime, _ = rawjson.String(r.rewriter.Shape.Get(first, "mimeType"))
		break
	}
	g.metrics.AddRead(t.Server, mime, r.code == 0)
	if r.code != 0 {
		g.log.Warn("resource read failed", "server", t.Server, "uri", t.Name, "err", jsonrpc.ParseErrorObject(r.answer).Message)
	}
}

func (g *Gateway) complete(r *request) {
	ref := rawjson.Get(r.Params(), "ref")
	kind := rawjson.GetString(ref, "type")
	member, resolve := "", (*registry.Snapshot).ResolvePrompt
	switch kind {
	case "ref/prompt":
		member = "name"
	case "ref/resource":
		member, resolve = "uri", (*registry.Snapshot).ResolveTemplate
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
	t, err := r.find(resolve, name)
	if err != nil {
		r.fail(err)
		return
	}
	if t.Local != nil {
		r.reply([]byte(`{"completion":{"values":[]}}`))
		return
	}
	if r.filterMeta(t.Server) {
		raw = rawjson.Path(r.Params(), "ref", member)
	}
	edits, err := policy.FillCompletion(t, r.Params(), r.edit(raw, t.Name))
	if err != nil {
		r.fail(err)
		return
	}
	g.forward(r, t, edits)
}

func (g *Gateway) route(r *request, member string, resolve view.Resolver) (t registry.Target, edits []rawjson.Edit, ok bool) {
	t, edits, err := r.resolveParam(member, resolve)
	if err != nil {
		r.fail(err)
	}
	return t, edits, err == nil
}

// resolveParam resolves the name in params.member. edits set the server's own name.
func (r *request) resolveParam(member string, resolve view.Resolver) (t registry.Target, edits []rawjson.Edit, err error) {
	name, raw, err := stringMember(r.Params(), member)
	if err != nil {
		return t, nil, err
	}
	r.name = name
	r.member, r.resolve = member, resolve
	if t, err = r.find(resolve, name); err != nil {
		return t, nil, err
	}
	if r.filterMeta(t.Server) {
		raw = rawjson.Get(r.Params(), member)
	}
	edits, err = r.targetEdits(t, raw)
	return t, edits, err
}

// resolveAgain updates target and serverEdits after the server may have listed again.
func (r *request) resolveAgain() (registry.Target, error) {
	t, edits, err := r.resolveParam(r.member, r.resolve)
	if err != nil {
		return t, err
	}
	if t.Server != r.server || t.Local != nil {
		return t, view.ForbiddenError(r.target, r.name)
	}
	r.target, r.serverEdits = t, edits
	return t, nil
}

// targetEdits returns the edits of params for a target's server.
func (r *request) targetEdits(t registry.Target, raw []byte) (edits []rawjson.Edit, err error) {
	if t.Name != r.name || hasEscapes(raw) {
		edits = r.edit(raw, t.Name)
	}
	if t.Entry != nil && t.Entry.Override != nil {
		return policy.FillOverrides(t.Entry, r.Params(), edits, "arguments")
	}
	return edits, nil
}

// filterMeta removes members that the protocol does not define from `_meta`, unless the
// server has forward_meta.
func (r *request) filterMeta(server string) bool {
	b := r.gateway.Servers.Get(server)
	if b == nil || b.Config().ForwardMeta {
		return false
	}
	r.OmitForeignMeta()
	return true
}

// forward sends a request to its target's owner and relays the answer. It returns false
// if input is required or the client is away.
func (g *Gateway) forward(r *request, t registry.Target, edits []rawjson.Edit) bool {
	r.server, r.target, r.serverEdits = t.Server, t, edits
	if !r.intercept() {
		return false
	}
	reply, demand, err := g.forwardCall(r)
	left := err == nil && reply.Error != nil && jsonrpc.ParseErrorObject(reply.Error).Code == downstream.CodeUnsupportedVersion
	if left || g.awaitReconnect(r, err) {
		reply, demand, err = g.forwardCall(r) // over a new connection
	}
	for range maxLogins {
		if err == nil || !serverreq.IsLoginRequired(err) {
			break
		}
		if err = r.awaitLogin(err); err != nil {
			break
		}
		reply, demand, err = g.forwardCall(r)
	}
	if err != nil {
		r.fail(err)
		return !r.IsAway()
	}
	if demand {
		r.call.MarkPrompted()
		r.replyQuestion(reply.Result)
		return false
	}
	if reply.Error == nil && !r.taskOnly && !r.modern() && r.outer == nil {
		r.buffer = reply.Buffer // nothing else refers to it
	}
	return g.relayReply(r, r.server, r.target.Name, reply)
}

const (
	reconnectTimeout      = 5 * time.Second
	reconnectPollInterval = 20 * time.Millisecond
)

// awaitReconnect waits up to reconnectTimeout for a new connection if the server lost its
// session before handling the request.
func (g *Gateway) awaitReconnect(r *request, err error) bool {
	if err == nil || !errors.Is(err, upstream.ErrSessionLost) || rawjson.Get(r.SentParams(), "requestState") != nil {
		return false
	}
	b := g.Servers.Get(r.server)
	if b == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(r.Context(), reconnectTimeout)
	defer cancel()
	look := time.NewTicker(reconnectPollInterval)
	defer look.Stop()
	for {
		if conn, err := g.Servers.Conn(ctx, b, r.Session(), r.modern()); err == nil && conn.Err() == nil {
			return true
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return false
		}
	}
}

// relayReply relays a server's reply. name is the target's original name. It returns
// false if input is required.
func (g *Gateway) relayReply(r *request, server, name string, reply jsonrpc.Reply) bool {
	if r.serverAnswer = reply.Result; reply.Error != nil {
		r.serverAnswer = reply.Error
	}
	w := &r.rewriter
	w.Registry, w.Namer, w.Server, w.Shape = g.reg, r, server, reply.Shape
	if r.Method() == "resources/read" {
		w.ReadURI, w.RequestedURI = name, r.name
	}
	if !opensWebPages(r.Method(), reply) {
		r.fail(&upstream.Error{Code: upstream.BadReply, Server: server, Reason: serverreq.ReasonNotWebPage})
		return true
	}
	if e := reply.Error; e != nil {
		own := jsonrpc.ParseErrorObject(e)
		if isConnectionError(own.Code) {
			r.fail(&upstream.Error{Code: upstream.BadReply, Server: server, Reason: "it rejected the message: " + own.Message})
			return true
		}
		if own.Code == serverreq.CodeURLElicitation && r.modern() && r.outer == nil {
			return !g.relayURLRequired(r, own.Data)
		}
		e = g.toLegacyError(r, server, name, e)
		b := g.Servers.Get(server)
		if b != nil {
			g.ask.RecordURLRequired(r.Session(), server, b.IsolationUnit(r.Session()), e)
		}
		e = w.Read(rawjson.ErrorObject, e)
		r.replyError(e, w.Edits...)
		return true
	}
	if !rawjson.IsObject(reply.Result) {
		r.fail(&upstream.Error{Code: upstream.BadReply, Server: server, Reason: "its result is not an object"})
		return true
	}
	if b := g.Servers.Get(server); b != nil && isSkillsMethod(r.Method()) {
		var err error
		if reply, err = filterSkills(r.Method(), reply, func(uri string) bool {
			return b.Permits(registry.Resource, uri) && r.view().IsVisible(server, registry.Resource, uri)
		}); err != nil {
			r.fail(&upstream.Error{Code: upstream.BadReply, Server: server, Reason: "invalid skill: " + err.Error()})
			return true
		}
		w.Shape, w.Skills = reply.Shape, true
	}
	sent := r.repair(server, name, reply)
	result := w.Read(rawjson.Result(r.Method()), sent)
	if &result[0] != &sent[0] {
		if b := g.Servers.Get(server); b != nil {
			b.LogRemoved(r.Method(), rawjson.Result(r.Method()), sent)
		}
	}
	if short := g.truncateResult(r, server, result, w.Edits); short != nil {
		result, w.Shape, w.Edits = short, nil, nil
	}
	r.replyRaw(result, w.Edits...)
	return true
}

// opensWebPages reports whether all URLs that a reply asks the user to open are web
// pages.
func opensWebPages(method string, reply jsonrpc.Reply) bool {
	if reply.Error != nil {
		own := jsonrpc.ParseErrorObject(reply.Error)
		return own.Code != serverreq.CodeURLElicitation || serverreq.ErrorOpensWebPages(own.Data)
	}
	return !strings.HasPrefix(method, "tasks/") || serverreq.InputsOpenWebPages(reply.Result)
}

// relayURLRequired converts an error that requires opening URLs into input_required for a
// stateless client. Its next attempt is a new call. It returns false if that is
// impossible.
func (g *Gateway) relayURLRequired(r *request, data []byte) bool {
	if path := serverreq.MissingCapability(r, "elicitation", []byte(`{"mode":"url"}`)); path != nil {
		r.fail(inflight.MissingCapability(r.server, []string{"elicitation", "url"}))
		return false
	}
	var inputs [][]byte
	for e := range rawjson.Elements(rawjson.Get(data, "elicitations")) {
		if rawjson.IsObject(e) {
			inputs = append(inputs, rawjson.SetMember(e, "mode", []byte(`"url"`)))
		}
	}
	if len(inputs) == 0 {
		r.fail(&upstream.Error{Code: upstream.BadReply, Server: r.server, Reason: "it requires opening a URL, but names none"})
		return false
	}
	r.replyQuestion(r.InputRequired("elicitation/create", inputs))
	return true
}

func hasServerState(s downstream.State) bool { return s.Raw != nil && string(s.Raw) != "null" }

// forwardCall forwards a request and waits for the answer. Between stateless peers, input
// requests and answers pass through unchanged. All other requests from servers use
// [downstream.Request.Ask].
func (g *Gateway) forwardCall(r *request) (reply jsonrpc.Reply, demand bool, err error) {
	state, err := r.State()
	if err != nil {
		return reply, false, err
	}
	conn, release, err := g.acquireConn(r)
	if err != nil {
		return reply, false, err
	}
	f := r.newCall()
	modern := conn.Info().Era == upstream.Modern
	switch {
	case modern && r.CanPark() && r.outer == nil && !g.Servers.OmitRoots(r.server):
		f.Call.ForwardInput, f.Call.InputResponses, f.Call.RequestState = true, state.Answers, state.Raw
	case hasServerState(state):
		release()
		return reply, false, downstream.ErrForeignState
	}
	g.beginCall(r, f, conn, release, r.serverEdits)
	reply, err = g.call(r, f, conn)
	if !f.Call.ForwardInput {
		if err == nil {
			err = f.MissingCapability(r.server, reply)
		}
		return reply, false, err
	}
	if kind := rawjson.GetString(reply.Result, "resultType"); err != nil || kind == "input_required" {
		if err == nil && !serverreq.InputsOpenWebPages(reply.Result) {
			err = &upstream.Error{Code: upstream.BadReply, Server: r.server, Reason: serverreq.ReasonNotWebPage}
		}
		return reply, err == nil, err
	}
	if state.IsOwn || hasServerState(state) || !g.ask.UserCanAnswer(reply.Error) {
		return reply, false, nil
	}
	// Repeat it and send the server's requests to a UI.
	if conn, release, err = g.acquireConn(r); err != nil {
		return reply, false, err
	}
	f = r.newCall()
	g.beginCall(r, f, conn, release, r.serverEdits)
	if conn.Info().Era == upstream.Modern {
		f.Call.Capabilities = g.Servers.ClientCapabilities(r.server, g.ask.Capabilities(r.Client().Capabilities, true))
	}
	reply, err = g.call(r, f, conn)
	if err == nil {
		err = f.MissingCapability(r.server, reply)
	}
	return reply, false, err
}

// newCall returns r.call once, then new calls.
func (r *request) newCall() *inflight.Request {
	if r.call.ClientRequest == nil {
		return &r.call
	}
	return new(inflight.Request)
}

// acquireConn returns a request's connection and a slot of its server's limit until
// release. Add each check of requests here and to Start in asyncrequest.go.
func (g *Gateway) acquireConn(r *request) (conn upstream.Conn, release func(), err error) {
	b := g.Servers.Get(r.server)
	if b == nil {
		return nil, nil, &upstream.Error{Code: upstream.ConnectionError, Server: r.server, Reason: "it was removed"}
	}
	start := time.Now()
	conn, err = g.Servers.Conn(r.Context(), b, r.Session(), r.modern())
	r.startWait += waited(start)
	if r.target.Name != "" && !b.PermitsTarget(r.target) { // config or list may be newer
		return nil, nil, view.ForbiddenError(r.target, r.name)
	}
	if err != nil {
		return nil, nil, err
	}
	if r.Method() == "completion/complete" && !conn.Info().Has("completions") {
		return nil, nil, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "Server '%s' does not support completions", r.server)
	}
	if r.modern() && r.Modern().LogLevel != "" && conn.Info().Era == upstream.Legacy {
		g.Notifier.RaiseLogLevel(r.Context(), r.Request, conn)
	}
	start = time.Now()
	release, err = inflight.Acquire(r.Context(), b.Server, r.Request)
	r.queueWait += waited(start)
	if err != nil {
		return nil, nil, err
	}
	if kind, pinned := r.needsApproval(); pinned && g.Servers.VerifiesLists() {
		conn, err = g.Servers.VerifiedConn(r.Context(), conn, r.Session(), r.modern(), kind, r.target, r.resolveAgain)
	}
	if err == nil {
		conn, err = r.judgedConn(conn)
	}
	if err != nil {
		release()
		return nil, nil, err
	}
	return conn, release, nil
}

// minWait is the shortest wait that is recorded.
const minWait = time.Millisecond

func waited(since time.Time) time.Duration {
	if d := time.Since(since); d >= minWait {
		return d
	}
	return 0
}

// needsApproval is true for tools and skills.
func (r *request) needsApproval() (kind registry.Kind, is bool) {
	switch t := r.target.Entry; {
	case t != nil && t.Kind == registry.Tool:
		return registry.Tool, true
	case isSkillsMethod(r.Method()):
		return registry.Skill, true
	}
	return 0, false
}

func (g *Gateway) beginCall(r *request, u *inflight.Request, conn upstream.Conn, release func(), edits []rawjson.Edit) {
	r.era = conn.Info().Era
	u.Begin(r.Request, r.outerCall(), release, edits)
	u.Call.Context = r.Context()
	u.AttachProgressToken(g.journal, r.server, r.name, rawjson.Get(r.Params(), "_meta"), nil)
	g.addModernMeta(r, conn, &u.Call)
	r.trace(u, g.Servers.Get(r.server), conn)
}

// outerCall returns the local tool's call that made the request, or nil.
func (r *request) outerCall() *inflight.Request {
	if r.outer == nil {
		return nil
	}
	return &r.outer.request.call
}

func (g *Gateway) call(r *request, u *inflight.Request, conn upstream.Conn) (jsonrpc.Reply, error) {
	if !r.taskOnly && !u.Call.AcceptTask {
		return g.calls.Do(conn, u, nil)
	}
	return g.calls.Do(conn, u, func() (jsonrpc.Reply, error) { return g.tasks.Call(conn, u, r.server, r.target.Name, r.taskOnly) })
}
