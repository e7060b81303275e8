//go:build e2e

package eras

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

func TestBackendThatIsSlowToSayThatItSpeaksBothErasIsServedInBoth(t *testing.T) {
	t.Parallel()
	type row struct {
		kind string
		ends bool // before it has answered
	}
	for _, row := range e2e.Variants(1, row{"stdio", false}, row{"stdio", true}, row{"http", false}) {
		t.Run(fmt.Sprintf("%s %v", row.kind, row.ends), func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			b := dualBackend(w, row.kind, "dual", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}, "on": e2e.Obj{
				"server/discover": e2e.Actions(e2e.Do("wait", e2e.Obj{"name": "told", "starts": 1})),
			}})
			legacy, modern := w.Pair("socket")
			for _, c := range []*e2e.Client{legacy, modern} {
				require.Contains(t, c.CallText("b_t", e2e.Obj{}), "b:t")
			}
			require.Empty(t, ofEra(b, "tools/call", true), "it has not answered the probe yet")
			if row.ends {
				b.DoAt(b.WaitStarts(1), e2e.Do("crash", e2e.Obj{"code": 1}))
			} else {
				b.Do(e2e.Do("release", e2e.Obj{"name": "told"}))
			}
			e2e.Eventually(t, "a call of the modern era", func() bool {
				modern.Request("tools/call", e2e.Obj{"name": "b_t"})
				return len(ofEra(b, "tools/call", true)) > 0
			})
			legacy.Ok("tools/call", e2e.Obj{"name": "b_t"})
			calls := b.Received("tools/call")
			require.Empty(t, e2e.ProtocolMeta(calls[len(calls)-1], "protocolVersion"), "of the other client")
		})
	}
}

func TestBackendThatEndsOfTheQuestionWhatItSpeaksIsAskedNoMore(t *testing.T) {
	t.Parallel()
	const asked = 4 // at its first start, and three times more
	w := e2e.NewWorld(t)
	b := dualBackend(w, "stdio", "dual", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}, "on": e2e.Obj{
		"server/discover": e2e.Actions(e2e.Do("wait", e2e.Obj{"name": "never"})),
	}})
	c, _ := w.Pair("socket")
	for n := 1; n <= asked+2; n++ {
		at := b.WaitStarts(n)
		e2e.Eventually(t, "a call", func() bool { return c.Works(e2e.Obj{"name": "b_t"}) })
		if n <= asked {
			b.WaitReceived("server/discover", n)
		}
		b.DoAt(at, e2e.Do("crash", e2e.Obj{"code": 1}))
	}
	require.Equal(t, asked, b.Count("server/discover"))
}

func TestCrashOfOneOfTwoConnectionsIsNoneOfTheOther(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := dualBackend(w, "stdio", "dual", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t"), e2e.Tool("hang")}, "on": e2e.Obj{"tools/call hang": e2e.Actions(e2e.Do("hang"))}})
	legacy, modern := w.Pair("socket")
	modern.CallText("b_t", e2e.Obj{})
	waits, lost := legacy.Begin("tools/call", e2e.Obj{"name": "b_hang"}), modern.Begin("tools/call", e2e.Obj{"name": "b_hang"})
	b.WaitEvents("wait", "hang", 2)
	b.DoAt(b.WaitStarts(2), e2e.Do("crash"))
	require.Equal(t, "CONNECTION_ERROR", e2e.ParseFailure(t, modern.End(lost)).Kind())
	b.WaitReceived("server/discover", 3) // and it is opened again by itself
	modern.CallText("b_t", e2e.Obj{})
	require.Len(t, ofEra(b, "tools/call", true), 3, "not translated")
	require.Contains(t, legacy.ReadText("goblin://servers"), `"restarts":0`)

	b.DoAt(b.WaitStarts(1), e2e.Do("crash"))
	require.Equal(t, "CONNECTION_ERROR", e2e.ParseFailure(t, legacy.End(waits)).Kind())
	b.WaitReceived("initialize", 2)
	e2e.Eventually(t, "the first again", func() bool { return legacy.Works(e2e.Obj{"name": "b_t"}) })
	modern.CallText("b_t", e2e.Obj{})
	require.Equal(t, 4, b.Starts())
	b.WaitLive(2)
}

func TestSecondConnectionEndsWithItsServer(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := dualBackend(w, "stdio", "dual", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}})
	legacy, modern := w.Pair("socket")
	legacy.CallText("b_t", e2e.Obj{})
	modern.CallText("b_t", e2e.Obj{})
	first := b.Live()
	require.Len(t, first, 2)
	w.Succeeds("restart", "b")
	b.Wait("both processes to exit", func() bool { return first[0].Gone && first[1].Gone })
	e2e.Eventually(t, "the restarted server", func() bool { return modern.Works(e2e.Obj{"name": "b_t"}) })
	b.WaitStarts(4) // each client is connected in its own era again
	b.WaitLive(2)
	second := b.Live()
	w.Succeeds("stop")
	b.Wait("both processes to exit", func() bool { return second[0].Gone && second[1].Gone })
}

