package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// demanded checks that a request was answered by a demand for input, and gives
// the state and the keys of what is asked, by method.
func demanded(t *testing.T, m message) (state string, keys map[string]string) {
	t.Helper()
	require.Nil(t, m.Error, "%s", m.raw)
	require.Equal(t, `"input_required"`, string(at(m.Result, "resultType")), "%s", m.raw)
	require.Nil(t, at(m.Result, "ttlMs"))
	state = str(m.Result, "requestState")
	require.NotEmpty(t, state)
	var inputs map[string]struct{ Method string }
	require.NoError(t, json.Unmarshal(at(m.Result, "inputRequests"), &inputs))
	keys = map[string]string{}
	for k, in := range inputs {
		keys[in.Method] = k
	}
	return state, keys
}

var accepted = obj{"action": "accept", "content": obj{"name": "Alice"}}

func TestQuestionOfAServerAnswersAStatelessCall(t *testing.T) {
	overEveryTransport(t, func(t *testing.T, w *world, connect func() *client) {
		b := w.backend("b", asking("elicitation/create", obj{
			"message": "who?", "requestedSchema": obj{"type": "object"}, "elicitationId": "e", "_meta": obj{"progressToken": 1, "k": 2},
		}), obj{"timeout": "3s"})
		c := connect()
		c.caps = obj{"elicitation": obj{}}
		call := obj{"name": "b_ask", "arguments": obj{"a": 1, "b": []int{2}}}
		first := c.request("tools/call", call)
		state, keys := demanded(t, first)
		require.Len(t, keys, 1)
		question := at(first.Result, "inputRequests", keys["elicitation/create"], "params")
		require.JSONEq(t, `{"message":"who?","requestedSchema":{"type":"object"},"_meta":{"k":2}}`, string(question))
		require.Empty(t, c.asks, "nothing is asked of a stateless client")

		// The wait for a human does not count: this one times out meanwhile.
		require.Equal(t, "REQUEST_TIMEOUT", c.fault("tools/call", obj{"name": "b_hang"}).kind())

		// An answer that is none is asked for again; keys that nobody asked for
		// are ignored.
		retry := func(state string, responses any, args ...obj) message {
			again := obj{"name": "b_ask", "arguments": obj{"b": []int{2}, "a": 1}, "requestState": state, "inputResponses": responses}
			if len(args) > 0 {
				again["arguments"] = args[0]
			}
			return c.request("tools/call", again)
		}
		state, _ = demanded(t, retry(state, obj{keys["elicitation/create"]: 12, "other": accepted}))
		used := state
		end := retry(state, obj{keys["elicitation/create"]: accepted, "other": accepted})
		require.Nil(t, end.Error, "%s", end.raw)
		require.Equal(t, `"complete"`, string(at(end.Result, "resultType")))
		require.Contains(t, str(end.Result, "content", 0, "text"), "Alice")
		require.Equal(t, 1, b.count("tools/call")-1, "the held call went on")

		// A state is good once, as it was given, and for its own request.
		for _, bad := range []message{
			retry(used, obj{keys["elicitation/create"]: accepted}),
			retry(used+"-TAMPERED", obj{keys["elicitation/create"]: accepted}),
			retry(strings.ToUpper(used), nil), retry("", nil),
		} {
			require.Equal(t, -32602, parseError(t, bad).Code, "%s", bad.raw)
		}
		state, keys = demanded(t, c.request("tools/call", call))
		other := retry(state, obj{keys["elicitation/create"]: accepted}, obj{"a": 2})
		require.Equal(t, -32602, parseError(t, other).Code, "other arguments")
		require.Nil(t, retry(state, obj{keys["elicitation/create"]: accepted}).Error, "it was not spent")
	})
}

