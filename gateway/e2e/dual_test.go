package e2e

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The rows of backends that speak both eras: each client is served over a
// connection of its own.

// dualBackends are those backends, by how their processes choose the era.
var dualBackends = []struct {
	name, kind, era string
	processes       int // once both eras have been used
}{
	{"stdio", "stdio", "dual", 2},
	{"stdio that chooses by the first message", "stdio", "either", 3}, // one was asked first
	{"http", "http", "dual", 1},
}

func (w *world) dualBackend(kind, era string, script obj, conf ...obj) *backend {
	w.t.Helper()
	script["era"] = era
	if kind == "http" {
		return w.remote("b", "/mcp", script, conf...)
	}
	return w.backend("b", script, conf...)
}

// eachDual runs a test with a client of each era, of each front, before each of
// those backends.
func eachDual(t *testing.T, script func() obj, test func(t *testing.T, b *backend, legacy, modern *client, processes int)) {
	t.Helper()
	t.Parallel()
	for _, d := range dualBackends {
		for _, front := range []string{"stdio", "http"} {
			t.Run(front+" before "+d.name, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				b := w.dualBackend(d.kind, d.era, script())
				legacy, modern := w.pair(front)
				test(t, b, legacy, modern, d.processes)
			})
		}
	}
}

// pair is a client of each era of one host.
func (w *world) pair(front string) (legacy, modern *client) {
	w.t.Helper()
	caps := obj{"elicitation": obj{}, "sampling": obj{}, "roots": obj{}}
	if front == "http" {
		s := w.serve()
		legacy, modern = s.rawClient(), s.rawClient().stateless()
		modern.web.stateless = true
		legacy.caps = caps
		legacy.init()
		legacy.listen()
	} else {
		w.hosted = true
		legacy, modern = w.pipe("stdio"), w.pipe("stdio").stateless()
		legacy.caps = caps
		legacy.init()
	}
	modern.caps = caps
	return legacy, modern
}

// ofEra are the calls that came in the modern era, or in the other.
func (b *backend) ofEra(method string, modern bool) (calls []told) {
	b.t.Helper()
	for _, m := range b.received(method) {
		if (protocolMeta(m, "protocolVersion") != "") == modern {
			calls = append(calls, m)
		}
	}
	return calls
}

// What a server demands, as it writes it: names, order, numbers and escapes are
// its own.
const (
	demands = `{"z\u0041":{"method":"elicitation/create","params":{"requestedSchema":{"type":"object"},"message":"who","n":1.50}},"a":{"method":"roots/list"}}`
	opaque  = `"st\u0061te/+="`
)

