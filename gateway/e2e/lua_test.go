package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// lua runs a script and gives the whole result.
func (c *client) lua(script string) json.RawMessage {
	c.t.Helper()
	return c.ok("tools/call", obj{"name": "execute_lua", "arguments": obj{"script": script}})
}

// luaFails is what a script that fails says.
func (c *client) luaFails(script string) string {
	c.t.Helper()
	result := c.lua(script)
	require.Equal(c.t, "true", string(at(result, "isError")), "%s", result)
	return str(result, "content", 0, "text")
}

// luaText is the text that a script returns.
func (c *client) luaText(script string) string {
	c.t.Helper()
	result := c.lua(script)
	require.Nil(c.t, at(result, "isError"), "%s", result)
	return str(result, "content", 0, "text")
}

// structured is a result of a tool that has a structured value.
func structured(value obj) obj {
	return obj{"content": []obj{{"type": "text", "text": string(marshal(value))}}, "structuredContent": value}
}

func calculator() obj {
	return obj{
		"tools": []obj{tool("add"), tool("fail"), tool("list"), tool("json"), tool("echo-it")},
		"calls": obj{
			"add":  structured(obj{"sum": 30}),
			"json": obj{"content": []obj{{"type": "text", "text": `{"from":"text"}`}}},
			"fail": obj{"isError": true, "content": []obj{{"type": "text", "text": "cannot divide"}}},
		},
		"resources": []obj{resource("file:///data.json")},
		"prompts":   []obj{prompt("help")},
		"reads":     obj{"file:///data.json": []obj{{"uri": "file:///data.json", "text": "the data"}}},
	}
}

func TestR1_12_ResultsOfScripts(t *testing.T) {
	overEveryFront(t, func(t *testing.T, w *world, connect func(obj) *client) {
		b := w.backend("calculator", calculator())
		c := connect(obj{})
		for _, script := range []string{
			`result(calculator.add({a=10,b=20}):await())`,
			`return calculator.add{a=10,b=20}`,
		} {
			result := c.lua(script)
			require.JSONEq(t, `{"sum":30}`, string(at(result, "structuredContent")), script)
			require.JSONEq(t, `{"sum":30}`, str(result, "content", 0, "text"), script)
		}
		require.JSONEq(t, `{"a":10,"b":20}`, string(at(b.received("tools/call")[0].Msg, "params", "arguments")))
		list := c.lua(`return {1, 2, 3}`)
		require.Nil(t, at(list, "structuredContent"))
		require.JSONEq(t, `[1,2,3]`, str(list, "content", 0, "text"))
		scalar := c.lua(`return "plain"`)
		require.Nil(t, at(scalar, "structuredContent"))
		require.Equal(t, "plain", str(scalar, "content", 0, "text"))
		require.Equal(t, "text", c.luaText(`return calculator.json{}.from`), "JSON in a text is a table")
		require.Equal(t, "the data", c.luaText(fmt.Sprintf(`return resources.read(%q)`, in("calculator", "file:///data.json"))))
		require.Contains(t, c.luaText(`return prompts.get("calculator/help", {}).messages[1].content.text`), "help")
	})
}

func TestR1_13_ScriptsReachSeveralServers(t *testing.T) {
	overEveryFront(t, func(t *testing.T, w *world, connect func(obj) *client) {
		w.backend("one", obj{"tools": []obj{tool("t")}, "calls": obj{"t": structured(obj{"from": "one"})}})
		w.backend("two", obj{"tools": []obj{tool("t")}, "calls": obj{"t": obj{
			"content": []obj{{"type": "resource_link", "uri": "file:///output.json", "name": "out"}},
		}}, "reads": obj{"file:///output.json": []obj{{"uri": "file:///output.json", "text": "linked"}}}})
		c := connect(obj{})
		result := c.lua(`local link = two.t{}.content[1].uri
			return {one = one.t{}.from, link = link, text = resources.read(link)}`)
		require.JSONEq(t, fmt.Sprintf(`{"one":"one","link":%q,"text":"linked"}`, in("two", "file:///output.json")), string(at(result, "structuredContent")))
	})
}

func TestR1_14_ScriptsAreInASandbox(t *testing.T) {
	t.Parallel()
	w := withMeta(t)
	c := w.standalone()
	require.Equal(t, "nil nil nil nil nil nil nil nil nil", c.luaText(
		`local t = {} for _, n in ipairs{"os", "io", "require", "dofile", "loadfile", "package", "debug", "load", "loadstring"} do
			t[#t + 1] = tostring(_G[n]) end return table.concat(t, " ")`))
}

