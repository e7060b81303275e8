//go:build e2e

package security

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

func TestLongNamesAndURIsAreRefused(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Gateway["meta_tools"] = true
	for i := range 12 { // with more of them, a name could have more forms
		w.Backend(strings.Repeat("a_", i)+"b", e2e.Obj{"prompts": []e2e.Obj{e2e.Prompt("p")}, "resources": []e2e.Obj{e2e.Resource("x:1")}})
	}
	long, name, uri := strings.Repeat("a_", 200_000), strings.Repeat("n", 4096), "x:"+strings.Repeat("u", 65534)
	b := w.Backend("s", e2e.Obj{
		"tools": []e2e.Obj{e2e.Tool(name), e2e.Tool(name + "n"), e2e.Tool("t")}, "resources": []e2e.Obj{e2e.Resource(uri), e2e.Resource(uri + "u"), e2e.Resource("x:2")},
		"prompts": []e2e.Obj{e2e.Prompt(name), e2e.Prompt(name + "n")}, "templates": []e2e.Obj{e2e.Template("t:{+any}")},
	})
	c, modern := w.Pair("socket")
	c.WaitListed("tools", "s_t", true)
	for _, c := range []*e2e.Client{c, modern} {
		for _, r := range []struct {
			method, member string
			params         e2e.Obj
			most           int
		}{
			{"tools/call", "name", e2e.Obj{"name": long}, 4096},
			{"tools/call", "name", e2e.Obj{"name": name + "n"}, 4096},
			{"prompts/get", "name", e2e.Obj{"name": long}, 4096},
			{"resources/read", "uri", e2e.Obj{"uri": long}, 65536},
			{"resources/read", "uri", e2e.Obj{"uri": e2e.In("s", uri)}, 65536},
			{"resources/read", "uri", e2e.Obj{"uri": "t:" + long}, 65536},
			{"completion/complete", "name", e2e.Obj{"ref": e2e.Obj{"type": "ref/prompt", "name": long}, "argument": e2e.Obj{"name": "a", "value": ""}}, 4096},
			{"completion/complete", "uri", e2e.Obj{"ref": e2e.Obj{"type": "ref/resource", "uri": long}, "argument": e2e.Obj{"name": "a", "value": ""}}, 65536},
		} {
			e := c.Fault(r.method, r.params)
			require.Equal(t, -32602, e.Code, r.method)
			require.Equal(t, fmt.Sprintf(`Invalid params: member %q is longer than %d bytes`, r.member, r.most), e.Message)
		}
	}
	for _, method := range []string{"resources/subscribe", "resources/unsubscribe"} {
		require.Equal(t, `Invalid params: member "uri" is longer than 65536 bytes`, c.Fault(method, e2e.Obj{"uri": long}).Message)
	}
	require.Contains(t, modern.Fault("subscriptions/listen", e2e.Obj{"notifications": e2e.Obj{"resourceSubscriptions": []string{long}}}).Message, "longer than 65536 bytes")
	for _, script := range []string{
		`return pcall(function() return b[("a_"):rep(200000)]{} end)`, `return resources.read(("a_"):rep(200000))`, `return prompts.get(("a_"):rep(200000))`,
	} {
		raw := c.Request("tools/call", e2e.Obj{"name": "execute_lua", "arguments": e2e.Obj{"script": script}}).Raw
		require.Less(t, len(raw), 2_000_000)
	}
	require.Len(t, c.List("tools"), 12+2, "too long ones are not listed")
	require.Contains(t, c.Names("prompts"), "s/"+name)
	require.NotContains(t, c.Names("prompts"), "s/"+name+"n")
	require.Contains(t, c.Names("resources"), e2e.In("s", uri))
	require.NotContains(t, c.Names("resources"), e2e.In("s", uri+"u"))
	require.Contains(t, c.CallText("s_"+strings.Repeat("n", 53)+"_"+e2e.HashSuffix("s", name), e2e.Obj{}), "s:nnn")
	require.Len(t, b.Uris("resources/read"), 0)
}

func TestManyTemplatesCostALittleAndTellSo(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Gateway["meta_tools"] = true
	var anywhere, alike, pairs []e2e.Obj
	for i := range 10_000 {
		anywhere = append(anywhere, e2e.Template(fmt.Sprintf("{+a}{+b}%d", i)))
		alike = append(alike, e2e.Template(fmt.Sprintf("x:{+a}{+b}%d", i)))
		pairs = append(pairs, e2e.Template(fmt.Sprintf("q:{a}_{b}_{c}%d", i)))
	}
	one, two, three := w.Backend("anywhere", e2e.Obj{"templates": anywhere}), w.Backend("alike", e2e.Obj{"templates": alike}), w.Backend("pairs", e2e.Obj{"templates": pairs})
	w.Backend("fine", e2e.Merge(e2e.Filesystem(), []e2e.Obj{{"templates": []e2e.Obj{e2e.Template("doc:///{+path}"), e2e.Template("x:{+any}")}}}))
	c, modern := w.Pair("socket")
	c.WaitListed("tools", "fine_stat", true)
	e2e.Eventually(t, "the lists", func() bool { return len(c.Names("templates")) == 20_102 })
	for _, c := range []*e2e.Client{c, modern} {
		for _, uri := range []string{"x:" + strings.Repeat("a/", 100), e2e.In("alike", "x:"+strings.Repeat("a/", 4000)), "pairs_q_" + strings.Repeat("a_", 100)} {
			e := c.Fault("resources/read", e2e.Obj{"uri": uri})
			require.Equal(t, "RESOURCE_NOT_FOUND", e.Kind())
			require.Equal(t, "RESOURCE_NOT_FOUND: too many templates to match: "+uri, e.Message)
			require.Contains(t, c.Fault("completion/complete", e2e.Obj{"ref": e2e.Obj{"type": "ref/resource", "uri": uri}, "argument": e2e.Obj{"name": "a", "value": ""}}).Message, "too many templates")
		}
		require.Equal(t, "fine doc:///a/b", c.ReadText("doc:///a/b"))
		require.Equal(t, "fine "+e2e.AppLog, c.ReadText(e2e.AppLog), "listed URIs need no templates")
		uri := "x:" + strings.Repeat("a/", 100)
		require.Equal(t, "fine "+uri, c.ReadText(e2e.In("fine", uri)), "lists of other servers don't affect a server")
	}
	require.Contains(t, c.Fault("resources/subscribe", e2e.Obj{"uri": "x:" + strings.Repeat("a/", 100)}).Message, "too many templates")
	require.Zero(t, one.Count("resources/read")+two.Count("resources/read")+three.Count("resources/read"))
}
