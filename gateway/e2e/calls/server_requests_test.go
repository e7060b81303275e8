//go:build e2e

package calls

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

func TestQuestionsOverHTTPBelongToTheStreamOfTheirCall(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Remote("b", "/mcp", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("one"), e2e.Tool("two")}, "on": e2e.Obj{
		"tools/call one": e2e.Actions(e2e.Do("wait", e2e.Obj{"name": "go"}), e2e.Do("request", e2e.Obj{"method": "elicitation/create", "params": e2e.Obj{"message": "one?", "requestedSchema": e2e.Obj{}}}), e2e.Do("answers")),
		"tools/call two": e2e.Actions(e2e.Do("wait", e2e.Obj{"name": "go"}), e2e.Do("request", e2e.Obj{"method": "elicitation/create", "params": e2e.Obj{"message": "two?", "requestedSchema": e2e.Obj{}}}), e2e.Do("answers")),
	}})
	one, two := sharers(w, e2e.Obj{"elicitation": e2e.Obj{}})
	ids := []string{one.Begin("tools/call", e2e.Obj{"name": "b_one"}), two.Begin("tools/call", e2e.Obj{"name": "b_two"})}
	b.WaitEvents("wait", "go", 2)
	b.Do(e2e.Do("release", e2e.Obj{"name": "go"}))
	for i, c := range []*e2e.Client{one, two} {
		name := []string{"one", "two"}[i]
		m := c.End(ids[i])
		state, keys := e2e.InputRequests(t, m)
		require.Equal(t, name+"?", e2e.Str(m.Result, "inputRequests", keys["elicitation/create"], "params", "message"))
		require.Contains(t, string(c.Ok("tools/call", e2e.Obj{
			"name": "b_" + name, "requestState": state, "inputResponses": e2e.Obj{keys["elicitation/create"]: e2e.Obj{"action": "accept", "content": e2e.Obj{"for": name}}},
		})), name)
	}
}

func TestLogLinesOfUncertainCauseReachNoStatelessClient(t *testing.T) {
	for _, era := range []string{"legacy", "modern"} {
		t.Run(era, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			script := e2e.AskingServer("elicitation/create", e2e.Form)
			script["capabilities"] = e2e.Obj{"tools": e2e.Obj{}, "logging": e2e.Obj{}}
			if era == "modern" {
				script["era"] = "modern"
			}
			b := w.Backend("b", script)
			one, two := sharers(w, e2e.Obj{})
			level := e2e.Obj{e2e.ProtocolPrefix + "logLevel": "info"}
			ids := []string{one.Begin("tools/call", e2e.Obj{"name": "b_other", "_meta": level}), two.Begin("tools/call", e2e.Obj{"name": "b_other", "_meta": level})}
			b.WaitEvents("wait", "other", 2)
			b.Do(says("whose?"))
			b.Do(e2e.Do("release", e2e.Obj{"name": "other"}))
			for i, c := range []*e2e.Client{one, two} {
				require.Nil(t, c.End(ids[i]).Error)
				require.Empty(t, c.NotesOf("notifications/message"))
			}
		})
	}
}

func TestQuestionOfAStatelessClientOutlivesItsOtherCall(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	script := e2e.AskingServer("elicitation/create", e2e.Form)
	on := script["on"].(e2e.Obj)
	on["tools/call ask"] = append(e2e.Actions(e2e.Do("wait", e2e.Obj{"name": "go"})), on["tools/call ask"].([]e2e.Obj)...)
	b := w.Backend("b", script)
	c := w.Pipe("stdio", "--standalone").Stateless()
	c.Caps = e2e.Obj{"elicitation": e2e.Obj{}}
	ask := c.Begin("tools/call", e2e.Obj{"name": "b_ask"})
	b.WaitEvent("wait", "go")
	other := c.Begin("tools/call", e2e.Obj{"name": "b_other"})
	b.WaitEvent("wait", "other")
	b.Do(e2e.Do("release", e2e.Obj{"name": "go"}))
	_, keys := e2e.InputRequests(t, c.End(other)) // the newest of its calls returns the request
	require.Len(t, keys, 1)
	b.Do(e2e.Do("release", e2e.Obj{"name": "other"})) // sent no request, and returns
	state, keys := e2e.InputRequests(t, c.End(ask))
	require.Contains(t, string(c.Ok("tools/call", e2e.Obj{
		"name": "b_ask", "requestState": state, "inputResponses": e2e.Obj{keys["elicitation/create"]: e2e.Accepted},
	})), "Alice")
}

