package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// The fake server for revision 2026-07-28. It is strict: it answers violations with the
// revision's errors.

const modernRevision = "2026-07-28"

const metaKey = "io.modelcontextprotocol/"

// filter contains the subjects of a subscriptions/listen.
type filter struct {
	Tools     bool     `json:"toolsListChanged,omitempty"`
	Prompts   bool     `json:"promptsListChanged,omitempty"`
	Resources bool     `json:"resourcesListChanged,omitempty"`
	URIs      []string `json:"resourceSubscriptions,omitempty"`
}

func (f filter) wants(method, uri string) bool {
	switch method {
	case "notifications/tools/list_changed":
		return f.Tools
	case "notifications/prompts/list_changed":
		return f.Prompts
	case "notifications/resources/list_changed":
		return f.Resources
	case "notifications/resources/updated":
		return slices.Contains(f.URIs, uri)
	}
	return false
}

func meta(params json.RawMessage, name string) json.RawMessage {
	var p struct {
		Meta map[string]json.RawMessage `json:"_meta"`
	}
	_ = json.Unmarshal(params, &p)
	return p.Meta[metaKey+name]
}

func (s *server) dual() bool { return s.Era == "dual" || s.Era == "either" || s.Era == "discreet" }

func (s *server) isModern(params json.RawMessage) bool {
	return (s.Era == "modern" || s.dual()) && meta(params, "protocolVersion") != nil
}

// stateless handles the differences from older revisions before a request is served. It
// returns true if the request is done.
func (s *server) stateless(x *exchange) (done bool) {
	switch {
	case x.id == nil:
		return false
	case s.Era == "mute" && x.method == "server/discover":
		x.over = true
		return true
	case s.isModern(x.params):
		if x.method == "server/discover" && s.Era == "either" {
			s.discoveredOnce.Store(true)
		}
	case s.Era == "either" && x.method == "initialize" && s.discoveredOnce.Load():
		s.fail(x, []byte(`{"code":0,"message":"duplicate initialize"}`))
		return true
	case s.Era == "modern":
		s.fail(x, fmt.Appendf(nil, `{"code":-32022,"message":"unsupported","data":{"supported":[%q],"requested":"?"}}`, modernRevision))
		return true
	default:
		return false
	}
	x.modern = true
	var version string
	_ = json.Unmarshal(meta(x.params, "protocolVersion"), &version)
	switch {
	case version != modernRevision:
		s.fail(x, fmt.Appendf(nil, `{"code":-32022,"message":"unsupported","data":{"supported":[%q],"requested":%q}}`, modernRevision, version))
		return true
	case meta(x.params, "clientCapabilities") == nil:
		s.fail(x, []byte(`{"code":-32602,"message":"no clientCapabilities"}`))
		return true
	}
	switch x.method {
	case "initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe":
		s.fail(x, fmt.Appendf(nil, `{"code":-32601,"message":%q}`, "Method not found: "+x.method))
		return true
	case "subscriptions/listen":
		s.act(x, s.actions(x.method, "")) // the script can make it fail
		if !x.over {
			s.listen(x)
		}
		return true
	case "server/discover":
		s.act(x, s.actions(x.method, ""))
		if !x.over {
			s.succeed(x, s.discovered())
		}
		return true
	}
	s.resume(x)
	return false
}

func (s *server) discovered() json.RawMessage {
	versions := []string{modernRevision}
	if s.dual() && s.Era != "discreet" {
		versions = append(versions, "2025-11-25", "2025-06-18")
	}
	answer := map[string]any{"supportedVersions": versions, "capabilities": s.capabilities(), "ttlMs": 0, "cacheScope": "private"}
	if s.Instructions != "" {
		answer["instructions"] = s.Instructions
	}
	return marshal(answer)
}

