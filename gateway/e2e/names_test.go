package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// tailOf is the tail of a name that could not stay as it was.
func tailOf(server, original string) string {
	sum := sha256.Sum256([]byte(server + "\x00" + original))
	return hex.EncodeToString(sum[:4])
}

func TestR3_06_OneIdentifierInAllCommunications(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	link := obj{"type": "resource_link", "uri": "file:///out.json", "name": "out"}
	embedded := obj{"type": "resource", "resource": obj{"uri": "file:///in.txt", "text": "file:///raw stays in texts"}}
	b := w.backend("filesystem", merge(filesystem(), []obj{{
		"prompts": []obj{prompt("show")},
		"calls":   obj{"stat": obj{"content": []obj{link, embedded}, "structuredContent": obj{"uri": "file:///data"}, "_meta": obj{"ui": obj{"resourceUri": "ui://app/1"}}}},
		"gets":    obj{"show": obj{"messages": []obj{{"role": "user", "content": embedded}, {"role": "user", "content": link}}}},
		"on": obj{"resources/read " + appJSON: actions(do("error", obj{"error": obj{
			"code": -32050, "message": "gone: file:///config/app.json", "data": obj{"uri": appJSON, "more": 1},
		}}))},
	}}))
	c := w.standalone()

	call := c.ok("tools/call", obj{"name": "filesystem_stat"})
	require.Equal(t, in("filesystem", "file:///out.json"), str(call, "content", 0, "uri"))
	require.Equal(t, in("filesystem", "file:///in.txt"), str(call, "content", 1, "resource", "uri"))
	require.Equal(t, "file:///raw stays in texts", str(call, "content", 1, "resource", "text"))
	require.Equal(t, "file:///data", str(call, "structuredContent", "uri"))
	require.Equal(t, in("filesystem", "ui://app/1"), str(call, "_meta", "ui", "resourceUri"))

	get := c.ok("prompts/get", obj{"name": "filesystem/show"})
	require.Equal(t, in("filesystem", "file:///in.txt"), str(get, "messages", 0, "content", "resource", "uri"))
	require.Equal(t, in("filesystem", "file:///out.json"), str(get, "messages", 1, "content", "uri"))

	e := c.fault("resources/read", obj{"uri": in("filesystem", appJSON)})
	require.Equal(t, -32050, e.Code)
	require.Equal(t, "gone: file:///config/app.json", e.Message)
	require.JSONEq(t, `{"uri":"mcp://filesystem/file:///config/app.json","more":1}`, string(e.Data))

	c.ok("resources/subscribe", obj{"uri": in("filesystem", appLog)})
	b.updated(appLog)
	require.Equal(t, []string{in("filesystem", appLog)}, c.waitUpdates(1))
}

func TestR3_07_FlatIdCollapsesSpecialCharacters(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.gateway["namespace"] = "flat"
	b := w.backend("filesystem", obj{"resources": []obj{resource("x://a b/c?d=1&e"), resource(appLog)}})
	c := w.standalone()
	require.Equal(t, []string{"filesystem_file_logs_app.log", "filesystem_x_a_b_c_d_1_e"}, c.names("resources"))
	result := c.ok("resources/read", obj{"uri": "filesystem_x_a_b_c_d_1_e"})
	require.Equal(t, "filesystem_x_a_b_c_d_1_e", str(result, "contents", 0, "uri"))
	require.Equal(t, []string{"x://a b/c?d=1&e"}, b.uris("resources/read"))
	require.Equal(t, "filesystem "+appLog, c.readText(in("filesystem", appLog)))
}

