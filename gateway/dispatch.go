package gateway

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"goblin/gateway/downstream"
	"goblin/gateway/inflight"
	"goblin/gateway/intercept"
	"goblin/gateway/jsonrpc"
	"goblin/gateway/upstream"
	"goblin/gateway/view"
	"goblin/registry"
	"goblin/registry/rawjson"
)

// request is a client's request with data for metrics and journal.
type request struct {
	*downstream.Request
	gateway      *Gateway
	server       string          // the asked one, or ""
	name         string          // as sent by the client
	target       registry.Target // zero for tasks
	serverEdits  []rawjson.Edit  // of params
	member       string          // of params, see resolveParam
	resolve      view.Resolver   // see resolveParam
	answer       []byte          // as sent by the server, with repairs
	serverAnswer []byte          // as sent by the server; nil if it did not answer
	startWait    time.Duration   // for the server's start
	queueWait    time.Duration   // for a slot of its limit
	cause        uint64          // number of the call that created the task, or 0
	edits        []rawjson.Edit  // for the client
	parts        [][]byte        // the answer as parts
	buffer       *jsonrpc.Buffer // held until it is recorded; may be nil
	code         int             // error code, 0 for a result
	failed       bool            // the server did not answer
	// outer is the local tool's call that made the request, or nil.
	outer        *localCall
	era          upstream.Era        // of the connection
	badArguments bool                // of a nested call
	taskOnly     bool                // the client does not know tasks
	recorded     bool                // in the journal
	locating     atomic.Bool         // a login may make its name known
	intercepted  *intercept.Exchange // nil if no rule applied
	requestSeen  bool                // by the rules
	answerSeen   bool                // by the rules

	// Embedded to save allocations.
	call     inflight.Request
	rewriter inflight.Rewriter
	room     [1]rawjson.Edit
}

// edit returns the edit that sets the server's own name.
func (r *request) edit(raw []byte, name string) []rawjson.Edit {
	r.room[0] = rawjson.ReplaceEdit(r.Params(), raw, rawjson.Quote(name))
	return r.room[:]
}

func (r *request) view() *registry.Snapshot { return r.gateway.Views.For(r.Request) }

// ListedURI implements [inflight.Namer].
func (r *request) ListedURI(server, uri string) string { return r.view().ListedURI(server, uri) }

func (r *request) reply(result []byte) {
	if r.interceptAnswer(result, 0, nil) {
		return
	}
	r.answer = result
	r.edits = r.Reply(result)
}

// replyRaw is reply for a result without line breaks.
func (r *request) replyRaw(result []byte, edits ...rawjson.Edit) {
	if r.interceptAnswer(result, 0, edits) {
		return
	}
	r.answer = result
	r.edits = r.ReplyRaw(result, r.buffer, r.rewriter.Shape, edits...)
}

// answerParts replies with an immutable result in parts.
func (r *request) answerParts(parts [][]byte) {
	if r.gateway.Rules.SeesAnswer(r.intercepted) && r.interceptAnswer(bytes.Join(parts, nil), 0, nil) {
		return
	}
	r.parts = parts
	r.ReplyParts(parts, nil)
}

func (r *request) replyError(object []byte, edits ...rawjson.Edit) {
	if r.interceptAnswer(object, jsonrpc.ParseErrorObject(object).Code, edits) {
		return
	}
	r.answer, r.edits = r.Error(object, edits...)
	r.code = jsonrpc.ParseErrorObject(r.answer).Code
}

// fail answers with the error documented for err.
func (r *request) fail(err error) {
	if ended := context.Cause(r.Session().Context()); ended != nil {
		err = &upstream.Error{Code: upstream.ConnectionError, Server: registry.Local, Reason: "the session is closing: " + ended.Error(), Err: ended}
	}
	if failed := skillError(r.Method(), view.ToJSONRPC(err)); r.asToolResult(err) {
		r.failed = !r.badArguments
		r.reply(jsonrpc.ToolErrorResult(failed))
	} else {
		failed = withServerError(err, failed)
		if r.interceptAnswer(failed.Object(), failed.Code, nil) {
			return
		}
		e := r.Fail(failed)
		r.code, r.answer = e.Code, e.Object()
	}
}

// withServerError adds code and data of a server's malformed error to e.
func withServerError(err error, e *jsonrpc.Error) *jsonrpc.Error {
	var failed *upstream.Error
	if !errors.As(err, &failed) || failed.Fault == nil {
		return e
	}
	if !isConnectionError(failed.Fault.Code) {
		e.Code = failed.Fault.Code
	}
	if failed.Fault.Data != nil {
		e.Data = failed.Fault.Data
	}
	return e
}

// asToolResult reports whether models see err as a result. Requests for a task need a
// task as result, and scripts catch errors.
func (r *request) asToolResult(err error) bool {
	var failed *upstream.Error
	return r.Method() == jsonrpc.MethodToolsCall && r.outer == nil && (r.badArguments || errors.As(err, &failed)) && rawjson.Get(r.Params(), "task") == nil
}

type method func(*Gateway, *request)

// Methods of both eras.
var commonMethods = map[string]method{
	"tools/list":               lister(registry.Tool, "tools"),
	"prompts/list":             lister(registry.Prompt, "prompts"),
	"resources/list":           lister(registry.Resource, "resources"),
	"resources/templates/list": lister(registry.Template, "resourceTemplates"),
	"skills/list":              lister(registry.Skill, "skills", refreshSkills),
	"skills/get":               forwardSkill,
	"resources/directory/read": forwardSkill,
	"tools/call":               (*Gateway).callTool,
	"prompts/get":              (*Gateway).getPrompt,
	"resources/read":           (*Gateway).readResource,
	"completion/complete":      (*Gateway).complete,
	"tasks/get":                (*Gateway).serveTask,
	"tasks/cancel":             (*Gateway).serveTask,
}

