//go:build e2e

package profiles

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// ownTools are Goblin's own tools that are listed where they are needed.
var ownTools = []string{
	"catalog_prompts", "catalog_resource_templates", "catalog_resources", "catalog_servers", "catalog_tools",
	"describe_prompt", "describe_resource", "describe_tool", "execute_lua", "search_prompts", "search_resources", "search_tools",
}

// own returns the names of Goblin's own tools in a client's list. They come first.
func own(c *e2e.Client) (names []string) {
	for _, name := range c.Names("tools") {
		if !strings.Contains(name, "big_") {
			names = append(names, name)
		}
	}
	return names
}

// big is a server with the given number of entries of three kinds.
func big(entries int) e2e.Obj {
	o := e2e.Obj{
		"capabilities": e2e.Obj{"tools": e2e.Obj{}, "prompts": e2e.Obj{}, "resources": e2e.Obj{"listChanged": true}},
		"tools":        []e2e.Obj{e2e.Tool("weigh", e2e.Obj{"description": "weigh apples"})}, "prompts": []e2e.Obj{e2e.Prompt("p")},
	}
	var resources []e2e.Obj
	for n := range entries - 2 {
		resources = append(resources, e2e.Resource(fmt.Sprintf("file:///%d", n)))
	}
	o["resources"] = resources
	return o
}

func auto(t *testing.T, entries int) (*e2e.World, *e2e.Backend) {
	w := e2e.NewWorld(t)
	delete(w.Gateway, "meta_tools") // auto is the default
	return w, w.Backend("big", big(entries))
}

func TestOwnToolsAreListedWhereMoreThanSixtyEntriesAreSeen(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"flag, alone", "flag", "flag, stateless", "URL", "URL, stateless"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, back := auto(t, 60)
			c := ways()[name](w, "")
			require.Empty(t, own(c))
			fault := c.Fault("tools/call", e2e.Obj{"name": "search_tools", "arguments": e2e.Obj{"query": "weigh"}})
			require.Equal(t, "TOOL_NOT_FOUND", fault.Kind())
			require.Contains(t, fault.Message, `clients that see more than 60 entries: "meta_tools" of gateway is auto`)
			if c.Modern {
				c.ListenTo(e2e.Obj{"toolsListChanged": true})
				require.NotContains(t, string(c.Ok("server/discover", e2e.Obj{})), "search_tools")
			}
			c.Settle()
			c.Forget()

			back.Add("resources", e2e.Resource("file:///one-more"))
			back.ListChanged("resources")
			c.WaitNote("notifications/tools/list_changed", nil)
			require.Equal(t, ownTools, own(c))
			require.Contains(t, c.CallText("search_tools", e2e.Obj{"query": "weigh apples"}), "big_weigh")
			if c.Modern {
				require.Contains(t, string(c.Ok("server/discover", e2e.Obj{})), "Find tools and resources with search_tools and search_resources by keywords")
			}
			c.Forget()
			back.Remove("resources", "file:///one-more")
			back.ListChanged("resources")
			c.WaitNote("notifications/tools/list_changed", nil)
			require.Empty(t, own(c))
		})
	}
}

func TestAProfileSaysWhetherItNeedsOwnTools(t *testing.T) {
	t.Parallel()
	w, _ := auto(t, 61)
	w.Profiles = e2e.Obj{
		"few":   e2e.Obj{"resources": e2e.Obj{"deny": []string{"*/7"}}},
		"ask":   e2e.Obj{"resources": e2e.Obj{"deny": []string{"*"}}, "meta_tools": true},
		"some":  e2e.Obj{"meta_tools": []string{"search_tools", "call_tool"}},
		"none":  e2e.Obj{"meta_tools": false},
		"plain": e2e.Obj{},
	}
	for profile, want := range map[string][]string{
		"": ownTools, "few": nil, "ask": ownTools, "some": {"call_tool", "search_tools"}, "none": nil, "plain": ownTools,
	} {
		require.Equal(t, want, own(ways()["flag"](w, profile)), profile)
		list := w.Succeeds(append([]string{"list", "tools", "--json"}, strings.Fields("--profile " + profile)[:2*min(1, len(profile))]...)...)
		for _, name := range append([]string{"call_tool"}, ownTools...) {
			require.Equal(t, slices.Contains(want, name), strings.Contains(list, `"`+name+`"`), "%s: %s", profile, name)
		}
	}
	c := ways()["flag"](w, "few")
	c.Settle()
	w.Edit(func() { w.Gateway["meta_tools_above"] = 59 })
	c.WaitNote("notifications/tools/list_changed", nil)
	c.WaitListed("tools", "search_tools", true) // the edit is applied in steps
	require.Equal(t, ownTools, own(c))
}

