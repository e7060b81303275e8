package e2e_test

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

func TestAnEditedConfigAddsAndRemovesServersWithoutAWordToTheOthers(t *testing.T) {
	t.Parallel()
	for _, front := range e2e.Variants(1, "a daemon", "standalone") {
		t.Run(front, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			connect := w.Join
			if front == "standalone" {
				connect = w.Standalone
			}
			fs := w.Backend("filesystem", e2e.Filesystem())
			old := w.Backend("old", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("gone")}, "resources": []e2e.Obj{e2e.Resource("x:old")}})
			c := connect()
			c.Ok("resources/subscribe", e2e.Obj{"uri": e2e.In("filesystem", e2e.AppLog)})
			c.Ok("resources/subscribe", e2e.Obj{"uri": e2e.In("old", "x:old")})
			c.WaitListed("tools", "old_gone", true)
			var late *e2e.Backend
			w.Edit(func() {
				late = w.Backend("late", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("here")}})
				w.Drop(old)
			})
			c.WaitNote("notifications/tools/list_changed", nil)
			c.WaitListed("tools", "late_here", true)
			c.WaitListed("tools", "old_gone", false)
			old.WaitGone()
			e := c.Fault("tools/call", e2e.Obj{"name": "old_gone", "arguments": e2e.Obj{}})
			require.Equal(t, "TOOL_NOT_FOUND", e.Kind())
			c.CallText("late_here", e2e.Obj{})
			late.WaitReceived("tools/call", 1)
			require.Equal(t, 1, fs.Starts())
			fs.Updated(e2e.AppLog)
			require.Equal(t, []string{e2e.In("filesystem", e2e.AppLog)}, c.WaitUpdates(1), "the session and its subscriptions still work")
			require.Equal(t, 1, fs.Count("resources/subscribe"))
		})
	}
}

func TestAChangedServerIsReplacedWhileItsCallsEnd(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	fs := w.Backend("filesystem", e2e.Filesystem())
	script := e2e.Filesystem()
	script["tools"] = []e2e.Obj{e2e.Tool("slow"), e2e.Tool("env")}
	script["on"] = e2e.Obj{
		"tools/call slow": []e2e.Obj{{"do": "progress", "n": 1}, {"do": "wait", "name": "slow"}, {"do": "text", "text": "done by the old one"}},
		"tools/call env":  []e2e.Obj{{"do": "env"}},
	}
	b := w.Backend("b", script, e2e.Obj{"env": e2e.Obj{"WHICH": "first"}})
	c := w.Join()
	c.Ok("resources/subscribe", e2e.Obj{"uri": e2e.In("b", e2e.AppLog)})
	require.Contains(t, c.CallText("b_env", e2e.Obj{}), "first")
	slow := c.Begin("tools/call", e2e.Obj{"name": "b_slow", "arguments": e2e.Obj{}, "_meta": e2e.Obj{"progressToken": 1}})
	c.WaitNote("notifications/progress", nil)
	first := b.WaitStarts(1)

	w.Edit(func() { b.Conf["env"] = e2e.Obj{"WHICH": "second"} })
	second := b.WaitStarts(2)
	e2e.Eventually(t, "the new process answers", func() bool { return strings.Contains(c.CallText("b_env", e2e.Obj{}), "second") })
	b.WaitReceived("resources/subscribe", 2)
	c.WaitUpdates(1) // there may have been one in between
	require.False(t, first.Gone, "its call is in flight")
	c.Forget()
	b.DoAt(first, e2e.Obj{"do": "notify", "method": "notifications/resources/updated", "params": e2e.Obj{"uri": e2e.AppLog}})
	b.DoAt(second, e2e.Obj{"do": "notify", "method": "notifications/resources/updated", "params": e2e.Obj{"uri": e2e.AppLog}})
	require.Equal(t, []string{e2e.In("b", e2e.AppLog)}, c.WaitUpdates(1), "messages of the old process are ignored")

	b.DoAt(first, e2e.Obj{"do": "release", "name": "slow"})
	require.Equal(t, "done by the old one", e2e.Str(c.End(slow).Result, "content", 0, "text"))
	b.Wait("the end of the old process", func() bool { return first.Gone })
	require.Equal(t, 2, b.Starts())
	require.Equal(t, 1, fs.Starts())
	require.Len(t, c.Updates(), 1)
}

func TestAServerThatIsWrittenInAnotherWayGoesOn(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Env = []string{"WHICH=first"}
	b := w.Backend("b", e2e.Filesystem(), e2e.Obj{"env": e2e.Obj{"WHICH": "${WHICH}"}})
	c := w.Serve().Client(true)
	c.WaitListed("tools", "b_stat", true)
	w.Edit(func() {
		b.Conf["env"], b.Conf["timeout"] = e2e.Obj{"WHICH": "first"}, "30000ms"
		w.Backend("late", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("here")}})
	})
	c.WaitListed("tools", "late_here", true)
	require.Equal(t, 1, b.Starts())
}

