//go:build e2e

package calls

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

func TestScriptsRunInTheNameOfTheirClient(t *testing.T) {
	e2e.OverEveryFront(t, func(t *testing.T, w *e2e.World, connect func(e2e.Obj) *e2e.Client) {
		w.Backend("b", e2e.AskingServer("elicitation/create", e2e.Form))
		c := connect(e2e.Obj{"elicitation": e2e.Obj{}})
		id := c.Begin("tools/call", e2e.Obj{"name": "execute_lua", "arguments": e2e.Obj{"script": `return b.ask{}`}})
		question := c.WaitAsks(1)
		require.Equal(t, "elicitation/create", question.Method)
		c.Answer(question, func(e2e.Message) (any, any) { return e2e.Accepted, nil })
		end := c.End(id)
		require.Nil(t, end.Error, "%s", end.Raw)
		require.Contains(t, string(end.Result), "Alice")
		require.Contains(t, connect(e2e.Obj{}).LuaText(`return json.encode({b.ask{}})`), "elicitation", "another client cannot be asked")
	})
}

func TestWaitForAHumanCountsNeitherAgainstAScriptNorAgainstItsServer(t *testing.T) {
	t.Parallel()
	e2e.WithGrowingLimit(t, func(limit time.Duration) string {
		w := e2e.WithMeta(t)
		w.Lua = e2e.Obj{"timeout": limit.String()}
		w.Backend("b", e2e.AskingServer("elicitation/create", e2e.Form), e2e.Obj{"timeout": (2 * limit).String()})
		c := w.Socket()
		c.Caps = e2e.Obj{"elicitation": e2e.Obj{}}
		c.Init()
		id := c.Begin("tools/call", e2e.Obj{"name": "execute_lua", "arguments": e2e.Obj{"script": `return b.ask{}`}})
		question, ok := c.AskedBy(id)
		if !ok {
			return string(c.End(id).Raw)
		}
		// Scripts that wait for no user reach both limits meanwhile.
		require.Contains(t, c.LuaFails(`b.hang{}`), "(lua.timeout)")
		require.Equal(t, "REQUEST_TIMEOUT", c.Fails(e2e.Obj{"name": "b_hang"}).Kind())
		c.Answer(question, func(e2e.Message) (any, any) { return e2e.Accepted, nil })
		end := c.End(id)
		if end.Failed() || e2e.At(end.Result, "isError") != nil {
			return string(end.Raw)
		}
		require.Contains(t, string(end.Result), "Alice")
		return ""
	})
}

func TestQuestionsOfAModernBackendReachTheClientOfTheScript(t *testing.T) {
	e2e.OverEveryFront(t, func(t *testing.T, w *e2e.World, connect func(e2e.Obj) *e2e.Client) {
		script := e2e.AskingServer("elicitation/create", e2e.Form)
		script["era"] = "modern"
		w.Backend("b", script)
		c := connect(e2e.Obj{"elicitation": e2e.Obj{}})
		id := c.Begin("tools/call", e2e.Obj{"name": "execute_lua", "arguments": e2e.Obj{"script": `return b.ask{}`}})
		c.Answer(c.WaitAsks(1), func(e2e.Message) (any, any) { return e2e.Accepted, nil })
		require.Contains(t, string(c.End(id).Result), "Alice")
	})
}

// Clients of 2026-07-28 over HTTP share a session, but count as several clients.
func TestScriptsOfOneStatelessClientLeaveRoomForOthers(t *testing.T) {
	t.Parallel()
	w := e2e.WithMeta(t)
	w.Lua = e2e.Obj{"timeout": "10m"}
	b := w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("slow")}, "on": e2e.Obj{
		"tools/call slow": e2e.Actions(e2e.Do("wait", e2e.Obj{"name": "go"})),
	}}, e2e.Obj{"call_timeout": "10m"})
	s := w.Served()
	busy, other := s.Named("busy"), s.Named("other")
	var ids []string
	for range 9 { // one more than run at a time
		ids = append(ids, busy.Begin("tools/call", e2e.Obj{"name": "execute_lua", "arguments": e2e.Obj{"script": `b.slow{} return 1`}}))
	}
	b.WaitEvents("wait", "go", 8)
	require.Equal(t, "1", other.LuaText(`return 1`))
	require.Equal(t, 8, b.Count("tools/call"), "the busy client's last call still waits")
	b.Do(e2e.Do("release", e2e.Obj{"name": "go"}))
	for _, id := range ids {
		require.Nil(t, busy.End(id).Error)
	}
}