func (s *server) complete(x *exchange, result json.RawMessage) json.RawMessage {
	var o map[string]json.RawMessage
	if json.Unmarshal(result, &o) != nil || o == nil {
		return result
	}
	if o["resultType"] == nil {
		o["resultType"] = json.RawMessage(`"complete"`)
	}
	var m map[string]json.RawMessage
	_ = json.Unmarshal(o["_meta"], &m)
	if m == nil {
		m = map[string]json.RawMessage{}
	}
	m[metaKey+"serverInfo"] = marshal(map[string]string{"name": s.Name, "version": "1.0.0"})
	if x.method == "subscriptions/listen" {
		m[metaKey+"subscriptionId"] = x.id
	}
	o["_meta"] = marshal(m)
	return marshal(o)
}

type state struct {
	Answers []json.RawMessage
	Rounds  int
}

func (s *server) resume(x *exchange) {
	var p struct {
		State     *string                    `json:"requestState"`
		Responses map[string]json.RawMessage `json:"inputResponses"`
	}
	_ = json.Unmarshal(x.params, &p)
	if p.State == nil {
		return
	}
	var st state
	text, _ := base64.StdEncoding.DecodeString(*p.State)
	_ = json.Unmarshal(text, &st)
	x.answers, x.rounds = st.Answers, st.Rounds+1
	for i := range len(p.Responses) {
		x.answers = append(x.answers, p.Responses[fmt.Sprintf("ask-%d", i)])
	}
}

func (s *server) require(x *exchange, asks []*action) {
	if x.asked += len(asks); len(x.answers) >= x.asked {
		for i, a := range asks {
			s.tell(event{Ev: "reply", Name: a.Method, Msg: x.answers[x.asked-len(asks)+i]})
		}
		return
	}
	requests := map[string]any{}
	for i, a := range asks {
		r := map[string]any{"method": a.Method}
		if a.Params != nil {
			r["params"] = a.Params
		}
		requests[fmt.Sprintf("ask-%d", i)] = r
	}
	s.input(x, requests)
}

func (s *server) later(x *exchange, a *action) {
	if x.rounds < a.N {
		s.input(x, nil)
	}
}

func (s *server) input(x *exchange, requests map[string]any) {
	o := map[string]any{
		"resultType":   "input_required",
		"requestState": base64.StdEncoding.EncodeToString(marshal(state{x.answers, x.rounds})),
	}
	if requests != nil {
		o["inputRequests"] = requests
	}
	s.succeed(x, marshal(o))
}

func (s *server) listen(x *exchange) {
	var p struct{ Notifications *filter }
	if json.Unmarshal(x.params, &p) != nil || p.Notifications == nil {
		s.fail(x, []byte(`{"code":-32602,"message":"no notifications"}`))
		return
	}
	f := *p.Notifications
	f.URIs = slices.DeleteFunc(f.URIs, func(uri string) bool { return slices.Contains(s.DropURIs, uri) })
	// The test is notified first, and nothing is sent before the acknowledgement.
	s.listening.Lock()
	s.tell(event{Ev: "listen", Name: string(x.id), Msg: marshal(f)})
	x.send(fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":%s,"_meta":{"%ssubscriptionId":%s}}}`,
		marshal(f), metaKey, x.id))
	s.listens[x] = f
	s.listening.Unlock()
	<-x.cancelled
	s.listening.Lock()
	delete(s.listens, x)
	s.listening.Unlock()
	s.tell(event{Ev: "unlisten", Name: string(x.id)})
}

// announces reports whether a notification can be listened for.
func announces(method string) bool {
	switch method {
	case "notifications/tools/list_changed", "notifications/prompts/list_changed",
		"notifications/resources/list_changed", "notifications/resources/updated":
		return true
	}
	return false
}

