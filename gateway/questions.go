package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"goblin/gateway/call"
	"goblin/gateway/downstream"
	"goblin/gateway/jsonrpc"
	"goblin/gateway/upstream"
	"goblin/registry"
	"goblin/registry/members"
	"goblin/registry/rawjson"
)

// inquiry is what a backend wants to know, on its way to who can answer.
type inquiry struct {
	server     string
	conn       upstream.Conn
	capability string // that a client must have declared
	method     string
	params     []byte
	// causes are the requests that may have made the backend ask, the newest
	// last. certain says that they are one client's.
	causes  []*call.Under
	certain bool
	task    *task // of a client's own that it belongs to, nil for none
}

// questionLimit is how long a client may think about a question: long for a
// human, short for the memory that a client costs which left without a word.
const questionLimit = time.Hour

// Request implements [upstream.Handler]: what a backend asks goes to the one
// client whose call made it ask, never to another; what no client can be asked,
// to the users of the open screens.
func (g relay) Request(ctx context.Context, s *upstream.Server, conn upstream.Conn, c *upstream.Call, method string, params []byte) ([]byte, *jsonrpc.Error) {
	start := time.Now()
	q := &inquiry{server: s.Name(), conn: conn, method: method, params: params}
	session, result, err := g.inquire(ctx, q, c)
	result = members.Result(method).Clean(nil, result)
	g.journal.Question(session, s.Name(), method, params, result, err, start)
	return result, err
}

// inquire finds who can answer and asks there. session is nil when that is
// nobody.
func (g *Gateway) inquire(ctx context.Context, q *inquiry, c *upstream.Call) (
	session *downstream.Session, result []byte, fault *jsonrpc.Error,
) {
	switch q.method {
	case "sampling/createMessage":
		q.capability = "sampling"
	case "elicitation/create":
		q.capability = "elicitation"
	case "roots/list":
		q.capability = "roots"
	default:
		return nil, nil, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "Method not found: %s", q.method)
	}
	if own := g.taskOf(ctx, q.conn, q.params); own != nil {
		if own.hidden == nil {
			return g.askOwner(ctx, own, q)
		}
		c = &own.hidden.Call
	}
	q.params = call.Unrelated(q.params)
	q.causes, q.certain = g.calls.Causes(q.conn, c)
	var who capable
	switch {
	case q.certain:
		x := call.Newest(q.causes).Exchange
		session, who = x.Session(), x.Outer()
		if !x.Asks() {
			who = nobody{}
		}
	case len(q.causes) == 0:
		if session = g.clients.Owner(q.conn); session != nil {
			who = session
		}
	}
	switch {
	case session == nil && q.capability == "roots" && len(q.causes) == 0 && q.conn.Unit() == "":
		result, fault = g.unitedRoots(ctx, q)
		return nil, result, fault
	case session == nil:
		return g.unclaimed(ctx, q)
	}
	stateless := q.certain && call.Newest(q.causes).Exchange.Modern() != nil
	if err := able(who, q.capability, q.params); err != nil {
		asked, result, fault := g.unable(ctx, q, err)
		if stateless && who != (nobody{}) && asked == nil && fault != nil {
			call.Newest(q.causes).Lacks(lacks(who, q.capability, q.params))
		}
		return asked, result, fault
	}
	if stateless {
		result, fault = g.askStateless(ctx, q)
	} else {
		result, fault = g.askClient(ctx, session, q)
	}
	return session, result, fault
}

var errUnanswered = jsonrpc.Errorf(jsonrpc.CodeInternal, "the client gave no answer")

