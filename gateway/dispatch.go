package gateway

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync/atomic"

	"goblin/gateway/downstream"
	"goblin/gateway/inflight"
	"goblin/gateway/jsonrpc"
	"goblin/gateway/upstream"
	"goblin/gateway/view"
	"goblin/registry"
	"goblin/registry/rawjson"
)

// request is one request of a client on its way through the gateway, with
// what metrics and journals will say of it.
type request struct {
	*downstream.Request
	gateway     *Gateway
	server      string          // who was asked, "" for nobody
	name        string          // tool, prompt or URI as the client sent it
	target      registry.Target // of a request that is passed on; zero for tasks
	serverEdits []rawjson.Edit  // of params, for the server
	member      string          // of params: what resolveParam resolved
	resolve     view.Resolver   // likewise
	answer      []byte          // the result or error as the server sent it, for the journal
	edits       []rawjson.Edit  // what makes it the client's
	parts       [][]byte        // the answer, if it is a result in parts
	buffer      *jsonrpc.Buffer // of the answer, held until it is in the journal; may be nil
	code        int             // 0 for a result, else the error's code
	failed      bool            // the result says that its server did not answer
	// outer is the call that the request was made for, nil for a client's own.
	outer        *localCall
	era          upstream.Era // of the connection over which it was passed on
	badArguments bool         // of a nested call
	taskOnly     bool         // its tool runs as a task only, which the client does not know
	recorded     bool         // in the journal already
	locating     atomic.Bool  // its name may become known by a login

	// part of the request, so that both are one allocation
	call     inflight.Request
	rewriter inflight.Rewriter
	room     [1]rawjson.Edit
}

// edit is the change of params that gives the server its own name for what
// the client asked for.
func (r *request) edit(raw []byte, name string) []rawjson.Edit {
	r.room[0] = rawjson.ReplaceEdit(r.Params(), raw, rawjson.Quote(name))
	return r.room[:]
}

// view returns the catalog of the request's client.
func (r *request) view() *registry.Snapshot { return r.gateway.Views.For(r.Request) }

// ListedURI implements [inflight.Namer].
func (r *request) ListedURI(server, uri string) string { return r.view().ListedURI(server, uri) }

func (r *request) reply(result []byte, edits ...rawjson.Edit) {
	r.answer = result
	r.edits = r.Reply(result, edits...)
}

// replyRaw is reply for a server's result, which has no line breaks.
func (r *request) replyRaw(result []byte, edits ...rawjson.Edit) {
	r.answer = result
	r.edits = r.ReplyRaw(result, r.buffer, r.rewriter.Shape, edits...)
}

// answerParts answers with a result of ours in parts, which nobody writes to any
// more.
func (r *request) answerParts(parts [][]byte) {
	r.parts = parts
	r.ReplyParts(parts, nil)
}

func (r *request) replyError(object []byte, edits ...rawjson.Edit) {
	r.answer, r.edits = r.Error(object, edits...)
	r.code = jsonrpc.ParseErrorObject(r.answer).Code
}

// fail answers with what is documented for err's kind.
func (r *request) fail(err error) {
	if ended := context.Cause(r.Session().Context()); ended != nil {
		err = &upstream.Error{Code: upstream.ConnectionError, Server: registry.Local, Reason: "the session ends: " + ended.Error(), Err: ended}
	}
	if failed := skillError(r.Method(), view.ToJSONRPC(err)); r.asToolResult(err) {
		r.failed = !r.badArguments
		r.reply(jsonrpc.ToolErrorResult(failed))
	} else {
		e := r.Fail(withServerError(err, failed))
		r.code, r.answer = e.Code, e.Object()
	}
}

// withServerError returns e with the code and the data of the server's malformed error, if err
// is one.
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

// asToolResult reports whether err is answered by a result, which models see. A request for a
// task gets an error, since its result would have to hold the task. A script gets one, too,
// and catches it.
func (r *request) asToolResult(err error) bool {
	var failed *upstream.Error
	return r.Method() == jsonrpc.MethodToolsCall && r.outer == nil && (r.badArguments || errors.As(err, &failed)) && rawjson.Get(r.Params(), "task") == nil
}

type method func(*Gateway, *request)

// commonMethods has the methods of both eras.
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

// legacyMethods has those of sessions only.
var legacyMethods = map[string]method{
	"initialize":            (*Gateway).initialize,
	"ping":                  func(_ *Gateway, r *request) { r.reply(emptyResult) },
	"resources/subscribe":   (*Gateway).subscribe,
	"resources/unsubscribe": (*Gateway).unsubscribe,
	"logging/setLevel":      (*Gateway).setLevel,
	"tasks/result":          (*Gateway).serveTask,
	"tasks/list":            (*Gateway).listTasks,
}

// OrderKey keeps requests of a client apart that undo each other: subscriptions
// of one URI, and log levels. All others run side by side.
func OrderKey(method string, params []byte) string {
	switch method {
	case "resources/subscribe", "resources/unsubscribe":
		uri := rawjson.Get(params, "uri")
		if len(uri) > 6*registry.MaxURI+2 { // however it is escaped: it is refused
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
		if legacyMethods[x.Method()] != nil || modernMethods[x.Method()] != nil { // of other revisions, and of no extension
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
		if p := asyncMethods[x.Method()]; p != nil {
			r.name, _, _ = stringMember(x.Params(), p.member) // the client may be asked, and its return is for that
		}
		g.projects.Resolve(r.Context(), x)
		g.Servers.AwaitProject(r.Context(), x.Session())
	}
	serve(g, r)
	if !r.recorded && !x.IsAway() {
		g.record(r, label)
	}
}

// extension passes on a request that Goblin does not know to the server it is for.
func extension(g *Gateway, r *request) {
	server, name, edits, err := g.relays.Route(r.Request)
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
		server := g.relays.Notice(s, method, params)
		g.journal.RecordNotification(registry.ToServer, s, server, method, "", params)
		if server == "" {
			g.log.Debug("Notification ignored", "method", method, "session", s.ID())
		}
	}
}

// hasEscapes reports whether a name has escapes, which parsers may resolve differently.
func hasEscapes(raw []byte) bool { return bytes.IndexByte(raw, '\\') >= 0 }

// stringMember reads the parameter that a request is routed by.
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

// isConnectionError reports error codes that concern only one connection: headers that do not
// match, and an unsupported revision (2026-07-28).
func isConnectionError(code int) bool { return code == -32020 || code == -32022 }

// joinOrNone joins names for a message.
func joinOrNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
