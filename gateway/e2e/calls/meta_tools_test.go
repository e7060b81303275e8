//go:build e2e

package calls

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// callMeta calls one of Goblin's own tools and returns the structured answer, which
// the text must repeat.
func callMeta(c *e2e.Client, name string, args e2e.Obj) json.RawMessage {
	c.T.Helper()
	result := c.Ok("tools/call", e2e.Obj{"name": name, "arguments": args})
	require.Nil(c.T, e2e.At(result, "isError"), "%s", result)
	structured := e2e.At(result, "structuredContent")
	require.JSONEq(c.T, string(structured), e2e.Str(result, "content", 0, "text"))
	return structured
}

// metaFails returns the error text of a failing call.
func metaFails(c *e2e.Client, name string, args e2e.Obj) string {
	c.T.Helper()
	result := c.Ok("tools/call", e2e.Obj{"name": name, "arguments": args})
	require.Equal(c.T, "true", string(e2e.At(result, "isError")), "%s", result)
	return e2e.Str(result, "content", 0, "text")
}

// cards returns a member of each card in an answer, in order.
func cards(answer json.RawMessage, list, member string) []string {
	names := []string{}
	for _, card := range e2e.Each(answer, list) {
		names = append(names, e2e.Str(card, member))
	}
	return names
}

func TestR3_30_CatalogOfResources(t *testing.T) {
	e2e.OverEveryFront(t, func(t *testing.T, w *e2e.World, connect func(e2e.Obj) *e2e.Client) {
		w.Backend("filesystem", e2e.Filesystem())
		w.Backend("s3", e2e.S3())
		c := connect(e2e.Obj{})
		all := callMeta(c, "catalog_resources", e2e.Obj{})
		require.Equal(t, []string{"goblin://servers", e2e.In("filesystem", e2e.AppJSON), e2e.In("filesystem", e2e.AppLog), e2e.In("s3", "s3://bucket/config/app.json")},
			cards(all, "resources", "uri"))
		require.Equal(t, "4", string(e2e.At(all, "total")))
		require.JSONEq(t, fmt.Sprintf(`{"uri":%q,"name":"app.log","description":"log","mimeType":"text/plain","size":12,"serverId":"filesystem"}`, e2e.In("filesystem", e2e.AppLog)),
			string(e2e.At(all, "resources", 2)))
		require.Equal(t, []string{"s3"}, cards(callMeta(c, "catalog_resources", e2e.Obj{"serverId": "s3"}), "resources", "serverId"))
		require.Equal(t, []string{e2e.In("filesystem", e2e.AppLog)}, cards(callMeta(c, "catalog_resources", e2e.Obj{"mimeType": "text/plain"}), "resources", "uri"))
		require.Empty(t, cards(callMeta(c, "catalog_resources", e2e.Obj{"serverId": "nobody"}), "resources", "uri"))
		page := callMeta(c, "catalog_resources", e2e.Obj{"limit": 1, "offset": 2})
		require.Equal(t, []string{e2e.In("filesystem", e2e.AppLog)}, cards(page, "resources", "uri"))
		require.Equal(t, "3", string(e2e.At(page, "nextOffset")))
		require.Contains(t, metaFails(c, "catalog_resources", e2e.Obj{"mime": "x"}), "INVALID_ARGUMENTS")
	})
}

func TestR3_32_SearchOfResources(t *testing.T) {
	e2e.OverEveryFront(t, func(t *testing.T, w *e2e.World, connect func(e2e.Obj) *e2e.Client) {
		w.Backend("filesystem", e2e.Merge(e2e.Filesystem(), []e2e.Obj{{"resources": []e2e.Obj{
			{"uri": e2e.AppLog, "name": "app.log", "mimeType": "text/plain"},
			{"uri": "file:///readme", "name": "readme", "mimeType": "text/plain", "description": "how to start the app"},
			{"uri": "file:///same", "name": "same"},
		}}}))
		w.Backend("s3", e2e.Obj{"resources": []e2e.Obj{{"uri": "file:///same", "name": "same"}, {"uri": "s3://b/app.png", "name": "app.png", "mimeType": "image/png"}}})
		c := connect(e2e.Obj{})
		hits := cards(callMeta(c, "search_resources", e2e.Obj{"query": "app"}), "resources", "uri")
		require.ElementsMatch(t, []string{e2e.In("filesystem", e2e.AppLog), e2e.In("s3", "s3://b/app.png"), e2e.In("filesystem", "file:///readme")}, hits)
		require.Equal(t, e2e.In("filesystem", "file:///readme"), hits[2], "a name counts more than a description")
		require.Equal(t, []string{e2e.In("s3", "s3://b/app.png")},
			cards(callMeta(c, "search_resources", e2e.Obj{"query": "app", "mimeType": "image/*"}), "resources", "uri"))
		require.Equal(t, e2e.In("filesystem", e2e.AppLog), cards(callMeta(c, "search_resources", e2e.Obj{"query": "aplog"}), "resources", "uri")[0], "a typo")
		require.Equal(t, []string{e2e.In("filesystem", "file:///same"), e2e.In("s3", "file:///same")},
			cards(callMeta(c, "search_resources", e2e.Obj{"query": "same"}), "resources", "uri"), "raw URIs twice")
		require.Len(t, cards(callMeta(c, "search_resources", e2e.Obj{"query": ""}), "resources", "uri"), 6, "an empty query lists all")
	})
}

