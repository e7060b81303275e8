package registry

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"goblin/registry/definition"

	"github.com/stretchr/testify/require"
)

func historyOf(r *Registry, from uint64) (lines []string) {
	for _, c := range r.ListChanges().Window(from, -1) {
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s %s %s %s", c.Server, c.Op, c.Kind, c.Name, strings.Join(c.What, ", "))))
	}
	return lines
}

func items(texts ...string) (all [][]byte) {
	for _, text := range texts {
		all = append(all, []byte(text))
	}
	return all
}

func TestListChangesCompareListsOfTheServer(t *testing.T) {
	const a, b = `{"name":"a","description":"1"}`, `{"name":"b"}`
	old := items(a, b)
	withhold := func(name string) func([]Definition) []bool {
		return func(all []Definition) (admitted []bool) {
			for _, d := range all {
				admitted = append(admitted, d.Name != name)
			}
			return admitted
		}
	}
	for name, test := range map[string]struct {
		do   func(r *Registry) // after the first list
		want []string
	}{
		"the same list":  {func(r *Registry) { r.SetList("s", Tool, old) }, nil},
		"an added tool":  {func(r *Registry) { r.SetList("s", Tool, items(a, b, `{"name":"c"}`)) }, []string{"s added tool c"}},
		"a removed tool": {func(r *Registry) { r.SetList("s", Tool, items(b)) }, []string{"s removed tool a"}},
		"a changed tool": {
			func(r *Registry) { r.SetList("s", Tool, items(`{"name":"a","description":"2"}`, b)) },
			[]string{"s changed tool a description changed"},
		},
		"another spelling": {func(r *Registry) { r.SetList("s", Tool, items(`{"description":"1","name":"a"}`, b)) }, nil},
		"a withheld tool": {
			func(r *Registry) { r.SetApprovedList("s", Tool, items(a, b, `{"name":"c"}`), withhold("c")) },
			[]string{"s added tool c"},
		},
		"an approved tool": {func(r *Registry) {
			r.SetApprovedList("s", Tool, items(a, b), withhold("a"))
			r.SetList("s", Tool, old)
		}, nil},
		"all tools withheld": {func(r *Registry) {
			r.SetApprovedList("s", Tool, items(a), func(all []Definition) []bool { return make([]bool, len(all)) })
		}, []string{"s removed tool b"}},
		"the first list of another kind": {func(r *Registry) { r.SetList("s", Prompt, items(b)) }, nil},
		"the first prompts of a listed server": {func(r *Registry) {
			r.SetState("s", ServerState{State: StateReady, Listed: true})
			r.SetList("s", Prompt, items(b))
		}, []string{"s added prompt b"}},
		"a new filter": {func(r *Registry) {
			r.Retain("s", func(_ Kind, name string) bool { return name != "a" })
			r.SetList("s", Tool, items(b))
		}, nil},
		"an override": {func(r *Registry) {
			other := "other"
			r.SetServers([]string{"s"}, map[string]*definition.Set{"s": {Tools: map[string]*definition.Override{"a": {Name: "z", Description: &other}}}})
			r.SetList("s", Tool, old)
		}, nil},
		"disabled and enabled": {func(r *Registry) {
			r.SetState("s", ServerState{State: StateDisabled})
			r.SetList("s", Tool, items(a))
			r.SetList("s", Tool, old)
		}, []string{"s added tool b"}},
		"removed and added": {func(r *Registry) {
			r.SetServers(nil, nil)
			r.SetServers([]string{"s"}, nil)
			r.SetList("s", Tool, items(a))
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := New(Options{Servers: []string{"s"}})
			r.SetList("s", Tool, old)
			test.do(r)
			require.Equal(t, test.want, historyOf(r, 0))
		})
	}
}

func TestListChangesHaveTheOwnDefinitions(t *testing.T) {
	r := New(Options{Servers: []string{"s"}})
	long := `{"uri":"x:2","description":"` + strings.Repeat("x", maxDefinition) + `"}`
	r.SetList("s", Resource, items(`{"uri":"x:1","size":1}`))
	r.SetList("s", Resource, items(`{"uri":"x:1","size":2}`, long))
	got := r.ListChanges().Window(0, -1)
	require.Len(t, got, 2)
	require.Equal(t, `{"uri":"x:1","size":1}{"uri":"x:1","size":2}`, string(got[0].Before)+string(got[0].After))
	require.Nil(t, got[1].After, "it is larger than the limit")
}

func TestAFloodOfListChangesIsSummarized(t *testing.T) {
	now := time.Unix(1e9, 0)
	r := New(Options{Servers: []string{"s", "t"}, Now: func() time.Time { return now }})
	list := func(server string, round, n int) {
		var all [][]byte
		for i := range n {
			all = append(all, fmt.Appendf(nil, `{"name":"t%d","title":"%d"}`, i, round))
		}
		r.SetList(server, Tool, all)
	}
	list("t", 0, 1)
	list("t", 1, 1)
	for round := range 50 {
		list("s", round, 1_000)
	}
	got := historyOf(r, 0)
	require.Len(t, got, 1+changeBurst+49, "one summary per list")
	require.Equal(t, "t changed tool t0 title changed", got[0])
	require.Equal(t, "s changed tool  900 further changes: 900 changed", got[1+changeBurst])
	require.Equal(t, 1000, r.ListChanges().Window(0, -1)[len(got)-1].Count)
	from := r.ListChanges().Stats().Next
	now = now.Add(2 * changePause)
	list("s", 99, 3)
	require.Equal(t, []string{"s changed tool t0 title changed", "s changed tool t1 title changed"}, historyOf(r, from)[:2])
	require.Contains(t, historyOf(r, from)[2], "998 further changes: 997 removed, 1 changed")
}

func TestTheJournalOfListChangesIsBounded(t *testing.T) {
	r := New(Options{Servers: []string{"a", "b"}})
	big := make([]byte, maxDefinition)
	r.ListChanges().Append(ListChange{Server: "a", Name: "kept"})
	for range maxListChanges + 10 {
		r.ListChanges().Append(ListChange{Server: "b", Name: "x", After: big})
	}
	all := r.ListChanges().Window(0, -1)
	require.Less(t, len(all), maxListChangeBytes/maxDefinition+2)
	require.True(t, slices.ContainsFunc(all, func(c ListChange) bool { return c.Name == "kept" }), "the largest server loses")
	require.NotZero(t, r.ListChanges().Stats().Dropped)
}

// Budget: 1.3 times the same without a journal, since a server can cause it several times
// per second.
func BenchmarkChangedList(b *testing.B) {
	r := New(Options{Servers: []string{"s"}})
	var lists [2][][]byte
	for i := range 100_000 {
		for round := range lists {
			lists[round] = append(lists[round], fmt.Appendf(nil, `{"name":"tool_%d","description":"%d","inputSchema":{"type":"object","properties":{"a":{"type":"string"}}}}`, i, round))
		}
	}
	r.SetList("s", Tool, lists[0])
	b.ResetTimer()
	for i := range b.N {
		r.SetList("s", Tool, lists[(i+1)%2])
	}
}
