package gateway

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"goblin/gateway/call"
	"goblin/gateway/downstream"
	"goblin/gateway/jsonrpc"
	"goblin/gateway/upstream"
	"goblin/registry"
	"goblin/registry/members"
	"goblin/registry/rawjson"
)

const (
	// taskPage is how many tasks a page of tasks/list has; each is asked for.
	taskPage = 50
	// taskCancelLimit is how long a server may take to cancel a task that
	// nobody waits for any more.
	taskCancelLimit = 5 * time.Second
	// The state of a task that the gateway waits for is asked for as often as
	// its server suggests, within these bounds.
	minPoll     = 20 * time.Millisecond
	defaultPoll = 500 * time.Millisecond
	maxPoll     = time.Minute
)

// hiddenTask is how a tool is called as a task by the gateway itself: what
// nobody fetched is not to stay at the server for ever.
var hiddenTask = []byte(`{"ttl":3600000}`)

// taskUse is what tasks have to do with a call of a tool.
type taskUse uint8

const (
	noTask     taskUse = iota
	clientTask         // the client asks for one
	onlyTask           // the tool runs as nothing else, and the client does not know that
)

// tasksNegotiated reports whether the request is one of a session of
// 2025-11-25, which has tasks. One that a local tool makes is not the client's.
func (r *request) tasksNegotiated() bool {
	return r.outer == nil && !r.modern() && r.Session().Protocol() == downstream.LatestLegacy
}

// asksForTask reports whether a call has the member that asks for a task.
func (r *request) asksForTask() bool {
	return rawjson.Get(r.Params(), "task") != nil
}

// ignoreTask takes the member out that asks for a task, where there are none:
// a server that has them would make one.
func (r *request) ignoreTask() {
	if !r.tasksNegotiated() && r.asksForTask() {
		r.Omit("task")
	}
}

// taskUse finds out what tasks have to do with a call. Clients of revisions
// without tasks, and screens, get what a tool gives that runs as a task only;
// others know that they have to ask for the task.
func (r *request) taskUse(t registry.Target) taskUse {
	if r.tasksNegotiated() && r.asksForTask() {
		return clientTask
	}
	if r.tasksNegotiated() && !r.Session().IsScreen() || t.Entry == nil || !t.Entry.TaskOnly {
		return noTask
	}
	return onlyTask
}

// perform sends a flight's call, as a task when the tool needs that.
func (g *Gateway) perform(r *request, conn upstream.Conn, f *call.Under) (jsonrpc.Reply, error) {
	if r.tasks == onlyTask && offersTasks(conn) {
		return g.waitForTask(conn, f, r.server)
	}
	reply, err := conn.Call(&f.Call)
	if err != nil || !f.Call.AcceptTask || reply.Error != nil {
		return reply, err
	}
	if kind, _ := rawjson.String(rawjson.Get(reply.Result, "resultType")); kind != "task" {
		return reply, nil
	}
	// The server made a task of the call (SEP-2663).
	original, ok := taskID(reply.Result)
	if !ok {
		return jsonrpc.Reply{}, badTask(r.server)
	}
	own := &task{
		server: r.server, original: original, conn: conn, owner: ownerOf(r.Session()),
		modern: true, durable: g.durable(r.server, conn),
	}
	if !g.tasks.keep(own, reply.Result) {
		g.cancelTask(own)
		return jsonrpc.Reply{}, errTooManyTasks
	}
	return jsonrpc.Reply{Result: rename(reply.Result, own.id)}, nil
}

// taskID is what a server names a task by.
func taskID(state []byte) (id string, ok bool) {
	id, ok = rawjson.String(rawjson.Get(state, "taskId"))
	return id, ok && len(id) <= maxTaskID
}

func badTask(server string) error {
	return &upstream.Error{Code: upstream.BadReply, Server: server, Reason: fmt.Sprintf("it made a task without a taskId of %d bytes at most", maxTaskID)}
}

var errTooManyTasks = jsonrpc.Errorf(jsonrpc.CodeInternal,
	"Too many tasks at a time; at most %d of a session, and %d in all. Cancel some, or fetch their results and let them expire", maxSessionTasks, maxTasks)