func TestProgressOfAScriptCountsItsCalls(t *testing.T) {
	e2e.OverEveryFront(t, func(t *testing.T, w *e2e.World, connect func(e2e.Obj) *e2e.Client) {
		b := w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}})
		c := connect(e2e.Obj{})
		m := c.Request("tools/call", e2e.Obj{
			"name": "execute_lua", "arguments": e2e.Obj{"script": `b.t{} b.t{} b.t{} return 1`}, "_meta": e2e.Obj{"progressToken": "p"},
		})
		require.Nil(t, m.Error, "%s", m.Raw)
		notes := c.NotesOf("notifications/progress")
		require.Len(t, notes, 3)
		for i, n := range notes {
			require.Equal(t, "p", e2e.Str(n.Params, "progressToken"))
			require.Equal(t, fmt.Sprint(i+1), string(e2e.At(n.Params, "progress")))
			require.Less(t, n.Seq, m.Seq)
		}
		require.Equal(t, 3, b.Count("tools/call"))
	})
}

func TestProgressExtendsTheTimeOfAScriptsCall(t *testing.T) {
	t.Parallel()
	e2e.WithGrowingLimit(t, func(limit time.Duration) string {
		w := e2e.WithMeta(t)
		w.Lua = e2e.Obj{"timeout": (20 * limit).String()}
		b := w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("steps")}, "on": e2e.Obj{
			"tools/call steps": e2e.Actions(e2e.Do("progress", e2e.Obj{"n": 12, "ms": limit.Milliseconds() / 6})),
		}}, e2e.Obj{"timeout": limit.String()})
		c := w.Socket()
		c.Init()
		result := c.Lua(`b.steps{} return 1`)
		if e2e.At(result, "isError") != nil {
			return string(result)
		}
		require.Equal(t, `1`, e2e.Str(result, "content", 0, "text"))
		require.Equal(t, 1, b.Count("tools/call"))
		return ""
	})
}

func TestCallsOfScriptsUseTheirClientsOwnConnection(t *testing.T) {
	e2e.OverEveryFront(t, func(t *testing.T, w *e2e.World, connect func(e2e.Obj) *e2e.Client) {
		b := w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}}, e2e.Obj{"isolation": "session"})
		c := connect(e2e.Obj{})
		c.CallText("b_t", e2e.Obj{})
		starts := b.Starts()
		c.LuaText(`b.t{} return 1`)
		require.Equal(t, starts, b.Starts(), "the process that its calls use, too")
		connect(e2e.Obj{}).LuaText(`b.t{} return 1`)
		require.Equal(t, starts+1, b.Starts())
	})
}

func TestScriptsRunNoScripts(t *testing.T) {
	t.Parallel()
	w := e2e.WithMeta(t)
	c := w.Standalone()
	require.Contains(t, c.LuaText(`return tostring(select(2, pcall(function() return servers.goblin.execute_lua{script = "return 1"} end)))`), `unknown server "goblin"`)
}

func TestCallsOfScriptsAreCounted(t *testing.T) {
	t.Parallel()
	w := e2e.WithMeta(t)
	w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}})
	s := w.Served()
	c := s.Client(false)
	c.LuaText(`b.t{} b.t{} return 1`)
	s.Counts("2", `mcp_requests_total{method="tools/call",server_id="b",status="success"}`)
	s.Counts("1", `mcp_requests_total{method="tools/call",server_id="goblin",status="success"}`)
}

func TestIsolationOverHTTPEndsWithTheSession(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("own", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}}, e2e.Obj{"isolation": "session"})
	s := w.Served()
	c1, c2 := s.Client(false), s.Client(false)
	for _, c := range []*e2e.Client{c1, c2} {
		require.Equal(t, "own:t:{}", c.CallText("own_t", e2e.Obj{}))
	}
	calls := b.Received("tools/call")
	require.Len(t, calls, 2)
	require.NotSame(t, calls[0].Proc, calls[1].Proc)
	require.Less(t, s.Do("DELETE", "/mcp", map[string]string{"Mcp-Session-Id": c2.Web.Id}, "").Status, 300)
	b.Wait("the end of the second session's process", func() bool { return calls[1].Proc.Gone })
	require.Equal(t, "own:t:{}", c1.CallText("own_t", e2e.Obj{}))
	require.Contains(t, b.Live(), calls[0].Proc)
}
