package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// server is the process's MCP server. mu guards the script's lists and actions and the
// tables below it. Nothing is sent while it is held.
type server struct {
	*script
	start   int
	deaf    atomic.Bool
	counted atomic.Int64
	control net.Conn
	log     *os.File
	telling sync.Mutex

	everybody func(frame []byte) // sends outside of any request

	mu       sync.Mutex
	gates    map[string]chan struct{}
	running  map[string]*exchange            // by raw id and session
	asked    map[string]chan json.RawMessage // requests to the client, by raw id
	lastAsk  int
	sessions *sessions
	jobs     *jobs

	discoveredOnce atomic.Bool
	greeted        atomic.Bool // by initialize

	listening sync.Mutex
	listens   map[*exchange]filter // guarded by listening
}

func newServer(sc *script) *server {
	return &server{
		script:   sc,
		gates:    map[string]chan struct{}{},
		running:  map[string]*exchange{},
		asked:    map[string]chan json.RawMessage{},
		sessions: newSessions(),
		jobs:     newJobs(),
		listens:  map[*exchange]filter{},
	}
}

// origin is the source of a message, with the means to reply.
type origin struct {
	send    func(frame []byte) // with the answer, before it
	answer  func(frame []byte)
	raw     func(text []byte) error
	status  func(a *action) // HTTP only
	session string
	http    string
	headers map[string]string
}

// exchange is one request in flight. Without an id it is a notification or a command.
type exchange struct {
	origin
	id        json.RawMessage
	method    string
	key       string
	params    json.RawMessage
	cancelled chan struct{}
	answers   []json.RawMessage
	over      bool
	modern    bool
	rounds    int  // modern: rounds of this request
	asked     int  // modern: answers used by actions
	job       *job // the task that it works for
}

func (s *server) outside() *exchange {
	return &exchange{origin: origin{send: func(f []byte) { s.everybody(f) }}}
}

type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

func (s *server) receive(text []byte, from origin) {
	var m message
	e := event{Ev: "recv", Session: from.session, HTTP: from.http, Headers: from.headers}
	if err := json.Unmarshal(text, &m); err != nil {
		e.Bad = string(text)
		s.tell(e)
		return
	}
	e.Msg = slices.Clone(text)
	s.tell(e)
	switch {
	case m.Method == "":
		s.replied(m)
	case m.ID == nil:
		s.notified(m, from)
	default:
		x := &exchange{origin: from, id: m.ID, method: m.Method, key: key(m), params: m.Params, cancelled: make(chan struct{})}
		s.mu.Lock()
		s.running[x.session+" "+string(x.id)] = x
		s.mu.Unlock()
		// A slow process still answers the request that detects its era first. As with
		// SDKs, a ping is answered before later messages.
		first := m.Method == "server/discover" || m.Method == "ping"
		if s.Serial || first && s.actions(m.Method, "") == nil {
			s.handle(x)
			return
		}
		go s.handle(x)
	}
}

func key(m message) string {
	var p struct {
		Name string
		URI  string `json:"uri"`
		Ref  struct {
			Name string
			URI  string `json:"uri"`
		}
	}
	_ = json.Unmarshal(m.Params, &p) // other params have no key
	return p.Name + p.URI + p.Ref.Name + p.Ref.URI
}

func (s *server) replied(m message) {
	s.mu.Lock()
	ch := s.asked[string(m.ID)]
	delete(s.asked, string(m.ID))
	s.mu.Unlock()
	if ch == nil {
		return
	}
	if m.Error != nil {
		ch <- marshal(map[string]json.RawMessage{"error": m.Error})
		return
	}
	ch <- m.Result
}

func (s *server) notified(m message, from origin) {
	if m.Method == "notifications/cancelled" && !s.IgnoreCancel {
		var p struct {
			RequestID json.RawMessage `json:"requestId"`
		}
		_ = json.Unmarshal(m.Params, &p)
		s.cancel(from.session + " " + string(p.RequestID))
	}
	if acts := s.actions(m.Method, ""); acts != nil {
		x := s.outside()
		x.params = m.Params
		if s.Serial {
			s.act(x, acts)
			return
		}
		go s.act(x, acts)
	}
}

func (s *server) cancel(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if x := s.running[id]; x != nil {
		delete(s.running, id)
		close(x.cancelled)
	}
}

func (s *server) actions(method, key string) []*action {
	s.mu.Lock()
	defer s.mu.Unlock()
	if acts, ok := s.On[method+" "+key]; ok {
		return acts
	}
	return s.On[method]
}

// handle runs the script's actions for a request, and answers it unless they did.
func (s *server) handle(x *exchange) {
	if s.stateless(x) || s.tasked(x) {
		return
	}
	s.act(x, s.actions(x.method, x.key))
	if x.over {
		return
	}
	result, fault := s.result(x)
	if fault != "" {
		code := -32601
		if strings.HasPrefix(fault, unknown) {
			code = -32602
		}
		s.fail(x, fmt.Appendf(nil, `{"code":%d,"message":%s}`, code, marshal(fault)))
		return
	}
	s.succeed(x, result)
}

func (s *server) succeed(x *exchange, result json.RawMessage) {
	if x.modern {
		result = s.complete(x, result)
	}
	more := ""
	if s.ErrorNull {
		more = `,"error":null`
	}
	s.finish(x, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s%s}`, x.id, result, more))
}

func (s *server) fail(x *exchange, object json.RawMessage) {
	s.finish(x, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":%s}`, x.id, object))
}

