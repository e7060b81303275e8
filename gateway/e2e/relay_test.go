package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestProgressKeepsTokenAndTypeAndComesBeforeTheResponse(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backend("b", obj{"tools": []obj{tool("steps")}, "on": obj{"tools/call steps": actions(do("progress", obj{"n": 3}))}})
	c := w.standalone()
	for _, token := range []string{`"abc"`, `7`, `"7"`, `9007199254740993`, `""`} {
		c.update(func() { c.notes = nil })
		m := c.request("tools/call", obj{"name": "b_steps", "arguments": obj{}, "_meta": obj{"progressToken": json.RawMessage(token), "keep": 1.0}})
		notes := c.notesOf("notifications/progress")
		require.Len(t, notes, 3, token)
		for i, n := range notes {
			require.Equal(t, token, string(at(n.Params, "progressToken")))
			require.Equal(t, fmt.Sprint(i+1), string(at(n.Params, "progress")))
			require.Less(t, n.seq, m.seq)
		}
	}
	tokens := map[string]bool{}
	for _, told := range b.received("tools/call") {
		tokens[string(at(told.Msg, "params", "_meta", "progressToken"))] = true
		require.Equal(t, "1", strings.TrimSuffix(string(at(told.Msg, "params", "_meta", "keep")), ".0"))
	}
	require.Len(t, tokens, 5, "tokens of requests to one backend differ")
}

func TestProgressOfTwoClientsWithTheSameTokenIsNotMixed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backend("b", obj{"tools": []obj{tool("x"), tool("y")}, "on": obj{
		"tools/call x": actions(do("wait", obj{"name": "x"}), do("progress", obj{"n": 2})),
		"tools/call y": actions(do("wait", obj{"name": "y"}), do("progress", obj{"n": 3})),
	}})
	c1, c2 := w.bridged(), w.bridged()
	meta := obj{"progressToken": 1}
	id1 := c1.begin("tools/call", obj{"name": "b_x", "_meta": meta})
	id2 := c2.begin("tools/call", obj{"name": "b_y", "_meta": meta})
	b.waitEvent("wait", "x")
	b.waitEvent("wait", "y")
	b.do(do("release", obj{"name": "y"}))
	b.do(do("release", obj{"name": "x"}))
	require.Nil(t, c1.end(id1).Error)
	require.Nil(t, c2.end(id2).Error)
	require.Len(t, c1.notesOf("notifications/progress"), 2)
	require.Len(t, c2.notesOf("notifications/progress"), 3)
}

func TestProgressExtendsTheTimeout(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.backend("b", obj{"tools": []obj{tool("long")}, "on": obj{"tools/call long": actions(do("progress", obj{"n": 20, "ms": 200}))}}, obj{"timeout": "3s"})
	c := w.standalone()
	m := c.request("tools/call", obj{"name": "b_long", "_meta": obj{"progressToken": "p"}})
	require.Nil(t, m.Error, m.raw)
	require.Len(t, c.notesOf("notifications/progress"), 20)
}

func TestB16_CancellationReachesTheBackendWithItsOwnId(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backend("b", obj{"tools": []obj{tool("slow"), tool("quick")}, "on": obj{"tools/call slow": actions(do("wait", obj{"name": "never"}))}})
	c := w.standalone()
	c.ok("tools/call", obj{"name": "b_quick"})
	id := c.begin("tools/call", obj{"name": "b_slow"})
	b.waitEvent("wait", "never")
	c.notify("notifications/cancelled", obj{"requestId": json.RawMessage(id), "reason": "enough"})
	cancel := b.waitReceived("notifications/cancelled", 1)
	asked := b.received("tools/call")[1]
	require.Equal(t, string(at(asked.Msg, "id")), string(at(cancel.Msg, "params", "requestId")))
	b.waitEvent("gone", "slow")
	c.ok("tools/call", obj{"name": "b_quick"})
	c.mu.Lock()
	defer c.mu.Unlock()
	require.Empty(t, c.replies[id], "a cancelled request is not answered")
}

func TestCancellationOfWhatIsNotInFlightIsIgnored(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backend("b", obj{"tools": []obj{tool("t")}})
	c := w.standalone()
	c.ok("tools/call", obj{"name": "b_t"})
	for _, id := range []any{1, 99, "x", nil, obj{}} {
		c.notify("notifications/cancelled", obj{"requestId": id})
	}
	c.notify("notifications/cancelled", nil)
	c.ok("tools/call", obj{"name": "b_t"})
	require.Zero(t, b.count("notifications/cancelled"))
}

