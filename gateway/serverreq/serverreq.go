// Package serverreq routes requests of servers (elicitation, sampling, roots) to a client
// or user.
//
// It must not know tasks, nor how calls are made; whose call a question belongs to is
// told by package call. Put and PutTo wait for people, for an hour at most; the others
// do not wait.
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

// Options configure an Asker.
type Options struct {
	Journal *telemetry.Journal
	Logger  *slog.Logger
	Calls   *inflight.Table
	Clients *inflight.Clients
	Roots   []config.Root // of the configuration
}

// Router knows who can be asked.
type Router struct {
	o            Options
	roots        atomic.Pointer[[]config.Root]
	elicitations elicitations
	tokens       tokens
	rootNews     rootNews
	screened     atomic.Int64 // screens whose users can be asked
	work         sync.WaitGroup
}

// New makes an Asker.
func New(o Options) *Router {
	a := &Router{o: o}
	a.roots.Store(&o.Roots)
	return a
}

// Wait waits for what goes on after the questions.
func (a *Router) Wait() { a.work.Wait() }

// Initialized notes a session whose handshake is over.
func (a *Router) Initialized(s *downstream.Session) {
	if asksUser(s) {
		a.screened.Add(1)
	}
	if rooted(s) {
		a.work.Go(func() {
			select {
			case <-s.Initialized():
				a.RootsChanged(s)
			case <-s.Context().Done():
			}
		})
	}
}

// SessionClosed forgets a session that has ended.
func (a *Router) SessionClosed(s *downstream.Session) {
	a.elicitations.forget(s)
	a.RootsChanged(s)
	if asksUser(s) {
		a.screened.Add(-1)
	}
}

// SetRoots takes over the roots of an edited configuration.
func (a *Router) SetRoots(roots []config.Root) {
	if was := a.roots.Swap(&roots); reflect.DeepEqual(*was, roots) {
		return
	}
	a.tellOf(func(n *rootNews) { n.config = true })
}

var empty = []byte("{}")

// Question is a server's request to a client (elicitation, sampling or roots), on its way
// to one that can answer.
type Question struct {
	Server string
	Conn   upstream.Conn
	Method string
	Params []byte
	// Ask puts the question to the client of PutTo; nil for the stream of a request.
	Ask func(ctx context.Context, method string, params []byte) (jsonrpc.Reply, error)

	capability string // that a client must have declared
	roots      config.RootsFrom
	// causes are the requests that may have made the server ask, the newest
	// last. certain says that they are one client's.
	causes  []*inflight.Request
	certain bool
}

// capabilities are those that a client must have declared to be asked.
var capabilities = map[string]string{
	"sampling/createMessage": "sampling", "elicitation/create": "elicitation", "roots/list": "roots",
}

// ParseQuestion makes a question of a server's request; the error is its answer otherwise.
func ParseQuestion(server *upstream.Server, conn upstream.Conn, method string, params []byte) (*Question, *jsonrpc.Error) {
	cfg := server.Config()
	q := &Question{Server: server.Name(), Conn: conn, Method: method, Params: params, capability: capabilities[method], roots: cfg.RootsSource()}
	if q.capability == "" || q.capability == "roots" && q.roots == config.NoRoots {
		return nil, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "Method not found: %s", method)
	}
	if q.capability == "elicitation" && !OpensWebPage(params) {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "%s", NoWebPage)
	}
	return q, nil
}

// AnswerTimeout is how long a client may think about a question: long for a
// human, short for the memory that a client costs which left without a word.
const AnswerTimeout = time.Hour