// createTask passes on a call that is to be answered by a task (2025-11-25).
func (g *Gateway) createTask(r *request, t registry.Target, edits []rawjson.Edit) {
	r.server, r.target = t.Server, t
	conn, release, err := g.slot(r)
	if err != nil {
		r.fail(err)
		return
	}
	f := &r.under
	g.begin(r, f, conn, release, edits)
	defer f.Land()
	switch {
	case !offersTasks(conn):
		r.fail(noTaskSupport(r.name))
		return
	case !g.tasks.room(r.Session()):
		r.fail(errTooManyTasks)
		return
	}
	own := &task{server: t.Server, conn: conn, owner: r.Session()}
	f.Call.Context = context.WithoutCancel(r.Context())
	f.Call.Params, f.Call.Edits = rawjson.Splice(r.Params(), edits...), nil
	f.Call.Token, f.Call.Progress = rawjson.Edit{}, nil // its progress goes on after the answer
	if token := rawjson.Path(f.Call.Params, "_meta", "progressToken"); token != nil {
		g.tasks.track(own, func(params []byte) {
			if len(token) > call.MaxToken {
				return
			}
			params = rawjson.SetMember(params, "progressToken", token)
			own.out.Lock()
			defer own.out.Unlock()
			if own.answered {
				g.tellTask(own, "notifications/progress", params)
				return
			}
			r.Relay(r.server, "progress:"+string(token), "notifications/progress", call.Unrelated(params))
			g.journal.Notification(registry.ToClient, r.Session(), r.server, "notifications/progress", r.name, params)
		})
		f.Call.Params = rawjson.Splice(f.Call.Params, rawjson.Replace(f.Call.Params, token, rawjson.Quote(own.token)))
	}
	defer g.tasks.expect(conn)()
	reply, err := g.calls.Do(conn, f, func() (jsonrpc.Reply, error) { return g.makeTask(r.Context(), own, &f.Call) })
	state := rawjson.Get(reply.Result, "task")
	id, made := taskID(state)
	switch {
	case err == nil && reply.Error == nil && state == nil:
		// It was answered at once, against the rules; the client may know more.
	case err == nil && reply.Error == nil && !made:
		err = badTask(t.Server)
	case made:
		own.original = id
		if !g.tasks.keep(own, state) {
			g.cancelTask(own)
			err, made = errTooManyTasks, false
		}
	}
	if !made {
		g.tasks.untrack(own)
	}
	if err != nil {
		r.fail(err)
		return
	}
	own.out.Lock()
	defer own.out.Unlock()
	if made {
		reply.Result = rawjson.SetMember(call.Relate(reply.Result, id, own.id), "task", rename(state, own.id))
	}
	g.answer(r, t.Server, t.Name, reply)
	own.answered = true
	if made {
		for _, n := range g.tasks.publish(own) {
			g.deliverTask(own, n)
		}
	}
}

// noTaskSupport is the error for a tool that runs as no task (2025-11-25,
// tasks, tool-level negotiation).
func noTaskSupport(name string) error {
	return jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "Tool %q does not run as a task; call it without the member \"task\"", name)
}

// waitForTask makes a plain call of a tool that runs as a task only: the task
// is created, watched and its result fetched here. Every state that the server
// tells shows that it works, so its timeout bounds each of these steps, and
// the whole is bounded by the task's time to live.
func (g *Gateway) waitForTask(conn upstream.Conn, f *call.Under, server string) (reply jsonrpc.Reply, err error) {
	of := &f.Call
	own := &task{server: server, conn: conn, hidden: f, news: make(chan struct{}, 1)}
	params := rawjson.Splice(of.Params, of.Edits...)
	if token := rawjson.Path(params, "_meta", "progressToken"); token != nil {
		progress := of.Progress
		g.tasks.track(own, func(params []byte) { progress(call.Unrelated(params)) })
		params = rawjson.Splice(params, rawjson.Replace(params, token, rawjson.Quote(own.token)))
	}
	defer g.tasks.remove(own)
	defer g.tasks.untrack(own)
	done := g.tasks.expect(conn)
	step := func(method string, params []byte) *upstream.Call {
		return &upstream.Call{Context: of.Context, Cause: f, Method: method, Params: params}
	}
	first := step(of.Method, rawjson.SetMember(params, "task", hiddenTask))
	first.Context = context.WithoutCancel(of.Context)
	reply, err = g.makeTask(of.Context, own, first)
	state := rawjson.Get(reply.Result, "task")
	if err != nil || reply.Error != nil || state == nil {
		done()
		return reply, err
	}
	var ok bool
	if own.original, ok = taskID(state); !ok {
		done()
		return jsonrpc.Reply{}, badTask(server)
	}
	g.tasks.keep(own, state)
	for _, n := range g.tasks.publish(own) {
		g.deliverTask(own, n)
	}
	done()
	if err = g.watchTask(own, state, step); err != nil {
		g.cancelTask(own)
		return jsonrpc.Reply{}, err
	}
	// What the task asks for comes while its result is waited for.
	last := step("tasks/result", rawjson.Object("taskId", own.original))
	last.Timeout = g.tasks.left(own)
	if reply, err = conn.Call(last); err != nil {
		g.cancelTask(own)
		return jsonrpc.Reply{}, err
	}
	if reply.Error == nil {
		reply.Result = call.Unrelated(reply.Result)
	}
	return reply, nil
}

