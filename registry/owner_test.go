package registry

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/registry/cache"
	"goblin/registry/names"
)

// A name with the prefix of github, which has listed nothing, reaches no other server,
// regardless of their spellings.
func TestNamesBelowAPrefixAreItsServersForGood(t *testing.T) {
	long := strings.Repeat("l", 60)
	servers := []string{"github", "my.api", "my", "my_db", "a__b", long, "evil"}
	resolvers := map[string]struct {
		kind    Kind
		resolve func(*Registry, string) (Target, error)
		names   []string
	}{
		"tool": {Tool, (*Registry).ResolveTool, []string{
			"github_create_issue", "github/create_issue", "github_", "github/", "github_evil_x", "my.api_x", "my_api_x", "my.api/x",
			"my_db_x", "my_db_x_" + tail("my", "db_x"), "my_db/x", "github_a/b", "github/a_b", "a__b_x", "goblin/x",
			strings.Repeat("l", 42) + "_" + tail(long, "t"), strings.Repeat("l", 55) + "_" + tail(long, "t"), long + "_t", "describe_tool", "goblin/describe_tool",
		}},
		"prompt": {Prompt, (*Registry).ResolvePrompt, []string{
			"github/review", "github_review", "my.api_x", "my_api_x", "my_db_x", "my_x", "github_my_x", long + "_p",
		}},
		"resource": {Resource, (*Registry).ResolveResource, []string{
			"mcp://github/x:1", "MCP://github/x:1", " mcp://github/x:1", "\tm\ncp:/\r/github/x:1", "mcp://git\thub/x:1", "\x00\x1fmcp://github/x:1",
			"mcp://github", "mcp://github?x", "mcp://github#x/y", "mcp://github/", "mcp://github/x:1\x00", "Mcp://my.api/x:1",
			"github_x_1", "github__x_1", "github_x:1", "my_db_x", "my_db_x~" + flatHash("db:x"), "my.api_x", "a_b_x", "a__b_x",
			"goblin://servers", "goblin://x", "GOBLIN://x", " goblin:x", "goblin_x",
		}},
	}
	for what, c := range resolvers {
		for _, name := range c.names {
			for _, as := range []string{"listed", "template", "learned", "open", "hidden"} {
				r := New(Options{Servers: servers, Own: []string{"describe_tool"}})
				switch {
				case as == "listed":
					set(r, "evil", c.kind, name, "other")
				case as == "hidden":
					set(r, "evil", c.kind, name, "other")
					r.SetVisible("evil", false)
					r.SetVisible("github", false)
				case c.kind != Resource:
					continue
				case as == "template":
					set(r, "evil", Template, "{+any}", name[:len(name)/2]+"{+rest}")
				case as == "learned":
					r.RecordLink("evil", name)
				case as == "open":
					r.SetUnlistedAllowed("evil", true)
				}
				target, err := c.resolve(r, name)
				if err == nil {
					t.Errorf("%s %q (%s) reached %s", what, name, as, target.Server)
				}
				var unknown *NotFoundError
				require.ErrorAs(t, err, &unknown)
				require.NotEmpty(t, unknown.Owner, "%q", name)
				require.Empty(t, unknown.Nearest, "%q", name)
				if c.kind == Resource {
					set(r, "evil", Template, name)
					target, err = r.Load().ResolveTemplate(name)
					require.Error(t, err, "the reference %q reached %s", name, target.Server)
				}
			}
		}
	}
}

