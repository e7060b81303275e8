package registry

import (
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/registry/names"
)

// toolNames returns the listed name of each server's tool.
func toolNames(r *Registry) map[string]string {
	out := map[string]string{}
	for e := range r.Load().All(Tool) {
		out[e.Server+"/"+e.Name] = e.Listed
	}
	return out
}

// tail returns the short suffix of a tool, without its separator.
func tail(server, original string) string {
	short, _ := names.HashSuffixes(server+"\x00"+original, '_')
	return short[1:]
}

// longTail returns the long suffix of a tool, with its separators.
func longTail(server, original string) string {
	_, long := names.HashSuffixes(server+"\x00"+original, '_')
	return long
}

// flatHash returns the short suffix of a flat ID, without its separator.
func flatHash(original string) string {
	short, _ := names.HashSuffixes(original, '~')
	return short[1:]
}

func tailed(prefix, server, name string) string { return prefix + "_" + tail(server, name) }

func TestToolNames(t *testing.T) {
	long := strings.Repeat("x", 70)
	for _, c := range []struct {
		behaviour, catalog string
		want               map[string]string
	}{
		{"server_tool", "s tool t", map[string]string{"s/t": "s_t"}},
		{"odd characters", "my.api tool get/it é", map[string]string{"my.api/get/it é": "my_api_get_it__"}},
		{"too long", "s tool " + long, map[string]string{"s/" + long: tailed("s_"+long[:40], "s", long)}},
		{"just short enough", "s tool " + long[:49], map[string]string{"s/" + long[:49]: "s_" + long[:49]}},
		{
			"a server prefix that begins another's", "my tool db_x\nmy tool x\nmy_db tool x",
			map[string]string{"my/db_x": tailed("my_db_x", "my", "db_x"), "my/x": "my_x", "my_db/x": "my_db_x"},
		},
		{
			"equal prefixes: the first in the config keeps the names", "my.api tool x\nmy_api tool x\nmy_api tool y",
			map[string]string{
				"my.api/x": "my_api_x",
				"my_api/x": tailed("my_api_x", "my_api", "x"), "my_api/y": tailed("my_api_y", "my_api", "y"),
			},
		},
		{"looks like a suffix, but has no owner", "s tool x_0123abcd", map[string]string{"s/x_0123abcd": "s_x_0123abcd"}},
		{
			"what looks like a tail, where it could be another's", "my tool y\nmy_db tool x_0123abcd",
			map[string]string{"my/y": "my_y", "my_db/x_0123abcd": "my_db_x_0123abcd" + longTail("my_db", "x_0123abcd")},
		},
		{
			"what looks like a tail and falls under another's prefix", "my tool db_x_0123abcd\nmy_db tool y",
			map[string]string{"my/db_x_0123abcd": "my_db_x_0123abcd" + longTail("my", "db_x_0123abcd"), "my_db/y": "my_db_y"},
		},
		{
			"changed into a name that the server has", "s tool a.b\ns tool a_b\ns tool a:b",
			map[string]string{"s/a.b": tailed("s_a_b", "s", "a.b"), "s/a_b": "s_a_b", "s/a:b": tailed("s_a_b", "s", "a:b")},
		},
		{
			"two changed into one", "s tool a:b\ns tool a.b",
			map[string]string{"s/a.b": "s_a_b", "s/a:b": tailed("s_a_b", "s", "a:b")},
		},
		{
			"Goblin's own name", "catalog tool tools\ncatalog tool more",
			map[string]string{"catalog/tools": tailed("catalog_tools", "catalog", "tools"), "catalog/more": "catalog_more"},
		},
	} {
		r := catalog(t, Options{}, c.catalog)
		require.NoError(t, r.AddTool(LocalTool{Definition: []byte(`{"name":"catalog_tools"}`), Call: noCall}))
		got := toolNames(r)
		require.Equal(t, "catalog_tools", got["goblin/catalog_tools"])
		delete(got, "goblin/catalog_tools")
		require.Equal(t, c.want, got, c.behaviour)
		for full, name := range c.want {
			require.Regexp(t, `^[A-Za-z0-9_-]{1,51}$`, name)
			target, err := r.ResolveTool(name)
			require.NoError(t, err)
			require.Equal(t, full, target.Server+"/"+target.Name, "routes")
		}
	}
}

func TestTheLongestServerNameHasTools(t *testing.T) {
	server := strings.Repeat("s", 64)
	r := catalog(t, Options{}, server+" tool t\n"+strings.Repeat("s", 63)+" tool t")
	for _, name := range listed(r.Load(), Tool) {
		require.Len(t, name, 51)
		_, err := r.ResolveTool(name)
		require.NoError(t, err)
	}
}

