package e2e

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

var form = obj{"message": "who?", "requestedSchema": obj{"type": "object", "properties": obj{}}}

// asking is a backend with a tool that asks the client, one that waits until
// it is released, and one that never answers.
func asking(method string, params obj) obj {
	return obj{"tools": []obj{tool("ask"), tool("other"), tool("hang")}, "on": obj{
		"tools/call hang":  actions(do("hang")),
		"tools/call ask":   actions(do("request", obj{"method": method, "params": params}), do("answers")),
		"tools/call other": actions(do("wait", obj{"name": "other"})),
	}}
}

func TestQuestionOutlivesAnotherCallOfItsClient(t *testing.T) {
	t.Parallel()
	for name, otherFirst := range map[string]bool{"begun before": true, "begun after": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			b := w.backend("b", asking("elicitation/create", form), obj{"timeout": "3s"})
			c := w.pipe("stdio", "--standalone")
			c.caps = obj{"elicitation": obj{}}
			c.init()
			begin := func(tool string) string { return c.begin("tools/call", obj{"name": tool}) }
			var ask, other string
			if otherFirst {
				other = begin("b_other")
				b.waitEvent("wait", "other")
				ask = begin("b_ask")
			} else {
				ask, other = begin("b_ask"), begin("b_other")
				b.waitEvent("wait", "other")
			}
			question := c.asked(1)
			b.do(do("release", obj{"name": "other"}))
			require.Nil(t, c.end(other).Error)
			// Longer than the timeout, which rests while a human thinks.
			require.Equal(t, "REQUEST_TIMEOUT", c.fault("tools/call", obj{"name": "b_hang"}).kind())
			c.answer(question, func(message) (any, any) { return obj{"action": "accept", "content": obj{}}, nil })
			end := c.end(ask)
			require.Nil(t, end.Error, "%s", end.raw)
			require.Empty(t, c.notesOf("notifications/cancelled"), "the dialog stayed")
		})
	}
}

func TestDenyHoldsForURIsThatWereNeverListed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	script := filesystem()
	script["templates"] = []obj{template("file:///{+path}")}
	script["capabilities"] = obj{"resources": obj{"subscribe": true}}
	b := w.backend("fs", script, obj{"resources": obj{"deny": []string{"file:///secret/*"}}, "open_resources": true})
	c := w.standalone()
	require.NotEmpty(t, c.readText(in("fs", "file:///public/x")))
	for _, uri := range []string{in("fs", "file:///secret/k"), "file:///secret/k", "fs_file_secret_k"} {
		require.Equal(t, "RESOURCE_NOT_FOUND", c.fault("resources/read", obj{"uri": uri}).kind(), uri)
		require.Equal(t, "RESOURCE_NOT_FOUND", c.fault("resources/subscribe", obj{"uri": uri}).kind(), uri)
	}
	require.Equal(t, []string{"file:///public/x"}, b.uris("resources/read"))
	require.Empty(t, b.received("resources/subscribe"))
}

func TestProgressOfAClientReachesTheBackendThatAsked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backend("b", asking("sampling/createMessage", obj{
		"messages": []obj{}, "maxTokens": 1, "_meta": obj{"progressToken": json.RawMessage("9007199254740993")},
	}))
	c := w.pipe("stdio", "--standalone")
	c.caps = obj{"sampling": obj{}}
	c.init()
	call := c.begin("tools/call", obj{"name": "b_ask"})
	question := c.asked(1)
	token := at(question.Params, "_meta", "progressToken")
	c.notify("notifications/progress", obj{"progressToken": token, "progress": 1})
	told := b.waitReceived("notifications/progress", 1)
	require.Equal(t, "9007199254740993", string(at(told.Msg, "params", "progressToken")))
	c.answer(question, func(message) (any, any) {
		return obj{"role": "assistant", "content": obj{"type": "text", "text": ""}, "model": "m"}, nil
	})
	require.Nil(t, c.end(call).Error)
}

func TestElicitationDemandedByAnErrorIsCompleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backend("b", obj{"tools": []obj{tool("login")}, "on": obj{"tools/call login": actions(do("error", obj{"error": obj{
		"code": -32042, "message": "log in first",
		"data": obj{"elicitations": []obj{{"mode": "url", "elicitationId": "e1", "url": "https://x.example", "message": "m"}}},
	}}))}})
	w.hosted = true
	c, idle := w.bridged(), w.bridged()
	require.Equal(t, -32042, c.fault("tools/call", obj{"name": "b_login"}).Code)
	b.do(do("notify", obj{"method": "notifications/elicitation/complete", "params": obj{"elicitationId": "e1"}}))
	c.noted("notifications/elicitation/complete", func(p json.RawMessage) bool { return str(p, "elicitationId") == "e1" })
	idle.ok("ping", nil)
	require.Empty(t, idle.notesOf("notifications/elicitation/complete"))
}

func TestURIOfASubResourceUpdateCanBeRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	script := obj{"resources": []obj{resource("file:///dir")}, "capabilities": obj{"resources": obj{"subscribe": true}}}
	b := w.backend("fs", script)
	c := w.standalone()
	c.ok("resources/subscribe", obj{"uri": in("fs", "file:///dir")})
	b.updated("file:///dir/x")
	require.Equal(t, []string{in("fs", "file:///dir/x")}, c.waitUpdates(1))
	require.NotEmpty(t, c.readText(in("fs", "file:///dir/x")))
}

func TestLevelOfOneClientDoesNotSilenceOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backend("b", obj{"tools": []obj{tool("t")}, "capabilities": obj{"tools": obj{}, "logging": obj{}}})
	w.hosted = true
	strict, other := w.bridged(), w.bridged()
	other.names("tools")
	strict.ok("logging/setLevel", obj{"level": "emergency"})
	b.waitReceived("logging/setLevel", 1)
	require.Equal(t, "info", str(b.received("logging/setLevel")[0].Msg, "params", "level"))
	b.do(do("notify", obj{"method": "notifications/message", "params": obj{"level": "info", "data": "hello"}}))
	other.noted("notifications/message", func(p json.RawMessage) bool { return str(p, "data") == "hello" })
	strict.ok("ping", nil)
	require.Empty(t, strict.notesOf("notifications/message"))
}

func TestRequestsThatUndoEachOtherKeepTheirOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backend("fs", obj{"resources": []obj{resource("file:///a")}, "capabilities": obj{"resources": obj{"subscribe": true}, "logging": obj{}}})
	c := w.standalone()
	c.names("resources")
	uri := obj{"uri": in("fs", "file:///a")}
	for range 20 {
		ids := []string{
			c.begin("resources/subscribe", uri), c.begin("resources/unsubscribe", uri),
			c.begin("logging/setLevel", obj{"level": "debug"}), c.begin("logging/setLevel", obj{"level": "error"}),
		}
		for _, id := range ids {
			require.Nil(t, c.end(id).Error)
		}
	}
	require.Equal(t, b.count("resources/subscribe"), b.count("resources/unsubscribe"), "the last word was to stop")
	levels := b.received("logging/setLevel")
	require.Equal(t, "error", str(levels[len(levels)-1].Msg, "params", "level"))
}

func TestQuestionOverHTTPOutlivesAnotherCallOfItsClient(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	script := asking("elicitation/create", form)
	on := script["on"].(obj)
	on["tools/call ask"] = append(actions(do("wait", obj{"name": "go"})), on["tools/call ask"].([]obj)...)
	b := w.backend("b", script)
	c := w.serve().client(false, obj{"elicitation": obj{}})
	ask := c.begin("tools/call", obj{"name": "b_ask"})
	b.waitEvent("wait", "go")
	other := c.begin("tools/call", obj{"name": "b_other"})
	b.waitEvent("wait", "other")
	b.do(do("release", obj{"name": "go"}))
	c.asked(1) // on the stream of the newer call, which ends without an answer to it
	b.do(do("release", obj{"name": "other"}))
	require.Nil(t, c.end(other).Error)
	c.answer(c.asked(2), func(message) (any, any) { return obj{"action": "accept", "content": obj{}}, nil })
	end := c.end(ask)
	require.Nil(t, end.Error, "%s", end.raw)
	require.Contains(t, str(end.Result, "content", 0, "text"), "accept")
}

func TestDenyHoldsForEverySpelling(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	script := filesystem()
	script["templates"] = []obj{template("file:///{+path}")}
	b := w.backend("fs", script, obj{"resources": obj{"deny": []string{"file:///secret/*"}}})
	c := w.standalone()
	for _, uri := range []string{"file:///%73ecret/k", "file:///%2573ecret/k", "file:///pub/../secret/k", "file:////secret/k"} {
		require.Equal(t, "RESOURCE_NOT_FOUND", c.fault("resources/read", obj{"uri": in("fs", uri)}).kind(), uri)
	}
	require.Empty(t, b.received("resources/read"))
}

