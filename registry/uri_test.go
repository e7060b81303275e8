package registry

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNorm(t *testing.T) {
	for in, want := range map[string]string{
		"mcp://s/file:///a/b":               "mcp://s/file:///a/b",
		" \x00mcp://s/x\t\r\n ":             "mcp://s/x",
		"mcp://s/a\tb\nc":                   "mcp://s/abc",
		"mcp://s/a b?c d#e f":               "mcp://s/a%20b?c%20d#e%20f",
		"mcp://s/é日?ü#ß":                    "mcp://s/%C3%A9%E6%97%A5?%C3%BC#%C3%9F",
		"mcp://s/\"<>`{}?\"<>`{}#\"<>`{}":   "mcp://s/%22%3C%3E%60%7B%7D?%22%3C%3E`{}#%22%3C%3E%60{}",
		"mcp://s/%|\\^[]'":                  "mcp://s/%|\\^[]'",
		"mcp://s/a/./b":                     "mcp://s/a/b",
		"mcp://s/a/../b":                    "mcp://s/b",
		"mcp://s/a/%2E%2e/b/%2e":            "mcp://s/b/",
		"mcp://s/a/.%2e/b":                  "mcp://s/b",
		"mcp://s/a/%2e./b":                  "mcp://s/b",
		"mcp://s/../../b":                   "mcp://s/b",
		"mcp://s/a/..":                      "mcp://s/",
		"mcp://s/a/.":                       "mcp://s/a/",
		"mcp://s/a/.../b":                   "mcp://s/a/.../b",
		"mcp://s/a//../b":                   "mcp://s/a/b",
		"mcp://s/a?x/../y#z/../w?":          "mcp://s/a?x/../y#z/../w?",
		"mcp://s/a#b#c?d":                   "mcp://s/a#b#c?d",
		"mcp://s/file:///x/../../../../etc": "mcp://s/etc",
		"mcp://S/A":                         "mcp://S/A",
		"mcp://s":                           "mcp://s",
		"mcp://s?q r":                       "mcp://s?q%20r",
		"mcp://s/\x7f":                      "mcp://s/%7F",
		"":                                  "",
	} {
		if got := Norm(in); got != want {
			t.Errorf("Norm(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestNormIsStableOnManyURIs(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 10_000 {
		checkNorm(t, "mcp://s/"+randomURI(rng))
	}
}

func checkNorm(t *testing.T, uri string) {
	t.Helper()
	key := Norm(uri)
	require.Equal(t, key, Norm(key), "%q", uri)
	if clean(uri) {
		require.Equal(t, uri, key)
	}
	if strings.HasPrefix(uri, "mcp://s/") {
		require.True(t, strings.HasPrefix(key, "mcp://s/"), "%q became %q", uri, key)
		for i := range len(key) {
			require.True(t, key[i] > ' ' && key[i] < 0x7f, "%q", key)
		}
	}
}

func FuzzNorm(f *testing.F) {
	for _, s := range []string{"mcp://s/a/../b?c#d", " mcp://s/%2e%2E/\té", "mcp://", "://", "x:/.", "mcp://s#/..?"} {
		f.Add(s)
	}
	f.Fuzz(checkNorm)
}

func FuzzCursor(f *testing.F) {
	r := catalog(f, Options{PageSize: 1}, "s tool a\ns tool b\ns tool c")
	p, _ := r.Load().Page(Tool, "")
	f.Add(p.Next)
	f.Add("AAAA")
	f.Fuzz(func(t *testing.T, cursor string) {
		p, err := r.Load().Page(Tool, cursor)
		if err != nil {
			require.ErrorIs(t, err, ErrBadCursor)
			return
		}
		if cursor != "" {
			listed, server, err := openCursor(Tool, cursor)
			require.NoError(t, err)
			require.Equal(t, cursor, newCursor(Tool, &Entry{Listed: listed, Server: server}))
		}
		_ = p
	})
}

func FuzzSetList(f *testing.F) {
	f.Add([]byte(`{"uri":"file:///a","name":"x"}`), []byte(`{"uri":"file:///{+p}","uriTemplate":"file:///{+p}","name":"y"}`))
	f.Add([]byte(`{"name":"a.b","_meta":{"ui":{"resourceUri":"ui://x"}}}`), []byte(" {\n\"name\":\"a_b\"}"))
	f.Add([]byte(`{"uriTemplate":"file:///{bad"}`), []byte(`[]`))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		for _, flat := range []bool{false, true} {
			r := New(Options{Servers: []string{"s", "s_t", "u"}, Flat: flat, PageSize: 1})
			for k := range Kind(Kinds) {
				before := string(a) + string(b)
				r.SetList("s", k, [][]byte{a, b})
				r.SetList("u", k, [][]byte{b})
				require.Equal(t, before, string(a)+string(b), "the caller's bytes are untouched")
				require.Len(t, names(k, pages(t, r.Load(), k)), r.Load().Count(k))
			}
			for e := range r.Load().All(Tool) {
				target, err := r.ResolveTool(e.Listed)
				require.NoError(t, err)
				require.Same(t, e, target.Entry)
			}
			for e := range r.Load().All(Prompt) {
				target, err := r.ResolvePrompt(e.Listed)
				require.NoError(t, err)
				require.Same(t, e, target.Entry)
			}
			for e := range r.Load().All(Resource) {
				target, err := r.ResolveResource(e.Listed)
				require.NoError(t, err)
				require.Same(t, e, target.Entry)
			}
		}
	})
}

func FuzzResolve(f *testing.F) {
	r := catalog(f, Options{}, fleet)
	r.Learn("empty", "x:é")
	for _, s := range []string{"mcp://s", "mcp://odd/file:///%C3%BC", "dbsrv_mcp_database_a_b", "filesystem__", "%", "mcp://dbsrv/%"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		for _, resolve := range []func(string) (Target, error){r.ResolveResource, r.ResolveTemplate, r.ResolveTool, r.ResolvePrompt} {
			target, err := resolve(name)
			require.Equal(t, err == nil, target.Server != "" && target.Name != "")
		}
	})
}