// Route puts a question to the one client whose call made the server ask, never to
// another; what no client can be asked, to the users of the open screens. c is the
// call that it came with, nil where nothing tells. session is the client that
// answered, nil when that was nobody.
func (a *Router) Route(ctx context.Context, q *Question, c *upstream.Call) (
	session *downstream.Session, result []byte, fault *jsonrpc.Error,
) {
	q.Params = inflight.DropTaskID(q.Params)
	if q.capability != "roots" || c != nil || !upstream.IsUnprompted(ctx) {
		q.causes, q.certain = a.o.Calls.Candidates(q.Conn, c)
	}
	session, who := a.client(q)
	switch {
	case session == nil && q.capability == "roots" && q.roots == config.ClientRoots && len(q.causes) == 0 && (q.Conn.Unit() == "" || upstream.InProject(q.Conn.Unit())):
		result, fault = a.unitedRoots(ctx, q)
		return nil, result, fault
	case session == nil:
		return a.unclaimed(ctx, q)
	}
	stateless := q.certain && inflight.Newest(q.causes).Exchange.Modern() != nil
	if err := able(who, q.capability, q.Params); err != nil {
		asked, result, fault := a.unable(ctx, q, err)
		if stateless && who != (nobody{}) && asked == nil && fault != nil {
			inflight.Newest(q.causes).RequireCapability(MissingCapability(who, q.capability, q.Params))
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

// client chooses the clients for a question, and tells what they can answer; nil for none.
func (a *Router) client(q *Question) (session *downstream.Session, who Capabilities) {
	switch {
	case q.capability == "roots" && q.roots == config.ConfigRoots && !q.certain:
		// Nobody's call made the server ask: none of its clients is to tell it.
	case q.certain:
		x := inflight.Newest(q.causes).Exchange
		if !x.CanAsk() {
			return x.Session(), nobody{}
		}
		return x.Session(), x.Outer()
	case len(q.causes) == 0:
		session = a.o.Clients.Owner(q.Conn)
		if session != nil && (q.capability != "roots" || !session.Anonymous()) {
			return session, session
		}
	}
	return nil, nil
}

// RouteTo puts a question to a session, by q.Ask, or to the users of the open screens if
// the client did not declare what it takes.
func (a *Router) RouteTo(ctx context.Context, q *Question, s *downstream.Session) (*downstream.Session, []byte, *jsonrpc.Error) {
	if err := able(s, q.capability, q.Params); err != nil {
		return a.unable(ctx, q, err)
	}
	result, fault := a.askClient(ctx, s, q)
	return s, result, fault
}

var errUnanswered = jsonrpc.Errorf(jsonrpc.CodeInternal, "the client gave no answer")

// askStateless puts a question to the stateless client whose calls may have made the
// server ask: the newest, or one before, if that came to its end without a question.
func (a *Router) askStateless(ctx context.Context, q *Question) ([]byte, *jsonrpc.Error) {
	defer inflight.PauseTimeouts(q.causes)()
	for _, x := range slices.Backward(q.causes) {
		if !x.Exchange.CanAsk() {
			continue
		}
		reply, err := x.Exchange.Ask(ctx, q.Method, q.Params)
		if err == nil {
			return reply.Result, nil
		}
		if errors.Is(err, downstream.ErrNoRoom) {
			a.o.Logger.Warn("Questions refused: too many calls wait for their client", "server", q.Server)
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

func (nobody) HasCapability(...string) bool { return false }

// unclaimed answers a question that belongs to no certain client.
func (a *Router) unclaimed(ctx context.Context, q *Question) (*downstream.Session, []byte, *jsonrpc.Error) {
	asker := registry.Asker{Server: q.Server, Why: registry.AskNoCall}
	if len(q.causes) > 0 {
		asker.Why = registry.AskAmbiguous
	}
	session, result, fault, ok := a.askOthers(ctx, q, asker)
	if ok {
		return session, result, fault
	}
	if q.capability == "elicitation" {
		a.o.Logger.Warn("Elicitation cancelled: it belongs to no single client's call, and no screen is open", "server", q.Server)
		return nil, []byte(`{"action":"cancel"}`), nil
	}
	a.o.Logger.Warn("Sampling refused: it belongs to no single client's call, and no screen is open", "server", q.Server)
	return nil, nil, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "no client can be asked: the request belongs to no single client's call")
}

// unable answers a question whose client did not declare what it takes; why is
// the answer when nobody else can be asked either.
func (a *Router) unable(ctx context.Context, q *Question, why *jsonrpc.Error) (*downstream.Session, []byte, *jsonrpc.Error) {
	asker := registry.Asker{Server: q.Server, Why: registry.AskNoCall}
	if x := inflight.Newest(q.causes); x != nil {
		asker = registry.Asker{Server: q.Server, Why: registry.AskUnable, Client: x.Exchange.ClientName(), Call: subject(q.causes)}
	}
	session, result, fault, ok := a.askOthers(ctx, q, asker)
	if !ok {
		fault = why
	}
	return session, result, fault
}

// subject is the tool, prompt or URI that a question's cause is about; "" where
// several may be the cause.
func subject(causes []*inflight.Request) string {
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
func (a *Router) askClient(ctx context.Context, s *downstream.Session, q *Question) ([]byte, *jsonrpc.Error) {
	if q.capability == "roots" {
		a.rootNews.give(q.Conn, s)
	}
	if id, ok := rawjson.String(rawjson.Get(q.Params, "elicitationId")); ok && q.capability == "elicitation" {
		a.elicitations.remember(elicitation{q.Server, q.Conn.Unit(), id}, s)
	}
	params, forget := a.tokens.replace(q.Conn, s, q.Params)
	defer forget()
	if s.IsScreen() {
		asker := registry.Asker{Server: q.Server, Why: registry.AskNoCall}
		if x := inflight.Newest(q.causes); x != nil {
			asker.Why, asker.Call = registry.AskOwnCall, subject(q.causes)
		}
		params = introduce(params, asker)
	}
	var reply jsonrpc.Reply
	var err error
	if q.Ask != nil {
		reply, err = q.Ask(ctx, q.Method, params)
	} else {
		reply, err = Ask(ctx, s, q.causes, q.Method, params)
	}
	if err != nil {
		if withdrawn(ctx, err) {
			a.o.Journal.Notification(registry.ToClient, s, q.Server, "notifications/cancelled", "", rawjson.Object("method", q.Method, "reason", err.Error()))
		}
		return nil, jsonrpc.Errorf(jsonrpc.CodeInternal, "the client gave no answer: %s", err)
	}
	return reply.Result, fault(reply)
}

// Ask puts a backend's question to the session whose requests may have caused
// it.
func Ask(ctx context.Context, s *downstream.Session, causes []*inflight.Request, method string, params []byte) (jsonrpc.Reply, error) {
	defer inflight.PauseTimeouts(causes)()
	ctx, over := context.WithTimeout(ctx, AnswerTimeout)
	defer over()
	switch {
	case len(causes) == 0:
		return s.Ask(ctx, method, params)
	case len(causes) == 1:
		return causes[0].Exchange.Ask(ctx, method, params)
	case s.Transport() == "http":
		return askOnAnyStream(ctx, s, causes, method, params)
	}
	ctx, cancel := outlive(ctx, causes)
	defer cancel()
	return s.Ask(ctx, method, params)
}

// outlive ends when all causes of a question have ended: to which of them it
// belongs is not known. Without a cause, only parent ends it.
func outlive(parent context.Context, causes []*inflight.Request) (ctx context.Context, release func()) {
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
func askOnAnyStream(ctx context.Context, s *downstream.Session, causes []*inflight.Request, method string, params []byte) (jsonrpc.Reply, error) {
	for _, x := range slices.Backward(causes) {
		reply, err := x.Exchange.Ask(ctx, method, params)
		if !errors.Is(err, downstream.ErrAnswered) && !errors.Is(err, downstream.ErrNoStream) {
			return reply, err
		}
	}
	return s.Ask(ctx, method, params)
}

// asksUser reports whether a session is that of a screen which can ask its user.
func asksUser(s *downstream.Session) bool { return s.IsScreen() && s.HasCapability("elicitation") }

// screens are the sessions of open screens whose users can answer a question.
func (a *Router) screens(capability string, params []byte) (open []*downstream.Session) {
	for _, s := range a.o.Clients.All() {
		if s.IsScreen() && s.Ready() && MissingCapability(s, capability, params) == nil {
			open = append(open, s)
		}
	}
	return open
}

// askOthers answers a question that no client can be asked, of roots by those of the
// configuration, others by the users of all open screens. The first answer counts, and
// the others' dialogs are withdrawn. It is not ok when there is none: no screen is
// open, or they closed.
func (a *Router) askOthers(ctx context.Context, q *Question, asker registry.Asker) (
	from *downstream.Session, result []byte, refusal *jsonrpc.Error, ok bool,
) {
	if q.capability == "roots" {
		result, refusal = a.configuredRoots(q.Conn)
		return nil, result, refusal, true
	}
	open := a.screens(q.capability, q.Params)
	if len(open) == 0 {
		return nil, nil, nil, false
	}
	defer inflight.PauseTimeouts(q.causes)()
	ctx, cancel := outlive(ctx, q.causes)
	defer cancel()
	ctx, over := context.WithTimeout(ctx, AnswerTimeout)
	defer over()
	params := introduce(q.Params, asker)
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
		// A screen that closes, or has too much to ask already, says so by this code.
		if refusal = fault(got.reply); got.err == nil && (refusal == nil || refusal.Code != jsonrpc.CodeInternal) {
			return got.from, got.reply.Result, refusal, true
		}
		a.o.Logger.Debug("Question left open by a screen", "server", q.Server, "session", got.from.ID(), "err", got.err)
	}
	return nil, nil, nil, false
}

// introduce names the asking server to a screen, in place of the server's own words.
func introduce(params []byte, asker registry.Asker) []byte {
	who, err := json.Marshal(asker)
	if err != nil { // strings only
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

// Capabilities is a session or a request that says what its client can do.
type Capabilities interface{ HasCapability(path ...string) bool }

// able reports why a client cannot be asked, nil when it can.
func able(c Capabilities, capability string, params []byte) *jsonrpc.Error {
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

// MissingCapability is the path of the capability that a question needs and the client
// did not declare; nil when it can be asked.
func MissingCapability(c Capabilities, capability string, params []byte) []string {
	if !c.HasCapability(capability) {
		return []string{capability}
	}
	if capability == "sampling" && rawjson.Get(params, "tools") != nil && !c.HasCapability("sampling", "tools") {
		return []string{"sampling", "tools"}
	}
	if mode, _ := rawjson.String(rawjson.Get(params, "mode")); capability == "elicitation" {
		switch url := c.HasCapability("elicitation", "url"); {
		case mode == "url" && !url:
			return []string{"elicitation", "url"}
		case mode != "url" && url && !c.HasCapability("elicitation", "form"): // {} alone stands for forms
			return []string{"elicitation", "form"}
		}
	}
	return nil
}
