//go:build e2e

package calls

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

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

// TestTailCallsEndWithTheirTimeOverEveryFront tests their time limit.
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