func TestMetaToolsForServersToolsAndPrompts(t *testing.T) {
	e2e.OverEveryFront(t, func(t *testing.T, w *e2e.World, connect func(e2e.Obj) *e2e.Client) {
		w.Backend("notes", e2e.Obj{
			"tools":   []e2e.Obj{e2e.Tool("add_note", e2e.Obj{"description": "Writes something down"}), e2e.Tool("drop_note")},
			"prompts": []e2e.Obj{e2e.Prompt("summary", e2e.Obj{"description": "Sums up what was written", "arguments": []e2e.Obj{{"name": "tone"}}})},
		})
		w.Backend("broken", e2e.Obj{"on": e2e.Obj{"initialize": e2e.Actions(e2e.Do("crash"))}})
		w.Gateway["startup_wait"] = "2s"
		c := connect(e2e.Obj{})
		servers := callMeta(c, "catalog_servers", e2e.Obj{})
		require.Equal(t, []string{"notes", "broken"}, cards(servers, "servers", "serverId"))
		require.Equal(t, "ready", e2e.Str(servers, "servers", 0, "state"))
		require.Equal(t, "2", string(e2e.At(servers, "servers", 0, "tools")))
		e2e.Eventually(t, "the error of the broken server", func() bool {
			return e2e.Str(callMeta(c, "catalog_servers", e2e.Obj{"offset": 1}), "servers", 0, "error") != ""
		})
		require.Equal(t, []string{"notes_add_note", "notes_drop_note"}, cards(callMeta(c, "catalog_tools", e2e.Obj{"serverId": "notes"}), "tools", "name"))
		require.Equal(t, "notes_add_note", cards(callMeta(c, "search_tools", e2e.Obj{"query": "write down"}), "tools", "name")[0])
		found := callMeta(c, "describe_tool", e2e.Obj{"name": "notes/add_note"})
		require.JSONEq(t, `{"name":"notes_add_note","description":"Writes something down","inputSchema":{"type":"object"},"serverId":"notes","originalName":"add_note"}`, string(found))
		require.Contains(t, metaFails(c, "describe_tool", e2e.Obj{"name": "notes_ad_note"}), `TOOL_NOT_FOUND: unknown tool "notes_ad_note"; did you mean "notes_add_note"`)
		require.Equal(t, []string{"notes/summary"}, cards(callMeta(c, "search_prompts", e2e.Obj{"query": "sum up"}), "prompts", "name"))
		require.Equal(t, []string{"notes/summary"}, cards(callMeta(c, "catalog_prompts", e2e.Obj{}), "prompts", "name"))
		require.Equal(t, "tone", e2e.Str(callMeta(c, "describe_prompt", e2e.Obj{"name": "summary"}), "arguments", 0, "name"))
	})
}

