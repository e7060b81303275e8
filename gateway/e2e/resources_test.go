package e2e

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestR3_01_ListsAreFetchedOnConnect(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	fs := w.backend("filesystem", filesystem())
	c := w.standalone()
	require.Contains(t, c.names("resources"), in("filesystem", appLog))
	require.Equal(t, 1, fs.count("resources/list"))
	require.Equal(t, 1, fs.count("resources/templates/list"))
	require.Equal(t, 1, fs.count("initialize"))
	require.Equal(t, 1, fs.count("notifications/initialized"))
}

func TestR3_02_ServerThatComesUpLaterIsAnnounced(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.gateway["startup_wait"] = "50ms"
	script := dbsrv()
	script["on"] = obj{"initialize": actions(do("wait", obj{"name": "up"}))}
	db := w.backend("dbsrv", script)
	c := w.standalone()
	require.Empty(t, c.names("templates"))
	db.do(do("release", obj{"name": "up"}))
	c.waitListed("templates", in("dbsrv", "mcp://database/{table}/{id}"), true)
	c.noted("notifications/resources/list_changed", nil)
}

func TestR3_03_UpstreamPagesAreFollowed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var all []obj
	for i := range 6 {
		all = append(all, resource(fmt.Sprintf("p:///%d", i)))
	}
	b := w.backend("paged", obj{
		"resources": all, "pagesize": 2, "tools": []obj{tool("a"), tool("b"), tool("c")},
		"prompts": []obj{prompt("a"), prompt("b"), prompt("c")}, "templates": []obj{template("t:///a{x}"), template("t:///b{x}"), template("t:///c{x}")},
	})
	c := w.standalone()
	require.Len(t, c.names("resources"), 6)
	require.Len(t, c.names("tools"), 3)
	require.Len(t, c.names("prompts"), 3)
	require.Len(t, c.names("templates"), 3)
	var cursors []string
	for _, m := range b.received("resources/list") {
		cursors = append(cursors, str(m.Msg, "params", "cursor"))
	}
	require.Equal(t, []string{"", "c1", "c2"}, cursors)
}

func TestR3_04_ServersWithoutResources(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.backend("empty", obj{"resources": []obj{}})
	nores := w.backend("nores", obj{"tools": []obj{tool("t")}})
	c := w.standalone()
	require.Empty(t, c.names("resources"))
	require.Empty(t, c.names("templates"))
	require.Equal(t, []string{"nores_t"}, c.names("tools"))
	require.Zero(t, nores.count("resources/list"))
	require.Zero(t, nores.count("resources/templates/list"))
	require.Zero(t, nores.count("prompts/list"))
}

func TestR3_09_SameNamesOfTwoServers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	shared := "file:///config.json"
	a := filesystem()
	a["resources"] = append(a["resources"].([]obj), resource(shared))
	w.backend("filesystem", a)
	w.backend("other", obj{"resources": []obj{resource(shared)}})
	w.backend("s3", s3())
	c := w.standalone()
	uris := c.names("resources")
	require.Len(t, uris, 5)
	for _, uri := range uris {
		server, original, _ := strings.Cut(strings.TrimPrefix(uri, "mcp://"), "/")
		require.Equal(t, server+" "+original, c.readText(uri))
	}
}

func TestR3_10_TemplateIsStored(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.backend("dbsrv", dbsrv())
	c := w.standalone()
	all := c.list("templates")
	require.Len(t, all, 1)
	require.Equal(t, in("dbsrv", "mcp://database/{table}/{id}"), str(all[0], "uriTemplate"))
	require.Equal(t, "row", str(all[0], "name"))
	require.Equal(t, "one row", str(all[0], "description"))
}

