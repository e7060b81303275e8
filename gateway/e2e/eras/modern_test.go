//go:build e2e

package eras

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

func TestStatelessRequestsNeedNoHandshake(t *testing.T) {
	e2e.OverEveryTransport(t, func(t *testing.T, w *e2e.World, connect func() *e2e.Client) {
		b := w.Backend("b", e2e.Obj{
			"tools": []e2e.Obj{e2e.Tool("echo")}, "resources": []e2e.Obj{e2e.Resource("file:///a")}, "prompts": []e2e.Obj{{"name": "p"}},
			"on": e2e.Obj{"tools/call echo": e2e.Actions(e2e.Do("echo"))},
		})
		c := connect()
		found := c.Ok("server/discover", e2e.Obj{})
		require.Contains(t, string(e2e.At(found, "supportedVersions")), `"2026-07-28"`)
		require.Contains(t, string(e2e.At(found, "supportedVersions")), `"2024-11-05"`)
		require.Contains(t, string(e2e.At(found, "instructions")), "b")
		require.Equal(t, "true", string(e2e.At(found, "capabilities", "resources", "subscribe")))

		for _, method := range []string{"server/discover", "tools/list", "prompts/list", "resources/list", "resources/templates/list"} {
			result := c.Ok(method, e2e.Obj{})
			require.Equal(t, `"complete"`, string(e2e.At(result, "resultType")), method)
			life := "60000"
			if method == "server/discover" {
				life = "0"
			}
			require.Equal(t, life, string(e2e.At(result, "ttlMs")), method)
			require.Equal(t, `"private"`, string(e2e.At(result, "cacheScope")), method)
			require.Equal(t, "goblin", e2e.Str(result, "_meta", e2e.ProtocolPrefix+"serverInfo", "name"), method)
		}
		read := c.Ok("resources/read", e2e.Obj{"uri": e2e.In("b", "file:///a")})
		require.Equal(t, "0", string(e2e.At(read, "ttlMs")))
		require.Equal(t, e2e.In("b", "file:///a"), e2e.Str(read, "contents", 0, "uri"))

		// Members of the protocol itself stay here; the rest reaches the server.
		result := c.Ok("tools/call", e2e.Obj{
			"name": "b_echo", "arguments": e2e.Obj{"n": json.Number("9007199254740993")},
			"_meta": e2e.Obj{"traceparent": "00-1", "x.example/k": e2e.Obj{"a": 1}},
		})
		require.Equal(t, `"complete"`, string(e2e.At(result, "resultType")))
		require.Nil(t, e2e.At(result, "ttlMs"))
		got := b.WaitReceived("tools/call", 1).Msg
		require.JSONEq(t, `{"traceparent":"00-1","x.example/k":{"a":1}}`, e2e.WithoutProgressToken(t, e2e.At(got, "params", "_meta")))
		require.Equal(t, `{"n":9007199254740993}`, string(e2e.At(got, "params", "arguments")))
		c.Ok("tools/call", e2e.Obj{"name": "b_echo"})
		require.JSONEq(t, "{}", e2e.WithoutProgressToken(t, e2e.At(b.WaitReceived("tools/call", 2).Msg, "params", "_meta")))
	})
}

func TestStatelessErrors(t *testing.T) {
	e2e.OverEveryTransport(t, func(t *testing.T, w *e2e.World, connect func() *e2e.Client) {
		w.Backend("b", e2e.Obj{
			"resources": []e2e.Obj{e2e.Resource("file:///a"), e2e.Resource("file:///b")}, "tools": []e2e.Obj{e2e.Tool("t")},
			"on": e2e.Obj{
				"resources/read file:///a": e2e.Actions(e2e.Do("error", e2e.Obj{"error": e2e.Obj{"code": -32002, "message": "gone"}})),
				"resources/read file:///b": e2e.Actions(e2e.Do("error", e2e.Obj{"error": e2e.Obj{"code": -32002, "message": "gone", "data": e2e.Obj{"uri": "file:///b", "k": 1}}})),
				"tools/call t":             e2e.Actions(e2e.Do("error", e2e.Obj{"error": e2e.Obj{"code": -32002, "message": "mine"}})),
			},
		})
		c := connect()
		for _, method := range []string{"initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe", "no/such"} {
			require.Equal(t, -32601, c.Fault(method, e2e.Obj{}).Code, method)
		}
		e := c.Fault("resources/read", e2e.Obj{"uri": e2e.In("b", "file:///none")})
		require.Equal(t, -32602, e.Code)
		require.Equal(t, e2e.In("b", "file:///none"), e2e.Str(e.Data, "uri"))
		for _, uri := range []string{"file:///a", "file:///b"} {
			e = c.Fault("resources/read", e2e.Obj{"uri": e2e.In("b", uri)})
			require.Equal(t, -32602, e.Code)
			require.Equal(t, e2e.In("b", uri), e2e.Str(e.Data, "uri"))
		}
		require.Equal(t, -32002, c.Fault("tools/call", e2e.Obj{"name": "b_t"}).Code, "a tool's own code")

		e = c.Fault("tools/list", e2e.Obj{"_meta": e2e.Obj{e2e.ProtocolPrefix + "protocolVersion": "2099-01-01"}})
		require.Equal(t, -32022, e.Code)
		require.Equal(t, "2099-01-01", e2e.Str(e.Data, "requested"))
		require.Contains(t, string(e2e.At(e.Data, "supported")), e2e.ModernRevision)
		for member, bad := range map[string]any{"protocolVersion": 7, "clientCapabilities": nil, "logLevel": 3} {
			require.Equal(t, -32602, c.Fault("tools/list", e2e.Obj{"_meta": e2e.Obj{e2e.ProtocolPrefix + member: bad}}).Code, member)
		}
	})
}

