//go:build e2e

package profiles

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// hearsOfServers waits for an update of the servers' states.
func hearsOfServers(c *e2e.Client) {
	c.T.Helper()
	c.WaitNote("notifications/resources/updated", func(params json.RawMessage) bool { return e2e.Str(params, "uri") == "goblin://servers" })
}

func TestUpdatesOfServersReachThoseWhoSeeThem(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"flag", "URL, stateless"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, _, _, _ := worlds(t)
			c, plain := ways()[name](w, "part"), ways()["flag"](w, "")
			watch := func(c *e2e.Client) {
				if c.Modern {
					c.ListenTo(e2e.Obj{"resourceSubscriptions": []string{"goblin://servers"}})
				} else {
					c.Ok("resources/subscribe", e2e.Obj{"uri": "goblin://servers"})
				}
			}
			for _, who := range []*e2e.Client{c, plain} {
				who.Names("tools")
				watch(who)
				who.Settle()
				who.Forget()
			}
			w.Succeeds("restart", "unseen")
			hearsOfServers(plain)
			c.Quiet()
			require.Empty(t, c.Updates(), "it sees nothing of that server")
			w.Succeeds("restart", "seen")
			hearsOfServers(c)
			e2e.Eventually(t, "the end of the restart", func() bool {
				servers := c.ReadText("goblin://servers")
				return strings.Contains(servers, `"restarts":1`) && strings.Contains(servers, `"stale":false`)
			})
			// It sees another part now.
			c.Settle()
			c.Forget()
			w.Edit(func() { w.Profiles = e2e.Obj{"part": e2e.Obj{"servers": []string{"*"}}} })
			hearsOfServers(c)
			require.Contains(t, c.ReadText("goblin://servers"), "unseen")
		})
	}
}

func TestTasksOfToolsThatAreHiddenAreUnknown(t *testing.T) {
	t.Parallel()
	w, _, back, _ := worlds(t)
	c, plain := ways()["flag"](w, "part"), ways()["flag"](w, "")
	c.WaitListed("tools", "seen_keep", true)
	back.Do(e2e.Do("on", e2e.Obj{"key": "task keep", "actions": e2e.Actions(e2e.Do("wait", e2e.Obj{"name": "go"}), e2e.Do("text", e2e.Obj{"text": "done"}))}))
	begin := func(c *e2e.Client) string {
		id := e2e.Str(c.Ok("tools/call", e2e.Obj{"name": "seen_keep", "arguments": e2e.Obj{}, "task": e2e.Obj{"ttl": 60000}}), "task", "taskId")
		require.NotEmpty(t, id)
		require.Equal(t, "working", e2e.Str(c.Ok("tasks/get", e2e.Obj{"taskId": id}), "status"))
		return id
	}
	mine, theirs := begin(c), begin(plain)
	w.Succeeds("tools", "off", "seen_keep", "--profile", "part")
	c.WaitListed("tools", "seen_keep", false)
	none := c.Fault("tasks/get", e2e.Obj{"taskId": "none"})
	for _, method := range []string{"tasks/get", "tasks/result", "tasks/cancel", "acme/thing"} {
		got := c.Fault(method, e2e.Obj{"taskId": mine})
		if method == "acme/thing" {
			require.Equal(t, c.Fault(method, e2e.Obj{"taskId": "none"}), got)
			continue
		}
		require.Equal(t, none, got, method)
	}
	require.JSONEq(t, `[]`, string(e2e.At(c.Ok("tasks/list", e2e.Obj{}), "tasks")))
	c.Settle()
	c.Forget()
	back.Do(e2e.Do("release", e2e.Obj{"name": "go"}))
	require.Contains(t, string(plain.Ok("tasks/result", e2e.Obj{"taskId": theirs})), "done", "other clients have their own")
	c.Quiet()
	require.Empty(t, c.NotesOf("notifications/tasks/status"))
	require.Zero(t, back.Count("tasks/cancel"))
	w.Succeeds("tools", "on", "seen_keep", "--profile", "part")
	c.WaitListed("tools", "seen_keep", true)
	require.Contains(t, string(c.Ok("tasks/result", e2e.Obj{"taskId": mine})), "done")
}