func TestStateOfOneClientIsNoUseToAnother(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.hosted = true
	w.backend("b", asking("elicitation/create", form))
	mine, thief := w.pipe("stdio").stateless(), w.pipe("stdio").stateless()
	mine.caps, thief.caps = obj{"elicitation": obj{}}, obj{"elicitation": obj{}}
	state, keys := demanded(t, mine.request("tools/call", obj{"name": "b_ask"}))
	again := obj{"name": "b_ask", "requestState": state, "inputResponses": obj{keys["elicitation/create"]: accepted}}
	require.Equal(t, -32602, thief.fault("tools/call", again).Code)
	require.Contains(t, string(mine.ok("tools/call", again)), "Alice")
}

func TestQuestionsAskedSideBySideReachTheClientTogether(t *testing.T) {
	overEveryTransport(t, func(t *testing.T, w *world, connect func() *client) {
		w.backend("b", obj{"tools": []obj{tool("ask")}, "on": obj{"tools/call ask": actions(
			do("requests", obj{"actions": []obj{
				{"method": "elicitation/create", "params": form},
				{"method": "roots/list"},
				{"method": "sampling/createMessage", "params": obj{"messages": []obj{}, "maxTokens": 1}},
			}}), do("answers"),
		)}})
		c := connect()
		c.caps = obj{"elicitation": obj{}, "roots": obj{}, "sampling": obj{}}
		m := c.request("tools/call", obj{"name": "b_ask"})
		state, keys := demanded(t, m)
		require.Len(t, keys, 3, "%s", m.raw)
		m = c.request("tools/call", obj{"name": "b_ask", "requestState": state, "inputResponses": obj{
			keys["elicitation/create"]:     accepted,
			keys["roots/list"]:             obj{"roots": []obj{{"uri": "file:///r"}}},
			keys["sampling/createMessage"]: obj{"role": "assistant", "content": obj{"type": "text", "text": "hi"}, "model": "m"},
		}})
		require.Equal(t, "complete", str(m.Result, "resultType"), "%s", m.raw)
		for _, part := range []string{"Alice", "file:///r", "hi"} {
			require.Contains(t, str(m.Result, "content", 0, "text"), part)
		}
	})
}

func TestReadsAndPromptsCanDemandInput(t *testing.T) {
	overEveryTransport(t, func(t *testing.T, w *world, connect func() *client) {
		ask := do("request", obj{"method": "elicitation/create", "params": form})
		w.backend("b", obj{"prompts": []obj{{"name": "p"}}, "resources": []obj{resource("file:///a")}, "on": obj{
			"prompts/get p":            actions(ask, do("result", obj{"result": obj{"messages": []obj{}}})),
			"resources/read file:///a": actions(ask, do("result", obj{"result": obj{"contents": []obj{{"uri": "file:///a", "text": "x"}}}})),
		}})
		c := connect()
		c.caps = obj{"elicitation": obj{}}
		for method, params := range map[string]obj{"prompts/get": {"name": "b/p"}, "resources/read": {"uri": in("b", "file:///a")}} {
			state, keys := demanded(t, c.request(method, params))
			params["requestState"], params["inputResponses"] = state, obj{keys["elicitation/create"]: accepted}
			require.Equal(t, `"complete"`, string(at(c.ok(method, params), "resultType")))
		}
	})
}

func TestUndeclaredCapabilityIsNamed(t *testing.T) {
	overEveryTransport(t, func(t *testing.T, w *world, connect func() *client) {
		w.backend("b", obj{"tools": []obj{tool("ask"), tool("copes")}, "on": obj{
			"tools/call ask": actions(do("request", obj{"method": "sampling/createMessage", "params": obj{"messages": []obj{}, "maxTokens": 1}}),
				do("result", obj{"result": obj{"content": []obj{}, "isError": true}})),
			"tools/call copes": actions(do("request", obj{"method": "sampling/createMessage", "params": obj{"messages": []obj{}, "maxTokens": 1}}), do("answers")),
		}})
		c := connect()
		c.caps = obj{"elicitation": obj{}}
		e := c.fault("tools/call", obj{"name": "b_ask"})
		require.Equal(t, -32021, e.Code)
		require.JSONEq(t, `{"requiredCapabilities":{"sampling":{}}}`, string(e.Data))
		require.Contains(t, c.callText("b_copes", obj{}), "-32601", "a server that can do without is let to")
	})
}

