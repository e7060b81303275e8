//go:build e2e

package eras

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// Clients of older revisions in front of servers that speak only 2026-07-28, over both
// transports.

// eachModern runs a test over stdio and over HTTP.
func eachModern(t *testing.T, test func(t *testing.T, w *e2e.World, kind string)) {
	t.Parallel()
	for _, kind := range e2e.Variants(1, "stdio", "http") {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			test(t, e2e.NewWorld(t), kind)
		})
	}
}

func TestModernBackendIsListedReadAndCalled(t *testing.T) {
	eachModern(t, func(t *testing.T, w *e2e.World, kind string) {
		b := w.ModernBackend(kind, e2e.Obj{
			"tools": []e2e.Obj{e2e.Tool("t"), e2e.Tool("u")}, "prompts": []e2e.Obj{e2e.Prompt("p")}, "pagesize": 1,
			"resources": []e2e.Obj{e2e.Resource("x:1")}, "templates": []e2e.Obj{e2e.Template("x:///{a}")},
			"calls": e2e.Obj{"t": e2e.Obj{"content": []e2e.Obj{}, "n": json.RawMessage("1.50"), "_meta": e2e.Obj{"vendor": 1, "io.modelcontextprotocol/related-task": e2e.Obj{}}}},
		})
		c := w.Standalone()
		require.Equal(t, []string{"b_t", "b_u"}, c.Names("tools"))
		require.Equal(t, []string{"b/p"}, c.Names("prompts"))
		require.Equal(t, []string{e2e.In("b", "x:1")}, c.Names("resources"))
		require.Equal(t, []string{e2e.In("b", "x:///{a}")}, c.Names("templates"))

		got := c.Ok("tools/call", e2e.Obj{"name": "b_t", "arguments": e2e.Obj{"a": 1}, "_meta": e2e.Obj{
			"mine": 1, "progressToken": "p", "io.modelcontextprotocol/clientInfo": e2e.Obj{"name": "another"},
		}})
		require.JSONEq(t, `{"content":[],"n":1.50,"_meta":{"vendor":1,"io.modelcontextprotocol/related-task":{}}}`, string(got))
		call := b.Received("tools/call")[0]
		require.Equal(t, `"`+e2e.ModernRevision+`"`, e2e.ProtocolMeta(call, "protocolVersion"))
		require.Contains(t, e2e.ProtocolMeta(call, "clientInfo"), `"goblin"`)
		require.Equal(t, 1, strings.Count(string(call.Msg), "clientInfo"))
		require.Equal(t, `{}`, e2e.ProtocolMeta(call, "clientCapabilities"), "this client's capabilities")
		require.Equal(t, "1", string(e2e.At(call.Msg, "params", "_meta", "mine")))
		require.Contains(t, e2e.ProtocolMeta(b.Received("tools/list")[0], "clientCapabilities"), "sampling", "lists are for all clients")

		require.JSONEq(t, `{"content":[{"type":"text","text":"b:u:"}]}`, string(c.Ok("tools/call", e2e.Obj{"name": "b_u"})))
		require.Equal(t, "b x:1", c.ReadText(e2e.In("b", "x:1")))
		require.Equal(t, "b:p:", e2e.Str(c.Ok("prompts/get", e2e.Obj{"name": "b/p"}), "messages", 0, "content", "text"))
		require.JSONEq(t, `{"completion":{"values":["b:p"],"total":1,"hasMore":false}}`, string(c.Ok("completion/complete", e2e.Obj{
			"ref": e2e.Obj{"type": "ref/prompt", "name": "b/p"}, "argument": e2e.Obj{"name": "a", "value": "v"},
		})))
		for _, e := range b.Received("") {
			if e.Method == "initialize" && kind == "stdio" {
				continue // during detection of its era
			}
			require.NotContains(t, []string{"initialize", "notifications/initialized", "ping"}, e.Method)
			require.NotEqual(t, "GET", e.HTTP)
			require.Empty(t, e.Session)
			if kind == "http" {
				require.Equal(t, e.Method, e.Headers["mcp-method"])
				require.Equal(t, e2e.ModernRevision, e.Headers["mcp-protocol-version"])
			}
		}
	})
}

