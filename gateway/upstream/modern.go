package upstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"goblin/gateway/jsonrpc"
	"goblin/gateway/upstream/wire"
	"goblin/registry/rawjson"
)

const (
	// maxRounds is the maximum number of input-required results per call.
	maxRounds = 10
	// maxQuestions is the maximum number of requests in one such result.
	maxQuestions = 32
)

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
	var opened []string
	refreshed := false
	for round := 0; ; {
		reply, err := l.exchange(c)
		if err != nil {
			return reply, err
		}
		if reply.Error != nil {
			if !refreshed && l.handleHeaderMismatch(c, reply.Error) {
				refreshed = true
				c.prepareRetry(c.InputResponses, c.RequestState)
				continue
			}
			return reply, nil
		}
		kind, typed := rawjson.String(reply.Shape.Get(reply.Result, "resultType"))
		switch {
		case typed && c.acceptsResult(kind):
			return withoutModernMembers(reply, false), nil
		case typed && kind == "input_required":
		case typed && kind != "complete", !typed && !absent(reply.Shape.Get(reply.Result, "resultType")):
			return jsonrpc.Reply{}, l.srv.newError(BadReply, fmt.Sprintf("sent a result of unknown type %q", l.srv.quote(kind, 60)), nil)
		default:
			l.completeElicitations(c, opened)
			return withoutModernMembers(reply, true), nil
		}
		if round++; round > maxRounds {
			return jsonrpc.Reply{}, l.srv.newError(BadReply, fmt.Sprintf("%s %d times in one call", []string{"postponed the result", "asked for input"}[min(len(c.InputResponses), 1)], maxRounds), nil)
		}
		answers, fault, err := l.resolveInput(c, reply.Result, &opened)
		if err != nil || fault != nil {
			return jsonrpc.Reply{Error: fault}, err
		}
		c.prepareRetry(answers, rawjson.Get(reply.Result, "requestState"))
	}
}

func absent(v []byte) bool { return v == nil || string(v) == "null" }

func withoutModernMembers(reply jsonrpc.Reply, result bool) jsonrpc.Reply {
	n := len(reply.Result)
	reply.Result = wire.StripHopKeys(reply.Result, result)
	if len(reply.Result) != n {
		reply.Shape = nil // offsets have changed
	}
	return reply
}

type question struct {
	key           []byte
	method        string
	params        []byte
	elicitationID string // of the URL to open, or ""
	result        []byte
	err           *jsonrpc.Error
}

// resolveInput requests the input that a server needs. fault is the error object for the
// caller if that fails.
func (l *link) resolveInput(c *Call, result []byte, opened *[]string) (answers, fault []byte, err error) {
	switch c.Method {
	case "tools/call", "prompts/get", "resources/read":
	default:
		return nil, nil, l.srv.newError(BadReply, "asked for input on "+c.Method, nil)
	}
	needed, err := l.questions(rawjson.Get(result, "inputRequests"))
	if err != nil {
		return nil, nil, err
	}
	state := rawjson.Get(result, "requestState")
	switch {
	case state != nil && !rawjson.IsString(state):
		return nil, nil, l.srv.newError(BadReply, "sent a requestState that is not a string", nil)
	case len(needed) == 0 && state == nil:
		return nil, nil, l.srv.newError(BadReply, "asked for input without naming any", nil)
	}
	ctx, cancel := context.WithCancel(c.Context)
	defer cancel()
	defer context.AfterFunc(l.ctx, cancel)()
	if len(needed) == 0 { // not ready; retry with its state only
		_ = sleep(ctx, c.timer.RetryDelay()) // the reason is checked below
	}
	l.askAll(ctx, c, needed, opened)
	switch over, _, _ := c.timer.Check(time.Now()); {
	case l.Err() != nil:
		return nil, nil, l.Err()
	case c.Context.Err() != nil:
		return nil, nil, l.cancelledError(c.Context)
	case over:
		return nil, nil, l.timeoutError(c)
	case len(needed) == 0:
		return nil, nil, nil
	}
	answers = []byte{'{'}
	for _, q := range needed {
		if q.err != nil {
			return nil, l.unansweredError(q), nil
		}
		answers = rawjson.AppendMember(answers, q.key, q.result)
	}
	return append(answers, '}'), nil, nil
}

