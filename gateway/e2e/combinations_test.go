package e2e

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// combination is a client of one era over one transport, in front of a backend
// of one era over one transport.
type combination struct{ front, clientEra, back, backEra string }

func (x combination) modernClient() bool  { return x.clientEra == "modern" }
func (x combination) modernBackend() bool { return x.backEra == "modern" }

// eachCombination runs a test for all of them.
func eachCombination(t *testing.T, test func(t *testing.T, w *world, x combination)) {
	t.Helper()
	t.Parallel()
	for _, front := range []string{"stdio", "http"} {
		for _, clientEra := range []string{"legacy", "modern"} {
			for _, back := range []string{"stdio", "http"} {
				for _, backEra := range []string{"legacy", "modern"} {
					x := combination{front, clientEra, back, backEra}
					t.Run(clientEra+" "+front+" to "+backEra+" "+back, func(t *testing.T) {
						t.Parallel()
						test(t, newWorld(t), x)
					})
				}
			}
		}
	}
}

// backend adds the backend, by the name b.
func (x combination) backend(w *world, script obj, conf ...obj) *backend {
	w.t.Helper()
	if x.modernBackend() {
		return w.modernBackend(x.back, script, conf...)
	}
	if x.back == "http" {
		return w.remote("b", "/mcp", script, conf...)
	}
	return w.backend("b", script, conf...)
}

// client connects a client that answers what it is asked by reply, after the
// time that a human takes.
func (x combination) client(w *world, caps obj, takes time.Duration, reply func(method string, params json.RawMessage) any) *human {
	w.t.Helper()
	h := &human{x: x, takes: takes, reply: reply}
	switch {
	case x.front == "stdio":
		h.client = w.pipe("stdio", "--standalone")
	case x.modernClient():
		h.client = w.serve().rawClient()
		h.web.stateless = true
	default:
		h.client = w.serve().rawClient()
	}
	h.caps = caps
	if x.modernClient() {
		h.stateless()
		return h
	}
	h.client.reply = func(m message) (any, any) {
		time.Sleep(takes)
		return reply(m.Method, m.Params), nil
	}
	h.greeting = h.init()
	if x.front == "http" {
		h.listen()
	}
	return h
}

// human is a client with somebody who answers.
type human struct {
	*client
	x     combination
	takes time.Duration
	reply func(method string, params json.RawMessage) any
	// greeting is the result of initialize.
	greeting json.RawMessage
}

// call sends a request and answers what is asked, as the client's era has it,
// until there is an answer.
func (h *human) call(method string, params obj) message {
	h.t.Helper()
	for {
		m := h.request(method, params)
		if str(m.Result, "resultType") != "input_required" {
			return m
		}
		require.True(h.t, h.x.modernClient(), "%s", m.raw)
		var inputs map[string]struct {
			Method string
			Params json.RawMessage
		}
		require.NoError(h.t, json.Unmarshal(at(m.Result, "inputRequests"), &inputs))
		answers := obj{}
		time.Sleep(h.takes)
		for key, in := range inputs {
			answers[key] = h.reply(in.Method, in.Params)
		}
		again := obj{"inputResponses": answers}
		for k, v := range params {
			again[k] = v
		}
		if state := at(m.Result, "requestState"); state != nil {
			again["requestState"] = state
		}
		params = again
	}
}

func TestHumanMayTakeLongerThanEveryLimit(t *testing.T) {
	eachCombination(t, func(t *testing.T, w *world, x combination) {
		x.backend(w, obj{"tools": []obj{tool("ask")}, "on": obj{"tools/call ask": actions(
			do("request", obj{"method": "elicitation/create", "params": form}), do("answers"),
		)}}, obj{"timeout": "3s"})
		c := x.client(w, obj{"elicitation": obj{}}, 4*time.Second, func(string, json.RawMessage) any { return accepted })
		end := c.call("tools/call", obj{"name": "b_ask"})
		require.Nil(t, end.Error, "%s", end.raw)
		require.Contains(t, str(end.Result, "content", 0, "text"), "Alice", "%s", end.raw)
	})
}

