package registry

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/registry/names"
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
		if got := names.NormalizeURI(in); got != want {
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
	key := names.NormalizeURI(uri)
	require.Equal(t, key, names.NormalizeURI(key), "%q", uri)
	if names.IsCleanURI(uri) {
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
				require.Len(t, entryNames(k, pages(t, r.Load(), k)), r.Load().Count(k))
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
		for _, resolve := range []func(string) (Target, error){r.ResolveResource, r.Load().ResolveTemplate, r.ResolveTool, r.ResolvePrompt} {
			target, err := resolve(name)
			require.Equal(t, err == nil, target.Server != "" && target.Name != "")
		}
	})
}

// Apps and skills keep their schemes, with the server behind them, in both modes.
func TestAppsAndSkillsKeepTheirSchemes(t *testing.T) {
	t.Parallel()
	for _, flat := range []bool{false, true} {
		r := New(Options{Servers: []string{"s", "o"}, Flat: flat})
		set(r, "s", Resource, "file:///a", "skill://git/SKILL.md", "ui://app/x.html", "ui://o/y", "ui://s/own", "ui://b/ü")
		set(r, "o", Resource, "ui://o/only", "ui://app/z")
		set(r, "s", Template, "ui://t/{id}", "file:///{p}")
		first := map[bool]string{false: "mcp://s/file:///a", true: "s_file_a"}[flat]
		require.Equal(t, []string{
			first, "skill://s/git/SKILL.md", "ui://o/app/z", "ui://o/o/only",
			"ui://s/app/x.html", "ui://s/b/ü", "ui://s/o/y", "ui://s/s/own",
		}, listed(r.Load(), Resource))
		require.Contains(t, listed(r.Load(), Template), "ui://s/t/{id}")
		for asked, want := range map[string]string{
			"ui://s/app/x.html":       "s ui://app/x.html",
			"UI://s/app/x.html":       "s ui://app/x.html",
			"mcp://s/ui://app/x.html": "s ui://app/x.html",
			"ui://app/x.html":         "s ui://app/x.html", // one server has it
			"s_ui_app_x.html":         "s ui://app/x.html",
			"ui://s/b/%C3%BC":         "s ui://b/ü",
			"mcp://s/ui://b/%C3%BC":   "s ui://b/ü",
			"ui://s/own":              "s ui://s/own", // below its own name, but not another's
			"ui://s/s/own":            "s ui://s/own",
			"ui://o/only":             "o ui://o/only",
			"ui://s/t/7":              "s ui://t/7",
			"ui://t/7":                "s ui://t/7",
			"skill://s/git/SKILL.md":  "s skill://git/SKILL.md",
			"skill://git/SKILL.md":    "s skill://git/SKILL.md",
			"ui://o/y":                "", // it is o's for good
			"ui://s/none":             "",
			"ui://x/none":             "",
			"ui://s":                  "",
		} {
			got, err := r.ResolveResource(asked)
			if want == "" {
				require.ErrorContains(t, err, ReasonNotFound, asked)
				continue
			}
			require.NoError(t, err, asked)
			require.Equal(t, want, got.Server+" "+got.Name, asked)
		}
		got, err := r.Load().ResolveTemplate("ui://s/t/{id}")
		require.NoError(t, err)
		require.Equal(t, "ui://t/{id}", got.Name)
		hit, ok := r.Load().Lists(Resource, "ui://s/app/x.html")
		require.True(t, ok)
		require.Equal(t, "ui://app/x.html", hit.Name)
		set(r, "o", Resource, "ui://app/x.html")
		_, err = r.ResolveResource("ui://app/x.html")
		var several *AmbiguousError
		require.ErrorAs(t, err, &several)
		require.ElementsMatch(t, []string{"ui://s/app/x.html", "ui://o/app/x.html"}, several.Candidates)
	}
}
