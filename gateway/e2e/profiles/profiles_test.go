//go:build e2e

package profiles

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// seen is a server of which the profile shows everything named keep or public.
func seen() e2e.Obj {
	return e2e.Obj{
		"capabilities": e2e.Obj{
			"tools": e2e.Obj{"listChanged": true}, "prompts": e2e.Obj{"listChanged": true},
			"resources": e2e.Obj{"listChanged": true, "subscribe": true}, "completions": e2e.Obj{}, "logging": e2e.Obj{},
			"tasks":      e2e.Obj{"list": e2e.Obj{}, "cancel": e2e.Obj{}, "requests": e2e.Obj{"tools": e2e.Obj{"call": e2e.Obj{}}}},
			"extensions": e2e.Obj{"acme/things": e2e.Obj{}, "io.modelcontextprotocol/skills": e2e.Obj{"directoryRead": true}},
		},
		"tools":     []e2e.Obj{tasked("keep", "weigh apples"), tasked("gone", "weigh pears")},
		"tasks":     e2e.Obj{"keep": e2e.Obj{}, "gone": e2e.Obj{}},
		"prompts":   []e2e.Obj{e2e.Prompt("keep", e2e.Obj{"arguments": []e2e.Obj{{"name": "a"}}}), e2e.Prompt("gone", e2e.Obj{"arguments": []e2e.Obj{{"name": "a"}}})},
		"resources": []e2e.Obj{e2e.Resource("file:///pub/a"), e2e.Resource("file:///secret/k"), e2e.Resource("ui://secret/app"), e2e.Resource("ui://pub/app")},
		"templates": []e2e.Obj{e2e.Template("file:///pub/{name}"), e2e.Template("file:///secret/{name}")},
		"skills":    []e2e.Obj{skill("skill://pub"), skill("skill://secret")},
		"folders": e2e.Obj{
			"skill://pub":    []e2e.Obj{{"uri": "skill://pub/SKILL.md", "name": "SKILL.md"}, {"uri": "skill://pub/secret.md", "name": "secret.md"}},
			"skill://secret": []e2e.Obj{{"uri": "skill://secret/SKILL.md", "name": "SKILL.md"}},
		},
		"on": e2e.Obj{"acme/thing": e2e.Actions(e2e.Do("echo"))},
	}
}

// tasked is a tool that may run as a task.
func tasked(name, about string) e2e.Obj {
	return e2e.Tool(name, e2e.Obj{"description": about, "execution": e2e.Obj{"taskSupport": "optional"}})
}

func skill(folder string) e2e.Obj {
	uri := folder + "/SKILL.md"
	return e2e.Obj{"uri": uri, "frontmatter": e2e.Obj{"name": "s", "description": "weigh"}, "resources": []e2e.Obj{{"uri": uri, "size": 1}}}
}

// hiddenServer is a server outside of the profile.
func hiddenServer() e2e.Obj {
	o := seen()
	o["tools"] = []e2e.Obj{tasked("look", "weigh plums"), tasked("keep", "")}
	o["tasks"] = e2e.Obj{"look": e2e.Obj{}, "keep": e2e.Obj{}}
	o["prompts"] = []e2e.Obj{e2e.Prompt("look", e2e.Obj{"arguments": []e2e.Obj{{"name": "a"}}})}
	o["resources"] = []e2e.Obj{e2e.Resource("file:///hidden/x"), e2e.Resource("file:///pub/b"), e2e.Resource("ui://hidden/app")}
	o["templates"] = []e2e.Obj{e2e.Template("file:///hidden/{name}")}
	o["skills"] = []e2e.Obj{skill("skill://hidden"), skill("skill://pub")}
	o["folders"] = e2e.Obj{"skill://hidden": []e2e.Obj{{"uri": "skill://hidden/SKILL.md", "name": "SKILL.md"}}}
	o["capabilities"].(e2e.Obj)["extensions"] = e2e.Obj{"acme/things": e2e.Obj{"hidden": true}, "acme/more": e2e.Obj{}, "io.modelcontextprotocol/skills": e2e.Obj{}}
	o["on"] = e2e.Obj{"acme/thing": e2e.Actions(e2e.Do("echo")), "acme/more": e2e.Actions(e2e.Do("echo"))}
	return o
}