func TestQuestionDuringACompletionIsNotSentToAStatelessClient(t *testing.T) {
	e2e.OverEveryTransport(t, func(t *testing.T, w *e2e.World, connect func() *e2e.Client) {
		b := w.Backend("b", e2e.Obj{"prompts": []e2e.Obj{e2e.Prompt("p")}, "on": e2e.Obj{"completion/complete": e2e.Actions(e2e.Do("request", e2e.Obj{"method": "elicitation/create", "params": e2e.Form}))}})
		c := connect()
		c.Caps = e2e.Obj{"elicitation": e2e.Obj{}}
		c.Ok("completion/complete", e2e.Obj{"ref": e2e.Obj{"type": "ref/prompt", "name": "b/p"}, "argument": e2e.Obj{"name": "a", "value": "v"}})
		require.Equal(t, "-32602", string(e2e.At(b.WaitEvent("reply", "elicitation/create").Msg, "error", "code")))
		require.Empty(t, c.Asks)
	})
}

func TestChangedRootsReachLegacyBackendsOnce(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	shared := w.Backend("shared", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}}, e2e.Obj{"roots": "client"})
	modern := w.Backend("modern", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}, "era": "modern"})
	own := w.Backend("own", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}}, e2e.Obj{"isolation": "session"})
	const changed = "notifications/roots/list_changed"
	plain := w.Join()
	plain.CallText("own_t", e2e.Obj{})
	plain.CallText("shared_t", e2e.Obj{})
	plain.CallText("modern_t", e2e.Obj{})
	plain.Notify(changed, nil) // of roots that it did not declare
	plain.CallText("shared_t", e2e.Obj{})
	require.Zero(t, shared.Count(changed))

	c := w.Socket()
	c.Caps = e2e.Obj{"roots": e2e.Obj{"listChanged": true}}
	c.Init()
	c.CallText("own_t", e2e.Obj{})
	shared.WaitReceived(changed, 1) // there are more roots than before
	second := own.Received("tools/call")[1].Proc
	before := own.Count(changed)
	for range 20 {
		c.Notify(changed, nil)
	}
	require.Same(t, second, own.WaitReceived(changed, before+1).Proc)
	shared.WaitReceived(changed, 2)
	c.Close()
	shared.WaitReceived(changed, 3) // and fewer again
	require.Less(t, shared.Count(changed), 10, "a burst is one notification, or a few if it takes long")
	require.Zero(t, modern.Count(changed))
}

func TestErrorOfAClientReachesTheBackend(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("ask")}, "on": e2e.Obj{"tools/call ask": e2e.Actions(e2e.Do("request", e2e.Obj{"method": "sampling/createMessage", "params": e2e.Obj{"messages": []e2e.Obj{}, "maxTokens": 1}}), e2e.Do("answers"))}})
	c := w.Pipe("stdio", "--standalone")
	c.Caps = e2e.Obj{"sampling": e2e.Obj{}}
	c.Reply = func(e2e.Message) (any, any) { return nil, e2e.Obj{"code": -1, "message": "the user said no"} }
	c.Init()
	text := c.CallText("b_ask", e2e.Obj{})
	require.Contains(t, text, "the user said no")
	require.Contains(t, text, "-1")
}

