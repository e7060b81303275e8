package registry

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFromSkipsEntriesOfTheMergedList(t *testing.T) {
	t.Parallel()
	// The servers' tools alternate, so there are several segments.
	r := catalog(t, Options{}, "a tool x\na tool z\nb tool y\na_b tool k\na_b tool m\nhidden tool h\nb resource u:1\nb resource u:2")
	r.SetVisible("hidden", false)
	s := r.Load()
	whole := slices.Collect(s.All(Tool))
	require.Len(t, whole, 5)
	for first := -1; first <= len(whole)+1; first++ {
		want := whole[min(max(first, 0), len(whole)):]
		require.Equal(t, want, append([]*Entry{}, slices.Collect(s.AllFrom(Tool, first))...), first)
	}
	require.Equal(t, []string{"mcp://b/u:2"}, listedOf(slices.Collect(s.ServerFrom("b", Resource, 1))))
	require.Equal(t, 2, s.ServerCount("b", Resource))
	for _, server := range []string{"hidden", "nobody"} {
		require.Zero(t, s.ServerCount(server, Tool))
		require.Empty(t, slices.Collect(s.ServerFrom(server, Tool, 0)))
	}
}

func TestNamedFindsWhatAServerCallsSo(t *testing.T) {
	t.Parallel()
	r := catalog(t, Options{}, "a tool x\nb tool x\nb prompt p\nhidden tool h")
	r.SetVisible("hidden", false)
	s := r.Load()
	require.Equal(t, "b_x", s.ByServerName("b", Tool, "x").Listed)
	for _, none := range [][2]string{{"b", "b_x"}, {"b", "p"}, {"hidden", "h"}, {"nobody", "x"}, {"", ""}} {
		require.Nil(t, s.ByServerName(none[0], Tool, none[1]), none)
	}
}

func listedOf(entries []*Entry) (names []string) {
	for _, e := range entries {
		names = append(names, e.Listed)
	}
	return names
}

func TestPartsAreEqualAsLongAsNothingChanged(t *testing.T) {
	r := catalog(t, Options{}, `
		a tool one
		a resource x://1
		a resource x://2
		b tool two
		c tool`)
	parts := func() []Part { return slices.Collect(r.Load().Parts()) }
	shown := func(ps []Part) (lines []string) {
		for _, p := range ps {
			line := p.Server() + " " + p.Kind().String()
			for i := range p.Len() {
				line += " " + p.At(i).Listed
			}
			lines = append(lines, line)
		}
		return lines
	}
	before := parts()
	require.Equal(t, []string{"a tool a_one", "b tool b_two", "a resource mcp://a/x://1 mcp://a/x://2"}, shown(before))

	set(r, "a", Resource, "x://1", "x://2")
	set(r, "c", Prompt, "three")
	after := parts()
	require.Equal(t, []Part{before[0], before[1], after[2], before[2]}, after)

	set(r, "a", Resource, "x://1", "x://3")
	require.NotEqual(t, before[2], parts()[3])
	require.Equal(t, before[:2], parts()[:2])

	r.SetVisible("a", false)
	require.Equal(t, []string{"b tool b_two", "c prompt c/three"}, shown(parts()))
	r.SetVisible("a", true)
	require.Equal(t, before[:2], parts()[:2])
	require.Zero(t, Part{}.Len())
}
