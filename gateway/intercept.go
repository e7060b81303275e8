package gateway

import (
	"cmp"
	"context"
	"time"

	"goblin/gateway/downstream"
	"goblin/gateway/intercept"
	"goblin/gateway/jsonrpc"
	"goblin/gateway/serverreq"
	"goblin/gateway/telemetry"
	"goblin/gateway/upstream"
	"goblin/gateway/view"
	"goblin/registry"
	"goblin/registry/rawjson"
)

// newGate returns the gate for rules. It asks clients like servers do.
func newGate(g *Gateway) *intercept.Gate {
	return intercept.New(intercept.Options{
		Registry: g.reg, Logger: g.log, UIOpen: g.clients.HasUI, Approvals: g.o.CallApprovals,
		Mask: g.mask.Head, Depth: g.o.Config.Gateway.Limits.Depth,
		CanAsk: func(x *downstream.Request, params []byte) bool {
			return x.CanAsk() && serverreq.MissingCapability(x.Outer(), "elicitation", params) == nil
		},
		Ask: func(ctx context.Context, x *downstream.Request, params []byte) ([]byte, error) {
			return askApproval(ctx, g.journal, x, params)
		},
	})
}

// askApproval asks the user of a request's client whether it may be sent.
func askApproval(ctx context.Context, j *telemetry.Journal, x *downstream.Request, params []byte) ([]byte, error) {
	const method = "elicitation/create"
	start := time.Now()
	reply, err := x.Ask(ctx, method, params)
	var refused *jsonrpc.Error
	switch {
	case err != nil:
		refused = jsonrpc.Errorf(jsonrpc.CodeInternal, "the client did not answer: %s", err)
	case reply.Error != nil:
		refused = jsonrpc.ParseErrorObject(reply.Error)
		err = refused
	}
	j.RecordServerRequest(x, x.Session(), registry.Local, method, params, reply.Result, refused, start, nil)
	return reply.Result, err
}

// exchange describes the request for rules.
func (r *request) exchange() *intercept.Exchange {
	if r.intercepted == nil {
		r.intercepted = &intercept.Exchange{Request: r.Request, Profile: r.gateway.Views.Profile(r.Session())}
		if outer := r.outerCall(); outer != nil {
			r.intercepted.Pause = func() (resume func()) {
				outer.Pause()
				return outer.Resume
			}
		}
	}
	x := r.intercepted
	x.Refresh = nil
	if t := r.target; t.Entry != nil && t.Entry.Kind == registry.Tool && t.Local == nil && r.resolve != nil {
		x.Refresh = r.refreshDefinition
	}
	x.Server, x.Name, x.Target, x.Params = r.server, r.name, r.target, r.Params()
	x.Editable = r.resolve != nil && r.Method() != "resources/read" // it has no arguments
	return x
}

// refreshDefinition makes the exchange's target the tool that the connection for the call
// lists. It starts the server if necessary.
func (r *request) refreshDefinition() error {
	b := r.gateway.Servers.Get(r.server)
	if b == nil {
		return &upstream.Error{Code: upstream.ConnectionError, Server: r.server, Reason: "it was removed"}
	}
	conn, err := r.gateway.Servers.Conn(r.Context(), b, r.Session(), r.modern())
	if err == nil {
		_, err = r.listedConn(conn)
	}
	return err
}

// listedConn returns conn or its successor after it has listed its tools. It updates the
// target and the exchange for rules.
func (r *request) listedConn(conn upstream.Conn) (upstream.Conn, error) {
	conn, same, err := r.gateway.Servers.ListedConn(r.Context(), conn, r.Session(), r.modern(), r.server, r.resolveAgain)
	r.intercepted.Target, r.intercepted.IsUnlisted = r.target, !same
	return conn, err
}

// judgedConn is listedConn for a request that rules decided by its tool's definition. It
// refuses the request if the definition has changed since.
func (r *request) judgedConn(conn upstream.Conn) (upstream.Conn, error) {
	if r.intercepted == nil {
		return conn, nil
	}
	if judged, _ := r.intercepted.IsOutdated(); !judged {
		return conn, nil
	}
	conn, err := r.listedConn(conn)
	if err != nil {
		return nil, err
	}
	if _, outdated := r.intercepted.IsOutdated(); outdated {
		return nil, &upstream.Error{Code: upstream.ConnectionError, Server: r.server, Reason: "it changed the tool's definition after a rule decided about the call; call it again"}
	}
	return conn, nil
}

