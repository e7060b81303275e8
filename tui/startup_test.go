package tui

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/registry"
	"goblin/tui/dialog"
	"goblin/tui/pane"
)

func TestTheCursorOfANewScreenIsOnWhatCanBeUsed(t *testing.T) {
	t.Parallel()
	clock := &fakeClock{current: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}
	r := newTestUIWith(t, registry.New(registry.Options{Servers: []string{"a", "b"}, Now: clock.now}), clock, 120, 40, plainEnv)
	clear(r.app.UsedPanes)
	r.setReady("a").setReady("b")
	r.backend.lacks[" a_one"] = "you"
	r.setList("a", registry.Tool, `{"name":"one"}`)
	r.setList("b", registry.Tool, `{"name":"two"}`)
	r.refresh(registry.AllChanges).keys("2")
	require.Contains(t, r.line("│>"), "b_two")
}

// Neither a jump to a list nor the way to a failed server counts as use of the list.
func TestTheCursorOfAListIsOnWhatCanBeUsedHoweverOneCameThere(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, keys, want string }{
		{"no key was pressed", "", "x:a"},
		{"the way there", "1 4", "x:a"},
		{"its own key", "4", "x:a"},
		{"used", "4 j k", "goblin://servers"},
		{"used, then left", "4 j k 1 4", "goblin://servers"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newTestUI(t, 120, 40, "alpha", "broken").setReady("alpha")
			clear(r.app.UsedPanes)
			require.NoError(t, r.reg.AddResource(registry.LocalResource{URI: "goblin://servers", Name: "servers", Read: func(context.Context) (string, error) { return "[]", nil }}))
			r.refresh(registry.AllChanges).keys(c.keys)
			r.reg.SetState("broken", registry.ServerState{State: registry.StateFailed, LastError: "no such program"})
			r.refresh(registry.Servers)
			r.setList("alpha", registry.Resource, `{"uri":"x:a","name":"a"}`)
			require.Contains(t, r.keys("4").line("> "), c.want)
		})
	}
}

// A slow list shows only Goblin's own entries for a while.
func TestTheCursorStartsOnWhatAServerOffers(t *testing.T) {
	t.Parallel()
	r := newTestUI(t, 120, 40, "alpha").setReady("alpha")
	clear(r.app.UsedPanes)
	require.NoError(t, r.reg.AddResource(registry.LocalResource{URI: "goblin://servers", Name: "servers", Read: func(context.Context) (string, error) { return "[]", nil }}))
	r.refresh(registry.AllChanges)
	require.Contains(t, r.line("> "), "goblin://servers")
	r.setList("alpha", registry.Resource, `{"uri":"x:a","name":"a"}`)
	require.Contains(t, r.line("> "), "x:a")
}

func TestAnOwnConfigOpensOnHome(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		daemon  Daemon
		servers []string
		pane    int
	}{
		{Daemon{Config: "/etc/goblin/work.yaml"}, []string{"files"}, pane.PaneHome},
		{Daemon{Config: "/etc/goblin/empty.yaml"}, nil, pane.PaneServers},
		{Daemon{Config: "demo", Demo: true}, []string{"files"}, pane.PaneResources},
	} {
		clock := &fakeClock{current: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}
		reg := registry.New(registry.Options{Servers: c.servers, Now: clock.now})
		term := &fakeTerminal{w: 80, h: 24, env: plainEnv, never: make(chan struct{})}
		a := newApp(t.Context(), Options{Registry: reg, Now: clock.now, Logger: slog.New(slog.DiscardHandler), Daemon: c.daemon}, dialog.NewQuestions(), newBackend(), term)
		require.Equal(t, c.pane, a.Open, c.daemon.Config)
	}
}
