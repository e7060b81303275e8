package e2e

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// sharers are two stateless clients over HTTP, which nothing but their token
// identifies.
func (w *world) sharers(caps obj) (one, two *client) {
	w.t.Helper()
	s := w.serve()
	both := [2]*client{}
	for i := range both {
		both[i] = s.rawClient().stateless()
		both[i].web.stateless, both[i].caps = true, caps
	}
	return both[0], both[1]
}

func TestLaterQuestionOfAHeldCallReachesNoOtherClientOfItsToken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backend("b", asking("elicitation/create", form))
	held, busy := w.sharers(obj{"elicitation": obj{}, "sampling": obj{}})
	state, keys := demanded(t, held.request("tools/call", obj{"name": "b_ask"}))
	waits := busy.begin("tools/call", obj{"name": "b_other"})
	b.waitEvent("wait", "other")

	// It may be the held call that asks more, or the other one.
	b.do(do("request", obj{"method": "elicitation/create", "params": form}))
	require.Equal(t, "cancel", str(b.waitEvent("reply", "elicitation/create").Msg, "action"))
	b.do(do("request", obj{"method": "sampling/createMessage", "params": obj{"messages": []obj{}, "maxTokens": 1}}))
	require.Equal(t, "-32601", string(at(b.waitEvent("reply", "sampling/createMessage").Msg, "error", "code")))

	b.do(do("release", obj{"name": "other"}))
	end := busy.end(waits)
	require.Equal(t, "complete", str(end.Result, "resultType"), "%s", end.raw)
	require.Contains(t, string(held.ok("tools/call", obj{
		"name": "b_ask", "requestState": state, "inputResponses": obj{keys["elicitation/create"]: accepted},
	})), "Alice")
}

func TestQuestionsOverHTTPBelongToTheStreamOfTheirCall(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.remote("b", "/mcp", obj{"tools": []obj{tool("one"), tool("two")}, "on": obj{
		"tools/call one": actions(do("wait", obj{"name": "go"}), do("request", obj{"method": "elicitation/create", "params": obj{"message": "one?", "requestedSchema": obj{}}}), do("answers")),
		"tools/call two": actions(do("wait", obj{"name": "go"}), do("request", obj{"method": "elicitation/create", "params": obj{"message": "two?", "requestedSchema": obj{}}}), do("answers")),
	}})
	one, two := w.sharers(obj{"elicitation": obj{}})
	ids := []string{one.begin("tools/call", obj{"name": "b_one"}), two.begin("tools/call", obj{"name": "b_two"})}
	b.waitEvents("wait", "go", 2)
	b.do(do("release", obj{"name": "go"}))
	for i, c := range []*client{one, two} {
		name := []string{"one", "two"}[i]
		m := c.end(ids[i])
		state, keys := demanded(t, m)
		require.Equal(t, name+"?", str(m.Result, "inputRequests", keys["elicitation/create"], "params", "message"))
		require.Contains(t, string(c.ok("tools/call", obj{
			"name": "b_" + name, "requestState": state, "inputResponses": obj{keys["elicitation/create"]: obj{"action": "accept", "content": obj{"for": name}}},
		})), name)
	}
}

func TestQuestionOfACancelledCallReachesNoOtherClient(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backend("b", asking("elicitation/create", form))
	w.hosted = true
	gone, other := w.pipe("stdio"), w.pipe("stdio")
	for _, c := range []*client{gone, other} {
		c.caps = obj{"elicitation": obj{}}
		c.init()
	}
	cancelled := gone.begin("tools/call", obj{"name": "b_hang"})
	b.waitEvent("wait", "hang")
	waits := other.begin("tools/call", obj{"name": "b_other"})
	b.waitEvent("wait", "other")
	gone.notify("notifications/cancelled", obj{"requestId": json.RawMessage(cancelled)})
	b.waitReceived("notifications/cancelled", 1)
	b.do(do("request", obj{"method": "elicitation/create", "params": form})) // it heeds that late
	require.Equal(t, "cancel", str(b.waitEvent("reply", "elicitation/create").Msg, "action"))
	b.do(do("release", obj{"name": "other"}))
	require.Nil(t, other.end(waits).Error)
	require.Empty(t, other.asks)

	// The client's own next call is no other's.
	gone.reply = func(message) (any, any) { return accepted, nil }
	require.Contains(t, gone.callText("b_ask", obj{}), "Alice")
}

// says is a log line.
func says(data string) obj {
	return do("write", obj{"text": string(marshal(obj{
		"jsonrpc": "2.0", "method": "notifications/message", "params": obj{"level": "warning", "data": data},
	}))})
}

