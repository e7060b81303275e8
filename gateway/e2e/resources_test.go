package e2e_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

func TestR3_02_ServerThatComesUpLaterIsAnnounced(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Gateway["startup_wait"], w.Gateway["handshake_wait"] = "50ms", "50ms"
	script := e2e.Dbsrv()
	script["on"] = e2e.Obj{"initialize": e2e.Actions(e2e.Do("wait", e2e.Obj{"name": "up"}))}
	db := w.Backend("dbsrv", script)
	c := w.Standalone()
	require.Empty(t, c.Names("templates"))
	db.Do(e2e.Do("release", e2e.Obj{"name": "up"}))
	c.WaitListed("templates", e2e.In("dbsrv", "mcp://database/{table}/{id}"), true)
	c.WaitNote("notifications/resources/list_changed", nil)
}

func TestR3_10_R3_14_R4_04_R0_06_DefinitionsKeepTheirFieldsAndGetNoOthers(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	odd := `{"uri":"x:///odd","name":"odd","title":"Odd","size":12345678901234567890,"annotations":{"audience":["user"],"priority":0.10},` +
		`"icons":[{"src":"https://e/i.png","sizes":["48x48"]}],"_meta":{"v/end\u006fr":[1e2,{"b":1,"a":null}]},"vendorField":{"z":"<&>","a":""}}`
	oddTool := `{"name":"t","title":"T","description":"","inputSchema":{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","anyOf":[{"required":["a"]}],"maximum":9007199254740993},` +
		`"outputSchema":{"type":"object","oneOf":[]},"annotations":{"readOnlyHint":true},"execution":{"taskSupport":"optional"},"_meta":{"k":1.0},"x-vendor":[]}`
	w.Backend("filesystem", e2e.Filesystem())
	w.Backend("odd", e2e.Obj{
		"resources": []json.RawMessage{json.RawMessage(odd)}, "tools": []json.RawMessage{json.RawMessage(oddTool)},
		"prompts":   []e2e.Obj{e2e.Prompt("p", e2e.Obj{"title": "P", "arguments": []e2e.Obj{{"name": "a", "required": true, "title": "A"}}, "icons": []e2e.Obj{}})},
		"templates": []e2e.Obj{e2e.Template("x:///{a}", e2e.Obj{"title": "X", "mimeType": "text/x", "annotations": e2e.Obj{"priority": 1}})},
	})
	c := w.Standalone()
	byURI := map[string]json.RawMessage{}
	for _, e := range c.List("resources") {
		byURI[e2e.Str(e, "uri")] = e
	}
	log := byURI[e2e.In("filesystem", e2e.AppLog)]
	require.JSONEq(t, `{"uri":"mcp://filesystem/file:///logs/app.log","name":"app.log","mimeType":"text/plain","size":12,"description":"log"}`, string(log))
	// The raw text shows that numbers and the order of members survive.
	require.Contains(t, c.Request("resources/list", nil).Raw, strings.Replace(odd, "x:///odd", e2e.In("odd", "x:///odd"), 1))
	require.Contains(t, c.Request("tools/list", nil).Raw, strings.Replace(oddTool, `"t"`, `"odd_t"`, 1))
	require.JSONEq(t, `{"name":"odd/p","title":"P","arguments":[{"name":"a","required":true,"title":"A"}],"icons":[]}`, string(c.List("prompts")[0]))
	require.JSONEq(t, `{"uriTemplate":"mcp://odd/x:///{a}","name":"x:///{a}","title":"X","mimeType":"text/x","annotations":{"priority":1}}`, string(c.List("templates")[0]))
}

