package e2e_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

func TestR3_06_OneIdentifierInAllCommunications(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	link := e2e.Obj{"type": "resource_link", "uri": "file:///out.json", "name": "out"}
	embedded := e2e.Obj{"type": "resource", "resource": e2e.Obj{"uri": "file:///in.txt", "text": "file:///raw stays in texts"}}
	b := w.Backend("filesystem", e2e.Merge(e2e.Filesystem(), []e2e.Obj{{
		"prompts": []e2e.Obj{e2e.Prompt("show")},
		"calls":   e2e.Obj{"stat": e2e.Obj{"content": []e2e.Obj{link, embedded}, "structuredContent": e2e.Obj{"uri": "file:///data"}, "_meta": e2e.Obj{"ui": e2e.Obj{"resourceUri": "ui://app/1"}}}},
		"gets":    e2e.Obj{"show": e2e.Obj{"messages": []e2e.Obj{{"role": "user", "content": embedded}, {"role": "user", "content": link}}}},
		"on": e2e.Obj{"resources/read " + e2e.AppJSON: e2e.Actions(e2e.Do("error", e2e.Obj{"error": e2e.Obj{
			"code": -32050, "message": "gone: file:///config/app.json", "data": e2e.Obj{"uri": e2e.AppJSON, "more": 1},
		}}))},
	}}))
	c := w.Standalone()

	call := c.Ok("tools/call", e2e.Obj{"name": "filesystem_stat"})
	require.Equal(t, e2e.In("filesystem", "file:///out.json"), e2e.Str(call, "content", 0, "uri"))
	require.Equal(t, e2e.In("filesystem", "file:///in.txt"), e2e.Str(call, "content", 1, "resource", "uri"))
	require.Equal(t, "file:///raw stays in texts", e2e.Str(call, "content", 1, "resource", "text"))
	require.Equal(t, "file:///data", e2e.Str(call, "structuredContent", "uri"))
	require.Equal(t, "ui://filesystem/app/1", e2e.Str(call, "_meta", "ui", "resourceUri"))

	get := c.Ok("prompts/get", e2e.Obj{"name": "filesystem/show"})
	require.Equal(t, e2e.In("filesystem", "file:///in.txt"), e2e.Str(get, "messages", 0, "content", "resource", "uri"))
	require.Equal(t, e2e.In("filesystem", "file:///out.json"), e2e.Str(get, "messages", 1, "content", "uri"))

	e := c.Fault("resources/read", e2e.Obj{"uri": e2e.In("filesystem", e2e.AppJSON)})
	require.Equal(t, -32050, e.Code)
	require.Equal(t, "gone: file:///config/app.json", e.Message)
	require.JSONEq(t, `{"uri":"mcp://filesystem/file:///config/app.json","more":1}`, string(e.Data))

	c.Ok("resources/subscribe", e2e.Obj{"uri": e2e.In("filesystem", e2e.AppLog)})
	b.Updated(e2e.AppLog)
	require.Equal(t, []string{e2e.In("filesystem", e2e.AppLog)}, c.WaitUpdates(1))
}

func TestR0_02_RawURIOfSeveralOwnersIsAmbiguous(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	shared := "file:///config.json"
	a := w.Backend("a", e2e.Obj{"resources": []e2e.Obj{e2e.Resource(shared)}})
	b := w.Backend("b", e2e.Obj{"resources": []e2e.Obj{e2e.Resource(shared), e2e.Resource("s3://bucket/x")}})
	c := w.Standalone()
	require.Equal(t, "b s3://bucket/x", c.ReadText("s3://bucket/x"))
	e := c.Fault("resources/read", e2e.Obj{"uri": shared})
	require.Equal(t, -32602, e.Code)
	require.Equal(t, "AMBIGUOUS", e.Kind())
	for _, candidate := range []string{e2e.In("a", shared), e2e.In("b", shared)} {
		require.Contains(t, e.Message+string(e.Data), candidate)
	}
	require.Zero(t, a.Count("resources/read"))
	require.Equal(t, 1, b.Count("resources/read"))
}

func TestToolNamesAndTheirAliases(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	a := w.Backend("a", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("only"), e2e.Tool("shared")}})
	b := w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("shared")}})
	c := w.Standalone()
	require.Equal(t, []string{"a_only", "a_shared", "b_shared"}, c.Names("tools"))
	for _, name := range []string{"a_only", "a/only", "only"} {
		require.Equal(t, `a:only:{"x":1.0}`, c.CallText(name, json.RawMessage(`{"x":1.0}`)), name)
	}
	e := c.Fault("tools/call", e2e.Obj{"name": "shared"})
	require.Equal(t, -32602, e.Code)
	require.Equal(t, "AMBIGUOUS", e.Kind())
	require.Contains(t, e.Message+string(e.Data), "a_shared")
	require.Contains(t, e.Message+string(e.Data), "b_shared")
	e = c.Fault("tools/call", e2e.Obj{"name": "a_onyl"})
	require.Equal(t, -32602, e.Code)
	require.Equal(t, "TOOL_NOT_FOUND", e.Kind())
	require.Contains(t, e.Message, "a_only")
	require.Equal(t, 3, a.Count("tools/call"))
	require.Zero(t, b.Count("tools/call"))
}

func TestC18_URIsCannotReachAnotherServer(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	a := w.Backend("a", e2e.Obj{"resources": []e2e.Obj{e2e.Resource("file:///public/x")}})
	b := w.Backend("ab", e2e.Obj{"resources": []e2e.Obj{e2e.Resource("file:///secret")}})
	c := w.Standalone()
	for i, uri := range []string{
		"mcp://a/file:///secret", "mcp://a/../ab/file:///secret", "mcp://a/%2e%2e/ab/file:///secret", "mcp://a/mcp://ab/file:///secret",
		"mcp://a@ab/file:///secret", "mcp://A/file:///public/x", "mcp://a:80/file:///public/x", "mcp://a/file:///public/../public/x/",
		"a_b_file_secret", "mcp://a/file:///public", "mcp:/a/file:///public/x", "mcp://a//file:///public/x",
	} {
		e := c.Fault("resources/read", e2e.Obj{"uri": uri})
		require.Equal(t, "RESOURCE_NOT_FOUND", e.Kind(), fmt.Sprint(i, " ", uri))
	}
	require.Zero(t, a.Count("resources/read")+b.Count("resources/read"))
}
