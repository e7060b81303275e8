//go:build e2e

package calls

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

func TestWaitForAHumanDoesNotCountAgainstTheTimeout(t *testing.T) {
	t.Parallel()
	e2e.WithGrowingLimit(t, func(limit time.Duration) string {
		w := e2e.NewWorld(t)
		b := w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("ask"), e2e.Tool("hang")}, "on": e2e.Obj{
			"tools/call ask":  e2e.Actions(e2e.Do("request", e2e.Obj{"method": "elicitation/create", "params": e2e.Obj{"message": "m", "requestedSchema": e2e.Obj{"type": "object"}}}), e2e.Do("answers")),
			"tools/call hang": e2e.Actions(e2e.Do("hang")),
		}}, e2e.Obj{"timeout": limit.String()})
		c := w.Pipe("stdio", "--standalone")
		c.Caps = e2e.Obj{"elicitation": e2e.Obj{}}
		c.Init()
		id := c.Begin("tools/call", e2e.Obj{"name": "b_ask"})
		ask, ok := c.AskedBy(id)
		if !ok {
			return string(c.End(id).Raw)
		}
		// Another call runs into its timeout meanwhile, twice in a row.
		for range 2 {
			require.Equal(t, "REQUEST_TIMEOUT", c.Fails(e2e.Obj{"name": "b_hang"}).Kind())
		}
		c.Answer(ask, func(e2e.Message) (any, any) { return e2e.Obj{"action": "accept", "content": e2e.Obj{"a": 1}}, nil })
		m := c.End(id)
		if m.Failed() {
			return string(m.Raw)
		}
		require.Equal(t, `[{"action":"accept","content":{"a":1}}]`, e2e.Str(m.Result, "content", 0, "text"))
		require.Equal(t, 3, b.Count("tools/call"))
		return ""
	})
}

func TestClientThatReadsNothingDelaysNobody(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Gateway["limits"] = e2e.Obj{"unsent": "1MiB"}
	const size, calls = 100_000, 100
	w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("big"), e2e.Tool("t")}, "on": e2e.Obj{"tools/call big": e2e.Actions(e2e.Do("big", e2e.Obj{"bytes": size}))}})
	slow, quick := w.Join(), w.Join()
	slow.Ok("ping", nil)
	release := slow.Pause()
	var ids []string
	for range calls {
		ids = append(ids, slow.Begin("tools/call", e2e.Obj{"name": "b_big"}))
	}
	for range 50 {
		require.Equal(t, "b:t:{}", quick.CallText("b_t", e2e.Obj{}))
	}
	release()
	for _, id := range ids {
		require.Len(t, e2e.Str(slow.End(id).Result, "content", 0, "text"), size)
	}
}

func TestProgressThatComesTooLateReachesNobody(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("slow"), e2e.Tool("other")}, "on": e2e.Obj{
		"tools/call slow":  e2e.Actions(e2e.Do("wait", e2e.Obj{"name": "never"})),
		"tools/call other": e2e.Actions(e2e.Do("wait", e2e.Obj{"name": "go"})),
	}})
	c := w.Standalone()
	id := c.Begin("tools/call", e2e.Obj{"name": "b_slow", "_meta": e2e.Obj{"progressToken": "mine"}})
	b.WaitEvent("wait", "never")
	token := e2e.At(b.Received("tools/call")[0].Msg, "params", "_meta", "progressToken")
	c.Notify("notifications/cancelled", e2e.Obj{"requestId": json.RawMessage(id)})
	b.WaitEvent("gone", "slow")
	flight := c.Begin("tools/call", e2e.Obj{"name": "b_other", "arguments": e2e.Obj{}})
	b.WaitEvent("wait", "go") // now the server's message has only one possible cause
	b.Do(e2e.Do("notify", e2e.Obj{"method": "notifications/progress", "params": e2e.Obj{"progressToken": token, "progress": 1}}))
	b.Do(e2e.Do("release", e2e.Obj{"name": "go"}))
	require.Nil(t, c.End(flight).Error)
	require.Empty(t, c.NotesOf("notifications/progress"), "its token is unknown to the client")
}

func TestCancellationOfWhatIsNotInFlightIsIgnored(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}})
	c := w.Standalone()
	c.Ok("tools/call", e2e.Obj{"name": "b_t"})
	for _, id := range []any{1, 99, "x", nil, e2e.Obj{}} {
		c.Notify("notifications/cancelled", e2e.Obj{"requestId": id})
	}
	c.Notify("notifications/cancelled", nil)
	c.Ok("tools/call", e2e.Obj{"name": "b_t"})
	require.Zero(t, b.Count("notifications/cancelled"))
}

