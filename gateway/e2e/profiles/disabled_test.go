//go:build e2e

package profiles

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// listed waits until a client's lists contain or lack a name, after a notification.
func listed(c *e2e.Client, list, name string, there bool) {
	c.T.Helper()
	c.WaitNote("notifications/"+list+"/list_changed", nil)
	c.WaitListed(list, name, there)
	c.Forget()
}

func TestWhatIsTurnedOffDoesNotExistUntilItIsTurnedOn(t *testing.T) {
	t.Parallel()
	w, _, _, _ := worlds(t)
	plain := ways()["flag"](w, "")
	some := ways()["flag"](w, "part")
	plain.WaitListed("tools", "seen_keep", true)
	some.WaitListed("tools", "seen_keep", true)
	for _, c := range []*e2e.Client{plain, some} {
		c.Names("prompts")
		c.Names("resources")
		c.Settle()
		c.Forget()
	}
	own := e2e.In("seen", "file:///pub/a")

	// For all clients.
	require.Equal(t, "Disabled for all clients: seen_keep.\n", w.Succeeds("tools", "off", "seen_keep"))
	listed(plain, "tools", "seen_keep", false)
	listed(some, "tools", "seen_keep", false)
	for _, name := range []string{"seen_keep", "seen/keep", "keep"} {
		require.Equal(t, "TOOL_NOT_FOUND", some.Fault("tools/call", e2e.Obj{"name": name}).Kind(), name)
	}
	require.Equal(t, "TOOL_NOT_FOUND", plain.Fault("tools/call", e2e.Obj{"name": "seen_keep"}).Kind())
	require.NotContains(t, plain.CallText("search_tools", e2e.Obj{"query": "weigh apples"}), "seen_keep")
	require.Equal(t, "Already disabled: seen_keep.\n", w.Succeeds("tools", "off", "seen/keep"))
	require.Contains(t, w.Succeeds("call", "seen_keep"), "seen:keep", "the user's own commands have it")
	require.Regexp(t, `(?m)^seen_keep +seen +disabled +\S.* ago +disabled for all clients$`, w.Succeeds("tools", "list"))

	// A resource is disabled in any spelling of its URI, also if a template matches it.
	require.Contains(t, w.Succeeds("resources", "off", own), own)
	listed(plain, "resources", own, false)
	for _, uri := range []string{"file:///pub/a", "file:///pub/%61", "file:///pub/./a"} {
		require.Equal(t, "RESOURCE_NOT_FOUND", plain.Fault("resources/read", e2e.Obj{"uri": e2e.In("seen", uri)}).Kind(), uri)
	}
	require.NotEmpty(t, plain.ReadText(e2e.In("seen", "file:///pub/other")))

	// It persists when the daemon restarts.
	w.Succeeds("stop")
	e2e.Eventually(t, "the next daemon", func() bool { return strings.Contains(w.Run("status").Stdout, "seen") })
	later := ways()["flag"](w, "")
	later.WaitListed("tools", "seen_gone", true)
	require.NotContains(t, later.Names("tools"), "seen_keep")

	require.Equal(t, "Enabled for all clients: seen_keep.\n", w.Succeeds("tools", "on", "seen_keep"))
	later.WaitListed("tools", "seen_keep", true)
	require.Contains(t, later.CallText("seen_keep", nil), "seen:keep")
}

func TestWhatIsOffForAProfileIsSeenByOthers(t *testing.T) {
	t.Parallel()
	w, _, _, _ := worlds(t)
	plain := ways()["flag"](w, "")
	some := ways()["flag"](w, "part")
	plain.WaitListed("tools", "seen_keep", true)
	some.WaitListed("tools", "seen_keep", true)
	some.Settle()
	plain.Settle()
	some.Forget()
	plain.Forget()
	require.Equal(t, "Disabled for clients of profile \"part\": seen_keep.\n", w.Succeeds("tools", "off", "--profile", "part", "seen_k*"))
	listed(some, "tools", "seen_keep", false)
	require.Equal(t, "TOOL_NOT_FOUND", some.Fault("tools/call", e2e.Obj{"name": "seen_keep"}).Kind())
	require.Contains(t, plain.CallText("seen_keep", nil), "seen:keep")
	plain.Quiet()
	require.Empty(t, plain.NotesOf("notifications/tools/list_changed"), "its lists have not changed")

	out := w.Run("tools", "off", "--profile", "part", "unseen_look")
	require.Equal(t, e2e.ExitNotFound, out.Code, "the profile does not have its server")
	require.NotContains(t, w.Succeeds("tools", "off", "--profile", "part", "*"), "unseen")
	w.Succeeds("tools", "on", "--profile", "part", "seen_gone")

	list := w.Succeeds("tools", "list", "--profile", "part")
	require.Regexp(t, `(?m)^seen_keep +seen +disabled .*disabled in profile "part"$`, list)
	require.Regexp(t, `(?m)^seen_gone +seen +hidden by profile +excluded by "tools" of profile "part"$`, list)
	require.Regexp(t, `(?m)^unseen_look +unseen +hidden by profile +server "unseen" is not in profile "part"$`, list)
	require.Regexp(t, `(?m)^seen_keep +seen +listed$`, w.Succeeds("tools", "list"), "other clients see it")

	w.Succeeds("tools", "off", "seen_keep")
	require.Contains(t, w.Succeeds("tools", "on", "--profile", "part", "seen_keep"), "Still disabled for all clients: seen_keep; enable them without --profile.")
	require.NotContains(t, some.Names("tools"), "seen_keep")
}