func TestR3_14_R0_06_DefinitionsKeepEveryField(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	odd := `{"uri":"x:///odd","name":"odd","title":"Odd","size":12345678901234567890,"annotations":{"audience":["user"],"priority":0.10},` +
		`"icons":[{"src":"https://e/i.png","sizes":["48x48"]}],"_meta":{"v/end\u006fr":[1e2,{"b":1,"a":null}]},"vendorField":{"z":"<&>","a":""}}`
	oddTool := `{"name":"t","title":"T","description":"","inputSchema":{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","anyOf":[{"required":["a"]}],"maximum":9007199254740993},` +
		`"outputSchema":{"type":"object","oneOf":[]},"annotations":{"readOnlyHint":true},"execution":{"taskSupport":"optional"},"_meta":{"k":1.0},"x-vendor":[]}`
	w.backend("filesystem", filesystem())
	w.backend("odd", obj{
		"resources": []json.RawMessage{json.RawMessage(odd)}, "tools": []json.RawMessage{json.RawMessage(oddTool)},
		"prompts":   []obj{prompt("p", obj{"title": "P", "arguments": []obj{{"name": "a", "required": true, "title": "A"}}, "icons": []obj{}})},
		"templates": []obj{template("x:///{a}", obj{"title": "X", "mimeType": "text/x", "annotations": obj{"priority": 1}})},
	})
	c := w.standalone()
	byURI := map[string]json.RawMessage{}
	for _, e := range c.list("resources") {
		byURI[str(e, "uri")] = e
	}
	log := byURI[in("filesystem", appLog)]
	require.JSONEq(t, `{"uri":"mcp://filesystem/file:///logs/app.log","name":"app.log","mimeType":"text/plain","size":12,"description":"log"}`, string(log))
	// The raw text shows that numbers and the order of members survive.
	require.Contains(t, c.request("resources/list", nil).raw, strings.Replace(odd, "x:///odd", in("odd", "x:///odd"), 1))
	require.Contains(t, c.request("tools/list", nil).raw, strings.Replace(oddTool, `"t"`, `"odd_t"`, 1))
	require.JSONEq(t, `{"name":"odd/p","title":"P","arguments":[{"name":"a","required":true,"title":"A"}],"icons":[]}`, string(c.list("prompts")[0]))
	require.JSONEq(t, `{"uriTemplate":"mcp://odd/x:///{a}","name":"x:///{a}","title":"X","mimeType":"text/x","annotations":{"priority":1}}`, string(c.list("templates")[0]))
}

func TestR3_15_ListsAreInByteOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.gateway["page_size"] = 3
	shuffled := []obj{resource("z:1"), resource("B:1"), resource("a:1"), resource("ä:1"), resource("a:0")}
	names := []obj{tool("b"), tool("B"), tool("a")}
	for _, server := range []string{"m", "Z", "b-x", "b"} {
		w.backend(server, obj{"resources": shuffled, "tools": names, "prompts": []obj{prompt("z"), prompt("a")}, "templates": []obj{template("z:{a}"), template("a:{a}")}})
	}
	c := w.standalone()
	for kind, n := range map[string]int{"resources": 20, "tools": 12, "prompts": 8, "templates": 8} {
		got := c.names(kind)
		require.Len(t, got, n)
		require.True(t, isSorted(got), "%s: %q", kind, got)
	}
}

