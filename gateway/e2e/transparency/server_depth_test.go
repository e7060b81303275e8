//go:build e2e

package transparency

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

func TestJSONOfServersThatNestsTooDeeplyReachesNoClient(t *testing.T) {
	text := []e2e.Obj{{"type": "text", "text": "within"}}
	result := func(depth int) []e2e.Obj {
		return e2e.Actions(e2e.Do("result", e2e.Obj{"result": e2e.Obj{"content": text, "structuredContent": e2e.Obj{"a": nest(depth)}}}))
	}
	note := func(depth int) []e2e.Obj {
		return e2e.Actions(e2e.Do("notify", e2e.Obj{"method": "notifications/message", "params": e2e.Obj{"level": "error", "data": e2e.Obj{"a": nest(depth)}}}), e2e.Do("text", e2e.Obj{"text": "told"}))
	}
	script := e2e.Obj{
		"tools": []e2e.Obj{e2e.Tool("within"), e2e.Tool("deep"), e2e.Tool("deeper"), e2e.Tool("meta"), e2e.Tool("fault"), e2e.Tool("note")},
		"on": e2e.Obj{
			"tools/call within": result(500), "tools/call deep": result(513), "tools/call deeper": result(9000),
			"tools/call meta":  e2e.Actions(e2e.Do("result", e2e.Obj{"result": e2e.Obj{"content": text, "_meta": e2e.Obj{"x/y": nest(600)}}})),
			"tools/call fault": e2e.Actions(e2e.Do("error", e2e.Obj{"error": e2e.Obj{"code": 7, "message": "no", "data": nest(600)}})),
			"tools/call note":  note(600),
		},
	}
	overFronts(t, func(w *e2e.World) {
		w.Backend("local", script)
		w.Remote("remote", "/mcp", script)
		w.Remote("sse", "/sse", script, e2e.Obj{"type": "sse"})
	}, func(t *testing.T, _ *e2e.World, c *e2e.Client) {
		for _, server := range []string{"local", "remote", "sse"} {
			require.Contains(t, string(c.Ok("tools/call", e2e.Obj{"name": server + "_within"})), string(nest(500)))
			for _, name := range []string{"deep", "deeper", "meta", "fault"} {
				began := time.Now()
				m := c.Request("tools/call", e2e.Obj{"name": server + "_" + name})
				require.Contains(t, m.Raw, "BAD_REPLY", "%s of %s", name, server)
				require.Contains(t, m.Raw, "more than 512 deep (limits.depth)")
				require.NotContains(t, m.Raw, string(nest(600)))
				require.Less(t, time.Since(began), 20*time.Second, "at once, not when it timed out")
			}
			require.Contains(t, string(c.Ok("tools/call", e2e.Obj{"name": server + "_note"})), "told")
		}
		for _, m := range c.NotesOf("notifications/message") {
			require.NotContains(t, m.Raw, string(nest(600)))
		}
	})
}

// The limit of the config also applies to lists, requests from servers, their answers,
// and results of scripts.
func TestTheDepthOfJSONIsThatOfTheConfig(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Gateway["limits"] = e2e.Obj{"depth": 40}
	form := func(depth int) e2e.Obj {
		return e2e.Obj{"message": "?", "requestedSchema": e2e.Obj{"type": "object", "properties": e2e.Obj{}, "x": nest(depth)}}
	}
	w.Gateway["meta_tools"] = []string{"execute_lua"}
	b := w.Backend("b", e2e.Obj{
		"tools": []e2e.Obj{e2e.Tool("t"), e2e.Tool("ask"), e2e.Tool("askdeep")},
		"on": e2e.Obj{
			"tools/call ask":     e2e.Actions(e2e.Do("request", e2e.Obj{"method": "elicitation/create", "params": form(10)}), e2e.Do("answers")),
			"tools/call askdeep": e2e.Actions(e2e.Do("request", e2e.Obj{"method": "elicitation/create", "params": form(60)}), e2e.Do("answers")),
		},
	})
	w.Backend("list", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t", e2e.Obj{"inputSchema": e2e.Obj{"type": "object", "x": nest(60)}})}, "prompts": []e2e.Obj{e2e.Prompt("p")}})
	w.Gateway["startup_wait"] = "2s"
	c := w.Pipe("stdio", "--standalone")
	c.Caps = e2e.Obj{"elicitation": e2e.Obj{}}
	c.Reply = func(e2e.Message) (any, any) {
		return e2e.Obj{"action": "accept", "content": e2e.Obj{"deep": nest(60)}}, nil
	}
	c.Init()
	c.WaitListed("tools", "b_t", true)
	require.NotContains(t, c.Names("tools"), "list_t")
	c.WaitListed("prompts", "list/p", true)
	c.Ok("tools/call", e2e.Obj{"name": "b_t", "arguments": e2e.Obj{"a": nest(36)}})
	require.Contains(t, c.Fault("tools/call", e2e.Obj{"name": "b_t", "arguments": e2e.Obj{"a": nest(39)}}).Message, "more than 40 deep (limits.depth)")

	m := c.Request("tools/call", e2e.Obj{"name": "b_askdeep"})
	require.Contains(t, m.Raw, "more than 40 deep", "the server is notified at once")
	require.Zero(t, len(c.Asks), "and the client nothing")
	m = c.Request("tools/call", e2e.Obj{"name": "b_ask"})
	require.NotContains(t, m.Raw, string(nest(60)))
	require.Contains(t, m.Raw, "more than 40 deep", "a bad answer fails the request")

	calls := b.Count("tools/call")
	script := `local v = {1} for i = 1, 60 do v = {v} end return b.t{a = v}`
	m = c.Request("tools/call", e2e.Obj{"name": "execute_lua", "arguments": e2e.Obj{"script": script}})
	require.Contains(t, m.Raw, `"isError":true`)
	require.Equal(t, calls, b.Count("tools/call"))
	out := w.Run("validate", "--config", w.Config)
	require.Zero(t, out.Code, out.Stderr)
}
