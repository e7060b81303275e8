//go:build e2e

package replay

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

func TestEqualCallsGetTheRecordedAnswersInOrder(t *testing.T) {
	t.Parallel()
	r := newTape(t)
	r.call("one", n(1), text(label(1)))
	r.call("one", n(2), text(label(2)))
	r.call("one", n(1), text(label(3)))
	c := r.client("--fast")
	require.Equal(t, []string{"s_one", "s_two"}, c.Names("tools"))
	for _, step := range []struct{ sent, want int }{{1, 1}, {2, 2}, {1, 3}, {1, 3}, {2, 2}} {
		require.Equal(t, label(step.want), c.CallText("s_one", n(step.sent)))
	}
	// Another spelling of the same number, and what differs in each run.
	require.Equal(t, label(2), e2e.Str(c.Ok("tools/call", json.RawMessage(
		`{"name":"s_one","arguments":{"n":2.0},"_meta":{"progressToken":5,"traceparent":"00-1-2-3","goblin/x":1}}`)), "content", 0, "text"))
}

func TestNothingIsWrittenAndNoDaemonStarts(t *testing.T) {
	t.Parallel()
	r := newTape(t)
	r.call("one", n(1), text("x"))
	c := r.client("--fast")
	c.CallText("s_one", n(1))
	c.Close()
	c.Prog.Ends(e2e.Patience)
	require.Empty(t, r.w.Sockets())
	require.NoError(t, filepath.WalkDir(r.w.Dir, func(path string, d os.DirEntry, err error) error {
		require.False(t, err == nil && !d.IsDir() && path != r.path && path != r.w.Config, "wrote %s", path)
		return err
	}))
}

func TestAMissNamesTheClosestCallAndTheDifference(t *testing.T) {
	t.Parallel()
	r := newTape(t)
	r.call("one", Obj{"a": "x", "n": 1}, text("x"))
	closest := r.call("one", Obj{"a": "y", "n": 2}, text("y"))
	c := r.client("--fast")
	message, data := miss(t, c, arguments("one", Obj{"a": "y", "n": 3}))
	require.Contains(t, message, "closest is #2: arguments.n: recorded 2, got 3")
	require.Equal(t, "2", string(e2e.At(data, "closest")), closest)
	require.Equal(t, "arguments.n", e2e.Str(data, "differences", 0, "path"))
	message, _ = miss(t, c, arguments("two", nil))
	require.Contains(t, message, `no tools/call "two" of server "s" was recorded; recorded: one`)
	message, _ = miss(t, c, json.RawMessage(`{"name":"s_one","arguments":{"a":"y","n":2},"_meta":{"acme/tenant":"b"}}`))
	require.Contains(t, message, "_meta: recorded nothing")
	fault := c.Fault("resources/read", Obj{"uri": "mcp://s/file:///a"})
	require.Equal(t, "REPLAY_MISS", e2e.Str(fault.Data, "code"))
	require.True(t, c.Prog.Stderr.Holds(e2e.Patience, func() bool {
		return strings.Contains(c.Prog.Stderr.Text.String(), "arguments.n: recorded 2, got 3")
	}), "the miss is on stderr")
}

func TestRulesIgnoreParams(t *testing.T) {
	t.Parallel()
	r := newTape(t)
	r.call("one", Obj{"at": 1, "rows": []Obj{{"id": 1, "v": "x"}}}, text("found"))
	rules := filepath.Join(r.w.Dir, "rules.yaml")
	require.NoError(t, os.WriteFile(rules, []byte("ignore:\n  - {method: tools/*, name: o*, paths: [arguments.at, 'arguments.rows[*].id']}\n"), 0o600))
	c := r.client("--fast", "--rules", rules)
	require.Equal(t, "found", c.CallText("s_one", Obj{"at": 2, "rows": []Obj{{"id": 7, "v": "x"}}}))
	message, _ := miss(t, c, arguments("one", Obj{"at": 2, "rows": []Obj{{"id": 7, "v": "y"}}}))
	require.Contains(t, message, `arguments.rows[0].v: recorded "x", got "y"`)

	require.NoError(t, os.WriteFile(rules, []byte("ignore:\n  - {paths: ['a[']}\n"), 0o600))
	out := r.w.Run("stdio", "--replay", r.path, "--rules", rules)
	require.Contains(t, out.Stderr, "] is missing")
	require.Equal(t, e2e.ExitFailure, out.Code)
}

