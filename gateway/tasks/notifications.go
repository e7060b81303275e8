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
	"goblin/registry/rawjson"
)

const streamPollInterval = time.Second

// HandleNotification handles a server's notification about a task of 2025-11-25. Unless
// done, the caller must handle the notification with the returned call and params, which
// no longer name the task.
func (t *Tasks) HandleNotification(conn upstream.Conn, c *upstream.Call, method string, params []byte) (_ *upstream.Call, _ []byte, done bool) {
	var name []byte
	switch method {
	case "notifications/progress":
		// It belongs to a task or is late; the token is unknown to others.
		t.handleProgress(conn, params)
		return c, params, true
	case "notifications/resources/updated": // for all subscribers
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
	own, queued := t.matchTask(conn, n)
	switch {
	case own == nil: // unknown, or another server's task
		return c, inflight.DropTaskID(params), done || queued
	case own.gatewayCall != nil && !done:
		return &own.gatewayCall.Call, inflight.DropTaskID(params), false
	}
	own.deliverMu.Lock()
	defer own.deliverMu.Unlock()
	t.deliver(own, n)
	return c, params, true
}

// deliver passes a notification to the owner of the task. The caller holds own.deliverMu
// unless the task is unpublished.
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

// rewriteNotification returns params with listed URIs. Vendor notifications may contain
// one.
func (t *Tasks) rewriteNotification(names inflight.Namer, own *Task, method string, params []byte) []byte {
	if method == "notifications/message" {
		return params
	}
	return inflight.RewriteNotification(t.o.Registry, names, own.Server, params)
}

// notifyOwner sends a notification to a task's owner, if possible on the stream of a
// request for its result.
func (t *Tasks) notifyOwner(own *Task, method string, params []byte) {
	if !own.isVisible(t.o.Views.ForSession(own.owner)) {
		return
	}
	params = inflight.ReplaceTaskID(params, own.ServerTaskID, own.id)
	f, _ := t.newestWaiter(own)
	state := method == "notifications/tasks/status"
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
	t.o.Journal.RecordTaskNotification(own.cause, own.owner, own.Server, method, own.id, params)
}

// HasOpenTask reports whether a client waits for a task of a server.
func (t *Tasks) HasOpenTask(s *upstream.Server) bool {
	return slices.ContainsFunc(t.o.Calls.Connections(), func(l *inflight.Connection) bool { return l.Server == s && t.hasOpen(l.Conn) })
}

// Ask sends a request that belongs to a task to the client that owns the task.
func (t *Tasks) Ask(ctx context.Context, own *Task, q *serverreq.Request) (*downstream.Session, []byte, *jsonrpc.Error) {
	q.Params = inflight.ReplaceTaskID(q.Params, own.ServerTaskID, own.id)
	q.Ask = func(ctx context.Context, method string, params []byte) (jsonrpc.Reply, error) {
		return t.askForTask(ctx, own, method, params)
	}
	s, result, fault := t.o.Ask.RouteTo(ctx, q, own.owner)
	return s, inflight.ReplaceTaskID(result, own.id, own.ServerTaskID), fault
}

// askForTask sends a request on the stream of a request for the task's result, or on the
// session's. If neither is open, it waits until the client opens one: clients fetch the
// result when the task requires input.
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

// Cause returns the number of the call that created the task.
func (t *Task) Cause() uint64 { return t.cause }

// GatewayCall returns the call for which the gateway itself waits for the task. It
// returns nil if a client owns the task. Requests from the server that belong to the task
// belong to that call.
func (t *Task) GatewayCall() *upstream.Call {
	if t.gatewayCall == nil {
		return nil
	}
	return &t.gatewayCall.Call
}
