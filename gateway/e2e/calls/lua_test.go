//go:build e2e

package calls

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// structured is a result of a tool with a structured value.
func structured(value e2e.Obj) e2e.Obj {
	return e2e.Obj{"content": []e2e.Obj{{"type": "text", "text": string(e2e.Marshal(value))}}, "structuredContent": value}
}

func calculator() e2e.Obj {
	return e2e.Obj{
		"tools": []e2e.Obj{e2e.Tool("add"), e2e.Tool("fail"), e2e.Tool("list"), e2e.Tool("json"), e2e.Tool("echo-it")},
		"calls": e2e.Obj{
			"add":  structured(e2e.Obj{"sum": 30}),
			"json": e2e.Obj{"content": []e2e.Obj{{"type": "text", "text": `{"from":"text"}`}}},
			"fail": e2e.Obj{"isError": true, "content": []e2e.Obj{{"type": "text", "text": "cannot divide"}}},
		},
		"resources": []e2e.Obj{e2e.Resource("file:///data.json")},
		"prompts":   []e2e.Obj{e2e.Prompt("help")},
		"reads":     e2e.Obj{"file:///data.json": []e2e.Obj{{"uri": "file:///data.json", "text": "the data"}}},
	}
}

func TestR1_12_R1_16_ResultsOfScriptsAndErrorsOfTools(t *testing.T) {
	e2e.OverEveryFront(t, func(t *testing.T, w *e2e.World, connect func(e2e.Obj) *e2e.Client) {
		b := w.Backend("calculator", calculator())
		c := connect(e2e.Obj{})
		for _, script := range []string{
			`result(calculator.add({a=10,b=20}):await())`,
			`return calculator.add{a=10,b=20}`,
		} {
			result := c.Lua(script)
			require.JSONEq(t, `{"sum":30}`, string(e2e.At(result, "structuredContent")), script)
			require.JSONEq(t, `{"sum":30}`, e2e.Str(result, "content", 0, "text"), script)
		}
		require.JSONEq(t, `{"a":10,"b":20}`, string(e2e.At(b.Received("tools/call")[0].Msg, "params", "arguments")))
		list := c.Lua(`return {1, 2, 3}`)
		require.Nil(t, e2e.At(list, "structuredContent"))
		require.JSONEq(t, `[1,2,3]`, e2e.Str(list, "content", 0, "text"))
		scalar := c.Lua(`return "plain"`)
		require.Nil(t, e2e.At(scalar, "structuredContent"))
		require.Equal(t, "plain", e2e.Str(scalar, "content", 0, "text"))
		text := c.LuaText(fmt.Sprintf(`return calculator.json{}.from .. " " .. resources.read(%q) .. " " .. prompts.get("calculator/help", {}).messages[1].content.text`,
			e2e.In("calculator", "file:///data.json")))
		require.Contains(t, text, "text the data calculator:help", "JSON in a text is a table")

		require.Contains(t, c.LuaText(`local ok, err = pcall(function() return calculator.fail{} end) return tostring(ok) .. " " .. tostring(err)`), "cannot divide")
		text = c.LuaFails("local a = 1\ncalculator.fail{}")
		require.Contains(t, text, "cannot divide")
		require.Contains(t, text, ":2:")
		require.Contains(t, c.LuaText(`local ok, err = pcall(resources.read, "mcp://calculator/file:///nope") return tostring(err)`), "RESOURCE_NOT_FOUND")
	})
}

func TestQuestionsOfServersHoldTheScriptOfAStatelessClient(t *testing.T) {
	for _, era := range e2e.Variants(1, "legacy", "modern") {
		t.Run(era, func(t *testing.T) {
			e2e.OverEveryTransport(t, func(t *testing.T, w *e2e.World, connect func() *e2e.Client) {
				w.Gateway["meta_tools"] = true
				script := e2e.AskingServer("elicitation/create", e2e.Form)
				script["era"] = era
				w.Backend("b", script, e2e.Obj{"timeout": "5s"})
				other := w.Backend("other", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}})
				c := connect()
				c.Caps = e2e.Obj{"elicitation": e2e.Obj{}}
				args := e2e.Obj{"script": `other.t{} local first = b.ask{} local second = b.ask{} return {first, second}`}
				call := func(more ...e2e.Obj) e2e.Message {
					return c.Request("tools/call", e2e.Merge(e2e.Obj{"name": "execute_lua", "arguments": args}, more))
				}
				state, keys := e2e.InputRequests(t, call())
				require.Equal(t, -32602, e2e.ParseError(t, call(e2e.Obj{"requestState": "foreign"})).Code)
				state, keys = e2e.InputRequests(t, call(e2e.Obj{"requestState": state, "inputResponses": e2e.Obj{keys["elicitation/create"]: e2e.Accepted}}))
				end := call(e2e.Obj{"requestState": state, "inputResponses": e2e.Obj{keys["elicitation/create"]: e2e.Accepted}})
				require.Nil(t, end.Error, "%s", end.Raw)
				require.Equal(t, "complete", e2e.Str(end.Result, "resultType"), "%s", end.Raw)
				require.Nil(t, e2e.At(end.Result, "isError"), "%s", end.Raw)
				require.Equal(t, 2, strings.Count(e2e.Str(end.Result, "content", 0, "text"), "Alice"), "%s", end.Raw)
				require.Equal(t, 1, other.Count("tools/call"), "the script continued")
			})
		})
	}
}
