package gateway

import (
	"time"

	"goblin/gateway/inflight"
	"goblin/gateway/jsonrpc"
	"goblin/gateway/tasks"
	"goblin/gateway/upstream"
	"goblin/registry"
	"goblin/registry/rawjson"
)

func (g *Gateway) createTask(r *request, t registry.Target, edits []rawjson.Edit) {
	r.server, r.target, r.serverEdits = t.Server, t, edits
	if !r.intercept() {
		return
	}
	attempt := func() error {
		conn, release, err := g.acquireConn(r)
		if err != nil {
			return err
		}
		u := r.newCall()
		g.beginCall(r, u, conn, release, r.serverEdits)
		defer u.Release()
		return g.tasks.Create(conn, u, r.server, r.target.Name, r.name, func(reply jsonrpc.Reply) { g.relayReply(r, r.server, r.target.Name, reply) })
	}
	err := attempt()
	if g.awaitReconnect(r, err) {
		err = attempt()
	}
	if err != nil {
		r.fail(err)
	}
}

func (g *Gateway) serveTask(r *request) {
	if err := tasks.CheckTasksAllowed(r.Request); err != nil {
		r.fail(err)
		return
	}
	id, raw, err := stringMember(r.Params(), "taskId")
	if err != nil {
		r.fail(err)
		return
	}
	r.name = id
	own, err := g.tasks.Find(r.Session(), r.view(), r.modern(), id)
	if err != nil {
		r.fail(err)
		return
	}
	r.server, r.cause = own.Server, own.Cause()
	if r.filterMeta(own.Server) {
		raw = rawjson.Get(r.Params(), "taskId")
	}
	if !r.intercept() {
		return
	}
	conn, release, err := g.taskSlot(r, own)
	if err != nil {
		r.fail(err)
		return
	}
	g.beginCall(r, &r.call, conn, release, r.edit(raw, own.ServerTaskID))
	defer r.call.Release()
	reply, err := g.tasks.Serve(conn, &r.call, own)
	if err != nil {
		r.fail(err)
		return
	}
	g.relayReply(r, own.Server, own.ServerTaskID, reply)
}

// taskSlot is acquireConn for a task's connection.
func (g *Gateway) taskSlot(r *request, own *tasks.Task) (upstream.Conn, func(), error) {
	b := g.Servers.Get(own.Server)
	if !own.BoundToConn() || b == nil {
		return g.acquireConn(r)
	}
	start := time.Now()
	release, err := inflight.Acquire(r.Context(), b.Server, r.Request)
	r.queueWait += waited(start)
	return own.Conn, release, err
}

func (g *Gateway) listTasks(r *request) {
	err := tasks.CheckTasksAllowed(r.Request)
	var cursor string
	if err == nil {
		cursor, err = parseCursor(r.Params())
	}
	var result []byte
	if err == nil {
		result, err = g.tasks.List(r.Request, cursor)
	}
	if err != nil {
		r.fail(err)
		return
	}
	r.reply(result)
}
