//go:build e2e

package e2e_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

func TestR3_08_EveryListedURIReadsItsOriginal(t *testing.T) {
	for _, namespace := range []string{"uri", "flat"} {
		t.Run(namespace, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			w.Gateway["namespace"] = namespace
			want := e2e.RandomURIs(400)
			var all []e2e.Obj
			for _, uri := range want {
				all = append(all, e2e.Resource(uri))
			}
			b := w.Backend("random", e2e.Obj{"resources": all})
			c := w.Standalone()
			entries := c.List("resources")
			require.Len(t, entries, len(want))
			var ids, originals []string
			for _, e := range entries { // the name still is the original URI
				ids = append(ids, c.Begin("resources/read", e2e.Obj{"uri": e2e.Str(e, "uri")}))
				originals = append(originals, e2e.Str(e, "name"))
			}
			for i, id := range ids {
				result := c.End(id)
				require.Nil(t, result.Error, "%s: %s", originals[i], result.Raw)
				require.Equal(t, "random "+originals[i], e2e.Str(result.Result, "contents", 0, "text"))
			}
			require.ElementsMatch(t, want, b.Uris("resources/read"))
		})
	}
}

func TestR3_21_TemplateOperatorsKeepTheURIByteExact(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("t", e2e.Obj{"templates": []e2e.Obj{
		e2e.Template("file:///{+path}"), e2e.Template("q://search{?q,n}"), e2e.Template("one://{id}/end"), e2e.Template("seg://r{/a,b}"),
		e2e.Template("frag://x{#f}"), e2e.Template("dot://x{.ext}"), e2e.Template("par://x{;p}"), e2e.Template("pre://{v:3}/{v}"),
	}})
	c := w.Standalone()
	want := []string{
		"file:///a/b/c.txt", "file:///a%2Fb/%20", "q://search?q=a%20b&n=2", "q://search?n=2", "q://search", "one://a%2Fb/end", "one://ü/end",
		"seg://r/x/y", "frag://x#top", "dot://x.json", "par://x;p=1",
	}
	for _, uri := range want {
		require.Equal(t, "t "+uri, c.ReadText(e2e.In("t", uri)))
		require.Equal(t, "t "+uri, c.ReadText(uri), "raw")
	}
	for _, uri := range []string{"one://a/b/end", "one:///end", "q://searching"} {
		require.Equal(t, "RESOURCE_NOT_FOUND", c.Fault("resources/read", e2e.Obj{"uri": e2e.In("t", uri)}).Kind(), uri)
	}
	require.Len(t, b.Uris("resources/read"), 2*len(want))
}

func TestR0_03_ExactComesBeforeTemplate(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("a", e2e.Obj{"templates": []e2e.Obj{e2e.Template("file:///{+path}")}})
	w.Backend("b", e2e.Obj{"resources": []e2e.Obj{e2e.Resource(e2e.AppLog)}})
	c := w.Standalone()
	require.Equal(t, "b "+e2e.AppLog, c.ReadText(e2e.AppLog))
	require.Equal(t, "a file:///else", c.ReadText("file:///else"))
	require.Equal(t, "a "+e2e.AppLog, c.ReadText(e2e.In("a", e2e.AppLog)))
}

func TestR1_06_LinksOfToolResultsAreReadable(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("data-server", e2e.Obj{
		"tools": []e2e.Obj{e2e.Tool("make")}, "resources": []e2e.Obj{},
		"calls": e2e.Obj{"make": e2e.Obj{"content": []e2e.Obj{{"type": "resource_link", "uri": "file:///output.json", "name": "o"}}}},
	})
	c := w.Standalone()
	uri := e2e.In("data-server", "file:///output.json")
	require.Equal(t, "RESOURCE_NOT_FOUND", c.Fault("resources/read", e2e.Obj{"uri": uri}).Kind())
	require.Equal(t, uri, e2e.Str(c.Ok("tools/call", e2e.Obj{"name": "make"}), "content", 0, "uri"))
	require.Equal(t, "data-server file:///output.json", c.ReadText(uri))
	require.Equal(t, []string{"file:///output.json"}, b.Uris("resources/read"))
}

func TestOpenResourcesForwardsURIsThatWereNeverListed(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("open", e2e.Obj{"resources": []e2e.Obj{}}, e2e.Obj{"open_resources": true})
	c := w.Standalone()
	require.Equal(t, "open x://any?a#b", c.ReadText(e2e.In("open", "x://any?a#b")))
	require.Equal(t, []string{"x://any?a#b"}, b.Uris("resources/read"))
}

