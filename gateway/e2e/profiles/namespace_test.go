//go:build e2e

package profiles

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// library is a server that uses its resources' URIs everywhere it can.
func library() e2e.Obj {
	link := func(uri string) e2e.Obj { return e2e.Obj{"type": "resource_link", "uri": uri, "name": "r"} }
	inside := func(uri string) e2e.Obj {
		return e2e.Obj{"type": "resource", "resource": e2e.Obj{"uri": uri, "text": "of " + uri}}
	}
	shows := func(uri string) e2e.Obj { return e2e.Obj{"_meta": e2e.Obj{"ui": e2e.Obj{"resourceUri": uri}}} }
	gone := e2e.Actions(e2e.Do("error", e2e.Obj{"error": e2e.Obj{"code": -32002, "message": "it is gone", "data": e2e.Obj{"uri": "file:///gone"}}}))
	return e2e.Obj{
		"capabilities": e2e.Obj{
			"tools": e2e.Obj{"listChanged": true}, "prompts": e2e.Obj{"listChanged": true},
			"resources": e2e.Obj{"listChanged": true, "subscribe": true}, "completions": e2e.Obj{},
			"extensions": e2e.Obj{"io.modelcontextprotocol/skills": e2e.Obj{}},
		},
		"tools":     []e2e.Obj{e2e.Tool("show", shows("file:///a/plum")), e2e.Tool("app", shows("ui://app")), e2e.Tool("told")},
		"prompts":   []e2e.Obj{e2e.Prompt("p")},
		"resources": []e2e.Obj{e2e.Resource("file:///a/plum"), e2e.Resource("file:///a0"), e2e.Resource("file:///same/x"), e2e.Resource("file:///same:x"), e2e.Resource("file:///gone"), e2e.Resource("ui://app")},
		"templates": []e2e.Obj{e2e.Template("file:///t/{name}"), e2e.Template("ui://t/{name}")},
		"skills":    []e2e.Obj{skill("skill://pub")},
		"calls":     e2e.Obj{"show": e2e.Obj{"content": []e2e.Obj{link("file:///a/plum"), link("x:unlisted"), inside("file:///same/x"), link("ui://app"), {"type": "text", "text": "file:///a/plum"}}}},
		"gets":      e2e.Obj{"p": e2e.Obj{"messages": []e2e.Obj{{"role": "user", "content": inside("file:///a/plum")}, {"role": "user", "content": link("file:///t/1")}}}},
		"on": e2e.Obj{
			"resources/read file:///gone": gone, "resources/subscribe file:///same/x": gone,
			"tools/call told": e2e.Actions(e2e.Do("notify", e2e.Obj{"method": "notifications/vendor/saw", "params": e2e.Obj{"uri": "file:///a/plum"}}), e2e.Do("text", e2e.Obj{"text": "told"})),
		},
	}
}

// sides returns two clients of one daemon. The first has a profile with flat ids.
func sides(t *testing.T, name string) (w *e2e.World, back *e2e.Backend, flat, plain *e2e.Client) {
	w = e2e.WithMeta(t)
	back = w.Backend("lib", library())
	w.Profiles = e2e.Obj{"ids": e2e.Obj{"namespace": "flat"}, "wide": e2e.Obj{"namespace": "uri"}}
	profile, other := "ids", ""
	switch {
	case name == "default":
		w.Profiles["default"], profile, other = w.Profiles["ids"], "", "wide"
	case strings.HasPrefix(name, "rule"):
		other = "wide"
	}
	flat = ways()[name](w, profile)
	if other == "" {
		return w, back, flat, ways()[name](w, "")
	}
	if flat.Modern {
		return w, back, flat, ways()["flag, stateless"](w, other)
	}
	return w, back, flat, ways()["flag"](w, other)
}

