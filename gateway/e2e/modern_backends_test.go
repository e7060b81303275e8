package e2e

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const modernRevision = "2026-07-28"

// The rows of clients of older revisions in front of backends that speak
// 2026-07-28 alone, over both transports.

// modernBackend adds a backend of that revision.
func (w *world) modernBackend(kind string, script obj, conf ...obj) *backend {
	w.t.Helper()
	script["era"] = "modern"
	if kind == "http" {
		return w.remote("b", "/mcp", script, conf...)
	}
	return w.backend("b", script, conf...)
}

// eachModern runs a test over stdio and over HTTP.
func eachModern(t *testing.T, test func(t *testing.T, w *world, kind string)) {
	t.Parallel()
	for _, kind := range []string{"stdio", "http"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			test(t, newWorld(t), kind)
		})
	}
}

// protocolMeta is what a backend was told in _meta, by the key's last part.
func protocolMeta(m told, key string) string {
	return string(at(m.Msg, "params", "_meta", "io.modelcontextprotocol/"+key))
}

func TestModernBackendIsListedReadAndCalled(t *testing.T) {
	eachModern(t, func(t *testing.T, w *world, kind string) {
		b := w.modernBackend(kind, obj{
			"tools": []obj{tool("t"), tool("u")}, "prompts": []obj{prompt("p")}, "pagesize": 1,
			"resources": []obj{resource("x:1")}, "templates": []obj{template("x:///{a}")},
			"calls": obj{"t": obj{"content": []obj{}, "n": json.RawMessage("1.50"), "_meta": obj{"vendor": 1, "io.modelcontextprotocol/related-task": obj{}}}},
		})
		c := w.standalone()
		require.Equal(t, []string{"b_t", "b_u"}, c.names("tools"))
		require.Equal(t, []string{"b/p"}, c.names("prompts"))
		require.Equal(t, []string{in("b", "x:1")}, c.names("resources"))
		require.Equal(t, []string{in("b", "x:///{a}")}, c.names("templates"))

		got := c.ok("tools/call", obj{"name": "b_t", "arguments": obj{"a": 1}, "_meta": obj{
			"mine": 1, "progressToken": "p", "io.modelcontextprotocol/clientInfo": obj{"name": "another"},
		}})
		require.JSONEq(t, `{"content":[],"n":1.50,"_meta":{"vendor":1,"io.modelcontextprotocol/related-task":{}}}`, string(got))
		call := b.received("tools/call")[0]
		require.Equal(t, `"`+modernRevision+`"`, protocolMeta(call, "protocolVersion"))
		require.Contains(t, protocolMeta(call, "clientInfo"), `"goblin"`)
		require.Equal(t, 1, strings.Count(string(call.Msg), "clientInfo"))
		require.Equal(t, `{}`, protocolMeta(call, "clientCapabilities"), "what this client can")
		require.Equal(t, "1", string(at(call.Msg, "params", "_meta", "mine")))
		require.Contains(t, protocolMeta(b.received("tools/list")[0], "clientCapabilities"), "sampling", "lists are for everybody")

		require.JSONEq(t, `{"content":[{"type":"text","text":"b:u:"}]}`, string(c.ok("tools/call", obj{"name": "b_u"})))
		require.Equal(t, "b x:1", c.readText(in("b", "x:1")))
		require.Equal(t, "b:p:", str(c.ok("prompts/get", obj{"name": "b/p"}), "messages", 0, "content", "text"))
		require.JSONEq(t, `{"completion":{"values":["b:p"],"total":1,"hasMore":false}}`, string(c.ok("completion/complete", obj{
			"ref": obj{"type": "ref/prompt", "name": "b/p"}, "argument": obj{"name": "a", "value": "v"},
		})))
		for _, e := range b.received("") {
			if e.method == "initialize" && kind == "stdio" {
				continue // when its era was looked for
			}
			require.NotContains(t, []string{"initialize", "notifications/initialized", "ping"}, e.method)
			require.NotEqual(t, "GET", e.HTTP)
			require.Empty(t, e.Session)
			if kind == "http" {
				require.Equal(t, e.method, e.Headers["mcp-method"])
				require.Equal(t, modernRevision, e.Headers["mcp-protocol-version"])
			}
		}
	})
}