func TestSkillsThatAreHiddenMakeNoTools(t *testing.T) {
	t.Parallel()
	w := e2e.WithMeta(t)
	w.Backend("plain", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}}, e2e.Obj{"tags": []string{"open"}})
	w.Backend("skilled", e2e.Obj{"resources": []e2e.Obj{}, "skills": []e2e.Obj{skill("skill://a")}})
	w.Profiles = e2e.Obj{"part": e2e.Obj{"servers": []string{"tag:open"}}, "all": e2e.Obj{}}
	w.AllowDaemon = true
	const tool = "search_skills"
	all := ways()["flag"](w, "all")
	all.WaitListed("tools", tool, true)
	c, s := ways()["flag"](w, "part"), w.Pipe("stdio", "--profile", "part").Stateless()
	require.Contains(t, c.Names("tools"), "plain_t")
	for _, name := range []string{tool, "catalog_skills"} {
		require.NotContains(t, c.Names("tools"), name)
		require.Equal(t, "TOOL_NOT_FOUND", c.Fault("tools/call", e2e.Obj{"name": name, "arguments": e2e.Obj{"query": "a"}}).Kind())
	}
	require.Equal(t, -32601, c.Fault("skills/list", e2e.Obj{}).Code, "there are none for it")
	require.Nil(t, e2e.At(s.Ok("server/discover", e2e.Obj{}), "capabilities", "extensions", "io.modelcontextprotocol/skills"))
	// They appear and disappear with the contents of the profile.
	w.Edit(func() { w.Profiles = e2e.Obj{"part": e2e.Obj{"servers": []string{"*"}}, "all": e2e.Obj{}} })
	c.WaitNote("notifications/tools/list_changed", nil)
	c.WaitListed("tools", tool, true)
	w.Edit(func() { w.Profiles = e2e.Obj{"part": e2e.Obj{"servers": []string{"plain"}}, "all": e2e.Obj{}} })
	c.WaitListed("tools", tool, false)
	require.Contains(t, all.Names("tools"), tool)
}

func TestWhatAProfileHidesOfSkillsIsNotReadInTheirFolders(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	file := func(uri string) e2e.Obj { return e2e.Obj{"uri": uri, "name": "f"} }
	w.Backend("one", e2e.Obj{
		"resources": []e2e.Obj{}, "skills": []e2e.Obj{skill("skill://git"), skill("skill://git/inner"), skill("skill://plans")},
		"folders": e2e.Obj{
			"skill://git":   []e2e.Obj{file("skill://git/SKILL.md"), file("skill://git/secret.md"), file("skill://git/inner")},
			"skill://plans": []e2e.Obj{file("skill://plans/a.md")},
		},
	})
	w.Profiles = e2e.Obj{"part": e2e.Obj{"resources": e2e.Obj{"deny": []string{"skill://git/secret.md", "*/inner/SKILL.md", "skill://plans/SKILL.md"}}}, "all": e2e.Obj{}}
	w.AllowDaemon = true
	for profile, seen := range map[string][2]string{"all": {"SKILL.md secret.md inner ", "a.md "}, "part": {"SKILL.md ", ""}} {
		c := ways()["flag"](w, profile)
		for n, folder := range []string{"mcp://one/skill://git", "mcp://one/skill://plans"} {
			if seen[n] == "" {
				require.Equal(t, -32602, c.Fault("resources/directory/read", e2e.Obj{"uri": folder}).Code, "whose skill it does not see")
				continue
			}
			files := ""
			for _, f := range e2e.Each(c.Ok("resources/directory/read", e2e.Obj{"uri": folder}), "resources") {
				files += path.Base(e2e.Str(f, "uri")) + " "
			}
			require.Equal(t, seen[n], files, profile)
		}
	}
}