func TestHTTPHeadersOfStatelessRequests(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}, "resources": []e2e.Obj{e2e.Resource("file:///ä")}})
	s := w.Served()
	s.Client(false).Ok("tools/list", e2e.Obj{}) // the lists are there
	frame := func(method string, params e2e.Obj) string {
		params["_meta"] = e2e.Obj{e2e.ProtocolPrefix + "protocolVersion": e2e.ModernRevision, e2e.ProtocolPrefix + "clientCapabilities": e2e.Obj{}}
		return string(e2e.Marshal(e2e.Obj{"jsonrpc": "2.0", "id": 1, "method": method, "params": params}))
	}
	list, call := frame("tools/list", e2e.Obj{}), frame("tools/call", e2e.Obj{"name": "b_t"})
	read := frame("resources/read", e2e.Obj{"uri": e2e.In("b", "file:///ä")})
	encoded := "=?base64?" + base64.StdEncoding.EncodeToString([]byte(e2e.In("b", "file:///ä"))) + "?="
	head := func(pairs ...string) map[string]string {
		h := map[string]string{"MCP-Protocol-Version": e2e.ModernRevision, "Mcp-Method": "tools/list"}
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
		"unsupported version":      {"POST", strings.ReplaceAll(list, e2e.ModernRevision, "2031-01-01"), head("MCP-Protocol-Version", "2031-01-01"), 400, "-32022"},
		"unknown method":           {"POST", frame("no/such", e2e.Obj{}), head("Mcp-Method", "no/such"), 404, "-32601"},
		"method of sessions":       {"POST", frame("ping", e2e.Obj{}), head("Mcp-Method", "ping"), 404, "-32601"},
		"unknown tool":             {"POST", frame("tools/call", e2e.Obj{"name": "x"}), head("Mcp-Method", "tools/call", "Mcp-Name", "x"), 200, "-32602"},
		"an answer":                {"POST", `{"jsonrpc":"2.0","id":1,"result":{}}`, head(), 400, "-32600"},
		"a notification":           {"POST", `{"jsonrpc":"2.0","method":"notifications/cancelled"}`, head(), 202, ""},
		"GET":                      {"GET", "", head(), 405, "-32600"},
		"DELETE":                   {"DELETE", "", head(), 405, "-32600"},
		"unknown version, session": {"POST", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, head("MCP-Protocol-Version", "1999-01-01"), 400, "-32600"},
	} {
		got := s.Do(c.verb, "/mcp", c.head, c.body)
		require.Equal(t, c.status, got.Status, "%s: %s", name, got.Body)
		require.Empty(t, got.Header.Get("Mcp-Session-Id"), name)
		if c.code == "" {
			require.NotContains(t, got.Body, `"error"`, name)
		} else {
			require.Equal(t, c.code, string(e2e.At(json.RawMessage(got.Body), "error", "code")), "%s: %s", name, got.Body)
		}
	}
}

func TestArgumentsThatHeadersRepeatMustMatch(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("b", e2e.Obj{"tools": []e2e.Obj{{"name": "t", "inputSchema": e2e.Obj{
		"type": "object", "properties": e2e.Obj{"region": e2e.Obj{"type": "string", "x-mcp-header": "Region"}},
	}}}})
	s := w.Served()
	s.Client(false).Ok("tools/list", e2e.Obj{})
	call := string(e2e.Marshal(e2e.Obj{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": e2e.Obj{
		"name": "b_t", "arguments": e2e.Obj{"region": "eu"},
		"_meta": e2e.Obj{e2e.ProtocolPrefix + "protocolVersion": e2e.ModernRevision, e2e.ProtocolPrefix + "clientCapabilities": e2e.Obj{}},
	}}))
	for value, want := range map[string]int{"eu": 200, "=?base64?ZXU=?=": 200, "us": 400, "": 400} {
		got := s.Do("POST", "/mcp", map[string]string{
			"MCP-Protocol-Version": e2e.ModernRevision, "Mcp-Method": "tools/call", "Mcp-Name": "b_t", "Mcp-Param-Region": value,
		}, call)
		require.Equal(t, want, got.Status, "%q: %s", value, got.Body)
		require.Equal(t, want == 400, strings.Contains(got.Body, "-32020"), got.Body)
	}
}