func TestCompletedURLElicitationIsToldToTheClientThatWasAsked(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	ask := e2e.Do("request", e2e.Obj{"method": "elicitation/create", "params": e2e.Obj{"mode": "url", "url": "https://e.example/", "message": "m", "elicitationId": "el-1"}})
	b := w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("login")}, "on": e2e.Obj{"tools/call login": e2e.Actions(ask, e2e.Do("answers"))}})
	c, other := w.Socket(), w.Socket()
	for _, client := range []*e2e.Client{c, other} {
		client.Caps = e2e.Obj{"elicitation": e2e.Obj{"form": e2e.Obj{}, "url": e2e.Obj{}}}
		client.Reply = func(e2e.Message) (any, any) { return e2e.Obj{"action": "accept"}, nil }
		client.Init()
	}
	require.Equal(t, `[{"action":"accept"}]`, c.CallText("b_login", e2e.Obj{}))
	for _, id := range []string{"el-unknown", "el-1"} {
		b.Do(e2e.Do("notify", e2e.Obj{"method": "notifications/elicitation/complete", "params": e2e.Obj{"elicitationId": id}}))
	}
	c.WaitNote("notifications/elicitation/complete", func(p json.RawMessage) bool { return e2e.Str(p, "elicitationId") == "el-1" })
	require.Len(t, c.NotesOf("notifications/elicitation/complete"), 1)
	other.Ok("ping", nil)
	require.Empty(t, other.NotesOf("notifications/elicitation/complete"))
}

func TestLogLineOfAModernBackendReachesTheOneRequestThatAskedForIt(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	script := e2e.AskingServer("elicitation/create", e2e.Form)
	script["era"], script["capabilities"] = "modern", e2e.Obj{"tools": e2e.Obj{}, "logging": e2e.Obj{}}
	b := w.Backend("b", script)
	silent, loud := w.Socket().Stateless(), w.Socket().Stateless()
	bystander := w.Join()
	bystander.Ok("logging/setLevel", e2e.Obj{"level": "debug"})
	first := silent.Begin("tools/call", e2e.Obj{"name": "b_other"})
	second := loud.Begin("tools/call", e2e.Obj{"name": "b_other", "_meta": e2e.Obj{e2e.ProtocolPrefix + "logLevel": "info"}})
	b.WaitEvents("wait", "other", 2)
	b.Do(says("for one"))
	said := loud.WaitNote("notifications/message", nil)
	require.Equal(t, "for one", e2e.Str(said.Params, "data"))

	// A second one that could have caused it, of another client.
	third := bystander.Begin("tools/call", e2e.Obj{"name": "b_other"})
	b.WaitEvents("wait", "other", 3)
	b.Do(says("whose?"))
	b.Do(e2e.Do("release", e2e.Obj{"name": "other"}))
	for _, end := range []e2e.Message{silent.End(first), loud.End(second), bystander.End(third)} {
		require.Nil(t, end.Error)
	}
	require.Empty(t, silent.NotesOf("notifications/message"))
	require.Len(t, loud.NotesOf("notifications/message"), 1)
	require.Empty(t, bystander.NotesOf("notifications/message"), "only of its own call")
}

func TestQuestionThatMayBeAnotherClientsIsNotAsked(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	script := e2e.AskingServer("elicitation/create", e2e.Form)
	b := w.Backend("b", script)
	c, other := sharers(w, e2e.Obj{"elicitation": e2e.Obj{}})
	waits := other.Begin("tools/call", e2e.Obj{"name": "b_other"})
	b.WaitEvent("wait", "other")
	end := c.Request("tools/call", e2e.Obj{"name": "b_ask"})
	require.Contains(t, e2e.Str(end.Result, "content", 0, "text"), "cancel")
	b.Do(e2e.Do("release", e2e.Obj{"name": "other"}))
	require.Nil(t, other.End(waits).Error)
}