func TestProgressOfAClientComesBeforeItsAnswerOverHTTP(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.remote("b", "/mcp", asking("sampling/createMessage", obj{"messages": []obj{}, "maxTokens": 1, "_meta": obj{"progressToken": "p"}}))
	c := w.pipe("stdio", "--standalone")
	c.caps = obj{"sampling": obj{}}
	c.init()
	call := c.begin("tools/call", obj{"name": "b_ask"})
	question := c.asked(1)
	for n := 1; n <= 5; n++ {
		c.notify("notifications/progress", obj{"progressToken": at(question.Params, "_meta", "progressToken"), "progress": n})
	}
	c.answer(question, func(message) (any, any) {
		return obj{"role": "assistant", "content": obj{"type": "text", "text": ""}, "model": "m"}, nil
	})
	require.Nil(t, c.end(call).Error)
	var steps []string
	for _, told := range b.received("notifications/progress") {
		steps = append(steps, string(at(told.Msg, "params", "progress")))
	}
	require.Equal(t, []string{"1", "2", "3", "4", "5"}, steps)
}

func TestCompletedElicitationOfAUnitIsToldToThatUnit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const complete = "notifications/elicitation/complete"
	ask := do("request", obj{"method": "elicitation/create", "params": obj{"mode": "url", "url": "https://e.example/", "message": "m", "elicitationId": "1"}})
	b := w.backend("b", obj{"tools": []obj{tool("login")}, "on": obj{"tools/call login": actions(ask, do("answers"))}}, obj{"isolation": "session"})
	w.hosted = true
	connect := func() *client {
		c := w.pipe("stdio")
		c.caps = obj{"elicitation": obj{"form": obj{}, "url": obj{}}}
		c.reply = func(message) (any, any) { return obj{"action": "accept"}, nil }
		c.init()
		c.callText("b_login", obj{})
		return c
	}
	first := connect()
	process := b.live()[0]
	second := connect() // its process counts from 1 too
	b.doAt(process, do("notify", obj{"method": complete, "params": obj{"elicitationId": "1"}}))
	first.noted(complete, nil)
	second.ok("ping", nil)
	require.Empty(t, second.notesOf(complete))
}

func TestProgressOnAnotherClientsQuestionIsNotPassedOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.hosted = true
	b := w.backend("b", asking("elicitation/create", obj{
		"message": "m", "requestedSchema": obj{"type": "object"}, "_meta": obj{"progressToken": "t"},
	}))
	c := w.pipe("stdio")
	c.caps = obj{"elicitation": obj{}}
	c.init()
	other := w.bridged()
	call := c.begin("tools/call", obj{"name": "b_ask"})
	question := c.asked(1)
	token := at(question.Params, "_meta", "progressToken")
	other.notify("notifications/progress", obj{"progressToken": token, "progress": 1})
	other.ok("ping", nil)
	c.notify("notifications/progress", obj{"progressToken": token, "progress": 2})
	told := b.waitReceived("notifications/progress", 1)
	require.Equal(t, "2", string(at(told.Msg, "params", "progress")))
	c.answer(question, func(message) (any, any) { return obj{"action": "decline"}, nil })
	require.Nil(t, c.end(call).Error)
}

func TestLateProgressReachesNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.hosted = true
	b := w.backend("b", obj{"tools": []obj{tool("quick"), tool("slow")}, "on": obj{
		"tools/call slow": actions(do("wait", obj{"name": "slow"}), do("text", obj{"text": "done"})),
	}})
	c, other := w.bridged(), w.bridged()
	c.ok("tools/call", obj{"name": "b_quick", "_meta": obj{"progressToken": 1}})
	token := at(b.waitReceived("tools/call", 1).Msg, "params", "_meta", "progressToken")
	id := other.begin("tools/call", obj{"name": "b_slow", "_meta": obj{"progressToken": token}})
	b.waitEvent("wait", "slow")
	b.do(do("notify", obj{"method": "notifications/progress", "params": obj{"progressToken": token, "progress": 1}}))
	b.do(do("release", obj{"name": "slow"}))
	require.Nil(t, other.end(id).Error)
	for _, c := range []*client{c, other} {
		c.ok("ping", nil)
		require.Empty(t, c.notesOf("notifications/progress"))
	}
}

func TestWithdrawnQuestionIsCancelledOnceByItsOwnID(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backend("b", obj{"tools": []obj{tool("ask")}, "on": obj{"tools/call ask": actions(
		do("request", obj{"method": "elicitation/create", "params": form}), do("answers"),
	)}})
	c := w.pipe("stdio", "--standalone")
	c.caps = obj{"elicitation": obj{}}
	c.init()
	c.begin("tools/call", obj{"name": "b_ask"})
	question := c.asked(1)
	b.do(do("notify", obj{"method": "notifications/cancelled", "params": obj{"requestId": "ask-1"}}))
	c.noted("notifications/cancelled", nil)
	c.ok("ping", nil)
	notes := c.notesOf("notifications/cancelled")
	require.Len(t, notes, 1, "%v", notes)
	require.Equal(t, string(question.ID), string(at(notes[0].Params, "requestId")))
}