// watchTask asks for a task's state until it is over, or wants something.
func (g *Gateway) watchTask(own *task, state []byte, step func(method string, params []byte) *upstream.Call) error {
	life := g.tasks.left(own)
	for deadline := time.Now().Add(life); !isOver(statusOf(state)) && statusOf(state) != "input_required"; {
		if time.Now().After(deadline) {
			return &upstream.Error{Code: upstream.RequestTimeout, Server: own.server, Reason: fmt.Sprintf("the task that it made of the call was not over after %v", life)}
		}
		look := step("tasks/get", rawjson.Object("taskId", own.original))
		if err := own.pause(look.Context, pollInterval(state)); err != nil {
			return err
		}
		reply, err := own.conn.Call(look)
		if err != nil {
			return err
		}
		if reply.Error != nil {
			e := jsonrpc.ParseErrorObject(reply.Error)
			return &upstream.Error{Code: upstream.BadReply, Server: own.server, Reason: "it lost the task that it made of the call: " + e.Message}
		}
		state = reply.Result
	}
	return nil
}

// makeTask sends the call that makes a task. When ctx, which is not the call's,
// ends before the answer is there, the task is cancelled as soon as its name is
// known: the call itself must not be (2025-11-25, cancellation).
func (g *Gateway) makeTask(ctx context.Context, own *task, call *upstream.Call) (jsonrpc.Reply, error) {
	type answer struct {
		jsonrpc.Reply
		err error
	}
	came := make(chan answer, 1)
	g.work.Go(func() {
		reply, err := own.conn.Call(call)
		came <- answer{reply, err}
	})
	select {
	case a := <-came:
		return a.Reply, a.err
	case <-ctx.Done():
	}
	g.work.Go(func() {
		id, ok := rawjson.String(rawjson.Path((<-came).Result, "task", "taskId"))
		if ok {
			g.cancelTask(&task{server: own.server, conn: own.conn, original: id})
		}
	})
	return jsonrpc.Reply{}, context.Cause(ctx)
}

// pause waits until a task's state is to be asked for again: for a while, or
// until its server says that it has changed.
func (t *task) pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.news:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// pollInterval is how long a server wants a task to be left alone.
func pollInterval(state []byte) time.Duration {
	raw := rawjson.Get(state, "pollInterval")
	ms, err := strconv.ParseFloat(string(raw), 64)
	if err != nil {
		return defaultPoll
	}
	ms = min(max(ms, float64(minPoll.Milliseconds())), float64(maxPoll.Milliseconds()))
	return time.Duration(ms) * time.Millisecond
}

// cancelTask tells a server that nobody waits for a task any more. It does not
// wait for the answer.
func (g *Gateway) cancelTask(own *task) {
	g.work.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), taskCancelLimit)
		defer cancel()
		call := &upstream.Call{Context: ctx, Method: "tasks/cancel", Params: rawjson.Object("taskId", own.original)}
		if own.modern {
			call.Capabilities = withExtension([]byte("{}"))
		}
		if _, err := own.conn.Call(call); err != nil {
			g.log.Debug("Task not cancelled", "server", own.server, "err", err)
		}
	})
}

// withExtension adds the tasks extension to capabilities.
func withExtension(capabilities []byte) []byte {
	return rawjson.SetMember(capabilities, "extensions", []byte(`{"`+tasksExtension+`":{}}`))
}

// knowsTasks fails unless the client may ask for tasks: it speaks the revision
// that has them, or declares the extension with the request.
func (r *request) knowsTasks() error {
	switch {
	case r.modern() && !r.Can("extensions", tasksExtension):
		e := jsonrpc.Errorf(downstream.CodeMissingCapability, "%s needs the extension %s, which the client did not declare", r.Method(), tasksExtension)
		e.Data = rawjson.SetMember(emptyResult, "requiredCapabilities", withExtension([]byte("{}")))
		return e
	case !r.modern() && !r.tasksNegotiated():
		return jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "Method not found: %s", r.Method())
	}
	return nil
}