func TestEveryQuestionReachesItsClientAndTheAnswerItsServer(t *testing.T) {
	eachCombination(t, func(t *testing.T, w *world, x combination) {
		ask := do("requests", obj{"actions": []obj{
			{"method": "elicitation/create", "params": obj{"message": "who?", "requestedSchema": obj{"type": "object"}, "_meta": obj{"x.example/q": 1}}},
			{"method": "sampling/createMessage", "params": obj{"messages": []obj{}, "maxTokens": 1, "temperature": json.RawMessage("0.50")}},
			{"method": "roots/list"},
		}})
		x.backend(w, obj{
			"tools": []obj{tool("t")}, "prompts": []obj{prompt("p")}, "resources": []obj{resource("x:1")},
			"on": obj{"tools/call t": actions(ask, do("answers")), "prompts/get p": actions(ask), "resources/read x:1": actions(ask)},
		})
		c := x.client(w, obj{"elicitation": obj{}, "sampling": obj{}, "roots": obj{}}, 0, func(method string, params json.RawMessage) any {
			switch method {
			case "elicitation/create":
				require.Equal(t, "1", string(at(params, "_meta", "x.example/q")))
				return obj{"action": "accept", "content": obj{"a": 1}, "_meta": obj{"x.example/a": 2}}
			case "sampling/createMessage":
				require.Equal(t, "0.50", string(at(params, "temperature")))
				return obj{"role": "assistant", "content": obj{"type": "text", "text": "hi"}, "model": "m"}
			}
			return obj{"roots": []obj{{"uri": "file:///r"}}}
		})
		end := c.call("tools/call", obj{"name": "b_t"})
		require.Nil(t, end.Error, "%s", end.raw)
		for _, part := range []string{`"a":1`, `"x.example/a":2`, "hi", "file:///r"} {
			require.Contains(t, str(end.Result, "content", 0, "text"), part)
		}
		require.Nil(t, c.call("prompts/get", obj{"name": "b/p"}).Error)
		require.Nil(t, c.call("resources/read", obj{"uri": in("b", "x:1")}).Error)
	})
}

func TestMetaAndTraceContextPassBothWays(t *testing.T) {
	trace := obj{
		"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "tracestate": "k=v", "baggage": "a=1",
		"x.example/k": obj{"n": json.RawMessage("9007199254740993")},
	}
	eachCombination(t, func(t *testing.T, w *world, x combination) {
		b := x.backend(w, obj{
			"tools": []obj{tool("t")}, "prompts": []obj{prompt("p")}, "resources": []obj{resource("x:1")},
			"calls": obj{"t": obj{"content": []obj{}, "_meta": trace}},
			"gets":  obj{"p": obj{"messages": []obj{}, "_meta": trace}},
			"reads": obj{"x:1": obj{"contents": []obj{}, "_meta": trace}},
			"on":    obj{"tools/call t": actions(do("notify", obj{"method": "notifications/message", "params": obj{"level": "error", "data": 1, "_meta": trace}}))},
		})
		c := x.client(w, obj{}, 0, nil)
		for method, params := range map[string]obj{
			"tools/call": {"name": "b_t"}, "prompts/get": {"name": "b/p"}, "resources/read": {"uri": in("b", "x:1")},
		} {
			params["_meta"] = trace
			if method == "tools/call" && x.modernClient() {
				params["_meta"] = obj{protocolPrefix + "logLevel": "error"}
				for k, v := range trace {
					params["_meta"].(obj)[k] = v
				}
			}
			result := c.ok(method, params)
			got := b.waitReceived(method, 1).Msg
			for k, v := range trace {
				require.JSONEq(t, string(marshal(v)), string(at(got, "params", "_meta", k)), "%s to the server", method)
				require.JSONEq(t, string(marshal(v)), string(at(result, "_meta", k)), "%s to the client", method)
			}
			if !x.modernBackend() {
				require.JSONEq(t, string(marshal(trace)), string(at(got, "params", "_meta")), "nothing of the protocol's own")
			}
			if !x.modernClient() {
				require.JSONEq(t, string(marshal(trace)), string(at(result, "_meta")), "nothing of the protocol's own")
			}
		}
		said := c.noted("notifications/message", nil)
		require.JSONEq(t, string(marshal(trace)), string(at(said.Params, "_meta")))
	})
}