func TestFlatNamespaceListsRawTemplates(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Gateway["namespace"] = "flat"
	w.Backend("dbsrv", e2e.Dbsrv())
	w.Backend("fs", e2e.Filesystem())
	c := w.Standalone()
	require.Equal(t, []string{"mcp://database/{table}/{id}"}, c.Names("templates"))
	result := c.Ok("resources/read", e2e.Obj{"uri": "mcp://database/users/42"})
	require.Equal(t, "dbsrv mcp://database/users/42", e2e.Str(result, "contents", 0, "text"))
	require.Equal(t, "fs_file_logs_app.log", e2e.Str(c.Ok("resources/read", e2e.Obj{"uri": e2e.AppLog}), "contents", 0, "uri"))
}

func TestR0_09_R1_01_to_R1_05_R4_03_EverySchemeMakesTheRoundTrip(t *testing.T) {
	t.Parallel()
	uris := []string{
		"file:///a/b.txt", "http://example.com/x?y=1#z", "https://api.example.com/doc?x=1&y=%20#frag", "https://example.com:8080/a%20b", "mcp://other/path", "s3://bucket/k",
		"custom-scheme+x.y:opaque", "urn:isbn:0451450523", "data:text/plain;base64,SGk=", "note:ünï cödé", "a:b/../c", "x:",
	}
	w := e2e.NewWorld(t)
	var all []e2e.Obj
	for _, uri := range uris {
		all = append(all, e2e.Resource(uri))
	}
	b := w.Backend("any", e2e.Obj{"resources": all})
	c := w.Standalone()
	listed := c.Names("resources")
	for _, uri := range uris {
		require.Contains(t, listed, e2e.In("any", uri))
		result := c.Ok("resources/read", e2e.Obj{"uri": e2e.In("any", uri)})
		require.Equal(t, "any "+uri, e2e.Str(result, "contents", 0, "text"))
		require.Equal(t, e2e.In("any", uri), e2e.Str(result, "contents", 0, "uri"))
	}
	require.Equal(t, uris, b.Uris("resources/read"))
}

func TestR3_07_FlatIdCollapsesSpecialCharacters(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Gateway["namespace"] = "flat"
	b := w.Backend("filesystem", e2e.Obj{"resources": []e2e.Obj{e2e.Resource("x://a b/c?d=1&e"), e2e.Resource(e2e.AppLog)}})
	c := w.Standalone()
	require.Equal(t, []string{"filesystem_file_logs_app.log", "filesystem_x_a_b_c_d_1_e"}, c.Names("resources"))
	result := c.Ok("resources/read", e2e.Obj{"uri": "filesystem_x_a_b_c_d_1_e"})
	require.Equal(t, "filesystem_x_a_b_c_d_1_e", e2e.Str(result, "contents", 0, "uri"))
	require.Equal(t, []string{"x://a b/c?d=1&e"}, b.Uris("resources/read"))
	require.Equal(t, "filesystem "+e2e.AppLog, c.ReadText(e2e.In("filesystem", e2e.AppLog)))
}

func TestR1_07_PromptNamesAndTheirAliases(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	calc := w.Backend("calculator", e2e.Obj{"prompts": []e2e.Obj{e2e.Prompt("help"), e2e.Prompt("shared")}})
	w.Backend("other", e2e.Obj{"prompts": []e2e.Obj{e2e.Prompt("shared")}})
	c := w.Standalone()
	require.Equal(t, []string{"calculator/help", "calculator/shared", "other/shared"}, c.Names("prompts"))
	for _, name := range []string{"calculator/help", "calculator_help", "help"} {
		result := c.Ok("prompts/get", e2e.Obj{"name": name, "arguments": e2e.Obj{"a": "1"}})
		require.Equal(t, `calculator:help:{"a":"1"}`, e2e.Str(result, "messages", 0, "content", "text"), name)
	}
	for _, told := range calc.Received("prompts/get") {
		require.Equal(t, "help", e2e.Str(told.Msg, "params", "name"))
	}
	require.Equal(t, "AMBIGUOUS", c.Fault("prompts/get", e2e.Obj{"name": "shared"}).Kind())
	e := c.Fault("prompts/get", e2e.Obj{"name": "calculator/helpp"})
	require.Equal(t, -32602, e.Code)
	require.Equal(t, "PROMPT_NOT_FOUND", e.Kind())
	require.Contains(t, e.Message, "calculator/help")
}

func TestR1_08_R1_09_ReasonsOfUnknownResources(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("server", e2e.Filesystem())
	c := w.Standalone()
	for uri, reason := range map[string]string{
		"mcp://unknown-server/file:///x": "Server 'unknown-server' not found",
		"mcp://server":                   "Invalid namespaced URI format",
		"mcp://server/":                  "Invalid namespaced URI format",
		"mcp:///x":                       "Invalid namespaced URI format",
		"mcp://server/file:///nope":      "Resource not found",
		"file:///nope":                   "Resource not found",
	} {
		e := c.Fault("resources/read", e2e.Obj{"uri": uri})
		require.Equal(t, "RESOURCE_NOT_FOUND: "+reason+": "+uri, e.Message)
		require.Equal(t, "RESOURCE_NOT_FOUND", e.Kind())
		require.Equal(t, -32002, e.Code)
	}
}