func TestServersThatAreHiddenKeepNobodyWaiting(t *testing.T) {
	t.Parallel()
	w := e2e.WithMeta(t)
	w.Gateway["startup_wait"] = "5m"
	w.Backend("plain", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}})
	w.Backend("slow", e2e.Obj{"on": e2e.Obj{"initialize": e2e.Actions(e2e.Do("hang"))}}, e2e.Obj{"startup_timeout": "5m"})
	w.Profiles = e2e.Obj{"part": e2e.Obj{"servers": []string{"plain"}}}
	began := time.Now()
	c := ways()["flag, alone"](w, "part")
	require.Contains(t, c.Names("tools"), "plain_t")
	fault := c.Fault("tools/call", e2e.Obj{"name": "slow_t"})
	require.Equal(t, "TOOL_NOT_FOUND", fault.Kind())
	require.Nil(t, e2e.At(fault.Data, "pending"))
	require.NotContains(t, fault.Message, "slow\"")
	require.Contains(t, c.CallText("catalog_tools", e2e.Obj{}), "plain_t")
	require.Less(t, time.Since(began), 4*time.Minute, "no client waited for startup_wait")
}

func TestCommandsAskAsClientsOfAProfile(t *testing.T) {
	t.Parallel()
	for _, shared := range []bool{true, false} {
		w, _, _, other := worlds(t)
		if shared {
			w.AllowDaemon = true
			ways()["flag"](w, "").Names("tools")
		}
		run := func(code int, want string, args ...string) {
			t.Helper()
			out := w.RunInput("return unseen", append(args, "--profile", "part")...)
			require.Equal(t, code, out.Code, "%q: %s%s", args, out.Stdout, out.Stderr)
			require.Contains(t, out.Stdout+out.Stderr, want)
		}
		tools := w.Succeeds("list", "tools", "--profile", "part", "--json")
		require.Contains(t, tools, "seen_keep")
		for _, name := range []string{"seen_gone", "unseen"} {
			require.NotContains(t, tools, name)
		}
		require.NotContains(t, w.Succeeds("list", "resources", "--profile", "part"), "secret")
		require.Regexp(t, `(?s)^SERVER[^\n]*\nseen[^\n]*\n$`, w.Succeeds("list", "servers", "--profile", "part"))
		run(0, "seen:keep", "call", "seen_keep")
		run(e2e.ExitNotFound, `no tool "seen_gone"`, "call", "seen_gone")
		run(e2e.ExitNotFound, `no tool "unseen_look"`, "call", "unseen_look")
		run(e2e.ExitNotFound, `no server "unseen"; did you mean "seen"?`, "list", "tools", "--server", "unseen")
		run(0, "file:///pub/a", "read", "file:///pub/a")
		run(e2e.ExitNotFound, "no resource", "read", e2e.In("seen", "file:///secret/k"))
		run(e2e.ExitNotFound, "no prompt", "prompt", "seen/gone")
		run(0, "keep", "prompt", "seen/keep")
		require.NotContains(t, w.Run("search", "plums", "--profile", "part").Stdout, "unseen")
		run(0, "seen_keep", "search", "weigh", "--json")
		run(0, "", "lua", "-")
		require.NotContains(t, w.Run("read", "goblin://servers", "--profile", "part").Stdout, "unseen")
		for _, args := range [][]string{{"list", "tools"}, {"search", "x"}, {"read", "x"}, {"call", "x"}, {"prompt", "x"}, {"lua", "-"}} {
			out := w.Run(append(args, "--profile", "prat")...)
			require.Equal(t, e2e.ExitNotFound, out.Code, "%q", args)
			require.Contains(t, out.Stderr, `no profile "prat"; did you mean "part"?`)
		}
		if !shared {
			require.Zero(t, other.Starts(), "it can't answer")
		}
	}
}