func TestModernBackendsErrorsAreThoseOfTheClientsRevision(t *testing.T) {
	eachModern(t, func(t *testing.T, w *world, kind string) {
		fails := func(object string) []obj { return actions(do("error", obj{"error": json.RawMessage(object)})) }
		w.modernBackend(kind, obj{
			"tools": []obj{tool("own"), tool("lacks"), tool("kind"), tool("args")}, "resources": []obj{resource("x:gone"), resource("x:bad")},
			"on": obj{
				"tools/call own":        fails(`{"code":-32123,"message":"mine","data":{"n":1.50}}`),
				"tools/call args":       fails(`{"code":-32602,"message":"bad arguments"}`),
				"tools/call lacks":      fails(`{"code":-32021,"message":"no","data":{"requiredCapabilities":{"sampling":{}}}}`),
				"tools/call kind":       actions(do("result", obj{"result": obj{"resultType": "task", "task": obj{}}})),
				"resources/read x:gone": fails(`{"code":-32602,"message":"no such thing","data":{"uri":"x:gone"}}`),
				"resources/read x:bad":  fails(`{"code":-32602,"message":"cannot parse"}`),
			},
		})
		c := w.standalone()
		e := c.fault("tools/call", obj{"name": "b_own"})
		require.Equal(t, -32123, e.Code)
		require.Equal(t, `{"n":1.50}`, string(e.Data))
		require.Equal(t, -32602, c.fault("tools/call", obj{"name": "b_args"}).Code)
		e = c.fault("tools/call", obj{"name": "b_lacks"})
		require.Equal(t, -32603, e.Code)
		require.Contains(t, e.Message, "sampling")
		e = c.fault("tools/call", obj{"name": "b_kind"})
		require.Equal(t, "BAD_REPLY", e.kind())
		require.Contains(t, e.Message, "task")
		e = c.fault("resources/read", obj{"uri": "x:gone"})
		require.Equal(t, -32002, e.Code)
		require.Equal(t, in("b", "x:gone"), str(e.Data, "uri"))
		require.Equal(t, -32602, c.fault("resources/read", obj{"uri": "x:bad"}).Code)
	})
}

func TestModernBackendsProgressAndCancellation(t *testing.T) {
	eachModern(t, func(t *testing.T, w *world, kind string) {
		b := w.modernBackend(kind, obj{"tools": []obj{tool("steps"), tool("slow")}, "on": obj{
			"tools/call steps": actions(do("progress", obj{"n": 3})),
			"tools/call slow":  actions(do("wait", obj{"name": "never"})),
		}})
		c := w.standalone()
		for _, token := range []string{`"abc"`, `7`} {
			c.update(func() { c.notes = nil })
			m := c.request("tools/call", obj{"name": "b_steps", "_meta": obj{"progressToken": json.RawMessage(token)}})
			notes := c.notesOf("notifications/progress")
			require.Len(t, notes, 3, token)
			for _, n := range notes {
				require.Equal(t, token, string(at(n.Params, "progressToken")))
				require.Less(t, n.seq, m.seq)
			}
		}
		id := c.begin("tools/call", obj{"name": "b_slow"})
		b.waitEvent("wait", "never")
		c.notify("notifications/cancelled", obj{"requestId": json.RawMessage(id)})
		b.waitEvent("gone", "slow")
		if kind == "stdio" {
			asked := b.received("tools/call")[2]
			require.Equal(t, string(at(asked.Msg, "id")), string(at(b.received("notifications/cancelled")[0].Msg, "params", "requestId")))
		} else {
			require.Empty(t, b.received("notifications/cancelled"), "the end of the stream says it")
		}
		c.ok("ping", nil)
	})
}

