package calls

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// structured is a result of a tool that has a structured value.
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

func TestR1_12_ResultsOfScripts(t *testing.T) {
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
		require.Equal(t, "text", c.LuaText(`return calculator.json{}.from`), "JSON in a text is a table")
		require.Equal(t, "the data", c.LuaText(fmt.Sprintf(`return resources.read(%q)`, e2e.In("calculator", "file:///data.json"))))
		require.Contains(t, c.LuaText(`return prompts.get("calculator/help", {}).messages[1].content.text`), "help")
	})
}

func TestR1_13_ScriptsReachSeveralServers(t *testing.T) {
	e2e.OverEveryFront(t, func(t *testing.T, w *e2e.World, connect func(e2e.Obj) *e2e.Client) {
		w.Backend("one", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}, "calls": e2e.Obj{"t": structured(e2e.Obj{"from": "one"})}})
		w.Backend("two", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}, "calls": e2e.Obj{"t": e2e.Obj{
			"content": []e2e.Obj{{"type": "resource_link", "uri": "file:///output.json", "name": "out"}},
		}}, "reads": e2e.Obj{"file:///output.json": []e2e.Obj{{"uri": "file:///output.json", "text": "linked"}}}})
		c := connect(e2e.Obj{})
		result := c.Lua(`local link = two.t{}.content[1].uri
			return {one = one.t{}.from, link = link, text = resources.read(link)}`)
		require.JSONEq(t, fmt.Sprintf(`{"one":"one","link":%q,"text":"linked"}`, e2e.In("two", "file:///output.json")), string(e2e.At(result, "structuredContent")))
	})
}

func TestR1_14_ScriptsAreInASandbox(t *testing.T) {
	t.Parallel()
	w := e2e.WithMeta(t)
	c := w.Standalone()
	require.Equal(t, "nil nil nil nil nil nil nil nil nil", c.LuaText(
		`local t = {} for _, n in ipairs{"os", "io", "require", "dofile", "loadfile", "package", "debug", "load", "loadstring"} do
			t[#t + 1] = tostring(_G[n]) end return table.concat(t, " ")`))
}

func TestR1_15_NamesInScripts(t *testing.T) {
	t.Parallel()
	w := e2e.WithMeta(t)
	for _, name := range []string{"data-server", "my.api", "123service", "while"} {
		w.Backend(name, e2e.Obj{"tools": []e2e.Obj{e2e.Tool("get-it")}, "calls": e2e.Obj{"get-it": structured(e2e.Obj{"of": name})}})
	}
	c := w.Standalone()
	require.Equal(t, "data-server my.api 123service while my.api", c.LuaText(
		`return table.concat({data_server.get_it{}.of, my_api.get_it{}.of, _123service.get_it{}.of, _while.get_it{}.of, servers["my.api"]["get-it"]{}.of}, " ")`))
	require.Contains(t, c.LuaFails("local x = 1\nreturn data_servr.get_it{}"), "data_server")
	require.Contains(t, c.LuaFails("local x = 1\nreturn data_server.get_them{}"), ":2:")
}

func TestR1_15_NamesThatFitTwoServersAreAnError(t *testing.T) {
	t.Parallel()
	w := e2e.WithMeta(t)
	w.Backend("my.api", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}, "calls": e2e.Obj{"t": structured(e2e.Obj{"of": "dot"})}})
	w.Backend("my-api", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}})
	c := w.Standalone()
	text := c.LuaFails(`return my_api.t{}`)
	require.Contains(t, text, "my.api")
	require.Contains(t, text, "my-api")
	require.Equal(t, "dot", c.LuaText(`return servers["my.api"].t{}.of`))
}