func TestLogLevelIsTheLowestOfAllSessions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backend("b", obj{"tools": []obj{tool("t")}})
	c1, c2 := w.bridged(), w.bridged()
	c1.ok("logging/setLevel", obj{"level": "error"})
	c2.ok("logging/setLevel", obj{"level": "debug"})
	b.wait("the lowest level", func() bool {
		all := b.pick("logging/setLevel")
		return len(all) > 0 && str(all[len(all)-1].Msg, "params", "level") == "debug"
	})
	log := func(level string) {
		b.do(do("notify", obj{"method": "notifications/message", "params": obj{"level": level, "logger": "l", "data": obj{"is": level}}}))
	}
	log("info")
	log("critical")
	data := func(c *client) []string {
		c.noted("notifications/message", func(p json.RawMessage) bool { return str(p, "level") == "critical" })
		var out []string
		for _, m := range c.notesOf("notifications/message") {
			out = append(out, str(m.Params, "data", "is"))
		}
		return out
	}
	require.Equal(t, []string{"critical"}, data(c1))
	require.Equal(t, []string{"info", "critical"}, data(c2))
	require.Equal(t, -32602, c1.fault("logging/setLevel", obj{"level": "loud"}).Code)

	c2.close()
	b.wait("the level after a client has left", func() bool {
		all := b.pick("logging/setLevel")
		return str(all[len(all)-1].Msg, "params", "level") == "error"
	})
}

func TestCompletionIsRoutedByItsReference(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backend("b", obj{"prompts": []obj{prompt("p")}, "templates": []obj{template("x:///{a}")}, "resources": []obj{}})
	silent := dbsrv()
	silent["capabilities"] = obj{"resources": obj{}}
	w.backend("silent", silent)
	c := w.standalone()
	ask := func(ref obj) obj {
		return obj{"ref": ref, "argument": obj{"name": "a", "value": "v"}, "context": obj{"arguments": obj{"k": "w"}}}
	}
	for _, ref := range []obj{
		{"type": "ref/prompt", "name": "b/p"},
		{"type": "ref/prompt", "name": "p"},
		{"type": "ref/resource", "uri": in("b", "x:///{a}")},
		{"type": "ref/resource", "uri": "x:///{a}"},
	} {
		require.JSONEq(t, `{"values":["b:`+map[bool]string{true: "p", false: "x:///{a}"}[ref["type"] == "ref/prompt"]+`"],"total":1,"hasMore":false}`,
			string(at(c.ok("completion/complete", ask(ref)), "completion")))
	}
	for _, told := range b.received("completion/complete") {
		require.JSONEq(t, `{"name":"a","value":"v"}`, string(at(told.Msg, "params", "argument")))
		require.Equal(t, "w", str(told.Msg, "params", "context", "arguments", "k"))
	}
	e := c.fault("completion/complete", ask(obj{"type": "ref/resource", "uri": in("silent", "mcp://database/{table}/{id}")}))
	require.Equal(t, -32601, e.Code)
	require.Equal(t, -32602, c.fault("completion/complete", ask(obj{"type": "ref/prompt", "name": "b/none"})).Code)
}

func TestRequestsOfABackendReachTheClientWithACallInFlight(t *testing.T) {
	t.Parallel()
	asks := map[string]obj{
		"sampling/createMessage": {"messages": []obj{{"role": "user", "content": obj{"type": "text", "text": "hi"}}}, "maxTokens": 5, "temperature": json.RawMessage("0.0")},
		"elicitation/create":     {"message": "who?", "requestedSchema": obj{"type": "object", "properties": obj{}}},
		"roots/list":             {},
	}
	for method, params := range asks {
		t.Run(strings.ReplaceAll(method, "/", "_"), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			b := w.backend("b", obj{"tools": []obj{tool("ask")}, "on": obj{
				"tools/call ask": actions(do("request", obj{"method": method, "params": params}), do("answers")),
			}})
			w.hosted = true
			caller, idle := w.pipe("stdio"), w.pipe("stdio")
			for _, c := range []*client{caller, idle} {
				c.caps = obj{"sampling": obj{}, "elicitation": obj{}, "roots": obj{"listChanged": true}}
				c.reply = func(ask message) (any, any) { return json.RawMessage(`{"from":"client","n":1.50}`), nil }
				c.init()
			}
			got := caller.ok("tools/call", obj{"name": "b_ask"})
			require.Equal(t, `[{"from":"client","n":1.50}]`, str(got, "content", 0, "text"))
			ask := caller.asked(1)
			require.Equal(t, method, ask.Method)
			require.JSONEq(t, string(marshal(params)), string(ask.Params))
			idle.ok("ping", nil)
			require.Empty(t, idle.asks)
			init := b.received("initialize")[0].Msg
			for _, capability := range []string{"sampling", "elicitation", "roots"} {
				require.NotNil(t, at(init, "params", "capabilities", capability), capability)
			}
		})
	}
}

