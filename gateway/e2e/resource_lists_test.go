//go:build e2e

package e2e_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

func TestR3_04_ServersWithoutResources(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("empty", e2e.Obj{"resources": []e2e.Obj{}})
	nores := w.Backend("nores", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}})
	c := w.Standalone()
	require.Empty(t, c.Names("resources"))
	require.Empty(t, c.Names("templates"))
	require.Equal(t, []string{"nores_t"}, c.Names("tools"))
	require.Zero(t, nores.Count("resources/list"))
	require.Zero(t, nores.Count("resources/templates/list"))
	require.Zero(t, nores.Count("prompts/list"))
}

func TestR3_09_SameNamesOfTwoServers(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	shared := "file:///config.json"
	a := e2e.Filesystem()
	a["resources"] = append(a["resources"].([]e2e.Obj), e2e.Resource(shared))
	w.Backend("filesystem", a)
	w.Backend("other", e2e.Obj{"resources": []e2e.Obj{e2e.Resource(shared)}})
	w.Backend("s3", e2e.S3())
	c := w.Standalone()
	uris := c.Names("resources")
	require.Len(t, uris, 5)
	for _, uri := range uris {
		server, original, _ := strings.Cut(strings.TrimPrefix(uri, "mcp://"), "/")
		require.Equal(t, server+" "+original, c.ReadText(uri))
	}
}

func TestR1_10_R3_17_R3_24_ListsAreServedFromTheRegistry(t *testing.T) {
	t.Parallel()
	for kind, test := range map[string]struct {
		notice, other string
		added         e2e.Obj
	}{
		"resources": {"resources", "tools", e2e.Resource("x:new")},
		"templates": {"resources", "tools", e2e.Template("x:///new/{a}")},
		"prompts":   {"prompts", "resources", e2e.Prompt("new")},
		"tools":     {"tools", "prompts", e2e.Tool("new")},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			b := w.Backend("b", e2e.CountingServer())
			s := w.Serve()
			var clients []*e2e.Client
			for range 3 {
				clients = append(clients, s.Client(true))
			}
			for i := range 20 {
				require.Len(t, clients[i%3].List(kind), 1)
			}
			for _, listed := range []string{kind, test.other} {
				require.Equal(t, 1, b.Count(e2e.ListMethod(listed)), listed)
			}
			require.Equal(t, 1, b.Starts())

			clients[0].Settle()
			b.Add(kind, test.added)
			b.ListChanged(test.notice)
			e2e.Eventually(t, "the new entry", func() bool { return len(clients[0].List(kind)) == 2 })
			require.Equal(t, 2, b.Count(e2e.ListMethod(kind)))
			require.Equal(t, 1, b.Count(e2e.ListMethod(test.other)))
			require.Empty(t, clients[0].NotesOf("notifications/"+test.other+"/list_changed"))
		})
	}
}

func TestR3_18_BurstOfNoticesCostsFewLists(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	fs := w.Backend("filesystem", e2e.Filesystem())
	c := w.Standalone()
	require.Len(t, c.List("resources"), 2)
	c.Settle()
	fs.Add("resources", e2e.Resource("file:///new"))
	fs.Do(e2e.Do("notify", e2e.Obj{"method": "notifications/resources/list_changed", "n": 100}))
	c.WaitListed("resources", e2e.In("filesystem", "file:///new"), true)
	require.LessOrEqual(t, fs.Count("resources/list"), 1+3)
	c.WaitNote("notifications/resources/list_changed", func(json.RawMessage) bool { return true })
	require.LessOrEqual(t, len(c.NotesOf("notifications/resources/list_changed")), 3)
}

func TestR3_18_NoticeWithoutAChangeReachesNoClient(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	fs := w.Backend("filesystem", e2e.Filesystem())
	c := w.Standalone()
	c.List("resources")
	c.Settle()
	fs.ListChanged("resources")
	fs.WaitReceived("resources/list", 2)
	fs.Add("tools", e2e.Tool("new"))
	fs.ListChanged("tools")
	c.WaitListed("tools", "filesystem_new", true) // later than a notification of the first would be
	require.Empty(t, c.NotesOf("notifications/resources/list_changed"))
}

func TestR3_20_R3_27_UnknownResourcesAskNobody(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	fs := w.Backend("filesystem", e2e.Filesystem())
	c := w.Standalone()
	uri := e2e.In("filesystem", "file:///nope")
	e := c.Fault("resources/read", e2e.Obj{"uri": uri})
	require.Equal(t, -32002, e.Code)
	require.Equal(t, "RESOURCE_NOT_FOUND", e.Kind())
	require.Equal(t, uri, e2e.Str(e.Data, "uri"))
	require.Equal(t, "RESOURCE_NOT_FOUND: Resource not found: "+uri, e.Message)
	require.Zero(t, fs.Count("resources/read"))
	require.Equal(t, "RESOURCE_NOT_FOUND", c.Fault("resources/subscribe", e2e.Obj{"uri": uri}).Kind())
	require.Zero(t, fs.Count("resources/subscribe"))
}

func TestR3_23_SameTemplateOfTwoServers(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("one", e2e.Dbsrv())
	w.Backend("two", e2e.Dbsrv())
	c := w.Standalone()
	require.Equal(t, []string{e2e.In("one", "mcp://database/{table}/{id}"), e2e.In("two", "mcp://database/{table}/{id}")}, c.Names("templates"))
	require.Equal(t, "two mcp://database/users/42", c.ReadText(e2e.In("two", "mcp://database/users/42")))
}