func TestWithoutASecondConnectionTheFirstIsTranslated(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := dualBackend(w, "stdio", "dual", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("ask")}, "on": e2e.Obj{
		"server/discover": e2e.Actions(e2e.Do("crash", e2e.Obj{"after": 1, "starts": 2})),
		"tools/call ask":  e2e.Actions(e2e.Do("request", e2e.Obj{"method": "elicitation/create", "params": e2e.Form}), e2e.Do("answers")),
	}})
	_, modern := w.Pair("socket")
	state, keys := e2e.InputRequests(t, modern.Request("tools/call", e2e.Obj{"name": "b_ask"}))
	require.Len(t, ofEra(b, "tools/call", false), 1)
	b.WaitStarts(3) // it works now, but this request belongs to the first process
	b.WaitReceived("server/discover", 3)
	end := modern.Request("tools/call", e2e.Obj{"name": "b_ask", "requestState": state, "inputResponses": e2e.Obj{keys["elicitation/create"]: e2e.Accepted}})
	require.Contains(t, e2e.Str(end.Result, "content", 0, "text"), "Alice", end.Raw)
	require.Len(t, b.Received("tools/call"), 1)
	e2e.Eventually(t, "calls in its own era", func() bool {
		modern.Request("tools/call", e2e.Obj{"name": "b_ask"})
		return len(ofEra(b, "tools/call", true)) > 0
	})
}

func TestErrorsOfTheSecondHopStayThere(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	gone := e2e.Do("error", e2e.Obj{"after": 1, "error": json.RawMessage(`{"code":-32022,"message":"no more","data":{"supported":["2025-11-25"]}}`)})
	b := dualBackend(w, "stdio", "dual", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}, "on": e2e.Obj{"tools/call t": e2e.Actions(gone), "server/discover": e2e.Actions(e2e.Merge(e2e.Obj{}, []e2e.Obj{gone, {"after": 2}}))}})
	_, modern := w.Pair("socket")
	require.Contains(t, modern.CallText("b_t", e2e.Obj{}), "b:t", "by the first, because the second no longer speaks the revision")
	b.WaitReceived("server/discover", 3)
	require.Contains(t, modern.CallText("b_t", e2e.Obj{}), "b:t")
	require.Len(t, ofEra(b, "tools/call", true), 1)
	require.Len(t, ofEra(b, "tools/call", false), 2)
	b.WaitLive(1)
}