func TestErrorsAndFailuresAreAsRecorded(t *testing.T) {
	t.Parallel()
	r := newTape(t)
	r.call("one", n(1), Obj{"code": -5, "message": "no", "data": []int{1}}, Obj{"code": -5, "outcome": "failure"})
	down := Obj{"content": []Obj{{"type": "text", "text": "timeout"}}, "isError": true, "_meta": Obj{"goblin/error": Obj{"code": "REQUEST_TIMEOUT", "server": "s"}}}
	r.call("one", n(2), down, Obj{"answered": false, "outcome": "failure"})
	r.call("one", n(3), Obj{"code": -32603, "message": "Request cancelled"}, Obj{"answered": false, "outcome": "cancelled"})
	r.request("resources/read", "mcp://s/file:///a", "file:///a", Obj{"uri": "mcp://s/file:///a"},
		Obj{"code": -32603, "message": "down", "data": Obj{"code": "CONNECTION_ERROR", "server": "s"}}, Obj{"code": -32603, "answered": false, "outcome": "failure"})
	r.number++
	r.add(Obj{"type": "running", "n": r.number, "server": "s", "method": "tools/call", "name": "s_two", "original": "two", "params": arguments("two", nil)})
	c := r.client("--fast")
	require.JSONEq(t, `{"code":-5,"message":"no","data":[1]}`, string(c.Request("tools/call", arguments("one", n(1))).Error))
	require.JSONEq(t, string(e2e.Marshal(down)), string(c.Request("tools/call", arguments("one", n(2))).Result))
	message, _ := miss(t, c, arguments("one", n(3)))
	require.Contains(t, message, "cancelled")
	message, _ = miss(t, c, arguments("two", nil))
	require.Contains(t, message, "the recording ends before the answer")
	require.Equal(t, "CONNECTION_ERROR", e2e.Str(c.Fault("resources/read", Obj{"uri": "mcp://s/file:///a"}).Data, "code"))
}

func TestNotificationsAreAtTheirPlace(t *testing.T) {
	t.Parallel()
	r := newTape(t)
	r.within(Obj{"type": "notification", "method": "notifications/progress", "params": Obj{"progressToken": "old", "progress": 1, "total": 2}})
	r.within(Obj{"type": "notification", "method": "notifications/message", "params": Obj{"level": "warning", "data": "during"}})
	r.call("one", n(1), text("x"), Obj{"took": 10})
	r.add(Obj{"type": "notification", "server": "s", "direction": "client", "method": "notifications/message", "params": Obj{"level": "warning", "data": "after"}})
	r.add(Obj{"type": "notification", "server": "s", "direction": "client", "method": "notifications/resources/updated", "params": Obj{"uri": "file:///a"}})
	r.call("two", n(1), text("y"))
	c := r.client("--fast")
	c.Ok("resources/subscribe", Obj{"uri": "mcp://s/file:///a"})
	answer := c.Request("tools/call", Obj{"name": "s_one", "arguments": n(1), "_meta": Obj{"progressToken": "new"}})
	after := c.WaitNote("notifications/message", func(p json.RawMessage) bool { return e2e.Str(p, "data") == "after" })
	require.Greater(t, after.Seq, answer.Seq)
	require.Equal(t, []string{"mcp://s/file:///a"}, c.WaitUpdates(1))
	progress := c.NotesOf("notifications/progress")
	require.Len(t, progress, 1)
	require.JSONEq(t, `{"progressToken":"new","progress":1,"total":2}`, string(progress[0].Params))
	during := c.WaitNote("notifications/message", func(p json.RawMessage) bool { return e2e.Str(p, "data") == "during" })
	require.Less(t, progress[0].Seq, during.Seq)
	require.Less(t, during.Seq, answer.Seq)
}