func TestExtensionsThatDoNotPassAreNotDeclared(t *testing.T) {
	eachCombination(t, func(t *testing.T, w *world, x combination) {
		const extension = "x.example/ext"
		b := x.backend(w, obj{"tools": []obj{tool("t")}, "capabilities": obj{"tools": obj{}, "extensions": obj{extension: obj{}}}})
		c := x.client(w, obj{"extensions": obj{extension: obj{}}}, 0, nil)
		if x.modernClient() {
			require.NotContains(t, string(c.ok("server/discover", obj{})), extension)
		}
		require.NotContains(t, string(c.greeting), extension)
		c.ok("tools/call", obj{"name": "b_t"})
		if x.modernClient() && x.modernBackend() {
			return // what the client says of its request is between the two
		}
		for _, m := range b.received("") {
			require.NotContains(t, string(m.Msg), extension)
		}
	})
}

func TestURLThatMustBeOpenedPassesInEveryCombination(t *testing.T) {
	eachCombination(t, func(t *testing.T, w *world, x combination) {
		params := obj{"mode": "url", "url": "https://x.example/", "message": "m"}
		const complete = "notifications/elicitation/complete"
		if !x.modernBackend() {
			params["elicitationId"] = "e1"
		}
		b := x.backend(w, obj{"tools": []obj{tool("login")}, "on": obj{"tools/call login": actions(
			do("request", obj{"method": "elicitation/create", "params": params}), do("answers"),
		)}})
		var ids []string
		action := "accept"
		c := x.client(w, obj{"elicitation": obj{"url": obj{}}}, 0, func(_ string, params json.RawMessage) any {
			require.Equal(t, "https://x.example/", str(params, "url"))
			ids = append(ids, str(params, "elicitationId"))
			return obj{"action": action}
		})
		end := c.call("tools/call", obj{"name": "b_login"})
		require.Nil(t, end.Error, "%s", end.raw)
		require.Contains(t, str(end.Result, "content", 0, "text"), "accept")
		if !x.modernBackend() {
			b.do(do("notify", obj{"method": complete, "params": obj{"elicitationId": "e1"}}))
		}
		if x.modernClient() {
			require.Equal(t, []string{""}, ids, "the revision has no ids")
			c.ok("tools/call", obj{"name": "b_login", "_meta": obj{"k": 1}}) // what would come has come
			require.Empty(t, c.notesOf(complete))
			return
		}
		require.NotEmpty(t, ids[0])
		done := c.noted(complete, nil)
		require.Equal(t, ids[0], str(done.Params, "elicitationId"))
		if !x.modernBackend() {
			return
		}
		require.Less(t, done.seq, end.seq, "on the stream of the call, before its answer")

		// What was not opened is not completed.
		action = "decline"
		require.Nil(t, c.call("tools/call", obj{"name": "b_login"}).Error)
		require.Len(t, c.notesOf(complete), 1)
	})
}

func TestURLDemandedByAnErrorPassesToEveryClient(t *testing.T) {
	eachCombination(t, func(t *testing.T, w *world, x combination) {
		if x.modernBackend() {
			t.Skip("the revision has no such error")
		}
		b := x.backend(w, obj{"tools": []obj{tool("login")}, "on": obj{"tools/call login": actions(do("error", obj{"times": 1, "error": obj{
			"code": -32042, "message": "log in first",
			"data": obj{"elicitations": []obj{{"mode": "url", "elicitationId": "e1", "url": "https://x.example", "message": "m"}}},
		}}), do("text", obj{"text": "welcome"}))}})
		c := x.client(w, obj{"elicitation": obj{"url": obj{}}}, 0, func(_ string, params json.RawMessage) any {
			require.JSONEq(t, `{"mode":"url","url":"https://x.example","message":"m"}`, string(params))
			return obj{"action": "accept"}
		})
		end := c.call("tools/call", obj{"name": "b_login"})
		done := do("notify", obj{"method": "notifications/elicitation/complete", "params": obj{"elicitationId": "e1"}})
		if x.modernClient() {
			require.Contains(t, end.raw, "welcome")
			b.do(done)
			c.ok("tools/list", obj{})
			require.Empty(t, c.notesOf("notifications/elicitation/complete"))
			return
		}
		require.Equal(t, -32042, parseError(t, end).Code)
		b.do(done)
		require.Equal(t, "e1", str(c.noted("notifications/elicitation/complete", nil).Params, "elicitationId"))
	})
}
