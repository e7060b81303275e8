package tui

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/registry"
)

func TestGoldenScreenOfAServerWhoseListsAreRemembered(t *testing.T) {
	t.Parallel()
	r := office(t, 120, 40, plainEnv)
	r.at("github", registry.ServerState{
		State: registry.StateConnecting, Transport: "stdio", Listed: true, Stale: true, Remembered: r.clock.now().UTC(),
	})
	r.keys("1 / g i t h u b enter")
	golden(t, "servers-remembered-120x40", r.screen())
	require.NotContains(t, r.keys("esc 2").line("github_search"), "stale", "a call of it waits for the server")
}

func TestGoldenScreenOfServersThatSleepOrAreKeptFromIt(t *testing.T) {
	t.Parallel()
	r := office(t, 120, 40, plainEnv)
	r.at("github", registry.ServerState{State: registry.StateSleeping, Transport: "stdio", Listed: true})
	r.at("files", registry.ServerState{State: registry.StateReady, Transport: "stdio", Listed: true, Held: "2 subscriptions"})
	r.keys("1 / s e r v e r : f i l e s enter")
	golden(t, "servers-held-120x40", r.screen())
	r.keys("esc / g i t h u b enter")
	golden(t, "servers-sleeping-120x40", r.screen())
	r.keys("enter")
	require.Contains(t, r.backend.acts, "wake github")
	require.Contains(t, r.changed(registry.Servers).beat(time.Second).screen(), "● 2 up  ○ 1 asleep  ! 1 down")
}