func TestProgressOfTwoClientsWithTheSameTokenIsNotMixed(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("x"), e2e.Tool("y")}, "on": e2e.Obj{
		"tools/call x": e2e.Actions(e2e.Do("wait", e2e.Obj{"name": "x"}), e2e.Do("progress", e2e.Obj{"n": 2})),
		"tools/call y": e2e.Actions(e2e.Do("wait", e2e.Obj{"name": "y"}), e2e.Do("progress", e2e.Obj{"n": 3})),
	}})
	c1, c2 := w.Join(), w.Join()
	meta := e2e.Obj{"progressToken": 1}
	id1 := c1.Begin("tools/call", e2e.Obj{"name": "b_x", "_meta": meta})
	id2 := c2.Begin("tools/call", e2e.Obj{"name": "b_y", "_meta": meta})
	b.WaitEvent("wait", "x")
	b.WaitEvent("wait", "y")
	b.Do(e2e.Do("release", e2e.Obj{"name": "y"}))
	b.Do(e2e.Do("release", e2e.Obj{"name": "x"}))
	require.Nil(t, c1.End(id1).Error)
	require.Nil(t, c2.End(id2).Error)
	require.Len(t, c1.NotesOf("notifications/progress"), 2)
	require.Len(t, c2.NotesOf("notifications/progress"), 3)
}

func TestReadsAndPromptsCanDemandInput(t *testing.T) {
	e2e.OverEveryTransport(t, func(t *testing.T, w *e2e.World, connect func() *e2e.Client) {
		ask := e2e.Do("request", e2e.Obj{"method": "elicitation/create", "params": e2e.Form})
		w.Backend("b", e2e.Obj{"prompts": []e2e.Obj{{"name": "p"}}, "resources": []e2e.Obj{e2e.Resource("file:///a")}, "on": e2e.Obj{
			"prompts/get p":            e2e.Actions(ask, e2e.Do("result", e2e.Obj{"result": e2e.Obj{"messages": []e2e.Obj{}}})),
			"resources/read file:///a": e2e.Actions(ask, e2e.Do("result", e2e.Obj{"result": e2e.Obj{"contents": []e2e.Obj{{"uri": "file:///a", "text": "x"}}}})),
		}})
		c := connect()
		c.Caps = e2e.Obj{"elicitation": e2e.Obj{}}
		for method, params := range map[string]e2e.Obj{"prompts/get": {"name": "b/p"}, "resources/read": {"uri": e2e.In("b", "file:///a")}} {
			state, keys := e2e.InputRequests(t, c.Request(method, params))
			params["requestState"], params["inputResponses"] = state, e2e.Obj{keys["elicitation/create"]: e2e.Accepted}
			require.Equal(t, `"complete"`, string(e2e.At(c.Ok(method, params), "resultType")))
		}
	})
}

func TestLaterQuestionOfAHeldCallReachesNoOtherClientOfItsToken(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("b", e2e.AskingServer("elicitation/create", e2e.Form))
	held, busy := sharers(w, e2e.Obj{"elicitation": e2e.Obj{}, "sampling": e2e.Obj{}})
	state, keys := e2e.InputRequests(t, held.Request("tools/call", e2e.Obj{"name": "b_ask"}))
	waits := busy.Begin("tools/call", e2e.Obj{"name": "b_other"})
	b.WaitEvent("wait", "other")

	// Either the held call or the other one may have sent the request.
	b.Do(e2e.Do("request", e2e.Obj{"method": "elicitation/create", "params": e2e.Form}))
	require.Equal(t, "cancel", e2e.Str(b.WaitEvent("reply", "elicitation/create").Msg, "action"))
	b.Do(e2e.Do("request", e2e.Obj{"method": "sampling/createMessage", "params": e2e.Obj{"messages": []e2e.Obj{}, "maxTokens": 1}}))
	require.Equal(t, "-32601", string(e2e.At(b.WaitEvent("reply", "sampling/createMessage").Msg, "error", "code")))

	b.Do(e2e.Do("release", e2e.Obj{"name": "other"}))
	end := busy.End(waits)
	require.Equal(t, "complete", e2e.Str(end.Result, "resultType"), "%s", end.Raw)
	require.Contains(t, string(held.Ok("tools/call", e2e.Obj{
		"name": "b_ask", "requestState": state, "inputResponses": e2e.Obj{keys["elicitation/create"]: e2e.Accepted},
	})), "Alice")
}