var errClosing = &upstream.Error{Code: upstream.ConnectionError, Server: registry.Local, Reason: "the session is closing"}

// intercept applies rules to the request. It returns false if the request was answered
// or finished. Call it when the target is known, before the server is asked.
func (r *request) intercept() (proceed bool) {
	g := r.gateway
	if r.requestSeen || !g.Rules.IsActive() {
		return true
	}
	r.requestSeen = true
	v := g.Rules.Request(r.exchange())
	ended := v.Ended || r.Context().Err() != nil
	if ended || v.Failure != nil || v.Drop || v.Result != nil || v.Error != nil {
		r.answerSeen = true // it has no answer of the server
	}
	switch {
	case ended:
		r.fail(cmp.Or[error](context.Cause(r.Context()), errClosing))
	case v.Failure != nil:
		r.fail(v.Failure)
	case v.Drop:
		r.drop()
	case v.Result != nil:
		r.reply(v.Result)
	case v.Error != nil:
		r.refuse(v)
	default:
		return r.changed(v.Params)
	}
	return false
}

// changed continues with params that are nil or have the same target. The catalog may have
// changed while the request waited.
func (r *request) changed(params []byte) (proceed bool) {
	if params != nil {
		r.SetParams(params)
	}
	if r.resolve == nil || r.ruleEvents() == nil {
		return true
	}
	before := r.target
	t, edits, err := r.resolveParam(r.member, r.resolve)
	if err == nil && (t.Server != before.Server || t.Name != before.Name) {
		err = view.ForbiddenError(before, r.name)
	}
	if err != nil {
		r.fail(err)
		return false
	}
	r.target, r.serverEdits = t, edits
	return true
}

// drop never answers. A script waits until its call ends.
func (r *request) drop() {
	r.failed = true
	if r.outer != nil {
		<-r.Context().Done()
		return
	}
	r.Drop()
}

// refuse answers with a rule's error. Models see a refused call as a result.
func (r *request) refuse(v intercept.Verdict) {
	if v.Denied && r.Method() == jsonrpc.MethodToolsCall && r.outer == nil && rawjson.Get(r.Params(), "task") == nil {
		r.failed = true
		r.reply(jsonrpc.ToolErrorResult(v.Error))
		return
	}
	e := r.Fail(v.Error)
	r.code, r.answer = e.Code, e.Object()
}

// replyQuestion replies with the server's questions for a stateless client. Rules on
// answers do not apply to it.
func (r *request) replyQuestion(result []byte) {
	r.answerSeen = true
	r.gateway.Rules.Asked(r.intercepted, result)
	r.reply(result)
}

// interceptAnswer applies rules to an answer, which is a result or with code an error
// object. It returns true if it answered the request.
func (r *request) interceptAnswer(answer []byte, code int, edits []rawjson.Edit) (done bool) {
	g := r.gateway
	if r.answerSeen || !g.Rules.SeesAnswer(r.intercepted) || r.Context().Err() != nil {
		return false
	}
	r.answerSeen = true
	if r.call.ClientRequest != nil {
		r.call.Release() // the server has answered
	}
	x := r.exchange()
	x.Answer, x.Code = rawjson.Splice(answer, edits...), code
	switch v := g.Rules.Answer(x); {
	case v.Drop:
		r.drop()
	case v.Truncate:
		r.ReplyTruncated(x.Answer, code)
		r.answer, r.code = x.Answer, code
	case v.Error != nil:
		r.failed = true
		r.refuse(v)
	case v.Result != nil:
		r.failed = false
		r.reply(v.Result)
	default: // also if the request ended: then nothing is sent
		return false
	}
	return true
}

// ruleEvents returns the steps of rules, for records.
func (r *request) ruleEvents() []registry.RuleEvent {
	if r.intercepted == nil {
		return nil
	}
	return r.intercepted.Events()
}
