package e2e

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// nest is a value of so many arrays and objects within each other.
func nest(depth int) json.RawMessage {
	inner := "1"
	if depth%2 == 1 {
		inner = "[]"
	}
	return json.RawMessage(strings.Repeat(`[{"a":`, depth/2) + inner + strings.Repeat(`}]`, depth/2))
}

// overFronts runs a test with clients of both eras over every way in, which meet
// servers over every way out.
func overFronts(t *testing.T, prepare func(w *world), test func(t *testing.T, w *world, c *client)) {
	t.Helper()
	t.Parallel()
	for name, connect := range map[string]func(w *world) *client{
		"standalone": func(w *world) *client { return w.standalone() },
		"bridge":     func(w *world) *client { return w.bridged() },
		"http":       func(w *world) *client { c := w.serve().rawClient(); c.init(); return c },
		"stateless":  func(w *world) *client { return w.pipe("stdio", "--standalone").stateless() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			prepare(w)
			test(t, w, connect(w))
		})
	}
}

func TestJSONOfClientsThatNestsTooDeeplyReachesNoServer(t *testing.T) {
	echo := obj{"tools": []obj{tool("t")}, "prompts": []obj{prompt("p")}, "on": obj{"tools/call t": actions(do("text", obj{"text": "called"}))}}
	overFronts(t, func(w *world) {
		w.backend("local", echo)
		w.remote("remote", "/mcp", echo)
	}, func(t *testing.T, w *world, c *client) {
		for _, server := range []string{"local", "remote"} {
			within := func(depth int) obj { return obj{"name": server + "_t", "arguments": obj{"a": nest(depth)}} }
			require.Contains(t, string(c.ok("tools/call", within(500))), "called")
			quoted := obj{"name": server + "_t", "arguments": obj{"a": string(nest(20_000))}}
			require.Contains(t, string(c.ok("tools/call", quoted)), "called", "what stands in a text does not count")
			for _, params := range []obj{
				within(513), within(1001), within(9000),
				{"name": server + "_t", "_meta": obj{"x/y": nest(600)}},
				{"name": server + "_t", "arguments": obj{}, "extra": obj{"b": nest(9001)}},
				{"name": server + "_t", "arguments": obj{"pad": strings.Repeat("x", 200_000), "a": nest(600)}},
			} {
				e := c.fault("tools/call", params)
				require.Equal(t, -32600, e.Code)
				require.Contains(t, e.Message, "more than 512 deep (limits.depth)")
			}
			require.Contains(t, string(c.ok("tools/call", within(10))), "called", "the connection lives")
		}
		for _, b := range w.backends {
			for _, told := range b.received("tools/call") {
				require.NotContains(t, string(told.Msg), strings.Repeat(`[{"a":`, 256))
			}
			require.Len(t, b.received("tools/call"), 3, b.name)
		}
	})
}

func TestJSONOfServersThatNestsTooDeeplyReachesNoClient(t *testing.T) {
	text := []obj{{"type": "text", "text": "within"}}
	result := func(depth int) []obj {
		return actions(do("result", obj{"result": obj{"content": text, "structuredContent": obj{"a": nest(depth)}}}))
	}
	note := func(depth int) []obj {
		return actions(do("notify", obj{"method": "notifications/message", "params": obj{"level": "error", "data": obj{"a": nest(depth)}}}), do("text", obj{"text": "told"}))
	}
	script := obj{
		"tools": []obj{tool("within"), tool("deep"), tool("deeper"), tool("meta"), tool("fault"), tool("note")},
		"on": obj{
			"tools/call within": result(500), "tools/call deep": result(513), "tools/call deeper": result(9000),
			"tools/call meta":  actions(do("result", obj{"result": obj{"content": text, "_meta": obj{"x/y": nest(600)}}})),
			"tools/call fault": actions(do("error", obj{"error": obj{"code": 7, "message": "no", "data": nest(600)}})),
			"tools/call note":  note(600),
		},
	}
	overFronts(t, func(w *world) {
		w.backend("local", script)
		w.remote("remote", "/mcp", script)
		w.remote("sse", "/sse", script, obj{"type": "sse"})
	}, func(t *testing.T, _ *world, c *client) {
		for _, server := range []string{"local", "remote", "sse"} {
			require.Contains(t, string(c.ok("tools/call", obj{"name": server + "_within"})), string(nest(500)))
			for _, name := range []string{"deep", "deeper", "meta", "fault"} {
				began := time.Now()
				m := c.request("tools/call", obj{"name": server + "_" + name})
				require.Contains(t, m.raw, "BAD_REPLY", "%s of %s", name, server)
				require.Contains(t, m.raw, "more than 512 deep (limits.depth)")
				require.NotContains(t, m.raw, string(nest(600)))
				require.Less(t, time.Since(began), 20*time.Second, "at once, not when it timed out")
			}
			require.Contains(t, string(c.ok("tools/call", obj{"name": server + "_note"})), "told")
		}
		for _, m := range c.notesOf("notifications/message") {
			require.NotContains(t, m.raw, string(nest(600)))
		}
	})
}

// A list, a question, an answer to one, and what a script makes are held to the
// bound, too, and it is that of the config.
func TestTheDepthOfJSONIsThatOfTheConfig(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.gateway["limits"] = obj{"depth": 40}
	form := func(depth int) obj {
		return obj{"message": "?", "requestedSchema": obj{"type": "object", "properties": obj{}, "x": nest(depth)}}
	}
	w.gateway["meta_tools"] = []string{"execute_lua"}
	b := w.backend("b", obj{
		"tools": []obj{tool("t"), tool("ask"), tool("askdeep")},
		"on": obj{
			"tools/call ask":     actions(do("request", obj{"method": "elicitation/create", "params": form(10)}), do("answers")),
			"tools/call askdeep": actions(do("request", obj{"method": "elicitation/create", "params": form(60)}), do("answers")),
		},
	})
	w.backend("list", obj{"tools": []obj{tool("t", obj{"inputSchema": obj{"type": "object", "x": nest(60)}})}, "prompts": []obj{prompt("p")}})
	w.gateway["startup_wait"] = "2s"
	c := w.pipe("stdio", "--standalone")
	c.caps = obj{"elicitation": obj{}}
	c.reply = func(message) (any, any) {
		return obj{"action": "accept", "content": obj{"deep": nest(60)}}, nil
	}
	c.init()
	c.waitListed("tools", "b_t", true)
	require.NotContains(t, c.names("tools"), "list_t")
	c.waitListed("prompts", "list/p", true)
	c.ok("tools/call", obj{"name": "b_t", "arguments": obj{"a": nest(36)}})
	require.Contains(t, c.fault("tools/call", obj{"name": "b_t", "arguments": obj{"a": nest(39)}}).Message, "more than 40 deep (limits.depth)")

	m := c.request("tools/call", obj{"name": "b_askdeep"})
	require.Contains(t, m.raw, "more than 40 deep", "the server hears it at once")
	require.Zero(t, len(c.asks), "and the client nothing")
	m = c.request("tools/call", obj{"name": "b_ask"})
	require.NotContains(t, m.raw, string(nest(60)))
	require.Contains(t, m.raw, "more than 40 deep", "an answer fails the question")

	calls := b.count("tools/call")
	script := `local v = {1} for i = 1, 60 do v = {v} end return b.t{a = v}`
	m = c.request("tools/call", obj{"name": "execute_lua", "arguments": obj{"script": script}})
	require.Contains(t, m.raw, `"isError":true`)
	require.Equal(t, calls, b.count("tools/call"))
	out := w.run("validate", "--config", w.config)
	require.Zero(t, out.code, out.stderr)
}