func TestHeadersOfTheSecondConnectionFollowTheDefinition(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	marked := func(header string) e2e.Obj {
		return e2e.Tool("t", e2e.Obj{"inputSchema": e2e.Obj{"type": "object", "properties": e2e.Obj{"region": e2e.Obj{"type": "string", "x-mcp-header": header}}}})
	}
	b := dualBackend(w, "http", "dual", e2e.Obj{"tools": []e2e.Obj{marked("Region"), e2e.Tool("bad", e2e.Obj{
		"inputSchema": e2e.Obj{"type": "object", "properties": e2e.Obj{"region": e2e.Obj{"type": "object", "x-mcp-header": "Region"}}},
	})}})
	legacy, modern := w.Pair("socket")
	require.Len(t, legacy.Names("tools"), 2, "the older revisions know no such rule")
	call := e2e.Obj{"name": "b_t", "arguments": e2e.Obj{"region": "Zürich"}}
	modern.Ok("tools/call", call)
	calls := b.Received("tools/call")
	require.Len(t, calls, 1, "the first try fits")
	require.Equal(t, "=?base64?WsO8cmljaA==?=", calls[0].Headers["mcp-param-region"])
	b.Remove("tools", "t")
	b.Add("tools", marked("Zone"))
	modern.Ok("tools/call", call)
	calls = b.Received("tools/call")
	require.Equal(t, "=?base64?WsO8cmljaA==?=", calls[len(calls)-1].Headers["mcp-param-zone"])
}

func TestUnitsGetConnectionsOfTheirClientsEra(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := dualBackend(w, "stdio", "dual", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}}, e2e.Obj{"isolation": "session"})
	legacy, modern := w.Pair("socket")
	other := w.Socket().Stateless()
	legacy.CallText("b_t", e2e.Obj{})
	for _, c := range []*e2e.Client{modern, other, modern} {
		c.CallText("b_t", e2e.Obj{})
	}
	require.Equal(t, 3, b.Starts(), "one for each")
	require.Len(t, ofEra(b, "tools/call", true), 3)
	modern.Close()
	b.Wait("the end of its process", func() bool { return b.Procs[1].Gone || b.Procs[2].Gone })
	b.WaitLive(2)
	other.CallText("b_t", e2e.Obj{})
	legacy.CallText("b_t", e2e.Obj{})
	require.Equal(t, 3, b.Starts())
}

func TestSubscriptionsFollowAServerThatWasReplaced(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := dualBackend(w, "stdio", "dual", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}, "resources": []e2e.Obj{e2e.Resource("x:1")}})
	legacy, modern := w.Pair("socket")
	legacy.Ok("resources/subscribe", e2e.Obj{"uri": "x:1"})
	modern.ListenTo(e2e.Obj{"resourceSubscriptions": []string{"x:1"}})
	w.Edit(func() { b.Conf["timeout"] = "29s" })
	b.WaitStarts(4)
	require.Equal(t, []string{"x:1"}, legacy.WaitUpdates(1), "it may have changed")
	modern.WaitNote("notifications/resources/updated", nil)
	b.Wait("the end of the first two", func() bool { return b.Procs[0].Gone && b.Procs[1].Gone })
	b.Updated("x:1")
	legacy.WaitUpdates(2)
	modern.Wait("its own", func() bool { return len(modern.Notes) == 3 })
}

func TestBackendOfOneEraGetsOneConnection(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	for _, era := range []string{"legacy", "mute", "modern"} {
		for _, kind := range []string{"stdio", "http"} {
			w.TaskBackend(era+"-"+kind, kind, e2e.Obj{"era": strings.TrimPrefix(era, "legacy"), "tools": []e2e.Obj{e2e.Tool("t")}})
		}
	}
	legacy, modern := w.Pair("socket")
	for _, b := range w.Backends {
		for _, c := range []*e2e.Client{legacy, modern, modern} {
			require.Contains(t, c.CallText(b.Name+"_t", e2e.Obj{}), b.Name+":t")
		}
		require.Equal(t, 1, b.Starts(), b.Name)
		require.LessOrEqual(t, b.Count("server/discover"), 1, b.Name)
		require.LessOrEqual(t, b.Count("initialize"), 1, b.Name)
	}
}

func TestSecondConnectionIsOpenedByTheFirstStatelessRequest(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := dualBackend(w, "stdio", "either", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}})
	legacy, modern := w.Pair("socket")
	legacy.CallText("b_t", e2e.Obj{})
	modern.Names("tools")
	require.Equal(t, 2, b.Starts(), "the process that was probed first, and another")
	ids := []string{modern.Begin("tools/call", e2e.Obj{"name": "b_t"}), modern.Begin("tools/call", e2e.Obj{"name": "b_t"})}
	for _, id := range ids {
		require.Nil(t, modern.End(id).Error)
	}
	require.Equal(t, 3, b.Starts(), "one for both")
	require.Equal(t, 2, b.Count("server/discover"))
}