func TestErrorOfAClientReachesTheBackend(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.backend("b", obj{"tools": []obj{tool("ask")}, "on": obj{"tools/call ask": actions(do("request", obj{"method": "sampling/createMessage", "params": obj{"messages": []obj{}, "maxTokens": 1}}), do("answers"))}})
	c := w.pipe("stdio", "--standalone")
	c.caps = obj{"sampling": obj{}}
	c.reply = func(message) (any, any) { return nil, obj{"code": -1, "message": "the user said no"} }
	c.init()
	text := c.callText("b_ask", obj{})
	require.Contains(t, text, "the user said no")
	require.Contains(t, text, "-1")
}

func TestWaitForAHumanDoesNotCountAgainstTheTimeout(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backend("b", obj{"tools": []obj{tool("ask"), tool("hang")}, "on": obj{
		"tools/call ask":  actions(do("request", obj{"method": "elicitation/create", "params": obj{"message": "m", "requestedSchema": obj{"type": "object"}}}), do("answers")),
		"tools/call hang": actions(do("hang")),
	}}, obj{"timeout": "2s"})
	c := w.pipe("stdio", "--standalone")
	c.caps = obj{"elicitation": obj{}}
	c.init()
	id := c.begin("tools/call", obj{"name": "b_ask"})
	ask := c.asked(1)
	// Another call runs into its timeout meanwhile, twice in a row.
	for range 2 {
		require.Equal(t, "REQUEST_TIMEOUT", c.fault("tools/call", obj{"name": "b_hang"}).kind())
	}
	c.answer(ask, func(message) (any, any) { return obj{"action": "accept", "content": obj{"a": 1}}, nil })
	require.Equal(t, `[{"action":"accept","content":{"a":1}}]`, str(c.end(id).Result, "content", 0, "text"))
	require.Equal(t, 3, b.count("tools/call"))
}

func TestRequestsOfABackendAreRefusedWhenNobodyCanBeAsked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backend("b", obj{"tools": []obj{tool("hang")}, "on": obj{"tools/call hang": actions(do("wait", obj{"name": "go"}))}})
	w.hosted = true
	c1, c2 := w.pipe("stdio"), w.pipe("stdio")
	for _, c := range []*client{c1, c2} {
		c.caps = obj{"sampling": obj{}, "elicitation": obj{}}
		c.init()
	}
	c1.names("tools") // the server is up
	request := func(method string, params obj, n int) json.RawMessage {
		// The command waits for the reply.
		b.do(do("request", obj{"method": method, "params": params}))
		return b.waitEvents("reply", method, n).Msg
	}
	sampling := obj{"messages": []obj{}, "maxTokens": 1}
	elicitation := obj{"message": "m", "requestedSchema": obj{"type": "object"}}
	require.NotNil(t, at(request("sampling/createMessage", sampling, 1), "error"), "no call is in flight")
	require.Equal(t, "cancel", str(request("elicitation/create", elicitation, 1), "action"))

	// Two clients have a call in flight: nobody knows whose it is.
	id1, id2 := c1.begin("tools/call", obj{"name": "b_hang"}), c2.begin("tools/call", obj{"name": "b_hang"})
	b.waitEvents("wait", "go", 2)
	require.NotNil(t, at(request("sampling/createMessage", sampling, 2), "error"))
	require.Equal(t, "cancel", str(request("elicitation/create", elicitation, 2), "action"))
	b.do(do("release", obj{"name": "go"}))
	c1.end(id1)
	c2.end(id2)
	require.Empty(t, c1.asks)
	require.Empty(t, c2.asks)
}

func TestRequestForWhatTheClientCannotIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.backend("b", obj{"tools": []obj{tool("ask")}, "on": obj{"tools/call ask": actions(do("request", obj{"method": "sampling/createMessage", "params": obj{"messages": []obj{}, "maxTokens": 1}}), do("answers"))}})
	c := w.standalone()
	require.Contains(t, c.callText("b_ask", obj{}), "error")
	require.Empty(t, c.asks)
}

