package upstream

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"goblin/gateway/jsonrpc"
	"goblin/gateway/upstream/wire"
	"goblin/registry/rawjson"
)

const (
	// maxRounds is how often one call may be answered with questions.
	maxRounds = 10
	// maxQuestions is how many questions one such answer may hold.
	maxQuestions = 32
)

// callModern is Call in the modern era.
func (l *link) callModern(c *Call) (jsonrpc.Reply, error) {
	if c.Context == nil {
		c.Context = context.Background()
	}
	switch c.Method {
	case "resources/subscribe":
		return l.subscribe(c)
	case "resources/unsubscribe":
		return l.unsubscribe(c)
	}
	c.modern = true
	var opened []string // ids of URLs that the client has opened
	refreshed := false
	for round := 0; ; {
		reply, err := l.exchange(c)
		if err != nil {
			return reply, err
		}
		if reply.Error != nil {
			if !refreshed && l.mismatch(c, reply.Error) {
				refreshed = true
				c.again(c.Answers, c.State)
				continue
			}
			return reply, nil
		}
		kind, typed := rawjson.String(reply.Shape.Get(reply.Result, "resultType"))
		switch {
		case typed && c.takes(kind):
			return cleaned(reply, false), nil
		case typed && kind == "input_required":
		case typed && kind != "complete", !typed && !absent(reply.Shape.Get(reply.Result, "resultType")):
			return jsonrpc.Reply{}, l.srv.failure(BadReply, fmt.Sprintf("sent a result of unknown type %q", l.srv.quote(kind, 60)), nil)
		default:
			l.wentThrough(c, opened)
			return cleaned(reply, true), nil
		}
		if round++; round > maxRounds {
			return jsonrpc.Reply{}, l.srv.failure(BadReply, fmt.Sprintf("%s %d times in one call", []string{"put it off", "asked for input"}[min(len(c.Answers), 1)], maxRounds), nil)
		}
		answers, fault, err := l.input(c, reply.Result, &opened)
		if err != nil || fault != nil {
			return jsonrpc.Reply{Error: fault}, err
		}
		c.again(answers, rawjson.Get(reply.Result, "requestState"))
	}
}

// absent reports whether a member is missing or null.
func absent(v []byte) bool { return v == nil || string(v) == "null" }

// cleaned returns a reply without the members of the new revision: see clean.
func cleaned(reply jsonrpc.Reply, result bool) jsonrpc.Reply {
	n := len(reply.Result)
	reply.Result = wire.StripHopKeys(reply.Result, result)
	if len(reply.Result) != n {
		reply.Shape = nil // what it tells of has moved
	}
	return reply
}

// question is one entry of inputRequests.
type question struct {
	key    []byte // as it stands in the text
	method string
	params []byte
	opens  string // id of the URL to open, "" for none
	result []byte
	err    *jsonrpc.Error
}

// input gets what a backend wants to know before it goes on. fault is the error
// object for the caller when that cannot be had.
func (l *link) input(c *Call, result []byte, opened *[]string) (answers, fault []byte, err error) {
	switch c.Method {
	case "tools/call", "prompts/get", "resources/read":
	default:
		return nil, nil, l.srv.failure(BadReply, "asked for input on "+c.Method, nil)
	}
	needed, err := l.questions(rawjson.Get(result, "inputRequests"))
	if err != nil {
		return nil, nil, err
	}
	state := rawjson.Get(result, "requestState")
	switch {
	case state != nil && !rawjson.IsString(state):
		return nil, nil, l.srv.failure(BadReply, "sent a requestState that is not a string", nil)
	case len(needed) == 0 && state == nil:
		return nil, nil, l.srv.failure(BadReply, "asked for input without saying which", nil)
	}
	ctx, cancel := context.WithCancel(c.Context)
	defer cancel()
	defer context.AfterFunc(l.ctx, cancel)()
	if len(needed) == 0 { // it is not ready; only its state is to come back
		_ = sleep(ctx, c.clock.RetryDelay()) // why it was ended is looked at below
	}
	l.ask(ctx, c, needed, opened)
	switch over, _, _ := c.clock.Check(time.Now()); {
	case l.Err() != nil:
		return nil, nil, l.Err()
	case c.Context.Err() != nil:
		return nil, nil, l.cancelled(c.Context)
	case over:
		return nil, nil, l.late(c)
	case len(needed) == 0:
		return nil, nil, nil
	}
	answers = []byte{'{'}
	for _, q := range needed {
		if q.err != nil {
			return nil, l.unanswered(q), nil
		}
		answers = rawjson.AppendMember(answers, q.key, q.result)
	}
	return append(answers, '}'), nil, nil
}