// fronts returns the names of the fronts whose daemon can have both.
func fronts() (names []string) {
	for name := range ways() {
		if name != "flag, alone" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

var (
	listedURIs = regexp.MustCompile(`mcp://lib/([^"\\ ,;?]+)`)
	oddRuns    = regexp.MustCompile(`[^A-Za-z0-9._~-]+`)
)

// flatID returns the flat id of a URI without similar ones.
func flatID(server, uri string) string { return server + "_" + oddRuns.ReplaceAllString(uri, "_") }

// inFlat replaces the names in a client's message by those of the other namespace.
func inFlat(text string) string {
	return listedURIs.ReplaceAllStringFunc(text, func(listed string) string {
		original := strings.TrimPrefix(listed, "mcp://lib/")
		switch {
		case strings.Contains(original, "{"):
			return original
		case strings.HasPrefix(original, "file:///same"):
			return flatID("lib", original) + "~" + e2e.FlatHashSuffix(original)
		}
		return flatID("lib", original)
	})
}

// sorted returns a JSON text with the elements of arrays in a fixed order. It does the
// same with JSON inside of strings.
func sorted(t *testing.T, text string) string {
	var read func(v any) any
	read = func(v any) any {
		switch v := v.(type) {
		case string:
			var inside any
			if strings.HasPrefix(strings.TrimPrefix(v, "["), "{") && json.Unmarshal([]byte(v), &inside) == nil {
				return read(inside)
			}
		case map[string]any:
			for k := range v {
				v[k] = read(v[k])
			}
		case []any:
			for i := range v {
				v[i] = read(v[i])
			}
			slices.SortFunc(v, func(a, b any) int { return bytes.Compare(e2e.Marshal(a), e2e.Marshal(b)) })
		}
		return v
	}
	var v any
	require.NoError(t, json.Unmarshal([]byte(text), &v), text)
	return string(e2e.Marshal(read(v)))
}

// plums are the forms of one resource's address.
var plums = []string{"file:///a/plum", "mcp://lib/file:///a/plum", "MCP://lib/file:///a/plum", "lib_file_a_plum", "lib_file____a_plum"}

func TestAProfileListsInItsNamespace(t *testing.T) {
	t.Parallel()
	for _, name := range fronts() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, flat, plain := sides(t, name)
			for _, c := range []*e2e.Client{flat, plain} {
				c.WaitListed("tools", "lib_show", true)
				c.Ok("skills/list", e2e.Obj{})
				require.Contains(t, c.Names("tools"), "search_skills")
			}
			require.Equal(t, e2e.Sorted([]string{
				"lib_file_a0", "lib_file_a_plum", "lib_file_gone", "lib_file_same_x~" + e2e.FlatHashSuffix("file:///same:x"), "lib_file_same_x~" + e2e.FlatHashSuffix("file:///same/x"), "ui://lib/app",
			}), flat.Names("resources"))
			require.Equal(t, []string{"file:///t/{name}", "ui://lib/t/{name}"}, flat.Names("templates"))
			require.Contains(t, plain.Names("resources"), "mcp://lib/file:///a/plum")

			// Both clients get the same message in their own namespace, for any form of
			// address.
			same := func(method string, params e2e.Obj) {
				t.Helper()
				theirs, mine := plain.Request(method, params), flat.Request(method, params)
				want, got := string(theirs.Result)+string(theirs.Error), string(mine.Result)+string(mine.Error)
				require.Equal(t, sorted(t, inFlat(want)), sorted(t, got), "%s %s", method, e2e.Marshal(params))
				require.NotContains(t, got, "mcp://lib/file", "%s %s", method, e2e.Marshal(params))
			}
			own := func(tool string, args e2e.Obj) { same("tools/call", e2e.Obj{"name": tool, "arguments": args}) }
			for _, kind := range []string{"tools", "prompts", "resources", "templates"} {
				same(e2e.ListMethod(kind), e2e.Obj{})
			}
			same("skills/list", e2e.Obj{})
			same("tools/call", e2e.Obj{"name": "lib_show", "arguments": e2e.Obj{}})
			same("prompts/get", e2e.Obj{"name": "p"})
			for _, uri := range plums {
				if !strings.HasPrefix(strings.ToLower(uri), "mcp") { // which an answer may repeat from the request
					own("describe_resource", e2e.Obj{"uri": uri})
				}
				same("resources/read", e2e.Obj{"uri": uri})
				require.Equal(t, "lib_file_a_plum", e2e.Str(flat.Ok("resources/read", e2e.Obj{"uri": uri}), "contents", 0, "uri"), uri)
				require.Equal(t, "mcp://lib/file:///a/plum", e2e.Str(plain.Ok("resources/read", e2e.Obj{"uri": uri}), "contents", 0, "uri"), uri)
			}
			for _, uri := range []string{"file:///t/pear", "mcp://lib/file:///t/pear", "lib_file_t_pear"} {
				require.Equal(t, "lib_file_t_pear", e2e.Str(flat.Ok("resources/read", e2e.Obj{"uri": uri}), "contents", 0, "uri"), uri)
				require.Equal(t, "mcp://lib/file:///t/pear", e2e.Str(plain.Ok("resources/read", e2e.Obj{"uri": uri}), "contents", 0, "uri"), uri)
			}
			same("resources/read", e2e.Obj{"uri": "x:unlisted"}) // a link led there
			same("resources/read", e2e.Obj{"uri": "ui://lib/app"})
			same("resources/read", e2e.Obj{"uri": "file:///gone"})
			require.Equal(t, "lib_file_gone", e2e.Str(flat.Fault("resources/read", e2e.Obj{"uri": "file:///gone"}).Data, "uri"))
			for _, ref := range []string{"file:///t/{name}", "mcp://lib/file:///t/{name}"} {
				same("completion/complete", e2e.Obj{"ref": e2e.Obj{"type": "ref/resource", "uri": ref}, "argument": e2e.Obj{"name": "name", "value": "p"}})
			}
			own("search_resources", e2e.Obj{"query": "plum"})
			own("search_resources", e2e.Obj{"query": ""})
			own("describe_resource", e2e.Obj{"uri": "file:///t/{name}"})
			own("describe_resource", e2e.Obj{"uri": "file:///a/plumm"})
			own("describe_tool", e2e.Obj{"name": "lib_show"})
			own("catalog_resources", e2e.Obj{})
			own("catalog_resources", e2e.Obj{"serverId": "lib", "mimeType": "*/*"})
			own("catalog_resource_templates", e2e.Obj{})
			own("search_skills", e2e.Obj{"query": "weigh"})
			for _, script := range []string{`return resources.list{}`, `return search("plum")`, `return resources.read("file:///a/plum")`, `return resources.read("lib_file_a_plum")`, `return lib.show{}`} {
				own("execute_lua", e2e.Obj{"script": script})
			}
			require.Contains(t, flat.CallText("search_resources", e2e.Obj{"query": "plum"}), `"lib_file_a_plum"`)
			require.Contains(t, flat.ReadText("goblin://servers"), `"lib"`)
			flat.Ok("tools/call", e2e.Obj{"name": "lib_told", "arguments": e2e.Obj{}})
			require.Equal(t, "lib_file_a_plum", e2e.Str(flat.WaitNote("notifications/vendor/saw", nil).Params, "uri"))
			plain.Ok("tools/call", e2e.Obj{"name": "lib_told", "arguments": e2e.Obj{}})
			require.Equal(t, "mcp://lib/file:///a/plum", e2e.Str(plain.WaitNote("notifications/vendor/saw", nil).Params, "uri"))
		})
	}
}