func TestModernBackendsListChangesAndUpdates(t *testing.T) {
	eachModern(t, func(t *testing.T, w *e2e.World, kind string) {
		b := w.ModernBackend(kind, e2e.Obj{
			"tools": []e2e.Obj{e2e.Tool("t")}, "prompts": []e2e.Obj{e2e.Prompt("p")},
			"resources": []e2e.Obj{e2e.Resource("x:1"), e2e.Resource("x:2"), e2e.Resource("x:3")}, "dropuris": []string{"x:3"},
		})
		c := w.Standalone()
		require.Len(t, c.Names("tools"), 1)
		first := b.WaitEvent("listen", "")
		require.JSONEq(t, `{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true}`, string(first.Msg))
		require.Equal(t, 1, b.Count("tools/list"), "an early listen needs no second list")

		b.Add("tools", e2e.Tool("new"))
		b.ListChanged("tools")
		c.WaitListed("tools", "b_new", true)
		b.Add("resources", e2e.Resource("x:4"))
		b.ListChanged("resources")
		c.WaitListed("resources", e2e.In("b", "x:4"), true)

		b.Updated("x:1")
		c.Ok("resources/subscribe", e2e.Obj{"uri": e2e.In("b", "x:1")})
		c.Ok("resources/subscribe", e2e.Obj{"uri": "x:2"})
		last := b.WaitEvents("listen", "", 3)
		require.JSONEq(t, `["x:1","x:2"]`, string(e2e.At(last.Msg, "resourceSubscriptions")))
		require.Equal(t, "true", string(e2e.At(last.Msg, "toolsListChanged")))
		b.WaitEvent("unlisten", "")
		require.Equal(t, -32602, c.Fault("resources/subscribe", e2e.Obj{"uri": e2e.In("b", "x:3")}).Code, "not acknowledged")

		b.Updated("x:1")
		b.Updated("x:2")
		b.Updated("x:4")
		require.Equal(t, []string{e2e.In("b", "x:1"), "x:2"}, c.WaitUpdates(2))
		require.JSONEq(t, `{"uri":"x:2","_meta":{"vendor":1}}`, string(c.NotesOf("notifications/resources/updated")[1].Params))

		c.Ok("resources/unsubscribe", e2e.Obj{"uri": e2e.In("b", "x:1")})
		b.Wait("a listen without it", func() bool {
			for _, e := range b.Events {
				if e.Ev == "listen" && string(e2e.At(e.Msg, "resourceSubscriptions")) == `["x:2"]` {
					return true
				}
			}
			return false
		})
		b.Remove("tools", "new")
		b.ListChanged("tools")
		c.WaitListed("tools", "b_new", false)
		require.Len(t, c.Updates(), 2)
		require.Zero(t, b.Count("resources/subscribe"))
	})
}