func TestR1_15_NamesInScripts(t *testing.T) {
	t.Parallel()
	w := withMeta(t)
	for _, name := range []string{"data-server", "my.api", "123service", "while"} {
		w.backend(name, obj{"tools": []obj{tool("get-it")}, "calls": obj{"get-it": structured(obj{"of": name})}})
	}
	c := w.standalone()
	require.Equal(t, "data-server my.api 123service while my.api", c.luaText(
		`return table.concat({data_server.get_it{}.of, my_api.get_it{}.of, _123service.get_it{}.of, _while.get_it{}.of, servers["my.api"]["get-it"]{}.of}, " ")`))
	require.Contains(t, c.luaFails("local x = 1\nreturn data_servr.get_it{}"), "data_server")
	require.Contains(t, c.luaFails("local x = 1\nreturn data_server.get_them{}"), ":2:")
}

func TestR1_15_NamesThatFitTwoServersAreAnError(t *testing.T) {
	t.Parallel()
	w := withMeta(t)
	w.backend("my.api", obj{"tools": []obj{tool("t")}, "calls": obj{"t": structured(obj{"of": "dot"})}})
	w.backend("my-api", obj{"tools": []obj{tool("t")}})
	c := w.standalone()
	text := c.luaFails(`return my_api.t{}`)
	require.Contains(t, text, "my.api")
	require.Contains(t, text, "my-api")
	require.Equal(t, "dot", c.luaText(`return servers["my.api"].t{}.of`))
}

func TestR1_16_ScriptsCatchErrorsOfTools(t *testing.T) {
	overEveryFront(t, func(t *testing.T, w *world, connect func(obj) *client) {
		w.backend("calculator", calculator())
		c := connect(obj{})
		require.Contains(t, c.luaText(`local ok, err = pcall(function() return calculator.fail{} end) return tostring(ok) .. " " .. tostring(err)`), "cannot divide")
		text := c.luaFails("local a = 1\ncalculator.fail{}")
		require.Contains(t, text, "cannot divide")
		require.Contains(t, text, ":2:")
		require.Contains(t, c.luaText(`local ok, err = pcall(resources.read, "mcp://calculator/file:///nope") return tostring(err)`), "RESOURCE_NOT_FOUND")
	})
}

func TestR1_17_ScriptsAreBounded(t *testing.T) {
	overEveryFront(t, func(t *testing.T, w *world, connect func(obj) *client) {
		w.lua = obj{"timeout": "3s", "memory": "16MiB", "calls": 2, "output": "1KiB"}
		b := w.backend("b", obj{"tools": []obj{tool("t"), tool("slow")}, "on": obj{"tools/call slow": actions(do("wait", obj{"name": "never"}))}})
		c := connect(obj{})
		busy := c.begin("tools/call", obj{"name": "execute_lua", "arguments": obj{"script": "while true do end"}})
		require.Contains(t, c.callText("b_t", obj{}), "b:t", "others go on meanwhile")
		end := c.end(busy)
		require.Equal(t, "true", string(at(end.Result, "isError")), "%s", end.raw)
		require.Contains(t, str(end.Result, "content", 0, "text"), "timeout")
		require.Contains(t, c.luaFails(`local t = {} while true do t[#t + 1] = ("x"):rep(1000) .. #t end`), "memory")
		require.Contains(t, c.luaFails(`for i = 1, 3 do b.t{} end`), "calls")
		require.Contains(t, c.luaFails(`return ("x"):rep(2000)`), "output")

		id := c.begin("tools/call", obj{"name": "execute_lua", "arguments": obj{"script": "b.slow{}"}})
		b.waitEvent("wait", "never")
		c.notify("notifications/cancelled", obj{"requestId": json.RawMessage(id)})
		b.waitEvent("gone", "slow")
		c.ok("ping", nil)
	})
}

func TestR1_18_ScriptsWithoutAResultAreToldHow(t *testing.T) {
	t.Parallel()
	w := withMeta(t)
	c := w.standalone()
	require.Contains(t, c.luaText(`local x = 1`), "return")
}

