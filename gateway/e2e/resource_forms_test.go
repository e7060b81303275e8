//go:build e2e

package e2e_test

import (
	"regexp"
	"strings"
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

func TestC2_EqualFlatIdsGetATail(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Gateway["namespace"] = "flat"
	b := w.Backend("s", e2e.Obj{"resources": []e2e.Obj{e2e.Resource("file:///a/b"), e2e.Resource("file:///a_b")}})
	c := w.Standalone()
	first := "s_file_a_b~" + e2e.FlatTailOf("file:///a/b")
	second := "s_file_a_b~" + e2e.FlatTailOf("file:///a_b")
	require.ElementsMatch(t, []string{first, second}, c.Names("resources"))
	require.Equal(t, "s file:///a_b", c.ReadText(second))
	e := c.Fault("resources/read", e2e.Obj{"uri": "s_file_a_b"})
	require.Equal(t, "AMBIGUOUS", e.Kind())
	require.Equal(t, -32602, e.Code)
	require.Contains(t, e.Message+string(e.Data), first)
	require.Contains(t, e.Message+string(e.Data), second)
	require.Len(t, b.Uris("resources/read"), 1)
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

func TestC3_TemplatesOfSeveralServersAreAmbiguousForARawURI(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	one, two := w.Backend("one", e2e.Dbsrv()), w.Backend("two", e2e.Dbsrv())
	c := w.Standalone()
	e := c.Fault("resources/read", e2e.Obj{"uri": "mcp://database/users/42"})
	require.Equal(t, "AMBIGUOUS", e.Kind())
	require.Zero(t, one.Count("resources/read")+two.Count("resources/read"))
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

func TestR1_01_to_R1_05_NamespacedURIs(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	cases := map[string]string{
		"calculator": "file:///data.json", "my-api": "https://api.example.com/doc?x=1&y=%20#frag", "data-server": "custom://resource/1",
	}
	backends := map[string]*e2e.Backend{}
	for _, server := range []string{"calculator", "my-api", "data-server"} {
		backends[server] = w.Backend(server, e2e.Obj{"resources": []e2e.Obj{e2e.Resource(cases[server])}})
	}
	c := w.Standalone()
	listed := c.Names("resources")
	for server, uri := range cases {
		require.Contains(t, listed, e2e.In(server, uri))
		result := c.Ok("resources/read", e2e.Obj{"uri": e2e.In(server, uri)})
		require.Equal(t, e2e.In(server, uri), e2e.Str(result, "contents", 0, "uri"))
		require.Equal(t, []string{uri}, backends[server].Uris("resources/read"))
	}
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

func TestToolNamesAreBoundedAndClean(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 200)
	originals := []string{long, long + "y", "with space", "with.dot", "ünï", "with_space", "a/b", strings.Repeat("n", 60)}
	w := e2e.NewWorld(t)
	var tools []e2e.Obj
	for _, name := range originals {
		tools = append(tools, e2e.Tool(name, e2e.Obj{"description": name}))
	}
	w.Backend("my.server", e2e.Obj{"tools": tools})
	c := w.Standalone()
	clean := regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	entries := c.List("tools")
	require.Len(t, entries, len(originals))
	seen := map[string]bool{}
	for _, e := range entries {
		name, original := e2e.Str(e, "name"), e2e.Str(e, "description")
		require.Regexp(t, clean, name)
		require.False(t, seen[name], "listed twice: %s", name)
		seen[name] = true
		require.Equal(t, "my.server:"+original+":{}", c.CallText(name, e2e.Obj{}))
	}
	require.True(t, seen["my_server_with_dot"], "%v", seen)
	require.True(t, seen["my_server_with_space"], "%v", seen)
	require.True(t, seen["my_server_with_space_"+e2e.TailOf("my.server", "with space")], "%v", seen)
}

func TestC15_NamesDoNotDependOnWhoIsUp(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Gateway["startup_wait"], w.Gateway["handshake_wait"] = "300ms", "300ms"
	w.Backend("my", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("db_x")}})
	w.Backend("my_db", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("x")}, "on": e2e.Obj{"initialize": e2e.Actions(e2e.Do("hang"))}})
	c := w.Standalone()
	c.WaitListed("tools", "my_db_x_"+e2e.TailOf("my", "db_x"), true)
	require.Len(t, c.Names("tools"), 1)
}

