package tui

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/registry"
)

func TestAScreenOpensOnTheFirstServerThatFailed(t *testing.T) {
	t.Parallel()
	fails := func(r *rig, server string, state registry.State) *rig {
		r.reg.SetState(server, registry.ServerState{State: state, LastError: "no such program"})
		return r.changed(registry.Servers)
	}
	for _, c := range []struct {
		name    string
		before  func(r *rig)
		state   registry.State
		servers bool
	}{
		{"it failed", func(*rig) {}, registry.StateFailed, true},
		{"it needs a login", func(*rig) {}, registry.StateNeedsLogin, true},
		{"it is tried again", func(*rig) {}, registry.StateRetrying, false},
		{"the user has pressed something", func(r *rig) { r.keys("j") }, registry.StateFailed, false},
		{"the screen is not new", func(r *rig) { r.clock.advance(time.Minute) }, registry.StateFailed, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			clock := &fakeClock{at: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}
			r := rigOver(t, registry.New(registry.Options{Servers: []string{"files", "github", "weather"}, Now: clock.now}), clock, 120, 40, plainEnv)
			r.app.Touched = false
			clear(r.app.UsedPanes)
			r.ready("files").ready("github").changed(registry.AllChanges)
			c.before(r)
			fails(r, "weather", c.state)
			if !c.servers {
				require.Contains(t, r.screen(), "[4 Resources")
				return
			}
			require.Contains(t, r.screen(), "[1 Servers")
			require.Contains(t, r.line("│>"), "weather")
			r.keys("4")
			fails(r, "github", c.state)
			require.Contains(t, r.screen(), "[4 Resources", "once")
		})
	}
}

func TestTheCursorOfANewScreenIsOnWhatCanBeUsed(t *testing.T) {
	t.Parallel()
	clock := &fakeClock{at: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}
	r := rigOver(t, registry.New(registry.Options{Servers: []string{"a", "b"}, Now: clock.now}), clock, 120, 40, plainEnv)
	r.app.Touched = false
	clear(r.app.UsedPanes)
	r.ready("a").ready("b")
	r.backend.lacks[" a_one"] = "you"
	r.list("a", registry.Tool, `{"name":"one"}`)
	r.list("b", registry.Tool, `{"name":"two"}`)
	r.changed(registry.AllChanges).keys("2")
	require.Contains(t, r.line("│>"), "b_two")
}

// What leads to a list does not count as its use, nor does the way to a server that failed.
func TestTheCursorOfAListIsOnWhatCanBeUsedHoweverOneCameThere(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, keys, want string }{
		{"nobody has pressed anything", "", "x:a"},
		{"the way there", "1 4", "x:a"},
		{"its own key", "4", "x:a"},
		{"used", "4 j k", "goblin://servers"},
		{"used, then left", "4 j k 1 4", "goblin://servers"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, 120, 40, "alpha", "broken").ready("alpha")
			r.app.Touched = false
			clear(r.app.UsedPanes)
			require.NoError(t, r.reg.AddResource(registry.LocalResource{URI: "goblin://servers", Name: "servers", Read: func(context.Context) (string, error) { return "[]", nil }}))
			r.changed(registry.AllChanges).keys(c.keys)
			r.reg.SetState("broken", registry.ServerState{State: registry.StateFailed, LastError: "no such program"})
			r.changed(registry.Servers)
			r.list("alpha", registry.Resource, `{"uri":"x:a","name":"a"}`)
			require.Contains(t, r.keys("4").line("> "), c.want)
		})
	}
}