func TestServersAreCountedAsAProfileShowsThem(t *testing.T) {
	t.Parallel()
	for _, shared := range []bool{true, false} {
		w, _ := lean(t) // of its two tools, one is denied, and none is listed
		w.Backend("other", e2e.Filesystem(), e2e.Obj{"tools": e2e.Obj{"deny": []string{"move"}}})
		w.Profiles["none"] = e2e.Obj{"servers": []string{"shop"}, "prompts": e2e.Obj{"deny": []string{"*"}}, "resources": e2e.Obj{"deny": []string{"file:///a"}}}
		if shared {
			w.AllowDaemon = true
			ways()["flag"](w, "").WaitListed("tools", "other_stat", true)
		}
		for profile, want := range map[string]string{
			"":     "[other 1 0 2 0] [shop 2 1 1 0]",
			"lean": "[other 1 0 2 0] [shop 1 1 1 0]",
			"none": "[shop 2 0 0 0]",
		} {
			args := []string{"list", "servers", "--json"}
			if profile != "" {
				args = append(args, "--profile", profile)
			}
			var servers []struct {
				Name                                 string
				Tools, Prompts, Resources, Templates int
			}
			require.NoError(t, json.Unmarshal([]byte(w.Succeeds(args...)), &servers))
			var got []string
			for _, s := range servers {
				got = append(got, fmt.Sprint([]any{s.Name, s.Tools, s.Prompts, s.Resources, s.Templates}))
			}
			slices.Sort(got)
			require.Equal(t, want, strings.Join(got, " "), "%q, shared %v", profile, shared)
		}
		require.Regexp(t, `(?m)^shop +ready +stdio +1 +1 +1 +0`, w.Succeeds("list", "servers", "--profile", "lean"))
	}
}

func TestServeShowsAProfileAtItsURL(t *testing.T) {
	t.Parallel()
	w, _, _, _ := worlds(t)
	w.Profiles["other"] = e2e.Obj{"servers": []string{"unseen"}}
	w.Clients = `{"e2*": "other"}`
	s := w.Serve("--profile", "part")
	client := func(path string) *e2e.Client {
		c := s.RawClient()
		c.Web.Path = path
		c.Init()
		return c
	}
	has := func(c *e2e.Client, name string) bool { return slices.Contains(c.Names("tools"), name) }
	c := client("/mcp")
	require.True(t, has(c, "seen_keep"), "the flag wins over rules")
	require.False(t, has(c, "unseen_look"))
	require.Equal(t, "TOOL_NOT_FOUND", c.Fault("tools/call", e2e.Obj{"name": "unseen_look"}).Kind())
	require.True(t, has(client("/mcp/p/other"), "unseen_look"), "and the URL over the flag")
	require.True(t, has(ways()["flag"](w, ""), "unseen_look"), "it concerns only HTTP")
	m := s.Stateless()
	require.True(t, has(m, "seen_keep"))
	require.False(t, has(m, "unseen_look"))
	out := w.Run("serve", "--profile", "prat")
	require.Equal(t, 3, out.Code)
	require.Contains(t, out.Stderr, `no profile "prat"; did you mean "part"?`)
}