func TestModernBackendsListChangesAndUpdates(t *testing.T) {
	eachModern(t, func(t *testing.T, w *world, kind string) {
		b := w.modernBackend(kind, obj{
			"tools": []obj{tool("t")}, "prompts": []obj{prompt("p")},
			"resources": []obj{resource("x:1"), resource("x:2"), resource("x:3")}, "dropuris": []string{"x:3"},
		})
		c := w.standalone()
		require.Len(t, c.names("tools"), 1)
		first := b.waitEvent("listen", "")
		require.JSONEq(t, `{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true}`, string(first.Msg))
		require.Equal(t, 1, b.count("tools/list"), "what is listened for before needs no second look")

		b.add("tools", tool("new"))
		b.listChanged("tools")
		c.waitListed("tools", "b_new", true)
		b.add("resources", resource("x:4"))
		b.listChanged("resources")
		c.waitListed("resources", in("b", "x:4"), true)

		b.updated("x:1")
		c.ok("resources/subscribe", obj{"uri": in("b", "x:1")})
		c.ok("resources/subscribe", obj{"uri": "x:2"})
		last := b.waitEvents("listen", "", 3)
		require.JSONEq(t, `["x:1","x:2"]`, string(at(last.Msg, "resourceSubscriptions")))
		require.Equal(t, "true", string(at(last.Msg, "toolsListChanged")))
		b.waitEvent("unlisten", "")
		require.Equal(t, -32602, c.fault("resources/subscribe", obj{"uri": in("b", "x:3")}).Code, "left out of the acknowledgement")

		b.updated("x:1")
		b.updated("x:2")
		b.updated("x:4")
		require.Equal(t, []string{in("b", "x:1"), "x:2"}, c.waitUpdates(2))
		require.JSONEq(t, `{"uri":"x:2","_meta":{"vendor":1}}`, string(c.notesOf("notifications/resources/updated")[1].Params))

		c.ok("resources/unsubscribe", obj{"uri": in("b", "x:1")})
		b.wait("a listen without it", func() bool {
			for _, e := range b.events {
				if e.Ev == "listen" && string(at(e.Msg, "resourceSubscriptions")) == `["x:2"]` {
					return true
				}
			}
			return false
		})
		b.remove("tools", "new")
		b.listChanged("tools")
		c.waitListed("tools", "b_new", false)
		require.Len(t, c.updates(), 2)
		require.Zero(t, b.count("resources/subscribe"))
	})
}

func TestNewListenIsAcknowledgedBeforeTheOldOneEnds(t *testing.T) {
	eachModern(t, func(t *testing.T, w *world, kind string) {
		b := w.modernBackend(kind, obj{"resources": []obj{resource("x:1"), resource("x:2")}})
		c := w.standalone()
		for _, uri := range []string{"x:1", "x:2"} {
			c.ok("resources/subscribe", obj{"uri": uri})
		}
		want := []string{"listen", "listen", "unlisten", "listen", "unlisten"}
		if kind == "stdio" { // the end of a listen must not come last
			want = want[:4]
		}
		b.waitEvents("listen", "", 3)
		b.waitEvents("unlisten", "", len(want)-3)
		b.mu.Lock()
		defer b.mu.Unlock()
		var order []string
		for _, e := range b.events {
			if e.Ev == "listen" || e.Ev == "unlisten" {
				order = append(order, e.Ev)
			}
		}
		require.Equal(t, want, order)
	})
}

func TestListenOutlivesCallsThatTimeOut(t *testing.T) {
	eachModern(t, func(t *testing.T, w *world, kind string) {
		b := w.modernBackend(kind, obj{"tools": []obj{tool("hang")}, "resources": []obj{resource("x:1")}, "on": obj{
			"tools/call hang": actions(do("hang")),
		}}, obj{"timeout": "2s"})
		c := w.standalone()
		c.ok("resources/subscribe", obj{"uri": "x:1"})
		b.waitEvents("listen", "", 2)
		require.Equal(t, "REQUEST_TIMEOUT", c.fault("tools/call", obj{"name": "b_hang"}).kind())
		b.updated("x:1")
		require.Equal(t, []string{"x:1"}, c.waitUpdates(1))
		require.Equal(t, 2, b.count("subscriptions/listen"), "none had to be opened again")
	})
}

func TestLostListenIsOpenedAgainAndMissesNothing(t *testing.T) {
	eachModern(t, func(t *testing.T, w *world, kind string) {
		b := w.modernBackend(kind, obj{"tools": []obj{tool("t")}, "resources": []obj{resource("x:1")}})
		c := w.standalone()
		c.ok("resources/subscribe", obj{"uri": "x:1"})
		b.waitEvents("listen", "", 2)
		require.Len(t, c.names("tools"), 1)
		b.add("tools", tool("meanwhile")) // and nobody is told
		b.do(do("hangup"))
		again := b.waitEvents("listen", "", 3)
		require.JSONEq(t, `["x:1"]`, string(at(again.Msg, "resourceSubscriptions")))
		require.Equal(t, []string{"x:1"}, c.waitUpdates(1), "it may have changed")
		c.waitListed("tools", "b_meanwhile", true)
		b.updated("x:1")
		c.waitUpdates(2)
		if kind == "stdio" { // where a server may say so in a notice too
			b.do(do("notify", obj{"method": "notifications/cancelled", "params": obj{"requestId": json.RawMessage(again.Name)}}))
			b.waitEvents("listen", "", 4)
			c.waitUpdates(3)
		}
	})
}