func TestWhatClientsOfAProfileLackHasTheNameThatTheySeeAndTheReason(t *testing.T) {
	t.Parallel()
	for _, shared := range []bool{true, false} {
		w := e2e.NewWorld(t)
		w.Backend("clock", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("time_in"), e2e.Tool("zones"), e2e.Tool("moon"), e2e.Tool("sun")}})
		w.Profiles = e2e.Obj{"lean": e2e.Obj{
			"tools": e2e.Obj{"deny": []string{"sun"}},
			"overrides": e2e.Obj{"clock": e2e.Obj{"tools": e2e.Obj{
				"time_in": e2e.Obj{"name": "now"},
				"moon":    e2e.Obj{"description": "${NO_SUCH_MOON}"},
				"sun":     e2e.Obj{"description": "${NO_SUCH_SUN}"},
			}}},
		}}
		w.AllowDaemon = shared
		if shared {
			ways()["flag"](w, "").WaitListed("tools", "clock_time_in", true)
		}
		w.Succeeds("tools", "off", "clock_now", "--profile", "lean")

		list := w.Succeeds("tools", "list", "--profile", "lean")
		require.Regexp(t, `(?m)^clock_now +clock +disabled .*disabled in profile "lean"$`, list)
		require.NotContains(t, list, "clock_time_in", "its clients have never seen that name")
		require.Regexp(t, `(?m)^clock_moon +clock +hidden by profile +\$\{NO_SUCH_MOON\} is not set, but "description" in overrides.clock.tools.moon of profile "lean" needs it; set it or write \$\{NO_SUCH_MOON:-default\}$`, list)
		require.Regexp(t, `(?m)^clock_sun +clock +hidden by profile +excluded by "tools" of profile "lean"$`, list, "also if the variable were set")
		require.Equal(t, "Enabled for clients of profile \"lean\": clock_now.\n", w.Succeeds("tools", "on", "clock_now", "--profile", "lean"))
	}
}

func TestWhatIsTurnedOffIsNamedAsClientsOfTheProfileSeeIt(t *testing.T) {
	t.Parallel()
	for _, shared := range []bool{true, false} {
		w := e2e.NewWorld(t)
		w.Backend("clock", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("time_in"), e2e.Tool("zones")}})
		w.Backend("atlas", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("zones")}})
		w.Profiles = e2e.Obj{"lean": e2e.Obj{
			"expose": "search", "servers": []string{"clock"}, "overrides": e2e.Obj{"clock": e2e.Obj{"tools": e2e.Obj{"time_in": e2e.Obj{"name": "now"}}}},
		}}
		w.AllowDaemon = shared
		if shared {
			ways()["flag"](w, "").WaitListed("tools", "clock_time_in", true)
		}
		require.Equal(t, "Disabled for clients of profile \"lean\": clock_now.\n", w.Succeeds("tools", "off", "clock_now", "--profile", "lean"))
		require.Equal(t, "Already disabled: clock_now.\n", w.Succeeds("tools", "off", "time_in", "--profile", "lean"))
		require.Equal(t, "Enabled for clients of profile \"lean\": clock_now.\n", w.Succeeds("tools", "on", "clock_n*", "--profile", "lean"))
		require.Equal(t, "Disabled for clients of profile \"lean\": clock_zones.\n", w.Succeeds("tools", "off", "zones", "--profile", "lean"), "the profile has one server")
		require.Equal(t, "Disabled for all clients: clock_time_in.\n", w.Succeeds("tools", "off", "time_in"))
		for _, c := range []struct {
			name string
			code int
			want string
		}{
			{"zones", e2e.ExitFailure, `2 servers have a tool "zones"; use "atlas/zones" or "clock/zones"`},
			{"clock_now", e2e.ExitNotFound, `no tool "clock_now"`},
			{"tme_in", e2e.ExitNotFound, `no tool "tme_in"; did you mean "clock_time_in"?`},
		} {
			out := w.Run("tools", "off", c.name)
			require.Equal(t, c.code, out.Code, out.Stderr)
			require.Contains(t, out.Stderr, c.want)
		}
		out := w.Run("tools", "off", "clock_nwo", "--profile", "lean")
		require.Contains(t, out.Stderr, `no tool "clock_nwo"; did you mean "clock_now"`)
	}
}

