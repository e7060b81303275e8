//go:build e2e

package calls

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

func TestProgressKeepsTokenAndTypeAndComesBeforeTheResponse(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("steps")}, "on": e2e.Obj{"tools/call steps": e2e.Actions(e2e.Do("progress", e2e.Obj{"n": 3}))}})
	c := w.Standalone()
	for _, token := range []string{`"abc"`, `7`, `"7"`, `9007199254740993`, `""`} {
		c.Update(func() { c.Notes = nil })
		m := c.Request("tools/call", e2e.Obj{"name": "b_steps", "arguments": e2e.Obj{}, "_meta": e2e.Obj{"progressToken": json.RawMessage(token), "keep": 1.0}})
		notes := c.NotesOf("notifications/progress")
		require.Len(t, notes, 3, token)
		for i, n := range notes {
			require.Equal(t, token, string(e2e.At(n.Params, "progressToken")))
			require.Equal(t, fmt.Sprint(i+1), string(e2e.At(n.Params, "progress")))
			require.Less(t, n.Seq, m.Seq)
		}
	}
	tokens := map[string]bool{}
	for _, told := range b.Received("tools/call") {
		tokens[string(e2e.At(told.Msg, "params", "_meta", "progressToken"))] = true
		require.Equal(t, "1", strings.TrimSuffix(string(e2e.At(told.Msg, "params", "_meta", "keep")), ".0"))
	}
	require.Len(t, tokens, 5, "tokens of requests to one server differ")
}

func TestB16_CancellationReachesTheBackendWithItsOwnId(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("slow"), e2e.Tool("quick")}, "on": e2e.Obj{"tools/call slow": e2e.Actions(e2e.Do("wait", e2e.Obj{"name": "never"}))}})
	c := w.Standalone()
	c.Ok("tools/call", e2e.Obj{"name": "b_quick"})
	id := c.Begin("tools/call", e2e.Obj{"name": "b_slow"})
	b.WaitEvent("wait", "never")
	c.Notify("notifications/cancelled", e2e.Obj{"requestId": json.RawMessage(id), "reason": "enough"})
	cancel := b.WaitReceived("notifications/cancelled", 1)
	asked := b.Received("tools/call")[1]
	require.Equal(t, string(e2e.At(asked.Msg, "id")), string(e2e.At(cancel.Msg, "params", "requestId")))
	b.WaitEvent("gone", "slow")
	c.Ok("tools/call", e2e.Obj{"name": "b_quick"})
	c.Mu.Lock()
	defer c.Mu.Unlock()
	require.Empty(t, c.Replies[id], "a cancelled request is not answered")
}

func TestLogLevelIsTheLowestOfAllSessions(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}})
	c1, c2 := w.Join(), w.Join()
	c1.Ok("logging/setLevel", e2e.Obj{"level": "error"})
	c2.Ok("logging/setLevel", e2e.Obj{"level": "debug"})
	b.Wait("the lowest level", func() bool {
		all := b.Pick("logging/setLevel")
		return len(all) > 0 && e2e.Str(all[len(all)-1].Msg, "params", "level") == "debug"
	})
	log := func(level string) {
		b.Do(e2e.Do("notify", e2e.Obj{"method": "notifications/message", "params": e2e.Obj{"level": level, "logger": "l", "data": e2e.Obj{"is": level}}}))
	}
	log("info")
	log("critical")
	data := func(c *e2e.Client) []string {
		c.WaitNote("notifications/message", func(p json.RawMessage) bool { return e2e.Str(p, "level") == "critical" })
		var out []string
		for _, m := range c.NotesOf("notifications/message") {
			out = append(out, e2e.Str(m.Params, "data", "is"))
		}
		return out
	}
	require.Equal(t, []string{"critical"}, data(c1))
	require.Equal(t, []string{"info", "critical"}, data(c2))
	require.Equal(t, -32602, c1.Fault("logging/setLevel", e2e.Obj{"level": "loud"}).Code)

	c2.Close()
	b.Wait("the level after a client has left", func() bool {
		all := b.Pick("logging/setLevel")
		return e2e.Str(all[len(all)-1].Msg, "params", "level") == "error"
	})
}

