// Package serverreq routes requests of servers (elicitation, sampling, roots) to a client
// or user.
//
// It must not know tasks or how calls are made; package inflight determines the call that
// a request belongs to. Route, RouteTo and Ask wait up to [AnswerTimeout] for a user.
// openPage and Await wait for the user as long as their request. Other methods don't
// block.
package serverreq

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"goblin/gateway/config"
	"goblin/gateway/downstream"
	"goblin/gateway/inflight"
	"goblin/gateway/jsonrpc"
	"goblin/gateway/telemetry"
	"goblin/gateway/upstream"
	"goblin/registry"
	"goblin/registry/rawjson"
)

// Options configures a Router.
type Options struct {
	Journal *telemetry.Journal
	Logger  *slog.Logger
	Calls   *inflight.Table
	Clients *inflight.Clients
	Roots   []config.Root // gateway.roots
}

// Router finds the client that answers a server's request.
type Router struct {
	o            Options
	roots        atomic.Pointer[[]config.Root]
	elicitations elicitations
	tokens       progressTokens
	rootChanges  rootChanges
	openUIs      atomic.Int64 // UIs whose users can be asked
	work         sync.WaitGroup
}

// New returns a Router.
func New(o Options) *Router {
	a := &Router{o: o}
	a.roots.Store(&o.Roots)
	return a
}

// Wait waits for background goroutines.
func (a *Router) Wait() { a.work.Wait() }

// Initialized records a session after its handshake.
func (a *Router) Initialized(s *downstream.Session) {
	if canAskUser(s) {
		a.openUIs.Add(1)
	}
	if sharesRoots(s) {
		a.work.Go(func() {
			select {
			case <-s.Initialized():
				a.RootsChanged(s)
			case <-s.Context().Done():
			}
		})
	}
}

// SessionClosed removes a closed session.
func (a *Router) SessionClosed(s *downstream.Session) {
	a.elicitations.forget(s)
	a.RootsChanged(s)
	if canAskUser(s) {
		a.openUIs.Add(-1)
	}
}

// SetRoots applies gateway.roots after a config change.
func (a *Router) SetRoots(roots []config.Root) {
	if was := a.roots.Swap(&roots); reflect.DeepEqual(*was, roots) {
		return
	}
	a.notifyRoots(func(n *rootChanges) { n.config = true })
}

var empty = []byte("{}")

// Request is a server's request to a client: elicitation, sampling or roots.
type Request struct {
	Server string
	Conn   upstream.Conn
	Method string
	Params []byte
	// Ask sends the request to the client of RouteTo. nil: use the stream of a client
	// request.
	Ask func(ctx context.Context, method string, params []byte) (jsonrpc.Reply, error)

	capability string // capability that the client must declare
	roots      config.RootsFrom
	// candidates are the client requests that may have caused it, the newest last.
	// certain is set if all belong to one client.
	candidates []*inflight.Request
	certain    bool
}

var capabilities = map[string]string{
	"sampling/createMessage": "sampling", "elicitation/create": "elicitation", "roots/list": "roots",
}

// ParseRequest parses a server's request. The error is the answer to an invalid one.
func ParseRequest(server *upstream.Server, conn upstream.Conn, method string, params []byte) (*Request, *jsonrpc.Error) {
	cfg := server.Config()
	q := &Request{Server: server.Name(), Conn: conn, Method: method, Params: params, capability: capabilities[method], roots: cfg.RootsSource()}
	if q.capability == "" || q.capability == "roots" && q.roots == config.NoRoots {
		return nil, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "Method not found: %s", method)
	}
	if q.capability == "elicitation" && !opensWebPage(params) {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "%s", ReasonNotWebPage)
	}
	return q, nil
}

// AnswerTimeout is the maximum time that a client may take to answer a server's request.
// Users get enough time, and requests to clients that vanished are released.
const AnswerTimeout = time.Hour

