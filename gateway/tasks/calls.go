package tasks

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"goblin/gateway/config"
	"goblin/gateway/downstream"
	"goblin/gateway/inflight"
	"goblin/gateway/jsonrpc"
	"goblin/gateway/upstream"
	"goblin/gateway/upstream/wire"
	"goblin/registry"
	"goblin/registry/rawjson"
)

const (
	// taskPage is the maximum number of tasks per page of tasks/list. The server of each
	// is asked for its state.
	taskPage = 50
	// taskCancelLimit is the timeout for cancelling an abandoned task.
	taskCancelLimit = 5 * time.Second
	// Limits of the interval between two polls of a task's state. The server suggests the
	// interval.
	minPoll     = 20 * time.Millisecond
	defaultPoll = 500 * time.Millisecond
	maxPoll     = time.Minute
)

// gatewayTaskParams are the task parameters of the gateway's own calls. The time to live
// keeps servers from storing results forever.
var gatewayTaskParams = []byte(`{"ttl":3600000}`)

// supportsTasks reports whether a request comes from a 2025-11-25 session, which has
// tasks. Calls made by local tools don't count.
func supportsTasks(x *downstream.Request) bool {
	return x.Outer() == x && x.Modern() == nil && x.Session().Protocol() == downstream.LatestLegacy
}

// WantsTask reports whether a call with the member "task" asks for a task. If the
// client's revision has no tasks, it removes the member, so that the server creates none.
func WantsTask(x *downstream.Request) bool {
	if !supportsTasks(x) {
		x.OmitParam("task")
	}
	return supportsTasks(x)
}

// NeedsDirectResult reports whether the gateway must wait for the result of a tool that
// only runs as a task. This applies to UIs and to clients of revisions without tasks.
func NeedsDirectResult(x *downstream.Request) bool {
	return !supportsTasks(x) || x.Session().IsScreen()
}

// AcceptTask reports whether a modern server may create a task for a call.
func AcceptTask(x *downstream.Request) bool {
	return x.Method() == "tools/call" && x.HasCapability("extensions", extension)
}

// Call makes a call that may become a task. If only is set, the tool runs as a task only.
func (t *Tasks) Call(conn upstream.Conn, f *inflight.Request, server, tool string, only bool) (jsonrpc.Reply, error) {
	if only && offersTasks(conn) {
		return t.runAsTask(conn, f, server)
	}
	reply, err := conn.Call(&f.Call)
	if err != nil || !f.Call.AcceptTask || reply.Error != nil {
		return reply, err
	}
	if kind := rawjson.GetString(reply.Result, "resultType"); kind != "task" {
		return reply, nil
	}
	original, ok := taskID(reply.Result)
	if !ok {
		return jsonrpc.Reply{}, badTaskError(server)
	}
	own := &Task{
		Server: server, Tool: tool, ServerTaskID: original, Conn: conn, owner: ownerOf(f.ClientRequest.Session()),
		modern: true, durable: t.durable(server, conn), cause: f.ClientRequest.Number(),
	}
	if err := t.add(own, reply.Result); err != nil {
		t.cancel(own)
		return jsonrpc.Reply{}, err
	}
	return jsonrpc.Reply{Result: replaceID(reply.Result, own.id)}, nil
}

func taskID(state []byte) (id string, ok bool) {
	id, ok = rawjson.String(rawjson.Get(state, "taskId"))
	return id, ok && len(id) <= maxTaskID
}

func badTaskError(server string) error {
	return &upstream.Error{Code: upstream.BadReply, Server: server, Reason: fmt.Sprintf("it created a task without a taskId or with one over %d bytes", maxTaskID)}
}

