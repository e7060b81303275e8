package gateway

import (
	"goblin/gateway/inflight"
	"goblin/gateway/jsonrpc"
	"goblin/gateway/tasks"
	"goblin/gateway/upstream"
	"goblin/registry"
	"goblin/registry/rawjson"
)

// createTask passes on a call that is to be answered by a task (2025-11-25).
func (g *Gateway) createTask(r *request, t registry.Target, edits []rawjson.Edit) {
	r.server, r.target, r.sent = t.Server, t, edits
	attempt := func() error {
		conn, release, err := g.slot(r)
		if err != nil {
			return err
		}
		u := r.newCall()
		g.begin(r, u, conn, release, r.sent)
		defer u.Release()
		return g.tasks.Create(conn, u, r.server, r.target.Name, r.name, func(reply jsonrpc.Reply) { g.answer(r, r.server, r.target.Name, reply) })
	}
	err := attempt()
	if g.rejoined(r, err) {
		err = attempt()
	}
	if err != nil {
		r.fail(err)
	}
}

// serveTask passes a request about one task on to its server.
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
	r.server = own.Server
	if r.withhold(own.Server) {
		raw = rawjson.Get(r.Params(), "taskId")
	}
	conn, release, err := g.taskSlot(r, own)
	if err != nil {
		r.fail(err)
		return
	}
	g.begin(r, &r.under, conn, release, r.edit(raw, own.Original))
	defer r.under.Release()
	reply, err := g.tasks.Serve(conn, &r.under, own)
	if err != nil {
		r.fail(err)
		return
	}
	g.answer(r, own.Server, own.Original, reply)
}

// taskSlot is slot for the connection that a task belongs to.
func (g *Gateway) taskSlot(r *request, own *tasks.Task) (upstream.Conn, func(), error) {
	b := g.Servers.Get(own.Server)
	if !own.BoundToConn() || b == nil {
		return g.slot(r)
	}
	release, err := inflight.Acquire(r.Context(), b.Server, r.Request)
	return own.Conn, release, err
}

func (g *Gateway) listTasks(r *request) {
	err := tasks.CheckTasksAllowed(r.Request)
	var cursor string
	if err == nil {
		cursor, err = cursorOf(r.Params())
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
