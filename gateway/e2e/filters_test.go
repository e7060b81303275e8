package e2e

import (
	"net/url"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// openers are ways in which servers find the file that a URI means.
var openers = map[string]func(uri string) string{
	"as it is":        func(uri string) string { return strings.TrimPrefix(uri, "file://") },
	"decoded":         func(uri string) string { return unescaped(strings.TrimPrefix(uri, "file://")) },
	"decoded twice":   func(uri string) string { return unescaped(unescaped(strings.TrimPrefix(uri, "file://"))) },
	"decoded first":   func(uri string) string { return parsed(unescaped(uri)) },
	"cut everywhere":  func(uri string) string { return strings.ReplaceAll(uri, "file://", "") },
	"parsed":          parsed,
	"without a query": func(uri string) string { return regexp.MustCompile(`[?#;].*`).ReplaceAllString(parsed(uri), "") },
	"browser": func(uri string) string {
		uri = strings.NewReplacer("\t", "", "\r", "", "\n", "", `\`, "/").Replace(strings.Trim(uri, " \x00"))
		uri = regexp.MustCompile(`^(?i)file:/*(localhost/)?`).ReplaceAllString(uri, "/")
		uri = regexp.MustCompile(`[?#].*`).ReplaceAllString(uri, "")
		return unescaped(uri)
	},
}

// unescaped resolves every escape, whatever the others are.
func unescaped(s string) string {
	return regexp.MustCompile(`%[0-9A-Fa-f]{2}`).ReplaceAllStringFunc(s, func(e string) string {
		plain, _ := url.PathUnescape(e)
		return plain
	})
}

func parsed(uri string) string {
	u, err := url.Parse(uri)
	if err != nil {
		return ""
	}
	return u.Path + u.Opaque
}

// opens are the files that a URI opens, by one way or another.
func opens(uri string) (files []string) {
	for _, open := range openers {
		name := open(uri)
		files = append(files, path.Clean("/"+name), filepath.Clean("/"+strings.ReplaceAll(name, `\`, "/")))
	}
	return files
}

// hidden are spellings of file:///secret/k.
var hidden = []string{
	"file:///secret/k", "file:/secret/k", "file:secret/k", "file://localhost/secret/k", "file://LocalHost/secret/k", "FILE:///secret/k", "File:/secret/k", "file:////secret/k", "file://x/secret/k",
	"file:///%73ecret/k", "file:///%2573ecret/k", "file:///%252573ecret/k", "file:///%73ecret/%zz", "file:///%zz/../%73ecret/k", "file:///%73ecret/k%", "file:///%u0073ecret/k",
	"fi\tle:///secret/k", "file:///sec\nret/k", "file:///secret/k\r", "file:///secret/k\x00.txt", "file:///secret/k%00", "file:///se%0acret/k", "file:///secret/\x7fk", " file:///secret/k ", "\x01file:///secret/k",
	`file:///secret\k`, `file:\\\secret\k`, "file:///secret%5ck", `file:///pub\..\secret\k`, "file:///pub%5c..%5csecret%5ck", "file:%5c%5c%5csecret/k",
	"file:///secret/k?v=1", "file:///secret/k#top", "file:///secret/k;v=1", "file:///secret;v=1/k", "file:///secret/k%3fv", "file:///secret/k%23v", "file:///pub/?/../../secret/k", "file:///pub/#/../../secret/k",
	"file:///pub/../secret/k", "file:///pub/%2e%2e/secret/k", "file:///pub/.%2E/secret/k", "file:///pub/..%2fsecret/k", "file:///pub/%252e%252e%252fsecret/k", "file:///./secret/k", "file:///%2e/secret/k",
	"file:///pub/x/../../secret/k", "file:///../secret/k", "file:///pub/..;/secret/k", "file:///pub//../secret/k", "file:///secret//k", "file:///secret/./k", "file:///secret/k/", "file:///secret/k.", "file:///secret/k%20",
	"file:///sefile://cret/k", "file:///pub/.file://./secret/k", "file:///sefile:%2F/cret/k",
	"/secret/k", "../../secret/k", "file%3A///secret/k", "file:///%c0%ae%c0%ae/secret/k",
	"file://localhost/pub\\..%2f%2573ecret%5ck?a#b", "FILE:/pub/%2e%2E/secret%2Fk%23",
}

// reader is a server that reads whatever it is asked for.
func reader() obj {
	return obj{
		"resources": []obj{
			resource("file:///pub/a"), resource("file:///pub/b%20c"), resource("file:///pub/../secret/k"), resource("file:///%73ecret/k"), resource("FILE:///secret/k"), resource(`file:///secret\k`),
		},
		"templates": []obj{template("file:///pub/{name}"), template("{+any}"), template("file:///pub/../secret/{name}"), template("file:///%73ecret/{name}"), template("FILE:/secret/{name}")},
		"tools":     []obj{tool("links")},
	}
}

func TestNoSpellingOfADeniedURIReachesItsServer(t *testing.T) {
	t.Parallel()
	for name, resources := range map[string]obj{
		"denied":                   {"deny": []string{"file:///secret/*"}},
		"denied in another way":    {"deny": []string{"x:*", "FILE:/%73ecret//*"}},
		"not allowed":              {"allow": []string{"file:///pub/*", "{+any}"}},
		"allowed and denied":       {"allow": []string{"file:*", "{+any}"}, "deny": []string{"file://localhost/secret/*"}},
		"not allowed, differently": {"allow": []string{"file:/pub/*", "{+any}"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := withMeta(t)
			script := reader()
			var links []obj
			for _, uri := range hidden {
				links = append(links, obj{"type": "resource_link", "uri": uri, "name": "l"})
			}
			script["calls"] = obj{"links": obj{"content": links}}
			b := w.backend("fs", script, obj{"resources": resources, "open_resources": true})
			s := w.serve()
			c, modern := s.client(true), s.rawClient().stateless()
			modern.web.stateless = true
			for _, kind := range []string{"resources", "templates"} {
				for _, listed := range c.names(kind) {
					require.NotContains(t, strings.ToLower(unescaped(listed)), "secret")
				}
			}
			require.ElementsMatch(t, []string{in("fs", "file:///pub/a"), in("fs", "file:///pub/b%20c")}, c.names("resources"))
			require.Contains(t, c.names("templates"), in("fs", "{+any}"))
			require.Contains(t, string(c.ok("tools/call", obj{"name": "fs_links"})), "%252573ecret", "links are passed on")
			var watched []string
			for _, uri := range hidden {
				for _, spelling := range []string{in("fs", uri), uri} {
					for _, method := range []string{"resources/read", "resources/subscribe"} {
						e := c.fault(method, obj{"uri": spelling})
						require.Equal(t, "RESOURCE_NOT_FOUND", e.kind(), "%s %q", method, spelling)
					}
					ref := obj{"ref": obj{"type": "ref/resource", "uri": spelling}, "argument": obj{"name": "a", "value": ""}}
					require.Equal(t, "RESOURCE_NOT_FOUND", c.fault("completion/complete", ref).kind(), "%q", spelling)
					require.NotNil(t, modern.request("completion/complete", ref).Error)
					if !strings.ContainsFunc(spelling, func(r rune) bool { return r <= ' ' || r > '~' }) { // it stands in a header
						require.Equal(t, "RESOURCE_NOT_FOUND", modern.fault("resources/read", obj{"uri": spelling}).kind(), "%q", spelling)
					}
					watched = append(watched, spelling)
				}
			}
			script2 := `local out = 0 for _, uri in ipairs(` + luaList(watched) + `) do if pcall(resources.read, uri) then out = out + 1 end end return out`
			require.Equal(t, "0", c.luaText(script2))
			id, honoured := modern.hears(obj{"resourceSubscriptions": append(watched, in("fs", "file:///pub/a"))})
			require.JSONEq(t, string(marshal([]string{in("fs", "file:///pub/a")})), string(at(honoured, "resourceSubscriptions")))
			for _, uri := range []string{in("fs", "file:///pub/../secret/k"), "file:/secret/k", in("fs", "file:///%73ecret/k")} {
				require.Equal(t, exitNotFound, w.run("read", uri).code)
			}
			for _, uri := range []string{"file:///pub/a", "file:///pub/b%20c", "file:///pub/new", "file:///pub/b%20d", "file:///pub/x/y.txt"} {
				require.NotEmpty(t, c.readText(in("fs", uri)))
			}
			require.Equal(t, []string{"file:///pub/a"}, b.uris("resources/subscribe"))
			require.Zero(t, b.count("completion/complete"))
			reads := b.uris("resources/read")
			require.Len(t, reads, 5)
			for _, uri := range reads {
				for _, file := range opens(uri) {
					require.True(t, strings.HasPrefix(file, "/pub/"), "%q opens %s", uri, file)
				}
			}

			// Neither are updates of it delivered.
			modern.forget()
			c.ok("resources/subscribe", obj{"uri": in("fs", "file:///pub/dir")})
			for _, uri := range []string{"file:///pub/dir/../../secret/k", "file:///pub/dir/%2e%2e/%2e%2e/secret/k", `file:///pub/dir/..\..\secret\k`, "file:///pub/dir/ok"} {
				b.updated(uri)
			}
			require.Equal(t, []string{in("fs", "file:///pub/dir/ok")}, c.waitUpdates(1))
			modern.stops(id)
		})
	}
}

func luaList(texts []string) string {
	var out []string
	for _, text := range texts {
		quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\r", `\r`, "\x00", `\0`).Replace(text)
		out = append(out, `"`+quoted+`"`)
	}
	return "{" + strings.Join(out, ",") + "}"
}

// The other way round: what openers make of URIs that are no spelling of a denied
// file is let through, whatever it looks like.
func TestWhatIsNotDeniedIsReadAsItIsWritten(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backend("fs", reader(), obj{"resources": obj{"deny": []string{"file:///secret/*"}}})
	free := w.backend("free", obj{"resources": []obj{resource("x:1")}}, obj{"open_resources": true})
	c := w.standalone()
	fine := []string{
		"file:///secrets", "file:///pub/secret/k", "file:///pub/100%25", "file:///pub/a%23b", "file:///pub/b%20c?x=%2F..", "file:///pub/%C3%BC", "file:///Secret/k",
		"db://secret/k?limit=1&x=y#z", "https://example.com/secret/k", "urn:isbn:0-1", "data:text/plain;base64,AA==", "x:a;b;c", "mcp://q/file:///pub/x",
	}
	for _, uri := range fine {
		require.NotEmpty(t, c.readText(in("fs", uri)), uri)
	}
	require.Equal(t, fine, b.uris("resources/read"))
	for _, uri := range []string{"file:///%zz", "file:///%73ecret/k%"} {
		require.NotEmpty(t, c.readText(in("free", uri)), "without filters, URIs are the server's business")
	}
	require.Len(t, free.uris("resources/read"), 2)
}

// listsOnce is a server that lists once: later processes refuse to.
func listsOnce() obj {
	on := obj{
		"tools/call ask": actions(do("request", obj{"method": "elicitation/create", "params": form}), do("answers")),
	}
	for _, kind := range []string{"tools", "prompts", "resources", "templates"} {
		on[listMethod(kind)] = actions(do("error", obj{"after": 1, "error": obj{"code": -32603, "message": "not again"}}))
	}
	return obj{
		"tools":     []obj{tool("keep"), tool("danger"), tool("ask")},
		"prompts":   []obj{prompt("keep"), prompt("danger")},
		"resources": []obj{resource("file:///pub/a"), resource("file:///secret/k")},
		"templates": []obj{template("file:///pub/{name}"), template("file:///secret/{name}")},
		"on":        on,
	}
}

// denials is what an edit forbids.
var denials = obj{
	"tools": obj{"deny": []string{"danger", "ask"}}, "prompts": obj{"deny": []string{"danger"}}, "resources": obj{"deny": []string{"file:/secret/*"}},
}

func (b *backend) configure(with obj) {
	for k, v := range with {
		b.conf[k] = v
	}
}

func TestADenialOfAnEditHoldsAtOnce(t *testing.T) {
	t.Parallel()
	for name, front := range map[string]func(w *world) (c, modern *client){
		"HTTP": func(w *world) (*client, *client) {
			s := w.serve()
			modern := s.rawClient().stateless()
			modern.web.stateless = true
			return s.client(true), modern
		},
		"socket": func(w *world) (*client, *client) { return w.bridged(), w.pipe("stdio").stateless() },
	} {
		for isolation, more := range map[string]obj{"shared": {}, "allow": {"tools": obj{"allow": []string{"keep"}}, "prompts": obj{"allow": []string{"k*"}}, "resources": obj{"allow": []string{"file:///pub/*"}}}} {
			t.Run(name+" "+isolation, func(t *testing.T) {
				t.Parallel()
				w := withMeta(t)
				w.gateway["startup_wait"] = "1s"
				b := w.backend("b", listsOnce())
				c, modern := front(w)
				modern.caps = obj{"elicitation": obj{}}
				c.waitListed("tools", "b_danger", true)
				secret, pub := in("b", "file:///secret/k"), in("b", "file:///pub/a")
				for _, uri := range []string{secret, pub} {
					c.ok("resources/subscribe", obj{"uri": uri})
				}
				c.callText("b_danger", obj{})
				id, _ := modern.hears(obj{"toolsListChanged": true, "resourceSubscriptions": []string{secret, pub}})
				state, keys := demanded(t, modern.request("tools/call", obj{"name": "b_ask"}))

				w.edit(func() { b.configure(denials); b.configure(more) })
				c.waitListed("tools", "b_danger", false)
				modern.noted("notifications/tools/list_changed", nil)
				calls := b.count("tools/call")
				require.Equal(t, []string{"b_keep"}, own(c.names("tools")))
				require.Equal(t, []string{"b/keep"}, c.names("prompts"))
				require.Equal(t, []string{pub}, own(c.names("resources")))
				require.Equal(t, []string{in("b", "file:///pub/{name}")}, c.names("templates"))
				for _, c := range []*client{c, modern} {
					for _, name := range []string{"b_danger", "b/danger", "danger"} {
						require.Equal(t, "TOOL_NOT_FOUND", c.fault("tools/call", obj{"name": name}).kind())
					}
					for _, name := range []string{"b/danger", "b_danger", "danger"} {
						require.Equal(t, "PROMPT_NOT_FOUND", c.fault("prompts/get", obj{"name": name}).kind())
						require.NotNil(t, c.request("completion/complete", obj{"ref": obj{"type": "ref/prompt", "name": name}, "argument": obj{"name": "a", "value": ""}}).Error)
					}
					for _, uri := range []string{secret, "file:///secret/k", "b_file_secret_k", in("b", "file:///%73ecret/k"), in("b", "file:///secret/other")} {
						require.Equal(t, "RESOURCE_NOT_FOUND", c.fault("resources/read", obj{"uri": uri}).kind(), uri)
						require.NotNil(t, c.request("completion/complete", obj{"ref": obj{"type": "ref/resource", "uri": uri}, "argument": obj{"name": "a", "value": ""}}).Error)
					}
					require.Contains(t, string(c.lua(`return b.danger{}`)), `"isError":true`)
					require.Contains(t, string(c.lua(`return resources.read("`+secret+`")`)), `"isError":true`)
					for tool, args := range map[string]obj{
						"search_tools": {"query": "danger"}, "catalog_tools": {}, "search_resources": {"query": "secret k"}, "catalog_resources": {}, "catalog_resource_templates": {}, "search_prompts": {"query": "danger"},
					} {
						text := string(at(c.ok("tools/call", obj{"name": tool, "arguments": args}), "content"))
						require.False(t, strings.Contains(text, "b_danger") || strings.Contains(text, "b/danger") || strings.Contains(text, "file:///secret"), "%s: %s", tool, text)
					}
				}
				require.Equal(t, "RESOURCE_NOT_FOUND", c.fault("resources/subscribe", obj{"uri": secret}).kind())
				retry := obj{"name": "b_ask", "requestState": state, "inputResponses": obj{keys["elicitation/create"]: obj{"action": "accept", "content": obj{}}}}
				require.Equal(t, "TOOL_NOT_FOUND", modern.fault("tools/call", retry).kind(), "a call that waits is not resumed")
				require.Equal(t, calls, b.count("tools/call"))

				// What the config allows goes on, with a process that lists nothing.
				b.waitStarts(2)
				eventually(t, "the new process", func() bool { return c.request("tools/call", obj{"name": "b_keep"}).Error == nil })
				require.Equal(t, "TOOL_NOT_FOUND", c.fault("tools/call", obj{"name": "b_danger"}).kind())
				second := b.waitStarts(2)
				b.wait("the subscription of the new process", func() bool {
					return slices.ContainsFunc(b.pick("resources/subscribe"), func(e told) bool { return e.proc == second && strings.Contains(string(e.Msg), "pub/a") })
				})
				c.waitUpdates(1) // it may have been missed meanwhile
				c.forget()
				modern.forget()
				for _, uri := range []string{"file:///secret/k", "file:///pub/a"} {
					b.doAt(second, do("notify", obj{"method": "notifications/resources/updated", "params": obj{"uri": uri}}))
				}
				require.Equal(t, []string{pub}, c.waitUpdates(1))
				require.Equal(t, []string{pub}, modern.waitUpdates(1))
				require.False(t, slices.ContainsFunc(b.received("resources/subscribe"), func(e told) bool {
					return e.proc == second && strings.Contains(string(e.Msg), "secret")
				}))
				require.Empty(t, b.received("prompts/get"))
				modern.stops(id)

				// Allowed again, it is there as soon as the server lists, and watched.
				w.edit(func() {
					for k := range denials {
						delete(b.conf, k)
					}
				})
				third := b.waitStarts(3)
				for _, kind := range []string{"tools", "prompts", "resources", "templates"} {
					b.doAt(third, do("on", obj{"key": listMethod(kind)}))
				}
				for _, kind := range []string{"tools", "prompts", "resources"} {
					b.doAt(third, do("notify", obj{"method": "notifications/" + kind + "/list_changed"}))
				}
				c.waitListed("tools", "b_danger", true)
				c.waitListed("resources", secret, true)
				c.callText("b_danger", obj{})
				c.readText(secret)
				b.wait("the subscription that rested", func() bool {
					return slices.ContainsFunc(b.pick("resources/subscribe"), func(e told) bool { return e.proc == third && strings.Contains(string(e.Msg), "secret") })
				})
				c.waitUpdates(2)
			})
		}
	}
}

// own leaves out Goblin's own.
func own(names []string) []string {
	return slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, "b_") && !strings.HasPrefix(name, "mcp://b/") })
}

func TestADenialOfAnEditEndsNoCallUnderWay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	script := listsOnce()
	script["on"].(obj)["tools/call danger"] = actions(do("wait", obj{"name": "go"}), do("text", obj{"text": "done"}))
	b := w.backend("b", script)
	c := w.bridged()
	c.waitListed("tools", "b_danger", true)
	call := c.begin("tools/call", obj{"name": "b_danger"})
	first := b.waitEvent("wait", "go").proc
	w.edit(func() { b.configure(denials) })
	c.waitListed("tools", "b_danger", false)
	require.Equal(t, "TOOL_NOT_FOUND", c.fault("tools/call", obj{"name": "b_danger"}).kind())
	b.doAt(first, do("release", obj{"name": "go"}))
	require.Equal(t, "done", str(c.end(call).Result, "content", 0, "text"))
}

func TestServersThatAnEditTakesAwayAreNotCalled(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(w *world, b *backend){
		"disabled": func(_ *world, b *backend) { b.conf["disabled"] = true },
		"removed":  func(w *world, b *backend) { w.drop(b) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.backend("stays", counting())
			b := w.backend("b", listsOnce())
			c := w.bridged()
			c.waitListed("tools", "b_danger", true)
			c.ok("resources/subscribe", obj{"uri": in("b", "file:///pub/a")})
			w.edit(func() { edit(w, b) })
			c.waitListed("tools", "b_danger", false)
			for method, params := range map[string]obj{
				"tools/call": {"name": "b_danger"}, "prompts/get": {"name": "b/danger"}, "resources/read": {"uri": in("b", "file:///pub/a")}, "resources/subscribe": {"uri": in("b", "file:///secret/k")},
				"completion/complete": {"ref": obj{"type": "ref/prompt", "name": "b/keep"}, "argument": obj{"name": "a", "value": ""}},
			} {
				c.fault(method, params)
			}
			b.waitGone()
			require.Zero(t, len(b.pick("tools/call"))+len(b.pick("prompts/get"))+len(b.pick("resources/read"))+len(b.pick("completion/complete")))
			require.Equal(t, 1, len(b.pick("resources/subscribe")))
			require.Equal(t, 1, b.starts())
		})
	}
}

func TestFiltersHoldWhateverTheListSays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backend("b", obj{"tools": []obj{tool("ok")}, "resources": []obj{resource("file:///pub/a")}}, denials)
	c := w.standalone()
	c.waitListed("tools", "b_ok", true)
	b.add("tools", tool("danger"))
	b.add("resources", resource("file:///pub/..%2fsecret/k"))
	b.add("resources", resource("file:///pub/%zz"))
	b.add("resources", resource("file:///pub/\x00"))
	b.add("resources", resource("file:///pub/b"))
	b.listChanged("tools")
	b.listChanged("resources")
	c.waitListed("resources", in("b", "file:///pub/b"), true)
	require.ElementsMatch(t, []string{in("b", "file:///pub/a"), in("b", "file:///pub/b")}, c.names("resources"))
	require.Equal(t, []string{"b_ok"}, c.names("tools"))
	require.Equal(t, "TOOL_NOT_FOUND", c.fault("tools/call", obj{"name": "b_danger"}).kind())
	require.Zero(t, b.count("tools/call"))
}