func TestListenThatEndsAgainAndAgainIsOpenedEverMoreSeldom(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"stdio", "http"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			b := w.dualBackend(kind, "modern", obj{"tools": []obj{tool("t")}})
			c := w.standalone()
			c.callText("b_t", obj{})
			for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
				b.do(do("hangup"))
			}
			listens := b.count("subscriptions/listen")
			require.GreaterOrEqual(t, listens, 3, "it is opened again")
			require.LessOrEqual(t, listens, 10)
			require.LessOrEqual(t, b.count("tools/list"), listens+1)
			b.add("tools", tool("new"))
			b.listChanged("tools") // else it is seen when the next one is opened
			c.waitListed("tools", "b_new", true)
		})
	}
}

func TestSubscriptionsAtAModernBackendAreRestored(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.modernBackend("stdio", obj{"generate": obj{"resources": 50}})
	c := w.standalone()
	var ids []string
	for _, uri := range c.names("resources") {
		ids = append(ids, c.begin("resources/subscribe", obj{"uri": uri}))
	}
	for _, id := range ids {
		require.Nil(t, c.end(id).Error)
	}
	b.do(do("crash"))
	b.waitStarts(2)
	c.waitUpdates(50)
	last := b.received("subscriptions/listen")
	require.Len(t, each(last[len(last)-1].Msg, "params", "notifications", "resourceSubscriptions"), 50)
	require.Less(t, len(last), 40, "many wishes are one listen")
	b.updated("gen:///item/000007")
	c.waitUpdates(51)
}

func TestQuestionsOfAModernBackendReachTheClientOfTheCall(t *testing.T) {
	eachModern(t, func(t *testing.T, w *world, kind string) {
		asks := obj{"do": "request", "method": "elicitation/create", "params": obj{"message": "who?", "requestedSchema": obj{"type": "object"}}}
		b := w.modernBackend(kind, obj{"tools": []obj{tool("ask"), tool("later")}, "prompts": []obj{prompt("p")}, "resources": []obj{resource("x:1")}, "on": obj{
			"tools/call ask": actions(asks, obj{"do": "requests", "actions": []obj{
				{"method": "sampling/createMessage", "params": obj{"n": json.RawMessage("1.50")}}, {"method": "roots/list"},
			}}, do("answers")),
			"tools/call later": actions(do("later", obj{"n": 2})),
			"prompts/get p":    actions(asks),
			"resources/read":   actions(asks),
		}})
		caps := obj{"elicitation": obj{}, "sampling": obj{}, "roots": obj{"listChanged": true}}
		c1, c2 := w.pipe("stdio"), w.pipe("stdio")
		w.hosted = true
		for i, c := range []*client{c1, c2} {
			c.caps = caps
			c.reply = func(ask message) (any, any) { return obj{"from": i, "method": ask.Method, "roots": []obj{}}, nil }
			c.init()
		}
		id1 := c1.begin("tools/call", obj{"name": "b_ask", "arguments": obj{"k": 1}, "_meta": obj{"mine": true}})
		id2 := c2.begin("tools/call", obj{"name": "b_ask"})
		for i, m := range []message{c1.end(id1), c2.end(id2)} {
			require.Nil(t, m.Error, m.raw)
			require.JSONEq(t, fmt.Sprintf(
				`[{"from":%[1]d,"method":"elicitation/create","roots":[]},{"from":%[1]d,"method":"sampling/createMessage","roots":[]},{"from":%[1]d,"method":"roots/list","roots":[]}]`, i),
				str(m.Result, "content", 0, "text"))
			require.Equal(t, "null", string(orNull(at(m.Result, "resultType"))))
		}
		require.Len(t, c1.asks, 3)
		seen := map[string]bool{}
		for _, call := range b.received("tools/call") {
			id := string(at(call.Msg, "id"))
			require.False(t, seen[id], "each try has an id of its own")
			seen[id] = true
			if string(at(call.Msg, "params", "arguments", "k")) == "1" {
				require.Equal(t, "true", string(at(call.Msg, "params", "_meta", "mine")))
			}
			require.Contains(t, protocolMeta(call, "clientCapabilities"), `"elicitation":{}`)
			require.Contains(t, protocolMeta(call, "clientCapabilities"), `"roots":{}`)
		}
		require.Len(t, seen, 6, "the call and two retries, for each")
		require.Contains(t, string(c1.asks[0].Params), "who?")

		require.Contains(t, string(c1.ok("prompts/get", obj{"name": "b/p"})), "b:p")
		require.Equal(t, "b x:1", c1.readText("x:1"))
		require.Contains(t, string(c1.ok("tools/call", obj{"name": "b_later"})), "b:later")
		require.Len(t, c1.asks, 5)
	})
}