func TestServersAskTheClientInTheMiddle(t *testing.T) {
	t.Parallel()
	for _, revision := range []string{"2025-06-18", e2e.ModernRevision} {
		r := newTape(t)
		handshake := r.lines[1]["handshake"].(Obj)
		handshake["protocolVersion"] = revision
		r.within(Obj{"type": "request", "method": "elicitation/create", "took": 3_600_000, "params": e2e.Form, "answer": Obj{"action": "accept", "content": Obj{}}})
		r.call("one", n(1), text("asked"), Obj{"took": 3_600_010, "userWait": 3_600_000})
		r.call("one", n(2), text("not asked"))
		c := r.w.Pipe("stdio", "--replay", r.write())
		c.Caps = Obj{"elicitation": Obj{"form": Obj{}}}
		c.Reply = func(e2e.Message) (any, any) { return Obj{"action": "accept", "content": Obj{}}, nil }
		c.Init()
		require.Equal(t, "asked", c.CallText("s_one", n(1)), "the user's hour is not waited for")
		require.JSONEq(t, string(e2e.Marshal(e2e.Form)), string(c.WaitAsks(1).Params))
		require.Equal(t, "not asked", c.CallText("s_one", n(2)))
		require.Len(t, c.Asks, 1)
	}
}

func TestAStatelessClientAnswersByARetry(t *testing.T) {
	t.Parallel()
	r := newTape(t)
	r.lines[1]["handshake"].(Obj)["protocolVersion"] = e2e.ModernRevision
	r.within(Obj{"type": "request", "method": "elicitation/create", "params": e2e.Form, "answer": Obj{"action": "decline"}})
	r.call("one", n(1), text("asked"), Obj{"took": 10})
	r.add(Obj{"type": "list", "server": "s", "list": "tools", "removed": []string{"two"}})
	c := r.w.Pipe("stdio", "--replay", r.write(), "--fast").Stateless()
	c.Caps = Obj{"elicitation": Obj{"form": Obj{}}}
	c.WaitListed("tools", "s_one", true)
	c.ListenTo(Obj{"toolsListChanged": true})
	state, keys := e2e.InputRequests(t, c.Request("tools/call", arguments("one", n(1))))
	answers := Obj{}
	for _, key := range keys {
		answers[key] = Obj{"action": "decline"}
	}
	retry := arguments("one", n(1))
	retry["requestState"], retry["inputResponses"] = state, answers
	require.Equal(t, "asked", e2e.Str(c.Ok("tools/call", retry), "content", 0, "text"))
	c.WaitNote("notifications/tools/list_changed", func(json.RawMessage) bool { return true })
	require.Equal(t, []string{"s_one"}, c.Names("tools"))
}

func TestListsChangeAfterTheCallBefore(t *testing.T) {
	t.Parallel()
	r := newTape(t)
	r.call("one", n(1), text("x"))
	r.add(Obj{"type": "list", "server": "s", "list": "tools", "added": []Obj{e2e.Tool("new")}, "removed": []string{"two"}})
	r.call("new", n(1), text("of the new one"))
	c := r.client("--fast")
	require.Equal(t, []string{"s_one", "s_two"}, c.Names("tools"))
	c.CallText("s_one", n(1))
	c.WaitNote("notifications/tools/list_changed", func(json.RawMessage) bool { return true })
	require.Equal(t, []string{"s_new", "s_one"}, c.Names("tools"))
	require.Equal(t, "of the new one", c.CallText("s_new", n(1)))
	require.Equal(t, "x", c.CallText("s_one", n(1)))
	c.Settle()
	require.Equal(t, []string{"s_new", "s_one"}, c.Names("tools"), "the change is not repeated")
}

func TestFastSkipsRecordedWaits(t *testing.T) {
	t.Parallel()
	r := newTape(t)
	r.within(Obj{"type": "notification", "method": "notifications/progress", "params": Obj{"progress": 1}, "time": r.now.Add(3_000_000_000_000).Format("2006-01-02T15:04:05Z07:00")})
	r.call("one", n(1), text("x"), Obj{"took": 7_200_000})
	require.Equal(t, "x", r.client("--fast").CallText("s_one", n(1)))
}