func TestDemandOfAURLBecomesAnInputRequest(t *testing.T) {
	overEveryTransport(t, func(t *testing.T, w *world, connect func() *client) {
		w.backend("b", obj{"tools": []obj{tool("login")}, "on": obj{"tools/call login": actions(do("error", obj{"times": 2, "error": obj{
			"code": -32042, "message": "log in first",
			"data": obj{"elicitations": []obj{{"mode": "url", "elicitationId": "e1", "url": "https://x.example", "message": "m"}}},
		}}), do("text", obj{"text": "welcome"}))}})
		c := connect()
		e := c.fault("tools/call", obj{"name": "b_login"})
		require.Equal(t, -32021, e.Code)
		require.JSONEq(t, `{"requiredCapabilities":{"elicitation":{"url":{}}}}`, string(e.Data))
		c.caps = obj{"elicitation": obj{"url": obj{}}}
		m := c.request("tools/call", obj{"name": "b_login"})
		state, keys := demanded(t, m)
		key := keys["elicitation/create"]
		require.JSONEq(t, `{"mode":"url","url":"https://x.example","message":"m"}`, string(at(m.Result, "inputRequests", key, "params")))
		require.Contains(t, string(c.ok("tools/call", obj{"name": "b_login", "requestState": state, "inputResponses": obj{key: obj{"action": "accept"}}})), "welcome")
	})
}

func TestQuestionThatMayBeAnotherClientsIsNotAsked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	script := asking("elicitation/create", form)
	b := w.backend("b", script)
	s := w.serve()
	c, other := s.rawClient().stateless(), s.rawClient().stateless()
	for _, x := range []*client{c, other} {
		x.web.stateless, x.caps = true, obj{"elicitation": obj{}}
	}
	waits := other.begin("tools/call", obj{"name": "b_other"})
	b.waitEvent("wait", "other")
	end := c.request("tools/call", obj{"name": "b_ask"})
	require.Contains(t, str(end.Result, "content", 0, "text"), "cancel")
	b.do(do("release", obj{"name": "other"}))
	require.Nil(t, other.end(waits).Error)
}

func TestStatelessCallIsCancelledByItsTransport(t *testing.T) {
	overEveryTransport(t, func(t *testing.T, w *world, connect func() *client) {
		b := w.backend("b", asking("elicitation/create", form))
		c := connect()
		id := c.begin("tools/call", obj{"name": "b_hang"})
		b.waitEvent("wait", "hang")
		c.stops(id)
		b.waitReceived("notifications/cancelled", 1)
		c.ok("tools/list", obj{})
	})
}

func TestLogLinesReachOnlyTheStatelessRequestThatWantsThem(t *testing.T) {
	overEveryTransport(t, func(t *testing.T, w *world, connect func() *client) {
		line := func(level string) obj {
			return do("notify", obj{"method": "notifications/message", "params": obj{"level": level, "data": level}})
		}
		b := w.backend("b", obj{"tools": []obj{tool("log")}, "capabilities": obj{"tools": obj{}, "logging": obj{}}, "on": obj{
			"tools/call log": actions(line("debug"), line("info"), line("error"), do("text", obj{"text": "done"})),
		}})
		c := connect()
		call := func(level any) []message {
			c.forget()
			meta := obj{}
			if level != nil {
				meta[protocolPrefix+"logLevel"] = level
			}
			c.ok("tools/call", obj{"name": "b_log", "_meta": meta})
			return c.notesOf("notifications/message")
		}
		require.Empty(t, call(nil))
		require.Zero(t, b.count("logging/setLevel"))
		require.Len(t, call("info"), 2)
		require.Equal(t, "info", str(b.waitReceived("logging/setLevel", 1).Msg, "params", "level"))
		require.Len(t, call("error"), 1)
		require.Len(t, call("debug"), 3)
		require.Equal(t, "debug", str(b.waitReceived("logging/setLevel", 2).Msg, "params", "level"))
		require.Empty(t, call(nil))
		require.Equal(t, -32602, c.fault("tools/call", obj{"name": "b_log", "_meta": obj{protocolPrefix + "logLevel": "loud"}}).Code)
	})
}

