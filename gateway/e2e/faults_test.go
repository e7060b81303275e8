package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// beside adds a healthy server to a world with a faulty one; fine shows that
// it does not suffer.
func (w *world) beside() *backend { return w.backend("fine", filesystem()) }

func (c *client) fine() {
	c.t.Helper()
	c.waitListed("tools", "fine_stat", true)
	var ids []string
	for range 20 {
		ids = append(ids, c.begin("tools/call", obj{"name": "fine_stat", "arguments": obj{}}))
	}
	for _, id := range ids {
		require.Equal(c.t, "fine:stat:{}", str(c.end(id).Result, "content", 0, "text"))
	}
}

func TestB01_B02_B05_ServersThatDoNotStart(t *testing.T) {
	for name, conf := range map[string]struct{ script, entry obj }{
		"crash-start": {obj{"on": obj{"start": actions(do("crash", obj{"code": 2, "text": "cannot open the database"}))}}, nil},
		"missing":     {obj{}, obj{"command": "no-such-program-anywhere"}},
		"fail-init":   {obj{"tools": []obj{tool("t")}, "on": obj{"initialize": actions(do("error", obj{"error": obj{"code": -32603, "message": "no licence"}}))}}, nil},
		"null-init":   {obj{"tools": []obj{tool("t")}, "on": obj{"initialize": actions(do("result", obj{"result": nil}))}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.gateway["startup_wait"] = "300ms"
			if conf.entry == nil {
				conf.entry = obj{}
			}
			w.backend("bad", conf.script, conf.entry)
			w.beside()
			c := w.standalone()
			c.fine()
			require.Len(t, c.names("tools"), 2)
			e := c.fault("tools/call", obj{"name": "bad_t"})
			require.Contains(t, e.Message, "bad")
			c.fine()
			eventually(t, "a log line that names the server", func() bool { return strings.Contains(c.prog.stderr.String(), "bad") })
		})
	}
}

func TestB03_FirstStartFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.gateway["startup_wait"] = "100ms"
	script := filesystem()
	script["on"] = obj{"start": actions(do("crash", obj{"code": 1, "starts": 2}))}
	b := w.backend("flaky", script)
	c := w.standalone()
	c.waitListed("tools", "flaky_stat", true)
	require.Equal(t, "flaky:stat:{}", c.callText("flaky_stat", obj{}))
	require.Equal(t, 3, b.starts())
}

func TestB04_HangingServerDelaysNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.gateway["startup_wait"] = "200ms"
	script := filesystem()
	script["on"] = obj{"initialize": actions(do("wait", obj{"name": "up"}))}
	b := w.backend("hang", script)
	w.beside()
	c := w.standalone()
	c.fine()
	require.Len(t, c.names("tools"), 2)
	b.do(do("release", obj{"name": "up"}))
	c.waitListed("tools", "hang_stat", true)
}

func TestStartupTimeoutEndsAHangingStart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.gateway["startup_wait"] = "50ms"
	script := filesystem()
	script["on"] = obj{"initialize": actions(do("hang", obj{"starts": 1}))}
	b := w.backend("hang", script, obj{"startup_timeout": "300ms"})
	c := w.standalone()
	b.waitStarts(2)
	c.waitListed("tools", "hang_stat", true)
	b.wait("the end of the first process", func() bool { return b.procs[0].gone })
}

func TestB08_B09_OddProtocolVersions(t *testing.T) {
	for name, version := range map[string]any{"unknown": "9999-99-99", "number": 7, "old": "2024-11-05"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.gateway["startup_wait"] = "500ms"
			script := filesystem()
			script["version"] = version
			w.backend("odd", script)
			w.beside()
			c := w.standalone()
			if name == "old" {
				c.waitListed("tools", "odd_stat", true)
				require.Equal(t, "odd:stat:{}", c.callText("odd_stat", obj{}))
			}
			c.fine()
		})
	}
}