func TestOwnersAreReachedInAllTheirSpellings(t *testing.T) {
	r := catalog(t, Options{Own: []string{"describe_tool"}}, `
		github tool create_issue
		github tool github_old
		github tool describe_tool
		github prompt github_p
		github resource x:1
		github resource github_raw
		github template t:{v}
		my.api tool my.api_y
		my tool db_x
		my prompt db_p
		my resource db:x
		my_db tool x
		my_db prompt p
		evil tool bare_one
		evil resource goblins://x
		evil resource githubs_x`)
	r.RecordLink("my", "db:link")
	for name, want := range map[string]string{
		"github_create_issue": "github create_issue", "github/create_issue": "github create_issue", "create_issue": "github create_issue",
		"github_old": "github github_old", "github_github_old": "github github_old", "github/github_old": "github github_old",
		"my.api_y": "my.api my.api_y", "my_db_x": "my_db x", "my_db_x_" + tail("my", "db_x"): "my db_x",
		"github_describe_tool": "github describe_tool", "github/describe_tool": "github describe_tool", "bare_one": "evil bare_one",
	} {
		require.Equal(t, want, outcome(r.ResolveTool(name)), name)
	}
	for name, want := range map[string]string{"github_p": "github github_p", "github_github_p": "github github_p", "my_db_p": "my_db p", "my/db_p": "my db_p", "db_p": "my db_p"} {
		require.Equal(t, want, outcome(r.ResolvePrompt(name)), name)
	}
	for uri, want := range map[string]string{
		"MCP://github/x:1": "github x:1", " \tmcp://git\nhub/x:1": "github x:1", "github_x_1": "github x:1", "github__x_1": "github x:1",
		"github_raw": "github github_raw", "github_t_v": "github t:v by t:{v}", "Mcp://github/t:v": "github t:v by t:{v}",
		"my_db_x~" + flatHash("db:x"): "my db:x", "my_db_link~" + flatHash("db:link"): "my db:link unlisted",
		"my_db_x": "RESOURCE_NOT_FOUND: Resource not found: my_db_x", "goblins://x": "evil goblins://x", "githubs_x": "evil githubs_x",
	} {
		require.Equal(t, want, outcome(r.ResolveResource(uri)), uri)
	}
}

func TestSuggestionsAreOfTheServerThatANameIsOf(t *testing.T) {
	r := catalog(t, Options{Own: []string{"execute_lua"}}, "github\ngitlab tool create_issue\ngitlab tool execute_lua\nhub tool create_issues\nhub prompt help")
	for name, want := range map[string]string{
		"github_create_issue": `unknown tool "github_create_issue"`,
		"gitlab_create_isue":  `unknown tool "gitlab_create_isue"; did you mean "gitlab_create_issue"?`,
		"execute_lua":         `unknown tool "execute_lua"`,
		"create_issu":         `unknown tool "create_issu"; did you mean "gitlab_create_issue" or "hub_create_issues"?`,
	} {
		require.Equal(t, want, outcome(r.ResolveTool(name)), name)
	}
}

// An unapproved tool's name does not resolve to another tool of the same server.
func TestNamesOfWithheldToolsReachNothingElse(t *testing.T) {
	r := catalog(t, Options{}, "calc tool calc_add\ncalc tool calc/add\ncalc tool same")
	require.Equal(t, "calc calc_add", outcome(r.ResolveTool("calc_add")))
	r.SetUnapproved("calc", []UnapprovedTool{{Server: "calc", Name: "add", Hidden: true}})
	for _, name := range []string{"calc_add", "calc/add"} {
		_, err := r.ResolveTool(name)
		require.Error(t, err, name)
		require.Equal(t, "add", r.Load().UnapprovedTool(name).Name)
	}
	require.Equal(t, "calc calc_add", outcome(r.ResolveTool("calc_calc_add")))
}

