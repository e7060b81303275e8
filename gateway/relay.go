package gateway

import (
	"context"
	"log/slog"
	"slices"

	"goblin/gateway/call"
	"goblin/gateway/downstream"
	"goblin/gateway/upstream"
	"goblin/registry"
)

// relay is the gateway as backends see it: an [upstream.Handler].
type relay struct{ *Gateway }

// Opened implements [upstream.Handler].
func (g relay) Opened(s *upstream.Server, conn upstream.Conn) {
	g.calls.Open(s, conn)
	g.levels.opened(s.Name(), conn)
}

// Ready implements [upstream.Handler]: a new connection is told what the one
// before it knew.
func (g relay) Ready(ctx context.Context, s *upstream.Server, conn upstream.Conn) {
	if l := g.levels.get(conn); l != nil {
		g.tellLevel(ctx, l)
	}
	g.reopen(ctx, s, conn)
	g.restore(ctx, s.Name(), conn)
}

// Down implements [upstream.Handler].
func (g relay) Down(s *upstream.Server, conn upstream.Conn) {
	g.calls.Close(conn)
	g.levels.closed(conn)
	g.tasks.drop(conn)
	g.lapse(conn)
}

// Notification implements [upstream.Handler].
func (g relay) Notification(s *upstream.Server, conn upstream.Conn, c *upstream.Call, method string, params []byte) {
	c, params, done := g.taskNotified(conn, c, method, params)
	if done {
		return
	}
	switch method {
	case "notifications/resources/updated":
		if !g.current(s) {
			return // its successor watches
		}
		g.updated(s.Name(), conn, params)
	case "notifications/message":
		g.message(s.Name(), conn, c, params)
	case "notifications/elicitation/complete":
		g.elicited(s.Name(), conn, c, params)
	case "notifications/tasks":
		// Nobody was acknowledged to hear of tasks by listens: clients ask.
	case "notifications/progress":
		// Of a call that is over: its token, ours, means something else to
		// every client.
	default:
		// A vendor's own: it goes where its cause is certain.
		if causes, certain := g.calls.Causes(conn, c); certain {
			for _, x := range slices.Backward(causes) { // one that is answered meanwhile is none
				at := x.Exchange
				if mark, sent := at.Relay(s.Name(), "", method, params); sent {
					call.Behind(causes, mark)
					g.journal.Notification(registry.ToClient, at.Session(), s.Name(), method, "", params)
					return
				}
			}
			return
		}
		session := g.owner(conn)
		g.journal.Notification(registry.ToClient, session, s.Name(), method, "", params)
		if session != nil {
			session.Relay(s.Name(), method, params)
			return
		}
		g.log.Debug("Notification of unknown cause dropped", "server", s.Name(), "method", method)
	}
}

// current reports whether a server was not replaced since.
func (g *Gateway) current(s *upstream.Server) bool {
	b := g.Servers.Get(s.Name())
	return b != nil && b.Server == s
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