func TestScriptsRunInTheNameOfTheirClient(t *testing.T) {
	overEveryFront(t, func(t *testing.T, w *world, connect func(obj) *client) {
		w.lua = obj{"timeout": "4s"}
		w.backend("b", asking("elicitation/create", form), obj{"timeout": "3s"})
		c := connect(obj{"elicitation": obj{}})
		id := c.begin("tools/call", obj{"name": "execute_lua", "arguments": obj{"script": `return b.ask{}`}})
		question := c.asked(1)
		require.Equal(t, "elicitation/create", question.Method)
		time.Sleep(4500 * time.Millisecond) // longer than the script's time and the server's
		c.answer(question, func(message) (any, any) { return accepted, nil })
		end := c.end(id)
		require.Nil(t, end.Error, "%s", end.raw)
		require.Nil(t, at(end.Result, "isError"), "the wait for a human does not count: %s", end.raw)
		require.Contains(t, string(end.Result), "Alice")
		require.Contains(t, connect(obj{}).luaText(`return json.encode({b.ask{}})`), "elicitation", "another client cannot be asked")
	})
}

func TestQuestionsOfServersHoldTheScriptOfAStatelessClient(t *testing.T) {
	for _, era := range []string{"legacy", "modern"} {
		t.Run(era, func(t *testing.T) {
			overEveryTransport(t, func(t *testing.T, w *world, connect func() *client) {
				w.gateway["meta_tools"] = true
				script := asking("elicitation/create", form)
				script["era"] = era
				w.backend("b", script, obj{"timeout": "5s"})
				other := w.backend("other", obj{"tools": []obj{tool("t")}})
				c := connect()
				c.caps = obj{"elicitation": obj{}}
				args := obj{"script": `other.t{} local first = b.ask{} local second = b.ask{} return {first, second}`}
				call := func(more ...obj) message {
					return c.request("tools/call", merge(obj{"name": "execute_lua", "arguments": args}, more))
				}
				state, keys := demanded(t, call())
				require.Equal(t, -32602, parseError(t, call(obj{"requestState": "foreign"})).Code)
				state, keys = demanded(t, call(obj{"requestState": state, "inputResponses": obj{keys["elicitation/create"]: accepted}}))
				end := call(obj{"requestState": state, "inputResponses": obj{keys["elicitation/create"]: accepted}})
				require.Nil(t, end.Error, "%s", end.raw)
				require.Equal(t, "complete", str(end.Result, "resultType"), "%s", end.raw)
				require.Nil(t, at(end.Result, "isError"), "%s", end.raw)
				require.Equal(t, 2, strings.Count(str(end.Result, "content", 0, "text"), "Alice"), "%s", end.raw)
				require.Equal(t, 1, other.count("tools/call"), "the script went on where it was")
			})
		})
	}
}

func TestQuestionsOfAModernBackendReachTheClientOfTheScript(t *testing.T) {
	overEveryFront(t, func(t *testing.T, w *world, connect func(obj) *client) {
		script := asking("elicitation/create", form)
		script["era"] = "modern"
		w.backend("b", script)
		c := connect(obj{"elicitation": obj{}})
		id := c.begin("tools/call", obj{"name": "execute_lua", "arguments": obj{"script": `return b.ask{}`}})
		c.answer(c.asked(1), func(message) (any, any) { return accepted, nil })
		require.Contains(t, string(c.end(id).Result), "Alice")
	})
}

func TestProgressOfAScriptCountsItsCalls(t *testing.T) {
	overEveryFront(t, func(t *testing.T, w *world, connect func(obj) *client) {
		b := w.backend("b", obj{"tools": []obj{tool("t"), tool("steps")}, "on": obj{"tools/call steps": actions(do("progress", obj{"n": 20, "ms": 200}))}}, obj{"timeout": "3s"})
		c := connect(obj{})
		m := c.request("tools/call", obj{
			"name": "execute_lua", "arguments": obj{"script": `b.t{} b.t{} b.t{} return 1`}, "_meta": obj{"progressToken": "p"},
		})
		require.Nil(t, m.Error, "%s", m.raw)
		notes := c.notesOf("notifications/progress")
		require.Len(t, notes, 3)
		for i, n := range notes {
			require.Equal(t, "p", str(n.Params, "progressToken"))
			require.Equal(t, fmt.Sprint(i+1), string(at(n.Params, "progress")))
			require.Less(t, n.seq, m.seq)
		}
		require.Equal(t, `1`, c.luaText(`b.steps{} return 1`), "progress of a call extends its time")
		require.Equal(t, 4, b.count("tools/call"))
	})
}

func TestCallsOfScriptsUseTheirClientsOwnConnection(t *testing.T) {
	overEveryFront(t, func(t *testing.T, w *world, connect func(obj) *client) {
		b := w.backend("b", obj{"tools": []obj{tool("t")}}, obj{"isolation": "session"})
		c := connect(obj{})
		c.callText("b_t", obj{})
		starts := b.starts()
		c.luaText(`b.t{} return 1`)
		require.Equal(t, starts, b.starts(), "the one that its calls have, too")
		connect(obj{}).luaText(`b.t{} return 1`)
		require.Equal(t, starts+1, b.starts())
	})
}