func TestLogLinesOfUncertainCauseReachNoStatelessClient(t *testing.T) {
	for _, era := range []string{"legacy", "modern"} {
		t.Run(era, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			script := asking("elicitation/create", form)
			script["capabilities"] = obj{"tools": obj{}, "logging": obj{}}
			if era == "modern" {
				script["era"] = "modern"
			}
			b := w.backend("b", script)
			one, two := w.sharers(obj{})
			level := obj{protocolPrefix + "logLevel": "info"}
			ids := []string{one.begin("tools/call", obj{"name": "b_other", "_meta": level}), two.begin("tools/call", obj{"name": "b_other", "_meta": level})}
			b.waitEvents("wait", "other", 2)
			b.do(says("whose?"))
			b.do(do("release", obj{"name": "other"}))
			for i, c := range []*client{one, two} {
				require.Nil(t, c.end(ids[i]).Error)
				require.Empty(t, c.notesOf("notifications/message"))
			}
		})
	}
}

func TestLogLineOfAModernBackendReachesTheOneRequestThatAskedForIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	script := asking("elicitation/create", form)
	script["era"], script["capabilities"] = "modern", obj{"tools": obj{}, "logging": obj{}}
	b := w.backend("b", script)
	w.hosted = true
	silent, loud := w.pipe("stdio").stateless(), w.pipe("stdio").stateless()
	bystander := w.bridged()
	bystander.ok("logging/setLevel", obj{"level": "debug"})
	first := silent.begin("tools/call", obj{"name": "b_other"})
	second := loud.begin("tools/call", obj{"name": "b_other", "_meta": obj{protocolPrefix + "logLevel": "info"}})
	b.waitEvents("wait", "other", 2)
	b.do(says("for one"))
	said := loud.noted("notifications/message", nil)
	require.Equal(t, "for one", str(said.Params, "data"))

	// A second one that could have caused it, of another client.
	third := bystander.begin("tools/call", obj{"name": "b_other"})
	b.waitEvents("wait", "other", 3)
	b.do(says("whose?"))
	b.do(do("release", obj{"name": "other"}))
	for _, end := range []message{silent.end(first), loud.end(second), bystander.end(third)} {
		require.Nil(t, end.Error)
	}
	require.Empty(t, silent.notesOf("notifications/message"))
	require.Len(t, loud.notesOf("notifications/message"), 1)
	require.Empty(t, bystander.notesOf("notifications/message"), "of a call of its own alone")
}

func TestQuestionOfAStatelessClientOutlivesItsOtherCall(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	script := asking("elicitation/create", form)
	on := script["on"].(obj)
	on["tools/call ask"] = append(actions(do("wait", obj{"name": "go"})), on["tools/call ask"].([]obj)...)
	b := w.backend("b", script)
	c := w.pipe("stdio", "--standalone").stateless()
	c.caps = obj{"elicitation": obj{}}
	ask := c.begin("tools/call", obj{"name": "b_ask"})
	b.waitEvent("wait", "go")
	other := c.begin("tools/call", obj{"name": "b_other"})
	b.waitEvent("wait", "other")
	b.do(do("release", obj{"name": "go"}))
	_, keys := demanded(t, c.end(other)) // the newest of its calls is answered by what is asked
	require.Len(t, keys, 1)
	b.do(do("release", obj{"name": "other"})) // which had not asked, and ends
	state, keys := demanded(t, c.end(ask))
	require.Contains(t, string(c.ok("tools/call", obj{
		"name": "b_ask", "requestState": state, "inputResponses": obj{keys["elicitation/create"]: accepted},
	})), "Alice")
}

func TestQuestionDuringACompletionIsNotSentToAStatelessClient(t *testing.T) {
	overEveryTransport(t, func(t *testing.T, w *world, connect func() *client) {
		b := w.backend("b", obj{"prompts": []obj{prompt("p")}, "on": obj{"completion/complete": actions(do("request", obj{"method": "elicitation/create", "params": form}))}})
		c := connect()
		c.caps = obj{"elicitation": obj{}}
		c.ok("completion/complete", obj{"ref": obj{"type": "ref/prompt", "name": "b/p"}, "argument": obj{"name": "a", "value": "v"}})
		require.Equal(t, "-32602", string(at(b.waitEvent("reply", "elicitation/create").Msg, "error", "code")))
		require.Empty(t, c.asks)
	})
}

