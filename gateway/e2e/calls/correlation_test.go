//go:build e2e

package calls

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

func TestQuestionOutlivesAnotherCallOfItsClient(t *testing.T) {
	t.Parallel()
	for name, otherFirst := range map[string]bool{"begun before": true, "begun after": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			b := w.Backend("b", e2e.AskingServer("elicitation/create", e2e.Form), e2e.Obj{"timeout": "3s"})
			c := w.Pipe("stdio", "--standalone")
			c.Caps = e2e.Obj{"elicitation": e2e.Obj{}}
			c.Init()
			begin := func(tool string) string { return c.Begin("tools/call", e2e.Obj{"name": tool}) }
			var ask, other string
			if otherFirst {
				other = begin("b_other")
				b.WaitEvent("wait", "other")
				ask = begin("b_ask")
			} else {
				ask, other = begin("b_ask"), begin("b_other")
				b.WaitEvent("wait", "other")
			}
			question := c.WaitAsks(1)
			b.Do(e2e.Do("release", e2e.Obj{"name": "other"}))
			require.Nil(t, c.End(other).Error)
			// Longer than the timeout, which is paused while a user thinks.
			require.Equal(t, "REQUEST_TIMEOUT", c.Fails(e2e.Obj{"name": "b_hang"}).Kind())
			c.Answer(question, func(e2e.Message) (any, any) { return e2e.Obj{"action": "accept", "content": e2e.Obj{}}, nil })
			end := c.End(ask)
			require.Nil(t, end.Error, "%s", end.Raw)
			require.Empty(t, c.NotesOf("notifications/cancelled"), "the dialog stayed")
		})
	}
}

func TestDenyHoldsForURIsThatWereNeverListed(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	script := e2e.Filesystem()
	script["templates"] = []e2e.Obj{e2e.Template("file:///{+path}")}
	script["capabilities"] = e2e.Obj{"resources": e2e.Obj{"subscribe": true}}
	b := w.Backend("fs", script, e2e.Obj{"resources": e2e.Obj{"deny": []string{"file:///secret/*"}}, "open_resources": true})
	c := w.Standalone()
	require.NotEmpty(t, c.ReadText(e2e.In("fs", "file:///public/x")))
	for _, uri := range []string{e2e.In("fs", "file:///secret/k"), "file:///secret/k", "fs_file_secret_k"} {
		require.Equal(t, "RESOURCE_NOT_FOUND", c.Fault("resources/read", e2e.Obj{"uri": uri}).Kind(), uri)
		require.Equal(t, "RESOURCE_NOT_FOUND", c.Fault("resources/subscribe", e2e.Obj{"uri": uri}).Kind(), uri)
	}
	require.Equal(t, []string{"file:///public/x"}, b.Uris("resources/read"))
	require.Empty(t, b.Received("resources/subscribe"))
}

func TestProgressOfAClientReachesTheBackendThatAsked(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("b", e2e.AskingServer("sampling/createMessage", e2e.Obj{
		"messages": []e2e.Obj{}, "maxTokens": 1, "_meta": e2e.Obj{"progressToken": json.RawMessage("9007199254740993")},
	}))
	c := w.Pipe("stdio", "--standalone")
	c.Caps = e2e.Obj{"sampling": e2e.Obj{}}
	c.Init()
	call := c.Begin("tools/call", e2e.Obj{"name": "b_ask"})
	question := c.WaitAsks(1)
	token := e2e.At(question.Params, "_meta", "progressToken")
	c.Notify("notifications/progress", e2e.Obj{"progressToken": token, "progress": 1})
	told := b.WaitReceived("notifications/progress", 1)
	require.Equal(t, "9007199254740993", string(e2e.At(told.Msg, "params", "progressToken")))
	c.Answer(question, func(e2e.Message) (any, any) {
		return e2e.Obj{"role": "assistant", "content": e2e.Obj{"type": "text", "text": ""}, "model": "m"}, nil
	})
	require.Nil(t, c.End(call).Error)
}

