package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// withMeta is a world with Goblin's own tools.
func withMeta(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.gateway["meta_tools"] = true
	return w
}

// overEveryFront runs a test with a client that made a handshake, over each
// transport.
func overEveryFront(t *testing.T, test func(t *testing.T, w *world, connect func(caps obj) *client)) {
	t.Helper()
	t.Parallel()
	for _, args := range [][]string{{"stdio", "--standalone"}, {"stdio"}} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			t.Parallel()
			w := withMeta(t)
			w.hosted = len(args) == 1
			test(t, w, func(caps obj) *client {
				c := w.pipe(args...)
				c.caps = caps
				c.init()
				return c
			})
		})
	}
	t.Run("http", func(t *testing.T) {
		t.Parallel()
		w := withMeta(t)
		var s *web
		test(t, w, func(caps obj) *client {
			if s == nil {
				s = w.serve()
			}
			return s.client(true, caps)
		})
	})
}

// meta calls one of Goblin's own tools and gives the structured answer, which
// the text must repeat.
func (c *client) meta(name string, args obj) json.RawMessage {
	c.t.Helper()
	result := c.ok("tools/call", obj{"name": name, "arguments": args})
	require.Nil(c.t, at(result, "isError"), "%s", result)
	structured := at(result, "structuredContent")
	require.JSONEq(c.t, string(structured), str(result, "content", 0, "text"))
	return structured
}

// metaFails is the text of a call that is refused.
func (c *client) metaFails(name string, args obj) string {
	c.t.Helper()
	result := c.ok("tools/call", obj{"name": name, "arguments": args})
	require.Equal(c.t, "true", string(at(result, "isError")), "%s", result)
	return str(result, "content", 0, "text")
}

// cards are the members of the cards in an answer, in order.
func cards(answer json.RawMessage, list, member string) []string {
	names := []string{}
	for _, card := range each(answer, list) {
		names = append(names, str(card, member))
	}
	return names
}

func TestR0_04_MetaToolsAreListedAndSwitchedByTheConfig(t *testing.T) {
	t.Parallel()
	all := []string{
		"catalog_prompts", "catalog_resource_templates", "catalog_resources", "catalog_servers", "catalog_tools",
		"describe_prompt", "describe_resource", "describe_tool", "execute_lua", "search_prompts", "search_resources", "search_tools",
	}
	for value, want := range map[string][]string{
		"true": all, string(marshal(all)): all, "false": {}, `["describe_tool","search_tools"]`: {"describe_tool", "search_tools"},
	} {
		w := newWorld(t)
		w.gateway["meta_tools"] = json.RawMessage(value)
		w.backend("b", obj{"tools": []obj{tool("own")}})
		c := w.standalone()
		require.ElementsMatch(t, append([]string{"b_own"}, want...), c.names("tools"), value)
		if len(want) == 0 {
			require.Equal(t, "TOOL_NOT_FOUND", c.fault("tools/call", obj{"name": "catalog_tools"}).kind())
		}
	}
	w := newWorld(t)
	var known []string
	schema := json.RawMessage(w.succeeds("validate", "--schema"))
	for _, form := range each(schema, "properties", "gateway", "properties", "meta_tools", "anyOf", 1, "items", "anyOf", 0, "enum") {
		known = append(known, strings.Trim(string(form), `"`))
	}
	require.ElementsMatch(t, all, known, "the config knows them, and no others")
	w = newWorld(t)
	w.gateway["meta_tools"] = []string{"serch_tools"}
	out := w.run("validate")
	require.Equal(t, exitConfig, out.code)
	require.Contains(t, out.stderr, `did you mean "search_tools"?`)
}

