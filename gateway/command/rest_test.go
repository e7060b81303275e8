package command

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/cli"
	"goblin/gateway/config"
	"goblin/gateway/daemon"
	"goblin/gateway/downstream"
	"goblin/registry/termtext"
)

func TestValidateTellsEveryMistake(t *testing.T) {
	const wrong = "servers:\n  a: {comand: x}\n  b: {command: [], url: 3}\nbogus: 1\n"
	got := try{config: wrong}.run(t, "validate")
	require.Equal(t, cli.CodeConfig, got.code)
	require.Empty(t, got.out)
	require.Regexp(t, `(?m)^goblin: .*goblin\.yaml:2: unknown key "comand".*did you mean "command"\?$`, got.err)
	require.Regexp(t, `(?m)goblin\.yaml:3: `, got.err)
	require.Regexp(t, `(?m)goblin\.yaml:4: .*bogus`, got.err)

	got = try{config: wrong}.run(t, "validate", "--json")
	require.Equal(t, cli.CodeConfig, got.code)
	require.Empty(t, got.err)
	report := decodeJSON(t, got.out).(map[string]any)
	require.Equal(t, false, report["valid"])
	require.GreaterOrEqual(t, len(report["errors"].([]any)), 3)
	require.EqualValues(t, 2, report["errors"].([]any)[0].(map[string]any)["line"])

	for _, args := range [][]string{{"list", "tools"}, {"call", "x"}, {"status"}, {"stop"}} {
		require.Equal(t, cli.CodeConfig, try{config: wrong}.run(t, args...).code, "%v", args)
	}
}

func TestValidateOfAGoodConfigIsShort(t *testing.T) {
	const good = "servers:\n  a: {command: x}\n  b: {command: \"${SURELY_NOT_SET}\"}\n  c: {url: \"http://127.0.0.1:1\", disabled: true}\ngateway: {listen: \"127.0.0.1:99\", auth_token: t0ken-t0ken}\n"
	got := try{config: good}.run(t, "validate")
	require.Zero(t, got.code)
	require.Contains(t, got.out, "is fine but for 1 warning: 3 servers.\n")
	require.Contains(t, got.out, "c       http   disabled\n")
	require.Contains(t, got.out, "HTTP is served at http://127.0.0.1:99/mcp.\n")
	require.Regexp(t, `(?m)goblin\.yaml:3: warning: .*SURELY_NOT_SET`, got.err)

	report := decodeJSON(t, try{config: good}.run(t, "validate", "--json").out).(map[string]any)
	require.Equal(t, true, report["valid"])
	require.Len(t, report["servers"], 3)
	require.Len(t, report["warnings"], 1)

	require.Equal(t, string(config.Schema()), try{}.run(t, "validate", "--schema").out)
}

func TestWithoutADaemonItsCommandsAreCode4(t *testing.T) {
	for _, args := range [][]string{{"status"}, {"stop"}, {"restart", "a"}} {
		got := try{}.run(t, args...)
		require.Equal(t, cli.CodeConnect, got.code, "%v", args)
		require.Regexp(t, `^goblin: no daemon is running for .*goblin\.yaml; start one with "goblin serve --config .*goblin\.yaml'?", or let a client do it\n$`, got.err)
	}
}

func TestStatusTellsScreensFromClients(t *testing.T) {
	var out bytes.Buffer
	a := &App{App: &cli.App{Out: &out}}
	since := time.Now()
	editor := daemon.Session{ID: "1", Transport: "socket", Client: "editor", Since: since}
	watch := daemon.Session{ID: "2", Transport: downstream.ScreenTransport, Client: "goblin", Since: since, Screen: daemon.Screen{Terminal: "xterm\x1b over SSH", Width: 120, Height: 35}}
	require.NoError(t, a.printStatus(daemon.Status{Sessions: []daemon.Session{editor, watch}}))
	require.Regexp(t, `(?s)CLIENT .*\neditor .*\n\nSCREEN +SIZE +SINCE\nxterm\\x1b over SSH  120x35  \d+ s ago\n$`, out.String())
	require.NotRegexp(t, `(?m)^goblin`, out.String())
	out.Reset()
	script := daemon.Session{ID: "3", Transport: downstream.ScreenTransport, Client: "goblin lua", Since: since}
	watch.Owner = true
	require.NoError(t, a.printStatus(daemon.Status{Sessions: []daemon.Session{watch, script}}))
	require.Contains(t, out.String(), "over SSH (the daemon's own)")
	require.Contains(t, out.String(), "goblin lua")
	out.Reset()
	require.NoError(t, a.printStatus(daemon.Status{Sessions: []daemon.Session{watch}}))
	require.Contains(t, out.String(), "No clients are connected.\n\nSCREEN")
	out.Reset()
	require.NoError(t, a.printStatus(daemon.Status{Sessions: []daemon.Session{editor}}))
	require.NotContains(t, out.String(), "SCREEN")
}

func TestStatusTellsSinceWhenTheDaemonRunsAndFromWhere(t *testing.T) {
	started := time.Now().Add(-time.Minute)
	clock := termtext.Clock(started, time.Now())
	for want, s := range map[string]daemon.Status{
		"\nstarted  " + clock + " from /dev/pts/3\n":                {Terminal: "/dev/pts/3"},
		"\nstarted  " + clock + " from /dev/pts/3, which is gone\n": {Terminal: "/dev/pts/3", TerminalGone: true},
		"\nstarted  " + clock + " without a terminal\n":             {},
	} {
		var out bytes.Buffer
		s.Started = started
		require.NoError(t, (&App{App: &cli.App{Out: &out}}).printStatus(s))
		require.Contains(t, out.String(), want)
	}
}

func TestVersion(t *testing.T) {
	require.Contains(t, try{}.run(t, "version").out, "goblin test (go1")
	require.Equal(t, "test", decodeJSON(t, try{}.run(t, "version", "--json").out).(map[string]any)["version"])
}

func TestEveryCommandIsExplained(t *testing.T) {
	all := (&App{}).Commands()
	for i := 0; i < len(all); i++ {
		c := all[i]
		require.NotEmpty(t, c.Short, c.Name())
		require.NotEmpty(t, c.Long, c.Name())
		if c.Hidden {
			continue // programs run it
		}
		require.NotEmpty(t, c.Example, c.Name())
		if all = append(all, c.Commands()...); !c.HasSubCommands() {
			require.NotNil(t, c.Flags().Lookup("json"), c.Name())
		}
		require.True(t, strings.HasPrefix(strings.TrimSpace(c.Example), "goblin "), c.Name())
	}
}

func TestSizesAreShort(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 999: "999 B", 1000: "1.0 kB", 12345: "12 kB", 999_600: "1.0 MB", 5_000_000_000: "5.0 GB"} {
		require.Equal(t, want, size(n))
	}
}
