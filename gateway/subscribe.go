package gateway

import (
	"cmp"
	"errors"

	"goblin/gateway/downstream"
	"goblin/gateway/inflight"
	"goblin/gateway/jsonrpc"
	"goblin/gateway/notify"
	"goblin/gateway/tasks"
	"goblin/gateway/view"
	"goblin/registry"
	"goblin/registry/rawjson"
)

// subscribe answers after the server.
func (g *Gateway) subscribe(r *request) {
	uri, _, err := stringMember(r.Params(), "uri")
	if err != nil {
		r.fail(err)
		return
	}
	r.name = uri
	t, err := g.Views.Find(r.Context(), r.Request, (*registry.Snapshot).ResolveResource, uri)
	if err != nil {
		r.fail(err)
		return
	}
	r.server, r.target = t.Server, t
	if !r.intercept() {
		return
	}
	if r.ruleEvents() != nil { // it may have waited
		t, err = g.Views.Find(r.Context(), r.Request, (*registry.Snapshot).ResolveResource, uri)
		if err != nil || t.Server != r.server {
			r.fail(cmp.Or(err, view.ForbiddenError(r.target, uri)))
			return
		}
	}
	err = g.Notifier.Subscribe(r.Context(), r.Session(), t, uri)
	if g.awaitReconnect(r, err) {
		err = g.Notifier.Subscribe(r.Context(), r.Session(), t, uri)
	}
	var refused *notify.RefusedError
	switch {
	case errors.As(err, &refused):
		w := inflight.Rewriter{Registry: g.reg, Namer: r, Server: t.Server}
		r.replyError(w.Read(rawjson.ErrorObject, refused.Object), w.Edits...)
	case err != nil:
		r.fail(err)
	default:
		r.reply(emptyResult)
	}
}

func (g *Gateway) unsubscribe(r *request) {
	uri, _, err := stringMember(r.Params(), "uri")
	if err != nil {
		r.fail(err)
		return
	}
	if r.name = uri; !r.intercept() {
		return
	}
	r.server = g.Notifier.Unsubscribe(r.Context(), r.Session(), uri)
	r.reply(emptyResult)
}

// listen is recorded when acknowledged, since it may last for days.
func (g *Gateway) listen(r *request) {
	filter := rawjson.Get(r.Params(), "notifications")
	if rawjson.IsObject(filter) && rawjson.Get(filter, "taskIds") != nil { // servers never acknowledge taskIds; clients use tasks/get
		if err := tasks.CheckTasksAllowed(r.Request); err != nil {
			r.fail(err)
			return
		}
	}
	result, err := g.Notifier.Listen(r.Request, func() {
		g.record(r, r.Method())
		r.recorded = true
	})
	if err != nil {
		r.fail(err)
		return
	}
	r.reply(result)
}

func unknownLevel(name string) error {
	return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "Invalid params: unknown level %q; use one of %s", name, joinOrNone(downstream.Levels))
}

// setLevel sends servers the lowest level of all sessions.
func (g *Gateway) setLevel(r *request) {
	name, _, err := stringMember(r.Params(), "level")
	if err != nil {
		r.fail(err)
		return
	}
	level, ok := downstream.ParseLevel(name)
	if !ok {
		r.fail(unknownLevel(name))
		return
	}
	g.Notifier.SetLevel(r.Session(), level)
	r.reply(emptyResult)
}