// lean returns a world with a searched profile of a server with many tools.
func lean(t *testing.T) (*e2e.World, *e2e.Backend) {
	w := e2e.NewWorld(t)
	delete(w.Gateway, "meta_tools")
	shop := w.Backend("shop", e2e.Obj{
		"capabilities": e2e.Obj{"tools": e2e.Obj{"listChanged": true}, "prompts": e2e.Obj{"listChanged": true}, "resources": e2e.Obj{}},
		"tools": []e2e.Obj{
			e2e.Tool("weigh", e2e.Obj{"description": "weigh apples", "inputSchema": e2e.Obj{
				"type": "object", "properties": e2e.Obj{"kilos": e2e.Obj{"type": "integer"}, "boxes": e2e.Obj{"type": "array", "items": e2e.Obj{"enum": []string{"s", "l"}}}}, "required": []string{"kilos"},
			}}),
			e2e.Tool("gone"),
		},
		"prompts": []e2e.Obj{e2e.Prompt("p")}, "resources": []e2e.Obj{e2e.Resource("file:///a")},
	})
	w.Profiles = e2e.Obj{"lean": e2e.Obj{"expose": "search", "tools": e2e.Obj{"deny": []string{"gone"}}}}
	return w, shop
}

// through returns a call of a tool by call_tool.
func through(name string, args any) e2e.Obj {
	return e2e.Obj{"name": "call_tool", "arguments": e2e.Obj{"name": name, "arguments": args}}
}

func TestToolsThatAreNotListedAreFoundAndCalled(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"flag, alone", "flag, stateless", "URL", "URL, stateless", "rule", "default"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, back := lean(t)
			connect := ways()[name]
			if name == "default" {
				w.Profiles["default"] = w.Profiles["lean"]
				connect = ways()["rule"]
			}
			profile := "lean"
			if name == "default" {
				profile = ""
			}
			c := connect(w, profile)
			require.Equal(t, append([]string{"call_tool"}, ownTools...), c.Names("tools"), "and no other")
			require.Equal(t, []string{"shop/p"}, c.Names("prompts"))
			require.Contains(t, c.Names("resources"), e2e.In("shop", "file:///a"))

			found := c.CallText("search_tools", e2e.Obj{"query": "weigh apples"})
			require.Contains(t, found, `"shop_weigh"`)
			require.NotContains(t, c.CallText("search_tools", e2e.Obj{"query": "gone"}), "shop_gone")
			require.Contains(t, c.CallText("describe_tool", e2e.Obj{"name": "shop_weigh"}), `"kilos"`)
			for _, spelled := range []string{"shop_weigh", "shop/weigh", "weigh"} {
				args := e2e.Obj{"kilos": 3, "boxes": []string{"s"}}
				direct := c.Ok("tools/call", e2e.Obj{"name": spelled, "arguments": args})
				require.JSONEq(t, string(direct), string(c.Ok("tools/call", through(spelled, args))), spelled)
				require.Contains(t, e2e.Str(direct, "content", 0, "text"), "shop:weigh")
			}
			for _, m := range back.Received("tools/call") {
				require.Equal(t, "weigh", e2e.Str(m.Msg, "params", "name"))
				require.JSONEq(t, `{"kilos":3,"boxes":["s"]}`, string(e2e.At(m.Msg, "params", "arguments")))
			}
			require.Contains(t, c.CallText("call_tool", e2e.Obj{"name": "search_tools", "arguments": e2e.Obj{"query": "weigh"}}), "shop_weigh", "Goblin's own, too")
			require.Contains(t, c.CallText("execute_lua", e2e.Obj{"script": "return shop.weigh{kilos = 1}"}), "shop:weigh")

			before := back.Count("tools/call")
			for _, bad := range []struct {
				args any
				want string
			}{
				{e2e.Obj{"name": "shop_weihg"}, `TOOL_NOT_FOUND: unknown tool "shop_weihg"; did you mean "shop_weigh"?`},
				{e2e.Obj{"name": "shop_gone"}, `TOOL_NOT_FOUND: unknown tool "shop_gone"`},
				{e2e.Obj{"name": "shop_weigh", "arguments": e2e.Obj{"kilos": "much"}}, `INVALID_ARGUMENTS: /kilos must be integer, not "much"`},
				{e2e.Obj{"name": "shop_weigh", "arguments": e2e.Obj{"kilos": 1, "boxes": []string{"s", "m"}}}, `INVALID_ARGUMENTS: /boxes/1 must be one of "s", "l", not "m"`},
				{e2e.Obj{"name": "shop_weigh"}, `INVALID_ARGUMENTS: /kilos is missing`},
				{e2e.Obj{"name": "shop_weigh", "arguments": "kilos"}, `INVALID_ARGUMENTS: argument "arguments" must be an object, not "kilos"`},
				{e2e.Obj{"tool": "shop_weigh"}, `INVALID_ARGUMENTS: unknown argument "tool"; use name and arguments`},
				{e2e.Obj{}, `INVALID_ARGUMENTS: argument "name" is missing`},
				{e2e.Obj{"name": 7}, `INVALID_ARGUMENTS: argument "name" must be a string, not 7`},
				{e2e.Obj{"name": "call_tool"}, `INVALID_ARGUMENTS: call_tool cannot call itself`},
			} {
				result := c.Request("tools/call", e2e.Obj{"name": "call_tool", "arguments": bad.args}).Result
				require.Equal(t, "true", string(e2e.At(result, "isError")), "%s", e2e.Marshal(bad.args))
				require.True(t, strings.HasPrefix(e2e.Str(result, "content", 0, "text"), bad.want), "%s\n%s", bad.want, result)
			}
			require.Equal(t, "TOOL_NOT_FOUND", c.Fault("tools/call", e2e.Obj{"name": "shop_gone"}).Kind())
			require.Equal(t, before, back.Count("tools/call"), "no server is asked")
		})
	}
}