func TestR3_30_CatalogOfResources(t *testing.T) {
	overEveryFront(t, func(t *testing.T, w *world, connect func(obj) *client) {
		w.backend("filesystem", filesystem())
		w.backend("s3", s3())
		c := connect(obj{})
		all := c.meta("catalog_resources", obj{})
		require.Equal(t, []string{"goblin://servers", in("filesystem", appJSON), in("filesystem", appLog), in("s3", "s3://bucket/config/app.json")},
			cards(all, "resources", "uri"))
		require.Equal(t, "4", string(at(all, "total")))
		require.JSONEq(t, fmt.Sprintf(`{"uri":%q,"name":"app.log","description":"log","mimeType":"text/plain","size":12,"serverId":"filesystem"}`, in("filesystem", appLog)),
			string(at(all, "resources", 2)))
		require.Equal(t, []string{"s3"}, cards(c.meta("catalog_resources", obj{"serverId": "s3"}), "resources", "serverId"))
		require.Equal(t, []string{in("filesystem", appLog)}, cards(c.meta("catalog_resources", obj{"mimeType": "text/plain"}), "resources", "uri"))
		require.Empty(t, cards(c.meta("catalog_resources", obj{"serverId": "nobody"}), "resources", "uri"))
		page := c.meta("catalog_resources", obj{"limit": 1, "offset": 2})
		require.Equal(t, []string{in("filesystem", appLog)}, cards(page, "resources", "uri"))
		require.Equal(t, "3", string(at(page, "nextOffset")))
		require.Contains(t, c.metaFails("catalog_resources", obj{"mime": "x"}), "INVALID_ARGUMENTS")
	})
}

func TestR3_05_R3_31_R0_05_DescribeResource(t *testing.T) {
	overEveryFront(t, func(t *testing.T, w *world, connect func(obj) *client) {
		w.backend("filesystem", merge(filesystem(), []obj{{"resources": []obj{
			{"uri": appLog, "name": "app.log", "title": "The log", "mimeType": "text/plain", "size": 12, "description": "log", "annotations": obj{"priority": 1}},
		}}}))
		c := connect(obj{})
		want := fmt.Sprintf(`{"uri":%q,"name":"app.log","title":"The log","mimeType":"text/plain","size":12,"description":"log","annotations":{"priority":1},
			"serverId":"filesystem","originalUri":%q,"flatId":"filesystem_file_logs_app.log"}`, in("filesystem", appLog), appLog)
		for _, spelling := range []string{"filesystem_file___logs_app.log", "filesystem_file_logs_app.log", in("filesystem", appLog), appLog} {
			require.JSONEq(t, want, string(c.meta("describe_resource", obj{"uri": spelling})), spelling)
		}
		text := c.metaFails("describe_resource", obj{"uri": in("filesystem", "file:///logs/ap.log")})
		require.Contains(t, text, "RESOURCE_NOT_FOUND")
		require.Contains(t, text, "file:///logs/ap.log")
		require.Contains(t, text, "did you mean "+in("filesystem", appLog))
	})
}

func TestR3_05_DescribeResourceInFlatMode(t *testing.T) {
	t.Parallel()
	w := withMeta(t)
	w.gateway["namespace"] = "flat"
	w.backend("filesystem", filesystem())
	c := w.standalone()
	require.Equal(t, "filesystem_file_logs_app.log", str(c.meta("describe_resource", obj{"uri": "filesystem_file___logs_app.log"}), "uri"))
	require.Contains(t, cards(c.meta("catalog_resources", obj{}), "resources", "uri"), "filesystem_file_logs_app.log")
}

func TestR3_32_SearchOfResources(t *testing.T) {
	overEveryFront(t, func(t *testing.T, w *world, connect func(obj) *client) {
		w.backend("filesystem", merge(filesystem(), []obj{{"resources": []obj{
			{"uri": appLog, "name": "app.log", "mimeType": "text/plain"},
			{"uri": "file:///readme", "name": "readme", "mimeType": "text/plain", "description": "how to start the app"},
			{"uri": "file:///same", "name": "same"},
		}}}))
		w.backend("s3", obj{"resources": []obj{{"uri": "file:///same", "name": "same"}, {"uri": "s3://b/app.png", "name": "app.png", "mimeType": "image/png"}}})
		c := connect(obj{})
		hits := cards(c.meta("search_resources", obj{"query": "app"}), "resources", "uri")
		require.ElementsMatch(t, []string{in("filesystem", appLog), in("s3", "s3://b/app.png"), in("filesystem", "file:///readme")}, hits)
		require.Equal(t, in("filesystem", "file:///readme"), hits[2], "a name counts more than a description")
		require.Equal(t, []string{in("s3", "s3://b/app.png")},
			cards(c.meta("search_resources", obj{"query": "app", "mimeType": "image/*"}), "resources", "uri"))
		require.Equal(t, in("filesystem", appLog), cards(c.meta("search_resources", obj{"query": "aplog"}), "resources", "uri")[0], "a typing error")
		require.Equal(t, []string{in("filesystem", "file:///same"), in("s3", "file:///same")},
			cards(c.meta("search_resources", obj{"query": "same"}), "resources", "uri"), "raw URIs twice")
		require.Len(t, cards(c.meta("search_resources", obj{"query": ""}), "resources", "uri"), 6, "an empty query lists all")
	})
}

