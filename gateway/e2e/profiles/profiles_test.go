//go:build e2e

package profiles

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// seen is a server of which the profile shows what is called keep and what is public.
func seen() e2e.Obj {
	return e2e.Obj{
		"capabilities": e2e.Obj{
			"tools": e2e.Obj{"listChanged": true}, "prompts": e2e.Obj{"listChanged": true},
			"resources": e2e.Obj{"listChanged": true, "subscribe": true}, "completions": e2e.Obj{},
		},
		"tools":     []e2e.Obj{e2e.Tool("keep", e2e.Obj{"description": "weigh apples"}), e2e.Tool("gone", e2e.Obj{"description": "weigh pears"})},
		"prompts":   []e2e.Obj{e2e.Prompt("keep", e2e.Obj{"arguments": []e2e.Obj{{"name": "a"}}}), e2e.Prompt("gone", e2e.Obj{"arguments": []e2e.Obj{{"name": "a"}}})},
		"resources": []e2e.Obj{e2e.Resource("file:///pub/a"), e2e.Resource("file:///secret/k")},
		"templates": []e2e.Obj{e2e.Template("file:///pub/{name}"), e2e.Template("file:///secret/{name}")},
	}
}

// unseen is a server that the profile does not have.
func unseen() e2e.Obj {
	o := seen()
	o["tools"] = []e2e.Obj{e2e.Tool("look", e2e.Obj{"description": "weigh plums"}), e2e.Tool("keep")}
	o["prompts"] = []e2e.Obj{e2e.Prompt("look", e2e.Obj{"arguments": []e2e.Obj{{"name": "a"}}})}
	o["resources"] = []e2e.Obj{e2e.Resource("file:///hidden/x"), e2e.Resource("file:///pub/b")}
	o["templates"] = []e2e.Obj{e2e.Template("file:///hidden/{name}")}
	return o
}

// part is the profile; parts says the same by the filters of a server.
var (
	part = e2e.Obj{
		"servers": []string{"tag:open"}, "tools": e2e.Obj{"allow": []string{"keep*"}},
		"prompts": e2e.Obj{"deny": []string{"seen/gone"}}, "resources": e2e.Obj{"deny": []string{"file:///secret/*"}},
	}
	parts = e2e.Obj{
		"tools": e2e.Obj{"allow": []string{"keep*"}}, "prompts": e2e.Obj{"deny": []string{"gone"}}, "resources": e2e.Obj{"deny": []string{"file:///secret/*"}},
	}
)

// worlds are one with more than the profile has, and one with nothing else.
func worlds(t *testing.T) (whole, bare *e2e.World, back, other *e2e.Backend) {
	whole, bare = e2e.WithMeta(t), e2e.WithMeta(t)
	back = whole.Backend("seen", seen(), e2e.Obj{"tags": []string{"open", "work"}})
	other = whole.Backend("unseen", unseen())
	whole.Profiles = e2e.Obj{"part": part}
	bare.Backend("seen", seen(), parts)
	return whole, bare, back, other
}

// ways are those to a profile: each gives a client that has made its handshake, of a
// world with the profile or without.
func ways() map[string]func(w *e2e.World, profile string) *e2e.Client {
	flag := func(profile string, args ...string) []string {
		if profile != "" {
			args = append(args, "--profile", profile)
		}
		return args
	}
	path := func(w *e2e.World, profile string) *e2e.Client {
		c := w.Served().RawClient()
		if profile != "" {
			c.Web.Path = "/mcp/p/" + profile
		}
		return c
	}
	rule := func(w *e2e.World, profile string) {
		if profile != "" && w.Clients == "" {
			w.Clients = fmt.Sprintf(`{"e2?": %[1]s, "state*": %[1]s}`, profile)
		}
	}
	return map[string]func(w *e2e.World, profile string) *e2e.Client{
		"flag, alone": func(w *e2e.World, profile string) *e2e.Client {
			c := w.Pipe(flag(profile, "stdio", "--standalone")...)
			c.Init()
			return c
		},
		"flag": func(w *e2e.World, profile string) *e2e.Client {
			w.Hosted = true
			c := w.Pipe(flag(profile, "stdio")...)
			c.Init()
			return c
		},
		"flag, stateless": func(w *e2e.World, profile string) *e2e.Client {
			w.Hosted = true
			return w.Pipe(flag(profile, "stdio")...).Stateless()
		},
		"URL": func(w *e2e.World, profile string) *e2e.Client {
			c := path(w, profile)
			c.Init()
			c.Listen()
			return c
		},
		"URL, stateless": func(w *e2e.World, profile string) *e2e.Client {
			c := path(w, profile).Stateless()
			c.Web.Stateless = true
			return c
		},
		"rule": func(w *e2e.World, profile string) *e2e.Client {
			rule(w, profile)
			return w.Join()
		},
		"rule, stateless": func(w *e2e.World, profile string) *e2e.Client {
			rule(w, profile)
			return w.Socket().Stateless()
		},
		"default": func(w *e2e.World, profile string) *e2e.Client {
			if profile != "" {
				w.Profiles = e2e.Obj{"default": part}
			}
			return w.Join()
		},
	}
}