// Names depend only on the config and on (server, original). They do not depend on
// running servers or the order of lists.
func TestNamesDoNotDependOnWhoIsUp(t *testing.T) {
	servers := []string{"my", "my_db", "my.db", "my_db_x", "m", "other"}
	tools := []string{"x", "db_x", "db.x", "db_x_y", "x_y", "y"}
	for _, flat := range []bool{false, true} {
		want := map[string]string{}
		for round := range 30 {
			rng := rand.New(rand.NewPCG(uint64(round), 1))
			r := New(Options{Servers: servers, Flat: flat})
			for _, i := range rng.Perm(len(servers)) {
				if round > 0 && rng.IntN(3) == 0 {
					continue
				}
				shuffled := slices.Clone(tools)
				rng.Shuffle(len(tools), func(a, b int) { shuffled[a], shuffled[b] = shuffled[b], shuffled[a] })
				set(r, servers[i], Tool, shuffled...)
				for j := range shuffled {
					shuffled[j] = "x:" + shuffled[j]
				}
				set(r, servers[i], Resource, shuffled...)
			}
			for _, k := range []Kind{Tool, Resource} {
				seen := map[string]bool{}
				for e := range r.Load().All(k) {
					id := fmt.Sprint(k, e.Server, " ", e.Name)
					if round == 0 {
						want[id] = e.Listed
					}
					require.Equal(t, want[id], e.Listed, id)
					require.False(t, seen[e.Listed], "%s is listed twice", e.Listed)
					seen[e.Listed] = true
				}
			}
		}
	}
}

// Names depend on the current servers only, not on earlier ones.
func TestNamesAreThoseOfAFreshStartWhateverServersCameAndWent(t *testing.T) {
	lists := map[string][]string{
		"my": {"db_x", "x", "y"}, "my_db": {"x", "z"}, "my.": {"x", "db_z"}, "m": {"y_x"}, "api": {"x"}, "my.db": {"x"},
	}
	fill := func(r *Registry, servers []string) {
		for _, s := range servers {
			set(r, s, Tool, lists[s]...)
			uris := make([]string, len(lists[s]))
			for i, name := range lists[s] {
				uris[i] = "x:/" + name
			}
			set(r, s, Resource, uris...)
		}
	}
	nameList := func(r *Registry) map[string][2]string {
		out := map[string][2]string{}
		for _, k := range []Kind{Tool, Resource} {
			for e := range r.Load().All(k) {
				out[e.Server+" "+e.Name] = [2]string{e.Listed, e.Flat}
			}
		}
		return out
	}
	rng := rand.New(rand.NewPCG(1, 2))
	all := slices.Sorted(maps.Keys(lists))
	for _, flat := range []bool{false, true} {
		r := New(Options{Flat: flat})
		for range 60 {
			rng.Shuffle(len(all), func(a, b int) { all[a], all[b] = all[b], all[a] })
			servers := slices.Clone(all[:rng.IntN(len(all)+1)])
			r.SetServers(servers, nil)
			fill(r, servers)
			fresh := New(Options{Flat: flat, Servers: servers})
			fill(fresh, servers)
			require.Equal(t, nameList(fresh), nameList(r), "%v", servers)
			for _, k := range []Kind{Tool, Resource} {
				require.Equal(t, listed(fresh.Load(), k), listed(r.Load(), k))
			}
			for e := range r.Load().All(Tool) {
				target, err := r.ResolveTool(e.Listed)
				require.NoError(t, err)
				require.Equal(t, e.Server+" "+e.Name, target.Server+" "+target.Name)
			}
		}
	}
}

func add(r *Registry, server string) { r.SetServers(append(slices.Clone(r.order), server), nil) }

func remove(r *Registry, server string) {
	r.SetServers(slices.DeleteFunc(slices.Clone(r.order), func(s string) bool { return s == server }), nil)
}

func TestLocalToolsTakeNames(t *testing.T) {
	r := catalog(t, Options{}, "catalog tool tools")
	require.Equal(t, []string{"catalog_tools"}, listed(r.Load(), Tool))
	require.NoError(t, r.AddTool(LocalTool{Definition: []byte(`{"name":"catalog_tools"}`), Call: noCall}))
	require.Equal(t, []string{"catalog_tools", tailed("catalog_tools", "catalog", "tools")}, listed(r.Load(), Tool))
	got, err := r.ResolveTool("catalog_tools")
	require.NoError(t, err)
	require.NotNil(t, got.Local.Tool)
}