// able contains the capabilities of clients here, which servers have, too.
var able = e2e.Obj{"extensions": e2e.Obj{"acme/things": e2e.Obj{}, "acme/more": e2e.Obj{}, e2e.TasksExtension: e2e.Obj{}}}

// part is the profile; parts is equal but uses filters of a server.
var (
	part = e2e.Obj{
		"servers": []string{"tag:open"}, "tools": e2e.Obj{"allow": []string{"keep*"}},
		"prompts": e2e.Obj{"deny": []string{"seen/gone"}}, "resources": e2e.Obj{"deny": secret},
	}
	parts = e2e.Obj{
		"tools": e2e.Obj{"allow": []string{"keep*"}}, "prompts": e2e.Obj{"deny": []string{"gone"}}, "resources": e2e.Obj{"deny": secret},
	}
	secret = []string{"*secret*"}
)

// worlds returns a world with more than the profile's servers, and one with nothing else.
func worlds(t *testing.T) (whole, bare *e2e.World, back, other *e2e.Backend) {
	whole, bare = e2e.WithMeta(t), e2e.WithMeta(t)
	back = whole.Backend("seen", seen(), e2e.Obj{"tags": []string{"open", "work"}})
	other = whole.Backend("unseen", hiddenServer())
	whole.Profiles = e2e.Obj{"part": part}
	bare.Backend("seen", seen(), parts)
	return whole, bare, back, other
}

// ways returns connect functions by the way to choose a profile. Each returns an
// initialized client, with or without the profile.
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
			c.Caps = able
			c.Init()
			return c
		},
		"flag": func(w *e2e.World, profile string) *e2e.Client {
			w.AllowDaemon = true
			c := w.Pipe(flag(profile, "stdio")...)
			c.Caps = able
			c.Init()
			return c
		},
		"flag, stateless": func(w *e2e.World, profile string) *e2e.Client {
			w.AllowDaemon = true
			return stateless(w.Pipe(flag(profile, "stdio")...))
		},
		"URL": func(w *e2e.World, profile string) *e2e.Client {
			c := path(w, profile)
			c.Caps = able
			c.Init()
			c.Listen()
			return c
		},
		"URL, stateless": func(w *e2e.World, profile string) *e2e.Client {
			c := stateless(path(w, profile))
			c.Web.Stateless = true
			return c
		},
		"rule": func(w *e2e.World, profile string) *e2e.Client {
			rule(w, profile)
			return joined(w)
		},
		"rule, stateless": func(w *e2e.World, profile string) *e2e.Client {
			rule(w, profile)
			return stateless(w.Socket())
		},
		"default": func(w *e2e.World, profile string) *e2e.Client {
			if profile != "" {
				w.Profiles = e2e.Obj{"default": part}
			}
			return joined(w)
		},
	}
}

// joined returns an initialized client on the socket.
func joined(w *e2e.World) *e2e.Client {
	c := w.Socket()
	c.Caps = able
	c.Init()
	return c
}

func stateless(c *e2e.Client) *e2e.Client {
	c = c.Stateless()
	c.Caps = able
	return c
}

// subjects are servers inside of the profile, outside of it, and unknown ones.
var (
	subjects  = []string{"seen", "unseen", "never", ""}
	names     = []string{"keep", "gone", "look", "none"}
	uris      = []string{"file:///pub/a", "file:///pub/b", "file:///pub/new", "file:///secret/k", "file:///%73ecret/k", "file:///hidden/x", "file:///hidden/new"}
	apps      = []string{"ui://pub/app", "ui://secret/app", "ui://hidden/app"}
	skilled   = []string{"skill://pub", "skill://pub/SKILL.md", "skill://pub/secret.md", "skill://secret", "skill://secret/SKILL.md", "skill://hidden", "skill://hidden/SKILL.md", "skill://never/SKILL.md"}
	templates = []string{"file:///pub/{name}", "file:///secret/{name}", "file:///hidden/{name}"}
)

// named yields a server's entries in every form of a name.
func named(yield func(name string) bool) {
	for _, server := range subjects {
		for _, name := range names {
			forms := []string{server + "_" + name, server + "/" + name, server + "." + name}
			if server == "" {
				forms = []string{name}
			}
			for _, form := range forms {
				if !yield(form) {
					return
				}
			}
		}
	}
}