func TestR0_10_ThereIsNoMethodThatWrites(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	fs := w.Backend("filesystem", e2e.Filesystem())
	c := w.Standalone()
	for _, method := range []string{"resources/write", "resources/create", "resources/delete", "servers/add", "tools/add"} {
		require.Equal(t, -32601, c.Fault(method, e2e.Obj{"uri": e2e.In("filesystem", e2e.AppLog)}).Code, method)
		require.Zero(t, fs.Count(method))
	}
}

func TestR0_14_ParallelReadsDoNotMixUp(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Gateway["startup_wait"] = "20s"
	for _, name := range []string{"a", "b"} {
		w.Backend(name, e2e.Obj{"generate": e2e.Obj{"resources": 100}, "resources": []e2e.Obj{}})
	}
	c := w.Standalone()
	uris := c.Names("resources")
	require.Len(t, uris, 200)
	ids := map[string]string{}
	for _, uri := range uris {
		ids[uri] = c.Begin("resources/read", e2e.Obj{"uri": uri})
	}
	for uri, id := range ids {
		server, original, _ := strings.Cut(strings.TrimPrefix(uri, "mcp://"), "/")
		result := c.End(id).Result
		require.Equal(t, server+" "+original, e2e.Str(result, "contents", 0, "text"))
		require.Equal(t, uri, e2e.Str(result, "contents", 0, "uri"))
	}
}

func TestListChangedCanBeSwitchedOffPerKind(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Gateway["list_changed"] = e2e.Obj{"tools": false, "prompts": true, "resources": true}
	b := w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}, "prompts": []e2e.Obj{e2e.Prompt("p")}})
	c := w.Standalone()
	c.Names("tools")
	b.Add("tools", e2e.Tool("new"))
	b.ListChanged("tools")
	b.Add("prompts", e2e.Prompt("new"))
	b.ListChanged("prompts")
	c.WaitListed("prompts", "b/new", true)
	require.False(t, slices.Contains(c.Names("tools"), "b_new"))
	require.Equal(t, 1, b.Count("tools/list"))
}

func TestR3_22_R0_08_R4_02_R4_07_ContentsPassUnchanged(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	png := base64.StdEncoding.EncodeToString([]byte("\x89PNG\r\n\x1a\n\x00\x01"))
	big := strings.Repeat(base64.StdEncoding.EncodeToString([]byte("0123456789ab")), 5<<20/16)
	contents := fmt.Sprintf(`[{"uri":"b:///x","mimeType":"text/markdown","text":"b:///x \u003cü\u00fc\n</script>","_meta":{"n":1.50}},{"uri":"b:///x#2","mimeType":"image/png","blob":%q,"extra":null}]`, png)
	w.Backend("blob", e2e.Obj{
		"resources": []e2e.Obj{e2e.Resource("b:///x", e2e.Obj{"mimeType": "text/plain"}), e2e.Resource("b:///big")},
		"reads": e2e.Obj{
			"b:///x":   json.RawMessage(contents),
			"b:///big": []e2e.Obj{{"uri": "b:///big", "mimeType": "application/octet-stream", "blob": big}},
		},
	})
	c := w.Standalone()
	got := c.Request("resources/read", e2e.Obj{"uri": e2e.In("blob", "b:///x")})
	want := strings.NewReplacer(`"uri":"b:///x"`, `"uri":"mcp://blob/b:///x"`, `"uri":"b:///x#2"`, `"uri":"mcp://blob/b:///x#2"`).Replace(contents)
	require.Contains(t, got.Raw, want)
	blob := e2e.Str(c.Ok("resources/read", e2e.Obj{"uri": e2e.In("blob", "b:///big")}), "contents", 0, "blob")
	require.Equal(t, sha256.Sum256([]byte(big)), sha256.Sum256([]byte(blob)))
}

func TestR1_11_OneFailingServerDoesNotBreakTheLists(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Gateway["startup_wait"] = "1s"
	w.Backend("filesystem", e2e.Filesystem())
	w.Backend("missing", e2e.Obj{}, e2e.Obj{"command": w.Dir + "/no-such-program"})
	w.Backend("listless", e2e.Obj{
		"resources": []e2e.Obj{e2e.Resource("x:1")}, "tools": []e2e.Obj{e2e.Tool("t")},
		"on": e2e.Obj{"resources/list": e2e.Actions(e2e.Do("error", e2e.Obj{"error": e2e.Obj{"code": -32603, "message": "no list today"}}))},
	})
	c := w.Standalone()
	c.WaitListed("resources", e2e.In("filesystem", e2e.AppLog), true)
	c.WaitListed("tools", "filesystem_stat", true)
	c.WaitListed("tools", "listless_t", true)
	require.Equal(t, "filesystem "+e2e.AppLog, c.ReadText(e2e.In("filesystem", e2e.AppLog)))
}

// Servers have no notification for changed skills, so old lists are fetched again.
func TestSkillsAreFetchedAgainWhenTheyAreOld(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("one", e2e.Obj{"resources": []e2e.Obj{}, "skills": []e2e.Obj{skill("skill://a", "a")}, "hints": e2e.Obj{"ttlMs": 0}})
	c := w.Standalone()
	e2e.Eventually(t, "the first skill", func() bool { uris, _, _ := listedSkills(t, c); return len(uris) == 1 })
	b.Add("skills", skill("skill://b", "b"))
	e2e.Eventually(t, "the second skill", func() bool { uris, _, _ := listedSkills(t, c); return len(uris) == 2 })
	b.Do(e2e.Do("remove", e2e.Obj{"kind": "skills", "name": "skill://a/SKILL.md"}))
	b.ListChanged("resources")
	e2e.Eventually(t, "no first skill", func() bool { uris, _, _ := listedSkills(t, c); return len(uris) == 1 })
	require.Equal(t, -32602, c.Fault("skills/get", e2e.Obj{"uri": "skill://a/SKILL.md"}).Code)
}