func TestConfiguredRootsAreOfferedWhenNoClientCanBeAsked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.gateway["roots"] = []any{obj{"uri": "file:///work", "name": "work"}}
	b := w.backend("b", obj{"tools": []obj{tool("t")}})
	w.standalone().names("tools")
	b.do(do("request", obj{"method": "roots/list"}))
	require.JSONEq(t, `{"roots":[{"uri":"file:///work","name":"work"}]}`, string(b.waitEvent("reply", "roots/list").Msg))
}

func TestPingOfABackendIsAnswered(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backend("b", obj{"tools": []obj{tool("t")}})
	c := w.standalone()
	c.names("tools")
	b.do(do("request", obj{"method": "ping"}))
	require.JSONEq(t, `{}`, string(b.waitEvent("reply", "ping").Msg))
}

func TestIsolationGivesEveryClientAProcessOfItsOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backend("own", obj{"tools": []obj{tool("t")}, "resources": []obj{resource("x:1")}}, obj{"isolation": "session"})
	shared := w.backend("shared", filesystem())
	c1, c2 := w.bridged(), w.bridged()
	for _, c := range []*client{c1, c2} {
		require.Contains(t, c.names("tools"), "own_t")
		require.Equal(t, "own:t:{}", c.callText("own_t", obj{}))
		c.ok("resources/subscribe", obj{"uri": in("own", "x:1")})
	}
	calls := b.received("tools/call")
	require.Len(t, calls, 2)
	require.NotSame(t, calls[0].proc, calls[1].proc)
	require.Equal(t, 1, shared.starts())

	// An update of one process belongs to the client of that process.
	update := do("notify", obj{"method": "notifications/resources/updated", "params": obj{"uri": "x:1"}})
	b.doAt(calls[1].proc, update)
	require.Equal(t, []string{in("own", "x:1")}, c2.waitUpdates(1))
	b.doAt(calls[0].proc, update)
	require.Equal(t, []string{in("own", "x:1")}, c1.waitUpdates(1))
	c2.ok("ping", nil)
	require.Len(t, c2.updates(), 1)

	c2.close()
	b.wait("the end of the second client's process", func() bool { return calls[1].proc.gone })
	require.Equal(t, "own:t:{}", c1.callText("own_t", obj{}))
}

func TestArgumentsReachTheBackendByteForByte(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backend("b", obj{"tools": []obj{tool("t")}})
	c := w.standalone()
	args := `{"re":"a\\d+","n":12345678901234567890,"f":1.0,"e":1e400,"u":"\u00e9\u2028</x>","z":1,"a":{"b":[null,{}]}}`
	c.ok("tools/call", obj{"name": "b_t", "arguments": json.RawMessage(args), "vendor": true})
	told := b.received("tools/call")[0]
	require.Equal(t, args, string(at(told.Msg, "params", "arguments")))
	require.Equal(t, "true", string(at(told.Msg, "params", "vendor")))
	require.Equal(t, "t", str(told.Msg, "params", "name"))
}

func TestResultsReachTheClientByteForByte(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	result := `{"structuredContent":[1.0,12345678901234567890,{"b":1,"a":2}],"isError":false,"content":[{"type":"video","x":"\u003c"},{"type":"text","text":"","annotations":{"priority":0.10}}],"_meta":{"z":null},"vendor":"é"}`
	w.backend("b", obj{"tools": []obj{tool("t")}, "calls": obj{"t": json.RawMessage(result)}})
	c := w.standalone()
	require.Contains(t, c.request("tools/call", obj{"name": "b_t"}).raw, result)
}

func TestIsolationOverHTTPEndsWithTheSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backend("own", obj{"tools": []obj{tool("t")}}, obj{"isolation": "session"})
	s := w.serve()
	c1, c2 := s.client(false), s.client(false)
	for _, c := range []*client{c1, c2} {
		require.Equal(t, "own:t:{}", c.callText("own_t", obj{}))
	}
	calls := b.received("tools/call")
	require.Len(t, calls, 2)
	require.NotSame(t, calls[0].proc, calls[1].proc)
	require.Less(t, s.do("DELETE", "/mcp", map[string]string{"Mcp-Session-Id": c2.web.id}, "").status, 300)
	b.wait("the end of the second session's process", func() bool { return calls[1].proc.gone })
	require.Equal(t, "own:t:{}", c1.callText("own_t", obj{}))
	require.Contains(t, b.live(), calls[0].proc)
}