// asks are requests of every method for what is in the profile, what is not, and what
// never was, by every form of address.
func asks(modern bool) (all [][2]any) {
	add := func(method string, params e2e.Obj) { all = append(all, [2]any{method, params}) }
	for _, kind := range []string{"tools", "prompts", "resources", "templates"} {
		add(e2e.ListMethod(kind), e2e.Obj{})
	}
	own := func(tool string, args e2e.Obj) { add("tools/call", e2e.Obj{"name": tool, "arguments": args}) }
	for _, server := range []string{"seen", "unseen", "never", ""} {
		for _, name := range []string{"keep", "gone", "look", "none"} {
			forms := []string{server + "_" + name, server + "/" + name, server + "." + name}
			if server == "" {
				forms = []string{name}
			}
			for _, form := range forms {
				add("tools/call", e2e.Obj{"name": form, "arguments": e2e.Obj{"x": 1}})
				add("prompts/get", e2e.Obj{"name": form, "arguments": e2e.Obj{"a": "1"}})
				add("completion/complete", e2e.Obj{"ref": e2e.Obj{"type": "ref/prompt", "name": form}, "argument": e2e.Obj{"name": "a", "value": ""}})
				own("describe_tool", e2e.Obj{"name": form})
				own("describe_prompt", e2e.Obj{"name": form})
			}
		}
		for _, uri := range []string{"file:///pub/a", "file:///pub/b", "file:///pub/new", "file:///secret/k", "file:///%73ecret/k", "file:///hidden/x", "file:///hidden/new"} {
			forms := []string{e2e.In(server, uri), e2e.FlatTailOf(uri), server + "_" + e2e.FlatTailOf(uri)}
			if server == "" {
				forms = []string{uri}
			}
			for _, form := range forms {
				add("resources/read", e2e.Obj{"uri": form})
				if !modern {
					add("resources/subscribe", e2e.Obj{"uri": form})
				}
				own("describe_resource", e2e.Obj{"uri": form})
			}
		}
		for _, template := range []string{"file:///pub/{name}", "file:///secret/{name}", "file:///hidden/{name}"} {
			add("completion/complete", e2e.Obj{"ref": e2e.Obj{"type": "ref/resource", "uri": e2e.In(server, template)}, "argument": e2e.Obj{"name": "name", "value": ""}})
			add("completion/complete", e2e.Obj{"ref": e2e.Obj{"type": "ref/resource", "uri": template}, "argument": e2e.Obj{"name": "name", "value": ""}})
		}
		if server != "" {
			own("catalog_tools", e2e.Obj{"serverId": server})
			own("search_tools", e2e.Obj{"query": "weigh", "serverId": server})
		}
	}
	for _, words := range []string{"weigh", "plums", "pears", "hidden", "secret", "look"} {
		own("search_tools", e2e.Obj{"query": words})
		own("search_resources", e2e.Obj{"query": words})
		own("search_prompts", e2e.Obj{"query": words})
	}
	for _, tool := range []string{"catalog_tools", "catalog_prompts", "catalog_resources", "catalog_resource_templates"} {
		own(tool, e2e.Obj{})
	}
	for _, script := range []string{
		`return seen.keep{x = 1}`, `return seen.gone{}`, `return unseen.look{}`, `return never.look{}`, `return servers.unseen.look{}`, `return servers.never.look{}`,
		`local all = {} for name in pairs(servers) do all[#all + 1] = name end table.sort(all) return all`,
		`return resources.read("mcp://unseen/file:///hidden/x")`, `return resources.read("file:///secret/k")`, `return resources.read("file:///pub/a")`,
		`return resources.list{}`, `return resources.list{server = "unseen"}`, `return prompts.get("unseen/look", {})`, `return prompts.get("seen/gone", {})`,
	} {
		own("execute_lua", e2e.Obj{"script": script})
	}
	return all
}

// scores weigh words by how common they are in the whole catalog.
var scores = regexp.MustCompile(`score\\*":[\d.]+`)

func said(m e2e.Message) string {
	return scores.ReplaceAllString(string(m.Result)+string(m.Error), "score")
}

func TestWhatAProfileLeavesOutDoesNotExist(t *testing.T) {
	t.Parallel()
	for name, connect := range ways() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			whole, bare, back, other := worlds(t)
			c, b := connect(whole, "part"), connect(bare, "")
			for _, ask := range asks(c.Modern) {
				method := ask[0].(string)
				want, got := b.Request(method, ask[1]), c.Request(method, ask[1])
				require.Equal(t, said(want), said(got), "%s %s", method, e2e.Marshal(ask[1]))
			}
			text := c.ReadText("goblin://servers")
			require.Contains(t, text, `"seen"`)
			require.NotContains(t, text, "unseen")
			if other.Starts() > 0 {
				for _, method := range []string{"tools/call", "prompts/get", "resources/read", "resources/subscribe", "completion/complete"} {
					require.Zero(t, other.Count(method), method)
				}
				for _, m := range slices.Concat(back.Received("tools/call"), back.Received("prompts/get"), back.Received("resources/read")) {
					require.NotRegexp(t, "gone|ecret", string(m.Msg))
				}
			}
			if strings.Contains(name, "alone") {
				return
			}
			// Meanwhile it is there for others.
			require.Contains(t, whole.Succeeds("call", "unseen_look"), "unseen:look")
			require.Contains(t, whole.Succeeds("call", "seen_gone"), "seen:gone")
		})
	}
}

