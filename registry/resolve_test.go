package registry

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/registry/cache"
	"goblin/registry/names"
)

// outcome returns the result of a request in one line.
func outcome(target Target, err error) string {
	if err != nil {
		return err.Error()
	}
	how := ""
	if target.Template != nil {
		how = " by " + target.Template.Name
	}
	if target.Entry == nil && target.Template == nil {
		how = " unlisted"
	}
	return target.Server + " " + target.Name + how
}

const fleet = `
	filesystem resource file:///logs/app.log
	filesystem resource file:///config/app.json
	filesystem resource x://a b/c?d=1&e
	s3 resource s3://bucket/config/app.json
	s3 resource file:///config/app.json
	dbsrv template mcp://database/{table}/{id}
	dbsrv template q://search{?text,limit}
	docs template doc:///{+path}
	docs resource doc:///exact
	other resource mcp://database/listed
	calculator resource file:///data.json
	my-api resource https://api.example.com/doc?x=1#frag
	odd resource file:///a/../b
	odd resource file:///b
	odd resource file:///ü
	odd resource file:///c/./d
	odd resource file:///100%
	odd resource file:///t{x}
	odd resource file:///with space 
	empty`

func TestResolveResource(t *testing.T) {
	r := catalog(t, Options{}, fleet)
	notFound := func(reason, uri string) string { return "RESOURCE_NOT_FOUND: " + reason + ": " + uri }
	for uri, want := range map[string]string{
		// exact
		"mcp://filesystem/file:///logs/app.log":             "filesystem file:///logs/app.log",
		"mcp://calculator/file:///data.json":                "calculator file:///data.json",
		"mcp://my-api/https://api.example.com/doc?x=1#frag": "my-api https://api.example.com/doc?x=1#frag",
		"mcp://filesystem/x://a b/c?d=1&e":                  "filesystem x://a b/c?d=1&e",
		"mcp://odd/file:///a/../b":                          "odd file:///a/../b",
		"mcp://odd/file:///b":                               "odd file:///b",
		"mcp://odd/file:///with space ":                     "odd file:///with space ",
		// as URL parsers spell it
		"mcp://filesystem/x://a%20b/c?d=1&e":       "filesystem x://a b/c?d=1&e",
		"mcp://odd/file:///%C3%BC":                 "odd file:///ü",
		"mcp://odd/file:///c/d":                    "odd file:///c/./d",
		"mcp://odd/file:///t%7Bx%7D":               "odd file:///t{x}",
		"mcp://odd/file:///with%20space":           "odd file:///with space ",
		"  mcp://calculator/file:///./data.json\n": "calculator file:///data.json",
		// percent-encoded
		"mcp://filesystem/file%3A%2F%2F%2Flogs%2Fapp.log": "filesystem file:///logs/app.log",
		"mcp://odd/file:///100%25":                        "odd file:///100%",
		// flat, with any number of underscores
		"filesystem_file_logs_app.log":              "filesystem file:///logs/app.log",
		"filesystem_file___logs_app.log":            "filesystem file:///logs/app.log",
		"filesystem_file____logs_app.log":           "filesystem file:///logs/app.log",
		"filesystem_x_a_b_c_d_1_e":                  "filesystem x://a b/c?d=1&e",
		"my-api_https_api.example.com_doc_x_1_frag": "my-api https://api.example.com/doc?x=1#frag",
		// raw
		"s3://bucket/config/app.json": "s3 s3://bucket/config/app.json",
		"mcp://database/listed":       "other mcp://database/listed",
		"file:///config/app.json": `AMBIGUOUS: resource "file:///config/app.json" has several matches; use a full name: ` +
			"mcp://filesystem/file:///config/app.json, mcp://s3/file:///config/app.json",
		// templates
		"mcp://dbsrv/mcp://database/users/42":       "dbsrv mcp://database/users/42 by mcp://database/{table}/{id}",
		"mcp://dbsrv/mcp://database/a%2Fb/c d":      "dbsrv mcp://database/a%2Fb/c d by mcp://database/{table}/{id}",
		"mcp://dbsrv/q://search?limit=1&text=a%20b": "dbsrv q://search?limit=1&text=a%20b by q://search{?text,limit}",
		"mcp://docs/doc:///a/b%2Fc":                 "docs doc:///a/b%2Fc by doc:///{+path}",
		"mcp://docs/doc:///exact":                   "docs doc:///exact",
		"mcp://dbsrv/mcp%3A%2F%2Fdatabase%2Fu%2F1":  "dbsrv mcp://database/u/1 by mcp://database/{table}/{id}",
		"mcp://database/users/42":                   "dbsrv mcp://database/users/42 by mcp://database/{table}/{id}",
		"dbsrv_mcp_database_users_42":               "dbsrv mcp://database/users/42 by mcp://database/{table}/{id}",
		"dbsrv_mcp_database_my_users_42": `AMBIGUOUS: resource "dbsrv_mcp_database_my_users_42" has several matches; use a full name: ` +
			"mcp://dbsrv/mcp://database/{table}/{id}",
		"doc:///exact": "docs doc:///exact",
		// nothing
		"mcp://dbsrv/mcp://database/users/42/x": notFound(ReasonNotFound, "mcp://dbsrv/mcp://database/users/42/x"),
		"zzz://q":                               notFound(ReasonNotFound, "zzz://q"),
		"":                                      notFound(ReasonNotFound, ""),
		"filesystem_nope":                       notFound(ReasonNotFound, "filesystem_nope"),
		"mcp://filesystem/file:///nope":         notFound(ReasonNotFound, "mcp://filesystem/file:///nope"),
		"mcp://empty/file:///x":                 notFound(ReasonNotFound, "mcp://empty/file:///x"),
		"mcp://unknown-server/file:///x":        notFound("Server 'unknown-server' not found", "mcp://unknown-server/file:///x"),
		"mcp://server":                          notFound(ReasonMalformed, "mcp://server"),
		"mcp://server/":                         notFound(ReasonMalformed, "mcp://server/"),
		"mcp://filesystem/":                     notFound(ReasonMalformed, "mcp://filesystem/"),
		"mcp:///x":                              notFound(ReasonMalformed, "mcp:///x"),
	} {
		if got := outcome(r.ResolveResource(uri)); got != want {
			t.Errorf("%q\n got %s\nwant %s", uri, got, want)
		}
	}
}

