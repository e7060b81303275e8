package tui

import (
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/registry"
)

func TestTheFooterOffersWhatTheRowCanDo(t *testing.T) {
	t.Parallel()
	r := office(t, 250, 60, plainEnv)
	set := func(server string, state registry.State) {
		s, _ := r.reg.State(server)
		s.State, s.LastError = state, map[bool]string{true: "it is gone"}[state == registry.StateFailed]
		r.at(server, s)
		r.changed(registry.Servers)
	}
	r.keys("2").text("/github").keys("enter")
	require.Contains(t, r.last(), "c call ")
	require.NotContains(t, r.last(), "r call again", "it was not called yet")
	require.NotContains(t, r.last(), "subscribe")
	set("github", registry.StateFailed)
	require.NotContains(t, r.last(), "c call", "its server has failed")
	set("github", registry.StateSleeping)
	require.Contains(t, r.last(), "c call", "that starts it")
	set("github", registry.StateReady)

	r.keys("3")
	require.Contains(t, r.last(), "c get")

	r.keys("4 t")
	require.Contains(t, r.last(), "c expand")
	require.Contains(t, r.last(), "t resources")
	r.keys("t")
	require.Contains(t, r.last(), "t templates")
	require.NotContains(t, r.last(), "c expand")

	r.keys("1").text("/github").keys("enter")
	require.Contains(t, r.last(), "enter open")
	require.Contains(t, r.last(), "x disable")
	require.Contains(t, r.last(), "r restart")
	for _, c := range []struct {
		state registry.State
		does  string
	}{{registry.StateSleeping, "enter start"}, {registry.StateFailed, "enter find out why"}, {registry.StateDisabled, "x enable"}} {
		set("github", c.state)
		require.Contains(t, r.last(), c.does, c.state)
	}
	require.NotContains(t, r.last(), "r restart", "it is disabled")
}

func TestTheFooterOfAnEmptyListOffersNothingForRows(t *testing.T) {
	t.Parallel()
	r := newRig(t, 200, 24, "files").keys("2")
	for _, useless := range []string{"open", "call", "filter", "copy", "off/on"} {
		require.NotContains(t, r.last(), useless)
	}
	require.Contains(t, r.last(), "? help")
}

func TestTheFooterOffersTheFieldsOfTheList(t *testing.T) {
	t.Parallel()
	r := office(t, 120, 40, plainEnv).keys("2 /")
	require.Contains(t, r.line("esc clear"), "server: name: fields")
	require.Contains(t, r.keys("esc 4 /").line("esc clear"), "mime: sub:")
}