func TestUpdatesComeInTheNamespaceOfTheProfile(t *testing.T) {
	t.Parallel()
	for _, name := range fronts() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, back, flat, plain := sides(t, name)
			watch := func(c *e2e.Client, uris ...string) {
				c.WaitListed("tools", "lib_show", true)
				if c.Modern {
					_, honoured := c.ListenTo(e2e.Obj{"resourceSubscriptions": uris})
					require.JSONEq(t, string(e2e.Marshal(uris)), string(e2e.At(honoured, "resourceSubscriptions")))
					return
				}
				for _, uri := range uris {
					c.Ok("resources/subscribe", e2e.Obj{"uri": uri})
				}
			}
			watch(flat, "lib_file_a_plum", "lib_file_a0")
			watch(plain, "mcp://lib/file:///a/plum", "mcp://lib/file:///a0", "lib_file_gone")
			hear := func(c *e2e.Client, uri string) {
				t.Helper()
				c.WaitNote("notifications/resources/updated", func(p json.RawMessage) bool { return e2e.Str(p, "uri") == uri })
			}
			back.Updated("file:///a/plum")
			hear(flat, "lib_file_a_plum")
			hear(plain, "mcp://lib/file:///a/plum")
			back.Updated("file:///a0/below") // which has no listed form yet
			hear(flat, "lib_file_a0_below")
			hear(plain, "mcp://lib/file:///a0/below")
			require.Equal(t, "lib_file_a0_below", e2e.Str(flat.Ok("resources/read", e2e.Obj{"uri": "lib_file_a0_below"}), "contents", 0, "uri"))
			back.Updated("file:///gone") // clients get the form that they subscribed to
			hear(plain, "lib_file_gone")
			for _, uri := range flat.Updates() {
				require.NotContains(t, uri, "mcp://")
			}
			if flat.Modern {
				return
			}
			require.Equal(t, "lib_file_gone", e2e.Str(flat.Fault("resources/subscribe", e2e.Obj{"uri": "file:///same/x"}).Data, "uri"))
			require.Equal(t, "mcp://lib/file:///gone", e2e.Str(plain.Fault("resources/subscribe", e2e.Obj{"uri": "file:///same/x"}).Data, "uri"))
			flat.Ok("resources/unsubscribe", e2e.Obj{"uri": "mcp://lib/file:///a/plum"}) // by any form of its address
			plain.Ok("resources/unsubscribe", e2e.Obj{"uri": "lib_file_a_plum"})
			e2e.Eventually(t, "the server gets the unsubscribe", func() bool { return back.Count("resources/unsubscribe") == 1 })
		})
	}
}