func TestR1_16_ScriptsCatchErrorsOfTools(t *testing.T) {
	e2e.OverEveryFront(t, func(t *testing.T, w *e2e.World, connect func(e2e.Obj) *e2e.Client) {
		w.Backend("calculator", calculator())
		c := connect(e2e.Obj{})
		require.Contains(t, c.LuaText(`local ok, err = pcall(function() return calculator.fail{} end) return tostring(ok) .. " " .. tostring(err)`), "cannot divide")
		text := c.LuaFails("local a = 1\ncalculator.fail{}")
		require.Contains(t, text, "cannot divide")
		require.Contains(t, text, ":2:")
		require.Contains(t, c.LuaText(`local ok, err = pcall(resources.read, "mcp://calculator/file:///nope") return tostring(err)`), "RESOURCE_NOT_FOUND")
	})
}

// Their time is shown by TestTailCallsEndWithTheirTimeOverEveryFront.
func TestR1_17_ScriptsAreBounded(t *testing.T) {
	e2e.OverEveryFront(t, func(t *testing.T, w *e2e.World, connect func(e2e.Obj) *e2e.Client) {
		w.Lua = e2e.Obj{"timeout": "60s", "memory": "16MiB", "calls": 2, "output": "1KiB"}
		b := w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t"), e2e.Tool("slow")}, "on": e2e.Obj{"tools/call slow": e2e.Actions(e2e.Do("wait", e2e.Obj{"name": "never"}))}})
		c := connect(e2e.Obj{})
		require.Contains(t, c.LuaFails(`local t = {} while true do t[#t + 1] = ("x"):rep(1000) .. #t end`), "memory")
		require.Contains(t, c.LuaFails(`for i = 1, 3 do b.t{} end`), "calls")
		require.Contains(t, c.LuaFails(`return ("x"):rep(2000)`), "output")

		id := c.Begin("tools/call", e2e.Obj{"name": "execute_lua", "arguments": e2e.Obj{"script": "b.slow{}"}})
		b.WaitEvent("wait", "never")
		c.Notify("notifications/cancelled", e2e.Obj{"requestId": json.RawMessage(id)})
		b.WaitEvent("gone", "slow")
		c.Ok("ping", nil)
	})
}

func TestR1_18_ScriptsWithoutAResultAreToldHow(t *testing.T) {
	t.Parallel()
	w := e2e.WithMeta(t)
	c := w.Standalone()
	require.Contains(t, c.LuaText(`local x = 1`), "return")
}

func TestScriptsRunInTheNameOfTheirClient(t *testing.T) {
	e2e.OverEveryFront(t, func(t *testing.T, w *e2e.World, connect func(e2e.Obj) *e2e.Client) {
		w.Lua = e2e.Obj{"timeout": "4s"}
		w.Backend("b", e2e.Asking("elicitation/create", e2e.Form), e2e.Obj{"timeout": "3s"})
		c := connect(e2e.Obj{"elicitation": e2e.Obj{}})
		id := c.Begin("tools/call", e2e.Obj{"name": "execute_lua", "arguments": e2e.Obj{"script": `return b.ask{}`}})
		question := c.Asked(1)
		require.Equal(t, "elicitation/create", question.Method)
		time.Sleep(4500 * time.Millisecond) // longer than the script's time and the server's
		c.Answer(question, func(e2e.Message) (any, any) { return e2e.Accepted, nil })
		end := c.End(id)
		require.Nil(t, end.Error, "%s", end.Raw)
		require.Nil(t, e2e.At(end.Result, "isError"), "the wait for a human does not count: %s", end.Raw)
		require.Contains(t, string(end.Result), "Alice")
		require.Contains(t, connect(e2e.Obj{}).LuaText(`return json.encode({b.ask{}})`), "elicitation", "another client cannot be asked")
	})
}

