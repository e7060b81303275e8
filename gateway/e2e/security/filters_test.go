package security

import (
	"maps"
	"net/url"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
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
func reader() e2e.Obj {
	return e2e.Obj{
		"resources": []e2e.Obj{
			e2e.Resource("file:///pub/a"), e2e.Resource("file:///pub/b%20c"), e2e.Resource("file:///pub/../secret/k"), e2e.Resource("file:///%73ecret/k"), e2e.Resource("FILE:///secret/k"), e2e.Resource(`file:///secret\k`),
		},
		"templates": []e2e.Obj{e2e.Template("file:///pub/{name}"), e2e.Template("{+any}"), e2e.Template("file:///pub/../secret/{name}"), e2e.Template("file:///%73ecret/{name}"), e2e.Template("FILE:/secret/{name}")},
		"tools":     []e2e.Obj{e2e.Tool("links")},
	}
}

func TestNoSpellingOfADeniedURIReachesItsServer(t *testing.T) {
	t.Parallel()
	filters := map[string]e2e.Obj{
		"denied":                   {"deny": []string{"file:///secret/*"}},
		"denied in another way":    {"deny": []string{"x:*", "FILE:/%73ecret//*"}},
		"not allowed":              {"allow": []string{"file:///pub/*", "{+any}"}},
		"allowed and denied":       {"allow": []string{"file:*", "{+any}"}, "deny": []string{"file://localhost/secret/*"}},
		"not allowed, differently": {"allow": []string{"file:/pub/*", "{+any}"}},
	}
	for _, name := range e2e.Variants(1, slices.Sorted(maps.Keys(filters))...) {
		resources := filters[name]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := e2e.WithMeta(t)
			script := reader()
			var links []e2e.Obj
			for _, uri := range hidden {
				links = append(links, e2e.Obj{"type": "resource_link", "uri": uri, "name": "l"})
			}
			script["calls"] = e2e.Obj{"links": e2e.Obj{"content": links}}
			b := w.Backend("fs", script, e2e.Obj{"resources": resources, "open_resources": true})
			s := w.Serve()
			c, modern := s.Client(true), s.Stateless()
			for _, kind := range []string{"resources", "templates"} {
				for _, listed := range c.Names(kind) {
					require.NotContains(t, strings.ToLower(unescaped(listed)), "secret")
				}
			}
			require.ElementsMatch(t, []string{e2e.In("fs", "file:///pub/a"), e2e.In("fs", "file:///pub/b%20c")}, c.Names("resources"))
			require.Contains(t, c.Names("templates"), e2e.In("fs", "{+any}"))
			require.Contains(t, string(c.Ok("tools/call", e2e.Obj{"name": "fs_links"})), "%252573ecret", "links are passed on")
			var watched []string
			for _, uri := range hidden {
				for _, spelling := range []string{e2e.In("fs", uri), uri} {
					for _, method := range []string{"resources/read", "resources/subscribe"} {
						e := c.Fault(method, e2e.Obj{"uri": spelling})
						require.Equal(t, "RESOURCE_NOT_FOUND", e.Kind(), "%s %q", method, spelling)
					}
					ref := e2e.Obj{"ref": e2e.Obj{"type": "ref/resource", "uri": spelling}, "argument": e2e.Obj{"name": "a", "value": ""}}
					require.Equal(t, "RESOURCE_NOT_FOUND", c.Fault("completion/complete", ref).Kind(), "%q", spelling)
					require.NotNil(t, modern.Request("completion/complete", ref).Error)
					if !strings.ContainsFunc(spelling, func(r rune) bool { return r <= ' ' || r > '~' }) { // it stands in a header
						require.Equal(t, "RESOURCE_NOT_FOUND", modern.Fault("resources/read", e2e.Obj{"uri": spelling}).Kind(), "%q", spelling)
					}
					watched = append(watched, spelling)
				}
			}
			script2 := `local out = 0 for _, uri in ipairs(` + luaList(watched) + `) do if pcall(resources.read, uri) then out = out + 1 end end return out`
			require.Equal(t, "0", c.LuaText(script2))
			id, honoured := modern.Hears(e2e.Obj{"resourceSubscriptions": append(watched, e2e.In("fs", "file:///pub/a"))})
			require.JSONEq(t, string(e2e.Marshal([]string{e2e.In("fs", "file:///pub/a")})), string(e2e.At(honoured, "resourceSubscriptions")))
			for _, uri := range []string{e2e.In("fs", "file:///pub/../secret/k"), "file:/secret/k", e2e.In("fs", "file:///%73ecret/k")} {
				require.Equal(t, e2e.ExitNotFound, w.Run("read", uri).Code)
			}
			for _, uri := range []string{"file:///pub/a", "file:///pub/b%20c", "file:///pub/new", "file:///pub/b%20d", "file:///pub/x/y.txt"} {
				require.NotEmpty(t, c.ReadText(e2e.In("fs", uri)))
			}
			require.Equal(t, []string{"file:///pub/a"}, b.Uris("resources/subscribe"))
			require.Zero(t, b.Count("completion/complete"))
			reads := b.Uris("resources/read")
			require.Len(t, reads, 5)
			for _, uri := range reads {
				for _, file := range opens(uri) {
					require.True(t, strings.HasPrefix(file, "/pub/"), "%q opens %s", uri, file)
				}
			}

			// Neither are updates of it delivered.
			modern.Forget()
			c.Ok("resources/subscribe", e2e.Obj{"uri": e2e.In("fs", "file:///pub/dir")})
			for _, uri := range []string{"file:///pub/dir/../../secret/k", "file:///pub/dir/%2e%2e/%2e%2e/secret/k", `file:///pub/dir/..\..\secret\k`, "file:///pub/dir/ok"} {
				b.Updated(uri)
			}
			require.Equal(t, []string{e2e.In("fs", "file:///pub/dir/ok")}, c.WaitUpdates(1))
			modern.Stops(id)
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
	w := e2e.NewWorld(t)
	b := w.Backend("fs", reader(), e2e.Obj{"resources": e2e.Obj{"deny": []string{"file:///secret/*"}}})
	free := w.Backend("free", e2e.Obj{"resources": []e2e.Obj{e2e.Resource("x:1")}}, e2e.Obj{"open_resources": true})
	c := w.Standalone()
	fine := []string{
		"file:///secrets", "file:///pub/secret/k", "file:///pub/100%25", "file:///pub/a%23b", "file:///pub/b%20c?x=%2F..", "file:///pub/%C3%BC", "file:///Secret/k",
		"db://secret/k?limit=1&x=y#z", "https://example.com/secret/k", "urn:isbn:0-1", "data:text/plain;base64,AA==", "x:a;b;c", "mcp://q/file:///pub/x",
	}
	for _, uri := range fine {
		require.NotEmpty(t, c.ReadText(e2e.In("fs", uri)), uri)
	}
	require.Equal(t, fine, b.Uris("resources/read"))
	for _, uri := range []string{"file:///%zz", "file:///%73ecret/k%"} {
		require.NotEmpty(t, c.ReadText(e2e.In("free", uri)), "without filters, URIs are the server's business")
	}
	require.Len(t, free.Uris("resources/read"), 2)
}

// listsOnce is a server that lists once: later processes refuse to.
func listsOnce() e2e.Obj {
	on := e2e.Obj{
		"tools/call ask": e2e.Actions(e2e.Do("request", e2e.Obj{"method": "elicitation/create", "params": e2e.Form}), e2e.Do("answers")),
	}
	for _, kind := range []string{"tools", "prompts", "resources", "templates"} {
		on[e2e.ListMethod(kind)] = e2e.Actions(e2e.Do("error", e2e.Obj{"after": 1, "error": e2e.Obj{"code": -32603, "message": "not again"}}))
	}
	return e2e.Obj{
		"tools":     []e2e.Obj{e2e.Tool("keep"), e2e.Tool("danger"), e2e.Tool("ask")},
		"prompts":   []e2e.Obj{e2e.Prompt("keep"), e2e.Prompt("danger")},
		"resources": []e2e.Obj{e2e.Resource("file:///pub/a"), e2e.Resource("file:///secret/k")},
		"templates": []e2e.Obj{e2e.Template("file:///pub/{name}"), e2e.Template("file:///secret/{name}")},
		"on":        on,
	}
}

// denials is what an edit forbids.
var denials = e2e.Obj{
	"tools": e2e.Obj{"deny": []string{"danger", "ask"}}, "prompts": e2e.Obj{"deny": []string{"danger"}}, "resources": e2e.Obj{"deny": []string{"file:/secret/*"}},
}

func configure(b *e2e.Backend, with e2e.Obj) {
	for k, v := range with {
		b.Conf[k] = v
	}
}

func TestADenialOfAnEditEndsNoCallUnderWay(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	script := listsOnce()
	script["on"].(e2e.Obj)["tools/call danger"] = e2e.Actions(e2e.Do("wait", e2e.Obj{"name": "go"}), e2e.Do("text", e2e.Obj{"text": "done"}))
	b := w.Backend("b", script)
	c := w.Join()
	c.WaitListed("tools", "b_danger", true)
	call := c.Begin("tools/call", e2e.Obj{"name": "b_danger"})
	first := b.WaitEvent("wait", "go").Proc
	w.Edit(func() { configure(b, denials) })
	c.WaitListed("tools", "b_danger", false)
	require.Equal(t, "TOOL_NOT_FOUND", c.Fault("tools/call", e2e.Obj{"name": "b_danger"}).Kind())
	b.DoAt(first, e2e.Do("release", e2e.Obj{"name": "go"}))
	require.Equal(t, "done", e2e.Str(c.End(call).Result, "content", 0, "text"))
}

func TestFiltersHoldWhateverTheListSays(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("ok")}, "resources": []e2e.Obj{e2e.Resource("file:///pub/a")}}, denials)
	c := w.Standalone()
	c.WaitListed("tools", "b_ok", true)
	b.Add("tools", e2e.Tool("danger"))
	b.Add("resources", e2e.Resource("file:///pub/..%2fsecret/k"))
	b.Add("resources", e2e.Resource("file:///pub/%zz"))
	b.Add("resources", e2e.Resource("file:///pub/\x00"))
	b.Add("resources", e2e.Resource("file:///pub/b"))
	b.ListChanged("tools")
	b.ListChanged("resources")
	c.WaitListed("resources", e2e.In("b", "file:///pub/b"), true)
	require.ElementsMatch(t, []string{e2e.In("b", "file:///pub/a"), e2e.In("b", "file:///pub/b")}, c.Names("resources"))
	require.Equal(t, []string{"b_ok"}, c.Names("tools"))
	require.Equal(t, "TOOL_NOT_FOUND", c.Fault("tools/call", e2e.Obj{"name": "b_danger"}).Kind())
	require.Zero(t, b.Count("tools/call"))
}