func TestR3_16_ClientPagination(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.gateway["page_size"] = 2
	b := w.backend("p", obj{"tools": []obj{tool("a"), tool("b"), tool("c"), tool("d"), tool("e")}})
	c := w.standalone()
	var sizes []int
	var names []string
	var cursor json.RawMessage
	for {
		params := obj{}
		if cursor != nil {
			params["cursor"] = cursor
		}
		page := c.ok("tools/list", params)
		entries := each(page, "tools")
		sizes = append(sizes, len(entries))
		for _, e := range entries {
			names = append(names, str(e, "name"))
		}
		if cursor = at(page, "nextCursor"); cursor == nil {
			break
		}
	}
	require.Equal(t, []int{2, 2, 1}, sizes)
	require.Equal(t, []string{"p_a", "p_b", "p_c", "p_d", "p_e"}, names)

	for _, bad := range []any{"garbage", "%%%", 7, obj{}} {
		require.Equal(t, -32602, c.fault("tools/list", obj{"cursor": bad}).Code, "cursor %v", bad)
	}
	for _, kind := range []string{"resources", "prompts", "templates"} {
		require.Equal(t, -32602, c.fault(listMethod(kind), obj{"cursor": "garbage"}).Code, kind)
	}

	// An entry that comes in between moves nothing that was to come.
	first := c.ok("tools/list", nil)
	b.add("tools", tool("aa"))
	b.add("tools", tool("cc"))
	b.listChanged("tools")
	c.waitListed("tools", "p_cc", true)
	rest := []string{}
	for cursor := at(first, "nextCursor"); cursor != nil; {
		page := c.ok("tools/list", obj{"cursor": cursor})
		for _, e := range each(page, "tools") {
			rest = append(rest, str(e, "name"))
		}
		cursor = at(page, "nextCursor")
	}
	require.Subset(t, rest, []string{"p_c", "p_d", "p_e"})
	require.NotContains(t, rest, "p_b")
}

func TestR3_17_ListsAreServedFromTheRegistry(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	fs := w.backend("filesystem", filesystem())
	s := w.serve()
	var clients []*client
	for range 3 {
		clients = append(clients, s.client(false))
	}
	for i := range 50 {
		require.Len(t, clients[i%3].list("resources"), 2)
	}
	require.Equal(t, 1, fs.count("resources/list"))
	require.Equal(t, 1, fs.count("tools/list"))
	require.Equal(t, 1, fs.starts())
}

func TestR3_18_R0_01_ListChangeIsFollowed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	fs, other := w.backend("filesystem", filesystem()), w.backend("s3", s3())
	c := w.standalone()
	require.Len(t, c.list("resources"), 3)
	c.settle()
	fs.add("resources", resource("file:///new"))
	fs.remove("resources", appJSON)
	fs.listChanged("resources")
	c.waitListed("resources", in("filesystem", "file:///new"), true)
	require.NotContains(t, c.names("resources"), in("filesystem", appJSON))
	require.Equal(t, 2, fs.count("resources/list"))
	require.Equal(t, 1, fs.count("tools/list"))
	require.Equal(t, 1, other.count("resources/list"))
	c.noted("notifications/resources/list_changed", func(json.RawMessage) bool { return true })
	require.Len(t, c.notesOf("notifications/resources/list_changed"), 1)
	require.Empty(t, c.notesOf("notifications/tools/list_changed"))
	require.Empty(t, c.notesOf("notifications/prompts/list_changed"))
	require.Equal(t, "RESOURCE_NOT_FOUND", c.fault("resources/read", obj{"uri": in("filesystem", appJSON)}).kind())
}

func TestR3_18_BurstOfNoticesCostsFewLists(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	fs := w.backend("filesystem", filesystem())
	c := w.standalone()
	require.Len(t, c.list("resources"), 2)
	c.settle()
	fs.add("resources", resource("file:///new"))
	fs.do(do("notify", obj{"method": "notifications/resources/list_changed", "n": 100}))
	c.waitListed("resources", in("filesystem", "file:///new"), true)
	require.LessOrEqual(t, fs.count("resources/list"), 1+3)
	c.noted("notifications/resources/list_changed", func(json.RawMessage) bool { return true })
	require.LessOrEqual(t, len(c.notesOf("notifications/resources/list_changed")), 3)
}

func TestR3_18_NoticeWithoutAChangeReachesNoClient(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	fs := w.backend("filesystem", filesystem())
	c := w.standalone()
	c.list("resources")
	c.settle()
	fs.listChanged("resources")
	fs.waitReceived("resources/list", 2)
	fs.add("tools", tool("new"))
	fs.listChanged("tools")
	c.waitListed("tools", "filesystem_new", true) // later than a notice of the first would be
	require.Empty(t, c.notesOf("notifications/resources/list_changed"))
}

