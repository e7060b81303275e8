package tui

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/registry"
)

// Goblin's own tools are listed before all others, once they are needed.
func TestOwnToolsThatComeAreNoNewsOfOtherTools(t *testing.T) {
	t.Parallel()
	r := newRig(t, 120, 40, "alpha").list("alpha", registry.Tool, `{"name":"a","inputSchema":{"type":"object"}}`, `{"name":"b","inputSchema":{"type":"object"}}`)
	r.keys("4")
	require.NoError(t, r.reg.AddTool(registry.LocalTool{
		Definition: []byte(`{"name":"search_tools","inputSchema":{"type":"object"}}`),
		Call:       func(context.Context, []byte) ([]byte, error) { return []byte("{}"), nil },
	}))
	r.changed(registry.AllChanges)
	require.Contains(t, r.line("1 Servers"), "2 Tools 3  3 Prompts", "nothing is new of those")

	r.list("alpha", registry.Tool, `{"name":"a","inputSchema":{"type":"object"}}`)
	require.Contains(t, r.line("1 Servers"), "2 Tools 2 Δ1", "one has gone")
}

// A list that is long in coming has Goblin's own things first for a while.
func TestTheCursorStartsOnWhatAServerOffers(t *testing.T) {
	t.Parallel()
	r := newRig(t, 120, 40, "alpha").ready("alpha")
	r.app.Touched = false
	clear(r.app.UsedPanes)
	require.NoError(t, r.reg.AddResource(registry.LocalResource{URI: "goblin://servers", Name: "servers", Read: func(context.Context) (string, error) { return "[]", nil }}))
	r.changed(registry.AllChanges)
	require.Contains(t, r.line("> "), "goblin://servers")
	r.list("alpha", registry.Resource, `{"uri":"x:a","name":"a"}`)
	require.Contains(t, r.line("> "), "x:a")
}