func TestCompletionIsRoutedByItsReference(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("b", e2e.Obj{"prompts": []e2e.Obj{e2e.Prompt("p")}, "templates": []e2e.Obj{e2e.Template("x:///{a}")}, "resources": []e2e.Obj{}})
	silent := e2e.Dbsrv()
	silent["capabilities"] = e2e.Obj{"resources": e2e.Obj{}}
	w.Backend("silent", silent)
	c := w.Standalone()
	ask := func(ref e2e.Obj) e2e.Obj {
		return e2e.Obj{"ref": ref, "argument": e2e.Obj{"name": "a", "value": "v"}, "context": e2e.Obj{"arguments": e2e.Obj{"k": "w"}}}
	}
	for _, ref := range []e2e.Obj{
		{"type": "ref/prompt", "name": "b/p"},
		{"type": "ref/prompt", "name": "p"},
		{"type": "ref/resource", "uri": e2e.In("b", "x:///{a}")},
		{"type": "ref/resource", "uri": "x:///{a}"},
	} {
		require.JSONEq(t, `{"values":["b:`+map[bool]string{true: "p", false: "x:///{a}"}[ref["type"] == "ref/prompt"]+`"],"total":1,"hasMore":false}`,
			string(e2e.At(c.Ok("completion/complete", ask(ref)), "completion")))
	}
	for _, told := range b.Received("completion/complete") {
		require.JSONEq(t, `{"name":"a","value":"v"}`, string(e2e.At(told.Msg, "params", "argument")))
		require.Equal(t, "w", e2e.Str(told.Msg, "params", "context", "arguments", "k"))
	}
	e := c.Fault("completion/complete", ask(e2e.Obj{"type": "ref/resource", "uri": e2e.In("silent", "mcp://database/{table}/{id}")}))
	require.Equal(t, -32601, e.Code)
	require.Equal(t, -32602, c.Fault("completion/complete", ask(e2e.Obj{"type": "ref/prompt", "name": "b/none"})).Code)
}

func TestRequestsOfABackendReachTheClientWithACallInFlight(t *testing.T) {
	t.Parallel()
	asks := map[string]e2e.Obj{
		"sampling/createMessage": {"messages": []e2e.Obj{{"role": "user", "content": e2e.Obj{"type": "text", "text": "hi"}}}, "maxTokens": 5, "temperature": json.RawMessage("0.0")},
		"elicitation/create":     {"message": "who?", "requestedSchema": e2e.Obj{"type": "object", "properties": e2e.Obj{}}},
		"roots/list":             {},
	}
	tools, on := []e2e.Obj{}, e2e.Obj{}
	for method, params := range asks {
		tools = append(tools, e2e.Tool(method))
		on["tools/call "+method] = e2e.Actions(e2e.Do("request", e2e.Obj{"method": method, "params": params}), e2e.Do("answers"))
	}
	w := e2e.NewWorld(t)
	b := w.Backend("b", e2e.Obj{"tools": tools, "on": on})
	caller, idle := w.Socket(), w.Socket()
	for _, c := range []*e2e.Client{caller, idle} {
		c.Caps = e2e.Obj{"sampling": e2e.Obj{}, "elicitation": e2e.Obj{}, "roots": e2e.Obj{"listChanged": true}}
		c.Reply = func(ask e2e.Message) (any, any) { return json.RawMessage(`{"from":"client","n":1.50}`), nil }
		c.Init()
	}
	n := 0
	for method, params := range asks {
		n++
		got := caller.Ok("tools/call", e2e.Obj{"name": "b/" + method})
		require.Equal(t, `[{"from":"client","n":1.50}]`, e2e.Str(got, "content", 0, "text"))
		ask := caller.WaitAsks(n)
		require.Equal(t, method, ask.Method)
		require.JSONEq(t, string(e2e.Marshal(params)), string(ask.Params))
	}
	idle.Ok("ping", nil)
	require.Empty(t, idle.Asks)
	init := b.Received("initialize")[0].Msg
	for _, capability := range []string{"sampling", "elicitation", "roots"} {
		require.NotNil(t, e2e.At(init, "params", "capabilities", capability), capability)
	}
}