func TestResolutionOrder(t *testing.T) {
	for _, c := range []struct{ behaviour, catalog, uri, want string }{
		{"exact before template of another", "a template file:///{+path}\nb resource file:///x", "file:///x", "b file:///x"},
		{"a server with the name wins", "database resource users/1\nother resource mcp://database/users/1", "mcp://database/users/1", "database users/1"},
		{
			"even if it does not have it", "database\nother resource mcp://database/users/1", "mcp://database/users/1",
			"RESOURCE_NOT_FOUND: Resource not found: mcp://database/users/1",
		},
		{
			"templates of two servers", "a template file:///{+path}\nb template file:///{p}", "file:///x",
			`AMBIGUOUS: resource "file:///x" has several matches; use a full name: mcp://a/file:///x, mcp://b/file:///x`,
		},
		{"two templates of one server", "a template file:///{+path}\na template file:///x/{p}", "file:///x/y", "a file:///x/y by file:///x/{p}"},
		{"first of two that say as much", "a template file:///{z}\na template file:///{+a}", "file:///x", "a file:///x by file:///{z}"},
		{
			"one alias key of two", "a resource x:é\na resource x:%C3%A9", "mcp://a/x:%C3%A9", "a x:%C3%A9",
		},
		{
			"one alias key of two, neither exact", "a resource x:y/./é\na resource x:y/é", "mcp://a/x:y/%C3%A9",
			`AMBIGUOUS: resource "mcp://a/x:y/%C3%A9" has several matches; use a full name: mcp://a/x:y/./é, mcp://a/x:y/é`,
		},
		{"a flat id that only looks like another server's", "a resource b_x:1\na_b", "a_b_x_1", "RESOURCE_NOT_FOUND: Resource not found: a_b_x_1"},
		{"a flat id before a template that takes anything", "a resource x:1\nb template {+any}", "a_x_1", "a x:1"},
		{"server names with underscores", "a_b resource x:1\na", "a_b_x_1", "a_b x:1"},
		{"a server name with two underscores", "a__b resource x:1", "a__b_x_1", "a__b x:1"},
	} {
		r := catalog(t, Options{}, c.catalog)
		if got := outcome(r.ResolveResource(c.uri)); got != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.behaviour, got, c.want)
		}
	}
}

