package e2e

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const protocolPrefix = "io.modelcontextprotocol/"

// stateless makes a client speak 2026-07-28: whatever it sends carries that
// envelope, in _meta and, over HTTP, in the headers.
func (c *client) stateless(meta ...obj) *client {
	c.modern = true
	write := c.write
	c.write = func(frame []byte) {
		var m obj
		dec := json.NewDecoder(strings.NewReader(string(frame)))
		dec.UseNumber()
		if dec.Decode(&m) != nil || m["id"] == nil {
			write(frame)
			return
		}
		params, _ := m["params"].(obj)
		if params == nil {
			params = obj{}
		}
		own, _ := params["_meta"].(obj)
		full := obj{
			protocolPrefix + "protocolVersion": modernRevision, protocolPrefix + "clientCapabilities": c.caps,
			protocolPrefix + "clientInfo": obj{"name": "stateless", "version": "1"},
		}
		for _, more := range append(meta, own) {
			for k, v := range more {
				full[k] = v
			}
		}
		params["_meta"], m["params"] = full, params
		write(marshal(m))
	}
	return c
}

// overEveryTransport runs a test with a stateless client of each kind.
func overEveryTransport(t *testing.T, test func(t *testing.T, w *world, connect func() *client)) {
	t.Helper()
	t.Parallel()
	t.Run("stdio", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		var c *client // a second client shares nothing, and need not
		test(t, w, func() *client {
			require.Nil(t, c, "one client only over stdio")
			c = w.pipe("stdio", "--standalone").stateless()
			return c
		})
	})
	t.Run("socket", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.hosted = true
		test(t, w, func() *client { return w.pipe("stdio").stateless() })
	})
	t.Run("http", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		var s *web
		test(t, w, func() *client {
			if s == nil {
				s = w.serve()
			}
			c := s.rawClient().stateless()
			c.web.stateless = true
			return c
		})
	})
}

// standardHeaders are what a stateless POST repeats of its body.
func standardHeaders(head http.Header, frame []byte) {
	head.Set("MCP-Protocol-Version", str(frame, "params", "_meta", protocolPrefix+"protocolVersion"))
	method := str(frame, "method")
	head.Set("Mcp-Method", method)
	name := str(frame, "params", "name")
	if method == "resources/read" {
		name = str(frame, "params", "uri")
	}
	if strings.HasPrefix(method, "tasks/") {
		name = str(frame, "params", "taskId")
	}
	if name != "" {
		head.Set("Mcp-Name", name)
	}
}

func TestStatelessRequestsNeedNoHandshake(t *testing.T) {
	overEveryTransport(t, func(t *testing.T, w *world, connect func() *client) {
		b := w.backend("b", obj{
			"tools": []obj{tool("echo")}, "resources": []obj{resource("file:///a")}, "prompts": []obj{{"name": "p"}},
			"on": obj{"tools/call echo": actions(do("echo"))},
		})
		c := connect()
		found := c.ok("server/discover", obj{})
		require.Contains(t, string(at(found, "supportedVersions")), `"2026-07-28"`)
		require.Contains(t, string(at(found, "supportedVersions")), `"2024-11-05"`)
		require.Contains(t, string(at(found, "instructions")), "b")
		require.Equal(t, "true", string(at(found, "capabilities", "resources", "subscribe")))

		for _, method := range []string{"server/discover", "tools/list", "prompts/list", "resources/list", "resources/templates/list"} {
			result := c.ok(method, obj{})
			require.Equal(t, `"complete"`, string(at(result, "resultType")), method)
			require.Equal(t, "0", string(at(result, "ttlMs")), method)
			require.Equal(t, `"private"`, string(at(result, "cacheScope")), method)
			require.Equal(t, "goblin", str(result, "_meta", protocolPrefix+"serverInfo", "name"), method)
		}
		read := c.ok("resources/read", obj{"uri": in("b", "file:///a")})
		require.Equal(t, "0", string(at(read, "ttlMs")))
		require.Equal(t, in("b", "file:///a"), str(read, "contents", 0, "uri"))

		// What is the protocol's own stays here; the rest reaches the server.
		result := c.ok("tools/call", obj{
			"name": "b_echo", "arguments": obj{"n": json.Number("9007199254740993")},
			"_meta": obj{"traceparent": "00-1", "x.example/k": obj{"a": 1}},
		})
		require.Equal(t, `"complete"`, string(at(result, "resultType")))
		require.Nil(t, at(result, "ttlMs"))
		got := b.waitReceived("tools/call", 1).Msg
		require.JSONEq(t, `{"traceparent":"00-1","x.example/k":{"a":1}}`, string(at(got, "params", "_meta")))
		require.Equal(t, `{"n":9007199254740993}`, string(at(got, "params", "arguments")))
		c.ok("tools/call", obj{"name": "b_echo"})
		require.Nil(t, at(b.waitReceived("tools/call", 2).Msg, "params", "_meta"))
	})
}