func TestR3_33_CatalogOfTemplates(t *testing.T) {
	overEveryFront(t, func(t *testing.T, w *world, connect func(obj) *client) {
		w.backend("dbsrv", dbsrv())
		w.backend("other", obj{"templates": []obj{template("x:{y}")}})
		c := connect(obj{})
		require.Len(t, cards(c.meta("catalog_resource_templates", obj{}), "templates", "uriTemplate"), 2)
		require.JSONEq(t, fmt.Sprintf(`{"uriTemplate":%q,"name":"row","title":"Row","description":"one row","mimeType":"application/json","serverId":"dbsrv"}`,
			in("dbsrv", "mcp://database/{table}/{id}")), string(at(c.meta("catalog_resource_templates", obj{"serverId": "dbsrv"}), "templates", 0)))
	})
}

func TestMetaToolsForServersToolsAndPrompts(t *testing.T) {
	overEveryFront(t, func(t *testing.T, w *world, connect func(obj) *client) {
		w.backend("notes", obj{
			"tools":   []obj{tool("add_note", obj{"description": "Writes something down"}), tool("drop_note")},
			"prompts": []obj{prompt("summary", obj{"description": "Sums up what was written", "arguments": []obj{{"name": "tone"}}})},
		})
		w.backend("broken", obj{"on": obj{"initialize": actions(do("crash"))}})
		w.gateway["startup_wait"] = "2s"
		c := connect(obj{})
		servers := c.meta("catalog_servers", obj{})
		require.Equal(t, []string{"notes", "broken"}, cards(servers, "servers", "serverId"))
		require.Equal(t, "ready", str(servers, "servers", 0, "state"))
		require.Equal(t, "2", string(at(servers, "servers", 0, "tools")))
		eventually(t, "the error of the server that is broken", func() bool {
			return str(c.meta("catalog_servers", obj{"offset": 1}), "servers", 0, "error") != ""
		})
		require.Equal(t, []string{"notes_add_note", "notes_drop_note"}, cards(c.meta("catalog_tools", obj{"serverId": "notes"}), "tools", "name"))
		require.Equal(t, "notes_add_note", cards(c.meta("search_tools", obj{"query": "write down"}), "tools", "name")[0])
		found := c.meta("describe_tool", obj{"name": "notes/add_note"})
		require.JSONEq(t, `{"name":"notes_add_note","description":"Writes something down","inputSchema":{"type":"object"},"serverId":"notes","originalName":"add_note"}`, string(found))
		require.Contains(t, c.metaFails("describe_tool", obj{"name": "notes_ad_note"}), `TOOL_NOT_FOUND: unknown tool "notes_ad_note"; did you mean "notes_add_note"`)
		require.Equal(t, []string{"notes/summary"}, cards(c.meta("search_prompts", obj{"query": "sum up"}), "prompts", "name"))
		require.Equal(t, []string{"notes/summary"}, cards(c.meta("catalog_prompts", obj{}), "prompts", "name"))
		require.Equal(t, "tone", str(c.meta("describe_prompt", obj{"name": "summary"}), "arguments", 0, "name"))
	})
}

func TestMetaToolsSeeWhatChanges(t *testing.T) {
	t.Parallel()
	w := withMeta(t)
	b := w.backend("b", obj{"resources": []obj{resource("x:old")}})
	c := w.standalone()
	require.Len(t, cards(c.meta("search_resources", obj{"query": "old"}), "resources", "uri"), 1)
	b.add("resources", resource("x:brandnew"))
	b.listChanged("resources")
	c.waitListed("resources", in("b", "x:brandnew"), true)
	require.Equal(t, []string{in("b", "x:brandnew")}, cards(c.meta("search_resources", obj{"query": "brandnew"}), "resources", "uri"))
	b.remove("resources", "x:old")
	b.listChanged("resources")
	c.waitListed("resources", in("b", "x:old"), false)
	require.Empty(t, cards(c.meta("search_resources", obj{"query": "old"}), "resources", "uri"))
	require.False(t, slices.Contains(cards(c.meta("catalog_resources", obj{}), "resources", "uri"), in("b", "x:old")))
}