// A server cannot take a name of another server's entry by any list.
func TestNoServerCanMakeAnothersListedName(t *testing.T) {
	plain := []string{"x", "db_x", "create_issue", "db_create_issue", "a.b", "db_a.b", strings.Repeat("n", 70), "db_" + strings.Repeat("n", 70), "catalog_x"}
	for _, servers := range [][]string{
		{"my", "my_db"},
		{"my_db", "my"},
		{"a.b", "a_b"},
		{"a_b", "a.b"},
		{"m", "my", "my_db"},
		{"a.b.c", "a_b.c", "a.b_c"},
		{"m", "m_y", "m.y", "m_y_db", "m_y.db"},
		{strings.Repeat("l", 60), strings.Repeat("l", 55)},
		{strings.Repeat("l", 63), strings.Repeat("l", 64)},
		{strings.Repeat("l", 46), strings.Repeat("l", 60)},
	} {
		t.Run(strings.Join(servers, " "), func(t *testing.T) {
			// The names that each server alone would list, and all that another server
			// could try for them.
			tools, flats := map[string]string{}, map[string]string{}
			for _, victim := range servers {
				r := New(Options{Servers: servers, Own: []string{"catalog_x"}})
				uris := make([]string, len(plain))
				for i, n := range plain {
					uris[i] = n + ":/y"
				}
				set(r, victim, Tool, plain...)
				set(r, victim, Resource, append(uris, "db_x", "x", "db:x", ":x", "/x")...)
				for e := range r.Load().All(Tool) {
					tools[e.Listed] = victim
				}
				for e := range r.Load().All(Resource) {
					flats[e.Flat] = victim
				}
			}
			for _, attacker := range servers {
				r := New(Options{Servers: servers, Flat: true, Own: []string{"catalog_x"}})
				u := r.rules[attacker]
				var nameList, uris []string
				for listed, victim := range tools {
					if victim == attacker {
						continue
					}
					nameList = append(nameList, listed)
					if rest, ok := strings.CutPrefix(listed, u.FullToolName("")); ok && rest != "" {
						nameList = append(nameList, rest, strings.Replace(rest, "_", ".", 1))
					}
				}
				for flat, victim := range flats {
					if victim == attacker {
						continue
					}
					uris = append(uris, flat)
					if rest, ok := strings.CutPrefix(flat, names.Collapse(attacker)+"_"); ok && rest != "" {
						uris = append(uris, rest, ":"+rest, strings.Replace(rest, "_", ":", 1))
					}
				}
				set(r, attacker, Tool, nameList...)
				set(r, attacker, Resource, uris...)
				for e := range r.Load().All(Tool) {
					if victim, ok := tools[e.Listed]; ok && victim != attacker {
						t.Errorf("%s lists %q as %s of %s", attacker, e.Name, e.Listed, victim)
					}
				}
				for e := range r.Load().All(Resource) {
					if victim, ok := flats[e.Listed]; ok && victim != attacker {
						t.Errorf("%s lists %q as %s of %s", attacker, e.Name, e.Listed, victim)
					}
				}
				for listed, victim := range tools {
					if target, err := r.ResolveTool(listed); err == nil && victim != attacker {
						t.Errorf("%s of %s reaches %s %q", listed, victim, target.Server, target.Name)
					}
				}
				for flat, victim := range flats {
					if target, err := r.ResolveResource(flat); err == nil && victim != attacker {
						t.Errorf("%s of %s reaches %s %q", flat, victim, target.Server, target.Name)
					}
				}
			}
		})
	}
}

// A server can find a matching short suffix by trying spellings that are listed the same.
// Two servers must therefore not be able to choose both.
func TestOnlyLongTailsFollowWhatANameDoesNotShow(t *testing.T) {
	odd := []string{"x", "a.b", "a:b", "a_b", "db_a.b", "db_a:b", "db_a_b", strings.Repeat("n", 70), "db_" + strings.Repeat("n", 70), "a.b_deadbeef", "db_a.b_deadbeef"}
	for _, servers := range [][]string{{"my", "my_db"}, {"a.b", "a_b"}, {"m", "my", "my_db"}, {"a.b.c", "a_b.c", "a.b_c"}, {"m", "my_db", "m.y_db"}} {
		r := New(Options{Servers: servers})
		short := map[string]map[string]bool{} // text before a short suffix → servers
		for _, s := range servers {
			set(r, s, Tool, odd...)
		}
		for e := range r.Load().All(Tool) {
			base := e.Listed[:max(0, len(e.Listed)-names.SuffixLen)]
			if full := r.rules[e.Server].FullToolName(e.Name); !names.HasHashSuffix(e.Listed, '_') || e.Listed == full || names.HasHashSuffix(base, '_') {
				continue
			}
			if names.IsToolName(e.Name) && len(r.rules[e.Server].FullToolName(e.Name)) <= r.opt.MaxName-names.SuffixLen {
				continue // no choice
			}
			if short[base] == nil {
				short[base] = map[string]bool{}
			}
			short[base][e.Server] = true
			require.Len(t, short[base], 1, "%v: %q with a short tail", servers, base)
			if owner, _, _ := r.Load().owner(Tool, base); owner == nil || owner.name != e.Server {
				continue
			}
			prefix, longer, shared := r.rules[e.Server].FullToolName(""), 0, 0
			for _, other := range servers {
				switch head := r.rules[other].Prefix; {
				case other == e.Server:
				case strings.HasPrefix(prefix, head):
					shared++
				case strings.HasPrefix(head, prefix):
					longer++
				}
			}
			require.False(t, longer > 0 && shared > 0, "%v: the owner's %q", servers, e.Listed)
		}
	}
}

