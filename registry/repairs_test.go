package registry

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/registry/definition"
)

func TestRepairedDefinitionsAreUnderOverridesAndKeepTheServersForPins(t *testing.T) {
	t.Parallel()
	title, label := "Mine", "Label"
	r := New(Options{Servers: []string{"s"}, Repair: true, Overrides: map[string]*definition.Set{"s": {
		Tools:     map[string]*definition.Override{"odd": {Title: &title}},
		Resources: map[string]*definition.Override{"x:a/b": {Title: &title}},
	}}})
	odd := `{"name":"odd","description":null,"outputSchema":{"type":"array"}}`
	var pinned []Definition
	r.SetApprovedList("s", Tool, [][]byte{[]byte(odd), []byte(`{"name":"fine","inputSchema":{"type":"object"}}`)}, func(all []Definition) []bool {
		pinned = all
		return []bool{true, true}
	})
	require.Equal(t, odd, string(pinned[1].JSON))
	e := r.Load().ByServerName("s", Tool, "odd")
	require.Equal(t, odd, string(e.Original))
	require.JSONEq(t, `{"name":"s_odd","title":"Mine","inputSchema":{"type":"object"},"outputSchema":{"type":"array"}}`, string(e.JSON()))
	require.JSONEq(t, `{"name":"s_odd","title":"Mine","inputSchema":{"type":"object"}}`, string(e.LegacyJSON()))

	page, err := r.Load().LegacyPage(Tool, "")
	require.NoError(t, err)
	require.Equal(t, `{"name":"s_fine","inputSchema":{"type":"object"}},`+string(e.LegacyJSON()), string(bytes.Join(page.Chunks, nil)))

	r.SetList("s", Resource, [][]byte{[]byte(`{"uri":"x:a/b","mimeType":null}`)})
	profile := r.Load().Narrow(&chosen{servers: map[string]bool{"s": true}, overrides: map[string]*definition.Set{"s": {Resources: map[string]*definition.Override{"x:a/b": {Label: label}}}}}, nil)
	require.JSONEq(t, `{"uri":"mcp://s/x:a/b","name":"Label","title":"Mine"}`, string(profile.ByServerName("s", Resource, "x:a/b").JSON()))

	s, _ := r.State("s")
	require.Equal(t, 2, s.Repairs.Changed)
	r.SetState("s", ServerState{State: StateDisabled})
	s, _ = r.State("s")
	require.Zero(t, s.Repairs)
}