// Most clients send no progress token. Their servers get one nevertheless, because
// progress extends the timeout.
func TestCallsHaveATokenForProgressWhoeverAsked(t *testing.T) {
	e2e.EachCombination(t, func(t *testing.T, w *e2e.World, x e2e.Combination) {
		steps := e2e.Actions(e2e.Do("progress", e2e.Obj{"n": 6}))
		b := x.Backend(w, e2e.Obj{
			"tools": []e2e.Obj{e2e.Tool("t"), e2e.Tool("silent")}, "prompts": []e2e.Obj{e2e.Prompt("p")}, "resources": []e2e.Obj{e2e.Resource("x:1")},
			"on": e2e.Obj{"tools/call t": steps, "prompts/get": steps, "resources/read": steps},
		})
		c := x.Client(w, e2e.Obj{}, 0, nil).Client
		all := []string{
			c.Begin("prompts/get", e2e.Obj{"name": "b/p"}),
			c.Begin("resources/read", e2e.Obj{"uri": "x:1", "_meta": e2e.Obj{}}),
			c.Begin("tools/call", e2e.Obj{"name": "b_silent", "_meta": e2e.Obj{"k": 1}}),
			c.Begin("tools/call", e2e.Obj{"name": "b_t"}),
		}
		for _, id := range all {
			m := c.End(id)
			require.False(t, m.Failed(), m.Raw)
		}
		require.Empty(t, c.NotesOf("notifications/progress"), "it is relayed to the client of the request")
		tokens := map[string]bool{}
		for _, method := range []string{"prompts/get", "resources/read", "tools/call"} {
			for _, told := range b.Received(method) {
				token := e2e.At(told.Msg, "params", "_meta", "progressToken")
				require.NotNil(t, token, "%s", told.Msg)
				tokens[string(token)] = true
				if e2e.Str(told.Msg, "params", "name") == "silent" {
					require.Equal(t, "1", string(e2e.At(told.Msg, "params", "_meta", "k")))
				}
			}
		}
		require.Len(t, tokens, len(all), "each has its own")

		id := c.Begin("tools/call", e2e.Obj{"name": "b_t", "_meta": e2e.Obj{"progressToken": "mine"}})
		m := c.End(id)
		require.False(t, m.Failed(), m.Raw)
		for _, n := range c.NotesOf("notifications/progress") {
			require.Equal(t, `"mine"`, string(e2e.At(n.Params, "progressToken")))
		}
		require.Len(t, c.NotesOf("notifications/progress"), 6)
	})
}

// Some servers' SDKs need 10 % longer for a call with a token.
func TestWhatIsAlwaysQuickGetsATokenOnlyIfItsClientHasAsked(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	names := strings.Split("abcdefghijklmnopqrstuvwxyz", "") // until one that no busy machine delays
	tools := make([]e2e.Obj, len(names))
	for i, name := range names {
		tools[i] = e2e.Tool(name)
	}
	b := w.Backend("b", e2e.Obj{"tools": tools}, e2e.Obj{})
	c := w.Standalone()
	for i, name := range names {
		before := len(b.Received("tools/call"))
		for range 20 {
			c.CallText("b_"+name, e2e.Obj{})
		}
		c.Request("tools/call", e2e.Obj{"name": "b_" + name, "_meta": e2e.Obj{"progressToken": "mine"}})
		calls := b.Received("tools/call")[before:]
		require.Len(t, calls, 21)
		require.NotNil(t, e2e.At(calls[20].Msg, "params", "_meta", "progressToken"))
		if i == 0 { // another could be confused with an earlier one
			require.NotNil(t, e2e.At(calls[0].Msg, "params", "_meta", "progressToken"))
			require.NotNil(t, e2e.At(calls[15].Msg, "params", "_meta", "progressToken"))
		}
		if e2e.At(calls[19].Msg, "params", "_meta") == nil {
			return
		}
	}
	t.Fatal("each call has a token")
}

func TestCallsOfToolsMayTakeAnyTime(t *testing.T) {
	t.Parallel()
	e2e.WithGrowingLimit(t, func(limit time.Duration) string {
		w := e2e.NewWorld(t)
		w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}, "on": e2e.Obj{"tools/call t": e2e.Actions(e2e.Do("delay", e2e.Obj{"ms": 3 * limit.Milliseconds() / 2}))}},
			e2e.Obj{"timeout": limit.String(), "call_timeout": 0})
		m := w.Standalone().Request("tools/call", e2e.Obj{"name": "b_t", "arguments": e2e.Obj{}})
		if m.Failed() {
			return string(m.Raw)
		}
		require.Equal(t, "b:t:{}", e2e.Str(m.Result, "content", 0, "text"))
		return ""
	})
}

// After one crash a model may stop using a tool.
func TestACallThatComesWhileAServerRestartsWaits(t *testing.T) {
	t.Parallel()
	for _, isolation := range e2e.Variants(1, "shared", "session") {
		t.Run(isolation, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			b := w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t"), e2e.Tool("dies")}, "on": e2e.Obj{
				"tools/call dies": e2e.Actions(e2e.Do("crash")),
				"start":           e2e.Actions(e2e.Do("delay", e2e.Obj{"ms": 300})),
			}}, e2e.Obj{"isolation": isolation})
			c := w.Standalone()
			require.Equal(t, "b:t:{}", c.CallText("b_t", e2e.Obj{}))
			require.Equal(t, "CONNECTION_ERROR", c.Fails(e2e.Obj{"name": "b_dies"}).Kind())
			require.Equal(t, "b:t:{}", c.CallText("b_t", e2e.Obj{}))
			require.Equal(t, 2, b.Starts())
		})
	}
}