func TestEachClientIsServedInItsOwnEra(t *testing.T) {
	script := func() obj {
		return obj{"tools": []obj{tool("ask"), tool("raw"), tool("lacks")}, "prompts": []obj{prompt("p")}, "resources": []obj{resource("x:1")}, "on": obj{
			"tools/call ask": actions(do("request", obj{"method": "elicitation/create", "params": form}), do("answers")),
			"prompts/get p":  actions(do("request", obj{"method": "elicitation/create", "params": form})),
			"resources/read": actions(do("request", obj{"method": "elicitation/create", "params": form})),
			"tools/call raw": actions(do("result", obj{"times": 1, "result": json.RawMessage(`{"resultType":"input_required","vendor":12345678901234567890,"inputRequests":` + demands + `,"requestState":` + opaque + `}`)}), do("echo")),
			"tools/call lacks": actions(do("error", obj{"error": json.RawMessage(
				`{"code":-32021,"message":"no","data":{"requiredCapabilities":{"sampling":{"tools":{}}}}}`)})),
		}}
	}
	eachDual(t, script, func(t *testing.T, b *backend, legacy, modern *client, processes int) {
		legacy.reply = func(message) (any, any) { return obj{"action": "accept", "content": obj{"name": "Lea"}}, nil }
		id := legacy.begin("tools/call", obj{"name": "b_ask"})

		m := modern.request("tools/call", obj{"name": "b_ask"})
		_, keys := demanded(t, m)
		require.Equal(t, "ask-0", keys["elicitation/create"], "the server's own name for its question: %s", m.raw)
		for method, params := range map[string]obj{
			"tools/call": {"name": "b_ask"}, "prompts/get": {"name": "b/p"}, "resources/read": {"uri": in("b", "x:1")},
		} {
			m := modern.request(method, params)
			params["requestState"] = at(m.Result, "requestState")
			params["inputResponses"] = obj{"ask-0": accepted, "more": obj{"n": json.RawMessage("1.50")}}
			m = modern.request(method, params)
			require.Nil(t, m.Error, m.raw)
			require.Equal(t, `"complete"`, string(at(m.Result, "resultType")), m.raw)
			calls := b.ofEra(method, true)
			last := calls[len(calls)-1].Msg
			require.Equal(t, string(params["requestState"].(json.RawMessage)), string(at(last, "params", "requestState")))
			require.Equal(t, `{"ask-0":`+string(marshal(accepted))+`,"more":{"n":1.50}}`, string(at(last, "params", "inputResponses")))
		}

		m = modern.request("tools/call", obj{"name": "b_raw"})
		require.Equal(t, demands, string(at(m.Result, "inputRequests")))
		require.Equal(t, opaque, string(at(m.Result, "requestState")))
		require.Equal(t, "12345678901234567890", string(at(m.Result, "vendor")))
		m = modern.request("tools/call", obj{"name": "b_raw", "requestState": at(m.Result, "requestState")})
		require.Contains(t, str(m.Result, "content", 0, "text"), `"requestState":"state/+="`)
		m = modern.request("tools/call", obj{"name": "b_lacks"})
		require.Equal(t, -32021, parseError(t, m).Code)
		require.JSONEq(t, `{"requiredCapabilities":{"sampling":{"tools":{}}}}`, string(at(m.Error, "data")))

		end := legacy.end(id)
		require.Contains(t, str(end.Result, "content", 0, "text"), "Lea", end.raw)
		require.Len(t, legacy.asks, 1)
		require.Empty(t, modern.asks)
		require.Len(t, b.ofEra("tools/call", false), 1)
		require.JSONEq(t, string(marshal(modern.caps)), protocolMeta(b.ofEra("tools/call", true)[0], "clientCapabilities"))
		require.Equal(t, processes, b.starts())
		b.waitLive(min(processes, 2))
		require.Empty(t, b.ofEra("tools/list", true), "the catalog is listed once")
	})
}

func TestStateThatIsGoblinsOwnIsCheckedWhereverItGoes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.backend("old", asking("elicitation/create", form))
	b := w.dualBackend("stdio", "dual", obj{"tools": []obj{tool("other")}})
	_, modern := w.pair("stdio")
	state, keys := demanded(t, modern.request("tools/call", obj{"name": "old_ask"}))
	require.Equal(t, -32602, modern.fault("tools/call", obj{"name": "b_other", "requestState": state}).Code, "of another request")
	require.Equal(t, -32602, modern.fault("tools/call", obj{"name": "b_other", "requestState": state + "x"}).Code, "forged")
	require.Empty(t, b.received("tools/call"))
	modern.ok("tools/call", obj{"name": "b_other", "requestState": "theirs"})
	require.Equal(t, `"theirs"`, string(at(b.received("tools/call")[0].Msg, "params", "requestState")))
	require.Equal(t, -32602, modern.fault("tools/call", obj{"name": "old_ask", "requestState": "theirs"}).Code, "an older server gives none")
	end := modern.request("tools/call", obj{"name": "old_ask", "requestState": state, "inputResponses": obj{keys["elicitation/create"]: accepted}})
	require.Contains(t, str(end.Result, "content", 0, "text"), "Alice", end.raw)
}

func TestBackendOfOneEraGetsOneConnection(t *testing.T) {
	t.Parallel()
	for _, era := range []string{"", "mute", "modern"} {
		for _, kind := range []string{"stdio", "http"} {
			t.Run(fmt.Sprintf("%q %s", era, kind), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				b := w.dualBackend(kind, era, obj{"tools": []obj{tool("t")}})
				legacy, modern := w.pair("stdio")
				for _, c := range []*client{legacy, modern, modern} {
					require.Contains(t, c.callText("b_t", obj{}), "b:t")
				}
				require.Equal(t, 1, b.starts())
				require.LessOrEqual(t, b.count("server/discover"), 1)
				require.LessOrEqual(t, b.count("initialize"), 1)
			})
		}
	}
}