func TestRequestsOfBothErasFromOneClientGoTheirWays(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := dualBackend(w, "stdio", "dual", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t"), e2e.Tool("slow")}, "on": e2e.Obj{
		"tools/call t":    e2e.Actions(e2e.Do("progress", e2e.Obj{"n": 2})),
		"tools/call slow": e2e.Actions(e2e.Do("wait", e2e.Obj{"name": "never"})),
	}})
	c := w.Standalone()
	envelope := e2e.Obj{e2e.ProtocolPrefix + "protocolVersion": e2e.ModernRevision, e2e.ProtocolPrefix + "clientCapabilities": e2e.Obj{}, "progressToken": "m"}
	for _, call := range []struct {
		meta, kind string
		params     e2e.Obj
	}{
		{`"p"`, "null", e2e.Obj{"name": "b_t", "_meta": e2e.Obj{"progressToken": "p"}}},
		{`"m"`, `"complete"`, e2e.Obj{"name": "b_t", "_meta": envelope}},
	} {
		c.Forget()
		result := c.Ok("tools/call", call.params)
		require.Equal(t, call.kind, string(orNull(e2e.At(result, "resultType"))))
		notes := c.NotesOf("notifications/progress")
		require.Len(t, notes, 2)
		require.Equal(t, call.meta, string(e2e.At(notes[0].Params, "progressToken")))
	}
	id := c.Begin("tools/call", e2e.Obj{"name": "b_slow", "_meta": envelope})
	b.WaitEvent("wait", "never")
	c.Notify("notifications/cancelled", e2e.Obj{"requestId": json.RawMessage(id)})
	b.WaitEvent("gone", "slow")
	require.Len(t, ofEra(b, "tools/call", true), 2)
	require.Len(t, ofEra(b, "tools/call", false), 1)
	require.Same(t, b.WaitStarts(2), b.Received("notifications/cancelled")[0].Proc)
}

func TestBothErasShareAConnection(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}, "resources": []e2e.Obj{e2e.Resource("file:///a")}, "capabilities": e2e.Obj{"tools": e2e.Obj{}, "resources": e2e.Obj{"subscribe": true}}})
	c := w.Standalone()
	direct := c.Ok("tools/list", e2e.Obj{})
	require.Nil(t, e2e.At(direct, "resultType"))
	require.Nil(t, e2e.At(c.Ok("tools/call", e2e.Obj{"name": "b_t"}), "resultType"))
	modern := e2e.Obj{"_meta": e2e.Obj{e2e.ProtocolPrefix + "protocolVersion": e2e.ModernRevision, e2e.ProtocolPrefix + "clientCapabilities": e2e.Obj{}}}
	require.Equal(t, `"complete"`, string(e2e.At(c.Ok("tools/list", modern), "resultType")))
	require.Equal(t, -32601, c.Fault("server/discover", e2e.Obj{}).Code, "a session has no such method")

	listen := c.Begin("subscriptions/listen", e2e.Obj{"_meta": modern["_meta"], "notifications": e2e.Obj{"resourceSubscriptions": []string{e2e.In("b", "file:///a")}}})
	c.WaitNote("notifications/subscriptions/acknowledged", func(json.RawMessage) bool { return true })
	c.Ok("resources/subscribe", e2e.Obj{"uri": e2e.In("b", "file:///a")})
	require.Equal(t, 1, b.Count("resources/subscribe"), "counted together")
	b.Updated("file:///a")
	c.WaitUpdates(2)
	c.Notify("notifications/cancelled", e2e.Obj{"requestId": json.RawMessage(listen)})
	c.Ok("resources/unsubscribe", e2e.Obj{"uri": e2e.In("b", "file:///a")})
	b.WaitReceived("resources/unsubscribe", 1)
}