func (s *server) finish(x *exchange, frame []byte) {
	x.over = true
	if x.id == nil {
		return
	}
	s.mu.Lock()
	delete(s.running, x.session+" "+string(x.id))
	s.mu.Unlock()
	if s.Around == nil {
		x.answer(frame)
	}
	for _, line := range s.Around {
		x.answer(bytes.ReplaceAll(line, []byte("$answer"), frame))
	}
}

const unknown = "Invalid params: "

func (s *server) result(x *exchange) (result json.RawMessage, fault string) {
	switch x.method {
	case "initialize":
		return s.initialized(x), ""
	case "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe":
		return json.RawMessage(`{}`), ""
	case "tools/list":
		return s.page("tools", x), ""
	case "prompts/list":
		return s.page("prompts", x), ""
	case "resources/list":
		return s.hinted(s.page("resources", x)), ""
	case "resources/templates/list":
		return s.page("templates", x), ""
	case "skills/list":
		return s.hinted(s.page("skills", x)), ""
	case "skills/get":
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, skill := range s.Skills {
			if named(skill, x.key) {
				return s.hinted(fmt.Appendf(nil, `{"skill":%s}`, skill)), ""
			}
		}
		return nil, unknown + "no skill " + x.key
	case "resources/directory/read":
		if children, ok := s.Folders[x.key]; ok {
			return s.hinted(marshal(map[string]any{"resources": children})), ""
		}
		return nil, unknown + "no folder " + x.key
	case "resources/read":
		return s.read(x.key), ""
	case "tools/call":
		return said(s.Calls[x.key], s.plain(x), toolText), ""
	case "prompts/get":
		return said(s.Gets[x.key], s.plain(x), promptText), ""
	case "completion/complete":
		return marshal(map[string]any{"completion": map[string]any{
			"values": []string{s.Name + ":" + x.key}, "total": 1, "hasMore": false,
		}}), ""
	}
	return nil, "Method not found: " + x.method
}

func (s *server) hinted(result []byte) json.RawMessage {
	for k, v := range s.Hints {
		result = fmt.Appendf(result[:len(result)-1], ",%q:%s}", k, v)
	}
	return result
}

func (s *server) initialized(x *exchange) json.RawMessage {
	s.greeted.Store(true)
	var p struct {
		ProtocolVersion json.RawMessage `json:"protocolVersion"`
	}
	_ = json.Unmarshal(x.params, &p)
	if s.Version != nil {
		p.ProtocolVersion = s.Version
	}
	answer := map[string]any{
		"protocolVersion": p.ProtocolVersion,
		"capabilities":    s.capabilities(),
		"serverInfo":      map[string]string{"name": s.Name, "version": "1.0.0"},
	}
	if s.Instructions != "" {
		answer["instructions"] = s.Instructions
	}
	return marshal(answer)
}

func (s *server) plain(x *exchange) string {
	var p struct {
		Arguments json.RawMessage
	}
	_ = json.Unmarshal(x.params, &p)
	return s.Name + ":" + x.key + ":" + string(p.Arguments)
}

// page returns one page of a list. Cursors are c1, c2, ….
func (s *server) page(kind string, x *exchange) json.RawMessage {
	var p struct{ Cursor string }
	_ = json.Unmarshal(x.params, &p)
	s.mu.Lock()
	list, size := slices.Clone(*s.list(kind)), s.PageSize
	s.mu.Unlock()
	if size <= 0 {
		size = max(1, len(list))
	}
	n := 0
	if len(p.Cursor) > 1 {
		n, _ = strconv.Atoi(p.Cursor[1:])
	}
	from := min(n*size, len(list))
	to := min(from+size, len(list))
	member := kind
	if kind == "templates" {
		member = "resourceTemplates"
	}
	b := fmt.Appendf(nil, `{%q:[`, member)
	for i, entry := range list[from:to] {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, entry...)
	}
	b = append(b, ']')
	if to < len(list) {
		b = fmt.Appendf(b, `,"nextCursor":"c%d"`, n+1)
	}
	return append(b, '}')
}

func (s *server) read(uri string) json.RawMessage {
	raw := s.Reads[uri]
	if raw != nil && raw[0] == '[' {
		return fmt.Appendf(nil, `{"contents":%s}`, raw)
	}
	return said(raw, s.Name+" "+uri, func(text string) json.RawMessage {
		return marshal(map[string]any{"contents": []any{
			map[string]string{"uri": uri, "mimeType": "text/plain", "text": text},
		}})
	})
}

// said returns a scripted answer: nil is the default text, a string is a text, anything
// else is the whole result.
func said(raw json.RawMessage, text string, wrap func(string) json.RawMessage) json.RawMessage {
	if raw == nil {
		return wrap(text)
	}
	if raw[0] == '"' {
		_ = json.Unmarshal(raw, &text)
		return wrap(text)
	}
	return raw
}

func toolText(text string) json.RawMessage {
	return marshal(map[string]any{"content": []any{map[string]string{"type": "text", "text": text}}})
}

func promptText(text string) json.RawMessage {
	return marshal(map[string]any{"messages": []any{
		map[string]any{"role": "user", "content": map[string]string{"type": "text", "text": text}},
	}})
}