func (l *link) questions(requests []byte) ([]*question, error) {
	if requests != nil && !rawjson.IsObject(requests) {
		return nil, l.srv.failure(BadReply, "sent inputRequests that are not an object", nil)
	}
	var all []*question
	for k, v := range rawjson.Members(requests) {
		method, _ := rawjson.String(rawjson.Get(v, "method"))
		q := &question{key: k, method: method, params: rawjson.Get(v, "params")}
		switch method {
		case "sampling/createMessage", "elicitation/create", "roots/list":
		default:
			return nil, l.srv.failure(BadReply, fmt.Sprintf("asked for input by %q, which is none", l.srv.quote(method, 60)), nil)
		}
		if q.params != nil && !rawjson.IsObject(q.params) {
			return nil, l.srv.failure(BadReply, "asked for input with params that are not an object", nil)
		}
		if all = append(all, q); len(all) > maxQuestions {
			return nil, l.srv.failure(BadReply, fmt.Sprintf("asked more than %d questions at once", maxQuestions), nil)
		}
	}
	return all, nil
}

// ask puts all questions side by side, as if the backend had sent requests
// during the call, and returns when all are answered.
func (l *link) ask(ctx context.Context, c *Call, needed []*question, opened *[]string) {
	c.Pause()
	defer c.Resume()
	var all sync.WaitGroup
	for _, q := range needed {
		if mode, _ := rawjson.String(rawjson.Get(q.params, "mode")); mode == "url" && q.method == "elicitation/create" {
			// The id is for the notice that follows. Legacy clients need one, and
			// modern servers give none.
			var ok bool
			if q.opens, ok = rawjson.String(rawjson.Get(q.params, "elicitationId")); !ok {
				q.opens = fmt.Sprintf("goblin-%d", l.srv.elicited.Add(1))
				q.params = rawjson.SetMember(q.params, "elicitationId", rawjson.Quote(q.opens))
			}
		}
		all.Go(func() {
			q.result, q.err = l.srv.opt.Handler.HandleRequest(ctx, l.srv, l, c, q.method, q.params)
			if q.err == nil && !rawjson.IsObject(q.result) {
				q.err = jsonrpc.Errorf(jsonrpc.CodeInternal, "the answer is not an object")
			}
		})
	}
	all.Wait()
	for _, q := range needed {
		if action, _ := rawjson.String(rawjson.Get(q.result, "action")); q.opens != "" && action == "accept" {
			*opened = append(*opened, q.opens)
		}
	}
}

// unanswered is the error of a call that needs what nobody gave.
func (l *link) unanswered(q *question) []byte {
	capability := map[string]string{
		"sampling/createMessage": "sampling", "elicitation/create": "elicitation", "roots/list": "roots",
	}[q.method]
	data := append([]byte(`{"code":"INPUT_REQUIRED","server":`), rawjson.Quote(l.srv.cfg.Name)...)
	data = append(data, `,"requiredCapabilities":{"`+capability+`":{}}}`...)
	return (&jsonrpc.Error{
		Code:    jsonrpc.CodeInternal,
		Message: fmt.Sprintf("server %q needs %s for this call (%s): %s", l.srv.cfg.Name, capability, q.method, q.err.Message),
		Data:    data,
	}).Object()
}

// wentThrough tells that URLs which the client has opened have served their
// purpose: the call that needed them has a result.
func (l *link) wentThrough(c *Call, opened []string) {
	for _, id := range opened {
		l.srv.opt.Handler.HandleNotification(l.srv, l, c, "notifications/elicitation/complete", rawjson.Object("elicitationId", id))
	}
}

// refreshLimit bounds fetching the tools again after a header did not match.
const refreshLimit = 20 * time.Second

// mismatch handles errors of the hop itself. It reports true when another try
// makes sense: the headers were made from a definition that is not the
// server's any more.
func (l *link) mismatch(c *Call, object []byte) (again bool) {
	code, _ := rawjson.Int(rawjson.Get(object, "code"))
	switch {
	case code == codeUnsupportedVersion:
		// It was replaced by one of other revisions: what those are shows when it
		// is asked anew.
		e := l.srv.refused(object)
		l.fail(l.srv.failure(ConnectionError, fmt.Sprintf("does not speak revision %s any more: %v", modernRevision, e), e))
	case code == codeHeaderMismatch && !l.wire.local() && c.Method == "tools/call":
		ctx, cancel := context.WithTimeout(c.Context, refreshLimit)
		defer cancel()
		items, _, _, err := l.pages(ctx, &listings[0], func(size int64) bool { return size > l.srv.tune.lists })
		if err != nil {
			if !errors.Is(err, context.Canceled) {
				l.srv.log.Debug("Tools not fetched again", "err", err)
			}
			return false
		}
		l.srv.mirror(items, false)
		l.srv.relist(l)
		return true
	}
	return false
}
