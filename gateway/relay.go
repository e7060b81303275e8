package gateway

import (
	"context"
	"log/slog"
	"sync"

	"goblin/gateway/downstream"
	"goblin/gateway/jsonrpc"
	"goblin/gateway/upstream"
	"goblin/registry"
	"goblin/registry/rawjson"
)

// Ready implements [upstream.Handler]: a new connection is told what the one
// before it knew.
func (g *Gateway) Ready(ctx context.Context, s *upstream.Server, conn upstream.Conn) {
	l := g.flights.open(s.Name(), conn)
	g.tellLevel(ctx, l)
	g.restore(ctx, s.Name(), conn)
}

// Down implements [upstream.Handler].
func (g *Gateway) Down(s *upstream.Server, conn upstream.Conn) {
	g.flights.drop(conn)
	g.lapse(s.Name(), conn.Unit())
}

// Notification implements [upstream.Handler].
func (g *Gateway) Notification(s *upstream.Server, conn upstream.Conn, c *upstream.Call, method string, params []byte) {
	switch method {
	case "notifications/resources/updated":
		g.updated(s.Name(), conn.Unit(), params)
	case "notifications/message":
		g.message(s.Name(), conn, c, params)
	case "notifications/elicitation/complete":
		g.elicited(s.Name(), params)
	default:
		// A vendor's own: it goes where its cause is certain.
		if x := g.flights.cause(conn, c); x != nil {
			x.exchange.Notify("", method, params)
			return
		}
		if session := g.owner(conn); session != nil {
			session.Notify(method, params)
			return
		}
		g.log.Debug("Notification of unknown cause dropped", "server", s.Name(), "method", method)
	}
}

// owner is the session that a connection belongs to alone; nil when it is
// shared.
func (g *Gateway) owner(conn upstream.Conn) *downstream.Session {
	if conn.Unit() == "" {
		return nil
	}
	for _, c := range g.allClients() {
		if c.session.Unit() == conn.Unit() {
			return c.session
		}
	}
	return nil
}

// message delivers a log line: to the request that caused it, else to every
// session that the connection serves, each by its own level.
func (g *Gateway) message(server string, conn upstream.Conn, c *upstream.Call, params []byte) {
	level := levelOf(params)
	g.reg.Logs().Append(registry.LogRecord{
		Server: server, Source: registry.SourceMessage, Level: slogLevel(level),
		Text: messageText(params),
	})
	if x := g.flights.cause(conn, c); x != nil {
		if to := g.client(x.exchange.Session()); to != nil && level >= to.wants() {
			x.exchange.Notify("", "notifications/message", params)
		}
		return
	}
	for _, to := range g.allClients() {
		mine := conn.Unit() == "" || conn.Unit() == to.session.Unit()
		if mine && to.session.Ready() && level >= to.wants() {
			to.session.Notify("notifications/message", params)
		}
	}
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
func (g *Gateway) Request(ctx context.Context, s *upstream.Server, conn upstream.Conn, c *upstream.Call, method string, params []byte) ([]byte, *jsonrpc.Error) {
	capability := ""
	switch method {
	case "sampling/createMessage":
		capability = "sampling"
	case "elicitation/create":
		capability = "elicitation"
	case "roots/list":
		capability = "roots"
	default:
		return nil, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "Method not found: %s", method)
	}
	x := g.flights.cause(conn, c)
	session := g.owner(conn)
	if x != nil {
		session = x.exchange.Session()
	}
	if session == nil {
		return g.unasked(s.Name(), capability)
	}
	if err := able(session, capability, params); err != nil {
		if capability == "roots" {
			return g.configuredRoots()
		}
		return nil, err
	}
	if id, ok := rawjson.String(rawjson.Get(params, "elicitationId")); ok && capability == "elicitation" {
		g.elicitations.remember(s.Name(), id, session)
	}
	var reply jsonrpc.Reply
	var err error
	if x != nil {
		reply, err = x.ask(func() (jsonrpc.Reply, error) { return x.exchange.Request(ctx, method, params) })
	} else {
		reply, err = session.Request(ctx, method, params)
	}
	if err != nil {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInternal, "the client gave no answer: %s", err)
	}
	if reply.Error != nil {
		return nil, jsonrpc.ParseErrorObject(reply.Error)
	}
	return reply.Result, nil
}

// able reports why a session's client cannot be asked, nil when it can.
func able(s *downstream.Session, capability string, params []byte) *jsonrpc.Error {
	if !s.Can(capability) {
		code := jsonrpc.CodeMethodNotFound
		if capability == "elicitation" {
			code = jsonrpc.CodeInvalidParams
		}
		return jsonrpc.Errorf(code, "the client that made the call did not declare %s", capability)
	}
	if mode, _ := rawjson.String(rawjson.Get(params, "mode")); capability == "elicitation" && mode == "url" && !s.Can("elicitation", "url") {
		return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "the client that made the call did not declare elicitation in URL mode")
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
	roots := g.o.Config.Gateway.Roots
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

// elicitations remembers which session was asked to open a URL, for the
// notice that follows when the user is done there (2025-11-25, elicitation,
// URL mode).
type elicitations struct {
	mu    sync.Mutex
	asked map[elicitation]*downstream.Session
	order []elicitation
}

type elicitation struct{ server, id string }

// maxElicitations bounds how many open URL elicitations are remembered; the
// oldest are forgotten first.
const maxElicitations = 1024

func (e *elicitations) remember(server, id string, s *downstream.Session) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.asked == nil {
		e.asked = make(map[elicitation]*downstream.Session)
	}
	key := elicitation{server, id}
	if _, known := e.asked[key]; !known {
		e.order = append(e.order, key)
	}
	e.asked[key] = s
	if len(e.order) > maxElicitations {
		delete(e.asked, e.order[0])
		e.order = e.order[1:]
	}
}

func (e *elicitations) session(server, id string) *downstream.Session {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.asked[elicitation{server, id}]
}

// elicited tells the client that was asked that its user is done.
func (g *Gateway) elicited(server string, params []byte) {
	id, _ := rawjson.String(rawjson.Get(params, "elicitationId"))
	s := g.elicitations.session(server, id)
	if s == nil || s.Context().Err() != nil {
		g.log.Debug("Completed elicitation of nobody", "server", server)
		return
	}
	s.Notify("notifications/elicitation/complete", params)
}