func TestR3_08_EveryListedURIReadsItsOriginal(t *testing.T) {
	for _, namespace := range []string{"uri", "flat"} {
		t.Run(namespace, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.gateway["namespace"] = namespace
			want := randomURIs(1000)
			var all []obj
			for _, uri := range want {
				all = append(all, resource(uri))
			}
			b := w.backend("random", obj{"resources": all})
			c := w.standalone()
			entries := c.list("resources")
			require.Len(t, entries, len(want))
			var ids, originals []string
			for _, e := range entries { // the name still is the original URI
				ids = append(ids, c.begin("resources/read", obj{"uri": str(e, "uri")}))
				originals = append(originals, str(e, "name"))
			}
			for i, id := range ids {
				result := c.end(id)
				require.Nil(t, result.Error, "%s: %s", originals[i], result.raw)
				require.Equal(t, "random "+originals[i], str(result.Result, "contents", 0, "text"))
			}
			require.ElementsMatch(t, want, b.uris("resources/read"))
		})
	}
}

func TestC2_EqualFlatIdsGetATail(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.gateway["namespace"] = "flat"
	b := w.backend("s", obj{"resources": []obj{resource("file:///a/b"), resource("file:///a_b")}})
	c := w.standalone()
	first := "s_file_a_b~" + flatTailOf("file:///a/b")
	second := "s_file_a_b~" + flatTailOf("file:///a_b")
	require.ElementsMatch(t, []string{first, second}, c.names("resources"))
	require.Equal(t, "s file:///a_b", c.readText(second))
	e := c.fault("resources/read", obj{"uri": "s_file_a_b"})
	require.Equal(t, "AMBIGUOUS", e.kind())
	require.Equal(t, -32602, e.Code)
	require.Contains(t, e.Message+string(e.Data), first)
	require.Contains(t, e.Message+string(e.Data), second)
	require.Len(t, b.uris("resources/read"), 1)
}

// flatTailOf is the tail of equal flat ids, a hash of the original URI.
func flatTailOf(original string) string {
	sum := sha256.Sum256([]byte(original))
	return hex.EncodeToString(sum[:4])
}

func TestR3_11_R3_12_TemplateExpansionsAreRouted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	db, fs := w.backend("dbsrv", dbsrv()), w.backend("filesystem", filesystem())
	c := w.standalone()
	const original = "mcp://database/users/42"
	for _, form := range []string{in("dbsrv", original), original, "dbsrv_mcp_database_users_42"} {
		result := c.ok("resources/read", obj{"uri": form})
		require.Equal(t, in("dbsrv", original), str(result, "contents", 0, "uri"), form)
	}
	require.Equal(t, []string{original, original, original}, db.uris("resources/read"))
	require.Zero(t, fs.count("resources/read"))
}

func TestR3_13_NoMatchAsksNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	db, fs := w.backend("dbsrv", dbsrv()), w.backend("filesystem", filesystem())
	c := w.standalone()
	for _, uri := range []string{in("dbsrv", "mcp://database/users/42/x"), "zzz://q", "mcp://database/users", "dbsrv_mcp_database", ""} {
		e := c.fault("resources/read", obj{"uri": uri})
		require.Equal(t, "RESOURCE_NOT_FOUND", e.kind(), uri)
	}
	require.Zero(t, db.count("resources/read")+fs.count("resources/read"))
}

func TestR3_21_TemplateOperatorsKeepTheURIByteExact(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backend("t", obj{"templates": []obj{
		template("file:///{+path}"), template("q://search{?q,n}"), template("one://{id}/end"), template("seg://r{/a,b}"),
		template("frag://x{#f}"), template("dot://x{.ext}"), template("par://x{;p}"), template("pre://{v:3}/{v}"),
	}})
	c := w.standalone()
	want := []string{
		"file:///a/b/c.txt", "file:///a%2Fb/%20", "q://search?q=a%20b&n=2", "q://search?n=2", "q://search", "one://a%2Fb/end", "one://ü/end",
		"seg://r/x/y", "frag://x#top", "dot://x.json", "par://x;p=1",
	}
	for _, uri := range want {
		require.Equal(t, "t "+uri, c.readText(in("t", uri)))
		require.Equal(t, "t "+uri, c.readText(uri), "raw")
	}
	for _, uri := range []string{"one://a/b/end", "one:///end", "q://searching"} {
		require.Equal(t, "RESOURCE_NOT_FOUND", c.fault("resources/read", obj{"uri": in("t", uri)}).kind(), uri)
	}
	require.Len(t, b.uris("resources/read"), 2*len(want))
}