func TestB10_B39_CrashInACall(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	script := filesystem()
	script["on"] = obj{
		"tools/call move": actions(do("wait", obj{"name": "never"})),
		"tools/call stat": actions(do("crash", obj{"code": 139, "times": 1, "starts": 1})),
	}
	b := w.backend("bad", script)
	w.beside()
	c := w.standalone()
	waiting := c.begin("tools/call", obj{"name": "bad_move"})
	b.waitEvent("wait", "never")
	for _, m := range []message{c.request("tools/call", obj{"name": "bad_stat"}), c.end(waiting)} {
		e := parseError(t, m)
		require.Equal(t, "CONNECTION_ERROR", e.kind())
		require.Contains(t, e.Message, "bad")
		require.Equal(t, "bad", str(e.Data, "server"))
	}
	c.fine()
	b.waitStarts(2)
	eventually(t, "the restarted server", func() bool {
		return c.request("tools/call", obj{"name": "bad_stat", "arguments": obj{}}).Error == nil
	})
	// Its entries stayed the same, so that nobody had to be told.
	require.Contains(t, c.names("tools"), "bad_stat")
}

func TestEntriesOfADownServerStayAndCallsFailAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	script := filesystem()
	script["on"] = obj{"start": actions(do("wait", obj{"name": "up", "after": 1}))}
	b := w.backend("bad", script, obj{"startup_timeout": "60s", "timeout": "60s"})
	c := w.standalone()
	require.Equal(t, "bad:stat:{}", c.callText("bad_stat", obj{}))
	b.do(do("crash", obj{"code": 1}))
	b.waitEvent("wait", "up")
	require.Contains(t, c.names("tools"), "bad_stat")
	require.Contains(t, c.names("resources"), in("bad", appLog))
	for range 3 { // sooner than any timeout
		e := c.fault("tools/call", obj{"name": "bad_stat"})
		require.Equal(t, "CONNECTION_ERROR", e.kind())
		require.Contains(t, e.Message, "bad")
	}
	b.do(do("release", obj{"name": "up"}))
	eventually(t, "the server", func() bool { return c.request("tools/call", obj{"name": "bad_stat"}).Error == nil })
}

func TestB11_DeathInTheMiddleOfALine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	script := filesystem()
	script["on"] = obj{"tools/call stat": actions(do("write", obj{"text": `{"jsonrpc":"2.0","id":`}), do("crash", obj{"starts": 1}))}
	b := w.backend("bad", script)
	c := w.standalone()
	require.Equal(t, "CONNECTION_ERROR", c.fault("tools/call", obj{"name": "bad_stat"}).kind())
	b.waitStarts(2)
	eventually(t, "the restarted server", func() bool {
		return c.request("tools/call", obj{"name": "bad_move", "arguments": obj{}}).Error == nil
	})
}

func TestB12_CrashLoopBacksOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.gateway["startup_wait"] = "50ms"
	b := w.backend("loop", obj{"on": obj{"start": actions(do("crash", obj{"code": 1}))}})
	w.beside()
	c := w.standalone()
	c.fine()
	b.waitStarts(3) // it does not give up
	first := time.Now()
	b.holds(3*time.Second, func() bool { return false }) // a window, not a synchronisation
	if took := time.Since(first); took < 6*time.Second {
		require.LessOrEqual(t, b.starts(), 15)
	}
}

func TestB13_B36_ServerThatEndsOrClosesItsOutput(t *testing.T) {
	for _, how := range []obj{do("crash", obj{"code": 0}), do("closeout")} {
		t.Run(fmt.Sprint(how["do"]), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			b := w.backend("bad", filesystem())
			c := w.standalone()
			require.Equal(t, "bad:stat:{}", c.callText("bad_stat", obj{}))
			b.doAt(b.waitStarts(1), how)
			b.waitStarts(2)
			eventually(t, "the restarted server", func() bool {
				return c.request("tools/call", obj{"name": "bad_stat", "arguments": obj{}}).Error == nil
			})
			b.wait("the end of the first process", func() bool { return b.procs[0].gone })
		})
	}
}