func TestR3_19_ReadByEveryAcceptedForm(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	fs := w.backend("filesystem", filesystem())
	c := w.standalone()
	forms := []string{
		in("filesystem", appLog), "filesystem_file___logs_app.log", "filesystem_file_logs_app.log",
		"filesystem_file____logs_app.log", appLog, "mcp://filesystem/file%3A%2F%2F%2Flogs%2Fapp.log",
	}
	for _, form := range forms {
		result := c.ok("resources/read", obj{"uri": form})
		require.JSONEq(t, `{"contents":[{"uri":"mcp://filesystem/file:///logs/app.log","mimeType":"text/plain","text":"filesystem file:///logs/app.log"}]}`, string(result), form)
	}
	for _, uri := range fs.uris("resources/read") {
		require.Equal(t, appLog, uri)
	}
	require.Len(t, fs.uris("resources/read"), len(forms))
}

func TestR3_20_ReadOfUnknownResourceAsksNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	fs := w.backend("filesystem", filesystem())
	c := w.standalone()
	uri := in("filesystem", "file:///nope")
	e := c.fault("resources/read", obj{"uri": uri})
	require.Equal(t, -32002, e.Code)
	require.Equal(t, "RESOURCE_NOT_FOUND", e.kind())
	require.Equal(t, uri, str(e.Data, "uri"))
	require.Equal(t, "RESOURCE_NOT_FOUND: Resource not found: "+uri, e.Message)
	require.Zero(t, fs.count("resources/read"))
}

func TestR3_22_R0_08_R4_07_ContentsPassUnchanged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	png := base64.StdEncoding.EncodeToString([]byte("\x89PNG\r\n\x1a\n\x00\x01"))
	big := strings.Repeat(base64.StdEncoding.EncodeToString([]byte("0123456789ab")), 5<<20/16)
	contents := fmt.Sprintf(`[{"uri":"b:///x","mimeType":"text/markdown","text":"b:///x \u003cü\u00fc\n</script>","_meta":{"n":1.50}},{"uri":"b:///x#2","mimeType":"image/png","blob":%q,"extra":null}]`, png)
	w.backend("blob", obj{
		"resources": []obj{resource("b:///x", obj{"mimeType": "text/plain"}), resource("b:///big")},
		"reads": obj{
			"b:///x":   json.RawMessage(contents),
			"b:///big": []obj{{"uri": "b:///big", "mimeType": "application/octet-stream", "blob": big}},
		},
	})
	c := w.standalone()
	got := c.request("resources/read", obj{"uri": in("blob", "b:///x")})
	want := strings.NewReplacer(`"uri":"b:///x"`, `"uri":"mcp://blob/b:///x"`, `"uri":"b:///x#2"`, `"uri":"mcp://blob/b:///x#2"`).Replace(contents)
	require.Contains(t, got.raw, want)
	blob := str(c.ok("resources/read", obj{"uri": in("blob", "b:///big")}), "contents", 0, "blob")
	require.Equal(t, sha256.Sum256([]byte(big)), sha256.Sum256([]byte(blob)))
}

func TestR3_23_SameTemplateOfTwoServers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.backend("one", dbsrv())
	w.backend("two", dbsrv())
	c := w.standalone()
	require.Equal(t, []string{in("one", "mcp://database/{table}/{id}"), in("two", "mcp://database/{table}/{id}")}, c.names("templates"))
	require.Equal(t, "two mcp://database/users/42", c.readText(in("two", "mcp://database/users/42")))
}

func TestR3_24_TemplatesAreServedFromTheRegistry(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	db := w.backend("dbsrv", dbsrv())
	c := w.standalone()
	for range 20 {
		require.Len(t, c.list("templates"), 1)
	}
	require.Equal(t, 1, db.count("resources/templates/list"))
	db.add("templates", template("mcp://database/{table}"))
	db.listChanged("resources")
	c.waitListed("templates", in("dbsrv", "mcp://database/{table}"), true)
	require.Equal(t, 2, db.count("resources/templates/list"))
}

