package registry

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// spelled returns servers and tools whose names depend most on the length limit:
// shortened ones and prefixes of each other.
func spelled(most int, servers ...string) *Registry {
	r := New(Options{Servers: servers, Own: []string{"catalog_resource_templates"}, MaxName: most})
	long := strings.Repeat("n", 140)
	for _, s := range servers {
		set(r, s, Tool, "x", "db_x", "a.b", "a_b", long[:20], long[:40], long[:41], long[:58], long[:59], long, long+".x", long+":x",
			"db_"+long[:50], "get.it"+long[:44], "get_it"+long[:44], "issues_and_pull_requests_of_a_repository")
	}
	return r
}

func TestNamesOfOtherLengthsAreUnderstood(t *testing.T) {
	for _, servers := range [][]string{
		{"github"},
		{"my", "my_db"},
		{"a.b", "a_b"},
		{strings.Repeat("l", 60), strings.Repeat("l", 40)},
	} {
		for _, most := range []int{24, 51, 64, 128} {
			r := spelled(most, servers...)
			for _, other := range []int{24, 33, 40, 51, 60, 64, 100, 128} {
				for e := range spelled(other, servers...).Load().All(Tool) {
					require.LessOrEqual(t, len(e.Listed), other)
					if got := outcome(r.ResolveTool(e.Listed)); got != e.Server+" "+e.Name {
						t.Errorf("%v: %q, listed with max_name %d, is with %d: %s, not %s %s", servers, e.Listed, other, most, got, e.Server, e.Name)
					}
				}
			}
		}
	}
}

// A server cannot take a name of another length from a stopped server, or from an
// unapproved tool.
func TestNamesOfOtherLengthsAreTheirServersForGood(t *testing.T) {
	for _, victim := range []string{"github", strings.Repeat("l", 60)} {
		for _, other := range []int{24, 40, 64, 128} {
			for e := range spelled(other, victim, "evil").Load().All(Tool) {
				if e.Server != victim || len(e.Listed) < 24 {
					continue
				}
				r := New(Options{Servers: []string{victim, "evil"}})
				set(r, "evil", Tool, e.Listed, e.Name+"z")
				target, err := r.ResolveTool(e.Listed)
				require.Error(t, err, "%q reached %s %q", e.Listed, target.Server, target.Name)
				r.SetUnapproved(victim, []UnapprovedTool{{Server: victim, Name: e.Name, Hidden: true}})
				require.NotNil(t, r.Load().UnapprovedTool(e.Listed), e.Listed)
			}
		}
	}
}

func TestNamesOfOtherLengthsCostNoMoreInALongerList(t *testing.T) {
	r := New(Options{Servers: []string{"s"}})
	names := make([]string, 3000)
	for i := range names {
		names[i] = fmt.Sprintf("%s%d", strings.Repeat("n", 60), i)
	}
	set(r, "s", Tool, names...)
	for _, name := range []string{"s_" + strings.Repeat("n", 60) + "2999", "s_" + strings.Repeat("n", 53) + "_" + tail("s", names[2999])} {
		require.Equal(t, "s "+names[2999], outcome(r.ResolveTool(name)))
		require.Less(t, testing.AllocsPerRun(10, func() { _, _ = r.ResolveTool(name) }), 40.0)
	}
}

func TestOwnToolsWithLongNamesAreCut(t *testing.T) {
	r := spelled(24, "s", "catalog")
	require.NoError(t, r.AddTool(LocalTool{Definition: []byte(`{"name":"catalog_resource_templates"}`), Call: noCall}))
	cut := "catalog_resourc_" + tail(Local, "catalog_resource_templates")
	require.Contains(t, listed(r.Load(), Tool), cut)
	for _, name := range []string{cut, "catalog_resource_templates"} {
		got, err := r.ResolveTool(name)
		require.NoError(t, err)
		require.NotNil(t, got.Local.Tool)
	}
	set(r, "catalog", Tool, strings.TrimPrefix(cut, "catalog_"))
	require.Equal(t, 1, strings.Count(strings.Join(listed(r.Load(), Tool), " "), cut))
}