func TestRequestsOfABackendAreRefusedWhenNobodyCanBeAsked(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("hang")}, "on": e2e.Obj{"tools/call hang": e2e.Actions(e2e.Do("wait", e2e.Obj{"name": "go"}))}})
	c1, c2 := w.Socket(), w.Socket()
	for _, c := range []*e2e.Client{c1, c2} {
		c.Caps = e2e.Obj{"sampling": e2e.Obj{}, "elicitation": e2e.Obj{}}
		c.Init()
	}
	c1.Names("tools") // the server is up
	request := func(method string, params e2e.Obj, n int) json.RawMessage {
		// The command waits for the reply.
		b.Do(e2e.Do("request", e2e.Obj{"method": method, "params": params}))
		return b.WaitEvents("reply", method, n).Msg
	}
	sampling := e2e.Obj{"messages": []e2e.Obj{}, "maxTokens": 1}
	elicitation := e2e.Obj{"message": "m", "requestedSchema": e2e.Obj{"type": "object"}}
	require.NotNil(t, e2e.At(request("sampling/createMessage", sampling, 1), "error"), "no call is in flight")
	require.Equal(t, "cancel", e2e.Str(request("elicitation/create", elicitation, 1), "action"))

	// Two clients have a call in flight, so the request's owner is unknown.
	id1, id2 := c1.Begin("tools/call", e2e.Obj{"name": "b_hang"}), c2.Begin("tools/call", e2e.Obj{"name": "b_hang"})
	b.WaitEvents("wait", "go", 2)
	require.NotNil(t, e2e.At(request("sampling/createMessage", sampling, 2), "error"))
	require.Equal(t, "cancel", e2e.Str(request("elicitation/create", elicitation, 2), "action"))
	b.Do(e2e.Do("release", e2e.Obj{"name": "go"}))
	c1.End(id1)
	c2.End(id2)
	require.Empty(t, c1.Asks)
	require.Empty(t, c2.Asks)
}

func TestIsolationGivesEveryClientAProcessOfItsOwn(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("own", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}, "resources": []e2e.Obj{e2e.Resource("x:1")}}, e2e.Obj{"isolation": "session"})
	shared := w.Backend("shared", e2e.Filesystem())
	c1, c2 := w.Join(), w.Join()
	var calls []e2e.Event // each client's own, whichever process is seen first
	for n, c := range []*e2e.Client{c1, c2} {
		require.Contains(t, c.Names("tools"), "own_t")
		require.Equal(t, "own:t:{}", c.CallText("own_t", e2e.Obj{}))
		calls = append(calls, b.WaitReceived("tools/call", n+1))
		c.Ok("resources/subscribe", e2e.Obj{"uri": e2e.In("own", "x:1")})
	}
	require.NotSame(t, calls[0].Proc, calls[1].Proc)
	require.Equal(t, 1, shared.Starts())

	// An update of one process belongs to the client of that process.
	update := e2e.Do("notify", e2e.Obj{"method": "notifications/resources/updated", "params": e2e.Obj{"uri": "x:1"}})
	b.DoAt(calls[1].Proc, update)
	require.Equal(t, []string{e2e.In("own", "x:1")}, c2.WaitUpdates(1))
	b.DoAt(calls[0].Proc, update)
	require.Equal(t, []string{e2e.In("own", "x:1")}, c1.WaitUpdates(1))
	c2.Ok("ping", nil)
	require.Len(t, c2.Updates(), 1)

	// The same holds for its log lines outside of calls; lines arrive in order.
	clients := []*e2e.Client{c1, c2}
	for n, line := range []string{"first", "second", "third"} {
		b.DoAt(calls[n%2].Proc, e2e.Do("notify", e2e.Obj{"method": "notifications/message", "params": e2e.Obj{"level": "error", "data": line}}))
		clients[n%2].WaitNote("notifications/message", func(params json.RawMessage) bool { return e2e.Str(params, "data") == line })
	}
	require.Len(t, c1.NotesOf("notifications/message"), 2)
	require.Len(t, c2.NotesOf("notifications/message"), 1)

	c2.Close()
	b.Wait("the end of the second client's process", func() bool { return calls[1].Proc.Gone })
	require.Equal(t, "own:t:{}", c1.CallText("own_t", e2e.Obj{}))
}

func TestLogLinesOfACallComeBeforeItsResponse(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	note := e2e.Do("notify", e2e.Obj{"method": "notifications/message", "n": 3, "params": e2e.Obj{"level": "info", "data": "line $n"}})
	w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}, "on": e2e.Obj{"tools/call t": e2e.Actions(note)}})
	s := w.Served()
	for name, c := range map[string]*e2e.Client{"socket": w.Join(), "HTTP": s.Client(true)} {
		c.Ok("logging/setLevel", e2e.Obj{"level": "debug"})
		m := c.Request("tools/call", e2e.Obj{"name": "b_t"})
		notes := c.NotesOf("notifications/message")
		require.Len(t, notes, 3, name)
		for i, n := range notes {
			require.Equal(t, fmt.Sprint("line ", i), e2e.Str(n.Params, "data"))
			require.Less(t, n.Seq, m.Seq)
			require.Equal(t, m.Via, n.Via)
		}
		c.Ok("logging/setLevel", e2e.Obj{"level": "emergency"})
	}
}