// addressed yields URIs in every form of an address: listed, flat, raw, and as URL
// parsers normalize them.
func addressed(uris []string) func(yield func(uri string) bool) {
	return func(yield func(uri string) bool) {
		for _, server := range subjects {
			for _, uri := range uris {
				forms := []string{e2e.In(server, uri), "MCP://" + server + "/" + uri, e2e.In(server, strings.ReplaceAll(uri, ":", "%3A")), flatID(server, uri)}
				if scheme, rest, ok := strings.Cut(uri, "://"); ok && scheme != "file" {
					forms = append(forms, scheme+"://"+server+"/"+rest)
				}
				if server == "" {
					forms = []string{uri, strings.TrimPrefix(flatID("", uri), "_")}
				}
				for _, form := range forms {
					if !yield(form) {
						return
					}
				}
			}
		}
	}
}

type adder = func(params e2e.Obj)

func byName(member string, more e2e.Obj) func(adder) {
	return func(add adder) {
		for name := range named {
			add(e2e.Merge(e2e.Obj{member: name}, []e2e.Obj{more}))
		}
	}
}

func byURI(all ...[]string) func(adder) {
	return func(add adder) {
		for uri := range addressed(slices.Concat(all...)) {
			add(e2e.Obj{"uri": uri})
		}
	}
}

func once(params e2e.Obj) func(adder) { return func(add adder) { add(params) } }

// methods has requests of each method for everything, in every form of address. Methods
// with a nil value have their own tests, because they answer later or name tasks.
var methods = map[string]func(add adder){
	"initialize":               once(e2e.Obj{"protocolVersion": e2e.Revision, "capabilities": e2e.Obj{}, "clientInfo": e2e.Obj{"name": "e2e", "version": "1"}}),
	"ping":                     once(e2e.Obj{}),
	"server/discover":          once(e2e.Obj{}),
	"logging/setLevel":         once(e2e.Obj{"level": "warning"}),
	"tools/list":               once(e2e.Obj{}),
	"prompts/list":             once(e2e.Obj{}),
	"resources/list":           once(e2e.Obj{}),
	"resources/templates/list": once(e2e.Obj{}),
	"skills/list":              once(e2e.Obj{}),
	"tasks/list":               once(e2e.Obj{}),
	"tasks/get":                once(e2e.Obj{"taskId": "none"}),
	"tasks/cancel":             once(e2e.Obj{"taskId": "none"}),
	"tasks/result":             once(e2e.Obj{"taskId": "none"}),
	"tasks/update":             once(e2e.Obj{"taskId": "none"}),
	"skills/get":               byURI(skilled),
	"resources/directory/read": byURI(skilled, uris),
	"resources/read":           byURI(uris, apps, skilled),
	"resources/subscribe":      byURI(uris, apps),
	"resources/unsubscribe":    byURI(uris, apps),
	"prompts/get":              byName("name", e2e.Obj{"arguments": e2e.Obj{"a": "1"}}),
	"tools/call":               callsOf,
	"subscriptions/listen":     nil, // TestAListenHearsOfItsProfileAlone
	"completion/complete": func(add adder) {
		byName("name", nil)(func(p e2e.Obj) {
			add(e2e.Obj{"ref": e2e.Obj{"type": "ref/prompt", "name": p["name"]}, "argument": e2e.Obj{"name": "a", "value": ""}})
		})
		byURI(templates)(func(p e2e.Obj) {
			add(e2e.Obj{"ref": e2e.Obj{"type": "ref/resource", "uri": p["uri"]}, "argument": e2e.Obj{"name": "name", "value": ""}})
		})
	},
	"acme/thing": ofExtension, "acme/more": ofExtension,
}

func ofExtension(add adder) {
	byName("name", nil)(add)
	byURI(uris)(add)
	add(e2e.Obj{"taskId": "none"})
}