func orNull(raw json.RawMessage) json.RawMessage {
	if raw == nil {
		return json.RawMessage("null")
	}
	return raw
}

func TestClientThatCannotBeAskedIsToldWhatIsMissing(t *testing.T) {
	eachModern(t, func(t *testing.T, w *world, kind string) {
		on := obj{}
		var tools []obj
		for _, method := range []string{"elicitation/create", "sampling/createMessage", "roots/list"} {
			name := strings.Split(method, "/")[0]
			tools = append(tools, tool(name))
			on["tools/call "+name] = actions(obj{"do": "request", "method": method})
		}
		on["tools/call wrong"] = actions(do("result", obj{"result": obj{"resultType": "input_required", "inputRequests": obj{"a": obj{"method": "ping"}}}}))
		on["tools/call empty"] = actions(do("result", obj{"result": obj{"resultType": "input_required"}}))
		tools = append(tools, tool("wrong"), tool("empty"))
		w.modernBackend(kind, obj{"tools": tools, "on": on})
		c := w.standalone()
		for _, name := range []string{"elicitation", "sampling", "roots"} {
			e := c.fault("tools/call", obj{"name": "b_" + name})
			require.Equal(t, -32603, e.Code)
			require.Contains(t, e.Message, `server "b" needs `+name)
			require.Equal(t, "{}", string(at(e.Data, "requiredCapabilities", name)))
		}
		for _, name := range []string{"wrong", "empty"} {
			require.Equal(t, "BAD_REPLY", c.fault("tools/call", obj{"name": "b_" + name}).kind())
		}
		require.Empty(t, c.asks)
	})
}

func TestBackendThatNeverStopsAskingIsStopped(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	always := do("result", obj{"result": obj{"resultType": "input_required", "inputRequests": obj{"k": obj{"method": "roots/list"}}, "requestState": "s"}})
	b := w.modernBackend("stdio", obj{"tools": []obj{tool("t")}, "on": obj{"tools/call t": actions(always)}})
	c := w.pipe("stdio", "--standalone")
	c.caps = obj{"roots": obj{}}
	c.reply = func(message) (any, any) { return obj{"roots": []obj{}}, nil }
	c.init()
	e := c.fault("tools/call", obj{"name": "b_t"})
	require.Equal(t, "BAD_REPLY", e.kind())
	require.Equal(t, 11, b.count("tools/call"))
	require.Len(t, c.asks, 10)
	retry := b.received("tools/call")[1]
	require.Equal(t, `"s"`, string(at(retry.Msg, "params", "requestState")))
	require.JSONEq(t, `{"k":{"roots":[]}}`, string(at(retry.Msg, "params", "inputResponses")))
}

func TestHumanMayTakeLongerThanTheTimeout(t *testing.T) {
	eachModern(t, func(t *testing.T, w *world, kind string) {
		w.gateway["limits"] = obj{"in_flight": 1}
		w.modernBackend(kind, obj{"tools": []obj{tool("ask"), tool("quick")}, "on": obj{
			"tools/call ask": actions(obj{"do": "request", "method": "elicitation/create", "params": obj{"message": "?"}}, do("answers")),
		}}, obj{"timeout": "2s"})
		c := w.pipe("stdio", "--standalone")
		c.caps = obj{"elicitation": obj{}}
		c.init()
		id := c.begin("tools/call", obj{"name": "b_ask"})
		ask := c.asked(1)
		over := c.holds(3*time.Second, func() bool { return len(c.replies[id]) > 0 })
		require.False(t, over, "the time does not run while a human is asked")
		c.ok("tools/call", obj{"name": "b_quick"}) // in the slot that the other has given back
		c.write(marshal(obj{"jsonrpc": "2.0", "id": ask.ID, "result": obj{"action": "accept", "content": obj{}}}))
		m := c.end(id)
		require.Nil(t, m.Error, m.raw)
		require.Contains(t, m.raw, "accept")
	})
}