func TestElicitationDemandedByAnErrorIsCompleted(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("login")}, "on": e2e.Obj{"tools/call login": e2e.Actions(e2e.Do("error", e2e.Obj{"error": e2e.Obj{
		"code": -32042, "message": "log in first",
		"data": e2e.Obj{"elicitations": []e2e.Obj{{"mode": "url", "elicitationId": "e1", "url": "https://x.example", "message": "m"}}},
	}}))}})
	c, idle := w.Join(), w.Join()
	require.Equal(t, -32042, c.Fault("tools/call", e2e.Obj{"name": "b_login"}).Code)
	b.Do(e2e.Do("notify", e2e.Obj{"method": "notifications/elicitation/complete", "params": e2e.Obj{"elicitationId": "e1"}}))
	c.WaitNote("notifications/elicitation/complete", func(p json.RawMessage) bool { return e2e.Str(p, "elicitationId") == "e1" })
	idle.Ok("ping", nil)
	require.Empty(t, idle.NotesOf("notifications/elicitation/complete"))
}

func TestURIOfASubResourceUpdateCanBeRead(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	script := e2e.Obj{"resources": []e2e.Obj{e2e.Resource("file:///dir")}, "capabilities": e2e.Obj{"resources": e2e.Obj{"subscribe": true}}}
	b := w.Backend("fs", script)
	c := w.Standalone()
	c.Ok("resources/subscribe", e2e.Obj{"uri": e2e.In("fs", "file:///dir")})
	b.Updated("file:///dir/x")
	require.Equal(t, []string{e2e.In("fs", "file:///dir/x")}, c.WaitUpdates(1))
	require.NotEmpty(t, c.ReadText(e2e.In("fs", "file:///dir/x")))
}

func TestLevelOfOneClientDoesNotSilenceOthers(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}, "capabilities": e2e.Obj{"tools": e2e.Obj{}, "logging": e2e.Obj{}}})
	strict, other := w.Join(), w.Join()
	other.Names("tools")
	strict.Ok("logging/setLevel", e2e.Obj{"level": "emergency"})
	b.WaitReceived("logging/setLevel", 1)
	require.Equal(t, "info", e2e.Str(b.Received("logging/setLevel")[0].Msg, "params", "level"))
	b.Do(e2e.Do("notify", e2e.Obj{"method": "notifications/message", "params": e2e.Obj{"level": "info", "data": "hello"}}))
	other.WaitNote("notifications/message", func(p json.RawMessage) bool { return e2e.Str(p, "data") == "hello" })
	strict.Ok("ping", nil)
	require.Empty(t, strict.NotesOf("notifications/message"))
}

func TestRequestsThatUndoEachOtherKeepTheirOrder(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("fs", e2e.Obj{"resources": []e2e.Obj{e2e.Resource("file:///a")}, "capabilities": e2e.Obj{"resources": e2e.Obj{"subscribe": true}, "logging": e2e.Obj{}}})
	c := w.Standalone()
	c.Names("resources")
	uri := e2e.Obj{"uri": e2e.In("fs", "file:///a")}
	for range 20 {
		ids := []string{
			c.Begin("resources/subscribe", uri), c.Begin("resources/unsubscribe", uri),
			c.Begin("logging/setLevel", e2e.Obj{"level": "debug"}), c.Begin("logging/setLevel", e2e.Obj{"level": "error"}),
		}
		for _, id := range ids {
			require.Nil(t, c.End(id).Error)
		}
	}
	require.Equal(t, b.Count("resources/subscribe"), b.Count("resources/unsubscribe"), "the last word was to stop")
	levels := b.Received("logging/setLevel")
	require.Equal(t, "error", e2e.Str(levels[len(levels)-1].Msg, "params", "level"))
}