// callsOf calls tools of servers and Goblin's own with everything, plainly and as
// nonexistent tasks.
func callsOf(add adder) {
	byName("name", e2e.Obj{"arguments": e2e.Obj{"x": 1}})(add)
	own := func(tool string, args e2e.Obj) { add(e2e.Obj{"name": tool, "arguments": args}) }
	for name := range named {
		own("describe_tool", e2e.Obj{"name": name})
		own("describe_prompt", e2e.Obj{"name": name})
	}
	for _, name := range []string{"seen_gone", "unseen_look", "never_look", "look"} {
		add(e2e.Obj{"name": name, "arguments": e2e.Obj{}, "task": e2e.Obj{"ttl": 60000}})
	}
	for uri := range addressed(slices.Concat(uris, apps, skilled, templates)) {
		if !strings.Contains(uri, "skill") || !strings.Contains(uri, "secret") { // servers' filters apply to the contents of a folder when it is read
			own("describe_resource", e2e.Obj{"uri": uri})
		}
	}
	for _, server := range subjects {
		if server != "" {
			for _, tool := range []string{"catalog_tools", "catalog_prompts", "catalog_resources", "catalog_resource_templates", "catalog_skills"} {
				own(tool, e2e.Obj{"serverId": server})
			}
			own("search_tools", e2e.Obj{"query": "weigh", "serverId": server})
		}
	}
	for _, words := range []string{"weigh", "plums", "pears", "hidden", "secret", "look"} {
		for _, tool := range []string{"search_tools", "search_resources", "search_prompts", "search_skills"} {
			own(tool, e2e.Obj{"query": words})
		}
	}
	for _, tool := range []string{"catalog_tools", "catalog_prompts", "catalog_resources", "catalog_resource_templates", "catalog_skills"} {
		own(tool, e2e.Obj{})
	}
	for _, script := range []string{
		`return seen.keep{x = 1}`, `return seen.gone{}`, `return unseen.look{}`, `return never.look{}`, `return servers.unseen.look{}`, `return servers.never.look{}`,
		`local all = {} for name in pairs(servers) do all[#all + 1] = name end table.sort(all) return all`,
		`return resources.read("mcp://unseen/file:///hidden/x")`, `return resources.read("file:///secret/k")`, `return resources.read("file:///pub/a")`,
		`return resources.list{}`, `return resources.list{server = "unseen"}`, `return prompts.get("unseen/look", {})`, `return prompts.get("seen/gone", {})`,
		`return search("plums")`, `return tools.list{}`, `return tools.list{server = "unseen"}`, `return prompts.list{}`,
	} {
		own("execute_lua", e2e.Obj{"script": script})
	}
}

// tables matches the variables in which the gateway has its methods.
var tables = regexp.MustCompile(`(?s)var (?:common|legacy|modern)Methods = map\[string\]method\{(.*?)\n\}`)

// Every new method of the gateway needs a row here.
func TestEveryMethodOfTheGatewayIsAskedForWhatIsNotThere(t *testing.T) {
	t.Parallel()
	var all []string
	for _, file := range []string{"dispatch.go", "modern.go"} {
		text, err := os.ReadFile(filepath.Join("..", "..", file))
		require.NoError(t, err)
		for _, table := range tables.FindAllStringSubmatch(string(text), -1) {
			for _, row := range regexp.MustCompile(`(?m)^\t"([^"]+)":`).FindAllStringSubmatch(table[1], -1) {
				all = append(all, row[1])
			}
		}
	}
	require.Greater(t, len(all), 20, "the tables were found")
	for _, method := range all {
		_, ok := methods[method]
		require.True(t, ok, "%s has no row in methods", method)
	}
}

// scores weigh words by how common they are in the whole catalog.
var scores = regexp.MustCompile(`score\\*":[\d.]+`)

func said(m e2e.Message) string {
	return scores.ReplaceAllString(string(m.Result)+string(m.Error), "score")
}

func TestWhatAProfileLeavesOutDoesNotExist(t *testing.T) {
	t.Parallel()
	for name, connect := range ways() {
		for _, namespace := range []string{"", "flat"} {
			if namespace == "" || strings.HasPrefix(name, "flag") { // the others are ways to the same views
				t.Run(name+" "+namespace, func(t *testing.T) {
					t.Parallel()
					leavesOut(t, name, connect, namespace)
				})
			}
		}
	}
}

