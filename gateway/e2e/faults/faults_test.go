//go:build e2e || faults

package faults

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

func TestStartupTimeoutEndsAHangingStart(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Gateway["startup_wait"] = "50ms"
	script := e2e.Filesystem()
	script["on"] = e2e.Obj{"initialize": e2e.Actions(e2e.Do("hang", e2e.Obj{"starts": 1}))}
	b := w.Backend("hang", script, e2e.Obj{"startup_timeout": "300ms"})
	c := w.Standalone()
	b.WaitStarts(2)
	c.WaitListed("tools", "hang_stat", true)
	b.Wait("the end of the first process", func() bool { return b.Procs[0].Gone })
}

func TestEntriesOfADownServerStayAndCallsWaitForItsRestartALittle(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	script := e2e.Filesystem()
	script["on"] = e2e.Obj{"start": e2e.Actions(e2e.Do("wait", e2e.Obj{"name": "up", "after": 1}))}
	b := w.Backend("bad", script, e2e.Obj{"startup_timeout": "60s", "timeout": "60s"})
	c := w.Standalone()
	require.Equal(t, "bad:stat:{}", c.CallText("bad_stat", e2e.Obj{}))
	b.Do(e2e.Do("crash", e2e.Obj{"code": 1}))
	b.WaitEvent("wait", "up")
	require.Contains(t, c.Names("tools"), "bad_stat")
	require.Contains(t, c.Names("resources"), e2e.In("bad", e2e.AppLog))
	began := time.Now()
	e := c.Fails(e2e.Obj{"name": "bad_stat"})
	require.Equal(t, "CONNECTION_ERROR", e.Kind())
	require.Contains(t, e.Message, `server "bad": is being restarted: `)
	require.GreaterOrEqual(t, time.Since(began), 2*time.Second)
	b.Do(e2e.Do("release", e2e.Obj{"name": "up"}))
	e2e.Eventually(t, "the server", func() bool { return c.Works(e2e.Obj{"name": "bad_stat"}) })
}

func TestB23_to_B26_OddEntriesOfAnyKindNeverCostTheList(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	raw := func(all ...string) []json.RawMessage {
		var out []json.RawMessage
		for _, s := range all {
			out = append(out, json.RawMessage(s))
		}
		return out
	}
	w.Backend("odd", e2e.Obj{
		"tools": raw(`{"name":"good","inputSchema":{"type":"object"}}`, `null`, `7`, `"text"`, `[]`, `{}`, `{"name":7}`, `{"name":""}`,
			`{"name":"good","inputSchema":{"type":"object"},"description":"again"}`, `{"name":"union","inputSchema":{"type":["object","null"]}}`,
			`{"name":"`+strings.Repeat("n", 10_000)+`","inputSchema":{"type":"object"}}`),
		"resources": raw(`{"uri":"x:good","name":"g"}`, `null`, `{"name":"no uri"}`, `{"uri":7,"name":"n"}`, `{"uri":"x:good","name":"again"}`,
			`{"uri":"x:size","name":"s","size":"big"}`),
		"prompts":   raw(`{"name":"good"}`, `null`, `{}`, `{"name":null}`),
		"templates": raw(`{"uriTemplate":"x:{good}","name":"g"}`, `{"uriTemplate":"x:{bad","name":"b"}`, `null`, `{}`),
	})
	w.HealthyServer()
	c := w.Standalone()
	tools := c.Names("tools")
	require.Contains(t, tools, "odd_good")
	require.Contains(t, tools, "odd_union")
	require.Equal(t, 1, e2e.Count(tools, "odd_good"))
	for _, name := range tools {
		require.LessOrEqual(t, len(name), 51)
		require.NotEmpty(t, strings.TrimPrefix(name, "odd_"))
	}
	resources := c.Names("resources")
	require.Equal(t, 1, e2e.Count(resources, e2e.In("odd", "x:good")))
	require.Contains(t, resources, e2e.In("odd", "x:size"))
	require.Contains(t, c.Names("prompts"), "odd/good")
	require.Contains(t, c.Names("templates"), e2e.In("odd", "x:{good}"))
	for _, kind := range []string{"tools", "resources", "prompts", "templates"} {
		for _, e := range c.List(kind) {
			require.True(t, strings.HasPrefix(string(e), "{"), "%s: %s", kind, e)
		}
	}
	c.CallHealthyServer()
}

func TestB19_ResultOverTheFrameLimitIsAClearError(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Gateway["limits"] = e2e.Obj{"frame": "1MiB"}
	w.Backend("big", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t"), e2e.Tool("u")}, "on": e2e.Obj{"tools/call t": e2e.Actions(e2e.Do("big", e2e.Obj{"bytes": 3 << 20}))}})
	c := w.Standalone()
	e := c.Fails(e2e.Obj{"name": "big_t"})
	require.Equal(t, "BAD_REPLY", e.Kind())
	require.Contains(t, e.Message, "big")
	require.Equal(t, "big:u:{}", c.CallText("big_u", e2e.Obj{}))
}

func TestB22_EscapedSurrogatesPassAsTheyAre(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}, "calls": e2e.Obj{"t": json.RawMessage(`{"content":[{"type":"text","text":"\ud800x"}]}`)}})
	c := w.Standalone()
	m := c.Request("tools/call", e2e.Obj{"name": "b_t"})
	require.Nil(t, m.Error)
	require.Contains(t, m.Raw, `\ud800x`)
}

func TestB26_ListsOfTheWrongShapeLeaveTheOtherKinds(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Gateway["startup_wait"] = "1s"
	w.Backend("odd", e2e.Obj{"tools": []e2e.Obj{}, "prompts": []e2e.Obj{e2e.Prompt("p")}, "resources": []e2e.Obj{}, "on": e2e.Obj{
		"tools/list":     e2e.Actions(e2e.Do("result", e2e.Obj{"result": e2e.Obj{"tools": e2e.Obj{"a": 1}}})),
		"resources/list": e2e.Actions(e2e.Do("result", e2e.Obj{"result": []int{1}})),
	}})
	w.HealthyServer()
	c := w.Standalone()
	c.CallHealthyServer()
	c.WaitListed("prompts", "odd/p", true)
	require.Equal(t, []string{"fine_move", "fine_stat"}, c.Names("tools"))
	require.Len(t, c.Names("resources"), 2)
}

func TestServerOfAnOldRevisionIsUsed(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	script := e2e.Filesystem()
	script["version"] = "2024-11-05"
	w.Backend("old", script)
	c := w.Standalone()
	require.Equal(t, "old:stat:{}", c.CallText("old_stat", e2e.Obj{}))
}

func TestDisabledServerIsNotStarted(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("off", e2e.Filesystem(), e2e.Obj{"disabled": true})
	w.HealthyServer()
	c := w.Standalone()
	require.Equal(t, []string{"fine_move", "fine_stat"}, c.Names("tools"))
	require.Equal(t, "fine "+e2e.AppLog, c.ReadText(e2e.AppLog), "a disabled server owns no raw URIs")
	require.Zero(t, b.Starts())
	require.Contains(t, w.Succeeds("list", "servers"), "off")
}