// askStateless puts a question to the stateless client whose calls may have made the
// server ask: the newest, or one before, if that came to its end without a question.
func (g *Gateway) askStateless(ctx context.Context, q *inquiry) ([]byte, *jsonrpc.Error) {
	defer call.Rest(q.causes)()
	for _, x := range slices.Backward(q.causes) {
		if !x.Exchange.Asks() {
			continue
		}
		reply, err := x.Exchange.Request(ctx, q.method, q.params)
		if err == nil {
			return reply.Result, nil
		}
		if errors.Is(err, downstream.ErrNoRoom) {
			g.log.Warn("Questions refused: too many calls wait for their client", "server", q.server)
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

// nobody can do nothing.
type nobody struct{}

func (nobody) Can(...string) bool { return false }

// unclaimed answers a question that belongs to no certain client.
func (g *Gateway) unclaimed(ctx context.Context, q *inquiry) (*downstream.Session, []byte, *jsonrpc.Error) {
	if q.capability == "roots" {
		result, fault := g.configuredRoots()
		return nil, result, fault
	}
	asker := registry.Asker{Server: q.server, Why: registry.AskNoCall}
	if len(q.causes) > 0 {
		asker.Why = registry.AskAmbiguous
	}
	if session, reply, ok := g.askScreens(ctx, q, asker); ok {
		return session, reply.Result, fault(reply)
	}
	if q.capability == "elicitation" {
		g.log.Warn("Elicitation cancelled: it belongs to no single client's call, and no screen is open", "server", q.server)
		return nil, []byte(`{"action":"cancel"}`), nil
	}
	g.log.Warn("Sampling refused: it belongs to no single client's call, and no screen is open", "server", q.server)
	return nil, nil, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "no client can be asked: the request belongs to no single client's call")
}

// unable answers a question whose client did not declare what it takes; why is
// the answer when nobody else can be asked either.
func (g *Gateway) unable(ctx context.Context, q *inquiry, why *jsonrpc.Error) (*downstream.Session, []byte, *jsonrpc.Error) {
	if q.capability == "roots" {
		result, fault := g.configuredRoots()
		return nil, result, fault
	}
	asker := registry.Asker{Server: q.server, Why: registry.AskNoCall}
	if x := call.Newest(q.causes); x != nil {
		asker = registry.Asker{Server: q.server, Why: registry.AskUnable, Client: x.Exchange.Client().Name, Call: subject(q.causes)}
	}
	if session, reply, ok := g.askScreens(ctx, q, asker); ok {
		return session, reply.Result, fault(reply)
	}
	return nil, nil, why
}

// subject is the tool, prompt or URI that a question's cause is about; "" where
// several may be the cause.
func subject(causes []*call.Under) string {
	if len(causes) != 1 {
		return ""
	}
	x := causes[0].Exchange
	name, ok := rawjson.String(rawjson.Get(x.Params(), "name"))
	if !ok {
		name, _ = rawjson.String(rawjson.Get(x.Params(), "uri"))
	}
	return name
}

func fault(reply jsonrpc.Reply) *jsonrpc.Error {
	if reply.Error == nil {
		return nil
	}
	return jsonrpc.ParseErrorObject(reply.Error)
}

// askClient puts a question to the client whose call made the backend ask.
func (g *Gateway) askClient(ctx context.Context, s *downstream.Session, q *inquiry) ([]byte, *jsonrpc.Error) {
	if id, ok := rawjson.String(rawjson.Get(q.params, "elicitationId")); ok && q.capability == "elicitation" {
		g.elicitations.remember(elicitation{q.server, q.conn.Unit(), id}, s)
	}
	params, forget := g.tokens.replace(q.conn, s, q.params)
	defer forget()
	if isScreen(s) {
		asker := registry.Asker{Server: q.server, Why: registry.AskNoCall}
		if x := call.Newest(q.causes); x != nil {
			asker.Why, asker.Call = registry.AskOwnCall, subject(q.causes)
		}
		params = introduce(params, asker)
	}
	var reply jsonrpc.Reply
	var err error
	if q.task != nil {
		reply, err = g.askForTask(ctx, q.task, q.method, params)
	} else {
		reply, err = ask(ctx, s, q.causes, q.method, params)
	}
	if err != nil {
		if withdrawn(ctx, err) {
			g.journal.Notification(registry.ToClient, s, q.server, "notifications/cancelled", "", rawjson.Object("method", q.method, "reason", err.Error()))
		}
		return nil, jsonrpc.Errorf(jsonrpc.CodeInternal, "the client gave no answer: %s", err)
	}
	return reply.Result, fault(reply)
}

// ask puts a backend's question to the session whose requests may have caused
// it.
func ask(ctx context.Context, s *downstream.Session, causes []*call.Under, method string, params []byte) (jsonrpc.Reply, error) {
	defer call.Rest(causes)()
	ctx, over := context.WithTimeout(ctx, questionLimit)
	defer over()
	switch {
	case len(causes) == 0:
		return s.Request(ctx, method, params)
	case len(causes) == 1:
		return causes[0].Exchange.Request(ctx, method, params)
	case s.Transport() == "http":
		return askOnAnyStream(ctx, s, causes, method, params)
	}
	ctx, cancel := outlive(ctx, causes)
	defer cancel()
	return s.Request(ctx, method, params)
}

// outlive ends when all causes of a question have ended: to which of them it
// belongs is not known. Without a cause, only parent ends it.
func outlive(parent context.Context, causes []*call.Under) (ctx context.Context, release func()) {
	ctx, cancel := context.WithCancelCause(parent)
	var left atomic.Int64
	left.Store(int64(len(causes)))
	stops := make([]func() bool, len(causes))
	for i, x := range causes {
		of := x.Exchange.Context()
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

// askOnAnyStream puts a question to an HTTP client on the stream of one of the
// requests that may have caused it, the newest first; on the next one when
// that request was answered meanwhile or its stream is gone.
func askOnAnyStream(ctx context.Context, s *downstream.Session, causes []*call.Under, method string, params []byte) (jsonrpc.Reply, error) {
	for _, x := range slices.Backward(causes) {
		reply, err := x.Exchange.Request(ctx, method, params)
		if !errors.Is(err, downstream.ErrAnswered) && !errors.Is(err, downstream.ErrNoStream) {
			return reply, err
		}
	}
	return s.Request(ctx, method, params)
}

func isScreen(s *downstream.Session) bool { return s.Transport() == ScreenTransport }

// asksUser reports whether a session is that of a screen which can ask its user.
func asksUser(s *downstream.Session) bool { return isScreen(s) && s.Can("elicitation") }

// screens are the sessions of open screens whose users can answer a question.
func (g *Gateway) screens(capability string, params []byte) (open []*downstream.Session) {
	for _, s := range g.clients.All() {
		if isScreen(s) && s.Ready() && lacks(s, capability, params) == nil {
			open = append(open, s)
		}
	}
	return open
}

// askScreens puts a question that no client can be asked to the users of all
// open screens. The first answer counts, and the others' dialogs are withdrawn.
// It reports false when there is none: no screen is open, or they closed.
func (g *Gateway) askScreens(ctx context.Context, q *inquiry, asker registry.Asker) (*downstream.Session, jsonrpc.Reply, bool) {
	open := g.screens(q.capability, q.params)
	if len(open) == 0 {
		return nil, jsonrpc.Reply{}, false
	}
	defer call.Rest(q.causes)()
	ctx, cancel := outlive(ctx, q.causes)
	defer cancel()
	ctx, over := context.WithTimeout(ctx, questionLimit)
	defer over()
	params := introduce(q.params, asker)
	type answer struct {
		from  *downstream.Session
		reply jsonrpc.Reply
		err   error
	}
	answers := make(chan answer, len(open))
	for _, s := range open {
		g.work.Go(func() {
			reply, err := s.Request(ctx, q.method, params)
			answers <- answer{s, reply, err}
		})
	}
	for range open {
		a := <-answers
		if a.err == nil && !internal(a.reply) {
			return a.from, a.reply, true
		}
		g.log.Debug("Question left open by a screen", "server", q.server, "session", a.from.ID(), "err", a.err)
	}
	return nil, jsonrpc.Reply{}, false
}

// internal reports whether a screen failed to ask its user, because it closes or
// has too much to ask already. A refusal has another code.
func internal(reply jsonrpc.Reply) bool {
	e := fault(reply)
	return e != nil && e.Code == jsonrpc.CodeInternal
}

// introduce tells a screen who asks, in place of what the server says of it.
func introduce(params []byte, asker registry.Asker) []byte {
	who, err := json.Marshal(asker)
	if err != nil { // strings only
		return params
	}
	if !rawjson.IsObject(params) {
		params = emptyResult
	}
	meta := rawjson.Get(params, "_meta")
	if !rawjson.IsObject(meta) {
		meta = emptyResult
	}
	return rawjson.SetMember(params, "_meta", rawjson.SetMember(meta, registry.AskerKey, who))
}

// capable is a session or a request that says what its client can do.
type capable interface{ Can(path ...string) bool }

// able reports why a client cannot be asked, nil when it can.
func able(c capable, capability string, params []byte) *jsonrpc.Error {
	lacking := lacks(c, capability, params)
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
	return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "the client that made the call did not declare elicitation in URL mode")
}

// lacks is the path of the capability that a question needs and the client
// did not declare; nil when it can be asked.
func lacks(c capable, capability string, params []byte) []string {
	if !c.Can(capability) {
		return []string{capability}
	}
	if capability == "sampling" && rawjson.Get(params, "tools") != nil && !c.Can("sampling", "tools") {
		return []string{"sampling", "tools"}
	}
	if mode, _ := rawjson.String(rawjson.Get(params, "mode")); capability == "elicitation" && mode == "url" && !c.Can("elicitation", "url") {
		return []string{"elicitation", "url"}
	}
	return nil
}