func TestNamesAndURIsAreBounded(t *testing.T) {
	r := catalog(t, Options{}, "a\nb")
	ps := set(r, "a", Tool, strings.Repeat("x", MaxName), strings.Repeat("x", MaxName+1))
	require.Equal(t, 1, r.Load().Count(Tool))
	require.Contains(t, ps[len(ps)-1].Text+ps[0].Text, `"name" is longer than 4096 bytes`)
	ps = set(r, "a", Resource, "x:"+strings.Repeat("x", MaxURI-2), "x:"+strings.Repeat("x", MaxURI))
	require.Equal(t, 1, r.Load().Count(Resource))
	require.Contains(t, ps[0].Text, `"uri" is longer than 65536 bytes`)
	for what, resolve := range map[string]func(string) (Target, error){
		"tool": r.ResolveTool, "prompt": r.ResolvePrompt, "resource": r.ResolveResource, "template": r.Load().ResolveTemplate,
	} {
		_, err := resolve("a_" + strings.Repeat("x_", 1<<20))
		require.Error(t, err, what)
		require.Less(t, len(err.Error()), 2<<10, what)
	}
}

func TestFewTemplatesMayBeginWithAVariable(t *testing.T) {
	r := New(Options{Servers: []string{"a"}})
	texts := []string{"x:{v}"}
	for i := range 150 {
		texts = append(texts, fmt.Sprintf("{+v}/%d", i))
	}
	ps := set(r, "a", Template, texts...)
	require.Equal(t, 101, r.Load().Count(Template))
	require.Len(t, ps, 50)
	require.Contains(t, ps[0].Text, "dropped: more than 100 templates begin with a variable")
}

// hostileTemplates adds templates that must all be matched with a URI that begins with
// x:.
func hostileTemplates(r *Registry) {
	for i := range 4 {
		texts := make([]string, 10_000)
		for j := range texts {
			texts[j] = fmt.Sprintf("x:{+a}{+b}%d", j)
			if i == 0 {
				texts[j] = fmt.Sprintf("x:{a}_{b}_{c}%d", j)
			}
		}
		set(r, fmt.Sprint("s", i), Template, texts...)
	}
}

func TestTooManyTemplatesAreNotMatched(t *testing.T) {
	r := New(Options{Servers: []string{"s0", "s1", "s2", "s3", "ok"}})
	hostileTemplates(r)
	set(r, "ok", Template, "x:{+v}", "y:{v}")
	set(r, "ok", Resource, "x:listed")
	r.RecordLink("ok", "x:learned")
	uri := "x:" + strings.Repeat("a/", 100)
	for _, name := range []string{uri, "mcp://s1/" + uri, "s0_x_" + strings.Repeat("a_", 100)} {
		for _, resolve := range []func(string) (Target, error){r.ResolveResource, r.Load().ResolveTemplate} {
			require.Equal(t, "RESOURCE_NOT_FOUND: too many templates to match: "+name, outcome(resolve(name)))
		}
	}
	require.Equal(t, "ok "+uri+" by x:{+v}", outcome(r.ResolveResource("mcp://ok/"+uri)), "other servers do not count")
	require.Equal(t, "ok x:listed", outcome(r.ResolveResource("x:listed")))
	require.Equal(t, "ok y:1 by y:{v}", outcome(r.ResolveResource("y:1")))
	require.Equal(t, "ok x:learned by x:{+v}", outcome(r.ResolveResource("mcp://ok/x:learned")))
	budget := names.MatchBudget(maxSteps)
	r.Load().table("s1").runs[Template].template(uri, &budget)
	require.True(t, budget.IsSpent())
}

// Links with equal flat IDs cost no more than others.
func TestLearnedLinksWithOneFlatIDAreCounted(t *testing.T) {
	r := New(Options{Servers: []string{"a"}})
	rng := rand.New(rand.NewPCG(1, 2))
	l := r.Load().table("a").links
	uri := func() string {
		b := []byte("x:")
		for range 12 {
			b = append(b, "/:?&="[rng.IntN(5)])
		}
		return string(append(b, 'y'))
	}
	last := ""
	for range 3 * cache.MaxLinks {
		last = uri()
		r.RecordLink("a", last)
	}
	n, _, alike := l.Size("x_y")
	require.Equal(t, cache.MaxLinks, n)
	require.Equal(t, cache.MaxLinks, alike)
	require.LessOrEqual(t, len(l.Alias("x_y")), cache.MaxAliases)
	_, err := r.ResolveResource("a_x_y")
	require.ErrorContains(t, err, "AMBIGUOUS")
	for i := range cache.MaxLinks - 1 {
		r.RecordLink("a", fmt.Sprint("other:", i))
	}
	if got := outcome(r.ResolveResource("a_x_y")); got != "a "+last+" unlisted" {
		require.Equal(t, "RESOURCE_NOT_FOUND: Resource not found: a_x_y", got, "never guessed")
	}
	require.Equal(t, "a "+last+" unlisted", outcome(r.ResolveResource("mcp://a/"+last)))
	for i := range cache.MaxLinks {
		r.RecordLink("a", fmt.Sprint("more:", i))
	}
	_, _, alike = l.Size("x_y")
	require.Zero(t, alike)
}