// Route sends a request to the client whose call caused it, never to another. If no
// client can be asked, it asks the users of open UIs. c is the call that the request came
// with, or nil. session is the client that answered, or nil.
func (a *Router) Route(ctx context.Context, q *Request, c *upstream.Call) (
	session *downstream.Session, result []byte, fault *jsonrpc.Error,
) {
	q.Params = inflight.DropTaskID(q.Params)
	if q.capability != "roots" || c != nil || !upstream.IsUnprompted(ctx) {
		q.candidates, q.certain = a.o.Calls.Candidates(q.Conn, c)
	}
	session, who := a.findClient(q)
	switch {
	case session == nil && q.capability == "roots" && q.roots == config.ClientRoots && len(q.candidates) == 0 && (q.Conn.Unit() == "" || upstream.IsProjectUnit(q.Conn.Unit())):
		result, fault = a.mergedRoots(ctx, q)
		return nil, result, fault
	case session == nil:
		return a.answerUncertain(ctx, q)
	}
	stateless := q.certain && inflight.Newest(q.candidates).ClientRequest.Modern() != nil
	if err := checkCapability(who, q.capability, q.Params); err != nil {
		asked, result, fault := a.answerUnsupported(ctx, q, err)
		if stateless && who != (noCapabilities{}) && asked == nil && fault != nil {
			inflight.Newest(q.candidates).RequireCapability(MissingCapability(who, q.capability, q.Params))
		}
		return asked, result, fault
	}
	if stateless {
		result, fault = a.askStateless(ctx, q)
	} else {
		result, fault = a.askClient(ctx, session, q)
	}
	return session, result, fault
}

func (a *Router) findClient(q *Request) (session *downstream.Session, who Capabilities) {
	switch {
	case q.capability == "roots" && q.roots == config.ConfigRoots && !q.certain:
		// No client's call caused the request, so no client's roots apply.
	case q.certain:
		x := inflight.Newest(q.candidates).ClientRequest
		if !x.CanAsk() {
			return x.Session(), noCapabilities{}
		}
		return x.Session(), x.Outer()
	case len(q.candidates) == 0:
		session = a.o.Clients.Owner(q.Conn)
		if session != nil && (q.capability != "roots" || !session.Anonymous()) {
			return session, session
		}
	}
	return nil, nil
}

// RouteTo sends a request to a session by q.Ask. If the client did not declare the
// capability, it asks the users of open UIs.
func (a *Router) RouteTo(ctx context.Context, q *Request, s *downstream.Session) (*downstream.Session, []byte, *jsonrpc.Error) {
	if err := checkCapability(s, q.capability, q.Params); err != nil {
		return a.answerUnsupported(ctx, q, err)
	}
	result, fault := a.askClient(ctx, s, q)
	return s, result, fault
}

var errUnanswered = jsonrpc.Errorf(jsonrpc.CodeInternal, "the client did not answer")

// askStateless sends the request to the stateless client with the newest candidate call.
// It falls back to older calls if that one finishes first.
func (a *Router) askStateless(ctx context.Context, q *Request) ([]byte, *jsonrpc.Error) {
	defer inflight.PauseTimeouts(q.candidates)()
	for _, x := range slices.Backward(q.candidates) {
		if !x.ClientRequest.CanAsk() {
			continue
		}
		reply, err := x.ClientRequest.Ask(ctx, q.Method, q.Params)
		if err == nil {
			return reply.Result, nil
		}
		if errors.Is(err, downstream.ErrNoRoom) {
			a.o.Logger.Warn("requests from server refused: too many calls wait for their client", "server", q.Server)
		}
		if !errors.Is(err, downstream.ErrAnswered) && !errors.Is(err, downstream.ErrCancelled) {
			break
		}
	}
	if q.capability == "elicitation" {
		return []byte(`{"action":"cancel"}`), nil
	}
	return nil, errUnanswered
}

type noCapabilities struct{}

func (noCapabilities) HasCapability(...string) bool { return false }

func (a *Router) answerUncertain(ctx context.Context, q *Request) (*downstream.Session, []byte, *jsonrpc.Error) {
	asker := registry.Asker{Server: q.Server, Why: registry.AskNoCall}
	if len(q.candidates) > 0 {
		asker.Why = registry.AskAmbiguous
	}
	session, result, fault, ok := a.askUIs(ctx, q, asker)
	if ok {
		return session, result, fault
	}
	if q.capability == "elicitation" {
		a.o.Logger.Warn("elicitation cancelled: no single client caused it and no UI is open", "server", q.Server)
		return nil, []byte(`{"action":"cancel"}`), nil
	}
	a.o.Logger.Warn("sampling refused: no single client caused it and no UI is open", "server", q.Server)
	return nil, nil, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "no client can be asked: no single client caused the request")
}