func TestHiddenServersStillOwn(t *testing.T) {
	r := catalog(t, Options{}, "a resource x:1\nb resource x:1\na tool t\nb tool t\na prompt p\nb prompt p")
	r.SetVisible("b", false)
	require.Equal(t, []string{"mcp://a/x:1"}, listed(r.Load(), Resource))
	for range r.Load().Server("b", Resource) {
		t.Fatal("hidden entry")
	}
	var many *AmbiguousError
	_, err := r.ResolveResource("x:1")
	require.ErrorAs(t, err, &many)
	require.Equal(t, []string{"mcp://a/x:1", "mcp://b/x:1"}, many.Candidates)
	_, err = r.ResolveTool("t")
	require.ErrorAs(t, err, &many)
	_, err = r.ResolvePrompt("p")
	require.ErrorAs(t, err, &many)
	require.Equal(t, "b x:1", outcome(r.ResolveResource("mcp://b/x:1")))
	require.Equal(t, "b t", outcome(r.ResolveTool("b_t")))
}

func TestResolveTool(t *testing.T) {
	r := catalog(t, Options{}, `
		my tool query
		my tool db_run
		my_db tool run
		my_db tool only
		b tool query
		b tool b_c/d
		api.v1 tool get.it`)
	for name, want := range map[string]string{
		"my_query":               "my query",
		"my_db_run":              "my_db run",
		"my/db_run":              "my db_run",
		"only":                   "my_db only",
		"api_v1_get_it":          "api.v1 get.it",
		"api.v1/get.it":          "api.v1 get.it",
		"get.it":                 "api.v1 get.it",
		"b_c/d":                  "b b_c/d",
		"b/b_c/d":                "b b_c/d",
		"query":                  `AMBIGUOUS: tool "query" has several matches; use a full name: b_query, my_query`,
		"my_qury":                `unknown tool "my_qury"; did you mean "my_query"?`,
		"only_":                  `unknown tool "only_"; did you mean "my_db_only"?`,
		"nothing at all":         `unknown tool "nothing at all"`,
		"my_":                    `unknown tool "my_"`,
		"":                       `unknown tool ""`,
		strings.Repeat("x", 999): `unknown tool "` + strings.Repeat("x", 999) + `"`,
	} {
		got := outcome(r.ResolveTool(name))
		if strings.HasPrefix(want, "AMBIGUOUS") {
			require.ErrorContains(t, func() error { _, err := r.ResolveTool(name); return err }(), "AMBIGUOUS")
			continue
		}
		if got != want {
			t.Errorf("%q\n got %s\nwant %s", name, got, want)
		}
	}
}

func TestResolvePrompt(t *testing.T) {
	r := catalog(t, Options{}, `
		calculator prompt help
		my prompt db_help
		my_db prompt help
		my_db prompt only/one`)
	for name, want := range map[string]string{
		"calculator/help": "calculator help",
		"calculator_help": "calculator help",
		"my/db_help":      "my db_help",
		"my_db/help":      "my_db help",
		"my_db_help":      "my_db help",
		"db_help":         "my db_help",
		"only/one":        "my_db only/one",
		"my_db/only/one":  "my_db only/one",
		"help":            `AMBIGUOUS: prompt "help" has several matches; use a full name: calculator/help, my_db/help`,
		"calculator/halp": `unknown prompt "calculator/halp"; did you mean "calculator/help"?`,
	} {
		if got := outcome(r.ResolvePrompt(name)); got != want {
			t.Errorf("%q\n got %s\nwant %s", name, got, want)
		}
	}
}

func TestResolveTemplate(t *testing.T) {
	for _, flat := range []bool{false, true} {
		r := catalog(t, Options{Flat: flat}, fleet+"\nfilesystem template file:///{+path}\ns3 template file:///{+path}")
		for ref, want := range map[string]string{
			"mcp://dbsrv/mcp://database/{table}/{id}":         "dbsrv mcp://database/{table}/{id}",
			"mcp://dbsrv/mcp://database/%7Btable%7D/%7Bid%7D": "dbsrv mcp://database/{table}/{id}",
			"mcp://database/{table}/{id}":                     "dbsrv mcp://database/{table}/{id}",
			"mcp://dbsrv/mcp://database/a/b":                  "dbsrv mcp://database/a/b by mcp://database/{table}/{id}",
			"mcp://filesystem/file:///logs/app.log":           "filesystem file:///logs/app.log",
			"file:///{+path}": `AMBIGUOUS: template "file:///{+path}" has several matches; use a full name: ` +
				"mcp://filesystem/file:///{+path}, mcp://s3/file:///{+path}",
			"mcp://dbsrv/nope": "RESOURCE_NOT_FOUND: Resource not found: mcp://dbsrv/nope",
		} {
			got := outcome(r.Load().ResolveTemplate(ref))
			if strings.HasPrefix(want, "AMBIGUOUS") {
				_, err := r.Load().ResolveTemplate(ref)
				var many *AmbiguousError
				require.ErrorAs(t, err, &many)
				require.ElementsMatch(t, []string{"mcp://filesystem/file:///{+path}", "mcp://s3/file:///{+path}"}, many.Candidates)
				continue
			}
			if got != want {
				t.Errorf("%q\n got %s\nwant %s", ref, got, want)
			}
		}
	}
}

