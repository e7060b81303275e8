//go:build e2e

package calls

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

func TestQuestionOfAServerAnswersAStatelessCall(t *testing.T) {
	e2e.OverEveryTransport(t, func(t *testing.T, w *e2e.World, connect func() *e2e.Client) {
		b := w.Backend("b", e2e.AskingServer("elicitation/create", e2e.Obj{
			"message": "who?", "requestedSchema": e2e.Obj{"type": "object"}, "elicitationId": "e", "_meta": e2e.Obj{"progressToken": 1, "k": 2},
		}), e2e.Obj{"timeout": "3s"})
		c := connect()
		c.Caps = e2e.Obj{"elicitation": e2e.Obj{}}
		call := e2e.Obj{"name": "b_ask", "arguments": e2e.Obj{"a": 1, "b": []int{2}}}
		first := c.Request("tools/call", call)
		state, keys := e2e.InputRequests(t, first)
		require.Len(t, keys, 1)
		question := e2e.At(first.Result, "inputRequests", keys["elicitation/create"], "params")
		require.JSONEq(t, `{"message":"who?","requestedSchema":{"type":"object"},"_meta":{"k":2}}`, string(question))
		require.Empty(t, c.Asks, "a stateless client gets no request")

		// Waiting for a user doesn't count: this call times out meanwhile.
		require.Equal(t, "REQUEST_TIMEOUT", c.Fails(e2e.Obj{"name": "b_hang"}).Kind())

		// An invalid answer is requested again; unknown keys are ignored.
		retry := func(state string, responses any, args ...e2e.Obj) e2e.Message {
			again := e2e.Obj{"name": "b_ask", "arguments": e2e.Obj{"b": []int{2}, "a": 1}, "requestState": state, "inputResponses": responses}
			if len(args) > 0 {
				again["arguments"] = args[0]
			}
			return c.Request("tools/call", again)
		}
		state, _ = e2e.InputRequests(t, retry(state, e2e.Obj{keys["elicitation/create"]: 12, "other": e2e.Accepted}))
		used := state
		end := retry(state, e2e.Obj{keys["elicitation/create"]: e2e.Accepted, "other": e2e.Accepted})
		require.Nil(t, end.Error, "%s", end.Raw)
		require.Equal(t, `"complete"`, string(e2e.At(end.Result, "resultType")))
		require.Contains(t, e2e.Str(end.Result, "content", 0, "text"), "Alice")
		require.Equal(t, 1, b.Count("tools/call")-1, "the held call continued")

		// A state is valid once, unchanged, and only for its own request.
		for _, bad := range []e2e.Message{
			retry(used, e2e.Obj{keys["elicitation/create"]: e2e.Accepted}),
			retry(used+"-TAMPERED", e2e.Obj{keys["elicitation/create"]: e2e.Accepted}),
			retry(strings.ToUpper(used), nil), retry("", nil),
		} {
			require.Equal(t, -32602, e2e.ParseError(t, bad).Code, "%s", bad.Raw)
		}
		state, keys = e2e.InputRequests(t, c.Request("tools/call", call))
		other := retry(state, e2e.Obj{keys["elicitation/create"]: e2e.Accepted}, e2e.Obj{"a": 2})
		require.Equal(t, -32602, e2e.ParseError(t, other).Code, "other arguments")
		require.Nil(t, retry(state, e2e.Obj{keys["elicitation/create"]: e2e.Accepted}).Error, "it was not spent")
	})
}

func TestStateOfOneClientIsNoUseToAnother(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("b", e2e.AskingServer("elicitation/create", e2e.Form))
	mine, thief := w.Socket().Stateless(), w.Socket().Stateless()
	mine.Caps, thief.Caps = e2e.Obj{"elicitation": e2e.Obj{}}, e2e.Obj{"elicitation": e2e.Obj{}}
	state, keys := e2e.InputRequests(t, mine.Request("tools/call", e2e.Obj{"name": "b_ask"}))
	again := e2e.Obj{"name": "b_ask", "requestState": state, "inputResponses": e2e.Obj{keys["elicitation/create"]: e2e.Accepted}}
	require.Equal(t, -32602, thief.Fault("tools/call", again).Code)
	require.Contains(t, string(mine.Ok("tools/call", again)), "Alice")
}

func TestStatelessCallIsCancelledByItsTransport(t *testing.T) {
	e2e.OverEveryTransport(t, func(t *testing.T, w *e2e.World, connect func() *e2e.Client) {
		b := w.Backend("b", e2e.AskingServer("elicitation/create", e2e.Form))
		c := connect()
		id := c.Begin("tools/call", e2e.Obj{"name": "b_hang"})
		b.WaitEvent("wait", "hang")
		c.StopListening(id)
		b.WaitReceived("notifications/cancelled", 1)
		c.Ok("tools/list", e2e.Obj{})
	})
}

func TestLogLinesReachOnlyTheStatelessRequestThatWantsThem(t *testing.T) {
	e2e.OverEveryTransport(t, func(t *testing.T, w *e2e.World, connect func() *e2e.Client) {
		line := func(level string) e2e.Obj {
			return e2e.Do("notify", e2e.Obj{"method": "notifications/message", "params": e2e.Obj{"level": level, "data": level}})
		}
		b := w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("log")}, "capabilities": e2e.Obj{"tools": e2e.Obj{}, "logging": e2e.Obj{}}, "on": e2e.Obj{
			"tools/call log": e2e.Actions(line("debug"), line("info"), line("error"), e2e.Do("text", e2e.Obj{"text": "done"})),
		}})
		c := connect()
		call := func(level any) []e2e.Message {
			c.Forget()
			meta := e2e.Obj{}
			if level != nil {
				meta[e2e.ProtocolPrefix+"logLevel"] = level
			}
			c.Ok("tools/call", e2e.Obj{"name": "b_log", "_meta": meta})
			return c.NotesOf("notifications/message")
		}
		require.Empty(t, call(nil))
		require.Zero(t, b.Count("logging/setLevel"))
		require.Len(t, call("info"), 2)
		require.Equal(t, "info", e2e.Str(b.WaitReceived("logging/setLevel", 1).Msg, "params", "level"))
		require.Len(t, call("error"), 1)
		require.Len(t, call("debug"), 3)
		require.Equal(t, "debug", e2e.Str(b.WaitReceived("logging/setLevel", 2).Msg, "params", "level"))
		require.Empty(t, call(nil))
		require.Equal(t, -32602, c.Fault("tools/call", e2e.Obj{"name": "b_log", "_meta": e2e.Obj{e2e.ProtocolPrefix + "logLevel": "loud"}}).Code)
	})
}