// Create makes a call that creates a task (2025-11-25) and passes the reply to answer.
// name is the listed name of the tool.
func (t *Tasks) Create(conn upstream.Conn, f *inflight.Request, server, tool, name string, answer func(jsonrpc.Reply)) error {
	x := f.ClientRequest
	if !offersTasks(conn) {
		return UnsupportedError(name)
	}
	if err := t.checkRoom(x.Session(), server); err != nil {
		return err
	}
	own := &Task{Server: server, Tool: tool, Conn: conn, owner: x.Session(), cause: x.Number()}
	f.Call.Context = context.WithoutCancel(x.Context())
	f.Call.Params, f.Call.Edits = rawjson.Splice(f.Call.Params, f.Call.Edits...), nil
	f.Call.Token, f.Call.Progress = wire.TokenPosition{}, nil // progress continues after the reply
	if theirs := rawjson.Path(f.Call.Params, "_meta", "progressToken"); theirs != nil {
		t.addProgress(own, func(params []byte) {
			if len(theirs) > downstream.MaxToken {
				return
			}
			params = rawjson.SetMember(params, "progressToken", theirs)
			own.deliverMu.Lock()
			defer own.deliverMu.Unlock()
			if own.answered {
				t.notifyOwner(own, "notifications/progress", params)
				return
			}
			x.Relay(server, "progress:"+string(theirs), "notifications/progress", inflight.DropTaskID(params))
			t.o.Journal.RecordCausedNotification(x, server, "notifications/progress", name, params)
		})
		f.Call.Params = rawjson.Splice(f.Call.Params, rawjson.ReplaceEdit(f.Call.Params, theirs, rawjson.Quote(own.token)))
		f.Call.Token = wire.KeepToken
	}
	defer t.addPendingCall(conn)()
	reply, err := t.o.Calls.Do(conn, f, func() (jsonrpc.Reply, error) { return t.sendCreate(x.Context(), own, &f.Call) })
	state := rawjson.Get(reply.Result, "task")
	id, made := taskID(state)
	switch {
	case err == nil && reply.Error == nil && state == nil:
		// The server replied directly, against the specification. The client may know how
		// to handle that.
	case err == nil && reply.Error == nil && !made:
		err = badTaskError(server)
	case made:
		own.ServerTaskID = id
		if err = t.add(own, state); err != nil {
			t.cancel(own)
			made = false
		}
	}
	if !made {
		t.removeProgress(own)
	}
	if err != nil {
		return err
	}
	own.deliverMu.Lock()
	defer own.deliverMu.Unlock()
	if made {
		reply.Result = rawjson.SetMember(inflight.ReplaceTaskID(reply.Result, id, own.id), "task", replaceID(state, own.id))
	}
	answer(reply)
	own.answered = true
	if made {
		for _, n := range t.publish(own) {
			t.deliver(own, n)
		}
	}
	return nil
}

// UnsupportedError returns the error for a tool that doesn't run as a task (2025-11-25,
// tasks, tool-level negotiation).
func UnsupportedError(name string) error {
	return jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "Tool %q does not run as a task; call it without the member \"task\"", name)
}

// runAsTask makes a plain call of a tool that runs as a task only: it creates the task,
// polls it and fetches the result. The call timeout applies to each step, since each
// reply shows that the server is alive. The task's time to live limits the whole.
func (t *Tasks) runAsTask(conn upstream.Conn, f *inflight.Request, server string) (reply jsonrpc.Reply, err error) {
	of := &f.Call
	own := &Task{Server: server, Conn: conn, gatewayCall: f, statusChanged: make(chan struct{}, 1)}
	params := rawjson.Splice(of.Params, of.Edits...)
	var place wire.TokenPosition
	if progress := of.Progress; progress != nil {
		theirs := rawjson.Path(params, "_meta", "progressToken")
		place = wire.KeepToken
		t.addProgress(own, func(params []byte) { progress(inflight.DropTaskID(params)) })
		params = rawjson.Splice(params, rawjson.ReplaceEdit(params, theirs, rawjson.Quote(own.token)))
	}
	defer t.remove(own)
	defer t.removeProgress(own)
	done := t.addPendingCall(conn)
	step := func(method string, params []byte) *upstream.Call {
		return &upstream.Call{Context: of.Context, Cause: f, Method: method, Params: params}
	}
	first := step(of.Method, rawjson.SetMember(params, "task", gatewayTaskParams))
	first.Context, first.Token = context.WithoutCancel(of.Context), place
	reply, err = t.sendCreate(of.Context, own, first)
	state := rawjson.Get(reply.Result, "task")
	if err != nil || reply.Error != nil || state == nil {
		done()
		return reply, err
	}
	var ok bool
	if own.ServerTaskID, ok = taskID(state); !ok {
		done()
		return jsonrpc.Reply{}, badTaskError(server)
	}
	_ = t.add(own, state) // the gateway's own tasks have no limit
	for _, n := range t.publish(own) {
		t.deliver(own, n)
	}
	done()
	if err = t.watch(own, state, step); err != nil {
		t.cancel(own)
		return jsonrpc.Reply{}, err
	}
	// The server sends the task's requests while this call waits.
	last := step("tasks/result", rawjson.Object("taskId", own.ServerTaskID))
	last.Timeout = t.timeToLive(own)
	if reply, err = conn.Call(last); err != nil {
		t.cancel(own)
		return jsonrpc.Reply{}, err
	}
	if reply.Error == nil {
		reply.Result = inflight.DropTaskID(reply.Result)
	}
	return reply, nil
}