func TestArgumentsThatAreMirroredInHeaders(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	schema := func(kind, header string) e2e.Obj {
		return e2e.Obj{"inputSchema": e2e.Obj{"type": "object", "properties": e2e.Obj{"region": e2e.Obj{"type": kind, "x-mcp-header": header}, "n": e2e.Obj{"type": "integer", "x-mcp-header": "N"}}}}
	}
	b := w.ModernBackend("http", e2e.Obj{"tools": []e2e.Obj{
		e2e.Tool("t", schema("string", "Region")), e2e.Tool("object", schema("object", "Region")),
		e2e.Tool("blank", schema("string", "a b")), e2e.Tool("größe"),
	}})
	c := w.Standalone()
	require.Len(t, c.Names("tools"), 2, "tools with annotations that break the rules are left out")
	for _, region := range []string{"eu-1", "Zürich", " edge ", "=?base64?x?="} {
		c.Ok("tools/call", e2e.Obj{"name": "b_t", "arguments": e2e.Obj{"region": region, "n": 42}})
	}
	require.Equal(t, "42", b.Received("tools/call")[0].Headers["mcp-param-n"])
	require.Equal(t, "eu-1", b.Received("tools/call")[0].Headers["mcp-param-region"])
	require.Equal(t, "=?base64?WsO8cmljaA==?=", b.Received("tools/call")[1].Headers["mcp-param-region"])
	c.Ok("tools/call", e2e.Obj{"name": "größe"})

	// The definition changes without a notification, so the first try does not fit.
	b.Remove("tools", "t")
	b.Add("tools", e2e.Tool("t", schema("string", "Zone")))
	c.Ok("tools/call", e2e.Obj{"name": "b_t", "arguments": e2e.Obj{"region": "eu-1"}})
	calls := b.Received("tools/call")
	require.Equal(t, "eu-1", calls[len(calls)-1].Headers["mcp-param-zone"])
}

func TestEraOfABackendIsFound(t *testing.T) {
	t.Parallel()
	type row struct {
		era, kind string
		asked     []string // until the first list, in this order
		protocol  string
	}
	rows := e2e.Variants(5,
		row{"", "stdio", []string{"server/discover", "initialize", "notifications/initialized"}, e2e.Revision},
		row{"modern", "stdio", []string{"server/discover", "initialize", "subscriptions/listen"}, e2e.ModernRevision},
		row{"either", "stdio", []string{"server/discover", "initialize", "initialize", "notifications/initialized"}, e2e.Revision}, // of two processes
		row{"dual", "http", []string{"server/discover", "initialize", "notifications/initialized"}, e2e.Revision},
		row{"discreet", "http", []string{"server/discover", "subscriptions/listen"}, e2e.ModernRevision},
		row{"", "http", []string{"initialize", "notifications/initialized"}, e2e.Revision}, // the probe gets HTTP's answer to a missing session
		row{"mute", "stdio", []string{"server/discover", "initialize", "notifications/initialized"}, e2e.Revision},
		row{"dual", "stdio", []string{"server/discover", "initialize", "notifications/initialized"}, e2e.Revision},
		row{"discreet", "stdio", []string{"server/discover", "initialize", "notifications/initialized"}, e2e.Revision},
		row{"modern", "http", []string{"server/discover", "subscriptions/listen"}, e2e.ModernRevision},
	)
	w := e2e.NewWorld(t)
	for _, row := range rows {
		w.TaskBackend("b"+row.era+"-"+row.kind, row.kind, e2e.Obj{"era": row.era, "tools": []e2e.Obj{e2e.Tool("t")}})
	}
	c := w.Standalone()
	for i, row := range rows {
		b := w.Backends[i]
		require.Contains(t, c.CallText(b.Name+"_t", e2e.Obj{}), b.Name+":t")
		var asked []string
		all := b.Received("")
		slices.SortStableFunc(all, func(x, y e2e.Event) int { return cmp.Compare(x.Proc.Start, y.Proc.Start) })
		for _, e := range all {
			if e.Method == "tools/list" {
				break
			}
			asked = append(asked, e.Method)
		}
		require.Equal(t, row.asked, asked, b.Name)
	}
	servers := json.RawMessage(c.ReadText("goblin://servers"))
	for i, row := range rows {
		require.Equal(t, row.protocol, e2e.Str(servers, "servers", i, "protocolVersion"), w.Backends[i].Name)
	}
}