func TestBackendThatIsSlowToSayThatItSpeaksBothErasIsServedInBoth(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		kind string
		ends bool // before it has said so
	}{{"stdio", false}, {"stdio", true}, {"http", false}} {
		t.Run(fmt.Sprintf("%s %v", row.kind, row.ends), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			b := w.dualBackend(row.kind, "dual", obj{"tools": []obj{tool("t")}, "on": obj{
				"server/discover": actions(do("wait", obj{"name": "told", "starts": 1})),
			}})
			legacy, modern := w.pair("stdio")
			for _, c := range []*client{legacy, modern} {
				require.Contains(t, c.callText("b_t", obj{}), "b:t")
			}
			require.Empty(t, b.ofEra("tools/call", true), "it has not told yet")
			if row.ends {
				b.doAt(b.waitStarts(1), do("crash", obj{"code": 1}))
			} else {
				b.do(do("release", obj{"name": "told"}))
			}
			eventually(t, "a call of the modern era", func() bool {
				modern.request("tools/call", obj{"name": "b_t"})
				return len(b.ofEra("tools/call", true)) > 0
			})
			legacy.ok("tools/call", obj{"name": "b_t"})
			calls := b.received("tools/call")
			require.Empty(t, protocolMeta(calls[len(calls)-1], "protocolVersion"), "of the other client")
		})
	}
}

func TestBackendThatEndsOfTheQuestionWhatItSpeaksIsAskedNoMore(t *testing.T) {
	t.Parallel()
	const asked = 4 // at its first start, and three times more
	w := newWorld(t)
	b := w.dualBackend("stdio", "dual", obj{"tools": []obj{tool("t")}, "on": obj{
		"server/discover": actions(do("wait", obj{"name": "never"})),
	}})
	c, _ := w.pair("stdio")
	for n := 1; n <= asked+2; n++ {
		at := b.waitStarts(n)
		eventually(t, "a call", func() bool { return c.request("tools/call", obj{"name": "b_t"}).Error == nil })
		if n <= asked {
			b.waitReceived("server/discover", n)
		}
		b.doAt(at, do("crash", obj{"code": 1}))
	}
	require.Equal(t, asked, b.count("server/discover"))
}

func TestSecondConnectionIsOpenedByTheFirstStatelessRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.dualBackend("stdio", "either", obj{"tools": []obj{tool("t")}})
	legacy, modern := w.pair("stdio")
	legacy.callText("b_t", obj{})
	modern.names("tools")
	require.Equal(t, 2, b.starts(), "the one that was asked first, and another")
	ids := []string{modern.begin("tools/call", obj{"name": "b_t"}), modern.begin("tools/call", obj{"name": "b_t"})}
	for _, id := range ids {
		require.Nil(t, modern.end(id).Error)
	}
	require.Equal(t, 3, b.starts(), "one for both")
	require.Equal(t, 2, b.count("server/discover"))
}

func TestRequestsOfBothErasFromOneClientGoTheirWays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.dualBackend("stdio", "dual", obj{"tools": []obj{tool("t"), tool("slow")}, "on": obj{
		"tools/call t":    actions(do("progress", obj{"n": 2})),
		"tools/call slow": actions(do("wait", obj{"name": "never"})),
	}})
	c := w.standalone()
	envelope := obj{protocolPrefix + "protocolVersion": modernRevision, protocolPrefix + "clientCapabilities": obj{}, "progressToken": "m"}
	for _, call := range []struct {
		meta, kind string
		params     obj
	}{
		{`"p"`, "null", obj{"name": "b_t", "_meta": obj{"progressToken": "p"}}},
		{`"m"`, `"complete"`, obj{"name": "b_t", "_meta": envelope}},
	} {
		c.forget()
		result := c.ok("tools/call", call.params)
		require.Equal(t, call.kind, string(orNull(at(result, "resultType"))))
		notes := c.notesOf("notifications/progress")
		require.Len(t, notes, 2)
		require.Equal(t, call.meta, string(at(notes[0].Params, "progressToken")))
	}
	id := c.begin("tools/call", obj{"name": "b_slow", "_meta": envelope})
	b.waitEvent("wait", "never")
	c.notify("notifications/cancelled", obj{"requestId": json.RawMessage(id)})
	b.waitEvent("gone", "slow")
	require.Len(t, b.ofEra("tools/call", true), 2)
	require.Len(t, b.ofEra("tools/call", false), 1)
	require.Same(t, b.waitStarts(2), b.received("notifications/cancelled")[0].proc)
}