func (t *Tasks) watch(own *Task, state []byte, step func(method string, params []byte) *upstream.Call) error {
	life := t.timeToLive(own)
	for deadline := time.Now().Add(life); !isFinal(statusOf(state)) && statusOf(state) != "input_required"; {
		if time.Now().After(deadline) {
			return &upstream.Error{Code: upstream.RequestTimeout, Server: own.Server, Reason: fmt.Sprintf("the task of the call did not finish within %s", config.ShortDuration(life.Round(time.Second)))}
		}
		look := step("tasks/get", rawjson.Object("taskId", own.ServerTaskID))
		if err := own.pause(look.Context, pollInterval(state)); err != nil {
			return err
		}
		reply, err := own.Conn.Call(look)
		if err != nil {
			return err
		}
		if reply.Error != nil {
			e := jsonrpc.ParseErrorObject(reply.Error)
			return &upstream.Error{Code: upstream.BadReply, Server: own.Server, Reason: "it lost the task of the call: " + e.Message}
		}
		state = reply.Result
	}
	return nil
}

// sendCreate sends the call that creates a task. If ctx is cancelled before the reply, it
// cancels the task once its id is known. The call itself must not be cancelled
// (2025-11-25, cancellation), so it has its own context.
func (t *Tasks) sendCreate(ctx context.Context, own *Task, call *upstream.Call) (jsonrpc.Reply, error) {
	type answer struct {
		jsonrpc.Reply
		err error
	}
	came := make(chan answer, 1)
	t.work.Go(func() {
		reply, err := own.Conn.Call(call)
		came <- answer{reply, err}
	})
	select {
	case a := <-came:
		return a.Reply, a.err
	case <-ctx.Done():
	}
	t.work.Go(func() {
		id, ok := rawjson.String(rawjson.Path((<-came).Result, "task", "taskId"))
		if ok {
			t.cancel(&Task{Server: own.Server, Conn: own.Conn, ServerTaskID: id})
		}
	})
	return jsonrpc.Reply{}, context.Cause(ctx)
}

func (own *Task) pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
	case <-own.statusChanged:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

func pollInterval(state []byte) time.Duration {
	raw := rawjson.Get(state, "pollInterval")
	ms, err := strconv.ParseFloat(string(raw), 64)
	if err != nil {
		return defaultPoll
	}
	ms = min(max(ms, float64(minPoll.Milliseconds())), float64(maxPoll.Milliseconds()))
	return time.Duration(ms) * time.Millisecond
}

func (t *Tasks) cancel(own *Task) {
	t.work.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), taskCancelLimit)
		defer cancel()
		call := &upstream.Call{Context: ctx, Method: "tasks/cancel", Params: rawjson.Object("taskId", own.ServerTaskID)}
		if own.modern {
			call.Capabilities = WithExtension([]byte("{}"))
		}
		if _, err := own.Conn.Call(call); err != nil {
			t.o.Logger.Debug("task not cancelled", "server", own.Server, "err", err)
		}
	})
}

// WithExtension declares the tasks extension in capabilities, and no other.
func WithExtension(capabilities []byte) []byte {
	return rawjson.SetMember(capabilities, "extensions", []byte(`{"`+extension+`":{}}`))
}

