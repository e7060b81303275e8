package resources

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
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
	require.Equal(t, e2e.In("filesystem", "ui://app/1"), e2e.Str(call, "_meta", "ui", "resourceUri"))

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

func TestR3_08_EveryListedURIReadsItsOriginal(t *testing.T) {
	for _, namespace := range []string{"uri", "flat"} {
		t.Run(namespace, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			w.Gateway["namespace"] = namespace
			want := e2e.RandomURIs(1000)
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

func TestR3_11_R3_12_TemplateExpansionsAreRouted(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	db, fs := w.Backend("dbsrv", e2e.Dbsrv()), w.Backend("filesystem", e2e.Filesystem())
	c := w.Standalone()
	const original = "mcp://database/users/42"
	for _, form := range []string{e2e.In("dbsrv", original), original, "dbsrv_mcp_database_users_42"} {
		result := c.Ok("resources/read", e2e.Obj{"uri": form})
		require.Equal(t, e2e.In("dbsrv", original), e2e.Str(result, "contents", 0, "uri"), form)
	}
	require.Equal(t, []string{original, original, original}, db.Uris("resources/read"))
	require.Zero(t, fs.Count("resources/read"))
}

func TestR3_13_NoMatchAsksNobody(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	db, fs := w.Backend("dbsrv", e2e.Dbsrv()), w.Backend("filesystem", e2e.Filesystem())
	c := w.Standalone()
	for _, uri := range []string{e2e.In("dbsrv", "mcp://database/users/42/x"), "zzz://q", "mcp://database/users", "dbsrv_mcp_database", ""} {
		e := c.Fault("resources/read", e2e.Obj{"uri": uri})
		require.Equal(t, "RESOURCE_NOT_FOUND", e.Kind(), uri)
	}
	require.Zero(t, db.Count("resources/read")+fs.Count("resources/read"))
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

func TestC15_NamesDoNotDependOnWhoIsUp(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Gateway["startup_wait"] = "300ms"
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