func TestCrashOfOneOfTwoConnectionsIsNoneOfTheOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.dualBackend("stdio", "dual", obj{"tools": []obj{tool("t"), tool("hang")}, "on": obj{"tools/call hang": actions(do("hang"))}})
	legacy, modern := w.pair("stdio")
	modern.callText("b_t", obj{})
	waits, lost := legacy.begin("tools/call", obj{"name": "b_hang"}), modern.begin("tools/call", obj{"name": "b_hang"})
	b.waitEvents("wait", "hang", 2)
	b.doAt(b.waitStarts(2), do("crash"))
	require.Equal(t, "CONNECTION_ERROR", parseError(t, modern.end(lost)).kind())
	b.waitReceived("server/discover", 3) // and it is opened again by itself
	modern.callText("b_t", obj{})
	require.Len(t, b.ofEra("tools/call", true), 3, "not translated")
	require.Contains(t, legacy.readText("goblin://servers"), `"restarts":0`)

	b.doAt(b.waitStarts(1), do("crash"))
	require.Equal(t, "CONNECTION_ERROR", parseError(t, legacy.end(waits)).kind())
	b.waitReceived("initialize", 2)
	eventually(t, "the first again", func() bool { return legacy.request("tools/call", obj{"name": "b_t"}).Error == nil })
	modern.callText("b_t", obj{})
	require.Equal(t, 4, b.starts())
	b.waitLive(2)
}

func TestSecondConnectionEndsWithItsServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.dualBackend("stdio", "dual", obj{"tools": []obj{tool("t")}})
	legacy, modern := w.pair("stdio")
	legacy.callText("b_t", obj{})
	modern.callText("b_t", obj{})
	first := b.live()
	require.Len(t, first, 2)
	w.succeeds("restart", "b")
	b.wait("the end of both", func() bool { return first[0].gone && first[1].gone })
	eventually(t, "the restarted server", func() bool { return modern.request("tools/call", obj{"name": "b_t"}).Error == nil })
	b.waitStarts(4) // clients of both eras find theirs again
	b.waitLive(2)
	second := b.live()
	w.succeeds("stop")
	b.wait("the end of both", func() bool { return second[0].gone && second[1].gone })
}

func TestWithoutASecondConnectionTheFirstIsTranslated(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.dualBackend("stdio", "dual", obj{"tools": []obj{tool("ask")}, "on": obj{
		"server/discover": actions(do("crash", obj{"after": 1, "starts": 2})),
		"tools/call ask":  actions(do("request", obj{"method": "elicitation/create", "params": form}), do("answers")),
	}})
	_, modern := w.pair("stdio")
	state, keys := demanded(t, modern.request("tools/call", obj{"name": "b_ask"}))
	require.Len(t, b.ofEra("tools/call", false), 1)
	b.waitStarts(3) // it works now, but this question belongs to the first
	b.waitReceived("server/discover", 3)
	end := modern.request("tools/call", obj{"name": "b_ask", "requestState": state, "inputResponses": obj{keys["elicitation/create"]: accepted}})
	require.Contains(t, str(end.Result, "content", 0, "text"), "Alice", end.raw)
	require.Len(t, b.received("tools/call"), 1)
	eventually(t, "calls in its own era", func() bool {
		modern.request("tools/call", obj{"name": "b_ask"})
		return len(b.ofEra("tools/call", true)) > 0
	})
}

func TestErrorsOfTheSecondHopStayThere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	gone := do("error", obj{"after": 1, "error": json.RawMessage(`{"code":-32022,"message":"no more","data":{"supported":["2025-11-25"]}}`)})
	b := w.dualBackend("stdio", "dual", obj{"tools": []obj{tool("t")}, "on": obj{"tools/call t": actions(gone), "server/discover": actions(merge(obj{}, []obj{gone, {"after": 2}}))}})
	_, modern := w.pair("stdio")
	require.Contains(t, modern.callText("b_t", obj{}), "b:t", "by the first, as the second has left the revision")
	b.waitReceived("server/discover", 3)
	require.Contains(t, modern.callText("b_t", obj{}), "b:t")
	require.Len(t, b.ofEra("tools/call", true), 1)
	require.Len(t, b.ofEra("tools/call", false), 2)
	b.waitLive(1)
}

func TestHeadersOfTheSecondConnectionFollowTheDefinition(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	marked := func(header string) obj {
		return tool("t", obj{"inputSchema": obj{"type": "object", "properties": obj{"region": obj{"type": "string", "x-mcp-header": header}}}})
	}
	b := w.dualBackend("http", "dual", obj{"tools": []obj{marked("Region"), tool("bad", obj{
		"inputSchema": obj{"type": "object", "properties": obj{"region": obj{"type": "object", "x-mcp-header": "Region"}}},
	})}})
	legacy, modern := w.pair("stdio")
	require.Len(t, legacy.names("tools"), 2, "the older revisions know no such rule")
	call := obj{"name": "b_t", "arguments": obj{"region": "Zürich"}}
	modern.ok("tools/call", call)
	calls := b.received("tools/call")
	require.Len(t, calls, 1, "the first try fits")
	require.Equal(t, "=?base64?WsO8cmljaA==?=", calls[0].Headers["mcp-param-region"])
	b.remove("tools", "t")
	b.add("tools", marked("Zone"))
	modern.ok("tools/call", call)
	calls = b.received("tools/call")
	require.Equal(t, "=?base64?WsO8cmljaA==?=", calls[len(calls)-1].Headers["mcp-param-zone"])
}