func TestHiddenSecretsMatchAnyTextAlways(t *testing.T) {
	t.Parallel()
	r := newTape(t)
	r.call("one", Obj{"key": "Bearer [hidden:0a1b2c3d]"}, text("got [hidden:0a1b2c3d]"))
	r.call("two", Obj{"key": "[hidden:0a1b2c3d]", "n": 1}, text("same"))
	c := r.client("--fast")
	require.Equal(t, `got a"b`, c.CallText("s_one", Obj{"key": `Bearer a"b`}))
	require.Equal(t, "same", c.CallText("s_two", Obj{"key": `a"b`, "n": 1}))
	message, _ := miss(t, c, arguments("two", Obj{"key": "other", "n": 1}))
	require.Contains(t, message, "arguments.key")
	miss(t, c, arguments("one", Obj{"key": "Basic x"}))
}

func TestSettingsOfTheRecordingApply(t *testing.T) {
	t.Parallel()
	r := newTape(t)
	r.lines[0]["settings"] = Obj{
		"gateway": Obj{"listen": "127.0.0.1:1", "pin": "strict", "namespace": "flat"},
		"servers": Obj{"s": Obj{
			"command": "/bin/false", "url": "http://127.0.0.1:1", "env": Obj{"A": "${cmd:touch x}"}, "tools": Obj{"deny": []string{"two"}},
			"overrides": Obj{"tools": Obj{"one": Obj{"name": "renamed", "description": "costs ${PRICE}", "arguments": Obj{"owner": "acme"}}}},
		}},
		"profiles": Obj{"none": Obj{"servers": []string{"x*"}}}, "unknown": true,
	}
	r.number++
	r.add(Obj{
		"type": "request", "n": 1, "server": "s", "method": "tools/call", "name": "s_renamed", "original": "one", "outcome": "success", "answered": true,
		"params": arguments("renamed", n(1)), "sent": Obj{"name": "one", "arguments": Obj{"n": 1, "owner": "acme"}}, "answer": text("x"),
	})
	// Settings hide the texts of overrides. The request has them.
	r.lines[0]["settings"].(Obj)["servers"].(Obj)["s"].(Obj)["overrides"].(Obj)["tools"].(Obj)["one"].(Obj)["arguments"].(Obj)["owner"] = "[hidden]"
	c := r.client("--fast")
	tools := c.List("tools")
	require.Len(t, tools, 1)
	require.Equal(t, "s_renamed", e2e.Str(tools[0], "name"))
	require.Equal(t, "costs ${PRICE}", e2e.Str(tools[0], "description"))
	require.Equal(t, "x", c.CallText("s_renamed", n(1)))
	message, _ := miss(t, c, arguments("renamed", n(2)))
	require.Contains(t, message, "arguments.n: recorded 1, got 2")
	other := r.w.Pipe("stdio", "--replay", r.path, "--profile", "none")
	other.Init()
	require.Empty(t, other.Names("tools"))
	require.Contains(t, r.w.Run("stdio", "--replay", r.path, "--profile", "nope").Stderr, `no profile "nope"`)
}

func TestRecordingsThatCannotBeReplayedAreRefused(t *testing.T) {
	t.Parallel()
	for reason, change := range map[string]Obj{
		"recorded without bodies":            {"bodies": false},
		"recorded by Goblin 0.1.0 in format": {"version": 99},
		"not a recording":                    {"type": "x"},
	} {
		r := newTape(t)
		for k, v := range change {
			r.lines[0][k] = v
		}
		for _, command := range []string{"stdio", "serve"} {
			out := r.w.Run(command, "--replay", r.write())
			require.Contains(t, out.Stderr, reason)
			require.Equal(t, e2e.ExitFailure, out.Code)
			require.Empty(t, out.Stdout)
		}
	}
	r := newTape(t)
	missing := r.w.Run("stdio", "--replay", "missing.jsonl")
	require.Equal(t, e2e.ExitNotFound, missing.Code)
	require.Contains(t, missing.Stderr, "missing.jsonl: no such recording")
	require.Equal(t, e2e.ExitUsage, r.w.Run("stdio", "--fast").Code)
}