func TestAConfigWithMistakesChangesNothingAndIsToldOf(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("b", e2e.Filesystem())
	c := w.Bridged()
	c.WaitListed("tools", "b_stat", true)
	good, err := os.ReadFile(w.Config)
	require.NoError(t, err)
	broken := e2e.Variants(2, [][2]string{
		{"a mistake", "servers:\n  b:\n    comand: x\n    args: [sentinel-secret]\n"},
		{"two", "servers: {b: {comand: x}}\nlisten: y\n"},
		{"no YAML", "servers: ["},
		{"truncated", ""},
		{"no servers", "servers: {}\n"},
	}...)
	for i, one := range broken {
		name, text := one[0], one[1]
		logs := len(w.DaemonLog())
		require.NoError(t, os.WriteFile(w.Config, []byte(text), 0o600))
		e2e.Eventually(t, name+" to be logged", func() bool { return strings.Contains(w.DaemonLog()[logs:], "config not reloaded") })
		notice := ""
		e2e.Eventually(t, name+" is reported", func() bool { notice = w.Status().Notice; return strings.Contains(notice, "config not reloaded: ") })
		require.Contains(t, notice, "goblin.yaml")
		if name == "a mistake" {
			require.Contains(t, notice, "goblin.yaml:3: ")
			require.Contains(t, notice, `did you mean "command"?`)
		}
		require.Equal(t, name == "two", strings.HasSuffix(notice, "(and 1 more: goblin validate)"), notice)
		require.NotContains(t, notice, "sentinel-secret")
		c.CallText("b_stat", e2e.Obj{})
		require.NoError(t, os.WriteFile(w.Config, good, 0o600))
		e2e.Eventually(t, "the log", func() bool { return strings.Count(w.DaemonLog(), "config is valid again") == i+1 })
		require.Empty(t, w.Status().Notice)
	}
	require.Contains(t, w.DaemonLog(), "goblin.yaml:3: ")
	require.Equal(t, 1, b.Starts(), "the valid text was served all the time")
}

func TestADaemonServesWhatACommandMadeOfTheConfigWhenThatEnds(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	first := w.Backend("first", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("here")}})
	web := w.Serve()
	script := first.Conf["args"].([]string)[0]
	for _, step := range []struct {
		command, tool string
		exit          int
	}{
		{"add late -- " + e2e.TestServer + " " + script, "late_here", e2e.ExitOK},
		{"disable late", "late_here", e2e.ExitNotFound},
		{"enable late", "late_here", e2e.ExitOK},
		{"remove late", "late_here", e2e.ExitNotFound},
		{"remove first", "first_here", e2e.ExitNotFound}, // also the last one
		{"add other -- " + e2e.TestServer + " " + script, "other_here", e2e.ExitOK},
	} {
		w.Succeeds(strings.Fields(step.command)...)
		out := w.Run("call", step.tool)
		require.Equal(t, step.exit, out.Code, "%s: %s", step.command, out.Stderr)
	}
	require.Equal(t, web.Cmd.Process.Pid, w.Status().PID)
	require.Empty(t, w.Status().Notice)
}

func TestSIGHUPMakesADaemonReadItsConfig(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("b", e2e.Filesystem())
	w.Log = e2e.Obj{"file": "goblin.log"}
	web := w.Serve()
	b.WaitStarts(1)
	var late *e2e.Backend
	w.Edit(func() { late = w.Backend("late", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("here")}}) })
	web.Signal(syscall.SIGHUP)
	late.WaitStarts(1)
	require.Equal(t, 1, b.Starts())
	e2e.Eventually(t, "the reload is finished", func() bool { return strings.Contains(w.DaemonLog(), "config reloaded") })
	require.NotContains(t, w.DaemonLog(), "config unchanged", "the edit was new")
	web.Signal(syscall.SIGHUP)
	e2e.Eventually(t, "the answer", func() bool { return strings.Contains(w.DaemonLog(), "config unchanged") })
}

func TestUnderNohupASIGHUPMakesADaemonReadItsConfigAndEndsNothing(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"daemon":     {"serve", "--listen", "127.0.0.1:0"},
		"standalone": {"stdio", "--standalone"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			w.Log = e2e.Obj{"file": "goblin.log"}
			b := w.Backend("b", e2e.Filesystem())
			w.Write()
			p := w.Execute("/bin/sh", func(cmd *exec.Cmd) {
				in, err := cmd.StdinPipe() // open until the test is over
				require.NoError(t, err)
				t.Cleanup(func() { _ = in.Close() })
			}, append([]string{"-c", `trap '' HUP; exec "$@"`, "sh", e2e.Goblin}, args...)...)
			e2e.Eventually(t, "the server is connected", func() bool { return strings.Contains(w.DaemonLog(), "msg=connected") })
			p.Signal(syscall.SIGHUP)
			if name == "daemon" {
				e2e.Eventually(t, "the answer", func() bool { return strings.Contains(w.DaemonLog(), "config unchanged") })
			} else {
				var late *e2e.Backend
				w.Edit(func() { late = w.Backend("late", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("here")}}) })
				late.WaitStarts(1)
			}
			require.Equal(t, 1, b.Starts())
		})
	}
}