func TestR0_02_RawURIOfSeveralOwnersIsAmbiguous(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	shared := "file:///config.json"
	a := w.backend("a", obj{"resources": []obj{resource(shared)}})
	b := w.backend("b", obj{"resources": []obj{resource(shared), resource("s3://bucket/x")}})
	c := w.standalone()
	require.Equal(t, "b s3://bucket/x", c.readText("s3://bucket/x"))
	e := c.fault("resources/read", obj{"uri": shared})
	require.Equal(t, -32602, e.Code)
	require.Equal(t, "AMBIGUOUS", e.kind())
	for _, candidate := range []string{in("a", shared), in("b", shared)} {
		require.Contains(t, e.Message+string(e.Data), candidate)
	}
	require.Zero(t, a.count("resources/read"))
	require.Equal(t, 1, b.count("resources/read"))
}

func TestC3_TemplatesOfSeveralServersAreAmbiguousForARawURI(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one, two := w.backend("one", dbsrv()), w.backend("two", dbsrv())
	c := w.standalone()
	e := c.fault("resources/read", obj{"uri": "mcp://database/users/42"})
	require.Equal(t, "AMBIGUOUS", e.kind())
	require.Zero(t, one.count("resources/read")+two.count("resources/read"))
}

func TestR0_03_ExactComesBeforeTemplate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.backend("a", obj{"templates": []obj{template("file:///{+path}")}})
	w.backend("b", obj{"resources": []obj{resource(appLog)}})
	c := w.standalone()
	require.Equal(t, "b "+appLog, c.readText(appLog))
	require.Equal(t, "a file:///else", c.readText("file:///else"))
	require.Equal(t, "a "+appLog, c.readText(in("a", appLog)))
}

func TestR1_01_to_R1_05_NamespacedURIs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	cases := map[string]string{
		"calculator": "file:///data.json", "my-api": "https://api.example.com/doc?x=1&y=%20#frag", "data-server": "custom://resource/1",
	}
	backends := map[string]*backend{}
	for _, server := range []string{"calculator", "my-api", "data-server"} {
		backends[server] = w.backend(server, obj{"resources": []obj{resource(cases[server])}})
	}
	c := w.standalone()
	listed := c.names("resources")
	for server, uri := range cases {
		require.Contains(t, listed, in(server, uri))
		result := c.ok("resources/read", obj{"uri": in(server, uri)})
		require.Equal(t, in(server, uri), str(result, "contents", 0, "uri"))
		require.Equal(t, []string{uri}, backends[server].uris("resources/read"))
	}
}

func TestR1_06_LinksOfToolResultsAreReadable(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backend("data-server", obj{
		"tools": []obj{tool("make")}, "resources": []obj{},
		"calls": obj{"make": obj{"content": []obj{{"type": "resource_link", "uri": "file:///output.json", "name": "o"}}}},
	})
	c := w.standalone()
	uri := in("data-server", "file:///output.json")
	require.Equal(t, "RESOURCE_NOT_FOUND", c.fault("resources/read", obj{"uri": uri}).kind())
	require.Equal(t, uri, str(c.ok("tools/call", obj{"name": "make"}), "content", 0, "uri"))
	require.Equal(t, "data-server file:///output.json", c.readText(uri))
	require.Equal(t, []string{"file:///output.json"}, b.uris("resources/read"))
}

func TestOpenResourcesForwardsURIsThatWereNeverListed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backend("open", obj{"resources": []obj{}}, obj{"open_resources": true})
	c := w.standalone()
	require.Equal(t, "open x://any?a#b", c.readText(in("open", "x://any?a#b")))
	require.Equal(t, []string{"x://any?a#b"}, b.uris("resources/read"))
}