// serveTask passes a request about one task on to its server.
func (g *Gateway) serveTask(r *request) {
	if err := r.knowsTasks(); err != nil {
		r.fail(err)
		return
	}
	id, raw, err := stringMember(r.Params(), "taskId")
	if err != nil {
		r.fail(err)
		return
	}
	r.name = id
	own := g.tasks.find(r, id)
	if own == nil {
		r.fail(jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "Task not found: it is none of this client's, has expired, or its server has ended"))
		return
	}
	r.server = own.server
	conn, release, err := g.taskSlot(r, own)
	if err != nil {
		r.fail(err)
		return
	}
	f := &r.under
	g.begin(r, f, conn, release, r.edit(raw, own.original))
	defer f.Land()
	if r.Method() == "tasks/result" {
		// It takes as long as the task. What the task asks for meanwhile names
		// the task, so other questions are not this request's.
		defer g.tasks.attend(own, f)()
		f.Call.Timeout = g.tasks.left(own)
		f.Land()
	}
	reply, err := conn.Call(&f.Call)
	switch {
	case err != nil:
		r.fail(err)
		return
	case reply.Error != nil:
		if code, _ := rawjson.Int(rawjson.Get(reply.Error, "code")); code == jsonrpc.CodeInvalidParams && r.Method() == "tasks/get" {
			g.tasks.remove(own)
		}
	case r.Method() == "tasks/result":
		reply.Result = call.Relate(reply.Result, own.original, own.id)
	case rawjson.Get(reply.Result, "taskId") != nil:
		g.tasks.note(own, reply.Result)
		reply.Result = rename(reply.Result, own.id)
	}
	if r.Method() == "tasks/result" {
		g.tasks.settle(own)
	}
	g.answer(r, own.server, own.original, reply)
}

// taskSlot is slot for the connection that a task belongs to.
func (g *Gateway) taskSlot(r *request, own *task) (upstream.Conn, func(), error) {
	b := g.Servers.Get(own.server)
	if own.durable && own.conn.Err() != nil || b == nil {
		return g.slot(r)
	}
	release, err := b.Acquire(r.Context(), r.Session())
	return own.conn, release, err
}

// listTasks lists the session's own tasks, with the states that their servers
// tell now.
func (g *Gateway) listTasks(r *request) {
	if err := r.knowsTasks(); err != nil {
		r.fail(err)
		return
	}
	cursor, err := cursorOf(r.Params())
	after := uint64(0)
	if err == nil && cursor != "" {
		if after, err = strconv.ParseUint(cursor, 10, 64); err != nil {
			err = registry.ErrBadCursor
		}
	}
	if err != nil {
		r.fail(err)
		return
	}
	all := g.tasks.of(r.Session(), after)
	page := all[:min(taskPage, len(all))]
	states := make([][]byte, len(page))
	var each errgroup.Group
	each.SetLimit(8)
	for i, own := range page {
		each.Go(func() error {
			states[i] = g.stateOf(r, own)
			return nil
		})
	}
	_ = each.Wait() // none of them returns an error
	result := []byte(`{"tasks":[`)
	for _, state := range states {
		if state == nil {
			continue
		}
		if result[len(result)-1] == '}' {
			result = append(result, ',')
		}
		result = append(result, state...)
	}
	result = append(result, ']')
	if len(all) > len(page) {
		result = append(result, `,"nextCursor":"`...)
		result = strconv.AppendUint(result, page[len(page)-1].number, 10)
		result = append(result, '"')
	}
	r.reply(append(result, '}'))
}

// stateOf asks for the state of a task; nil when its server does not know it
// any more, or does not answer.
func (g *Gateway) stateOf(r *request, own *task) []byte {
	reply, err := own.conn.Call(&upstream.Call{Context: r.Context(), Method: "tasks/get", Params: rawjson.Object("taskId", own.original)})
	switch {
	case err != nil:
		g.log.Warn("Task left out of a list", "server", own.server, "err", err)
		return nil
	case reply.Error != nil:
		if code, _ := rawjson.Int(rawjson.Get(reply.Error, "code")); code == jsonrpc.CodeInvalidParams {
			g.tasks.remove(own)
		}
		return nil
	}
	state := members.Result("tasks/get").Clean(reply.Shape, reply.Result)
	g.tasks.note(own, state)
	return rename(state, own.id)
}