func TestURLThatAModernBackendWantsOpenedHasAnIdAndIsCompleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.modernBackend("stdio", obj{"tools": []obj{tool("ask")}, "on": obj{
		"tools/call ask": actions(obj{"do": "request", "method": "elicitation/create", "params": obj{"mode": "url", "url": "https://x.example/", "message": "go"}}),
	}})
	c := w.pipe("stdio", "--standalone")
	c.caps = obj{"elicitation": obj{"url": obj{}}}
	c.reply = func(message) (any, any) { return obj{"action": "accept"}, nil }
	c.init()
	c.ok("tools/call", obj{"name": "b_ask"})
	id := str(c.asks[0].Params, "elicitationId")
	require.NotEmpty(t, id)
	done := c.noted("notifications/elicitation/complete", nil)
	require.Equal(t, id, str(done.Params, "elicitationId"))
}

func TestLevelOfASessionGoesWithEachRequest(t *testing.T) {
	eachModern(t, func(t *testing.T, w *world, kind string) {
		says := func(level string) obj {
			return do("notify", obj{"method": "notifications/message", "params": obj{"level": level, "data": level}})
		}
		b := w.modernBackend(kind, obj{"tools": []obj{tool("t")}, "on": obj{"tools/call t": actions(says("debug"), says("info"), says("error"))}})
		c := w.standalone()
		said := func() (levels []string) {
			c.update(func() { c.notes = nil })
			c.ok("tools/call", obj{"name": "b_t"})
			for _, n := range c.notesOf("notifications/message") {
				levels = append(levels, str(n.Params, "level"))
			}
			return levels
		}
		require.Equal(t, []string{"info", "error"}, said())
		c.ok("logging/setLevel", obj{"level": "debug"})
		require.Equal(t, []string{"debug", "info", "error"}, said())
		c.ok("logging/setLevel", obj{"level": "warning"})
		require.Equal(t, []string{"error"}, said())
		require.Equal(t, `"warning"`, protocolMeta(b.received("tools/call")[2], "logLevel"))
		require.Zero(t, b.count("logging/setLevel"))
	})
}

func TestArgumentsThatAreMirroredInHeaders(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	schema := func(kind, header string) obj {
		return obj{"inputSchema": obj{"type": "object", "properties": obj{"region": obj{"type": kind, "x-mcp-header": header}, "n": obj{"type": "integer", "x-mcp-header": "N"}}}}
	}
	b := w.modernBackend("http", obj{"tools": []obj{
		tool("t", schema("string", "Region")), tool("object", schema("object", "Region")),
		tool("blank", schema("string", "a b")), tool("größe"),
	}})
	c := w.standalone()
	require.Len(t, c.names("tools"), 2, "tools with annotations that break the rules are left out")
	for _, region := range []string{"eu-1", "Zürich", " edge ", "=?base64?x?="} {
		c.ok("tools/call", obj{"name": "b_t", "arguments": obj{"region": region, "n": 42}})
	}
	require.Equal(t, "42", b.received("tools/call")[0].Headers["mcp-param-n"])
	require.Equal(t, "eu-1", b.received("tools/call")[0].Headers["mcp-param-region"])
	require.Equal(t, "=?base64?WsO8cmljaA==?=", b.received("tools/call")[1].Headers["mcp-param-region"])
	c.ok("tools/call", obj{"name": "größe"})

	// The definition changes and nobody is told: the first try does not fit.
	b.remove("tools", "t")
	b.add("tools", tool("t", schema("string", "Zone")))
	c.ok("tools/call", obj{"name": "b_t", "arguments": obj{"region": "eu-1"}})
	calls := b.received("tools/call")
	require.Equal(t, "eu-1", calls[len(calls)-1].Headers["mcp-param-zone"])
}

func TestModernBackendThatLeavesTheRevisionIsAskedAnew(t *testing.T) {
	eachModern(t, func(t *testing.T, w *world, kind string) {
		b := w.modernBackend(kind, obj{"tools": []obj{tool("t")}, "on": obj{"tools/call t": actions(
			obj{"do": "error", "times": 1, "error": json.RawMessage(`{"code":-32022,"message":"no more","data":{"supported":["2027-01-01"]}}`)},
		)}})
		c := w.standalone()
		e := c.fault("tools/call", obj{"name": "b_t"})
		require.Equal(t, -32603, e.Code, "what concerns the hop is not passed on")
		require.Equal(t, "b", str(e.Data, "server"))
		b.waitReceived("server/discover", 2)
	})
}

func TestBackendOfUnknownRevisionsOnlyIsNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	refuses := actions(do("error", obj{"error": json.RawMessage(`{"code":-32022,"message":"no","data":{"supported":["2031-01-01"],"requested":"2026-07-28"}}`)}))
	w.backend("b", obj{"tools": []obj{tool("t")}, "on": obj{"server/discover": refuses, "initialize": refuses}})
	c := w.standalone()
	require.Empty(t, c.names("tools"))
	require.Contains(t, c.readText("goblin://servers"), "2031-01-01")
}