func TestR1_07_PromptNamesAndTheirAliases(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	calc := w.backend("calculator", obj{"prompts": []obj{prompt("help"), prompt("shared")}})
	w.backend("other", obj{"prompts": []obj{prompt("shared")}})
	c := w.standalone()
	require.Equal(t, []string{"calculator/help", "calculator/shared", "other/shared"}, c.names("prompts"))
	for _, name := range []string{"calculator/help", "calculator_help", "help"} {
		result := c.ok("prompts/get", obj{"name": name, "arguments": obj{"a": "1"}})
		require.Equal(t, `calculator:help:{"a":"1"}`, str(result, "messages", 0, "content", "text"), name)
	}
	for _, told := range calc.received("prompts/get") {
		require.Equal(t, "help", str(told.Msg, "params", "name"))
	}
	require.Equal(t, "AMBIGUOUS", c.fault("prompts/get", obj{"name": "shared"}).kind())
	e := c.fault("prompts/get", obj{"name": "calculator/helpp"})
	require.Equal(t, -32602, e.Code)
	require.Equal(t, "PROMPT_NOT_FOUND", e.kind())
	require.Contains(t, e.Message, "calculator/help")
}

func TestR1_08_R1_09_ReasonsOfUnknownResources(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.backend("server", filesystem())
	c := w.standalone()
	for uri, reason := range map[string]string{
		"mcp://unknown-server/file:///x": "Server 'unknown-server' not found",
		"mcp://server":                   "Invalid namespaced URI format",
		"mcp://server/":                  "Invalid namespaced URI format",
		"mcp:///x":                       "Invalid namespaced URI format",
		"mcp://server/file:///nope":      "Resource not found",
		"file:///nope":                   "Resource not found",
	} {
		e := c.fault("resources/read", obj{"uri": uri})
		require.Equal(t, "RESOURCE_NOT_FOUND: "+reason+": "+uri, e.Message)
		require.Equal(t, "RESOURCE_NOT_FOUND", e.kind())
		require.Equal(t, -32002, e.Code)
	}
}

func TestToolNamesAndTheirAliases(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.backend("a", obj{"tools": []obj{tool("only"), tool("shared")}})
	b := w.backend("b", obj{"tools": []obj{tool("shared")}})
	c := w.standalone()
	require.Equal(t, []string{"a_only", "a_shared", "b_shared"}, c.names("tools"))
	for _, name := range []string{"a_only", "a/only", "only"} {
		require.Equal(t, `a:only:{"x":1.0}`, c.callText(name, json.RawMessage(`{"x":1.0}`)), name)
	}
	e := c.fault("tools/call", obj{"name": "shared"})
	require.Equal(t, -32602, e.Code)
	require.Equal(t, "AMBIGUOUS", e.kind())
	require.Contains(t, e.Message+string(e.Data), "a_shared")
	require.Contains(t, e.Message+string(e.Data), "b_shared")
	e = c.fault("tools/call", obj{"name": "a_onyl"})
	require.Equal(t, -32602, e.Code)
	require.Equal(t, "TOOL_NOT_FOUND", e.kind())
	require.Contains(t, e.Message, "a_only")
	require.Equal(t, 3, a.count("tools/call"))
	require.Zero(t, b.count("tools/call"))
}

func TestToolNamesAreBoundedAndClean(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 200)
	originals := []string{long, long + "y", "with space", "with.dot", "ünï", "with_space", "a/b", strings.Repeat("n", 60)}
	w := newWorld(t)
	var tools []obj
	for _, name := range originals {
		tools = append(tools, tool(name, obj{"description": name}))
	}
	w.backend("my.server", obj{"tools": tools})
	c := w.standalone()
	clean := regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	entries := c.list("tools")
	require.Len(t, entries, len(originals))
	seen := map[string]bool{}
	for _, e := range entries {
		name, original := str(e, "name"), str(e, "description")
		require.Regexp(t, clean, name)
		require.False(t, seen[name], "listed twice: %s", name)
		seen[name] = true
		require.Equal(t, "my.server:"+original+":{}", c.callText(name, obj{}))
	}
	require.True(t, seen["my_server_with_dot"], "%v", seen)
	require.True(t, seen["my_server_with_space"], "%v", seen)
	require.True(t, seen["my_server_with_space_"+tailOf("my.server", "with space")], "%v", seen)
}