// FuzzOwner checks that a name with a server's prefix reaches that server or none.
func FuzzOwner(f *testing.F) {
	for _, s := range []string{"my_db_x", "my/x", "a.b_x", "mcp://my/x", " MCP://my_db/x", "my_db_x~00000000", "my_db_x_00000000"} {
		f.Add(s)
	}
	servers := []string{"my", "my_db", "a.b", "a_b", "evil"}
	f.Fuzz(func(t *testing.T, name string) {
		r := New(Options{Servers: servers})
		for k := range Kind(Kinds) {
			set(r, "evil", k, name)
		}
		r.RecordLink("evil", name)
		set(r, "evil", Template, "{+any}")
		for _, s := range servers[:4] {
			below := strings.HasPrefix(name, s+"_")
			if below || strings.HasPrefix(name, s+"/") {
				for _, resolve := range []func(string) (Target, error){r.ResolveTool, r.ResolvePrompt} {
					_, err := resolve(name)
					require.Error(t, err, "%q", name)
				}
			}
			if below || strings.HasPrefix(names.NormalizeURI(name), "mcp://"+s+"/") {
				for _, resolve := range []func(string) (Target, error){r.ResolveResource, r.Load().ResolveTemplate} {
					_, err := resolve(name)
					require.Error(t, err, "%q", name)
				}
			}
		}
	})
}

// Lookups during the reading of messages find exactly the listed names.
func TestListedFindsListedNamesOnly(t *testing.T) {
	for _, flat := range []bool{false, true} {
		r := catalog(t, Options{Flat: flat, Own: []string{"own"}}, `
			my tool db_x
			my tool y
			my_db tool x
			my_db prompt p
			my_db resource x:1
			my_db resource x 2
			my_db template x:{v}
			b tool t
			long`+strings.Repeat("g", 60)+` tool t`)
		require.NoError(t, r.AddTool(LocalTool{Definition: []byte(`{"name":"own"}`), Call: noCall}))
		r.RecordLink("my_db", "x:learned")
		for _, k := range []Kind{Tool, Prompt, Resource} {
			for e := range r.Load().All(k) {
				target, ok := r.Load().LookupListed(k, e.Listed)
				require.Equal(t, e.Server != Local, ok, e.Listed)
				require.True(t, !ok || target.Entry == e, e.Listed)
			}
		}
		for k, nameList := range map[Kind][]string{
			Tool:     {"y", "my/y", "my_nope", "own", "", "_", strings.Repeat("my_", 1<<20)},
			Prompt:   {"p", "my_db_p", "my_db/q", "my_db/", "", strings.Repeat("my_", 1<<20)},
			Resource: {"x:1", "MCP://my_db/x:1", "mcp://my_db/x%3A1", "mcp://my_db/x:learned", "mcp://my_db/x:z", "my_db__x_1", "my_db_x_learned", "mcp://my_db/", "", strings.Repeat("my_", 1<<20)},
		} {
			for _, name := range nameList {
				_, ok := r.Load().LookupListed(k, name)
				require.False(t, ok, "%s %.40q", k, name)
			}
		}
	}
}

func TestLongMIMETypesAreNotMatched(t *testing.T) {
	_, err := MIMEFilter(strings.Repeat("*a", 200))
	require.ErrorIs(t, err, ErrBadMIME)
	require.Less(t, len(err.Error()), 400)
	match, err := MIMEFilter(strings.Repeat("*a", 100) + "*")
	require.NoError(t, err)
	require.False(t, match(&Entry{MIME: strings.Repeat("a", 1<<20)}))
	require.True(t, match(&Entry{MIME: strings.Repeat("a", 200)}))
}
