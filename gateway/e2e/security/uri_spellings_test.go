//go:build e2e

package security

import (
	"net/url"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

func TestNoSpellingOfADeniedURIReachesItsServer(t *testing.T) {
	t.Parallel()
	filters := map[string]e2e.Obj{
		"denied":                   {"deny": []string{"file:///secret/*"}},
		"denied in another way":    {"deny": []string{"x:*", "FILE:/%73ecret//*"}},
		"not allowed":              {"allow": []string{"file:///pub/*", "{+any}"}},
		"allowed and denied":       {"allow": []string{"file:*", "{+any}"}, "deny": []string{"file://localhost/secret/*"}},
		"not allowed, differently": {"allow": []string{"file:/pub/*", "{+any}"}},
	}
	for name, resources := range filters {
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
					if !strings.ContainsFunc(spelling, func(r rune) bool { return r <= ' ' || r > '~' }) { // it is in a header
						require.Equal(t, "RESOURCE_NOT_FOUND", modern.Fault("resources/read", e2e.Obj{"uri": spelling}).Kind(), "%q", spelling)
					}
					watched = append(watched, spelling)
				}
			}
			script2 := `local out = 0 for _, uri in ipairs(` + luaList(watched) + `) do if pcall(resources.read, uri) then out = out + 1 end end return out`
			require.Equal(t, "0", c.LuaText(script2))
			id, honoured := modern.ListenTo(e2e.Obj{"resourceSubscriptions": append(watched, e2e.In("fs", "file:///pub/a"))})
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

			// Updates of it are not delivered either.
			modern.Forget()
			c.Ok("resources/subscribe", e2e.Obj{"uri": e2e.In("fs", "file:///pub/dir")})
			for _, uri := range []string{"file:///pub/dir/../../secret/k", "file:///pub/dir/%2e%2e/%2e%2e/secret/k", `file:///pub/dir/..\..\secret\k`, "file:///pub/dir/ok"} {
				b.Updated(uri)
			}
			require.Equal(t, []string{e2e.In("fs", "file:///pub/dir/ok")}, c.WaitUpdates(1))
			modern.StopListening(id)
		})
	}
}

// openers are ways in which servers find the file of a URI.
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

// unescaped resolves every valid escape, regardless of invalid ones.
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

// opens returns the files that a URI opens in any of these ways.
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

func luaList(texts []string) string {
	var out []string
	for _, text := range texts {
		quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\r", `\r`, "\x00", `\0`).Replace(text)
		out = append(out, `"`+quoted+`"`)
	}
	return "{" + strings.Join(out, ",") + "}"
}
