package tui

import (
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/registry"
)

func TestTheFooterOffersWhatTheRowCanDo(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 250, 60, plainEnv)
	set := func(server string, state registry.State) {
		s, _ := r.reg.State(server)
		s.State, s.LastError = state, map[bool]string{true: "it is gone"}[state == registry.StateFailed]
		r.setState(server, s)
		r.refresh(registry.Servers)
	}
	r.keys("2").typeText("/github").keys("enter")
	require.Contains(t, r.footer(), "c call ")
	require.Contains(t, r.footer(), "b break")
	require.NotContains(t, r.footer(), "r call again", "it was not called yet")
	require.NotContains(t, r.footer(), "subscribe")
	set("github", registry.StateFailed)
	require.NotContains(t, r.footer(), "c call", "its server has failed")
	set("github", registry.StateSleeping)
	require.Contains(t, r.footer(), "c call", "a call starts the server")
	set("github", registry.StateReady)

	r.keys("3")
	require.Contains(t, r.footer(), "c get")

	r.keys("4 t")
	require.Contains(t, r.footer(), "c expand")
	require.Contains(t, r.footer(), "t resources")
	r.keys("t")
	require.Contains(t, r.footer(), "t templates")
	require.NotContains(t, r.footer(), "c expand")

	r.keys("1").typeText("/github").keys("enter")
	require.Contains(t, r.footer(), "enter open")
	require.Contains(t, r.footer(), "x disable")
	require.Contains(t, r.footer(), "r restart")
	require.Contains(t, r.footer(), "C-e edit  a add server")
	for _, c := range []struct {
		state registry.State
		does  string
	}{{registry.StateSleeping, "enter start"}, {registry.StateFailed, "enter diagnose"}, {registry.StateDisabled, "x enable"}} {
		set("github", c.state)
		require.Contains(t, r.footer(), c.does, c.state)
	}
	require.NotContains(t, r.footer(), "r restart", "it is disabled")
}

func TestTheFooterOfAnEmptyListOffersNothingForRows(t *testing.T) {
	t.Parallel()
	r := newTestUI(t, 200, 24, "files").keys("2")
	for _, useless := range []string{"open", "call", "filter", "copy", "off/on"} {
		require.NotContains(t, r.footer(), useless)
	}
	require.Contains(t, r.footer(), "? help")
}

func TestTheFooterOffersTheFieldsOfTheList(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv).keys("2 /")
	require.Contains(t, r.line("esc clear"), "server: name: changed: fields")
	require.Contains(t, r.keys("esc 4 /").line("esc clear"), "mime: sub:")
}