func TestR0_09_R4_03_EverySchemeMakesTheRoundTrip(t *testing.T) {
	t.Parallel()
	uris := []string{
		"file:///a/b.txt", "http://example.com/x?y=1#z", "https://example.com:8080/a%20b", "mcp://other/path", "s3://bucket/k",
		"custom-scheme+x.y:opaque", "urn:isbn:0451450523", "data:text/plain;base64,SGk=", "note:ünï cödé", "a:b/../c", "x:",
	}
	w := newWorld(t)
	var all []obj
	for _, uri := range uris {
		all = append(all, resource(uri))
	}
	b := w.backend("any", obj{"resources": all})
	c := w.standalone()
	for _, uri := range uris {
		require.Equal(t, "any "+uri, c.readText(in("any", uri)))
	}
	require.Equal(t, uris, b.uris("resources/read"))
}

func TestR0_10_ThereIsNoMethodThatWrites(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	fs := w.backend("filesystem", filesystem())
	c := w.standalone()
	for _, method := range []string{"resources/write", "resources/create", "resources/delete", "servers/add", "tools/add"} {
		require.Equal(t, -32601, c.fault(method, obj{"uri": in("filesystem", appLog)}).Code, method)
		require.Zero(t, fs.count(method))
	}
}

func TestR0_14_ParallelReadsDoNotMixUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.gateway["startup_wait"] = "20s"
	for _, name := range []string{"a", "b"} {
		w.backend(name, obj{"generate": obj{"resources": 100}, "resources": []obj{}})
	}
	c := w.standalone()
	uris := c.names("resources")
	require.Len(t, uris, 200)
	ids := map[string]string{}
	for _, uri := range uris {
		ids[uri] = c.begin("resources/read", obj{"uri": uri})
	}
	for uri, id := range ids {
		server, original, _ := strings.Cut(strings.TrimPrefix(uri, "mcp://"), "/")
		result := c.end(id).Result
		require.Equal(t, server+" "+original, str(result, "contents", 0, "text"))
		require.Equal(t, uri, str(result, "contents", 0, "uri"))
	}
}

func TestR1_10_PromptsAreCachedAndRefreshed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backend("p", obj{"prompts": []obj{prompt("one")}, "tools": []obj{tool("t")}})
	c := w.standalone()
	for range 5 {
		require.Equal(t, []string{"p/one"}, c.names("prompts"))
		require.Equal(t, []string{"p_t"}, c.names("tools"))
	}
	require.Equal(t, 1, b.count("prompts/list"))
	require.Equal(t, 1, b.count("tools/list"))
	c.settle()
	b.add("prompts", prompt("two"))
	b.listChanged("prompts")
	c.waitListed("prompts", "p/two", true)
	require.Equal(t, 2, b.count("prompts/list"))
	require.Equal(t, 1, b.count("tools/list"))
	require.Empty(t, c.notesOf("notifications/tools/list_changed"))
	require.Empty(t, c.notesOf("notifications/resources/list_changed"))
}

func TestR1_11_OneFailingServerDoesNotBreakTheLists(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.gateway["startup_wait"] = "1s"
	w.backend("filesystem", filesystem())
	w.backend("missing", obj{}, obj{"command": w.dir + "/no-such-program"})
	w.backend("listless", obj{
		"resources": []obj{resource("x:1")}, "tools": []obj{tool("t")},
		"on": obj{"resources/list": actions(do("error", obj{"error": obj{"code": -32603, "message": "no list today"}}))},
	})
	c := w.standalone()
	c.waitListed("resources", in("filesystem", appLog), true)
	c.waitListed("tools", "filesystem_stat", true)
	c.waitListed("tools", "listless_t", true)
	require.Equal(t, "filesystem "+appLog, c.readText(in("filesystem", appLog)))
}

