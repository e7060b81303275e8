package gateway

import (
	"context"
	"errors"
	"slices"
	"time"

	"goblin/gateway/ask"
	"goblin/gateway/call"
	"goblin/gateway/downstream"
	"goblin/gateway/jsonrpc"
	"goblin/gateway/upstream"
	"goblin/registry"
	"goblin/registry/rawjson"
)

// streamLook is how often the gateway looks whether a client has opened a
// stream on which a task's question can be asked.
const streamLook = time.Second

// taskNotified handles what a server says about a task of 2025-11-25. For
// what is left to be handled it gives the call that it belongs to, and the
// params without what concerns the task.
func (g relay) taskNotified(conn upstream.Conn, c *upstream.Call, method string, params []byte) (_ *upstream.Call, _ []byte, done bool) {
	var name []byte
	switch method {
	case "notifications/progress":
		// Of a task, or late: nobody knows its token any more.
		g.tasks.reported(conn, params)
		return c, params, true
	case "notifications/tasks/status":
		done = true
		name = rawjson.Get(params, "taskId")
	default:
		name = call.Related(params)
	}
	original, ok := rawjson.String(name)
	if !ok {
		return c, call.Unrelated(params), done
	}
	n := taskNotice{original, method, params}
	own, kept := g.tasks.take(conn, n)
	switch {
	case own == nil: // a task of nobody's, or another server's
		return c, call.Unrelated(params), done || kept
	case own.hidden != nil && !done:
		return &own.hidden.Call, call.Unrelated(params), false
	}
	own.out.Lock()
	defer own.out.Unlock()
	g.deliverTask(own, n)
	return c, params, true
}

// deliverTask hands a notification to whom the task concerns. own.out is held
// unless the task is hidden.
func (g *Gateway) deliverTask(own *task, n taskNotice) {
	if n.method == "notifications/tasks/status" {
		g.tasks.note(own, n.params)
		if own.hidden != nil {
			select {
			case own.news <- struct{}{}:
			default:
			}
			return
		}
		g.tellTask(own, n.method, rename(n.params, own.id))
		return
	}
	if own.hidden != nil {
		own.hidden.Exchange.Relay(own.server, "", n.method, call.Unrelated(n.params))
		return
	}
	if n.method == "notifications/message" {
		level := downstream.LevelOf(n.params)
		g.journal.Log(own.server, level.Slog(), n.params)
		if level < own.owner.Level() {
			return
		}
	}
	g.tellTask(own, n.method, n.params)
}

// tellTask sends a notification to a task's owner: on the stream of a request
// for its result, else on the session's.
func (g *Gateway) tellTask(own *task, method string, params []byte) {
	params = call.Relate(params, own.original, own.id)
	f, _ := g.tasks.attending(own)
	state := method == "notifications/tasks/status" // of which the newest counts
	switch key := "task:" + own.id; {
	case f != nil && state:
		f.Exchange.Merge(key, method, params)
	case f != nil:
		f.Exchange.Relay(own.server, "", method, params)
	case state:
		own.owner.Merge(key, method, params)
	default:
		own.owner.Relay(own.server, method, params)
	}
	g.journal.Notification(registry.ToClient, own.owner, own.server, method, own.id, params)
}

// tasksOpen reports whether somebody waits for a task of a server.
func (g *Gateway) tasksOpen(s *upstream.Server) bool {
	return slices.ContainsFunc(g.calls.Links(), func(l *call.Link) bool { return l.Server == s && g.tasks.busy(l.Conn) })
}

// taskOf finds the task that a question belongs to, nil for none.
func (g *Gateway) taskOf(ctx context.Context, conn upstream.Conn, params []byte) *task {
	original, ok := rawjson.String(call.Related(params))
	if !ok {
		return nil
	}
	return g.tasks.await(ctx, conn, original)
}

// askOwner puts a task's question to the client that owns the task.
func (g *Gateway) askOwner(ctx context.Context, own *task, q *ask.Question) (*downstream.Session, []byte, *jsonrpc.Error) {
	q.Params = call.Relate(q.Params, own.original, own.id)
	q.Ask = func(ctx context.Context, method string, params []byte) (jsonrpc.Reply, error) {
		return g.askForTask(ctx, own, method, params)
	}
	s, result, fault := g.ask.PutTo(ctx, q, own.owner)
	return s, call.Relate(result, own.id, own.original), fault
}

// askForTask asks on the stream of a request for the task's result, else on
// the session's. A client that has neither open will come for the result, when
// it sees that its task wants something.
func (g *Gateway) askForTask(ctx context.Context, own *task, method string, params []byte) (jsonrpc.Reply, error) {
	ctx, over := context.WithTimeout(ctx, ask.Limit)
	defer over()
	look := time.NewTicker(streamLook)
	defer look.Stop()
	for {
		f, changed := g.tasks.attending(own)
		var causes []*call.Under
		if f != nil {
			causes = []*call.Under{f}
		}
		if f != nil || own.owner.Reachable() {
			reply, err := ask.Ask(ctx, own.owner, causes, method, params)
			if !errors.Is(err, downstream.ErrNoStream) && !errors.Is(err, downstream.ErrAnswered) {
				return reply, err
			}
		}
		select {
		case <-changed:
		case <-look.C:
		case <-ctx.Done():
			return jsonrpc.Reply{}, context.Cause(ctx)
		case <-own.owner.Context().Done():
			return jsonrpc.Reply{}, context.Cause(own.owner.Context())
		}
	}
}
