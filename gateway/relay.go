package gateway

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"goblin/gateway/downstream"
	"goblin/gateway/jsonrpc"
	"goblin/gateway/upstream"
	"goblin/registry"
	"goblin/registry/rawjson"
)

// relay is the gateway as backends see it: an [upstream.Handler].
type relay struct{ *Gateway }

// Opened implements [upstream.Handler].
func (g relay) Opened(s *upstream.Server, conn upstream.Conn) { g.flights.open(s, conn) }

// Ready implements [upstream.Handler]: a new connection is told what the one
// before it knew.
func (g relay) Ready(ctx context.Context, s *upstream.Server, conn upstream.Conn) {
	if l := g.flights.link(conn); l != nil {
		g.tellLevel(ctx, l)
	}
	g.reopen(ctx, s, conn)
	g.restore(ctx, s.Name(), conn)
}

// Down implements [upstream.Handler].
func (g relay) Down(s *upstream.Server, conn upstream.Conn) {
	g.flights.drop(conn)
	g.lapse(conn)
}

// Notification implements [upstream.Handler].
func (g relay) Notification(s *upstream.Server, conn upstream.Conn, c *upstream.Call, method string, params []byte) {
	switch method {
	case "notifications/resources/updated":
		if !g.current(s) {
			return // its successor watches
		}
		g.updated(s.Name(), conn, params)
	case "notifications/message":
		g.message(s.Name(), conn, c, params)
	case "notifications/elicitation/complete":
		g.elicited(s.Name(), params)
	default:
		// A vendor's own: it goes where its cause is certain.
		if x := newest(g.flights.causes(conn, c)); x != nil {
			x.at().Notify("", method, params)
			g.noted(registry.ToClient, x.at().Session(), s.Name(), method, "", params)
			return
		}
		session := g.owner(conn)
		g.noted(registry.ToClient, session, s.Name(), method, "", params)
		if session != nil {
			session.Notify(method, params)
			return
		}
		g.log.Debug("Notification of unknown cause dropped", "server", s.Name(), "method", method)
	}
}

// current reports whether a server was not replaced since.
func (g *Gateway) current(s *upstream.Server) bool {
	b := g.server(s.Name())
	return b != nil && b.Server == s
}

// newest is the last of the flights; nil for none.
func newest(all []*flight) *flight {
	if len(all) == 0 {
		return nil
	}
	return all[len(all)-1]
}

// owner is the session that a connection belongs to alone; nil when it is
// shared.
func (g *Gateway) owner(conn upstream.Conn) *downstream.Session {
	if conn.Unit() == "" {
		return nil
	}
	for _, c := range g.allClients() {
		if c.session.Unit() == conn.Unit() && c.session.Protocol() != "" {
			return c.session
		}
	}
	return nil // or a stateless client's, which nothing can be sent to
}

// message delivers a log line: to the request that caused it, else to every
// session that the connection serves, each by its own level. Stateless clients
// get nothing but what their requests caused.
func (g *Gateway) message(server string, conn upstream.Conn, c *upstream.Call, params []byte) {
	level := levelOf(params)
	g.reg.Logs().Append(registry.LogRecord{
		Time: time.Now(), Server: server, Source: registry.SourceMessage, Level: slogLevel(level),
		Text: g.mask.String(messageText(params)),
	})
	if x := newest(g.flights.causes(conn, c)); x != nil {
		at := x.at()
		if to := g.client(at.Session()); to != nil && level >= to.wantsFor(at) {
			at.Notify("", "notifications/message", params)
			g.noted(registry.ToClient, to.session, server, "notifications/message", "", params)
		}
		return
	}
	var heard []receiver
	for _, to := range g.allClients() {
		mine := conn.Unit() == "" || conn.Unit() == to.session.Unit()
		if mine && !conn.Info().Second && to.session.Ready() && level >= to.wants() {
			to.session.Notify("notifications/message", params)
			heard = append(heard, receiver{holder: holder{session: to.session}})
		}
	}
	g.announced(server, "notifications/message", "", params, heard)
}

// messageText is a log line as the journal shows it.
func messageText(params []byte) string {
	data := rawjson.Get(params, "data")
	text, ok := rawjson.String(data)
	if !ok {
		text = string(data)
	}
	if logger, _ := rawjson.String(rawjson.Get(params, "logger")); logger != "" {
		text = logger + ": " + text
	}
	return text
}

func slogLevel(l logLevel) slog.Level {
	switch {
	case l <= 0:
		return slog.LevelDebug
	case l <= 2:
		return slog.LevelInfo
	case l == 3:
		return slog.LevelWarn
	default:
		return slog.LevelError
	}
}

// Request implements [upstream.Handler]: what a backend asks goes to the one
// client whose call made it ask, never to another.
func (g relay) Request(ctx context.Context, s *upstream.Server, conn upstream.Conn, c *upstream.Call, method string, params []byte) ([]byte, *jsonrpc.Error) {
	start := time.Now()
	session, result, err := g.question(ctx, s, conn, c, method, params)
	g.asked(session, s.Name(), method, params, result, err, start)
	return result, err
}

