package tui

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/registry"
	"goblin/registry/definition"
)

func TestADetailShowsTheOriginalBesideWhatClientsSee(t *testing.T) {
	t.Parallel()
	clock := &fakeClock{at: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}
	title := "New issue"
	reg := registry.New(registry.Options{Servers: []string{"github"}, Now: clock.now, Overrides: map[string]*definition.Set{"github": {
		Tools: map[string]*definition.Override{"create_issue": {
			Name: "new_issue", Title: &title, Arguments: []definition.Member{{Name: "owner", Value: []byte(`"acme"`)}},
		}},
	}}})
	r := rigOver(t, reg, clock, 120, 60, map[string]string{"TERM": "xterm-256color", "LANG": "C.UTF-8", "NO_COLOR": "1"})
	r.list("github", registry.Tool,
		`{"name":"create_issue","title":"Create issue","inputSchema":{"type":"object","properties":{"owner":{"type":"string"},"title":{"type":"string"}},"required":["owner","title"]}}`,
		`{"name":"close_issue","inputSchema":{"type":"object"}}`)
	r.keys("2 g j")
	require.Contains(t, r.screen(), "github_new_issue")
	require.NotContains(t, r.screen(), "github_create_issue")
	for _, text := range []string{
		"Overrides: - the server, + clients",
		`"acme" in each call, hidden from clients`,
		`-  "name": "create_issue"`, `+  "name": "github_new_issue"`,
		`-  "title": "Create issue"`, `+  "title": "New issue"`,
		`-      "owner": {`,
	} {
		require.Contains(t, r.screen(), text)
	}
	r.keys("k")
	require.Contains(t, r.screen(), "close_issue")
	require.NotContains(t, r.screen(), "Overrides:", "of what is as its server says")
}