func TestACutRecordingReplaysTheRest(t *testing.T) {
	t.Parallel()
	r := newTape(t)
	big := strings.Repeat("x", 100_000)
	r.call("one", n(1), r.sideFile(e2e.Marshal(text(big))))
	r.call("one", n(2), []Obj{{"$file": strings.Repeat("0", 64), "size": 1}})
	r.call("one", n(3), text("cut"))
	whole, err := os.ReadFile(r.write())
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(r.path, whole[:len(whole)-20], 0o600))
	c := r.w.Pipe("stdio", "--replay", r.path, "--fast")
	c.Init()
	require.Equal(t, big, c.CallText("s_one", n(1)))
	message, _ := miss(t, c, arguments("one", n(2)))
	require.Contains(t, message, "the answer cannot be read")
	miss(t, c, arguments("one", n(3)))
	require.True(t, c.Prog.Stderr.Holds(e2e.Patience, func() bool { return strings.Contains(c.Prog.Stderr.Text.String(), "last line is cut") }))
}

func TestARecordingWithoutSettingsIsReplayed(t *testing.T) {
	t.Parallel()
	r := newTape(t)
	delete(r.lines[0], "settings")
	r.call("one", n(1), text("x"))
	require.Equal(t, "x", r.client("--fast").CallText("s_one", n(1)))
}

func TestMissingPassesToTheRealServer(t *testing.T) {
	t.Parallel()
	r := newTape(t)
	r.call("one", n(1), text("recorded"))
	b := r.w.Backend("s", Obj{"tools": []Obj{e2e.Tool("one"), e2e.Tool("two")}, "on": Obj{
		"tools/call two": e2e.Actions(e2e.Do("request", Obj{"method": "elicitation/create", "params": e2e.Form}), e2e.Do("answers")),
	}})
	c := r.w.Pipe("stdio", "--replay", r.write(), "--fast", "--missing", "pass")
	c.Caps = Obj{"elicitation": Obj{"form": Obj{}}}
	c.Reply = func(e2e.Message) (any, any) { return Obj{"action": "decline"}, nil }
	c.Init()
	require.Equal(t, "recorded", c.CallText("s_one", n(1)))
	require.Empty(t, b.Procs, "the real server is not needed")
	require.Equal(t, `s:one:{"n":2}`, c.CallText("s_one", n(2)))
	require.Contains(t, c.CallText("s_two", n(1)), "decline")
	require.True(t, c.Prog.Stderr.Holds(e2e.Patience, func() bool { return strings.Contains(c.Prog.Stderr.Text.String(), "asking the real server") }))
}

func TestClientsOverHTTPGetTheRecording(t *testing.T) {
	t.Parallel()
	r := newTape(t)
	r.call("one", n(1), text("recorded"))
	r.w.Backend("s", Obj{"tools": []Obj{e2e.Tool("one")}})
	real := r.w.Serve() // the daemon of the same config
	web := r.w.Serve("--replay", r.write(), "--fast")
	require.NotEqual(t, real.Base, web.Base)
	for _, c := range []*e2e.Client{web.Client(false), web.Client(true)} {
		require.Equal(t, "recorded", c.CallText("s_one", n(1)))
	}
}

func TestRecordedCallsAreSentToRealServers(t *testing.T) {
	t.Parallel()
	r := newTape(t)
	readOnly := Obj{"annotations": Obj{"readOnlyHint": true}}
	b := r.w.Backend("s", Obj{"tools": []Obj{e2e.Tool("one", readOnly), e2e.Tool("two")}, "resources": []Obj{e2e.Resource("file:///a")}})
	r.call("one", n(1), text(`s:one:{"n":1}`))
	r.call("one", n(2), text("other"))
	r.call("two", n(1), text("x"))
	r.call("one", Obj{"key": "[hidden:0a1b2c3d]"}, text("x"))
	r.write()
	out := r.w.Run("replay", r.path, "--against", r.w.Config, "--exit-code")
	require.Equal(t, e2e.ExitFailure, out.Code, out.Stderr)
	require.Contains(t, out.Stdout, "#2 s_one: 1 difference\n")
	require.Contains(t, out.Stdout, "1 equal, 1 different, 1 skipped (not marked as read-only; --yes sends them), 1 unusable\n")
	for _, p := range b.Events {
		require.NotContains(t, string(p.Msg), `"two"`)
	}
	out = r.w.Run("replay", r.path, "--against", r.w.Config, "--exit-code", "--ignore", "result..text", "--json", "--yes")
	require.Zero(t, out.Code, out.Stderr)
	require.Contains(t, out.Stdout, `{"summary":{"equal":3,"differs":0,"skipped":0,"unusable":1}}`)
	require.Contains(t, r.w.Succeeds("replay", r.path+"#2", "--against", r.w.Config), "0 equal, 1 different\n")
	require.Contains(t, r.w.Succeeds("replay", r.path, "arg.n:1", "name:one", "--against", r.w.Config), "1 equal, 0 different\n")
	require.Contains(t, r.w.Run("replay", r.path, "ms:x", "--against", r.w.Config).Stderr, `filter "ms:x"`)
	require.Equal(t, e2e.ExitUsage, r.w.Run("replay", r.path).Code)
}

