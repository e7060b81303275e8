package tui

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/registry"
	"goblin/registry/definition"
	"goblin/tui/pane"
)

// Goblin's own tools are listed before all others once they are needed.
func TestOwnToolsThatComeAreNoNewsOfOtherTools(t *testing.T) {
	t.Parallel()
	r := newTestUI(t, 120, 40, "alpha").setList("alpha", registry.Tool, `{"name":"a","inputSchema":{"type":"object"}}`, `{"name":"b","inputSchema":{"type":"object"}}`)
	r.keys("4")
	require.NoError(t, r.reg.AddTool(registry.LocalTool{
		Definition: []byte(`{"name":"search_tools","inputSchema":{"type":"object"}}`),
		Call:       func(context.Context, []byte) ([]byte, error) { return []byte("{}"), nil },
	}))
	r.refresh(registry.AllChanges)
	require.Contains(t, r.line("1 Servers"), "2 Tools 3  3 Prompts", "the other tools must not count as new")

	r.setList("alpha", registry.Tool, `{"name":"a","inputSchema":{"type":"object"}}`)
	require.Contains(t, r.line("1 Servers"), "2 Tools 2 Δ1", "one was removed")
}

func TestGoblinsOwnToolsAreOneRow(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 80, 24, plainEnv)
	for _, name := range []string{"catalog_tools", "search_resources"} {
		r.backend.lacks[" "+name] = "config"
		require.NoError(t, r.reg.AddTool(registry.LocalTool{
			Definition: []byte(`{"name":"` + name + `","inputSchema":{"type":"object"}}`),
			Call:       func(context.Context, []byte) ([]byte, error) { return []byte("{}"), nil },
		}))
	}
	r.refresh(registry.AllChanges).keys("2").tick(time.Second)
	require.Contains(t, r.screen(), "[2 Tools 4]")
	clear(r.backend.lacks)
	r.backend.ownTools = 2
	r.tick(time.Second)
	require.Contains(t, r.screen(), "[2 Tools 6]", "clients see them since then")
	own, first := strings.Index(r.screen(), "2 Goblin tools"), strings.Index(r.screen(), "github_")
	require.Less(t, own, first)
	r.keys("o o")
	own, first = strings.Index(r.screen(), "2 Goblin tools"), strings.Index(r.screen(), "weather_")
	require.NotEqual(t, -1, own)
	require.Less(t, own, first, "it is first in every order")
	r.reg.SetUnapproved("github", []registry.UnapprovedTool{{Server: "github", Name: "create_issue", Offered: []byte(`{}`)}})
	r.refresh(registry.Pins)
	require.Contains(t, r.screen(), "[2 Tools 6 !1]", "it does not count beside changed tools")
	r.reg.SetUnapproved("github", nil)
	r.refresh(registry.Pins)
	r.run(r.app.Panes[pane.PaneTools].Rows().Sort("listed name"))
	require.Contains(t, r.line("2 Goblin tools"), "▸")
	require.NotContains(t, r.screen(), "catalog_tools  ")
	r.keys("/ catalog enter")
	require.Contains(t, r.screen(), "Tools 1/6")
	require.Contains(t, r.screen(), "1 of 6")
	require.NotContains(t, r.keys("f").screen(), "(none)", "the row of Goblin's tools must not be counted")
	r.keys("esc")
	require.Contains(t, r.line("> "), "catalog_tools")
	r.keys("esc g enter")
	require.Contains(t, r.line("Goblin tool"), "▾")
	require.Contains(t, r.screen(), "search_resources")
	r.reg.SetUnapproved("github", []registry.UnapprovedTool{{Server: "github", Name: "create_issue", Offered: []byte(`{}`)}})
	r.refresh(registry.Pins)
	require.Less(t, strings.Index(r.screen(), "search_resources"), strings.Index(r.screen(), "! github_create_issue"), "parts are below their head")
	r.reg.SetUnapproved("github", nil)
	r.refresh(registry.Pins).keys("4 2")
	require.Contains(t, r.screen(), "search_resources", "it stays so")
	r.keys("g right")
	require.NotContains(t, r.screen(), "  search_resources ")
	r.keys("c x y")
	require.Contains(t, r.screen(), "no tool selected")
	require.Empty(t, r.backend.acts)
	r.run(r.app.GoToListed(registry.Tool, "search_resources"))
	require.Contains(t, r.line("> "), "search_resources", "a jump to one must unfold them")
}

func TestADetailShowsTheOriginalBesideWhatClientsSee(t *testing.T) {
	t.Parallel()
	clock := &fakeClock{current: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}
	title := "New issue"
	reg := registry.New(registry.Options{Servers: []string{"github"}, Now: clock.now, Overrides: map[string]*definition.Set{"github": {
		Tools: map[string]*definition.Override{"create_issue": {
			Name: "new_issue", Title: &title, Arguments: []definition.Member{{Name: "owner", Value: []byte(`"acme"`)}},
		}},
	}}})
	r := newTestUIWith(t, reg, clock, 120, 60, map[string]string{"TERM": "xterm-256color", "LANG": "C.UTF-8", "NO_COLOR": "1"})
	r.setList("github", registry.Tool,
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
	require.NotContains(t, r.screen(), "Overrides:", "an unchanged definition must show no overrides")
}

func TestDetailsShowHowDefinitionsWereChangedToSatisfyClients(t *testing.T) {
	t.Parallel()
	clock := &fakeClock{current: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}
	reg := registry.New(registry.Options{Servers: []string{"odd"}, Now: clock.now, Repair: true})
	r := newTestUIWith(t, reg, clock, 160, 60, map[string]string{"TERM": "xterm-256color", "LANG": "C.UTF-8", "NO_COLOR": "1"})
	r.setReady("odd")
	reg.SetList("odd", registry.Tool, [][]byte{[]byte(`{"name":"bare"}`), []byte(`{"name":"fine","inputSchema":{"type":"object"}}`), []byte(`{"title":"nameless"}`)})
	reg.SetList("odd", registry.Resource, [][]byte{[]byte(`{"uri":"x:a/b","mimeType":null,"name":"b"}`)})
	r.refresh(registry.Tools | registry.Resources | registry.Servers)
	r.keys("2 g")
	require.Contains(t, r.screen(), "changed to satisfy clients: inputSchema")
	r.keys("j")
	require.NotContains(t, r.screen(), "satisfy clients")
	r.keys("4 g")
	require.Contains(t, r.screen(), "changed to satisfy clients: mimeType")
	r.keys("1 g")
	for _, text := range []string{"2 changed to satisfy clients", "1 dropped", `bare inputSchema set to {"type":"object"}`, `entry 2 dropped: no "name"`} {
		require.Contains(t, r.screen(), text)
	}
}

func TestDescriptionsThatClientsCutAreMarked(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv)
	require.Len(t, r.reg.SetList("weather", registry.Tool, [][]byte{
		[]byte(`{"name":"forecast","description":"` + strings.Repeat("long ", 500) + `"}`), []byte(`{"name":"short","description":"fits"}`),
	}), 1)
	r.refresh(registry.Tools)
	r.keys("2 / weather_forecast enter")
	require.Contains(t, r.screen(), "the description has 2500 characters;")
	r.keys("esc esc / weather_short enter")
	require.Contains(t, r.screen(), "fits")
	require.NotContains(t, r.screen(), "characters,")
}
