package registry

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

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