func TestFlagURLRuleAndDefaultWinInThisOrder(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	for _, name := range []string{"a", "b", "c"} {
		w.Backend(name, e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}})
	}
	one := func(server string) e2e.Obj { return e2e.Obj{"servers": []string{server}} }
	w.Profiles = e2e.Obj{"pa": one("a"), "pb": one("b"), "default": one("c")}
	w.Clients = `{"e2e-x*": "pa", "e2*": "pb", "*": "default"}`
	s := w.Served()
	init := func(c *e2e.Client, name string) *e2e.Client {
		c.Ok("initialize", e2e.Obj{"protocolVersion": e2e.Revision, "capabilities": e2e.Obj{}, "clientInfo": e2e.Obj{"name": name, "version": "1"}})
		c.Notify("notifications/initialized", nil)
		return c
	}
	at := func(path string) *e2e.Client {
		c := s.RawClient()
		c.Web.Path = path
		return c
	}
	for _, row := range []struct {
		what, want string
		client     *e2e.Client
	}{
		{"the rule for others", "c_t", init(w.Socket(), "somebody")},
		{"a rule by the name", "b_t", init(w.Socket(), "e2e")},
		{"the first rule that fits", "a_t", init(w.Socket(), "e2e-x1")},
		{"a name in other letters", "c_t", init(w.Socket(), "E2E")},
		{"a flag", "a_t", init(w.Pipe("stdio", "--profile", "pa"), "e2e")},
		{"the flag of the default", "c_t", init(w.Pipe("stdio", "--profile", "default"), "e2e")},
		{"a URL", "a_t", init(at("/mcp/p/pa"), "e2e")},
		{"a rule over HTTP", "b_t", init(at("/mcp"), "e2e")},
	} {
		require.Equal(t, []string{row.want}, slices.DeleteFunc(row.client.Names("tools"), func(n string) bool { return !strings.HasSuffix(n, "_t") }), row.what)
	}
	// Rules also apply to clients that are already connected.
	c := init(w.Socket(), "e2e-x2")
	require.Contains(t, c.Names("tools"), "a_t")
	c.Settle()
	c.Forget()
	w.Edit(func() { w.Clients = `{"e2e-x*": "pb"}` })
	c.WaitNote("notifications/tools/list_changed", nil)
	require.Equal(t, []string{"b_t"}, c.Names("tools"))
}

func TestWhatFiltersLeaveOutIsNotDescribed(t *testing.T) {
	t.Parallel()
	skills := e2e.Obj{
		"resources": []e2e.Obj{e2e.Resource("file:///a")}, "templates": []e2e.Obj{e2e.Template("row:///{id}")},
		"skills": []e2e.Obj{skill("skill://pull"), skill("skill://open")},
	}
	w := e2e.WithMeta(t)
	w.Backend("one", skills)
	w.Backend("two", skills, e2e.Obj{"resources": e2e.Obj{"deny": []string{"skill://pull/*", "row:///1*"}}})
	w.Profiles = e2e.Obj{
		"folder": e2e.Obj{"resources": e2e.Obj{"deny": []string{"skill://pull/*", "row:///1*"}}},
		"skill":  e2e.Obj{"resources": e2e.Obj{"deny": []string{"skill://pull/SKILL.md"}}},
	}
	w.AllowDaemon = true
	describe := func(c *e2e.Client, uri string) (text string, failed bool) {
		t.Helper()
		result := c.Request("tools/call", e2e.Obj{"name": "describe_resource", "arguments": e2e.Obj{"uri": uri}}).Result
		return e2e.Str(result, "content", 0, "text"), string(e2e.At(result, "isError")) == "true"
	}
	for _, of := range []struct {
		profile, server string
		hidden          []string
	}{
		{"", "two", []string{"skill://pull/SKILL.md", "skill://pull/x.md", "row:///1"}}, // by the server's own filter
		{"folder", "one", []string{"skill://pull/SKILL.md", "skill://pull/x.md", "skill://pull", "row:///1"}},
		{"skill", "one", []string{"skill://pull/SKILL.md", "skill://pull/x.md", "skill://pull/sub/x.md", "skill://pull"}},
	} {
		c := ways()["flag"](w, of.profile)
		c.WaitListed("resources", e2e.In(of.server, "file:///a"), true)
		for _, uri := range of.hidden {
			listed := "mcp://" + of.server + "/" + uri
			text, failed := describe(c, listed)
			require.True(t, failed, "%s in %q: %s", listed, of.profile, text)
			require.Contains(t, text, "RESOURCE_NOT_FOUND: Resource not found: "+listed)
		}
		for _, uri := range []string{"skill://open/SKILL.md", "skill://open/x.md", "skill://open", "skill://other/x.md", "row:///2", "file:///a"} {
			text, failed := describe(c, "mcp://"+of.server+"/"+uri)
			require.False(t, failed, text)
			require.Contains(t, text, `"originalUri":"`+uri+`"`)
		}
	}
}