func TestStateThatIsGoblinsOwnIsCheckedWhereverItGoes(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("old", e2e.AskingServer("elicitation/create", e2e.Form))
	b := dualBackend(w, "stdio", "dual", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("other")}})
	_, modern := w.Pair("socket")
	state, keys := e2e.InputRequests(t, modern.Request("tools/call", e2e.Obj{"name": "old_ask"}))
	require.Equal(t, -32602, modern.Fault("tools/call", e2e.Obj{"name": "b_other", "requestState": state}).Code, "of another request")
	require.Equal(t, -32602, modern.Fault("tools/call", e2e.Obj{"name": "b_other", "requestState": state + "x"}).Code, "forged")
	require.Empty(t, b.Received("tools/call"))
	modern.Ok("tools/call", e2e.Obj{"name": "b_other", "requestState": "theirs"})
	require.Equal(t, `"theirs"`, string(e2e.At(b.Received("tools/call")[0].Msg, "params", "requestState")))
	require.Equal(t, -32602, modern.Fault("tools/call", e2e.Obj{"name": "old_ask", "requestState": "theirs"}).Code, "an older server gives none")
	end := modern.Request("tools/call", e2e.Obj{"name": "old_ask", "requestState": state, "inputResponses": e2e.Obj{keys["elicitation/create"]: e2e.Accepted}})
	require.Contains(t, e2e.Str(end.Result, "content", 0, "text"), "Alice", end.Raw)
}

func TestChangesAreHeardFromEitherConnectionOnce(t *testing.T) {
	script := func() e2e.Obj {
		return e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}, "resources": []e2e.Obj{e2e.Resource("x:1")}}
	}
	eachDual(t, script, func(t *testing.T, b *e2e.Backend, legacy, modern *e2e.Client, processes int) {
		legacy.CallText("b_t", e2e.Obj{})
		modern.CallText("b_t", e2e.Obj{})
		legacy.Ok("resources/subscribe", e2e.Obj{"uri": "x:1"})
		modern.ListenTo(e2e.Obj{"resourceSubscriptions": []string{e2e.In("b", "x:1")}, "toolsListChanged": true})
		b.Updated("x:1")
		require.Equal(t, []string{"x:1"}, legacy.WaitUpdates(1))
		modern.WaitNote("notifications/resources/updated", nil)

		// With two processes, each notifies of its own changes. The catalog has the list
		// of the process that notified last.
		live := b.Live()
		last := live[len(live)-1]
		b.DoAt(last, e2e.Do("add", e2e.Obj{"kind": "tools", "entry": e2e.Tool("new")}))
		b.DoAt(last, e2e.Do("notify", e2e.Obj{"method": "notifications/tools/list_changed"}))
		legacy.WaitListed("tools", "b_new", true)
		modern.WaitNote("notifications/tools/list_changed", nil)
		require.Contains(t, modern.CallText("b_new", e2e.Obj{}), "b:new")

		legacy.Forget()
		modern.Forget()
		b.DoAt(last, e2e.Do("notify", e2e.Obj{"method": "notifications/tools/list_changed"}))
		modern.WaitNote("notifications/tools/list_changed", nil)
		require.Empty(t, legacy.NotesOf("notifications/tools/list_changed"), "the list is unchanged")
		require.False(t, modern.Holds(500*time.Millisecond, func() bool { return len(modern.Notes) > 1 }), "reported once")
		b.Updated("x:1")
		require.Len(t, legacy.WaitUpdates(1), 1)
		legacy.Ok("tools/list", nil)
		modern.WaitNote("notifications/resources/updated", nil)
		require.Len(t, legacy.Updates(), 1)
		require.Len(t, modern.NotesOf("notifications/resources/updated"), 1)
		if len(live) == 2 { // what a process changed is lost with it
			b.DoAt(last, e2e.Do("crash"))
			legacy.WaitListed("tools", "b_new", false)
			b.WaitStarts(processes + 1)
			b.WaitEvent("listen", "")
			modern.WaitNote("notifications/resources/updated", nil) // restored; it may have changed
		}
	})
}
