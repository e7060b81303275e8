package tui

import (
	"testing"

	"goblin/registry"
)

func TestGoldenScreenOfAServerWhoseListsAreRemembered(t *testing.T) {
	r := office(t, 120, 40, plainEnv)
	r.at("github", registry.ServerState{
		State: registry.StateConnecting, Transport: "stdio", Listed: true, Stale: true, Remembered: r.clock.now().UTC(),
	})
	r.keys("1 / g i t h u b enter")
	golden(t, "servers-remembered-120x40", r.screen())
}