func TestQuestionsOfServersHoldTheScriptOfAStatelessClient(t *testing.T) {
	for _, era := range []string{"legacy", "modern"} {
		t.Run(era, func(t *testing.T) {
			e2e.OverEveryTransport(t, func(t *testing.T, w *e2e.World, connect func() *e2e.Client) {
				w.Gateway["meta_tools"] = true
				script := e2e.Asking("elicitation/create", e2e.Form)
				script["era"] = era
				w.Backend("b", script, e2e.Obj{"timeout": "5s"})
				other := w.Backend("other", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}})
				c := connect()
				c.Caps = e2e.Obj{"elicitation": e2e.Obj{}}
				args := e2e.Obj{"script": `other.t{} local first = b.ask{} local second = b.ask{} return {first, second}`}
				call := func(more ...e2e.Obj) e2e.Message {
					return c.Request("tools/call", e2e.Merge(e2e.Obj{"name": "execute_lua", "arguments": args}, more))
				}
				state, keys := e2e.Demanded(t, call())
				require.Equal(t, -32602, e2e.ParseError(t, call(e2e.Obj{"requestState": "foreign"})).Code)
				state, keys = e2e.Demanded(t, call(e2e.Obj{"requestState": state, "inputResponses": e2e.Obj{keys["elicitation/create"]: e2e.Accepted}}))
				end := call(e2e.Obj{"requestState": state, "inputResponses": e2e.Obj{keys["elicitation/create"]: e2e.Accepted}})
				require.Nil(t, end.Error, "%s", end.Raw)
				require.Equal(t, "complete", e2e.Str(end.Result, "resultType"), "%s", end.Raw)
				require.Nil(t, e2e.At(end.Result, "isError"), "%s", end.Raw)
				require.Equal(t, 2, strings.Count(e2e.Str(end.Result, "content", 0, "text"), "Alice"), "%s", end.Raw)
				require.Equal(t, 1, other.Count("tools/call"), "the script went on where it was")
			})
		})
	}
}

func TestQuestionsOfAModernBackendReachTheClientOfTheScript(t *testing.T) {
	e2e.OverEveryFront(t, func(t *testing.T, w *e2e.World, connect func(e2e.Obj) *e2e.Client) {
		script := e2e.Asking("elicitation/create", e2e.Form)
		script["era"] = "modern"
		w.Backend("b", script)
		c := connect(e2e.Obj{"elicitation": e2e.Obj{}})
		id := c.Begin("tools/call", e2e.Obj{"name": "execute_lua", "arguments": e2e.Obj{"script": `return b.ask{}`}})
		c.Answer(c.Asked(1), func(e2e.Message) (any, any) { return e2e.Accepted, nil })
		require.Contains(t, string(c.End(id).Result), "Alice")
	})
}

func TestProgressOfAScriptCountsItsCalls(t *testing.T) {
	e2e.OverEveryFront(t, func(t *testing.T, w *e2e.World, connect func(e2e.Obj) *e2e.Client) {
		b := w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t"), e2e.Tool("steps")}, "on": e2e.Obj{"tools/call steps": e2e.Actions(e2e.Do("progress", e2e.Obj{"n": 20, "ms": 200}))}}, e2e.Obj{"timeout": "3s"})
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
		require.Equal(t, `1`, c.LuaText(`b.steps{} return 1`), "progress of a call extends its time")
		require.Equal(t, 4, b.Count("tools/call"))
	})
}

func TestCallsOfScriptsUseTheirClientsOwnConnection(t *testing.T) {
	e2e.OverEveryFront(t, func(t *testing.T, w *e2e.World, connect func(e2e.Obj) *e2e.Client) {
		b := w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}}, e2e.Obj{"isolation": "session"})
		c := connect(e2e.Obj{})
		c.CallText("b_t", e2e.Obj{})
		starts := b.Starts()
		c.LuaText(`b.t{} return 1`)
		require.Equal(t, starts, b.Starts(), "the one that its calls have, too")
		connect(e2e.Obj{}).LuaText(`b.t{} return 1`)
		require.Equal(t, starts+1, b.Starts())
	})
}

func TestScriptsRunNoScripts(t *testing.T) {
	t.Parallel()
	w := e2e.WithMeta(t)
	c := w.Standalone()
	require.Contains(t, c.LuaText(`return tostring(select(2, pcall(function() return servers.goblin.execute_lua{script = "return 1"} end)))`), `no server is called "goblin"`)
}

