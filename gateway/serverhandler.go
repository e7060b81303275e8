package gateway

import (
	"context"
	"slices"
	"time"

	"goblin/gateway/downstream"
	"goblin/gateway/inflight"
	"goblin/gateway/jsonrpc"
	"goblin/gateway/serverreq"
	"goblin/gateway/tracing"
	"goblin/gateway/upstream"
	"goblin/registry"
	"goblin/registry/rawjson"
)

type serverHandler struct{ *Gateway }

// ConnOpened implements [upstream.Handler].
func (g serverHandler) ConnOpened(s *upstream.Server, conn upstream.Conn) {
	g.calls.Open(s, conn)
	g.Notifier.Connected(s, conn)
}

// ConnReady implements [upstream.Handler].
func (g serverHandler) ConnReady(ctx context.Context, s *upstream.Server, conn upstream.Conn) {
	g.relays.compare()
	g.Notifier.Restore(ctx, s, conn)
}

// ConnClosed implements [upstream.Handler].
func (g serverHandler) ConnClosed(s *upstream.Server, conn upstream.Conn) {
	g.calls.Close(conn)
	g.tasks.Drop(conn)
	g.ask.Disconnected(conn)
	g.Notifier.Disconnected(conn)
}

// HandleNotification implements [upstream.Handler].
func (g serverHandler) HandleNotification(s *upstream.Server, conn upstream.Conn, c *upstream.Call, method string, params []byte) {
	c, params, done := g.tasks.HandleNotification(conn, c, method, params)
	if done {
		return
	}
	switch method {
	case "notifications/resources/updated":
		g.Notifier.ResourceUpdated(s, conn, params)
	case "notifications/message":
		g.Notifier.LogMessage(s.Name(), conn, c, params)
	case "notifications/elicitation/complete":
		g.ask.NotifyElicitationDone(s.Name(), conn, c, params)
	case "notifications/tasks":
		// Clients poll tasks; listens don't offer them.
	case "notifications/progress":
		// The call has finished. Its token is Goblin's own.
	default:
		// Deliver others only if their cause is certain.
		if causes, certain := g.calls.Candidates(conn, c); certain {
			for _, x := range slices.Backward(causes) { // skips answered calls
				at := x.ClientRequest
				params := inflight.RewriteNotification(g.reg, g.Views.For(at), s.Name(), params)
				if mark, sent := at.Relay(s.Name(), "", method, params); sent {
					inflight.DelayAfterAnswers(causes, mark)
					g.journal.RecordCausedNotification(at, s.Name(), method, "", params)
					return
				}
			}
			return
		}
		session := g.clients.Owner(conn)
		seen := g.Views.ForSession(session)
		params = inflight.RewriteNotification(g.reg, seen, s.Name(), params)
		g.journal.RecordNotification(registry.ToClient, session, s.Name(), method, "", params)
		if session != nil && seen.HasServer(s.Name()) {
			session.Relay(s.Name(), method, params)
			return
		}
		g.log.Debug("notification dropped: unknown cause", "server", s.Name(), "method", method)
	}
}

// HandleRequest implements [upstream.Handler]. A request of a task goes to the task's
// client, others to the client that caused them.
func (g serverHandler) HandleRequest(ctx context.Context, s *upstream.Server, conn upstream.Conn, c *upstream.Call, method string, params []byte) ([]byte, *jsonrpc.Error) {
	start := time.Now()
	var cause *downstream.Request
	var call *tracing.Call
	if causes, certain := g.calls.Candidates(conn, c); certain {
		newest := inflight.Newest(causes)
		cause, call = newest.ClientRequest, newest.Trace
	}
	span := g.o.Tracer.StartServerRequest(call, tracing.Target{Server: s.Config(), Protocol: conn.Info().Protocol}, method, params)
	session, result, err := g.question(ctx, s, conn, c, method, span.Params(params))
	span.End(session, err)
	result = rawjson.Result(method).Clean(nil, result)
	g.journal.RecordServerRequest(cause, session, s.Name(), method, params, result, err, start, jsonrpc.RelayedIDsOf(ctx))
	return result, err
}

func (g serverHandler) question(ctx context.Context, server *upstream.Server, conn upstream.Conn, c *upstream.Call, method string, params []byte) (
	*downstream.Session, []byte, *jsonrpc.Error,
) {
	q, err := serverreq.ParseRequest(server, conn, method, params)
	if err != nil {
		return nil, nil, err
	}
	if id, ok := rawjson.String(inflight.TaskID(params)); ok {
		if own := g.tasks.ForRequest(ctx, conn, id); own != nil {
			if c = own.GatewayCall(); c == nil {
				return g.tasks.Ask(ctx, own, q)
			}
		}
	}
	return g.ask.Route(ctx, q, c)
}