func TestStatelessErrors(t *testing.T) {
	overEveryTransport(t, func(t *testing.T, w *world, connect func() *client) {
		w.backend("b", obj{
			"resources": []obj{resource("file:///a"), resource("file:///b")}, "tools": []obj{tool("t")},
			"on": obj{
				"resources/read file:///a": actions(do("error", obj{"error": obj{"code": -32002, "message": "gone"}})),
				"resources/read file:///b": actions(do("error", obj{"error": obj{"code": -32002, "message": "gone", "data": obj{"uri": "file:///b", "k": 1}}})),
				"tools/call t":             actions(do("error", obj{"error": obj{"code": -32002, "message": "mine"}})),
			},
		})
		c := connect()
		for _, method := range []string{"initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe", "no/such"} {
			require.Equal(t, -32601, c.fault(method, obj{}).Code, method)
		}
		e := c.fault("resources/read", obj{"uri": in("b", "file:///none")})
		require.Equal(t, -32602, e.Code)
		require.Equal(t, in("b", "file:///none"), str(e.Data, "uri"))
		for _, uri := range []string{"file:///a", "file:///b"} {
			e = c.fault("resources/read", obj{"uri": in("b", uri)})
			require.Equal(t, -32602, e.Code)
			require.Equal(t, in("b", uri), str(e.Data, "uri"))
		}
		require.Equal(t, -32002, c.fault("tools/call", obj{"name": "b_t"}).Code, "a tool's own code")

		e = c.fault("tools/list", obj{"_meta": obj{protocolPrefix + "protocolVersion": "2099-01-01"}})
		require.Equal(t, -32022, e.Code)
		require.Equal(t, "2099-01-01", str(e.Data, "requested"))
		require.Contains(t, string(at(e.Data, "supported")), modernRevision)
		for member, bad := range map[string]any{"protocolVersion": 7, "clientCapabilities": nil, "logLevel": 3} {
			require.Equal(t, -32602, c.fault("tools/list", obj{"_meta": obj{protocolPrefix + member: bad}}).Code, member)
		}
	})
}

func TestBothErasShareAConnection(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backend("b", obj{"tools": []obj{tool("t")}, "resources": []obj{resource("file:///a")}, "capabilities": obj{"tools": obj{}, "resources": obj{"subscribe": true}}})
	c := w.standalone()
	direct := c.ok("tools/list", obj{})
	require.Nil(t, at(direct, "resultType"))
	require.Nil(t, at(c.ok("tools/call", obj{"name": "b_t"}), "resultType"))
	modern := obj{"_meta": obj{protocolPrefix + "protocolVersion": modernRevision, protocolPrefix + "clientCapabilities": obj{}}}
	require.Equal(t, `"complete"`, string(at(c.ok("tools/list", modern), "resultType")))
	require.Equal(t, -32601, c.fault("server/discover", obj{}).Code, "a session has no such method")

	listen := c.begin("subscriptions/listen", obj{"_meta": modern["_meta"], "notifications": obj{"resourceSubscriptions": []string{in("b", "file:///a")}}})
	c.noted("notifications/subscriptions/acknowledged", func(json.RawMessage) bool { return true })
	c.ok("resources/subscribe", obj{"uri": in("b", "file:///a")})
	require.Equal(t, 1, b.count("resources/subscribe"), "counted together")
	b.updated("file:///a")
	c.waitUpdates(2)
	c.notify("notifications/cancelled", obj{"requestId": json.RawMessage(listen)})
	c.ok("resources/unsubscribe", obj{"uri": in("b", "file:///a")})
	b.waitReceived("resources/unsubscribe", 1)
}

func TestHTTPHeadersOfStatelessRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.backend("b", obj{"tools": []obj{tool("t")}, "resources": []obj{resource("file:///ä")}})
	s := w.serve()
	s.client(false).ok("tools/list", obj{}) // the lists are there
	frame := func(method string, params obj) string {
		params["_meta"] = obj{protocolPrefix + "protocolVersion": modernRevision, protocolPrefix + "clientCapabilities": obj{}}
		return string(marshal(obj{"jsonrpc": "2.0", "id": 1, "method": method, "params": params}))
	}
	list, call := frame("tools/list", obj{}), frame("tools/call", obj{"name": "b_t"})
	read := frame("resources/read", obj{"uri": in("b", "file:///ä")})
	encoded := "=?base64?" + base64.StdEncoding.EncodeToString([]byte(in("b", "file:///ä"))) + "?="
	head := func(pairs ...string) map[string]string {
		h := map[string]string{"MCP-Protocol-Version": modernRevision, "Mcp-Method": "tools/list"}
		for i := 0; i < len(pairs); i += 2 {
			h[pairs[i]] = pairs[i+1]
		}
		return h
	}
	for name, c := range map[string]struct {
		verb, body string
		head       map[string]string
		status     int
		code       string
	}{
		"all right":                {"POST", list, head(), 200, ""},
		"session id is ignored":    {"POST", list, head("Mcp-Session-Id", "nobody"), 200, ""},
		"no version header":        {"POST", list, head("MCP-Protocol-Version", ""), 400, "-32020"},
		"another version header":   {"POST", list, head("MCP-Protocol-Version", "2025-11-25"), 400, "-32020"},
		"no method header":         {"POST", list, head("Mcp-Method", ""), 400, "-32020"},
		"another method":           {"POST", list, head("Mcp-Method", "tools/call"), 400, "-32020"},
		"no name":                  {"POST", call, head("Mcp-Method", "tools/call"), 400, "-32020"},
		"another name":             {"POST", call, head("Mcp-Method", "tools/call", "Mcp-Name", "b_u"), 400, "-32020"},
		"name":                     {"POST", call, head("Mcp-Method", "tools/call", "Mcp-Name", "b_t"), 200, ""},
		"name in base64":           {"POST", read, head("Mcp-Method", "resources/read", "Mcp-Name", encoded), 200, ""},
		"broken base64":            {"POST", read, head("Mcp-Method", "resources/read", "Mcp-Name", "=?base64?_?="), 400, "-32020"},
		"missing envelope":         {"POST", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, head(), 400, "-32602"},
		"unsupported version":      {"POST", strings.ReplaceAll(list, modernRevision, "2031-01-01"), head("MCP-Protocol-Version", "2031-01-01"), 400, "-32022"},
		"unknown method":           {"POST", frame("no/such", obj{}), head("Mcp-Method", "no/such"), 404, "-32601"},
		"method of sessions":       {"POST", frame("ping", obj{}), head("Mcp-Method", "ping"), 404, "-32601"},
		"unknown tool":             {"POST", frame("tools/call", obj{"name": "x"}), head("Mcp-Method", "tools/call", "Mcp-Name", "x"), 200, "-32602"},
		"an answer":                {"POST", `{"jsonrpc":"2.0","id":1,"result":{}}`, head(), 400, "-32600"},
		"a notification":           {"POST", `{"jsonrpc":"2.0","method":"notifications/cancelled"}`, head(), 202, ""},
		"GET":                      {"GET", "", head(), 405, "-32600"},
		"DELETE":                   {"DELETE", "", head(), 405, "-32600"},
		"unknown version, session": {"POST", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, head("MCP-Protocol-Version", "1999-01-01"), 400, "-32600"},
	} {
		got := s.do(c.verb, "/mcp", c.head, c.body)
		require.Equal(t, c.status, got.status, "%s: %s", name, got.body)
		require.Empty(t, got.header.Get("Mcp-Session-Id"), name)
		if c.code == "" {
			require.NotContains(t, got.body, `"error"`, name)
		} else {
			require.Equal(t, c.code, string(at(json.RawMessage(got.body), "error", "code")), "%s: %s", name, got.body)
		}
	}
}

func TestArgumentsThatHeadersRepeatMustMatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.backend("b", obj{"tools": []obj{{"name": "t", "inputSchema": obj{
		"type": "object", "properties": obj{"region": obj{"type": "string", "x-mcp-header": "Region"}},
	}}}})
	s := w.serve()
	s.client(false).ok("tools/list", obj{})
	call := string(marshal(obj{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": obj{
		"name": "b_t", "arguments": obj{"region": "eu"},
		"_meta": obj{protocolPrefix + "protocolVersion": modernRevision, protocolPrefix + "clientCapabilities": obj{}},
	}}))
	for value, want := range map[string]int{"eu": 200, "=?base64?ZXU=?=": 200, "us": 400, "": 400} {
		got := s.do("POST", "/mcp", map[string]string{
			"MCP-Protocol-Version": modernRevision, "Mcp-Method": "tools/call", "Mcp-Name": "b_t", "Mcp-Param-Region": value,
		}, call)
		require.Equal(t, want, got.status, "%q: %s", value, got.body)
		require.Equal(t, want == 400, strings.Contains(got.body, "-32020"), got.body)
	}
}