func TestAnEditOfANamespaceReachesItsClients(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"flag", "URL, stateless"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, back, c, plain := sides(t, name)
			kinds := []string{"tools", "prompts", "resources", "templates"}
			for _, one := range []*e2e.Client{c, plain} {
				one.WaitListed("tools", "lib_show", true)
				for _, kind := range kinds {
					one.Names(kind)
				}
				if one.Modern {
					one.ListenTo(e2e.Obj{"toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true})
				}
				one.Settle()
				one.Forget()
			}
			for _, to := range []struct{ namespace, uri string }{{"uri", "mcp://lib/file:///a/plum"}, {"flat", "lib_file_a_plum"}, {"", "mcp://lib/file:///a/plum"}} {
				w.Edit(func() {
					ids := e2e.Obj{"servers": []string{"*"}}
					if to.namespace != "" {
						ids["namespace"] = to.namespace
					}
					w.Profiles["ids"] = ids
				})
				c.WaitNote("notifications/resources/list_changed", nil)
				c.WaitNote("notifications/tools/list_changed", nil) // one refers to a resource
				require.Contains(t, c.Names("resources"), to.uri)
				require.Equal(t, to.uri, e2e.Str(listedAs(c, "tools", "lib_show"), "_meta", "ui", "resourceUri"))
				require.Equal(t, to.uri, e2e.Str(c.Ok("resources/read", e2e.Obj{"uri": "file:///a/plum"}), "contents", 0, "uri"))
				c.Quiet()
				require.Empty(t, c.NotesOf("notifications/prompts/list_changed"))
				c.Forget()
			}
			plain.Quiet()
			require.Empty(t, plain.Notes, "other clients see the same as before")
			require.Equal(t, 1, back.Starts())
		})
	}
}

func TestANamespaceThatTheGatewayHasNotIsThatOfOneProfile(t *testing.T) {
	t.Parallel()
	w := e2e.WithMeta(t)
	w.Gateway["namespace"] = "flat"
	w.Backend("lib", library())
	w.Profiles = e2e.Obj{"uris": e2e.Obj{"namespace": "uri"}, "part": e2e.Obj{"resources": e2e.Obj{"deny": []string{"*same/*"}}}}
	uris, part, plain := ways()["flag"](w, "uris"), ways()["flag"](w, "part"), ways()["flag"](w, "")
	for _, c := range []*e2e.Client{uris, part, plain} {
		c.WaitListed("tools", "lib_show", true)
	}
	require.Contains(t, uris.Names("resources"), "mcp://lib/file:///same/x")
	require.Equal(t, []string{"mcp://lib/file:///t/{name}", "ui://lib/t/{name}"}, uris.Names("templates"))
	require.Equal(t, "mcp://lib/file:///a/plum", e2e.Str(listedAs(uris, "tools", "lib_show"), "_meta", "ui", "resourceUri"))
	require.Equal(t, "mcp://lib/file:///a/plum", e2e.Str(uris.Ok("tools/call", e2e.Obj{"name": "lib_show"}), "content", 0, "uri"))
	for _, c := range []*e2e.Client{part, plain} {
		require.Contains(t, c.Names("resources"), "lib_file_a_plum")
		require.Equal(t, "lib_file_a_plum", e2e.Str(c.Ok("tools/call", e2e.Obj{"name": "lib_show"}), "content", 0, "uri"))
	}
	// A name does not depend on the other contents of a profile.
	same := "lib_file_same_x~" + e2e.FlatHashSuffix("file:///same:x")
	require.Contains(t, plain.Names("resources"), same)
	require.Contains(t, part.Names("resources"), same)
	require.NotContains(t, part.Names("resources"), "lib_file_same_x~"+e2e.FlatHashSuffix("file:///same/x"))
	require.Equal(t, same, e2e.Str(part.Ok("resources/read", e2e.Obj{"uri": "file:///same:x"}), "contents", 0, "uri"))
}