func TestR3_15_ListsAreInByteOrder(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Gateway["page_size"] = 3
	shuffled := []e2e.Obj{e2e.Resource("z:1"), e2e.Resource("B:1"), e2e.Resource("a:1"), e2e.Resource("ä:1"), e2e.Resource("a:0")}
	names := []e2e.Obj{e2e.Tool("b"), e2e.Tool("B"), e2e.Tool("a")}
	for _, server := range []string{"b", "Z"} {
		w.Backend(server, e2e.Obj{"resources": shuffled, "tools": names, "prompts": []e2e.Obj{e2e.Prompt("z"), e2e.Prompt("a")}, "templates": []e2e.Obj{e2e.Template("z:{a}"), e2e.Template("a:{a}")}})
	}
	c := w.Standalone()
	for kind, n := range map[string]int{"resources": 10, "tools": 6, "prompts": 4, "templates": 4} {
		got := c.Names(kind)
		require.Len(t, got, n)
		require.True(t, e2e.IsSorted(got), "%s: %q", kind, got)
	}
}

func TestR3_18_R0_01_ListChangeIsFollowed(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	fs, other := w.Backend("filesystem", e2e.Filesystem()), w.Backend("s3", e2e.S3())
	c := w.Standalone()
	require.Len(t, c.List("resources"), 3)
	c.Settle()
	fs.Add("resources", e2e.Resource("file:///new"))
	fs.Remove("resources", e2e.AppJSON)
	fs.ListChanged("resources")
	c.WaitListed("resources", e2e.In("filesystem", "file:///new"), true)
	require.NotContains(t, c.Names("resources"), e2e.In("filesystem", e2e.AppJSON))
	require.Equal(t, 2, fs.Count("resources/list"))
	require.Equal(t, 1, fs.Count("tools/list"))
	require.Equal(t, 1, other.Count("resources/list"))
	c.WaitNote("notifications/resources/list_changed", func(json.RawMessage) bool { return true })
	require.Len(t, c.NotesOf("notifications/resources/list_changed"), 1)
	require.Empty(t, c.NotesOf("notifications/tools/list_changed"))
	require.Empty(t, c.NotesOf("notifications/prompts/list_changed"))
	require.Equal(t, "RESOURCE_NOT_FOUND", c.Fault("resources/read", e2e.Obj{"uri": e2e.In("filesystem", e2e.AppJSON)}).Kind())
}

func TestAllowAndDenyChooseWhatIsListed(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("b", e2e.Obj{
		"tools":     []e2e.Obj{e2e.Tool("read_a"), e2e.Tool("read_b"), e2e.Tool("delete_a")},
		"prompts":   []e2e.Obj{e2e.Prompt("p"), e2e.Prompt("q")},
		"resources": []e2e.Obj{e2e.Resource("file:///a"), e2e.Resource("file:///secret/b")},
	}, e2e.Obj{
		"tools": e2e.Obj{"allow": []string{"read_*"}, "deny": []string{"*_b"}}, "prompts": e2e.Obj{"deny": []string{"q"}},
		"resources": e2e.Obj{"deny": []string{"file:///secret/*"}},
	})
	c := w.Standalone()
	require.Equal(t, []string{"b_read_a"}, c.Names("tools"))
	require.Equal(t, []string{"b/p"}, c.Names("prompts"))
	require.Equal(t, []string{e2e.In("b", "file:///a")}, c.Names("resources"))
	require.Equal(t, "TOOL_NOT_FOUND", c.Fault("tools/call", e2e.Obj{"name": "b_delete_a"}).Kind())
	require.Equal(t, "TOOL_NOT_FOUND", c.Fault("tools/call", e2e.Obj{"name": "delete_a"}).Kind())
	require.Equal(t, "PROMPT_NOT_FOUND", c.Fault("prompts/get", e2e.Obj{"name": "b/q"}).Kind())
	require.Equal(t, "RESOURCE_NOT_FOUND", c.Fault("resources/read", e2e.Obj{"uri": e2e.In("b", "file:///secret/b")}).Kind())
	require.Zero(t, b.Count("tools/call")+b.Count("prompts/get")+b.Count("resources/read"))
}