func TestR4_02_TypeOfAReadMayDifferFromTheListedOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.backend("b", obj{
		"resources": []obj{resource("x:1", obj{"mimeType": "text/plain"})},
		"reads":     obj{"x:1": []obj{{"uri": "x:1", "mimeType": "text/html", "text": "<p>"}}},
	})
	c := w.standalone()
	require.Equal(t, "text/html", str(c.ok("resources/read", obj{"uri": in("b", "x:1")}), "contents", 0, "mimeType"))
}

func TestR4_04_AbsentFieldsStayAbsent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.backend("b", obj{
		"resources": []obj{{"uri": "x:1", "name": "n"}}, "tools": []obj{{"name": "t", "inputSchema": obj{"type": "object"}}},
		"prompts": []obj{{"name": "p"}}, "templates": []obj{{"uriTemplate": "x:{y}", "name": "n"}},
	})
	c := w.standalone()
	for kind, want := range map[string]string{
		"resources": `{"uri":"mcp://b/x:1","name":"n"}`, "tools": `{"name":"b_t","inputSchema":{"type":"object"}}`,
		"prompts": `{"name":"b/p"}`, "templates": `{"uriTemplate":"mcp://b/x:{y}","name":"n"}`,
	} {
		require.JSONEq(t, want, string(c.list(kind)[0]), kind)
	}
}

func TestGoblinsOwnResourceTellsTheServersWithoutSecrets(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.backend("filesystem", filesystem(), obj{"env": obj{"TOKEN": "s3cr3t-value"}})
	c := w.standalone()
	c.names("resources")
	result := c.ok("resources/read", obj{"uri": "goblin://servers"})
	text := str(result, "contents", 0, "text")
	require.True(t, json.Valid([]byte(text)), text)
	require.Contains(t, text, "filesystem")
	require.NotContains(t, text, "s3cr3t")
	listed := false
	for _, e := range each(c.ok("resources/list", nil), "resources") {
		listed = listed || strings.HasSuffix(str(e, "uri"), "goblin://servers")
	}
	require.True(t, listed)
}

func TestListChangedCanBeSwitchedOffPerKind(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.gateway["list_changed"] = obj{"tools": false, "prompts": true, "resources": true}
	b := w.backend("b", obj{"tools": []obj{tool("t")}, "prompts": []obj{prompt("p")}})
	c := w.standalone()
	c.names("tools")
	b.add("tools", tool("new"))
	b.listChanged("tools")
	b.add("prompts", prompt("new"))
	b.listChanged("prompts")
	c.waitListed("prompts", "b/new", true)
	require.False(t, slices.Contains(c.names("tools"), "b_new"))
	require.Equal(t, 1, b.count("tools/list"))
}

func TestAllowAndDenyChooseWhatIsListed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backend("b", obj{
		"tools":     []obj{tool("read_a"), tool("read_b"), tool("delete_a")},
		"prompts":   []obj{prompt("p"), prompt("q")},
		"resources": []obj{resource("file:///a"), resource("file:///secret/b")},
	}, obj{
		"tools": obj{"allow": []string{"read_*"}, "deny": []string{"*_b"}}, "prompts": obj{"deny": []string{"q"}},
		"resources": obj{"deny": []string{"file:///secret/*"}},
	})
	c := w.standalone()
	require.Equal(t, []string{"b_read_a"}, c.names("tools"))
	require.Equal(t, []string{"b/p"}, c.names("prompts"))
	require.Equal(t, []string{in("b", "file:///a")}, c.names("resources"))
	require.Equal(t, "TOOL_NOT_FOUND", c.fault("tools/call", obj{"name": "b_delete_a"}).kind())
	require.Equal(t, "TOOL_NOT_FOUND", c.fault("tools/call", obj{"name": "delete_a"}).kind())
	require.Equal(t, "PROMPT_NOT_FOUND", c.fault("prompts/get", obj{"name": "b/q"}).kind())
	require.Equal(t, "RESOURCE_NOT_FOUND", c.fault("resources/read", obj{"uri": in("b", "file:///secret/b")}).kind())
	require.Zero(t, b.count("tools/call")+b.count("prompts/get")+b.count("resources/read"))
}