// Its flat id is the same as before, so clients of the gateway's own namespace see no change.
func TestALinkThatChangesChangesInANamespaceWhereThatShows(t *testing.T) {
	t.Parallel()
	w := e2e.WithMeta(t)
	w.Gateway["namespace"] = "flat"
	show := func(uri string) e2e.Obj {
		return e2e.Tool("show", e2e.Obj{"_meta": e2e.Obj{"ui": e2e.Obj{"resourceUri": uri}}})
	}
	b := w.Backend("lib", e2e.Obj{"tools": []e2e.Obj{show("file:///_")}})
	w.Profiles = e2e.Obj{"uris": e2e.Obj{"namespace": "uri"}}
	c := ways()["flag"](w, "uris")
	c.WaitListed("tools", "lib_show", true)
	link := func() string { return e2e.Str(listedAs(c, "tools", "lib_show"), "_meta", "ui", "resourceUri") }
	require.Equal(t, "mcp://lib/file:///_", link())
	b.Remove("tools", "show")
	b.Add("tools", show("file:////"))
	b.ListChanged("tools")
	c.WaitNote("notifications/tools/list_changed", nil)
	require.Equal(t, "mcp://lib/file:////", link())
}

func TestCommandsAndBadConfigsOfANamespace(t *testing.T) {
	t.Parallel()
	for _, shared := range []bool{false, true} {
		w := e2e.WithMeta(t)
		w.Backend("lib", library())
		w.Profiles = e2e.Obj{"ids": e2e.Obj{"namespace": "flat"}}
		if shared {
			w.AllowDaemon = true
			ways()["flag"](w, "").Names("tools")
		}
		require.Contains(t, w.Succeeds("list", "resources"), "mcp://lib/file:///a/plum")
		listed := w.Succeeds("list", "resources", "--profile", "ids", "--json")
		require.Contains(t, listed, `"uri": "lib_file_a_plum"`)
		require.Contains(t, listed, `"originalUri": "file:///a/plum"`)
		require.NotContains(t, listed, "mcp://")
		require.Contains(t, w.Succeeds("list", "templates", "--profile", "ids"), "\nfile:///t/{name}")
		require.Contains(t, w.Succeeds("search", "plum", "--profile", "ids", "--json"), `"lib_file_a_plum"`)
		require.Contains(t, w.Succeeds("read", "mcp://lib/file:///a/plum", "--profile", "ids", "--json"), `"lib_file_a_plum"`)
		require.Contains(t, w.Succeeds("read", "lib_file_a_plum", "--json"), "mcp://lib/file:///a/plum")
		w.Succeeds("resources", "off", "mcp://lib/file:///a/plum", "--profile", "ids")
		require.Regexp(t, `(?m)^lib_file_a_plum +lib +disabled`, w.Succeeds("resources", "list", "--profile", "ids"))
		require.NotContains(t, w.Succeeds("list", "resources", "--profile", "ids"), "plum")
		w.Succeeds("resources", "on", "lib_file_a_plum", "--profile", "ids")
	}
	w := e2e.WithMeta(t)
	w.Backend("lib", library())
	w.Profiles = e2e.Obj{"ids": e2e.Obj{"namespace": "flat"}}
	out := w.Run("validate")
	require.Zero(t, out.Code)
	require.Regexp(t, `goblin\.\w+:\d+: warning: "namespace" in profile "ids": flat lists resources by ids that are not URIs; clients that validate URIs`, out.Stdout+out.Stderr)
	w = e2e.WithMeta(t)
	w.Profiles = e2e.Obj{"ids": e2e.Obj{"namespace": "flt"}}
	out = w.Run("validate")
	require.Equal(t, e2e.ExitConfig, out.Code)
	require.Contains(t, out.Stderr, `"namespace" in profile "ids" must be uri or flat, not "flt"`)
}

func TestTheScreenTellsUnderWhichNamesAProfileListsThings(t *testing.T) {
	t.Parallel()
	w := e2e.WithMeta(t)
	w.Backend("lib", library())
	w.Profiles = e2e.Obj{"ids": e2e.Obj{"namespace": "flat"}}
	p := w.Pane(150, 40)
	p.Goblin("")
	p.Shows("Servers 1")
	p.Types("4")
	p.Shows("file:///a/plum")
	p.Types("/")
	p.Types("plum")
	p.Keys("Enter")
	p.Shows("mcp://lib/file:///a/plum")
	p.Types("V")
	p.Shows("View as a profile's clients", "ids")
	p.Types("j")
	p.Keys("Enter")
	p.Shows("as seen by ids", "listed as", "lib_file_a_plum")
}