func TestC3_FormsThatURLParsersMakeOfTheListedURI(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("s", e2e.Obj{"resources": []e2e.Obj{e2e.Resource("x:/a/../b c"), e2e.Resource("n:ü\"<>`{}"), e2e.Resource("q:?a b#c d")}})
	c := w.Standalone()
	for form, original := range map[string]string{
		"mcp://s/b%20c":                      "",
		"mcp://s/x:/b%20c":                   "x:/a/../b c",
		"mcp://s/n:%C3%BC%22%3C%3E%60%7B%7D": "n:ü\"<>`{}",
		"mcp://s/q:?a%20b#c%20d":             "q:?a b#c d",
	} {
		if original == "" {
			require.Equal(t, "RESOURCE_NOT_FOUND", c.Fault("resources/read", e2e.Obj{"uri": form}).Kind())
			continue
		}
		require.Equal(t, "s "+original, c.ReadText(form))
	}
	require.Len(t, b.Uris("resources/read"), 3)
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

func TestC7_ServerNameThatLooksLikeAnAuthority(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("dbsrv", e2e.Dbsrv())
	w.Backend("database", e2e.Obj{"resources": []e2e.Obj{e2e.Resource("users/1")}})
	c := w.Standalone()
	require.Equal(t, "database users/1", c.ReadText("mcp://database/users/1"))
	require.Equal(t, "dbsrv mcp://database/users/1", c.ReadText(e2e.In("dbsrv", "mcp://database/users/1")))
}

func TestR0_09_R4_03_EverySchemeMakesTheRoundTrip(t *testing.T) {
	t.Parallel()
	uris := []string{
		"file:///a/b.txt", "http://example.com/x?y=1#z", "https://example.com:8080/a%20b", "mcp://other/path", "s3://bucket/k",
		"custom-scheme+x.y:opaque", "urn:isbn:0451450523", "data:text/plain;base64,SGk=", "note:ünï cödé", "a:b/../c", "x:",
	}
	w := e2e.NewWorld(t)
	var all []e2e.Obj
	for _, uri := range uris {
		all = append(all, e2e.Resource(uri))
	}
	b := w.Backend("any", e2e.Obj{"resources": all})
	c := w.Standalone()
	for _, uri := range uris {
		require.Equal(t, "any "+uri, c.ReadText(e2e.In("any", uri)))
	}
	require.Equal(t, uris, b.Uris("resources/read"))
}

func TestC15_PrefixesThatNestAlwaysCarryTheTail(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("my", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("db_x"), e2e.Tool("y")}})
	w.Backend("my_db", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("x")}})
	c := w.Standalone()
	tailed := "my_db_x_" + e2e.TailOf("my", "db_x")
	require.ElementsMatch(t, []string{"my_db_x", tailed, "my_y"}, c.Names("tools"))
	require.Equal(t, "my_db:x:{}", c.CallText("my_db_x", e2e.Obj{}))
	require.Equal(t, "my:db_x:{}", c.CallText(tailed, e2e.Obj{}))
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

func TestTheBareURIOfTheAppsOfSeveralServersIsAmbiguous(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("one", app("show"))
	two := w.Backend("two", app("present"))
	c := w.Standalone()
	require.Equal(t, "AMBIGUOUS", c.Fault("resources/read", e2e.Obj{"uri": "ui://widget/app.html"}).Kind())
	c.ReadText("ui://two/widget/app.html")
	require.Equal(t, []string{"ui://widget/app.html"}, two.Uris("resources/read"))
}