// Both sides speak this revision. Only the parts that belong to a hop differ.
func TestStatelessClientInFrontOfAModernBackend(t *testing.T) {
	eachModern(t, func(t *testing.T, w *e2e.World, kind string) {
		says := e2e.Do("notify", e2e.Obj{"method": "notifications/message", "params": e2e.Obj{"level": "error", "data": "x"}})
		b := w.ModernBackend(kind, e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t"), e2e.Tool("ask"), e2e.Tool("lacks")}, "resources": []e2e.Obj{e2e.Resource("x:1")}, "on": e2e.Obj{
			"tools/call t": e2e.Actions(says, e2e.Do("progress", e2e.Obj{"n": 2})),
			"tools/call ask": e2e.Actions(e2e.Obj{"do": "requests", "actions": []e2e.Obj{
				{"method": "elicitation/create", "params": e2e.Obj{"message": "?"}}, {"method": "sampling/createMessage", "params": e2e.Obj{}}, {"method": "roots/list"},
			}}, e2e.Do("answers")),
			"tools/call lacks": e2e.Actions(e2e.Do("error", e2e.Obj{"error": json.RawMessage(`{"code":-32021,"message":"no","data":{"requiredCapabilities":{"sampling":{}}}}`)})),
		}})
		c := w.Pipe("stdio", "--standalone").Stateless()
		c.Caps = e2e.Obj{"elicitation": e2e.Obj{}, "sampling": e2e.Obj{}, "roots": e2e.Obj{}}
		m := c.Request("tools/call", e2e.Obj{"name": "b_t", "_meta": e2e.Obj{"progressToken": "p", e2e.ProtocolPrefix + "logLevel": "warning"}})
		require.Equal(t, `"complete"`, string(e2e.At(m.Result, "resultType")), m.Raw)
		require.Contains(t, string(e2e.At(m.Result, "_meta", e2e.ProtocolPrefix+"serverInfo")), "goblin")
		require.Len(t, c.NotesOf("notifications/progress"), 2)
		require.Len(t, c.NotesOf("notifications/message"), 1)
		call := b.Received("tools/call")[0]
		require.Equal(t, `"warning"`, e2e.ProtocolMeta(call, "logLevel"))
		require.JSONEq(t, string(e2e.Marshal(c.Caps)), e2e.ProtocolMeta(call, "clientCapabilities"))
		require.Contains(t, e2e.ProtocolMeta(call, "clientInfo"), "goblin")

		require.Equal(t, -32021, c.Fault("tools/call", e2e.Obj{"name": "b_lacks"}).Code)
		m = c.Request("tools/call", e2e.Obj{"name": "b_ask"})
		require.Equal(t, `"input_required"`, string(e2e.At(m.Result, "resultType")), m.Raw)
		var asked map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(e2e.At(m.Result, "inputRequests"), &asked))
		require.Len(t, asked, 3)
		require.Contains(t, asked, "ask-0", "the server's own name for its question")
		responses := e2e.Obj{}
		for key, ask := range asked {
			responses[key] = e2e.Obj{"of": e2e.Str(ask, "method")}
		}
		m = c.Request("tools/call", e2e.Obj{"name": "b_ask", "requestState": e2e.At(m.Result, "requestState"), "inputResponses": responses})
		require.Nil(t, m.Error, m.Raw)
		require.JSONEq(t, `[{"of":"elicitation/create"},{"of":"sampling/createMessage"},{"of":"roots/list"}]`, e2e.Str(m.Result, "content", 0, "text"))

		listen := c.Begin("subscriptions/listen", e2e.Obj{"notifications": e2e.Obj{"resourceSubscriptions": []string{"x:1"}, "toolsListChanged": true}})
		ack := c.WaitNote("notifications/subscriptions/acknowledged", nil)
		require.JSONEq(t, `["x:1"]`, string(e2e.At(ack.Params, "notifications", "resourceSubscriptions")))
		b.Updated("x:1")
		n := c.WaitNote("notifications/resources/updated", nil)
		require.Equal(t, listen, string(e2e.At(n.Params, "_meta", e2e.ProtocolPrefix+"subscriptionId")))
		b.Add("tools", e2e.Tool("new"))
		b.ListChanged("tools")
		c.WaitNote("notifications/tools/list_changed", nil)
	})
}