func TestC15_PrefixesThatNestAlwaysCarryTheTail(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.backend("my", obj{"tools": []obj{tool("db_x"), tool("y")}})
	w.backend("my_db", obj{"tools": []obj{tool("x")}})
	c := w.standalone()
	tailed := "my_db_x_" + tailOf("my", "db_x")
	require.ElementsMatch(t, []string{"my_db_x", tailed, "my_y"}, c.names("tools"))
	require.Equal(t, "my_db:x:{}", c.callText("my_db_x", obj{}))
	require.Equal(t, "my:db_x:{}", c.callText(tailed, obj{}))
}

func TestC15_NamesDoNotDependOnWhoIsUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.gateway["startup_wait"] = "300ms"
	w.backend("my", obj{"tools": []obj{tool("db_x")}})
	w.backend("my_db", obj{"tools": []obj{tool("x")}, "on": obj{"initialize": actions(do("hang"))}})
	c := w.standalone()
	c.waitListed("tools", "my_db_x_"+tailOf("my", "db_x"), true)
	require.Len(t, c.names("tools"), 1)
}

func TestC3_FormsThatURLParsersMakeOfTheListedURI(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backend("s", obj{"resources": []obj{resource("x:/a/../b c"), resource("n:ü\"<>`{}"), resource("q:?a b#c d")}})
	c := w.standalone()
	for form, original := range map[string]string{
		"mcp://s/b%20c":                      "",
		"mcp://s/x:/b%20c":                   "x:/a/../b c",
		"mcp://s/n:%C3%BC%22%3C%3E%60%7B%7D": "n:ü\"<>`{}",
		"mcp://s/q:?a%20b#c%20d":             "q:?a b#c d",
	} {
		if original == "" {
			require.Equal(t, "RESOURCE_NOT_FOUND", c.fault("resources/read", obj{"uri": form}).kind())
			continue
		}
		require.Equal(t, "s "+original, c.readText(form))
	}
	require.Len(t, b.uris("resources/read"), 3)
}

func TestFlatNamespaceListsRawTemplates(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.gateway["namespace"] = "flat"
	w.backend("dbsrv", dbsrv())
	w.backend("fs", filesystem())
	c := w.standalone()
	require.Equal(t, []string{"mcp://database/{table}/{id}"}, c.names("templates"))
	result := c.ok("resources/read", obj{"uri": "mcp://database/users/42"})
	require.Equal(t, "dbsrv mcp://database/users/42", str(result, "contents", 0, "text"))
	require.Equal(t, "fs_file_logs_app.log", str(c.ok("resources/read", obj{"uri": appLog}), "contents", 0, "uri"))
}

func TestC7_ServerNameThatLooksLikeAnAuthority(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.backend("dbsrv", dbsrv())
	w.backend("database", obj{"resources": []obj{resource("users/1")}})
	c := w.standalone()
	require.Equal(t, "database users/1", c.readText("mcp://database/users/1"))
	require.Equal(t, "dbsrv mcp://database/users/1", c.readText(in("dbsrv", "mcp://database/users/1")))
}

func TestC18_URIsCannotReachAnotherServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.backend("a", obj{"resources": []obj{resource("file:///public/x")}})
	b := w.backend("ab", obj{"resources": []obj{resource("file:///secret")}})
	c := w.standalone()
	for i, uri := range []string{
		"mcp://a/file:///secret", "mcp://a/../ab/file:///secret", "mcp://a/%2e%2e/ab/file:///secret", "mcp://a/mcp://ab/file:///secret",
		"mcp://a@ab/file:///secret", "mcp://A/file:///public/x", "mcp://a:80/file:///public/x", "mcp://a/file:///public/../public/x/",
		"a_b_file_secret", "mcp://a/file:///public", "mcp:/a/file:///public/x", "mcp://a//file:///public/x",
	} {
		e := c.fault("resources/read", obj{"uri": uri})
		require.Equal(t, "RESOURCE_NOT_FOUND", e.kind(), fmt.Sprint(i, " ", uri))
	}
	require.Zero(t, a.count("resources/read")+b.count("resources/read"))
}
