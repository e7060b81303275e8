package upstream

import (
	"errors"
	"fmt"
	"slices"

	"goblin/gateway/jsonrpc"
	"goblin/registry/rawjson"
)

// subscribe implements resources/subscribe in the modern era. It returns when the server
// has acknowledged the subscription.
func (l *link) subscribe(c *Call) (jsonrpc.Reply, error) {
	uri, ok := rawjson.String(rawjson.Get(c.Params, "uri"))
	if !ok {
		return jsonrpc.Reply{Error: jsonrpc.Errorf(jsonrpc.CodeInvalidParams, `member "uri" must be a string`).Object()}, nil
	}
	ls := l.listener.Load()
	ls.mu.Lock()
	w := ls.watched[uri]
	if w == nil {
		w = &watchedResource{}
		ls.watched[uri] = w
	}
	if w.acknowledged {
		ls.mu.Unlock()
		return jsonrpc.Reply{Result: []byte("{}")}, nil
	}
	answer := make(chan error, 1)
	w.waiters = append(w.waiters, answer)
	ls.mu.Unlock()
	ls.wakeRun()
	var err error
	select {
	case err = <-answer:
	case <-l.done:
		return jsonrpc.Reply{}, l.err
	case <-c.Context.Done():
		ls.abandonWait(uri, answer)
		return jsonrpc.Reply{}, l.cancelledError(c.Context)
	}
	var rpc errRPC
	var failed *Error
	switch {
	case err == nil:
		return jsonrpc.Reply{Result: []byte("{}")}, nil
	case errors.As(err, &rpc):
		return jsonrpc.Reply{Error: rpc.object.Object()}, nil
	case errors.Is(err, errNotAcknowledged):
		e := jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "the server does not accept a subscription to this resource")
		e.Data = rawjson.Object("uri", uri)
		return jsonrpc.Reply{Error: e.Object()}, nil
	case errors.As(err, &failed):
		return jsonrpc.Reply{}, err
	}
	return jsonrpc.Reply{}, l.srv.newError(ConnectionError, fmt.Sprintf("cannot subscribe: %v", err), err)
}

// abandonWait removes a subscription whose caller no longer waits.
func (ls *listener) abandonWait(uri string, answer chan error) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	w := ls.watched[uri]
	if w == nil {
		return
	}
	w.waiters = slices.DeleteFunc(w.waiters, func(ch chan error) bool { return ch == answer })
	if len(w.waiters) == 0 && !w.acknowledged {
		delete(ls.watched, uri)
	}
}

func (l *link) unsubscribe(c *Call) (jsonrpc.Reply, error) {
	uri := rawjson.GetString(c.Params, "uri")
	ls := l.listener.Load()
	ls.mu.Lock()
	known := ls.watched[uri] != nil
	if known {
		delete(ls.watched, uri)
	}
	ls.mu.Unlock()
	if known {
		ls.wakeRun()
	}
	return jsonrpc.Reply{Result: []byte("{}")}, nil
}
