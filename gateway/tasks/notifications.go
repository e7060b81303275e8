package tasks

import (
	"context"
	"errors"
	"slices"
	"time"

	"goblin/gateway/downstream"
	"goblin/gateway/inflight"
	"goblin/gateway/jsonrpc"
	"goblin/gateway/serverreq"
	"goblin/gateway/upstream"
	"goblin/registry"
	"goblin/registry/rawjson"
)

// streamPollInterval is how often askForTask checks whether the client has opened a stream.
const streamPollInterval = time.Second

// HandleNotification handles what a server says about a task of 2025-11-25. If not done, the
// caller handles the notification with the returned call and params, from which the
// task was removed.
func (t *Tasks) HandleNotification(conn upstream.Conn, c *upstream.Call, method string, params []byte) (_ *upstream.Call, _ []byte, done bool) {
	var name []byte
	switch method {
	case "notifications/progress":
		// Of a task, or late: nobody knows its token any more.
		t.handleProgress(conn, params)
		return c, params, true
	case "notifications/resources/updated": // for all who watch it, whatever the server did it for
		return c, inflight.DropTaskID(params), false
	case "notifications/tasks/status":
		done = true
		name = rawjson.Get(params, "taskId")
	default:
		name = inflight.TaskID(params)
	}
	original, ok := rawjson.String(name)
	if !ok {
		return c, inflight.DropTaskID(params), done
	}
	n := taskNotice{original, method, params}
	own, kept := t.matchTask(conn, n)
	switch {
	case own == nil: // a task of nobody's, or another server's
		return c, inflight.DropTaskID(params), done || kept
	case own.gatewayCall != nil && !done:
		return &own.gatewayCall.Call, inflight.DropTaskID(params), false
	}
	own.deliverMu.Lock()
	defer own.deliverMu.Unlock()
	t.deliver(own, n)
	return c, params, true
}

// deliver hands a notification to the owner of the task. own.deliverMu is held
// unless the task is hidden.
func (t *Tasks) deliver(own *Task, n taskNotice) {
	if n.method == "notifications/tasks/status" {
		t.updateState(own, n.params)
		if own.gatewayCall != nil {
			select {
			case own.statusChanged <- struct{}{}:
			default:
			}
			return
		}
		t.notifyOwner(own, n.method, replaceID(n.params, own.id))
		return
	}
	if own.gatewayCall != nil {
		if n.method == "notifications/message" && downstream.MessageLevel(n.params) < own.gatewayCall.ClientRequest.Level() {
			return
		}
		at := own.gatewayCall.ClientRequest
		at.Relay(own.Server, "", n.method, t.rewriteNotification(t.o.Views.For(at), own, n.method, inflight.DropTaskID(n.params)))
		return
	}
	if n.method == "notifications/message" {
		level := downstream.MessageLevel(n.params)
		t.o.Journal.RecordLog(own.Server, level.Slog(), n.params)
		if level < own.owner.Level() {
			return
		}
	}
	t.notifyOwner(own, n.method, t.rewriteNotification(t.o.Views.ForSession(own.owner), own, n.method, n.params))
}

// rewriteNotification returns the params as a client sees them: vendors' notifications may
// have a URI.
func (t *Tasks) rewriteNotification(names inflight.Namer, own *Task, method string, params []byte) []byte {
	if method == "notifications/message" {
		return params
	}
	return inflight.RewriteNotification(t.o.Registry, names, own.Server, params)
}

// notifyOwner sends a notification to a task's owner: on the stream of a request for its
// result, otherwise on the session's.
func (t *Tasks) notifyOwner(own *Task, method string, params []byte) {
	if !own.isVisible(t.o.Views.ForSession(own.owner)) {
		return
	}
	params = inflight.ReplaceTaskID(params, own.ServerTaskID, own.id)
	f, _ := t.newestWaiter(own)
	state := method == "notifications/tasks/status" // of which the newest counts
	switch key := "task:" + own.id; {
	case f != nil && state:
		f.ClientRequest.NotifyLatest(key, method, params)
	case f != nil:
		f.ClientRequest.Relay(own.Server, "", method, params)
	case state:
		own.owner.NotifyLatest(key, method, params)
	default:
		own.owner.Relay(own.Server, method, params)
	}
	t.o.Journal.RecordNotification(registry.ToClient, own.owner, own.Server, method, own.id, params)
}

// HasOpenTask reports whether a client waits for a task of a server.
func (t *Tasks) HasOpenTask(s *upstream.Server) bool {
	return slices.ContainsFunc(t.o.Calls.Connections(), func(l *inflight.Connection) bool { return l.Server == s && t.hasOpen(l.Conn) })
}

// Ask puts a task's question to the client that owns the task.
func (t *Tasks) Ask(ctx context.Context, own *Task, q *serverreq.Request) (*downstream.Session, []byte, *jsonrpc.Error) {
	q.Params = inflight.ReplaceTaskID(q.Params, own.ServerTaskID, own.id)
	q.Ask = func(ctx context.Context, method string, params []byte) (jsonrpc.Reply, error) {
		return t.askForTask(ctx, own, method, params)
	}
	s, result, fault := t.o.Ask.RouteTo(ctx, q, own.owner)
	return s, inflight.ReplaceTaskID(result, own.id, own.ServerTaskID), fault
}

// askForTask asks on the stream of a request for the task's result, else on
// the session's. A client that has neither open will come for the result, when
// it sees that its task wants something.
func (t *Tasks) askForTask(ctx context.Context, own *Task, method string, params []byte) (jsonrpc.Reply, error) {
	ctx, over := context.WithTimeout(ctx, serverreq.AnswerTimeout)
	defer over()
	look := time.NewTicker(streamPollInterval)
	defer look.Stop()
	for {
		f, changed := t.newestWaiter(own)
		var causes []*inflight.Request
		if f != nil {
			causes = []*inflight.Request{f}
		}
		if f != nil || own.owner.Reachable() {
			reply, err := serverreq.Ask(ctx, own.owner, causes, method, params)
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

// GatewayCall is the call inside which the gateway itself waits for the task, nil for a
// task that a client owns: its questions are those of that call.
func (t *Task) GatewayCall() *upstream.Call {
	if t.gatewayCall == nil {
		return nil
	}
	return &t.gatewayCall.Call
}