func TestScriptsRunNoScripts(t *testing.T) {
	t.Parallel()
	w := withMeta(t)
	c := w.standalone()
	require.Contains(t, c.luaText(`return tostring(select(2, pcall(function() return servers.goblin.execute_lua{script = "return 1"} end)))`), `no server is called "goblin"`)
}

func TestCallsOfScriptsAreCounted(t *testing.T) {
	t.Parallel()
	w := withMeta(t)
	w.backend("b", obj{"tools": []obj{tool("t")}})
	s := w.serve()
	c := s.client(false)
	c.luaText(`b.t{} b.t{} return 1`)
	require.Equal(t, "2", s.metric(`mcp_requests_total{method="tools/call",server_id="b",status="success"}`))
	require.Equal(t, "1", s.metric(`mcp_requests_total{method="tools/call",server_id="goblin",status="success"}`))
}

func TestCommandSearch(t *testing.T) {
	t.Parallel()
	w := newWorld(t) // without meta tools
	b, other := w.backend("shop", shop()), w.backend("s3", s3())
	text := w.succeeds("search", "app", "log")
	require.Contains(t, strings.Split(text, "\n")[1], in("shop", appLog))
	require.NotContains(t, w.succeeds("search", "config", "--kind", "resources"), "tool ")
	require.NotContains(t, w.succeeds("search", "app", "--mime", "text/*"), appJSON)
	var found struct {
		Total int
		Hits  []obj
	}
	require.NoError(t, json.Unmarshal([]byte(w.succeeds("search", "app", "--json", "--limit", "1")), &found))
	require.Len(t, found.Hits, 1)
	require.Greater(t, found.Total, 1)
	starts := b.starts()
	require.Contains(t, w.succeeds("search", "config", "--server", "s3"), "s3://bucket/config/app.json")
	require.Equal(t, starts, b.starts())
	other.waitLive(0)
	out := w.run("search", "zzzzzzzz")
	require.Equal(t, exitNotFound, out.code)
	require.Contains(t, out.stderr, `nothing is found for "zzzzzzzz"`)
	require.Equal(t, exitNotFound, w.run("search", "app", "--server", "nobody").code)
	for _, wrong := range [][]string{{"search"}, {"search", " "}, {"search", "x", "--kind", "things"}, {"search", "x", "--limit", "0"}} {
		require.Equal(t, exitUsage, w.run(wrong...).code, "%v", wrong)
	}

	w.hosted = true
	host := w.bridged()
	host.names("tools") // once its servers have listed
	starts = b.starts()
	require.Contains(t, w.succeeds("search", "app", "log"), in("shop", appLog))
	require.Equal(t, starts, b.starts(), "the host is asked")
}

func TestCommandLua(t *testing.T) {
	t.Parallel()
	w := newWorld(t) // without meta tools
	w.lua = obj{"timeout": "3s"}
	b := w.backend("calculator", calculator())
	file := filepath.Join(w.dir, "script.lua")
	write := func(script string) string {
		require.NoError(t, os.WriteFile(file, []byte(script), 0o600))
		return file
	}
	run := func() {
		require.JSONEq(t, `{"sum":30}`, w.succeeds("lua", write(`return calculator.add{a=1}`)))
		require.Equal(t, "plain\n", w.succeeds("lua", write(`return "plain"`)))
		require.Equal(t, "\"plain\"\n", w.succeeds("lua", write(`return "plain"`), "--json"))
		out := w.run("lua", write("print('seen')\nreturn 7"))
		require.Equal(t, "7\n", out.stdout)
		require.Contains(t, out.stderr, "seen")
		out = w.run("lua", write("local x = 1\nerror('on purpose')"))
		require.Equal(t, exitFailure, out.code)
		require.Contains(t, out.stderr, file+":2: on purpose")
		require.Equal(t, exitTimeout, w.run("lua", write("while true do end")).code)
		out = w.runInput("return {1, 2}", "lua", "-")
		require.JSONEq(t, `[1,2]`, out.stdout)
	}
	run()
	require.Equal(t, exitUsage, w.run("lua").code)
	require.Equal(t, exitUsage, w.run("lua", filepath.Join(w.dir, "none.lua")).code)
	b.waitLive(0)

	w.hosted = true
	host := w.bridged()
	host.names("tools") // once its servers have listed
	starts := b.starts()
	run()
	require.Equal(t, starts, b.starts(), "the host is asked")
}