func TestMistakesAboutWhatIsOffAreToldOf(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("files", seen(), e2e.Obj{"tools": e2e.Obj{"deny": []string{"gone"}}})
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"tools"}, e2e.ExitUsage, "off, on or list"},
		{[]string{"tools", "off"}, e2e.ExitUsage, `as listed by "goblin list tools"`},
		{[]string{"tools", "off", "files_kep"}, e2e.ExitNotFound, `no tool "files_kep"; did you mean "files_keep"?`},
		{[]string{"tools", "off", "x", "--profile", "p"}, e2e.ExitNotFound, `no profile "p"; the config has no "profiles"`},
		{[]string{"tools", "list", "--profile", "p"}, e2e.ExitNotFound, `no profile "p"`},
	} {
		out := w.Run(c.args...)
		require.Equal(t, c.code, out.Code, "%q: %s", c.args, out.Stderr)
		require.Contains(t, out.Stderr, c.want)
	}
	require.Regexp(t, `(?m)^files/gone +files +filtered +excluded by "tools" of server "files"$`, w.Succeeds("tools", "list"))

	// A file of another version is not changed, and its last good copy is used.
	w.Succeeds("tools", "off", "files_keep")
	all, err := filepath.Glob(filepath.Join(w.Dir, "home", ".local", "state", "goblin", "off", "*.json"))
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.NoError(t, os.WriteFile(all[0], []byte("{\n\"version\": 2}"), 0o600))
	require.Contains(t, w.Run("validate").Stderr, all[0]+":2: warning: read disabled entries: version 2, expected 1: written by another version of Goblin; remove the file")
	c := w.Bridged()
	require.Empty(t, c.Names("tools"))
	require.Contains(t, w.Succeeds("status"), "read disabled entries")
	require.Contains(t, w.Run("tools", "off", "files_keep").Stderr, "version 2, expected 1")
	list := w.Run("tools", "list")
	require.Equal(t, e2e.ExitOK, list.Code)
	require.Contains(t, list.Stderr, "version 2, expected 1", "the reason why changes of the file are ignored is reported")
	require.NoError(t, os.WriteFile(w.Config, []byte("servers: ["), 0o600))
	e2e.Eventually(t, "both mistakes", func() bool {
		notice := w.Status().Notice
		return strings.Contains(notice, "config not reloaded") && strings.Contains(notice, "read disabled entries")
	})
	require.NoError(t, os.WriteFile(all[0], []byte(`{"version": 1, "off": [{"server": "files", "kind": "tool", "name": "gone"}]}`), 0o600))
	c.WaitListed("tools", "files_keep", true)
	e2e.Eventually(t, "the notice disappears", func() bool { return !strings.Contains(w.Status().Notice, "read disabled entries") })
	require.Contains(t, w.Status().Notice, "config not reloaded", "the notice about the config stays")
}

func TestAFileOfCountsOfAnotherVersionIsToldOf(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("files", seen())
	w.AllowDaemon = true
	c := ways()["flag"](w, "")
	require.Contains(t, c.CallText("files_keep", e2e.Obj{}), "files:keep")
	c.Close() // or its bridge starts the next daemon
	w.Succeeds("stop")
	all, err := filepath.Glob(filepath.Join(w.Dir, "home", ".local", "state", "goblin", "usage", "*.json"))
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.NotContains(t, w.Run("validate").Stderr, "counted")
	require.NoError(t, os.WriteFile(all[0], []byte("{\n\"version\": 2}"), 0o600))
	require.Contains(t, w.Run("validate").Stderr, all[0]+":2: warning: cannot read recorded usage: version 2 instead of 1: written by another version of Goblin; the next daemon moves the file aside")
	out := w.Run("usage")
	require.NotZero(t, out.Code)
	require.Contains(t, out.Stderr, "version 2")
}