func TestQuestionOverHTTPOutlivesAnotherCallOfItsClient(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	script := e2e.AskingServer("elicitation/create", e2e.Form)
	on := script["on"].(e2e.Obj)
	on["tools/call ask"] = append(e2e.Actions(e2e.Do("wait", e2e.Obj{"name": "go"})), on["tools/call ask"].([]e2e.Obj)...)
	b := w.Backend("b", script)
	c := w.Served().Client(false, e2e.Obj{"elicitation": e2e.Obj{}})
	ask := c.Begin("tools/call", e2e.Obj{"name": "b_ask"})
	b.WaitEvent("wait", "go")
	other := c.Begin("tools/call", e2e.Obj{"name": "b_other"})
	b.WaitEvent("wait", "other")
	b.Do(e2e.Do("release", e2e.Obj{"name": "go"}))
	c.WaitAsks(1) // on the newer call's stream, which closes without an answer to it
	b.Do(e2e.Do("release", e2e.Obj{"name": "other"}))
	require.Nil(t, c.End(other).Error)
	c.Answer(c.WaitAsks(2), func(e2e.Message) (any, any) { return e2e.Obj{"action": "accept", "content": e2e.Obj{}}, nil })
	end := c.End(ask)
	require.Nil(t, end.Error, "%s", end.Raw)
	require.Contains(t, e2e.Str(end.Result, "content", 0, "text"), "accept")
}

func TestProgressOfAClientComesBeforeItsAnswerOverHTTP(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Remote("b", "/mcp", e2e.AskingServer("sampling/createMessage", e2e.Obj{"messages": []e2e.Obj{}, "maxTokens": 1, "_meta": e2e.Obj{"progressToken": "p"}}))
	c := w.Pipe("stdio", "--standalone")
	c.Caps = e2e.Obj{"sampling": e2e.Obj{}}
	c.Init()
	call := c.Begin("tools/call", e2e.Obj{"name": "b_ask"})
	question := c.WaitAsks(1)
	for n := 1; n <= 5; n++ {
		c.Notify("notifications/progress", e2e.Obj{"progressToken": e2e.At(question.Params, "_meta", "progressToken"), "progress": n})
	}
	c.Answer(question, func(e2e.Message) (any, any) {
		return e2e.Obj{"role": "assistant", "content": e2e.Obj{"type": "text", "text": ""}, "model": "m"}, nil
	})
	require.Nil(t, c.End(call).Error)
	var steps []string
	for _, told := range b.Received("notifications/progress") {
		steps = append(steps, string(e2e.At(told.Msg, "params", "progress")))
	}
	require.Equal(t, []string{"1", "2", "3", "4", "5"}, steps)
}

func TestCompletedElicitationOfAUnitIsToldToThatUnit(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	const complete = "notifications/elicitation/complete"
	ask := e2e.Do("request", e2e.Obj{"method": "elicitation/create", "params": e2e.Obj{"mode": "url", "url": "https://e.example/", "message": "m", "elicitationId": "1"}})
	b := w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("login")}, "on": e2e.Obj{"tools/call login": e2e.Actions(ask, e2e.Do("answers"))}}, e2e.Obj{"isolation": "session"})
	connect := func() *e2e.Client {
		c := w.Socket()
		c.Caps = e2e.Obj{"elicitation": e2e.Obj{"form": e2e.Obj{}, "url": e2e.Obj{}}}
		c.Reply = func(e2e.Message) (any, any) { return e2e.Obj{"action": "accept"}, nil }
		c.Init()
		c.CallText("b_login", e2e.Obj{})
		return c
	}
	first := connect()
	process := b.Live()[0]
	second := connect() // its process counts from 1 too
	b.DoAt(process, e2e.Do("notify", e2e.Obj{"method": complete, "params": e2e.Obj{"elicitationId": "1"}}))
	first.WaitNote(complete, nil)
	second.Ok("ping", nil)
	require.Empty(t, second.NotesOf(complete))
}