func TestLogLinesOfACallComeBeforeItsResponse(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	note := do("notify", obj{"method": "notifications/message", "n": 3, "params": obj{"level": "info", "data": "line $n"}})
	w.backend("b", obj{"tools": []obj{tool("t")}, "on": obj{"tools/call t": actions(note)}})
	s := w.serve()
	for name, c := range map[string]*client{"socket": w.bridged(), "HTTP": s.client(true)} {
		c.ok("logging/setLevel", obj{"level": "debug"})
		m := c.request("tools/call", obj{"name": "b_t"})
		notes := c.notesOf("notifications/message")
		require.Len(t, notes, 3, name)
		for i, n := range notes {
			require.Equal(t, fmt.Sprint("line ", i), str(n.Params, "data"))
			require.Less(t, n.seq, m.seq)
			require.Equal(t, m.via, n.via)
		}
		c.ok("logging/setLevel", obj{"level": "emergency"})
	}
}

func TestCompletedURLElicitationIsToldToTheClientThatWasAsked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ask := do("request", obj{"method": "elicitation/create", "params": obj{"mode": "url", "url": "https://e.example/", "message": "m", "elicitationId": "el-1"}})
	b := w.backend("b", obj{"tools": []obj{tool("login")}, "on": obj{"tools/call login": actions(ask, do("answers"))}})
	w.hosted = true
	c, other := w.pipe("stdio"), w.pipe("stdio")
	for _, client := range []*client{c, other} {
		client.caps = obj{"elicitation": obj{"form": obj{}, "url": obj{}}}
		client.reply = func(message) (any, any) { return obj{"action": "accept"}, nil }
		client.init()
	}
	require.Equal(t, `[{"action":"accept"}]`, c.callText("b_login", obj{}))
	for _, id := range []string{"el-unknown", "el-1"} {
		b.do(do("notify", obj{"method": "notifications/elicitation/complete", "params": obj{"elicitationId": id}}))
	}
	c.noted("notifications/elicitation/complete", func(p json.RawMessage) bool { return str(p, "elicitationId") == "el-1" })
	require.Len(t, c.notesOf("notifications/elicitation/complete"), 1)
	other.ok("ping", nil)
	require.Empty(t, other.notesOf("notifications/elicitation/complete"))
}

func TestClientThatReadsNothingDelaysNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.gateway["limits"] = obj{"unsent": "1MiB"}
	const size, calls = 100_000, 100
	w.backend("b", obj{"tools": []obj{tool("big"), tool("t")}, "on": obj{"tools/call big": actions(do("big", obj{"bytes": size}))}})
	slow, quick := w.bridged(), w.bridged()
	slow.ok("ping", nil)
	release := slow.pause()
	var ids []string
	for range calls {
		ids = append(ids, slow.begin("tools/call", obj{"name": "b_big"}))
	}
	for range 50 {
		require.Equal(t, "b:t:{}", quick.callText("b_t", obj{}))
	}
	release()
	for _, id := range ids {
		require.Len(t, str(slow.end(id).Result, "content", 0, "text"), size)
	}
}

func TestProgressThatComesTooLateReachesNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backend("b", obj{"tools": []obj{tool("slow"), tool("other")}, "on": obj{
		"tools/call slow":  actions(do("wait", obj{"name": "never"})),
		"tools/call other": actions(do("wait", obj{"name": "go"})),
	}})
	c := w.standalone()
	id := c.begin("tools/call", obj{"name": "b_slow", "_meta": obj{"progressToken": "mine"}})
	b.waitEvent("wait", "never")
	token := at(b.received("tools/call")[0].Msg, "params", "_meta", "progressToken")
	c.notify("notifications/cancelled", obj{"requestId": json.RawMessage(id)})
	b.waitEvent("gone", "slow")
	flight := c.begin("tools/call", obj{"name": "b_other", "arguments": obj{}})
	b.waitEvent("wait", "go") // now the cause of what the server says is certain
	b.do(do("notify", obj{"method": "notifications/progress", "params": obj{"progressToken": token, "progress": 1}}))
	b.do(do("release", obj{"name": "go"}))
	require.Nil(t, c.end(flight).Error)
	require.Empty(t, c.notesOf("notifications/progress"), "its token is nothing that the client knows")
}