// leavesOut sends all requests in a profile with a namespace, and in a world that has
// nothing else. The answers must be equal.
func leavesOut(t *testing.T, name string, connect func(w *e2e.World, profile string) *e2e.Client, namespace string) {
	whole, bare, back, other := worlds(t)
	if namespace != "" {
		whole.Profiles["part"], bare.Gateway["namespace"] = e2e.Merge(e2e.Obj{}, []e2e.Obj{part, {"namespace": namespace}}), namespace
	}
	c, b := connect(whole, "part"), connect(bare, "")
	for _, who := range []*e2e.Client{c, b} { // capabilities of servers are known after they have listed
		require.NotEmpty(t, who.Names("tools"))
		who.Ok("skills/list", e2e.Obj{})
		require.Contains(t, who.Names("tools"), "search_skills")
	}
	for _, method := range slices.Sorted(maps.Keys(methods)) {
		asks := methods[method]
		if asks == nil {
			continue
		}
		asks(func(params e2e.Obj) {
			want, got := b.Request(method, params), c.Request(method, params)
			require.Equal(t, said(want), said(got), "%s %s", method, e2e.Marshal(params))
		})
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
	// Meanwhile other clients can use it.
	require.Contains(t, whole.Succeeds("call", "unseen_look"), "unseen:look")
	require.Contains(t, whole.Succeeds("call", "seen_gone"), "seen:gone")
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
			// Log lines of servers outside of calls arrive in order, and only from
			// visible servers.
			logs := func(b *e2e.Backend, line string) {
				b.Do(e2e.Do("notify", e2e.Obj{"method": "notifications/message", "params": e2e.Obj{"level": "error", "data": line}}))
			}
			logs(other, "hidden")
			require.Contains(t, w.Succeeds("call", "unseen_look"), "unseen:look", "its line was read earlier")
			logs(back, "shown")
			require.Equal(t, "shown", e2e.Str(c.WaitNote("notifications/message", nil).Params, "data"))
			c.Forget()
			// Other clients see the change, and this client gets no notification.
			other.Add("tools", e2e.Tool("more"))
			other.ListChanged("tools")
			back.Add("tools", e2e.Tool("more"))
			back.ListChanged("tools")
			e2e.Eventually(t, "other clients see it", func() bool {
				list := w.Succeeds("list", "tools")
				return strings.Contains(list, "unseen_more") && strings.Contains(list, "seen_more")
			})
			other.Updated("file:///hidden/x")
			c.Quiet()
			require.Empty(t, c.NotesOf("notifications/tools/list_changed"))
			// It is notified of a change in its profile.
			back.Add("tools", e2e.Tool("keep2"))
			back.ListChanged("tools")
			c.WaitNote("notifications/tools/list_changed", nil)
			require.Contains(t, c.Names("tools"), "seen_keep2")
			back.Updated("file:///pub/a")
			require.Equal(t, e2e.In("seen", "file:///pub/a"), e2e.Str(c.WaitNote("notifications/resources/updated", nil).Params, "uri"))
		})
	}
}

func TestAnEditOfAProfileReachesItsClients(t *testing.T) {
	t.Parallel()
	w, _, _, _ := worlds(t)
	c := ways()["flag"](w, "part")
	require.Equal(t, []string{"seen_keep"}, slices.DeleteFunc(c.Names("tools"), func(n string) bool { return !strings.Contains(n, "seen_") }))
	w.Edit(func() { w.Profiles = e2e.Obj{"part": e2e.Obj{"servers": []string{"un*"}}} })
	c.WaitNote("notifications/tools/list_changed", nil)
	c.WaitListed("tools", "unseen_look", true)
	require.NotContains(t, c.Names("tools"), "seen_keep")
	require.Equal(t, "TOOL_NOT_FOUND", c.Fault("tools/call", e2e.Obj{"name": "seen_keep"}).Kind())
	w.Edit(func() { w.Profiles = nil })
	e2e.Eventually(t, "nothing is left", func() bool { return len(c.Names("tools")) == 0 })
}

func TestAProfileThatThereIsNotIsToldOf(t *testing.T) {
	t.Parallel()
	w, _, _, _ := worlds(t)
	out := w.Run("stdio", "--profile", "prat")
	require.Equal(t, 3, out.Code)
	require.Contains(t, out.Stderr, `no profile "prat"; did you mean "part"?`)
	answer := w.Served().Do("POST", "/mcp/p/prat", map[string]string{"Content-Type": "application/json"}, e2e.InitBody)
	require.Equal(t, 404, answer.Status)
	require.Contains(t, answer.Body, "unknown profile")
}