// says returns a log message.
func says(data string) e2e.Obj {
	return e2e.Do("write", e2e.Obj{"text": string(e2e.Marshal(e2e.Obj{
		"jsonrpc": "2.0", "method": "notifications/message", "params": e2e.Obj{"level": "warning", "data": data},
	}))})
}

func TestRootsThatAServerAsksForAtItsStartAreNoCalls(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Gateway["roots"] = []any{e2e.Obj{"uri": "file:///work"}}
	script := rootAsker(e2e.Obj{
		"tools/call hold": e2e.Actions(e2e.Do("wait", e2e.Obj{"name": "hold"})),
		"tools/list":      e2e.Actions(e2e.Do("wait", e2e.Obj{"name": "list", "after": 1}), e2e.Do("request", e2e.Obj{"method": "roots/list", "after": 1})),
	})
	b := w.Backend("b", script)
	c := rooted(w, e2e.Obj{"uri": "file:///mine"})
	w.Succeeds("restart", "b")
	b.WaitEvent("wait", "list")
	held := c.Begin("tools/call", e2e.Obj{"name": "b_hold"})
	b.WaitEvent("wait", "hold")
	b.Do(e2e.Do("release", e2e.Obj{"name": "list"}))
	require.JSONEq(t, `{"roots":[{"uri":"file:///work"}]}`, string(b.WaitEvent("reply", "roots/list").Msg))
	b.Do(e2e.Do("release", e2e.Obj{"name": "hold"}))
	c.End(held)
}

// sharers returns two stateless clients over HTTP that only their token identifies.
func sharers(w *e2e.World, caps e2e.Obj) (one, two *e2e.Client) {
	w.T.Helper()
	one, two = w.Served().Stateless(), w.Served().Stateless()
	one.Caps, two.Caps = caps, caps
	return one, two
}

func TestQuestionOfACancelledCallReachesNoOtherClient(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("b", e2e.AskingServer("elicitation/create", e2e.Form))
	gone, other := w.Socket(), w.Socket()
	for _, c := range []*e2e.Client{gone, other} {
		c.Caps = e2e.Obj{"elicitation": e2e.Obj{}}
		c.Init()
	}
	cancelled := gone.Begin("tools/call", e2e.Obj{"name": "b_hang"})
	b.WaitEvent("wait", "hang")
	waits := other.Begin("tools/call", e2e.Obj{"name": "b_other"})
	b.WaitEvent("wait", "other")
	gone.Notify("notifications/cancelled", e2e.Obj{"requestId": json.RawMessage(cancelled)})
	b.WaitReceived("notifications/cancelled", 1)
	b.Do(e2e.Do("request", e2e.Obj{"method": "elicitation/create", "params": e2e.Form})) // the server reacts to it late
	require.Equal(t, "cancel", e2e.Str(b.WaitEvent("reply", "elicitation/create").Msg, "action"))
	b.Do(e2e.Do("release", e2e.Obj{"name": "other"}))
	require.Nil(t, other.End(waits).Error)
	require.Empty(t, other.Asks)

	// The client's own next call belongs to no other client.
	gone.Reply = func(e2e.Message) (any, any) { return e2e.Accepted, nil }
	require.Contains(t, gone.CallText("b_ask", e2e.Obj{}), "Alice")
}

func TestAFormIsNotAskedOfAClientThatOpensURLsOnly(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("ask")}, "on": e2e.Obj{
		"tools/call ask": e2e.Actions(e2e.Do("request", e2e.Obj{"method": "elicitation/create", "params": e2e.Form}), e2e.Do("answers")),
	}})
	c := w.Socket()
	c.Caps = e2e.Obj{"elicitation": e2e.Obj{"url": e2e.Obj{}}}
	c.Reply = func(e2e.Message) (any, any) { return nil, e2e.Obj{"code": -32602, "message": "no forms here"} }
	c.Init()
	require.Contains(t, c.CallText("b_ask", e2e.Obj{}), "did not declare elicitation in form mode")
	require.Empty(t, c.Asks)
}