func TestLearnedLinks(t *testing.T) {
	r := catalog(t, Options{}, "a resource x:1\nb\nc template t:{v}")
	r.RecordLink("a", "x:1")
	r.RecordLink("a", "file:///out put.json")
	r.RecordLink("b", "both:1")
	r.RecordLink("c", "both:1")
	r.RecordLink("c", "t:a b")
	r.RecordLink("nobody", "x:2")
	for uri, want := range map[string]string{
		"mcp://a/file:///out put.json":      "a file:///out put.json unlisted",
		"mcp://a/file:///out%20put.json":    "a file:///out put.json unlisted",
		"mcp://a/file%3A///out%20put.json":  "a file:///out put.json unlisted",
		"mcp://a/file:///x/../out put.json": "a file:///out put.json unlisted",
		"a_file_out_put.json":               "a file:///out put.json unlisted",
		"file:///out put.json":              "a file:///out put.json unlisted",
		"both:1":                            `AMBIGUOUS: resource "both:1" has several matches; use a full name: mcp://b/both:1, mcp://c/both:1`,
		"mcp://b/file:///out put.json":      "RESOURCE_NOT_FOUND: Resource not found: mcp://b/file:///out put.json",
		"mcp://c/t:a b":                     "c t:a b by t:{v}",
		"mcp://c/t:a%20b":                   "c t:a b by t:{v}", // the server's spelling, not the client's
	} {
		if got := outcome(r.ResolveResource(uri)); got != want {
			t.Errorf("%q\n got %s\nwant %s", uri, got, want)
		}
	}
	for i := range cache.MaxLinks {
		r.RecordLink("a", fmt.Sprint("new:", i))
	}
	_, err := r.ResolveResource("mcp://a/file:///out put.json")
	require.Error(t, err, "the oldest was evicted")
	_, err = r.ResolveResource("a_file_out_put.json")
	require.Error(t, err)
	r.RecordLink("b", strings.Repeat("x", cache.MaxLinkURI+1))
	for i := range 2 * cache.MaxLinkBytes / cache.MaxLinkURI {
		r.RecordLink("b", fmt.Sprintf("%08d%s", i, strings.Repeat("x", cache.MaxLinkURI-8)))
	}
	n, bytes, _ := r.Load().table("b").links.Size("")
	require.LessOrEqual(t, bytes, cache.MaxLinkBytes)
	require.Positive(t, n)
}

func TestOpenServers(t *testing.T) {
	r := catalog(t, Options{}, "a resource x:1\nb")
	r.SetUnlistedAllowed("a", true)
	require.Equal(t, "a any:thing unlisted", outcome(r.ResolveResource("mcp://a/any:thing")))
	require.Equal(t, "a x:1", outcome(r.ResolveResource("mcp://a/x:1")))
	_, err := r.ResolveResource("any:thing")
	require.Error(t, err)
	_, err = r.ResolveResource("mcp://b/any:thing")
	require.Error(t, err)
	r.SetUnlistedAllowed("a", false)
	_, err = r.ResolveResource("mcp://a/any:thing")
	require.Error(t, err)
}