func TestRootsOutsideOfACallAreThoseOfAllSessions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.gateway["roots"] = []any{obj{"uri": "file:///work", "name": "work"}}
	b := w.backend("b", obj{"tools": []obj{tool("ask")}, "on": obj{"tools/call ask": actions(do("request", obj{"method": "roots/list"}), do("answers"))}})
	w.hosted = true
	roots := [][]obj{
		{{"uri": "file:///a", "name": "A", "_meta": obj{"k": 1}}, {"uri": "file:///shared", "name": "first"}},
		{{"uri": "file:///shared", "name": "second"}, {"uri": "file:///work"}, {"name": "none"}, {"uri": "file:///b"}},
	}
	var clients []*client
	for _, mine := range roots {
		c := w.pipe("stdio")
		c.caps = obj{"roots": obj{"listChanged": true}}
		c.reply = func(message) (any, any) { return obj{"roots": mine}, nil }
		c.init()
		c.names("tools")
		clients = append(clients, c)
	}
	w.bridged().names("tools") // has no roots
	mute := w.pipe("stdio")
	mute.caps = obj{"roots": obj{}}
	mute.reply = func(message) (any, any) { return nil, obj{"code": -32603, "message": "no"} }
	mute.init()
	mute.names("tools")

	b.do(do("request", obj{"method": "roots/list"}))
	require.JSONEq(t, `{"roots":[{"uri":"file:///work","name":"work"},{"uri":"file:///a","name":"A","_meta":{"k":1}},{"uri":"file:///shared","name":"first"},{"uri":"file:///b"}]}`,
		string(b.waitEvent("reply", "roots/list").Msg))
	require.JSONEq(t, string(marshal([]obj{{"roots": roots[1]}})), clients[1].callText("b_ask", obj{}), "in a call, those of its client")
}

func TestChangedRootsReachLegacyBackendsOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	shared := w.backend("shared", obj{"tools": []obj{tool("t")}})
	modern := w.backend("modern", obj{"tools": []obj{tool("t")}, "era": "modern"})
	own := w.backend("own", obj{"tools": []obj{tool("t")}}, obj{"isolation": "session"})
	w.hosted = true
	const changed = "notifications/roots/list_changed"
	plain := w.bridged()
	plain.callText("own_t", obj{})
	plain.callText("shared_t", obj{})
	plain.callText("modern_t", obj{})
	plain.notify(changed, nil) // of roots that it did not declare
	time.Sleep(300 * time.Millisecond)
	require.Zero(t, shared.count(changed))

	c := w.pipe("stdio")
	c.caps = obj{"roots": obj{"listChanged": true}}
	c.init()
	c.callText("own_t", obj{})
	shared.waitReceived(changed, 1) // there are more roots than before
	second := own.received("tools/call")[1].proc
	time.Sleep(time.Second) // what that says is said
	before := own.count(changed)
	for range 20 {
		c.notify(changed, nil)
	}
	require.Same(t, second, own.waitReceived(changed, before+1).proc)
	shared.waitReceived(changed, 2)
	c.close()
	shared.waitReceived(changed, 3) // and less again
	require.Equal(t, 3, shared.count(changed), "a burst is one notice")
	require.Zero(t, modern.count(changed))
}

func TestInstructionsHoldAnExcerptOfEveryServers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	long := strings.Repeat("äbcde fghi", 100)
	w.backend("zed", obj{"tools": []obj{tool("t")}, "instructions": "Call t\r\n first.\u0000\u001b[31m\u202e "})
	w.backend("quiet", obj{"tools": []obj{tool("t")}})
	w.backend("long", obj{"tools": []obj{tool("t")}, "instructions": long, "era": "modern"})
	c := w.standalone()
	require.NotEmpty(t, c.names("tools"))
	modern := obj{"_meta": obj{protocolPrefix + "protocolVersion": modernRevision, protocolPrefix + "clientCapabilities": obj{}}}
	text := str(c.ok("server/discover", modern), "instructions")
	require.Contains(t, text, "Goblin serves")
	require.Contains(t, text, "\n\nserver zed: Call t first. [31m\n\nserver long: äbcde fghiäbcde")
	require.NotContains(t, text, "quiet:")
	_, excerpt, _ := strings.Cut(text, "server long: ")
	require.Equal(t, 300, len([]rune(excerpt)))
	require.True(t, strings.HasSuffix(excerpt, "…"), excerpt)
	require.Equal(t, text, str(c.ok("server/discover", modern), "instructions"), "in the same order")
}

func TestInstructionsAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range 14 {
		w.backend("server"+string(rune('a'+i)), obj{"tools": []obj{tool("t")}, "instructions": strings.Repeat("x", 400)})
	}
	w.hosted = true
	w.bridged().names("tools")
	c := w.pipe("stdio")
	text := str(c.init(), "instructions")
	require.LessOrEqual(t, len(text), 4<<10)
	require.Greater(t, len(text), 3<<10)
	require.Contains(t, text, "\n\nserver servera: xxx")
	require.NotContains(t, text, "server servern: ")
}

func TestRootsOfAnEditedConfigAreOfferedAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backend("b", obj{"tools": []obj{tool("t")}})
	w.standalone().names("tools")
	w.edit(func() { w.gateway["roots"] = []any{obj{"uri": "file:///new"}} })
	b.waitReceived("notifications/roots/list_changed", 1)
	b.do(do("request", obj{"method": "roots/list"}))
	require.JSONEq(t, `{"roots":[{"uri":"file:///new"}]}`, string(b.waitEvent("reply", "roots/list").Msg))
}
