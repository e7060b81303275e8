package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// beside adds a healthy server to a world with an odd one; fine shows that it
// does not suffer.
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

func TestServerOfAnOldRevisionIsUsed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	script := filesystem()
	script["version"] = "2024-11-05"
	w.backend("old", script)
	c := w.standalone()
	require.Equal(t, "old:stat:{}", c.callText("old_stat", obj{}))
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

func TestB22_EscapedSurrogatesPassAsTheyAre(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.backend("b", obj{"tools": []obj{tool("t")}, "calls": obj{"t": json.RawMessage(`{"content":[{"type":"text","text":"\ud800x"}]}`)}})
	c := w.standalone()
	m := c.request("tools/call", obj{"name": "b_t"})
	require.Nil(t, m.Error)
	require.Contains(t, m.raw, `\ud800x`)
}

func TestB23_to_B26_OddEntriesOfAnyKindNeverCostTheList(t *testing.T) {
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

func TestB26_ListsOfTheWrongShapeLeaveTheOtherKinds(t *testing.T) {
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