func TestModelsAreToldInShortWhatThereIsAndWhatIsOff(t *testing.T) {
	t.Parallel()
	w := e2e.WithMeta(t)
	w.Backend("loud", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}, "instructions": strings.Repeat("loud ", 800)})
	w.Backend("also", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("a")}, "instructions": strings.Repeat("also ", 800)})
	w.Backend("quiet", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t", e2e.Obj{"outputSchema": e2e.Obj{"type": "object"}})}, "instructions": "Be kind."})
	w.Backend("unset", e2e.Shop(), e2e.Obj{"env": e2e.Obj{"K": "${UNSET_FOR_SURE}"}})
	w.Backend("idle", e2e.Shop(), e2e.Obj{"disabled": true})
	c := w.Standalone()
	names := c.Names("tools")
	require.Equal(t, []string{"search_tools", "also_a", "loud_t", "quiet_t"}, names[len(names)-4:], "Goblin's own come first")
	require.True(t, e2e.IsSorted(names[:len(names)-3]))
	size := 0
	for _, tool := range c.List("tools")[:len(names)-3] {
		require.NotContains(t, string(tool), "outputSchema")
		size += len(tool)
	}
	require.Less(t, size, 9_000)
	require.NotEmpty(t, e2e.At(c.List("tools")[len(names)-1], "outputSchema"), "servers' tools stay")
	require.Equal(t, "object", e2e.Str(callMeta(c, "describe_tool", e2e.Obj{"name": "search_tools"}), "outputSchema", "type"))

	modern := e2e.Obj{"_meta": e2e.Obj{e2e.ProtocolPrefix + "protocolVersion": e2e.ModernRevision, e2e.ProtocolPrefix + "clientCapabilities": e2e.Obj{}}}
	text := e2e.Str(c.Ok("server/discover", modern), "instructions")
	require.Less(t, len(text), 2048+len("……")-2)
	require.Greater(t, len(text), 1900)
	require.Contains(t, text, "\n- idle: disabled")
	require.Regexp(t, `\n- unset: .*\$\{UNSET_FOR_SURE\} is not set`, text)
	require.Contains(t, text, "\n\nserver quiet: Be kind.")
	require.InDelta(t, strings.Count(text, "loud "), strings.Count(text, "also "), 1)
	servers := callMeta(c, "catalog_servers", e2e.Obj{})
	states := cards(servers, "servers", "state")
	require.Equal(t, []string{"ready", "ready", "ready", "failed", "disabled"}, states)
	require.Contains(t, e2e.Str(servers, "servers", 3, "error"), "${UNSET_FOR_SURE} is not set")
}

func TestR3_05_R3_31_R0_05_DescribeResource(t *testing.T) {
	e2e.OverEveryFront(t, func(t *testing.T, w *e2e.World, connect func(e2e.Obj) *e2e.Client) {
		w.Backend("filesystem", e2e.Merge(e2e.Filesystem(), []e2e.Obj{{"resources": []e2e.Obj{
			{"uri": e2e.AppLog, "name": "app.log", "title": "The log", "mimeType": "text/plain", "size": 12, "description": "log", "annotations": e2e.Obj{"priority": 1}},
		}}}))
		c := connect(e2e.Obj{})
		want := fmt.Sprintf(`{"uri":%q,"name":"app.log","title":"The log","mimeType":"text/plain","size":12,"description":"log","annotations":{"priority":1},
			"serverId":"filesystem","originalUri":%q,"flatId":"filesystem_file_logs_app.log"}`, e2e.In("filesystem", e2e.AppLog), e2e.AppLog)
		for _, spelling := range []string{"filesystem_file___logs_app.log", "filesystem_file_logs_app.log", e2e.In("filesystem", e2e.AppLog), e2e.AppLog} {
			require.JSONEq(t, want, string(callMeta(c, "describe_resource", e2e.Obj{"uri": spelling})), spelling)
		}
		text := metaFails(c, "describe_resource", e2e.Obj{"uri": e2e.In("filesystem", "file:///logs/ap.log")})
		require.Contains(t, text, "RESOURCE_NOT_FOUND")
		require.Contains(t, text, "file:///logs/ap.log")
		require.Contains(t, text, "did you mean "+e2e.In("filesystem", e2e.AppLog))
	})
}

func TestR3_33_CatalogOfTemplates(t *testing.T) {
	e2e.OverEveryFront(t, func(t *testing.T, w *e2e.World, connect func(e2e.Obj) *e2e.Client) {
		w.Backend("dbsrv", e2e.Dbsrv())
		w.Backend("other", e2e.Obj{"templates": []e2e.Obj{e2e.Template("x:{y}")}})
		c := connect(e2e.Obj{})
		require.Len(t, cards(callMeta(c, "catalog_resource_templates", e2e.Obj{}), "templates", "uriTemplate"), 2)
		require.JSONEq(t, fmt.Sprintf(`{"uriTemplate":%q,"name":"row","title":"Row","description":"one row","mimeType":"application/json","serverId":"dbsrv"}`,
			e2e.In("dbsrv", "mcp://database/{table}/{id}")), string(e2e.At(callMeta(c, "catalog_resource_templates", e2e.Obj{"serverId": "dbsrv"}), "templates", 0)))
	})
}