// targeted lists methods that call [request.intercept] when their target is known.
var targeted = map[string]bool{
	"tools/call": true, "prompts/get": true, "resources/read": true, "completion/complete": true,
	"skills/get": true, "resources/directory/read": true,
	"tasks/get": true, "tasks/cancel": true, "tasks/result": true, "tasks/update": true,
	"resources/subscribe": true, "resources/unsubscribe": true,
}

// Methods of sessions.
var legacyMethods = map[string]method{
	"initialize":            (*Gateway).initialize,
	"ping":                  func(_ *Gateway, r *request) { r.reply(emptyResult) },
	"resources/subscribe":   (*Gateway).subscribe,
	"resources/unsubscribe": (*Gateway).unsubscribe,
	"logging/setLevel":      (*Gateway).setLevel,
	"tasks/result":          (*Gateway).serveTask,
	"tasks/list":            (*Gateway).listTasks,
}

// OrderKey returns a key for requests that must keep their order: subscriptions of one
// URI, and log levels.
func OrderKey(method string, params []byte) string {
	switch method {
	case "resources/subscribe", "resources/unsubscribe":
		uri := rawjson.Get(params, "uri")
		if len(uri) > 6*registry.MaxURI+2 { // too long however escaped
			return ""
		}
		return "uri " + string(uri)
	case "logging/setLevel":
		return "level"
	}
	return ""
}

var emptyResult = []byte("{}")

// Handle implements [downstream.Handler].
func (g *Gateway) Handle(x *downstream.Request) {
	r := &request{Request: x, gateway: g}
	defer g.o.Tracer.Forget(x)
	table := legacyMethods
	if r.modern() {
		table = modernMethods
		g.recordModernClient(r)
		x.ParkWith(r)
	}
	serve, label := commonMethods[x.Method()], x.Method()
	if serve == nil {
		serve = table[x.Method()]
	}
	refuse := func(err error) { serve = func(_ *Gateway, r *request) { r.fail(err) } }
	if serve == nil {
		serve, label = extension, "other"
		if legacyMethods[x.Method()] != nil || modernMethods[x.Method()] != nil { // of other revisions
			refuse(jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "Method not found: %s", x.Method()))
		}
	}
	if err := rawjson.Params(x.Method()).Check(x.SentParams()); err != nil {
		refuse(jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "Invalid params: %v", err))
	}
	if m := r.Modern(); m != nil && m.LogLevel != "" {
		if _, ok := downstream.ParseLevel(m.LogLevel); !ok {
			refuse(unknownLevel(m.LogLevel))
		}
	}
	if g.Servers.HasPerProject() && x.Method() != "initialize" && x.Method() != "ping" {
		if p := asyncMethods()[x.Method()]; p != nil {
			r.name, _, _ = stringMember(x.Params(), p.member) // for input requests
		}
		g.projects.Resolve(r.Context(), x)
		g.Servers.AwaitProject(r.Context(), x.Session())
	}
	if label != "other" && !targeted[x.Method()] && !r.intercept() {
		serve = func(*Gateway, *request) {}
	}
	serve(g, r)
	if !r.recorded && !x.IsAway() {
		g.record(r, label)
	}
}

func extension(g *Gateway, r *request) {
	server, name, edits, err := g.relays.route(r.Request)
	if err != nil {
		r.fail(err)
		return
	}
	r.name = name
	g.forward(r, registry.Target{Server: server}, edits)
}

// HandleNotification implements [downstream.Handler].
func (g *Gateway) HandleNotification(s *downstream.Session, method string, params []byte) {
	params = rawjson.Params(method).Clean(nil, params)
	switch method {
	case "notifications/progress":
		g.ask.Progress(s, params)
	case "notifications/roots/list_changed":
		g.journal.RecordNotification(registry.ToServer, s, "", method, "", params)
		g.ask.RootsChanged(s)
		g.projects.Forget(s)
	default:
		server := ""
		if commonMethods[method] == nil && legacyMethods[method] == nil && modernMethods[method] == nil {
			server = g.relays.notice(s, method, params)
		} // else a request without an id would pass rules
		g.journal.RecordNotification(registry.ToServer, s, server, method, "", params)
		if server == "" {
			g.log.Debug("notification ignored", "method", method, "session", s.ID())
		}
	}
}

// hasEscapes reports whether parsers may decode a name differently.
func hasEscapes(raw []byte) bool { return bytes.IndexByte(raw, '\\') >= 0 }

// stringMember returns a param that determines the target.
func stringMember(params []byte, name string) (value string, raw []byte, err error) {
	raw = rawjson.Get(params, name)
	value, ok := rawjson.String(raw)
	if !ok {
		return "", nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "Invalid params: member %q must be a string", name)
	}
	most := registry.MaxName
	if name == "uri" {
		most = registry.MaxURI
	}
	if len(value) > most {
		return "", nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "Invalid params: member %q is longer than %d bytes", name, most)
	}
	return value, raw, nil
}

// isConnectionError reports whether an error code concerns the connection only:
// mismatched headers or revision (2026-07-28).
func isConnectionError(code int) bool { return code == -32020 || code == -32022 }

func joinOrNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
