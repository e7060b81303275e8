package replay

import (
	"context"
	"fmt"
	"slices"

	"goblin/gateway/jsonrpc"
	"goblin/registry/rawjson"
)

// Revision 2026-07-28 has no session. Clients send their identity with each request and
// listen for changes on a stream. They answer requests of the server by a retry.
const (
	modernRevision         = "2026-07-28"
	metaPrefix             = "io.modelcontextprotocol/"
	protocolKey            = metaPrefix + "protocolVersion"
	listenMethod           = "subscriptions/listen"
	codeUnsupportedVersion = -32022
	// maxParked is the number of calls that wait for a retry.
	maxParked = 1024
)

func unsupportedVersion() *jsonrpc.Error {
	return &jsonrpc.Error{
		Code: codeUnsupportedVersion, Message: "the recorded server speaks " + modernRevision + " only",
		Data: []byte(`{"supported":["` + modernRevision + `"]}`),
	}
}

func (s *session) discover() ([]byte, *jsonrpc.Error) {
	if !s.modern() {
		return nil, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "Method not found: server/discover")
	}
	s.greet()
	result := []byte(`{"resultType":"complete","supportedVersions":["` + modernRevision + `"],"ttlMs":0,"cacheScope":"private"}`)
	for _, name := range []string{"capabilities", "instructions"} {
		if v := rawjson.Get(s.handshake, name); v != nil {
			result = rawjson.SetMember(result, name, v)
		}
	}
	if info := rawjson.Get(s.handshake, "serverInfo"); info != nil {
		result = rawjson.SetMember(result, metaMember, rawjson.SetMember([]byte("{}"), metaPrefix+"serverInfo", info))
	}
	return result, nil
}

// parked is a call that waits for the client's answer to a request of the server.
type parked struct {
	call *call
	next int // step
}

// park answers with a recorded request of the server. The client retries with its answer.
func (s *session) park(x *exchange, c *call, i int) {
	step := &c.steps[i]
	params, err := s.text(step.params)
	if err != nil {
		s.fail(x, c, fmt.Sprintf("a request to the client cannot be read: %v", err))
		return
	}
	s.mu.Lock()
	s.states++
	state := fmt.Sprintf("goblin-replay-%d", s.states)
	full := len(s.parked) >= maxParked
	if !full {
		s.parked[state] = &parked{c, i + 1}
	}
	s.mu.Unlock()
	if full {
		s.answer(x, nil, jsonrpc.Errorf(jsonrpc.CodeInternal, "more than %d calls wait for answers", maxParked))
		return
	}
	request := rawjson.Object("method", step.method)
	if len(params) > 0 {
		request = rawjson.SetMember(request, "params", params)
	}
	result := []byte(`{"resultType":"input_required"}`)
	result = rawjson.SetMember(result, "inputRequests", rawjson.SetMember([]byte("{}"), "replay", request))
	s.answer(x, rawjson.SetMember(result, requestState, rawjson.Quote(state)), nil)
}

// resume returns the parked call that a request continues, or nil.
func (s *session) resume(x *exchange) *parked {
	state := rawjson.GetString(x.params, requestState)
	s.mu.Lock()
	p := s.parked[state]
	delete(s.parked, state)
	s.mu.Unlock()
	if p != nil {
		s.compareAnswer(&p.call.steps[p.next-1], rawjson.Path(x.params, inputResponses, "replay"))
	}
	return p
}

// listen is an open stream of changes.
type listen struct {
	id     []byte
	wanted []byte // the client's filter
}

var listenMembers = map[string]string{
	"notifications/tools/list_changed":     "toolsListChanged",
	"notifications/prompts/list_changed":   "promptsListChanged",
	"notifications/resources/list_changed": "resourcesListChanged",
	"notifications/resources/updated":      "resourceSubscriptions",
}

func isListened(method string) bool { return listenMembers[method] != "" }

// listen serves one stream until the client cancels it.
func (s *session) listen(ctx context.Context, x *exchange) {
	wanted := rawjson.Get(x.params, "notifications")
	if !rawjson.IsObject(wanted) {
		s.answer(x, nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "Invalid params: notifications are missing"))
		return
	}
	key := jsonrpc.IDString(x.id)
	l := &listen{id: slices.Clone(x.id), wanted: slices.Clone(wanted)}
	s.mu.Lock()
	s.listens[key] = l
	l.send(s, "notifications/subscriptions/acknowledged", rawjson.SetMember([]byte("{}"), "notifications", l.wanted))
	s.mu.Unlock()
	<-ctx.Done()
	s.mu.Lock()
	delete(s.listens, key)
	s.mu.Unlock()
}

func (l *listen) send(s *session, method string, params []byte) {
	if params == nil {
		params = []byte("{}")
	}
	meta := rawjson.SetMember([]byte("{}"), metaPrefix+"subscriptionId", l.id)
	s.out.Send(jsonrpc.OneLine(jsonrpc.NotificationFrame(method, rawjson.SetMember(params, metaMember, meta))))
}

func (l *listen) wants(method string, params []byte) bool {
	wanted := rawjson.Get(l.wanted, listenMembers[method])
	if !rawjson.IsArray(wanted) {
		return string(wanted) == "true"
	}
	uri := rawjson.GetString(params, uriMember)
	for v := range rawjson.Elements(wanted) {
		if text, ok := rawjson.String(v); ok && text == uri {
			return true
		}
	}
	return false
}

func (s *session) notifyListens(method string, params []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.listens {
		if l.wants(method, params) {
			l.send(s, method, params)
		}
	}
}
