package upstream

import (
	"errors"
	"fmt"
	"slices"

	"goblin/gateway/jsonrpc"
	"goblin/registry/rawjson"
)

// subscribe is resources/subscribe in the modern era: it is answered when the
// server has acknowledged that it watches the resource.
func (l *link) subscribe(c *Call) (jsonrpc.Reply, error) {
	uri, ok := rawjson.String(rawjson.Get(c.Params, "uri"))
	if !ok {
		return jsonrpc.Reply{Error: jsonrpc.Errorf(jsonrpc.CodeInvalidParams, `member "uri" must be a string`).Object()}, nil
	}
	ls := l.listens.Load()
	ls.mu.Lock()
	w := ls.want[uri]
	if w == nil {
		w = &watch{}
		ls.want[uri] = w
	}
	if w.agreed {
		ls.mu.Unlock()
		return jsonrpc.Reply{Result: []byte("{}")}, nil
	}
	answer := make(chan error, 1)
	w.waiters = append(w.waiters, answer)
	ls.mu.Unlock()
	ls.stir()
	var err error
	select {
	case err = <-answer:
	case <-l.done:
		return jsonrpc.Reply{}, l.err
	case <-c.Context.Done():
		ls.leave(uri, answer)
		return jsonrpc.Reply{}, l.cancelled(c.Context)
	}
	var rpc errRPC
	var failed *Error
	switch {
	case err == nil:
		return jsonrpc.Reply{Result: []byte("{}")}, nil
	case errors.As(err, &rpc):
		return jsonrpc.Reply{Error: rpc.object.Object()}, nil
	case errors.Is(err, errLeftOut):
		e := jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "the server does not watch this resource for changes")
		e.Data = rawjson.Object("uri", uri)
		return jsonrpc.Reply{Error: e.Object()}, nil
	case errors.As(err, &failed):
		return jsonrpc.Reply{}, err
	}
	return jsonrpc.Reply{}, l.srv.failure(ConnectionError, fmt.Sprintf("does not listen: %v", err), err)
}

// leave takes back a wish that nobody waits for any more.
func (ls *listens) leave(uri string, answer chan error) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	w := ls.want[uri]
	if w == nil {
		return
	}
	w.waiters = slices.DeleteFunc(w.waiters, func(ch chan error) bool { return ch == answer })
	if len(w.waiters) == 0 && !w.agreed {
		delete(ls.want, uri)
	}
}

// unsubscribe is resources/unsubscribe in the modern era.
func (l *link) unsubscribe(c *Call) (jsonrpc.Reply, error) {
	uri, _ := rawjson.String(rawjson.Get(c.Params, "uri"))
	ls := l.listens.Load()
	ls.mu.Lock()
	known := ls.want[uri] != nil
	if known {
		delete(ls.want, uri)
	}
	ls.mu.Unlock()
	if known {
		ls.stir()
	}
	return jsonrpc.Reply{Result: []byte("{}")}, nil
}