func TestListedURI(t *testing.T) {
	text := "s resource file:///a/b\ns resource file:///a_b\ns resource x:1\nmy resource y:1\nmy_db resource y:1"
	r := catalog(t, Options{}, text)
	require.Equal(t, "mcp://s/file:///a/b", r.ListedURI("s", "file:///a/b"))
	require.Equal(t, "mcp://s/new:1", r.ListedURI("s", "new:1"))
	require.Equal(t, "goblin://servers", r.ListedURI(Local, "goblin://servers"))
	r = catalog(t, Options{Flat: true}, text)
	for _, c := range []struct{ server, uri, want string }{
		{"s", "x:1", "s_x_1"},
		{"s", "new:1", "s_new_1"},
		{"s", "file:///a/b", "s_file_a_b~" + flatHash("file:///a/b")},
		{"s", "file://a/b", "s_file_a_b~" + flatHash("file://a/b")},
		{"s", "x/1", "s_x_1~" + flatHash("x/1")},
		{"my", "db:1", "my_db_1~" + flatHash("db:1")},
	} {
		got := r.ListedURI(c.server, c.uri)
		require.Equal(t, c.want, got)
		r.RecordLink(c.server, c.uri)
		target, err := r.ResolveResource(got)
		require.NoError(t, err, got)
		require.Equal(t, c.server+" "+c.uri, target.Server+" "+target.Name)
		require.Equal(t, got, target.Listed)
	}
}

// randomURI returns a URI as servers list them: any scheme, dots, escapes, all of
// Unicode.
func randomURI(rng *rand.Rand) string {
	pieces := []string{
		"/", "/", "//", "..", ".", "%2e", "%2F", "%", " ", "é", "日本", "a", "B", "_", "__", "-", "~", "?", "&", "=", "#",
		"{", "}", "\"", "\\", "|", "'", "`", "<", ">", "\t", "\n", "C:", ":", "@", "+", "\u202e", "file", "log",
	}
	var b strings.Builder
	b.WriteString([]string{"file:///", "https://h/", "mcp://x/", "urn:", "data:,", "custom://", "s3://b/"}[rng.IntN(7)])
	for range 1 + rng.IntN(12) {
		b.WriteString(pieces[rng.IntN(len(pieces))])
	}
	return b.String()
}

func TestEveryListedURIResolvesToItsBytes(t *testing.T) {
	for _, flat := range []bool{false, true} {
		rng := rand.New(rand.NewPCG(1, 2))
		servers := []string{"s", "s_file", "my.api", "x"}
		r := New(Options{Servers: servers, Flat: flat})
		want := map[string]map[string]bool{}
		for _, s := range servers {
			want[s] = map[string]bool{}
			var uris []string
			for len(want[s]) < 1000 {
				uri := randomURI(rng)
				if !want[s][uri] {
					uris = append(uris, uri)
				}
				want[s][uri] = true
			}
			set(r, s, Resource, uris...)
		}
		n := 0
		for e := range r.Load().All(Resource) {
			n++
			require.True(t, want[e.Server][e.Name])
			require.Equal(t, e.Listed, r.ListedURI(e.Server, e.Name))
			got, err := r.ResolveResource(e.Listed)
			require.NoError(t, err)
			require.Same(t, e, got.Entry, e.Listed)
			got, err = r.ResolveResource(e.Flat)
			require.NoError(t, err, e.Flat)
			require.Same(t, e, got.Entry, e.Flat)
			// The form of a URL parser resolves to the same resource, or is reported as
			// ambiguous.
			got, err = r.ResolveResource(names.NormalizeURI(names.NamespacedURI(e.Server, e.Name)))
			if err != nil {
				require.ErrorContains(t, err, "AMBIGUOUS")
			} else if got.Entry != e {
				require.Equal(t, names.NamespacedURI(e.Server, got.Name), names.NormalizeURI(names.NamespacedURI(e.Server, e.Name)))
			}
			got, err = r.ResolveResource(names.Scheme + e.Server + "/" + url.PathEscape(e.Name))
			if err != nil || got.Entry != e {
				other, _ := url.PathUnescape(url.PathEscape(e.Name))
				require.Equal(t, e.Name, other)
				require.NoError(t, err, e.Name)
			}
		}
		require.Equal(t, 4000, n)
	}
}

// Apps and skills keep their schemes, followed by the server, in both namespaces.
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
			"ui://app/x.html":         "s ui://app/x.html", // only one server has it
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
			"ui://o/y":                "", // permanently reserved for o
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
		hit, ok := r.Load().LookupListed(Resource, "ui://s/app/x.html")
		require.True(t, ok)
		require.Equal(t, "ui://app/x.html", hit.Name)
		set(r, "o", Resource, "ui://app/x.html")
		_, err = r.ResolveResource("ui://app/x.html")
		var several *AmbiguousError
		require.ErrorAs(t, err, &several)
		require.ElementsMatch(t, []string{"ui://s/app/x.html", "ui://o/app/x.html"}, several.Candidates)
	}
}