// tagged sends a notification on the matching listen streams or a request's own stream,
// and unchanged to older clients. It returns true if the caller must send it.
func (s *server) tagged(x *exchange, method string, params json.RawMessage) bool {
	var p map[string]json.RawMessage
	_ = json.Unmarshal(params, &p)
	switch {
	case method == "notifications/message":
		levels := []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}
		var least, level string
		_ = json.Unmarshal(meta(x.params, "logLevel"), &least)
		_ = json.Unmarshal(p["level"], &level)
		return least != "" && slices.Index(levels, level) >= slices.Index(levels, least)
	case !announces(method):
		return true
	case s.greeted.Load():
		s.everybody(fmt.Appendf(nil, `{"jsonrpc":"2.0","method":%q,"params":%s}`, method, params))
	}
	var uri string
	_ = json.Unmarshal(p["uri"], &uri)
	s.listening.Lock()
	var open []*exchange
	for l, f := range s.listens {
		if f.wants(method, uri) {
			open = append(open, l)
		}
	}
	s.listening.Unlock()
	for _, l := range open {
		p["_meta"] = fmt.Appendf(nil, `{"%ssubscriptionId":%s,"vendor":1}`, metaKey, l.id)
		l.send(fmt.Appendf(nil, `{"jsonrpc":"2.0","method":%q,"params":%s}`, method, marshal(p)))
	}
	return false
}

func (s *server) headersFit(p *poster, m message, head map[string]string) bool {
	var params struct {
		Name      string
		URI       string `json:"uri"`
		TaskID    string `json:"taskId"`
		Arguments map[string]json.RawMessage
	}
	_ = json.Unmarshal(m.Params, &params)
	var version string
	_ = json.Unmarshal(meta(m.Params, "protocolVersion"), &version)
	want := map[string]string{"mcp-method": m.Method, "mcp-protocol-version": version}
	switch m.Method {
	case "tools/call":
		want["mcp-name"] = params.Name
		s.wantParams(want, params.Name, params.Arguments)
	case "prompts/get":
		want["mcp-name"] = params.Name
	case "resources/read":
		want["mcp-name"] = params.URI
	case "tasks/get", "tasks/update", "tasks/cancel":
		want["mcp-name"] = params.TaskID
	}
	for k, v := range want {
		got := head[k]
		if code, ok := strings.CutPrefix(got, "=?base64?"); ok {
			text, _ := base64.StdEncoding.DecodeString(strings.TrimSuffix(code, "?="))
			got = string(text)
		}
		if got != v {
			p.modern(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32020,"message":%s}}`,
				m.ID, marshal(fmt.Sprintf("header %s is %q, not %q", k, got, v))), false)
			return false
		}
	}
	return true
}

// wantParams adds the headers of the arguments that the tool's schema marks.
func (s *server) wantParams(want map[string]string, tool string, arguments map[string]json.RawMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, entry := range s.Tools {
		var t struct {
			Name        string
			InputSchema struct {
				Properties map[string]map[string]json.RawMessage
			} `json:"inputSchema"`
		}
		if json.Unmarshal(entry, &t) != nil || t.Name != tool {
			continue
		}
		for name, property := range t.InputSchema.Properties {
			var header, text string
			if json.Unmarshal(property["x-mcp-header"], &header) != nil || arguments[name] == nil {
				continue
			}
			if json.Unmarshal(arguments[name], &text) != nil {
				text = string(arguments[name])
			}
			want["mcp-param-"+strings.ToLower(header)] = text
		}
	}
}

func (p *poster) modern(frame []byte, sse bool) {
	var m struct{ Error *struct{ Code int } }
	_ = json.Unmarshal(frame, &m)
	status := 0
	if m.Error != nil {
		switch m.Error.Code {
		case -32601:
			status = http.StatusNotFound
		case -32602, -32020, -32021, -32022:
			status = http.StatusBadRequest
		}
	}
	p.mu.Lock()
	if status == 0 || p.sse || p.over {
		p.mu.Unlock()
		p.answer(frame, sse)
		return
	}
	defer p.mu.Unlock()
	p.over = true
	p.w.Header().Set("Content-Type", "application/json")
	p.w.WriteHeader(status)
	_, _ = p.w.Write(frame)
	close(p.done)
}

func (s *server) unlisten() {
	s.listening.Lock()
	var open []*exchange
	for x := range s.listens {
		open = append(open, x)
	}
	clear(s.listens)
	s.listening.Unlock()
	for _, x := range open {
		s.succeed(x, json.RawMessage(`{}`))
	}
}
