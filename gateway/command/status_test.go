package command

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/cli"
	"goblin/gateway/daemon"
	"goblin/gateway/downstream"
	"goblin/registry"
	"goblin/registry/termtext"
)

func TestWithoutADaemonItsCommandsAreCode4(t *testing.T) {
	for _, args := range [][]string{{"status"}, {"stop"}, {"restart", "a"}} {
		got := try{}.run(t, args...)
		require.Equal(t, cli.CodeConnect, got.code, "%v", args)
		require.Regexp(t, `^goblin: no daemon is running for .*goblin\.yaml; start one with "goblin serve --config .*goblin\.yaml'?", or connect a client\n$`, got.err)
	}
}

func TestStatusTellsScreensFromClients(t *testing.T) {
	var out bytes.Buffer
	a := &App{App: &cli.App{}}
	since := time.Now()
	editor := daemon.Session{ID: "1", Transport: "socket", Client: "editor", Since: since}
	watch := daemon.Session{ID: "2", Transport: downstream.ScreenTransport, Client: "goblin", Since: since, Screen: daemon.Screen{Terminal: "xterm\x1b over SSH", Width: 120, Height: 35}}
	out.WriteString(a.statusText(daemon.Status{Sessions: []daemon.Session{editor, watch}}))
	require.Regexp(t, `(?s)CLIENT .*\neditor .*\n\nUI +SIZE +SINCE\nxterm\\x1b over SSH  120x35  \d+ s ago\n$`, out.String())
	require.NotRegexp(t, `(?m)^goblin`, out.String())
	out.Reset()
	script := daemon.Session{ID: "3", Transport: downstream.ScreenTransport, Client: "goblin lua", Since: since}
	watch.Owner = true
	out.WriteString(a.statusText(daemon.Status{Sessions: []daemon.Session{watch, script}}))
	require.Contains(t, out.String(), "over SSH (the daemon's own)")
	require.Contains(t, out.String(), "goblin lua")
	out.Reset()
	out.WriteString(a.statusText(daemon.Status{Sessions: []daemon.Session{watch}}))
	require.Contains(t, out.String(), "No clients connected.\n\nUI")
	out.Reset()
	out.WriteString(a.statusText(daemon.Status{Sessions: []daemon.Session{editor}}))
	require.NotContains(t, out.String(), "SIZE")
}

func TestStatusTellsSinceWhenTheDaemonRunsAndFromWhere(t *testing.T) {
	started := time.Now().Add(-time.Minute)
	clock := termtext.Clock(started, time.Now())
	for want, s := range map[string]daemon.Status{
		"\nstarted  " + clock + " from /dev/pts/3\n":          {Terminal: "/dev/pts/3"},
		"\nstarted  " + clock + " from /dev/pts/3 (closed)\n": {Terminal: "/dev/pts/3", TerminalGone: true},
		"\nstarted  " + clock + " in the background\n":        {},
	} {
		var out bytes.Buffer
		s.Started = started
		out.WriteString((&App{App: &cli.App{}}).statusText(s))
		require.Contains(t, out.String(), want)
	}
}

func TestStatusCountsRulesAndStoppedRequests(t *testing.T) {
	a := &App{App: &cli.App{}}
	require.NotContains(t, a.statusText(daemon.Status{}), "rules")
	state := &registry.RuleState{
		Rules:   []registry.RuleEntry{{Enabled: true, Left: -1, Hits: 3}, {Left: -1}, {Enabled: true, Left: 0, Hits: 2}},
		Stopped: make([]registry.StoppedRequest, 2),
	}
	require.Contains(t, a.statusText(daemon.Status{Rules: daemon.NewRules(state)}), "\nrules    3 rules (2 disabled), 5 matches, 2 requests wait for the user\n")
}