// question finds whom a backend asks and asks there. session is nil when that
// is nobody.
func (g relay) question(ctx context.Context, s *upstream.Server, conn upstream.Conn, c *upstream.Call, method string, params []byte) (
	session *downstream.Session, result []byte, fault *jsonrpc.Error,
) {
	capability := ""
	switch method {
	case "sampling/createMessage":
		capability = "sampling"
	case "elicitation/create":
		capability = "elicitation"
	case "roots/list":
		capability = "roots"
	default:
		return nil, nil, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "Method not found: %s", method)
	}
	causes := g.flights.causes(conn, c)
	session = g.owner(conn)
	if x := newest(causes); x != nil {
		session = x.at().Session()
		if x.held != nil {
			result, fault = g.hold(ctx, s.Name(), causes, x.held, capability, method, params)
			return session, result, fault
		}
	}
	if session == nil {
		result, fault = g.unasked(s.Name(), capability)
		return nil, result, fault
	}
	if err := able(session, capability, params); err != nil {
		if capability == "roots" {
			result, fault = g.configuredRoots()
			return nil, result, fault
		}
		return nil, nil, err
	}
	if id, ok := rawjson.String(rawjson.Get(params, "elicitationId")); ok && capability == "elicitation" {
		g.elicitations.remember(s.Name(), id, session)
	}
	params, forget := g.tokens.replace(conn, params)
	defer forget()
	reply, err := ask(ctx, session, causes, method, params)
	if err != nil {
		if withdrawn(ctx, err) {
			g.noted(registry.ToClient, session, s.Name(), "notifications/cancelled", "", object("method", method, "reason", err.Error()))
		}
		return session, nil, jsonrpc.Errorf(jsonrpc.CodeInternal, "the client gave no answer: %s", err)
	}
	if reply.Error != nil {
		return session, nil, jsonrpc.ParseErrorObject(reply.Error)
	}
	return session, reply.Result, nil
}

// ask puts a backend's question to the session whose requests may have caused
// it. A human may take minutes: the time-outs of these requests rest, and
// their slots are free for others meanwhile.
func ask(ctx context.Context, s *downstream.Session, causes []*flight, method string, params []byte) (jsonrpc.Reply, error) {
	for _, x := range causes {
		x.asked.Store(true)
		x.pause()
		defer x.resume()
		x.land()
	}
	ctx, over := context.WithTimeout(ctx, questionLimit)
	defer over()
	switch {
	case len(causes) == 0:
		return s.Request(ctx, method, params)
	case len(causes) == 1:
		return causes[0].at().Request(ctx, method, params)
	case s.Transport() == "http":
		return askOnAnyStream(ctx, s, causes, method, params)
	}
	// Which request it belongs to is not known: it is void when all of them
	// have ended, not when one has.
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var left atomic.Int64
	left.Store(int64(len(causes)))
	for _, x := range causes {
		of := x.at().Context()
		defer context.AfterFunc(of, func() {
			if left.Add(-1) == 0 {
				cancel(context.Cause(of))
			}
		})()
	}
	return s.Request(ctx, method, params)
}

// questionLimit is how long a client may think about a question: long for a
// human, short for the memory that a client costs which left without a word.
const questionLimit = time.Hour

// askOnAnyStream puts a question to an HTTP client on the stream of one of the
// requests that may have caused it, the newest first; on the next one when
// that request was answered meanwhile or its stream is gone.
func askOnAnyStream(ctx context.Context, s *downstream.Session, causes []*flight, method string, params []byte) (jsonrpc.Reply, error) {
	for _, x := range slices.Backward(causes) {
		reply, err := x.at().Request(ctx, method, params)
		if !errors.Is(err, downstream.ErrAnswered) && !errors.Is(err, downstream.ErrNoStream) {
			return reply, err
		}
	}
	return s.Request(ctx, method, params)
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

// unasked answers a backend whose question belongs to no certain client.
func (g *Gateway) unasked(server, capability string) ([]byte, *jsonrpc.Error) {
	switch capability {
	case "roots":
		return g.configuredRoots()
	case "elicitation":
		g.log.Warn("Elicitation cancelled: it belongs to no single client's call", "server", server)
		return []byte(`{"action":"cancel"}`), nil
	default:
		g.log.Warn("Sampling refused: it belongs to no single client's call", "server", server)
		return nil, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "no client can be asked: the request belongs to no single client's call")
	}
}

// configuredRoots is gateway.roots, for backends that ask when no client can
// be asked.
func (g *Gateway) configuredRoots() ([]byte, *jsonrpc.Error) {
	roots := *g.roots.Load()
	if len(roots) == 0 {
		return nil, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "no client can be asked for roots, and gateway.roots is empty")
	}
	out := []byte(`{"roots":[`)
	for i, r := range roots {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, `{"uri":`...)
		out = rawjson.AppendString(out, r.URI)
		if r.Name != "" {
			out = append(out, `,"name":`...)
			out = rawjson.AppendString(out, r.Name)
		}
		out = append(out, '}')
	}
	return append(out, "]}"...), nil
}