func TestProgressOnAnotherClientsQuestionIsNotPassedOn(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("b", e2e.AskingServer("elicitation/create", e2e.Obj{
		"message": "m", "requestedSchema": e2e.Obj{"type": "object"}, "_meta": e2e.Obj{"progressToken": "t"},
	}))
	c := w.Socket()
	c.Caps = e2e.Obj{"elicitation": e2e.Obj{}}
	c.Init()
	other := w.Join()
	call := c.Begin("tools/call", e2e.Obj{"name": "b_ask"})
	question := c.WaitAsks(1)
	token := e2e.At(question.Params, "_meta", "progressToken")
	other.Notify("notifications/progress", e2e.Obj{"progressToken": token, "progress": 1})
	other.Ok("ping", nil)
	c.Notify("notifications/progress", e2e.Obj{"progressToken": token, "progress": 2})
	told := b.WaitReceived("notifications/progress", 1)
	require.Equal(t, "2", string(e2e.At(told.Msg, "params", "progress")))
	c.Answer(question, func(e2e.Message) (any, any) { return e2e.Obj{"action": "decline"}, nil })
	require.Nil(t, c.End(call).Error)
}

func TestLateProgressReachesNobody(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("quick"), e2e.Tool("slow")}, "on": e2e.Obj{
		"tools/call slow": e2e.Actions(e2e.Do("wait", e2e.Obj{"name": "slow"}), e2e.Do("text", e2e.Obj{"text": "done"})),
	}})
	c, other := w.Join(), w.Join()
	c.Ok("tools/call", e2e.Obj{"name": "b_quick", "_meta": e2e.Obj{"progressToken": 1}})
	token := e2e.At(b.WaitReceived("tools/call", 1).Msg, "params", "_meta", "progressToken")
	id := other.Begin("tools/call", e2e.Obj{"name": "b_slow", "_meta": e2e.Obj{"progressToken": token}})
	b.WaitEvent("wait", "slow")
	b.Do(e2e.Do("notify", e2e.Obj{"method": "notifications/progress", "params": e2e.Obj{"progressToken": token, "progress": 1}}))
	b.Do(e2e.Do("release", e2e.Obj{"name": "slow"}))
	require.Nil(t, other.End(id).Error)
	for _, c := range []*e2e.Client{c, other} {
		c.Ok("ping", nil)
		require.Empty(t, c.NotesOf("notifications/progress"))
	}
}

func TestWithdrawnQuestionIsCancelledOnceByItsOwnID(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("ask")}, "on": e2e.Obj{"tools/call ask": e2e.Actions(
		e2e.Do("request", e2e.Obj{"method": "elicitation/create", "params": e2e.Form}), e2e.Do("answers"),
	)}})
	c := w.Pipe("stdio", "--standalone")
	c.Caps = e2e.Obj{"elicitation": e2e.Obj{}}
	c.Init()
	c.Begin("tools/call", e2e.Obj{"name": "b_ask"})
	question := c.WaitAsks(1)
	b.Do(e2e.Do("notify", e2e.Obj{"method": "notifications/cancelled", "params": e2e.Obj{"requestId": "ask-1"}}))
	c.WaitNote("notifications/cancelled", nil)
	c.Ok("ping", nil)
	notes := c.NotesOf("notifications/cancelled")
	require.Len(t, notes, 1, "%v", notes)
	require.Equal(t, string(question.ID), string(e2e.At(notes[0].Params, "requestId")))
}

func TestTheLevelOfOneClientDoesNotSilenceAServerForTheNext(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}})
	told := func(level string) func() bool {
		return func() bool {
			all := b.Pick("logging/setLevel")
			return len(all) > 0 && e2e.Str(all[len(all)-1].Msg, "params", "level") == level
		}
	}
	strict := w.Join()
	strict.Ok("logging/setLevel", e2e.Obj{"level": "error"})
	b.Wait("error", told("error"))
	w.Join() // which sets no level, like a first client
	b.Wait("info", told("info"))
}