func TestEraOfABackendIsFound(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		era, kind string
		asked     []string // until the first list, in this order
		protocol  string
	}{
		{"", "stdio", []string{"server/discover", "initialize", "notifications/initialized"}, revision},
		{"", "http", []string{"initialize", "notifications/initialized"}, revision}, // the probe meets HTTP's answer to a missing session
		{"mute", "stdio", []string{"server/discover", "initialize", "notifications/initialized"}, revision},
		{"dual", "stdio", []string{"server/discover", "initialize", "notifications/initialized"}, revision},
		{"dual", "http", []string{"server/discover", "initialize", "notifications/initialized"}, revision},
		{"either", "stdio", []string{"server/discover", "initialize", "initialize", "notifications/initialized"}, revision}, // of two processes
		{"discreet", "stdio", []string{"server/discover", "initialize", "notifications/initialized"}, revision},
		{"discreet", "http", []string{"server/discover", "subscriptions/listen"}, modernRevision},
		{"modern", "stdio", []string{"server/discover", "initialize", "subscriptions/listen"}, modernRevision},
		{"modern", "http", []string{"server/discover", "subscriptions/listen"}, modernRevision},
	} {
		t.Run(c.era+" "+c.kind, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			script := obj{"era": c.era, "tools": []obj{tool("t")}}
			var b *backend
			if c.kind == "http" {
				b = w.remote("b", "/mcp", script)
			} else {
				b = w.backend("b", script)
			}
			cl := w.standalone()
			require.Equal(t, []string{"b_t"}, cl.names("tools"))
			require.Contains(t, cl.callText("b_t", obj{}), "b:t")
			var asked []string
			all := b.received("")
			slices.SortStableFunc(all, func(x, y told) int { return cmp.Compare(x.proc.start, y.proc.start) })
			for _, e := range all {
				if e.method == "tools/list" {
					break
				}
				asked = append(asked, e.method)
			}
			require.Equal(t, c.asked, asked)
			require.Contains(t, cl.readText("goblin://servers"), c.protocol)
		})
	}
}

func TestOnlyTheFirstStartOfALegacyBackendBeginsWithAProbe(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backend("b", obj{"era": "mute", "tools": []obj{tool("t")}})
	c := w.standalone()
	require.Len(t, c.names("tools"), 1)
	b.do(do("crash"))
	b.waitStarts(2)
	b.waitReceived("initialize", 2)
	first := map[any]string{}
	for _, e := range b.received("") {
		if first[e.proc.start] == "" {
			first[e.proc.start] = e.method
		}
	}
	require.ElementsMatch(t, []string{"server/discover", "initialize"}, slices.Collect(maps.Values(first)))
}

func TestBackendThatDiesOfTheProbeIsStartedAgainAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backend("b", obj{"tools": []obj{tool("t")}, "on": obj{"server/discover": actions(do("crash"))}},
		obj{"env": obj{"GORACE": "atexit_sleep_ms=0"}}) // at once, also when it is built to find races
	c := w.standalone()
	require.Equal(t, []string{"b_t"}, c.names("tools"), "the first list waits for it")
	require.Equal(t, 2, b.starts())
}

func TestModernBackendIsAskedForTheOtherEraOnceOnly(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"error", "crash"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			script := obj{"tools": []obj{tool("t")}}
			if how == "crash" {
				script["on"] = obj{"initialize": actions(do("crash"))}
				script["era"] = "discreet" // an era that hears it
			} else {
				script["era"] = "modern"
			}
			b := w.backend("b", script, obj{"env": obj{"GORACE": "atexit_sleep_ms=0"}})
			c := w.standalone()
			require.Equal(t, []string{"b_t"}, c.names("tools"), "the first list waits for it")
			before := b.starts()
			b.do(do("crash"))
			b.waitStarts(before + 1)
			b.waitReceived("subscriptions/listen", 2)
			require.Equal(t, 1, b.count("initialize"))
		})
	}
}

func TestSlowModernBackendIsRecognised(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.modernBackend("stdio", obj{"tools": []obj{tool("t")}, "on": obj{"server/discover": actions(do("delay", obj{"ms": 1300}))}})
	c := w.standalone()
	require.Equal(t, []string{"b_t"}, c.names("tools"))
	require.Equal(t, 1, b.count("initialize"), "tried meanwhile, and refused")
}