// A recording may name a tool that changes something in a way that looks harmless.
func TestARecordingDoesNotDecideWhatIsReadOnly(t *testing.T) {
	t.Parallel()
	readOnly := Obj{"annotations": Obj{"readOnlyHint": true}}
	r := newTape(t, Obj{"lists": Obj{"tools": []Obj{e2e.Tool("one"), e2e.Tool("two", readOnly)}}})
	b := r.w.Backend("s", Obj{"tools": []Obj{e2e.Tool("one", readOnly), e2e.Tool("two")}})
	r.request("tools/call", "s_one", "one", arguments("two", n(1)), text("x"))
	r.request("tools/call", "two", "two", Obj{"name": "two", "arguments": n(1)}, text("x"))
	out := r.w.Succeeds("replay", r.write(), "--against", r.w.Config)
	require.Contains(t, out, "2 skipped")
	require.Zero(t, b.Count("tools/call"))
}

// A recording's own settings must not open what the config denies, since its requests
// reach the real servers.
func TestRequestsToRealServersFollowTheConfig(t *testing.T) {
	t.Parallel()
	r := newTape(t, Obj{"lists": Obj{"tools": []Obj{e2e.Tool("one"), e2e.Tool("two"), e2e.Tool("stopped"), e2e.Tool("off"), e2e.Tool("fixed")}}})
	r.lines[0]["settings"] = Obj{"servers": Obj{"s": Obj{"overrides": Obj{"tools": Obj{"stopped": Obj{"name": "safe"}, "fixed": Obj{"arguments": Obj{"n": 9}}}}}}}
	b := r.w.Backend("s", Obj{"tools": []Obj{e2e.Tool("one"), e2e.Tool("off"), e2e.Tool("fixed", Obj{"inputSchema": Obj{"type": "object", "properties": Obj{"n": Obj{}}}})}}, Obj{
		"tools": Obj{"deny": []string{"two"}}, "overrides": Obj{"tools": Obj{"fixed": Obj{"arguments": Obj{"n": 1}}}},
	})
	r.w.Rules = []string{`{when: "name:s_stopped", then: deny}`}
	r.w.Gateway["auth_token"] = "t0ken-t0ken"
	r.w.Succeeds("tools", "off", "s_off")
	passing := []string{"--replay", r.write(), "--fast", "--missing", "pass"}
	c := r.w.Pipe(append([]string{"stdio"}, passing...)...)
	c.Init()
	for _, tool := range []string{"two", "stopped", "safe", "off"} {
		require.False(t, c.Works(Obj{"name": "s_" + tool, "arguments": Obj{}}), tool)
	}
	require.Equal(t, "s:one:{}", c.CallText("s_one", Obj{}))
	require.Equal(t, `s:fixed:{"n":1}`, c.CallText("s_fixed", Obj{}))
	require.Equal(t, 2, b.Count("tools/call"))

	web := r.w.Serve(passing...)
	require.Equal(t, 401, web.Do("POST", "/mcp", map[string]string{"Authorization": ""}, "{}").Status)

	for setting, change := range map[string]func(){
		`"pin: strict"`:        func() { r.w.Gateway["pin"] = "strict" },
		"reads hints of tools": func() { delete(r.w.Gateway, "pin"); r.w.Rules = []string{`{when: "destructive:yes", then: deny}`} },
	} {
		r.w.Edit(change)
		require.Contains(t, r.w.Run(append([]string{"stdio"}, passing...)...).Stderr, setting)
	}
}