func (l *link) questions(requests []byte) ([]*question, error) {
	if requests != nil && !rawjson.IsObject(requests) {
		return nil, l.srv.newError(BadReply, "sent inputRequests that are not an object", nil)
	}
	var all []*question
	for k, v := range rawjson.Members(requests) {
		method := rawjson.GetString(v, "method")
		q := &question{key: k, method: method, params: rawjson.Get(v, "params")}
		switch method {
		case "sampling/createMessage", "elicitation/create", "roots/list":
		default:
			return nil, l.srv.newError(BadReply, fmt.Sprintf("asked for input with the unknown method %q", l.srv.quote(method, 60)), nil)
		}
		if q.params != nil && !rawjson.IsObject(q.params) {
			return nil, l.srv.newError(BadReply, "asked for input with params that are not an object", nil)
		}
		if all = append(all, q); len(all) > maxQuestions {
			return nil, l.srv.newError(BadReply, fmt.Sprintf("asked for more than %d inputs at once", maxQuestions), nil)
		}
	}
	return all, nil
}

func (l *link) askAll(ctx context.Context, c *Call, needed []*question, opened *[]string) {
	c.Pause()
	defer c.Resume()
	var all sync.WaitGroup
	for _, q := range needed {
		if mode := rawjson.GetString(q.params, "mode"); mode == "url" && q.method == "elicitation/create" {
			// The later notification needs an id. Legacy clients require one, and modern
			// servers send none.
			var ok bool
			if q.elicitationID, ok = rawjson.String(rawjson.Get(q.params, "elicitationId")); !ok {
				q.elicitationID = fmt.Sprintf("goblin-%d", l.srv.elicitationCount.Add(1))
				q.params = rawjson.SetMember(q.params, "elicitationId", rawjson.Quote(q.elicitationID))
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
		if action := rawjson.GetString(q.result, "action"); q.elicitationID != "" && action == "accept" {
			*opened = append(*opened, q.elicitationID)
		}
	}
}

func (l *link) unansweredError(q *question) []byte {
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

func (l *link) completeElicitations(c *Call, opened []string) {
	for _, id := range opened {
		l.srv.opt.Handler.HandleNotification(l.srv, l, c, "notifications/elicitation/complete", rawjson.Object("elicitationId", id))
	}
}

const refreshLimit = 20 * time.Second

// handleHeaderMismatch handles errors caused by outdated headers or revisions. It returns
// true if the call should be retried with headers from the refreshed tool definitions.
func (l *link) handleHeaderMismatch(c *Call, object []byte) (again bool) {
	code, _ := rawjson.Int(rawjson.Get(object, "code"))
	switch {
	case code == codeUnsupportedVersion:
		// The server was replaced. The next handshake determines its revisions.
		e := l.srv.rpcError(object)
		l.fail(l.srv.newError(ConnectionError, fmt.Sprintf("no longer supports revision %s: %v", modernRevision, e), e))
	case code == codeHeaderMismatch && !l.wire.isLocal() && c.Method == "tools/call":
		ctx, cancel := context.WithTimeout(c.Context, refreshLimit)
		defer cancel()
		items, _, _, err := l.fetchPages(ctx, &listKinds[0], func(size int64) bool { return size > l.srv.tune.listBytes })
		if err != nil {
			if !errors.Is(err, context.Canceled) {
				l.srv.log.Debug("tools not refreshed", "err", err)
			}
			return false
		}
		l.srv.mirror(items, false)
		l.srv.relist(l)
		return true
	}
	return false
}

// modernFrame returns the request with an id and the protocol's members in `_meta`. Other
// keys of the client stay.
func (l *link) modernFrame(c *Call, id []byte) []byte {
	params := c.Params
	if params == nil {
		params = []byte("{}")
	}
	edits := slices.Clone(c.Edits)
	edits = c.Token.Replace(edits, id)
	var head []byte // first members, each followed by a comma
	retry := c.InputResponses != nil || c.RequestState != nil
	if c.InputResponses != nil {
		head = slices.Concat(head, []byte(`"inputResponses":`), c.InputResponses, []byte{','})
	}
	if c.RequestState != nil {
		head = slices.Concat(head, []byte(`"requestState":`), c.RequestState, []byte{','})
	}
	strays, others := rawjson.DropMembers(params, params, func(k rawjson.Key) bool {
		return retry && (k.Is("inputResponses") || k.Is("requestState"))
	})
	edits = append(edits, strays...)

	var own []byte
	if c.Token.IsMissing() {
		own = wire.TokenMember(id)
	}
	own = append(own, `"`+wire.Protocol+`":"`+modernRevision+`","`+wire.Capabilities+`":`...)
	if c.Capabilities != nil {
		own = append(own, c.Capabilities...)
	} else {
		own = append(own, l.srv.opt.Capabilities...)
	}
	own = append(own, `,"`+wire.ClientInfo+`":{"name":"goblin","version":`...)
	own = append(rawjson.AppendString(own, l.srv.opt.Version), '}')
	if c.LogLevel != "" {
		own = rawjson.AppendString(append(own, `,"`+wire.LogLevel+`":`...), c.LogLevel)
	}
	meta := rawjson.Get(params, "_meta")
	switch {
	case rawjson.IsObject(meta):
		old, kept := rawjson.DropMembers(params, meta, wire.IsHopKey)
		edits = append(edits, old...)
		if kept > 0 {
			own = append(own, ',')
		}
		at := rawjson.Offset(params, meta) + 1
		edits = append(edits, rawjson.Edit{Start: at, End: at, Text: own})
	case meta != nil:
		edits = append(edits, rawjson.ReplaceEdit(params, meta, slices.Concat([]byte("{"), own, []byte("}"))))
	default:
		head = slices.Concat(head, []byte(`"_meta":{`), own, []byte(`},`))
	}
	if len(head) > 0 {
		if others == 0 {
			head = head[:len(head)-1]
		}
		at := bytes.IndexByte(params, '{') + 1
		edits = append(edits, rawjson.Edit{Start: at, End: at, Text: head})
	}
	wire.SortEdits(edits)
	return jsonrpc.RequestFrame(id, c.Method, params, edits...)
}

// Headers of a POST in the modern era (2026-07-28, transports, request headers).
const (
	headerMethod = "Mcp-Method"
	headerName   = "Mcp-Name"
)

var nameMembers = map[string]string{
	"tools/call": "name", "prompts/get": "name", "resources/read": "uri",
	"tasks/get": "taskId", "tasks/update": "taskId", "tasks/cancel": "taskId", // SEP-2663
}

func (h *streamable) modernHeaders(c *Call, frame []byte) http.Header {
	head := http.Header{}
	head.Set(headerProtocol, modernRevision)
	head.Set(headerMethod, c.Method)
	member := nameMembers[c.Method]
	if member == "" {
		return head
	}
	params := rawjson.Get(frame, "params")
	name, _ := rawjson.String(rawjson.Get(params, member))
	if value, ok := mcp.EncodeHeaderValue(name); ok {
		head.Set(headerName, value)
	}
	if m := h.srv.headerMirrors.Load(); m != nil && c.Method == "tools/call" {
		m.Headers(head, name, rawjson.Get(params, "arguments"))
	}
	return head
}

// mirror records which arguments of the listed tools belong in headers. With drop, it
// omits tools with invalid annotations, which modern clients cannot call.
func (s *Server) mirror(items [][]byte, drop bool) [][]byte {
	m, kept := wire.MirrorsFromTools(items, func(name string, err error) (stays bool) {
		if drop {
			s.note(slog.LevelWarn, fmt.Sprintf("tool %q is omitted: %s", s.quote(name, 200), s.quote(err.Error(), 300)))
		}
		return !drop
	})
	s.headerMirrors.Store(&m)
	return kept
}