func TestModernBackendWithAConnectionForEachClient(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.modernBackend("stdio", obj{"tools": []obj{tool("t")}, "resources": []obj{resource("x:1")}}, obj{"isolation": "session"})
	c1, c2 := w.bridged(), w.bridged()
	for _, c := range []*client{c1, c2} {
		c.callText("b_t", obj{})
		c.ok("resources/subscribe", obj{"uri": "x:1"})
	}
	require.Equal(t, 2, b.starts())
	b.updated("x:1")
	require.Equal(t, []string{"x:1"}, c1.waitUpdates(1))
	require.Equal(t, []string{"x:1"}, c2.waitUpdates(1))
	require.False(t, slices.ContainsFunc(b.received(""), func(e told) bool { return e.method == "resources/subscribe" }))
}

// Both sides speak the revision: what differs is the hop's, on either side.
func TestStatelessClientInFrontOfAModernBackend(t *testing.T) {
	eachModern(t, func(t *testing.T, w *world, kind string) {
		says := do("notify", obj{"method": "notifications/message", "params": obj{"level": "error", "data": "x"}})
		b := w.modernBackend(kind, obj{"tools": []obj{tool("t"), tool("ask"), tool("lacks")}, "resources": []obj{resource("x:1")}, "on": obj{
			"tools/call t": actions(says, do("progress", obj{"n": 2})),
			"tools/call ask": actions(obj{"do": "requests", "actions": []obj{
				{"method": "elicitation/create", "params": obj{"message": "?"}}, {"method": "sampling/createMessage", "params": obj{}}, {"method": "roots/list"},
			}}, do("answers")),
			"tools/call lacks": actions(do("error", obj{"error": json.RawMessage(`{"code":-32021,"message":"no","data":{"requiredCapabilities":{"sampling":{}}}}`)})),
		}})
		c := w.pipe("stdio", "--standalone").stateless()
		c.caps = obj{"elicitation": obj{}, "sampling": obj{}, "roots": obj{}}
		m := c.request("tools/call", obj{"name": "b_t", "_meta": obj{"progressToken": "p", protocolPrefix + "logLevel": "warning"}})
		require.Equal(t, `"complete"`, string(at(m.Result, "resultType")), m.raw)
		require.Contains(t, string(at(m.Result, "_meta", protocolPrefix+"serverInfo")), "goblin")
		require.Len(t, c.notesOf("notifications/progress"), 2)
		require.Len(t, c.notesOf("notifications/message"), 1)
		call := b.received("tools/call")[0]
		require.Equal(t, `"warning"`, protocolMeta(call, "logLevel"))
		require.JSONEq(t, string(marshal(c.caps)), protocolMeta(call, "clientCapabilities"))
		require.Contains(t, protocolMeta(call, "clientInfo"), "goblin")

		require.Equal(t, -32021, c.fault("tools/call", obj{"name": "b_lacks"}).Code)
		m = c.request("tools/call", obj{"name": "b_ask"})
		require.Equal(t, `"input_required"`, string(at(m.Result, "resultType")), m.raw)
		var asked map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(at(m.Result, "inputRequests"), &asked))
		require.Len(t, asked, 3)
		require.Contains(t, asked, "ask-0", "the server's own name for its question")
		responses := obj{}
		for key, ask := range asked {
			responses[key] = obj{"of": str(ask, "method")}
		}
		m = c.request("tools/call", obj{"name": "b_ask", "requestState": at(m.Result, "requestState"), "inputResponses": responses})
		require.Nil(t, m.Error, m.raw)
		require.JSONEq(t, `[{"of":"elicitation/create"},{"of":"sampling/createMessage"},{"of":"roots/list"}]`, str(m.Result, "content", 0, "text"))

		listen := c.begin("subscriptions/listen", obj{"notifications": obj{"resourceSubscriptions": []string{"x:1"}, "toolsListChanged": true}})
		ack := c.noted("notifications/subscriptions/acknowledged", nil)
		require.JSONEq(t, `["x:1"]`, string(at(ack.Params, "notifications", "resourceSubscriptions")))
		b.updated("x:1")
		n := c.noted("notifications/resources/updated", nil)
		require.Equal(t, listen, string(at(n.Params, "_meta", protocolPrefix+"subscriptionId")))
		b.add("tools", tool("new"))
		b.listChanged("tools")
		c.noted("notifications/tools/list_changed", nil)
	})
}
