//go:build e2e

package calls

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// TestQuestionsAskedSideBySideAreOneDemand of gateway/downstream shows that requests in
// quick succession are sent together.
func TestQuestionsAskedSideBySideReachTheClient(t *testing.T) {
	e2e.OverEveryTransport(t, func(t *testing.T, w *e2e.World, connect func() *e2e.Client) {
		w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("ask")}, "on": e2e.Obj{"tools/call ask": e2e.Actions(
			e2e.Do("requests", e2e.Obj{"actions": []e2e.Obj{
				{"method": "elicitation/create", "params": e2e.Form},
				{"method": "roots/list"},
				{"method": "sampling/createMessage", "params": e2e.Obj{"messages": []e2e.Obj{}, "maxTokens": 1}},
			}}), e2e.Do("answers"),
		)}})
		c := connect()
		c.Caps = e2e.Obj{"elicitation": e2e.Obj{}, "roots": e2e.Obj{}, "sampling": e2e.Obj{}}
		inputs := e2e.Obj{
			"elicitation/create":     e2e.Accepted,
			"roots/list":             e2e.Obj{"roots": []e2e.Obj{{"uri": "file:///r"}}},
			"sampling/createMessage": e2e.Obj{"role": "assistant", "content": e2e.Obj{"type": "text", "text": "hi"}, "model": "m"},
		}
		asked := 0
		m := c.Request("tools/call", e2e.Obj{"name": "b_ask"})
		for e2e.Str(m.Result, "resultType") == "input_required" {
			state, keys := e2e.InputRequests(t, m)
			answers := e2e.Obj{}
			for method, key := range keys {
				answers[key] = inputs[method]
				asked++
			}
			m = c.Request("tools/call", e2e.Obj{"name": "b_ask", "requestState": state, "inputResponses": answers})
		}
		require.Equal(t, 3, asked)
		require.Equal(t, "complete", e2e.Str(m.Result, "resultType"), "%s", m.Raw)
		for _, part := range []string{"Alice", "file:///r", "hi"} {
			require.Contains(t, e2e.Str(m.Result, "content", 0, "text"), part)
		}
	})
}

func TestUndeclaredCapabilityIsNamed(t *testing.T) {
	e2e.OverEveryTransport(t, func(t *testing.T, w *e2e.World, connect func() *e2e.Client) {
		w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("ask"), e2e.Tool("copes")}, "on": e2e.Obj{
			"tools/call ask": e2e.Actions(e2e.Do("request", e2e.Obj{"method": "sampling/createMessage", "params": e2e.Obj{"messages": []e2e.Obj{}, "maxTokens": 1}}),
				e2e.Do("result", e2e.Obj{"result": e2e.Obj{"content": []e2e.Obj{}, "isError": true}})),
			"tools/call copes": e2e.Actions(e2e.Do("request", e2e.Obj{"method": "sampling/createMessage", "params": e2e.Obj{"messages": []e2e.Obj{}, "maxTokens": 1}}), e2e.Do("answers")),
		}})
		c := connect()
		c.Caps = e2e.Obj{"elicitation": e2e.Obj{}}
		e := c.Fault("tools/call", e2e.Obj{"name": "b_ask"})
		require.Equal(t, -32021, e.Code)
		require.JSONEq(t, `{"requiredCapabilities":{"sampling":{}}}`, string(e.Data))
		require.Contains(t, c.CallText("b_copes", e2e.Obj{}), "-32601", "a server that needs no capability is not refused")
	})
}

func TestDemandOfAURLBecomesAnInputRequest(t *testing.T) {
	e2e.OverEveryTransport(t, func(t *testing.T, w *e2e.World, connect func() *e2e.Client) {
		w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("login")}, "on": e2e.Obj{"tools/call login": e2e.Actions(e2e.Do("error", e2e.Obj{"times": 2, "error": e2e.Obj{
			"code": -32042, "message": "log in first",
			"data": e2e.Obj{"elicitations": []e2e.Obj{{"mode": "url", "elicitationId": "e1", "url": "https://x.example", "message": "m"}}},
		}}), e2e.Do("text", e2e.Obj{"text": "welcome"}))}})
		c := connect()
		e := c.Fault("tools/call", e2e.Obj{"name": "b_login"})
		require.Equal(t, -32021, e.Code)
		require.JSONEq(t, `{"requiredCapabilities":{"elicitation":{"url":{}}}}`, string(e.Data))
		c.Caps = e2e.Obj{"elicitation": e2e.Obj{"url": e2e.Obj{}}}
		m := c.Request("tools/call", e2e.Obj{"name": "b_login"})
		state, keys := e2e.InputRequests(t, m)
		key := keys["elicitation/create"]
		require.JSONEq(t, `{"mode":"url","url":"https://x.example","message":"m"}`, string(e2e.At(m.Result, "inputRequests", key, "params")))
		require.Contains(t, string(c.Ok("tools/call", e2e.Obj{"name": "b_login", "requestState": state, "inputResponses": e2e.Obj{key: e2e.Obj{"action": "accept"}}})), "welcome")
	})
}

func TestProgressOfStatelessRequests(t *testing.T) {
	e2e.OverEveryTransport(t, func(t *testing.T, w *e2e.World, connect func() *e2e.Client) {
		w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("work")}, "on": e2e.Obj{"tools/call work": e2e.Actions(
			e2e.Do("progress", e2e.Obj{"n": 3}), e2e.Do("request", e2e.Obj{"method": "elicitation/create", "params": e2e.Form}),
			e2e.Do("progress", e2e.Obj{"n": 3}), e2e.Do("text", e2e.Obj{"text": "done"}),
		)}})
		c := connect()
		c.Caps = e2e.Obj{"elicitation": e2e.Obj{}}
		tokens := func() (all []string) {
			for _, n := range c.NotesOf("notifications/progress") {
				all = append(all, string(e2e.At(n.Params, "progressToken")))
			}
			return all
		}
		state, keys := e2e.InputRequests(t, c.Request("tools/call", e2e.Obj{"name": "b_work", "_meta": e2e.Obj{"progressToken": json.Number("9007199254740993")}}))
		require.Equal(t, []string{"9007199254740993", "9007199254740993", "9007199254740993"}, tokens())
		c.Forget()
		c.Ok("tools/call", e2e.Obj{"name": "b_work", "requestState": state, "inputResponses": e2e.Obj{keys["elicitation/create"]: e2e.Accepted}, "_meta": e2e.Obj{"progressToken": "two"}})
		require.Equal(t, []string{`"two"`, `"two"`, `"two"`}, tokens(), "with the token of the waiting request")
	})
}

func TestHeldCallIsThereWhenSessionsComeAndGo(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Gateway["limits"] = e2e.Obj{"sessions": 2}
	w.Backend("b", e2e.AskingServer("elicitation/create", e2e.Form))
	s := w.Served()
	c := s.Stateless()
	c.Caps = e2e.Obj{"elicitation": e2e.Obj{}}
	state, keys := e2e.InputRequests(t, c.Request("tools/call", e2e.Obj{"name": "b_ask"}))
	for range 4 { // each replaces an earlier one, which may still be in use for a moment
		e2e.Eventually(t, "a free session", func() bool {
			return s.Do("POST", "/mcp", nil, e2e.InitBody).Header.Get("Mcp-Session-Id") != ""
		})
	}
	done := c.Ok("tools/call", e2e.Obj{"name": "b_ask", "requestState": state, "inputResponses": e2e.Obj{keys["elicitation/create"]: e2e.Accepted}})
	require.Contains(t, e2e.Str(done, "content", 0, "text"), "Alice")
}