func TestWhatComesWithACallPassesThroughCallTool(t *testing.T) {
	e2e.OverEveryFront(t, func(t *testing.T, w *e2e.World, connect func(caps e2e.Obj) *e2e.Client) {
		w.Profiles = e2e.Obj{"default": e2e.Obj{"expose": "search"}}
		script := e2e.AskingServer("elicitation/create", e2e.Form)
		script["calls"] = e2e.Obj{"other": e2e.Obj{
			"isError": true, "content": []e2e.Obj{{"type": "text", "text": "sold out"}}, "structuredContent": e2e.Obj{"left": 0}, "_meta": e2e.Obj{"acme/id": 7},
		}}
		delete(script["on"].(e2e.Obj), "tools/call other")
		script["tools"] = append(script["tools"].([]e2e.Obj), e2e.Tool("steps"))
		script["on"].(e2e.Obj)["tools/call steps"] = e2e.Actions(e2e.Do("progress", e2e.Obj{"n": 2}), e2e.Do("text", e2e.Obj{"text": "done"}))
		back := w.Backend("b", script)
		c := connect(e2e.Obj{"elicitation": e2e.Obj{}})

		// The server's result is unchanged.
		params := through("b_other", e2e.Obj{})
		params["_meta"] = e2e.Obj{"acme/trace": "x"}
		result := c.Ok("tools/call", params)
		require.JSONEq(t, `{"left":0}`, string(e2e.At(result, "structuredContent")))
		require.Equal(t, "true", string(e2e.At(result, "isError")))
		require.Equal(t, "7", string(e2e.At(result, "_meta", "acme/id")))
		require.Equal(t, "x", e2e.Str(back.Received("tools/call")[0].Msg, "params", "_meta", "acme/trace"))

		// Progress carries the client's own token.
		params = through("b_steps", e2e.Obj{})
		params["_meta"] = e2e.Obj{"progressToken": "mine"}
		require.Equal(t, "done", e2e.Str(c.Ok("tools/call", params), "content", 0, "text"))
		c.WaitNote("notifications/progress", func(p json.RawMessage) bool { return e2e.Str(p, "progressToken") == "mine" })

		// A request from the server reaches the client that called.
		id := c.Begin("tools/call", through("b_ask", e2e.Obj{}))
		ask := c.WaitAsks(1)
		require.Equal(t, "elicitation/create", ask.Method)
		c.Answer(ask, func(e2e.Message) (any, any) {
			return e2e.Obj{"action": "accept", "content": e2e.Obj{}}, nil
		})
		require.Contains(t, string(c.End(id).Result), "accept")

		// So does the client's cancellation.
		id = c.Begin("tools/call", through("b_hang", e2e.Obj{}))
		back.WaitReceived("tools/call", 4)
		c.Notify("notifications/cancelled", e2e.Obj{"requestId": json.RawMessage(id)})
		back.WaitReceived("notifications/cancelled", 1)
	})
}