func TestClientsThatHaveNotListedHearOfTheirProfileAlone(t *testing.T) {
	t.Parallel()
	w, _, back, other := worlds(t)
	first := ways()["flag"](w, "")
	first.WaitListed("tools", "unseen_look", true)
	first.Settle()
	c := ways()["flag"](w, "part")
	c.Settle()
	c.Forget()
	other.Add("tools", e2e.Tool("more"))
	other.ListChanged("tools")
	first.WaitListed("tools", "unseen_more", true)
	c.Quiet()
	require.Empty(t, c.NotesOf("notifications/tools/list_changed"))
	back.Add("tools", e2e.Tool("keep2"))
	back.ListChanged("tools")
	c.WaitNote("notifications/tools/list_changed", nil)
}

// A server that starts late is announced to the clients that see it, regardless of
// earlier lists.
func TestAHiddenServerThatComesLateIsNoNews(t *testing.T) {
	t.Parallel()
	w := e2e.WithMeta(t)
	w.Backend("seen", seen(), e2e.Obj{"tags": []string{"open"}})
	script := hiddenServer()
	script["on"] = e2e.Obj{"initialize": e2e.Actions(e2e.Do("wait", e2e.Obj{"name": "go"}))}
	late := w.Backend("unseen", script)
	w.Profiles = e2e.Obj{"part": part}
	some, whole := ways()["flag"](w, "part"), ways()["flag"](w, "")
	late.WaitEvent("wait", "go")
	some.WaitListed("tools", "seen_keep", true) // and nothing else
	some.Settle()
	some.Forget()
	late.Do(e2e.Do("release", e2e.Obj{"name": "go"}))
	whole.WaitListed("tools", "unseen_look", true)
	some.Quiet()
	for _, method := range []string{"tools", "prompts", "resources"} {
		require.Empty(t, some.NotesOf("notifications/"+method+"/list_changed"))
	}
}

func TestGlobsOfAProfileThatFitNothingAreTold(t *testing.T) {
	t.Parallel()
	w := e2e.WithMeta(t)
	w.Backend("hub", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("push"), e2e.Tool("pull")}, "prompts": []e2e.Obj{{"name": "greet"}}})
	w.Backend("off", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("run")}}, e2e.Obj{"disabled": true})
	w.Profiles = e2e.Obj{
		"typo": e2e.Obj{"servers": []string{"hub"}, "tools": e2e.Obj{"allow": []string{"psh", "hub/pull*"}}, "prompts": e2e.Obj{"allow": []string{"hub/gret"}}},
		"deny": e2e.Obj{"servers": []string{"hub"}, "tools": e2e.Obj{"deny": []string{"pul", "*delete*"}}},
		"open": e2e.Obj{"tools": e2e.Obj{"allow": []string{"run", "pull"}}},
		"bare": e2e.Obj{"servers": []string{"hubs*"}, "tools": e2e.Obj{"allow": []string{"psh"}}}, // only its servers are reported
		"fine": e2e.Obj{"servers": []string{"hub"}, "tools": e2e.Obj{"allow": []string{"p*"}}, "resources": e2e.Obj{"allow": []string{"file:///not/listed/*"}}},
	}
	vain := func() (told []string) {
		out := w.Run("validate")
		require.Zero(t, out.Code, out.Stderr)
		for line := range strings.Lines(out.Stderr) {
			if strings.Contains(line, "matches no tool") || strings.Contains(line, "matches no prompt") {
				require.Regexp(t, `goblin\.yaml:\d+: warning: `, line)
				told = append(told, strings.TrimSpace(line[strings.Index(line, ": warning: ")+len(": warning: "):]))
			}
		}
		return told
	}
	require.Empty(t, vain(), "the servers' lists are unknown")
	w.Join().WaitListed("tools", "hub_push", true)
	want := []string{
		`"tools" in profile "deny": "pul" matches no tool of its servers; did you mean "pull"?`,
		`"prompts" in profile "typo": "hub/gret" matches no prompt of its servers; did you mean "hub/greet"?`,
		`"tools" in profile "typo": "psh" matches no tool of its servers; did you mean "push"?`,
	}
	require.ElementsMatch(t, want, vain())
	for _, line := range want {
		require.Contains(t, w.Succeeds("status"), line)
	}
	w.Succeeds("stop")
	require.ElementsMatch(t, []string{want[0], want[2]}, vain(), "tools are cached")
}