func TestCallsOfScriptsAreCounted(t *testing.T) {
	t.Parallel()
	w := e2e.WithMeta(t)
	w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}})
	s := w.Served()
	c := s.Client(false)
	c.LuaText(`b.t{} b.t{} return 1`)
	require.Equal(t, "2", s.Metric(`mcp_requests_total{method="tools/call",server_id="b",status="success"}`))
	require.Equal(t, "1", s.Metric(`mcp_requests_total{method="tools/call",server_id="goblin",status="success"}`))
}

func TestCommandSearch(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t) // without meta tools
	b, other := w.Backend("shop", e2e.Shop()), w.Backend("s3", e2e.S3())
	text := w.Succeeds("search", "app", "log")
	require.Contains(t, strings.Split(text, "\n")[1], e2e.In("shop", e2e.AppLog))
	require.NotContains(t, w.Succeeds("search", "config", "--kind", "resources"), "tool ")
	require.NotContains(t, w.Succeeds("search", "app", "--mime", "text/*"), e2e.AppJSON)
	var found struct {
		Total int
		Hits  []e2e.Obj
	}
	require.NoError(t, json.Unmarshal([]byte(w.Succeeds("search", "app", "--json", "--limit", "1")), &found))
	require.Len(t, found.Hits, 1)
	require.Greater(t, found.Total, 1)
	starts := b.Starts()
	require.Contains(t, w.Succeeds("search", "config", "--server", "s3"), "s3://bucket/config/app.json")
	require.Equal(t, starts, b.Starts())
	other.WaitLive(0)
	out := w.Run("search", "zzzzzzzz")
	require.Equal(t, e2e.ExitNotFound, out.Code)
	require.Contains(t, out.Stderr, `nothing found for "zzzzzzzz"`)
	require.Equal(t, e2e.ExitNotFound, w.Run("search", "app", "--server", "nobody").Code)
	for _, wrong := range [][]string{{"search"}, {"search", " "}, {"search", "x", "--kind", "things"}, {"search", "x", "--limit", "0"}} {
		require.Equal(t, e2e.ExitUsage, w.Run(wrong...).Code, "%v", wrong)
	}

	host := w.Join()
	host.Names("tools") // once its servers have listed
	starts = b.Starts()
	require.Contains(t, w.Succeeds("search", "app", "log"), e2e.In("shop", e2e.AppLog))
	require.Equal(t, starts, b.Starts(), "the host is asked")
}

func TestCommandLua(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t) // without meta tools
	w.Lua = e2e.Obj{"timeout": "3s"}
	b := w.Backend("calculator", calculator())
	file := filepath.Join(w.Dir, "script.lua")
	write := func(script string) string {
		require.NoError(t, os.WriteFile(file, []byte(script), 0o600))
		return file
	}
	run := func() {
		require.JSONEq(t, `{"sum":30}`, w.Succeeds("lua", write(`return calculator.add{a=1}`)))
		require.Equal(t, "plain\n", w.Succeeds("lua", write(`return "plain"`)))
		require.Equal(t, "\"plain\"\n", w.Succeeds("lua", write(`return "plain"`), "--json"))
		out := w.Run("lua", write("print('seen')\nreturn 7"))
		require.Equal(t, "7\n", out.Stdout)
		require.Contains(t, out.Stderr, "seen")
		out = w.Run("lua", write("local x = 1\nerror('on purpose')"))
		require.Equal(t, e2e.ExitFailure, out.Code)
		require.Contains(t, out.Stderr, file+":2: on purpose")
		require.Equal(t, e2e.ExitTimeout, w.Run("lua", write("while true do end")).Code)
		out = w.RunInput("return {1, 2}", "lua", "-")
		require.JSONEq(t, `[1,2]`, out.Stdout)
	}
	run()
	require.Equal(t, e2e.ExitUsage, w.Run("lua").Code)
	require.Equal(t, e2e.ExitUsage, w.Run("lua", filepath.Join(w.Dir, "none.lua")).Code)
	b.WaitLive(0)

	host := w.Join()
	host.Names("tools") // once its servers have listed
	starts := b.Starts()
	run()
	require.Equal(t, starts, b.Starts(), "the host is asked")
}