func TestMetaToolsSeeWhatChanges(t *testing.T) {
	t.Parallel()
	w := e2e.WithMeta(t)
	b := w.Backend("b", e2e.Obj{"resources": []e2e.Obj{e2e.Resource("x:old")}})
	c := w.Standalone()
	require.Len(t, cards(callMeta(c, "search_resources", e2e.Obj{"query": "old"}), "resources", "uri"), 1)
	b.Add("resources", e2e.Resource("x:brandnew"))
	b.ListChanged("resources")
	c.WaitListed("resources", e2e.In("b", "x:brandnew"), true)
	require.Equal(t, []string{e2e.In("b", "x:brandnew")}, cards(callMeta(c, "search_resources", e2e.Obj{"query": "brandnew"}), "resources", "uri"))
	b.Remove("resources", "x:old")
	b.ListChanged("resources")
	c.WaitListed("resources", e2e.In("b", "x:old"), false)
	require.Empty(t, cards(callMeta(c, "search_resources", e2e.Obj{"query": "old"}), "resources", "uri"))
	require.False(t, slices.Contains(cards(callMeta(c, "catalog_resources", e2e.Obj{}), "resources", "uri"), e2e.In("b", "x:old")))
}

func TestDescriptionsThatClientsCutAreWarnedOf(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	const want = `tool "talks" of server "b": the description has 2049 characters; clients such as Claude Code show only 2048`
	w.Backend("b", e2e.Obj{"tools": []e2e.Obj{
		e2e.Tool("talks", e2e.Obj{"description": strings.Repeat("é", 2049)}),
		e2e.Tool("fits", e2e.Obj{"description": strings.Repeat("é", 2048)}),
	}})
	require.NotContains(t, w.Run("validate").Stderr, "warning", "no server is started to check")
	c := w.Socket()
	c.Names("tools")
	out := w.Run("validate")
	require.Contains(t, out.Stderr, want, "the daemon knows")
	require.NotContains(t, out.Stderr, "fits")
	require.Contains(t, out.Stdout, "is valid, with 1 warning")
	c.Close()
	w.Succeeds("stop")
	require.Contains(t, w.Run("validate").Stderr, want, "it is cached")
	require.Contains(t, w.Run("validate", "--json").Stdout, `has 2049 characters`)
}

func TestR0_04_MetaToolsAreListedAndSwitchedByTheConfig(t *testing.T) {
	t.Parallel()
	all := []string{
		"catalog_prompts", "catalog_resource_templates", "catalog_resources", "catalog_servers", "catalog_tools",
		"describe_prompt", "describe_resource", "describe_tool", "execute_lua", "search_prompts", "search_resources", "search_tools",
	}
	for value, want := range map[string][]string{
		"true": all, "false": {}, `["describe_tool","search_tools"]`: {"describe_tool", "search_tools"}, `"auto"`: {},
	} {
		w := e2e.NewWorld(t)
		w.Gateway["meta_tools"] = json.RawMessage(value)
		w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("own")}})
		c := w.Standalone()
		require.ElementsMatch(t, append([]string{"b_own"}, want...), c.Names("tools"), value)
		if len(want) == 0 {
			require.Equal(t, "TOOL_NOT_FOUND", c.Fault("tools/call", e2e.Obj{"name": "catalog_tools"}).Kind())
		}
	}
	w := e2e.NewWorld(t)
	var known []string
	schema := json.RawMessage(w.Succeeds("validate", "--schema"))
	for _, form := range e2e.Each(schema, "properties", "gateway", "properties", "meta_tools", "anyOf", 1, "items", "anyOf", 0, "enum") {
		known = append(known, strings.Trim(string(form), `"`))
	}
	all = append(all, "catalog_skills", "search_skills", "call_tool") // if a server has skills, or the client searches
	require.ElementsMatch(t, all, known, "the config knows them, and no others")
	w = e2e.NewWorld(t)
	w.Gateway["meta_tools"] = []string{"serch_tools"}
	out := w.Run("validate")
	require.Equal(t, e2e.ExitConfig, out.Code)
	require.Contains(t, out.Stderr, `did you mean "search_tools"?`)
}

func TestR3_05_DescribeResourceInFlatMode(t *testing.T) {
	t.Parallel()
	w := e2e.WithMeta(t)
	w.Gateway["namespace"] = "flat"
	w.Backend("filesystem", e2e.Filesystem())
	c := w.Standalone()
	require.Equal(t, "filesystem_file_logs_app.log", e2e.Str(callMeta(c, "describe_resource", e2e.Obj{"uri": "filesystem_file___logs_app.log"}), "uri"))
	require.Contains(t, cards(callMeta(c, "catalog_resources", e2e.Obj{}), "resources", "uri"), "filesystem_file_logs_app.log")
}