func TestFlatIDs(t *testing.T) {
	for _, c := range []struct{ server, uri, want string }{
		{"filesystem", "file:///logs/app.log", "filesystem_file_logs_app.log"},
		{"filesystem", "x://a b/c?d=1&e", "filesystem_x_a_b_c_d_1_e"},
		{"my_db", "a__b", "my_db_a_b"},
		{"s", "urn:é:~x", "s_urn_~x"},
	} {
		require.Equal(t, c.want, names.FlatID(c.server, c.uri))
	}
	r := catalog(t, Options{Flat: true}, `
		s resource file:///a/b
		s resource file:///a_b
		s resource file:///a/c
		my resource db_x
		my_db resource x`)
	require.Equal(t, []string{
		"my_db_x",
		"my_db_x~" + flatHash("db_x"),
		"s_file_a_b~" + min(flatHash("file:///a/b"), flatHash("file:///a_b")),
		"s_file_a_b~" + max(flatHash("file:///a/b"), flatHash("file:///a_b")),
		"s_file_a_c",
	}, listed(r.Load(), Resource))
	equal := catalog(t, Options{Flat: true}, "my resource x\nmy_ resource y")
	require.Equal(t, []string{"my__y~" + flatHash("y"), "my_x"}, listed(equal.Load(), Resource), "the first in the config keeps its ids")
	_, err := r.ResolveResource("s_file_a_b")
	var many *AmbiguousError
	require.ErrorAs(t, err, &many)
	require.ElementsMatch(t, many.Candidates, listed(r.Load(), Resource)[2:4])
}

func TestCollisionsAreReported(t *testing.T) {
	r := New(Options{Servers: []string{"my", "my_db"}})
	ps := set(r, "my", Tool, "db_x", "a.b", "a_b", "fine")
	require.Len(t, ps, 2)
	require.Equal(t, "INFO db_x", fmt.Sprint(ps[0].Level, " ", ps[0].Name))
	require.Equal(t, "WARN a.b", fmt.Sprint(ps[1].Level, " ", ps[1].Name))
	require.Len(t, set(r, "my", Resource, "x:/a", "x:a"), 1)
	ps = r.SetList("my", Tool, [][]byte{[]byte(`{"name":"talks","description":"` + strings.Repeat("é", 2047) + `𝒳"}`), []byte(`{"name":"fits","description":"` + strings.Repeat("é", 2048) + `"}`)})
	require.Equal(t, []Problem{{slog.LevelWarn, Tool, "my", "talks", "the description has 2049 characters; clients such as Claude Code show only 2048"}}, ps)
}

func TestOwnToolsComeFirst(t *testing.T) {
	r := catalog(t, Options{PageSize: 2}, "a tool x\nb tool y\nz tool z\na resource x:1")
	for _, name := range []string{"search", "catalog"} {
		require.NoError(t, r.AddTool(LocalTool{Definition: []byte(`{"name":"` + name + `"}`), Call: noCall}))
	}
	require.NoError(t, r.AddResource(ServersResource(r)))
	want := []string{"catalog", "search", "a_x", "b_y", "z_z"}
	require.Equal(t, want, listed(r.Load(), Tool))
	var paged []string
	for cursor := ""; ; {
		page, err := r.Load().Page(Tool, cursor)
		require.NoError(t, err)
		for _, chunk := range page.Chunks {
			for _, found := range regexp.MustCompile(`"name":"(\w+)"`).FindAllSubmatch(chunk, -1) {
				paged = append(paged, string(found[1]))
			}
		}
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	require.Equal(t, want, paged)
	require.Equal(t, []string{"goblin://servers", "mcp://a/x:1"}, listed(r.Load(), Resource), "resources are in byte order")
}

// A tool's link follows its resource if that gains or loses its suffix.
func TestToolLinksFollowFlatIDs(t *testing.T) {
	r := New(Options{Servers: []string{"s"}, Flat: true})
	r.SetList("s", Tool, [][]byte{[]byte(`{"name":"t","_meta":{"ui":{"resourceUri":"app://a/b"}}}`)})
	link := func() string {
		for e := range r.Load().All(Tool) {
			return string(e.JSON())
		}
		return ""
	}
	require.Contains(t, link(), `"s_app_a_b"`)
	set(r, "s", Resource, "app://a/b", "app://a_b")
	require.Contains(t, link(), `"s_app_a_b~`+flatHash("app://a/b")+`"`)
	set(r, "s", Resource, "app://a/b")
	require.Contains(t, link(), `"s_app_a_b"`)
}