func TestChangesAreHeardFromEitherConnectionOnce(t *testing.T) {
	script := func() obj { return obj{"tools": []obj{tool("t")}, "resources": []obj{resource("x:1")}} }
	eachDual(t, script, func(t *testing.T, b *backend, legacy, modern *client, processes int) {
		legacy.callText("b_t", obj{})
		modern.callText("b_t", obj{})
		legacy.ok("resources/subscribe", obj{"uri": "x:1"})
		modern.hears(obj{"resourceSubscriptions": []string{in("b", "x:1")}, "toolsListChanged": true})
		b.updated("x:1")
		require.Equal(t, []string{"x:1"}, legacy.waitUpdates(1))
		modern.noted("notifications/resources/updated", nil)

		// Of two processes each tells of its own; the catalog is what the last one
		// that told has.
		live := b.live()
		last := live[len(live)-1]
		b.doAt(last, do("add", obj{"kind": "tools", "entry": tool("new")}))
		b.doAt(last, do("notify", obj{"method": "notifications/tools/list_changed"}))
		legacy.waitListed("tools", "b_new", true)
		modern.noted("notifications/tools/list_changed", nil)
		require.Contains(t, modern.callText("b_new", obj{}), "b:new")

		legacy.forget()
		modern.forget()
		b.doAt(last, do("notify", obj{"method": "notifications/tools/list_changed"}))
		modern.noted("notifications/tools/list_changed", nil)
		require.Empty(t, legacy.notesOf("notifications/tools/list_changed"), "the list is what it was")
		require.False(t, modern.holds(500*time.Millisecond, func() bool { return len(modern.notes) > 1 }), "told once")
		b.updated("x:1")
		require.Len(t, legacy.waitUpdates(1), 1)
		legacy.ok("tools/list", nil)
		modern.noted("notifications/resources/updated", nil)
		require.Len(t, legacy.updates(), 1)
		require.Len(t, modern.notesOf("notifications/resources/updated"), 1)
		if len(live) == 2 { // what came from a process goes with it
			b.doAt(last, do("crash"))
			legacy.waitListed("tools", "b_new", false)
			b.waitStarts(processes + 1)
			b.waitEvent("listen", "")
			modern.noted("notifications/resources/updated", nil) // restored; it may have changed
		}
	})
}

func TestUnitsGetConnectionsOfTheirClientsEra(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.dualBackend("stdio", "dual", obj{"tools": []obj{tool("t")}}, obj{"isolation": "session"})
	legacy, modern := w.pair("stdio")
	other := w.pipe("stdio").stateless()
	legacy.callText("b_t", obj{})
	for _, c := range []*client{modern, other, modern} {
		c.callText("b_t", obj{})
	}
	require.Equal(t, 3, b.starts(), "one for each")
	require.Len(t, b.ofEra("tools/call", true), 3)
	modern.close()
	b.wait("the end of its process", func() bool { return b.procs[1].gone || b.procs[2].gone })
	b.waitLive(2)
	other.callText("b_t", obj{})
	legacy.callText("b_t", obj{})
	require.Equal(t, 3, b.starts())
}

func TestSubscriptionsFollowAServerThatWasReplaced(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.dualBackend("stdio", "dual", obj{"tools": []obj{tool("t")}, "resources": []obj{resource("x:1")}})
	legacy, modern := w.pair("stdio")
	legacy.ok("resources/subscribe", obj{"uri": "x:1"})
	modern.hears(obj{"resourceSubscriptions": []string{"x:1"}})
	w.edit(func() { b.conf["timeout"] = "29s" })
	b.waitStarts(4)
	require.Equal(t, []string{"x:1"}, legacy.waitUpdates(1), "it may have changed")
	modern.noted("notifications/resources/updated", nil)
	b.wait("the end of the first two", func() bool { return b.procs[0].gone && b.procs[1].gone })
	b.updated("x:1")
	legacy.waitUpdates(2)
	modern.wait("its own", func() bool { return len(modern.notes) == 3 })
}