func TestQuestionsOfCallsWithoutSessionsAreAnsweredThroughCallTool(t *testing.T) {
	t.Parallel()
	for _, era := range []string{"", "modern"} {
		for _, name := range []string{"flag, stateless", "URL, stateless"} {
			t.Run("of a server "+era+" over "+name, func(t *testing.T) {
				t.Parallel()
				w := e2e.NewWorld(t)
				w.Profiles = e2e.Obj{"lean": e2e.Obj{"expose": "search"}}
				script := e2e.AskingServer("elicitation/create", e2e.Form)
				script["era"] = era
				back := w.Backend("b", script)
				c := ways()[name](w, "lean")
				c.Caps = e2e.Obj{"elicitation": e2e.Obj{}}
				state, keys := e2e.InputRequests(t, c.Request("tools/call", through("b_ask", e2e.Obj{"n": 1})))
				answered := func(n int) e2e.Message {
					again := through("b_ask", e2e.Obj{"n": n})
					again["requestState"], again["inputResponses"] = state, e2e.Obj{keys["elicitation/create"]: e2e.Accepted}
					return c.Request("tools/call", again)
				}
				if era == "" { // of another call's state; a modern server checks its own
					require.Equal(t, -32602, e2e.ParseError(t, answered(2)).Code)
				}
				end := answered(1)
				require.Contains(t, e2e.Str(end.Result, "content", 0, "text"), "Alice", end.Raw)
				for _, m := range back.Received("tools/call") {
					require.Equal(t, "ask", e2e.Str(m.Msg, "params", "name"))
					require.JSONEq(t, `{"n":1}`, string(e2e.At(m.Msg, "params", "arguments")))
				}
			})
		}
	}
}

func TestTasksBeginThroughCallTool(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"flag, alone", "flag", "URL"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			w.Profiles = e2e.Obj{"lean": e2e.Obj{"expose": "search"}}
			back := w.Backend("b", e2e.Obj{
				"tools": []e2e.Obj{tasked("keep", "weigh apples")}, "tasks": e2e.Obj{"keep": e2e.Obj{}},
				"on": e2e.Obj{"task keep": e2e.Actions(e2e.Do("wait", e2e.Obj{"name": "go"}), e2e.Do("text", e2e.Obj{"text": "done"}))},
			})
			c := ways()[name](w, "lean")
			params := through("b_keep", e2e.Obj{"n": 1})
			params["task"] = e2e.Obj{"ttl": 60000}
			id := e2e.Str(c.Ok("tools/call", params), "task", "taskId")
			require.Equal(t, "working", e2e.Str(c.Ok("tasks/get", e2e.Obj{"taskId": id}), "status"))
			require.JSONEq(t, `{"n":1}`, string(e2e.At(sentTo(back, "tools/call"), "arguments")))
			back.Do(e2e.Do("release", e2e.Obj{"name": "go"}))
			require.Equal(t, "done", e2e.Str(c.Ok("tasks/result", e2e.Obj{"taskId": id}), "content", 0, "text"))
		})
	}
}

func TestClientsThatSearchHearNothingOfTools(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"flag", "URL, stateless"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, back := lean(t)
			c := ways()[name](w, "lean")
			_ = c.Names("tools")
			_ = c.Names("prompts")
			if c.Modern {
				c.ListenTo(e2e.Obj{"toolsListChanged": true, "promptsListChanged": true})
			}
			c.Settle()
			c.Forget()
			back.Add("tools", e2e.Tool("more"))
			back.ListChanged("tools")
			e2e.Eventually(t, "it is called", func() bool {
				return strings.Contains(string(c.Request("tools/call", through("shop_more", e2e.Obj{})).Result), "shop:more")
			})
			c.Quiet()
			require.Empty(t, c.NotesOf("notifications/tools/list_changed"))
			back.Add("prompts", e2e.Prompt("q"))
			back.ListChanged("prompts")
			c.WaitNote("notifications/prompts/list_changed", nil)
			require.Empty(t, c.NotesOf("notifications/tools/list_changed"))
		})
	}
}