func TestProgressOfStatelessRequests(t *testing.T) {
	overEveryTransport(t, func(t *testing.T, w *world, connect func() *client) {
		w.backend("b", obj{"tools": []obj{tool("work")}, "on": obj{"tools/call work": actions(
			do("progress", obj{"n": 3}), do("request", obj{"method": "elicitation/create", "params": form}),
			do("progress", obj{"n": 3}), do("text", obj{"text": "done"}),
		)}})
		c := connect()
		c.caps = obj{"elicitation": obj{}}
		tokens := func() (all []string) {
			for _, n := range c.notesOf("notifications/progress") {
				all = append(all, string(at(n.Params, "progressToken")))
			}
			return all
		}
		state, keys := demanded(t, c.request("tools/call", obj{"name": "b_work", "_meta": obj{"progressToken": json.Number("9007199254740993")}}))
		require.Equal(t, []string{"9007199254740993", "9007199254740993", "9007199254740993"}, tokens())
		c.forget()
		c.ok("tools/call", obj{"name": "b_work", "requestState": state, "inputResponses": obj{keys["elicitation/create"]: accepted}, "_meta": obj{"progressToken": "two"}})
		require.Equal(t, []string{`"two"`, `"two"`, `"two"`}, tokens(), "by the token of the request that waits")
	})
}

func TestCallsHeldForClientsThatLeftTakeNoRoom(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.remote("b", "/mcp", asking("elicitation/create", form)) // over HTTP the cause of each question is certain
	s := w.serve()
	call, caps := obj{"name": "b_ask"}, obj{"elicitation": obj{}}
	for range 3 {
		c := w.pipe("stdio").stateless()
		c.caps = caps
		var ids []string
		for range 256 { // as many as may be held for one client
			ids = append(ids, c.begin("tools/call", call))
		}
		for _, id := range ids {
			demanded(t, c.end(id))
		}
		c.close()
		c.prog.ends(patience)
	}
	eventually(t, "the end of their sessions", func() bool { return len(w.status().Sessions) == 0 })
	// One that has more than each of them had is the first to make room, if
	// there is none.
	c := s.rawClient().stateless()
	c.web.stateless, c.caps = true, caps
	state, keys := demanded(t, c.request("tools/call", call))
	for range 1024 - 3*256 + 10 {
		demanded(t, c.request("tools/call", call))
	}
	done := c.request("tools/call", obj{"name": "b_ask", "requestState": state, "inputResponses": obj{keys["elicitation/create"]: accepted}})
	require.Nil(t, done.Error, "%s", done.raw)
	require.Contains(t, string(done.Result), "Alice")
}

func TestHeldCallIsThereWhenSessionsComeAndGo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.gateway["limits"] = obj{"sessions": 2}
	w.backend("b", asking("elicitation/create", form))
	s := w.serve()
	c := s.rawClient().stateless()
	c.web.stateless, c.caps = true, obj{"elicitation": obj{}}
	state, keys := demanded(t, c.request("tools/call", obj{"name": "b_ask"}))
	for range 4 { // the one before may still be in use for a moment
		s.client(false).names("tools")
	}
	done := c.ok("tools/call", obj{"name": "b_ask", "requestState": state, "inputResponses": obj{keys["elicitation/create"]: accepted}})
	require.Contains(t, str(done, "content", 0, "text"), "Alice")
}