// CheckTasksAllowed returns an error unless the client may send requests about tasks. Its
// revision must have tasks, or the request must declare the extension.
func CheckTasksAllowed(x *downstream.Request) error {
	switch {
	case x.Modern() != nil && !x.HasCapability("extensions", extension):
		e := jsonrpc.Errorf(downstream.CodeMissingCapability, "%s needs the extension %s, which the client did not declare", x.Method(), extension)
		e.Data = rawjson.SetMember(empty, "requiredCapabilities", WithExtension([]byte("{}")))
		return e
	case x.Modern() == nil && !supportsTasks(x):
		return jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "Method not found: %s", x.Method())
	}
	return nil
}

// Serve passes a request about a task to its server.
func (t *Tasks) Serve(conn upstream.Conn, f *inflight.Request, own *Task) (jsonrpc.Reply, error) {
	method := f.ClientRequest.Method()
	if method == "tasks/result" {
		// The request lasts as long as the task, so it needs no slot. Requests from the
		// server that belong to the task name it; others don't belong to this call.
		defer t.addWaiter(own, f)()
		f.Call.Timeout = t.timeToLive(own)
		f.Release()
	}
	reply, err := conn.Call(&f.Call)
	f.Trace.End(reply, err)
	switch {
	case err != nil:
		return reply, err
	case reply.Error != nil:
		if code, _ := rawjson.Int(rawjson.Get(reply.Error, "code")); code == jsonrpc.CodeInvalidParams && method == "tasks/get" {
			t.remove(own)
		}
	case method == "tasks/result":
		reply.Result = inflight.ReplaceTaskID(reply.Result, own.ServerTaskID, own.id)
	case rawjson.Get(reply.Result, "taskId") != nil:
		t.updateState(own, reply.Result)
		reply.Result = replaceID(reply.Result, own.id)
	}
	if method == "tasks/result" {
		t.markFetched(own)
	}
	return reply, nil
}

// BoundToConn reports whether requests about a task must use its own connection. That is
// so while the connection is open, or if the task doesn't outlive it.
func (own *Task) BoundToConn() bool { return !own.durable || own.Conn.Err() == nil }

// List returns a page of the session's tasks with their current states.
func (t *Tasks) List(x *downstream.Request, cursor string) ([]byte, error) {
	after := uint64(0)
	if cursor != "" {
		var err error
		if after, err = strconv.ParseUint(cursor, 10, 64); err != nil {
			return nil, registry.ErrBadCursor
		}
	}
	all := t.listOwned(x.Session(), t.o.Views.For(x), after)
	page := all[:min(taskPage, len(all))]
	states := make([][]byte, len(page))
	inflight.ForEachLimit(8, page, func(i int, own *Task) { states[i] = t.fetchState(x, own) })
	states = slices.DeleteFunc(states, func(state []byte) bool { return state == nil })
	result := append([]byte(`{"tasks":[`), bytes.Join(states, []byte{','})...)
	result = append(result, ']')
	if len(all) > len(page) {
		result = append(result, `,"nextCursor":"`...)
		result = strconv.AppendUint(result, page[len(page)-1].number, 10)
		result = append(result, '"')
	}
	return append(result, '}'), nil
}

// fetchState returns nil if the server lost the task or doesn't answer.
func (t *Tasks) fetchState(x *downstream.Request, own *Task) []byte {
	reply, err := own.Conn.Call(&upstream.Call{Context: x.Context(), Method: "tasks/get", Params: rawjson.Object("taskId", own.ServerTaskID)})
	switch {
	case err != nil:
		t.o.Logger.Warn("task omitted from list", "server", own.Server, "err", err)
		return nil
	case reply.Error != nil:
		if code, _ := rawjson.Int(rawjson.Get(reply.Error, "code")); code == jsonrpc.CodeInvalidParams {
			t.remove(own)
		}
		return nil
	}
	state := rawjson.Result("tasks/get").Clean(reply.Shape, reply.Result)
	t.updateState(own, state)
	return replaceID(state, own.id)
}