// answerUnsupported answers a request whose client did not declare the capability. It
// returns the error why if no UI answers.
func (a *Router) answerUnsupported(ctx context.Context, q *Request, why *jsonrpc.Error) (*downstream.Session, []byte, *jsonrpc.Error) {
	asker := registry.Asker{Server: q.Server, Why: registry.AskNoCall}
	if x := inflight.Newest(q.candidates); x != nil {
		asker = registry.Asker{Server: q.Server, Why: registry.AskUnable, Client: x.ClientRequest.ClientName(), Call: candidateTarget(q.candidates)}
	}
	session, result, fault, ok := a.askUIs(ctx, q, asker)
	if !ok {
		fault = why
	}
	return session, result, fault
}

func candidateTarget(causes []*inflight.Request) string {
	if len(causes) != 1 {
		return ""
	}
	x := causes[0].ClientRequest
	name, ok := rawjson.String(rawjson.Get(x.Params(), "name"))
	if !ok {
		name = rawjson.GetString(x.Params(), "uri")
	}
	return name
}

func replyError(reply jsonrpc.Reply) *jsonrpc.Error {
	if reply.Error == nil {
		return nil
	}
	return jsonrpc.ParseErrorObject(reply.Error)
}

func (a *Router) askClient(ctx context.Context, s *downstream.Session, q *Request) ([]byte, *jsonrpc.Error) {
	if q.capability == "roots" {
		a.rootChanges.recordGiven(q.Conn, s)
	}
	if id, ok := rawjson.String(rawjson.Get(q.Params, "elicitationId")); ok && q.capability == "elicitation" {
		a.elicitations.add(elicitationKey{q.Server, q.Conn.Unit(), id}, s)
	}
	params, forget := a.tokens.replace(q.Conn, s, q.Params)
	defer forget()
	if s.IsScreen() {
		asker := registry.Asker{Server: q.Server, Why: registry.AskNoCall}
		if x := inflight.Newest(q.candidates); x != nil {
			asker.Why, asker.Call = registry.AskOwnCall, candidateTarget(q.candidates)
		}
		params = addAsker(params, asker)
	}
	var reply jsonrpc.Reply
	var err error
	if q.Ask != nil {
		reply, err = q.Ask(ctx, q.Method, params)
	} else {
		reply, err = Ask(ctx, s, q.candidates, q.Method, params)
	}
	if err != nil {
		if isCancelled(ctx, err) {
			a.o.Journal.RecordNotification(registry.ToClient, s, q.Server, "notifications/cancelled", "", rawjson.Object("method", q.Method, "reason", err.Error()))
		}
		return nil, jsonrpc.Errorf(jsonrpc.CodeInternal, "the client did not answer: %s", err)
	}
	return reply.Result, replyError(reply)
}

// Ask sends a server's request to the session whose requests may have caused it.
func Ask(ctx context.Context, s *downstream.Session, causes []*inflight.Request, method string, params []byte) (jsonrpc.Reply, error) {
	defer inflight.PauseTimeouts(causes)()
	ctx, over := context.WithTimeout(ctx, AnswerTimeout)
	defer over()
	switch {
	case len(causes) == 0:
		return s.Ask(ctx, method, params)
	case len(causes) == 1:
		return causes[0].ClientRequest.Ask(ctx, method, params)
	case s.Transport() == "http":
		return askOnAnyStream(ctx, s, causes, method, params)
	}
	ctx, cancel := untilAllEnd(ctx, causes)
	defer cancel()
	return s.Ask(ctx, method, params)
}

// untilAllEnd returns a context that is cancelled when all candidates are done. Without
// candidates, only parent cancels it.
func untilAllEnd(parent context.Context, causes []*inflight.Request) (ctx context.Context, release func()) {
	ctx, cancel := context.WithCancelCause(parent)
	var left atomic.Int64
	left.Store(int64(len(causes)))
	stops := make([]func() bool, len(causes))
	for i, x := range causes {
		of := x.ClientRequest.Context()
		stops[i] = context.AfterFunc(of, func() {
			if left.Add(-1) == 0 {
				cancel(context.Cause(of))
			}
		})
	}
	return ctx, func() {
		for _, stop := range stops {
			stop()
		}
		cancel(nil)
	}
}

// askOnAnyStream sends a request to an HTTP client on the stream of a candidate, the
// newest first. It continues with the next if a candidate was answered or lost its
// stream.
func askOnAnyStream(ctx context.Context, s *downstream.Session, causes []*inflight.Request, method string, params []byte) (jsonrpc.Reply, error) {
	for _, x := range slices.Backward(causes) {
		reply, err := x.ClientRequest.Ask(ctx, method, params)
		if !errors.Is(err, downstream.ErrAnswered) && !errors.Is(err, downstream.ErrNoStream) {
			return reply, err
		}
	}
	return s.Ask(ctx, method, params)
}