func TestClientsHearOfTheirProfileAlone(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"flag", "URL", "rule", "default"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, _, back, other := worlds(t)
			c := ways()[name](w, "part")
			require.Contains(t, c.Names("tools"), "seen_keep")
			c.Ok("resources/subscribe", e2e.Obj{"uri": e2e.In("seen", "file:///pub/a")})
			c.Ok("resources/subscribe", e2e.Obj{"uri": "goblin://servers"})
			require.Contains(t, w.Succeeds("call", "unseen_look"), "unseen:look")
			c.Settle()
			c.Forget()
			// Others see what changes, and this client hears nothing.
			other.Add("tools", e2e.Tool("more"))
			other.ListChanged("tools")
			back.Add("tools", e2e.Tool("more"))
			back.ListChanged("tools")
			e2e.Eventually(t, "others to see it", func() bool {
				list := w.Succeeds("list", "tools")
				return strings.Contains(list, "unseen_more") && strings.Contains(list, "seen_more")
			})
			other.Updated("file:///hidden/x")
			c.Quiet()
			require.Empty(t, c.NotesOf("notifications/tools/list_changed"))
			// What it sees, it hears of.
			back.Add("tools", e2e.Tool("keep2"))
			back.ListChanged("tools")
			c.Noted("notifications/tools/list_changed", nil)
			require.Contains(t, c.Names("tools"), "seen_keep2")
			back.Updated("file:///pub/a")
			require.Equal(t, e2e.In("seen", "file:///pub/a"), e2e.Str(c.Noted("notifications/resources/updated", nil).Params, "uri"))
		})
	}
}

func TestAListenHearsOfItsProfileAlone(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"flag, stateless", "URL, stateless", "rule, stateless"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, _, back, other := worlds(t)
			c := ways()[name](w, "part")
			_ = c.Names("tools")
			known := e2e.In("seen", "file:///pub/a")
			_, honoured := c.Hears(e2e.Obj{"toolsListChanged": true, "resourceSubscriptions": []string{known, e2e.In("unseen", "file:///hidden/x"), e2e.In("seen", "file:///secret/k")}})
			require.JSONEq(t, `{"toolsListChanged":true,"resourceSubscriptions":["`+known+`"]}`, string(honoured))
			require.Contains(t, w.Succeeds("call", "unseen_look"), "unseen:look")
			c.Forget()
			other.Add("tools", e2e.Tool("more"))
			other.ListChanged("tools")
			e2e.Eventually(t, "others to see it", func() bool { return strings.Contains(w.Succeeds("list", "tools"), "unseen_more") })
			c.Quiet()
			require.Empty(t, c.NotesOf("notifications/tools/list_changed"))
			back.Add("tools", e2e.Tool("keep2"))
			back.ListChanged("tools")
			c.Noted("notifications/tools/list_changed", nil)
		})
	}
}

func TestAnEditOfAProfileReachesItsClients(t *testing.T) {
	t.Parallel()
	w, _, _, _ := worlds(t)
	c := ways()["flag"](w, "part")
	require.Equal(t, []string{"seen_keep"}, slices.DeleteFunc(c.Names("tools"), func(n string) bool { return !strings.Contains(n, "seen_") }))
	w.Edit(func() { w.Profiles = e2e.Obj{"part": e2e.Obj{"servers": []string{"un*"}}} })
	c.Noted("notifications/tools/list_changed", nil)
	c.WaitListed("tools", "unseen_look", true)
	require.NotContains(t, c.Names("tools"), "seen_keep")
	require.Equal(t, "TOOL_NOT_FOUND", c.Fault("tools/call", e2e.Obj{"name": "seen_keep"}).Kind())
	w.Edit(func() { w.Profiles = nil })
	e2e.Eventually(t, "nothing to be left", func() bool { return len(c.Names("tools")) == 0 })
}

func TestAProfileThatThereIsNotIsToldOf(t *testing.T) {
	t.Parallel()
	w, _, _, _ := worlds(t)
	out := w.Run("stdio", "--profile", "prat")
	require.Equal(t, 3, out.Code)
	require.Contains(t, out.Stderr, `no profile "prat"; did you mean "part"?`)
	answer := w.Served().Do("POST", "/mcp/p/prat", map[string]string{"Content-Type": "application/json"}, e2e.InitBody)
	require.Equal(t, 404, answer.Status)
}