func TestB15_ManyHangingCallsDoNotBlockTheSameBackend(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backend("b", obj{"tools": []obj{tool("hang"), tool("t")}, "on": obj{"tools/call hang": actions(do("hang"))}}, obj{"timeout": "20s"})
	c := w.standalone()
	var ids []string
	for range 50 {
		ids = append(ids, c.begin("tools/call", obj{"name": "b_hang"}))
	}
	b.waitEvents("wait", "hang", 50)
	require.Equal(t, "b:t:{}", c.callText("b_t", obj{}))
	for _, id := range ids {
		c.notify("notifications/cancelled", obj{"requestId": json.RawMessage(id)})
	}
	b.waitEvents("gone", "hang", 50)
}

func TestB17_B30_B31_GarbageAndStrayAnswersAreSkipped(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backend("bad", obj{"tools": []obj{tool("t"), tool("twice")}, "on": obj{
		"start": actions(do("write", obj{"text": "Server listening on stdio!", "n": 50})),
		"tools/call t": actions(do("write", obj{"text": "debug: {\"not\": \"mcp\""}), do("write", obj{"text": ""}), do("write", obj{"text": "[1,2]"}),
			do("write", obj{"text": `{"jsonrpc":"2.0","id":987654321,"result":{}}`}), do("write", obj{"text": `{"jsonrpc":"2.0","id":"alien","error":{"code":1,"message":"x"}}`}),
			do("write", obj{"text": "\x1b[31mred\x07"})),
	}})
	c := w.standalone()
	require.Equal(t, "bad:t:{}", c.callText("bad_t", obj{}))
	// An answer that comes twice.
	asked := b.received("tools/call")[0]
	again := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}`, at(asked.Msg, "id"))
	b.do(do("write", obj{"text": again, "n": 3}))
	require.Equal(t, "bad:twice:{}", c.callText("bad_twice", obj{}))
	require.NotContains(t, c.prog.stderr.String(), "\x1b")
	require.Equal(t, 1, b.starts())
}

func TestB18_FloodOfStderrIsDrained(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	line := strings.Repeat("e", 8<<20)
	w.backend("loud", obj{"tools": []obj{tool("t")}, "on": obj{"tools/call t": actions(
		do("stderr", obj{"text": strings.Repeat("x", 1000), "n": 20000}), do("stderr", obj{"text": line}), do("stderr", obj{"text": "\x1b]0;title\x07"}),
	)}})
	c := w.standalone()
	require.Equal(t, "loud:t:{}", c.callText("loud_t", obj{}))
	require.Less(t, len(c.prog.stderr.String()), 4<<20)
	require.NotContains(t, c.prog.stderr.String(), "\x1b")
}

func TestB19_LargeResultIsWhole(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const size = 16 << 20
	w.backend("big", obj{"tools": []obj{tool("t")}, "on": obj{"tools/call t": actions(do("big", obj{"bytes": size}))}})
	w.beside()
	c := w.standalone()
	id := c.begin("tools/call", obj{"name": "big_t"})
	c.fine()
	require.Len(t, str(c.end(id).Result, "content", 0, "text"), size)
}

func TestB19_ResultOverTheFrameLimitIsAClearError(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.gateway["limits"] = obj{"frame": "1MiB"}
	w.backend("big", obj{"tools": []obj{tool("t"), tool("u")}, "on": obj{"tools/call t": actions(do("big", obj{"bytes": 3 << 20}))}})
	c := w.standalone()
	e := c.fault("tools/call", obj{"name": "big_t"})
	require.Equal(t, -32603, e.Code)
	require.Equal(t, "BAD_REPLY", e.kind())
	require.Contains(t, e.Message, "big")
	require.Equal(t, "big:u:{}", c.callText("big_u", obj{}))
}

func TestB22_InvalidUTF8OfABackend(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	// A script is JSON and cannot hold such bytes; a surrogate alone can be escaped.
	w.backend("b", obj{"tools": []obj{tool("t")}, "calls": obj{"t": json.RawMessage(`{"content":[{"type":"text","text":"\ud800x"}]}`)}})
	c := w.standalone()
	m := c.request("tools/call", obj{"name": "b_t"})
	require.Nil(t, m.Error)
	require.Contains(t, m.raw, `\ud800x`)
}

func TestB23_to_B26_OddEntriesNeverCostTheList(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	raw := func(all ...string) []json.RawMessage {
		var out []json.RawMessage
		for _, s := range all {
			out = append(out, json.RawMessage(s))
		}
		return out
	}
	w.backend("odd", obj{
		"tools": raw(`{"name":"good","inputSchema":{"type":"object"}}`, `null`, `7`, `"text"`, `[]`, `{}`, `{"name":7}`, `{"name":""}`,
			`{"name":"good","inputSchema":{"type":"object"},"description":"again"}`, `{"name":"union","inputSchema":{"type":["object","null"]}}`,
			`{"name":"`+strings.Repeat("n", 10_000)+`","inputSchema":{"type":"object"}}`),
		"resources": raw(`{"uri":"x:good","name":"g"}`, `null`, `{"name":"no uri"}`, `{"uri":7,"name":"n"}`, `{"uri":"x:good","name":"again"}`,
			`{"uri":"x:size","name":"s","size":"big"}`),
		"prompts":   raw(`{"name":"good"}`, `null`, `{}`, `{"name":null}`),
		"templates": raw(`{"uriTemplate":"x:{good}","name":"g"}`, `{"uriTemplate":"x:{bad","name":"b"}`, `null`, `{}`),
	})
	w.beside()
	c := w.standalone()
	tools := c.names("tools")
	require.Contains(t, tools, "odd_good")
	require.Contains(t, tools, "odd_union")
	require.Equal(t, 1, count(tools, "odd_good"))
	for _, name := range tools {
		require.LessOrEqual(t, len(name), 64)
		require.NotEmpty(t, strings.TrimPrefix(name, "odd_"))
	}
	resources := c.names("resources")
	require.Equal(t, 1, count(resources, in("odd", "x:good")))
	require.Contains(t, resources, in("odd", "x:size"))
	require.Contains(t, c.names("prompts"), "odd/good")
	require.Contains(t, c.names("templates"), in("odd", "x:{good}"))
	for _, kind := range []string{"tools", "resources", "prompts", "templates"} {
		for _, e := range c.list(kind) {
			require.True(t, strings.HasPrefix(string(e), "{"), "%s: %s", kind, e)
		}
	}
	c.fine()
}

func count(all []string, one string) int {
	n := 0
	for _, s := range all {
		if s == one {
			n++
		}
	}
	return n
}

func TestB26_ListsOfTheWrongShape(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.gateway["startup_wait"] = "1s"
	w.backend("odd", obj{"tools": []obj{}, "prompts": []obj{prompt("p")}, "resources": []obj{}, "on": obj{
		"tools/list":     actions(do("result", obj{"result": obj{"tools": obj{"a": 1}}})),
		"resources/list": actions(do("result", obj{"result": []int{1}})),
	}})
	w.beside()
	c := w.standalone()
	c.fine()
	c.waitListed("prompts", "odd/p", true)
	require.Equal(t, []string{"fine_move", "fine_stat"}, c.names("tools"))
	require.Len(t, c.names("resources"), 2)
}

func TestB27_ManyTools(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.backend("many", obj{"tools": []obj{}, "generate": obj{"tools": 5000}, "pagesize": 100})
	c := w.standalone()
	names := c.names("tools")
	require.Len(t, names, 5000)
	require.True(t, slices.IsSorted(names))
	require.Equal(t, "many:tool_004999:{}", c.callText("many_tool_004999", obj{}))
}

func TestB28_B29_EndlessPagesAreStopped(t *testing.T) {
	for name, page := range map[string][]obj{
		"same cursor": actions(do("result", obj{"result": obj{"tools": []obj{tool("a")}, "nextCursor": "again"}})),
		"new cursor":  nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.gateway["startup_wait"] = "8s"
			w.gateway["limits"] = obj{"pages": 20}
			script := obj{"tools": []obj{}, "pagesize": 1, "generate": obj{"tools": 3000}}
			if page != nil {
				script["on"] = obj{"tools/list": page}
			}
			b := w.backend("endless", script)
			w.beside()
			c := w.standalone()
			c.fine()
			require.LessOrEqual(t, b.count("tools/list"), 25*b.starts())
		})
	}
}

func TestB32_FloodOfNotices(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backend("flood", filesystem())
	c := w.standalone()
	require.Len(t, c.names("tools"), 2)
	c.ok("resources/subscribe", obj{"uri": in("flood", appLog)})
	b.do(do("notify", obj{"method": "notifications/tools/list_changed", "n": 20_000}))
	b.do(do("notify", obj{"method": "notifications/resources/updated", "params": obj{"uri": appLog}, "n": 20_000}))
	require.Equal(t, "flood:stat:{}", c.callText("flood_stat", obj{}))
	c.waitUpdates(1)
	require.LessOrEqual(t, b.count("tools/list"), 500)
	require.LessOrEqual(t, len(c.notesOf("notifications/tools/list_changed")), 500)
}

func TestB33_B34_CapabilitiesThatLieOrLack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	lie := filesystem()
	lie["capabilities"] = obj{"prompts": obj{}, "tools": obj{}, "resources": obj{"subscribe": true}, "completions": obj{}}
	lie["on"] = obj{"prompts/list": actions(do("error", obj{"error": obj{"code": -32601, "message": "Method not found"}}))}
	w.backend("lie", lie)
	w.backend("none", obj{"capabilities": obj{}})
	c := w.standalone()
	require.Equal(t, []string{"lie_move", "lie_stat"}, c.names("tools"))
	require.Empty(t, c.names("prompts"))
	require.Equal(t, "lie:stat:{}", c.callText("lie_stat", obj{}))
}

func TestB35_ServerThatStopsReading(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	script := filesystem()
	script["ignoreterm"] = true
	b := w.backend("deaf", script, obj{"timeout": "500ms"})
	w.beside()
	c := w.standalone()
	require.Equal(t, "deaf:stat:{}", c.callText("deaf_stat", obj{}))
	b.do(do("deaf"))
	big := strings.Repeat("x", 1<<20)
	for range 3 { // the first may still be read
		m := c.request("tools/call", obj{"name": "deaf_move", "arguments": obj{"x": big}})
		if m.Error != nil {
			require.Contains(t, []string{"REQUEST_TIMEOUT", "CONNECTION_ERROR"}, parseError(t, m).kind())
		}
	}
	require.NotNil(t, c.request("tools/call", obj{"name": "deaf_move", "arguments": obj{"x": big}}).Error)
	c.fine()
	c.close()
	c.prog.ends(15 * time.Second)
	b.waitGone()
}

func TestDisabledServerIsNotStarted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backend("off", filesystem(), obj{"disabled": true})
	w.beside()
	c := w.standalone()
	require.Equal(t, []string{"fine_move", "fine_stat"}, c.names("tools"))
	require.Equal(t, "fine "+appLog, c.readText(appLog), "a disabled server owns no raw URIs")
	require.Zero(t, b.starts())
	require.Contains(t, w.succeeds("list", "servers"), "off")
}

func TestEntriesLeaveAfterTheGraceTime(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes the grace time of 30 s")
	}
	t.Parallel()
	w := newWorld(t)
	script := filesystem()
	script["on"] = obj{"start": actions(do("crash", obj{"code": 1, "after": 1}))}
	b := w.backend("bad", script)
	w.beside()
	c := w.standalone()
	require.Contains(t, c.names("tools"), "bad_stat")
	c.settle()
	b.doAt(b.waitStarts(1), do("crash", obj{"code": 1}))
	b.waitStarts(2)
	require.Contains(t, c.names("tools"), "bad_stat")
	require.True(t, c.holds(2*patience, func() bool {
		for _, m := range c.notes {
			if m.Method == "notifications/tools/list_changed" {
				return true
			}
		}
		return false
	}), "the clients are told")
	c.waitListed("tools", "bad_stat", false)
	c.waitListed("resources", in("bad", appLog), false)
	require.Contains(t, c.names("tools"), "fine_stat")
}