func canAskUser(s *downstream.Session) bool { return s.IsScreen() && s.HasCapability("elicitation") }

func (a *Router) askableUIs(capability string, params []byte) (open []*downstream.Session) {
	for _, s := range a.o.Clients.All() {
		if s.IsScreen() && s.Ready() && MissingCapability(s, capability, params) == nil {
			open = append(open, s)
		}
	}
	return open
}

// askUIs answers a request that no client can answer: roots from the config, others
// by the users of all open UIs. The first answer counts and the other dialogs are closed.
// ok is false without an answer.
func (a *Router) askUIs(ctx context.Context, q *Request, asker registry.Asker) (
	from *downstream.Session, result []byte, refusal *jsonrpc.Error, ok bool,
) {
	if q.capability == "roots" {
		result, refusal = a.configuredRoots(q.Conn)
		return nil, result, refusal, true
	}
	open := a.askableUIs(q.capability, q.Params)
	if len(open) == 0 {
		return nil, nil, nil, false
	}
	defer inflight.PauseTimeouts(q.candidates)()
	ctx, cancel := untilAllEnd(ctx, q.candidates)
	defer cancel()
	ctx, over := context.WithTimeout(ctx, AnswerTimeout)
	defer over()
	params := addAsker(q.Params, asker)
	type answer struct {
		from  *downstream.Session
		reply jsonrpc.Reply
		err   error
	}
	answers := make(chan answer, len(open))
	for _, s := range open {
		a.work.Go(func() {
			reply, err := s.Ask(ctx, q.Method, params)
			answers <- answer{s, reply, err}
		})
	}
	for range open {
		got := <-answers
		// A UI that closes or has too many requests answers with this code.
		if refusal = replyError(got.reply); got.err == nil && (refusal == nil || refusal.Code != jsonrpc.CodeInternal) {
			return got.from, got.reply.Result, refusal, true
		}
		a.o.Logger.Debug("request not answered by a UI", "server", q.Server, "session", got.from.ID(), "err", got.err)
	}
	return nil, nil, nil, false
}

// addAsker adds the asking server to a request for a UI. It replaces what the server
// claims.
func addAsker(params []byte, asker registry.Asker) []byte {
	who, err := json.Marshal(asker)
	if err != nil { // cannot fail for strings
		return params
	}
	if !rawjson.IsObject(params) {
		params = empty
	}
	meta := rawjson.Get(params, "_meta")
	if !rawjson.IsObject(meta) {
		meta = empty
	}
	return rawjson.SetMember(params, "_meta", rawjson.SetMember(meta, registry.AskerKey, who))
}

// Capabilities is a session or request with the capabilities of its client.
type Capabilities interface{ HasCapability(path ...string) bool }

func checkCapability(c Capabilities, capability string, params []byte) *jsonrpc.Error {
	lacking := MissingCapability(c, capability, params)
	switch {
	case lacking == nil:
		return nil
	case len(lacking) == 1:
		code := jsonrpc.CodeMethodNotFound
		if capability == "elicitation" {
			code = jsonrpc.CodeInvalidParams
		}
		return jsonrpc.Errorf(code, "the client that made the call did not declare %s", capability)
	case capability == "sampling":
		return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "the client that made the call did not declare sampling with tools")
	}
	return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "the client that made the call did not declare elicitation in %s mode", lacking[1])
}

// MissingCapability returns the path of the capability that a request needs and the
// client did not declare, or nil.
func MissingCapability(c Capabilities, capability string, params []byte) []string {
	if !c.HasCapability(capability) {
		return []string{capability}
	}
	if capability == "sampling" && rawjson.Get(params, "tools") != nil && !c.HasCapability("sampling", "tools") {
		return []string{"sampling", "tools"}
	}
	if mode := rawjson.GetString(params, "mode"); capability == "elicitation" {
		switch url := c.HasCapability("elicitation", "url"); {
		case mode == "url" && !url:
			return []string{"elicitation", "url"}
		case mode != "url" && url && !c.HasCapability("elicitation", "form"): // {} alone means forms
			return []string{"elicitation", "form"}
		}
	}
	return nil
}
