package reload

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

func TestAnEditedConfigAddsAndRemovesServersWithoutAWordToTheOthers(t *testing.T) {
	t.Parallel()
	for name, connect := range map[string]func(w *e2e.World) *e2e.Client{
		"standalone": (*e2e.World).Standalone,
		"a host":     (*e2e.World).Bridged,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			fs := w.Backend("filesystem", e2e.Filesystem())
			old := w.Backend("old", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("gone")}, "resources": []e2e.Obj{e2e.Resource("x:old")}})
			c := connect(w)
			c.Ok("resources/subscribe", e2e.Obj{"uri": e2e.In("filesystem", e2e.AppLog)})
			c.Ok("resources/subscribe", e2e.Obj{"uri": e2e.In("old", "x:old")})
			c.WaitListed("tools", "old_gone", true)
			var late *e2e.Backend
			w.Edit(func() {
				late = w.Backend("late", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("here")}})
				w.Drop(old)
			})
			c.Noted("notifications/tools/list_changed", nil)
			c.WaitListed("tools", "late_here", true)
			c.WaitListed("tools", "old_gone", false)
			old.WaitGone()
			e := c.Fault("tools/call", e2e.Obj{"name": "old_gone", "arguments": e2e.Obj{}})
			require.Equal(t, "TOOL_NOT_FOUND", e.Kind())
			c.CallText("late_here", e2e.Obj{})
			late.WaitReceived("tools/call", 1)
			require.Equal(t, 1, fs.Starts())
			fs.Updated(e2e.AppLog)
			require.Equal(t, []string{e2e.In("filesystem", e2e.AppLog)}, c.WaitUpdates(1), "the session and its subscriptions go on")
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
	c := w.Bridged()
	c.Ok("resources/subscribe", e2e.Obj{"uri": e2e.In("b", e2e.AppLog)})
	require.Contains(t, c.CallText("b_env", e2e.Obj{}), "first")
	slow := c.Begin("tools/call", e2e.Obj{"name": "b_slow", "arguments": e2e.Obj{}, "_meta": e2e.Obj{"progressToken": 1}})
	c.Noted("notifications/progress", nil)
	first := b.WaitStarts(1)

	w.Edit(func() { b.Conf["env"] = e2e.Obj{"WHICH": "second"} })
	second := b.WaitStarts(2)
	e2e.Eventually(t, "the new process to answer", func() bool { return strings.Contains(c.CallText("b_env", e2e.Obj{}), "second") })
	b.WaitReceived("resources/subscribe", 2)
	c.WaitUpdates(1) // there may have been one in between
	require.False(t, first.Gone, "its call is under way")
	c.Forget()
	b.DoAt(first, e2e.Obj{"do": "notify", "method": "notifications/resources/updated", "params": e2e.Obj{"uri": e2e.AppLog}})
	b.DoAt(second, e2e.Obj{"do": "notify", "method": "notifications/resources/updated", "params": e2e.Obj{"uri": e2e.AppLog}})
	require.Equal(t, []string{e2e.In("b", e2e.AppLog)}, c.WaitUpdates(1), "what the old one says counts no more")

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

func TestAServerThatIsDisabledByAnEditLeavesAndComesBack(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("b", e2e.Filesystem())
	c := w.Bridged()
	c.WaitListed("tools", "b_stat", true)
	w.Edit(func() { b.Conf["disabled"] = true })
	c.WaitListed("tools", "b_stat", false)
	b.WaitGone()
	w.Edit(func() { delete(b.Conf, "disabled") })
	c.WaitListed("tools", "b_stat", true)
	require.Equal(t, 2, b.Starts())
}

func TestAConfigWithMistakesChangesNothingAndIsToldOf(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("b", e2e.Filesystem())
	c := w.Bridged()
	c.WaitListed("tools", "b_stat", true)
	good, err := os.ReadFile(w.Config)
	require.NoError(t, err)
	for name, text := range map[string]string{
		"a mistake":  "servers:\n  b:\n    comand: x\n    args: [sentinel-secret]\n",
		"no YAML":    "servers: [",
		"truncated":  "",
		"two":        "servers: {b: {comand: x}}\nlisten: y\n",
		"no servers": "servers: {}\n",
	} {
		require.NoError(t, os.WriteFile(w.Config, []byte(text), 0o600))
		e2e.Eventually(t, name+" to be told", func() bool { return strings.Contains(w.Status().Notice, "config not reloaded: ") })
		notice := w.Status().Notice
		require.Contains(t, notice, "goblin.yaml")
		if name == "a mistake" {
			require.Contains(t, notice, "goblin.yaml:3: ")
			require.Contains(t, notice, `did you mean "command"?`)
		}
		require.Equal(t, name == "two", strings.HasSuffix(notice, `(and 1 more; "goblin validate" shows all)`), notice)
		require.NotContains(t, notice, "sentinel-secret")
		c.CallText("b_stat", e2e.Obj{})
		require.NoError(t, os.WriteFile(w.Config, good, 0o600))
		e2e.Eventually(t, "the notice to end", func() bool { return w.Status().Notice == "" })
	}
	require.Contains(t, w.HostLog(), "goblin.yaml:3: ")
	e2e.Eventually(t, "the log", func() bool { return strings.Count(w.HostLog(), "Config is what is served again") == 5 })
	require.Equal(t, 1, b.Starts(), "the good text is what was served all the time")
}

func TestAConfigThatIsMountedAsALinkKeepsItsHost(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	mount := filepath.Join(w.Dir, "mount")
	for _, version := range []string{"..one", "..two"} { // as Kubernetes does it
		require.NoError(t, os.MkdirAll(filepath.Join(mount, version), 0o700))
	}
	point := func(version string) {
		require.NoError(t, os.Symlink(version, filepath.Join(mount, "..tmp")))
		require.NoError(t, os.Rename(filepath.Join(mount, "..tmp"), filepath.Join(mount, "..data")))
	}
	point("..one")
	w.Config = filepath.Join(mount, "goblin.yaml")
	require.NoError(t, os.Symlink(filepath.Join("..data", "goblin.yaml"), w.Config))
	b := w.Backend("b", e2e.Filesystem())
	c := w.Bridged()
	c.WaitListed("tools", "b_stat", true)

	w.Written = false
	late := w.Backend("late", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("here")}})
	path := w.Config
	w.Config = filepath.Join(mount, "..two", "goblin.yaml")
	w.Write()
	w.Config = path
	point("..two")
	c.WaitListed("tools", "late_here", true)
	require.Contains(t, w.Bridged().Names("tools"), "late_here")
	require.Equal(t, 2, w.Status().Count("socket"))
	require.Equal(t, 1, b.Starts())
	require.Equal(t, 1, late.Starts(), "there is one host still")
}

func TestAHostIsFoundWhateverVariablesAnEditNames(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Env = []string{"FIRST=1", "SECOND=2"}
	b := w.Backend("b", e2e.Filesystem(), e2e.Obj{"env": e2e.Obj{"A": "${FIRST}"}})
	other := w.Backend("other", e2e.Filesystem())
	c := w.Bridged()
	c.WaitListed("tools", "b_stat", true)
	host := w.Status().PID
	for _, names := range []string{"${FIRST} ${SECOND}", "${SECOND}", "${FIRST}", "none"} {
		starts := b.Starts()
		w.Edit(func() { b.Conf["env"] = e2e.Obj{"A": names} })
		b.WaitStarts(starts + 1)
		require.Equal(t, host, w.Status().PID, names)
		late := w.Bridged()
		require.Contains(t, late.Names("tools"), "b_stat")
		late.Close()
	}
	good, err := os.ReadFile(w.Config)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(w.Config, append(good, "x: ${SECOND}\n"...), 0o600))
	e2e.Eventually(t, "the mistake to be told", func() bool {
		out := w.Run("status")
		return strings.Contains(out.Stdout, "config not reloaded: ")
	})
	require.Equal(t, host, w.Status().PID)
	c.CallText("other_stat", e2e.Obj{})
	require.Equal(t, 1, other.Starts(), "there is one host all the time")
	require.NoError(t, os.WriteFile(w.Config, good, 0o600))
	e2e.Eventually(t, "the host to be found", func() bool { return w.Run("status").Code == 0 })
	socks, err := filepath.Glob(filepath.Join(w.Dir, "run", "goblin", "*.sock"))
	require.NoError(t, err)
	require.LessOrEqual(t, len(socks), 2, "places that it left are free")
}

func TestAHostWhoseConfigWasRemovedIsFound(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a lock file that is locked can neither be written nor read")
	}
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Config = filepath.Join(w.Dir, "cfg", "goblin", "config.yaml")
	require.NoError(t, os.MkdirAll(filepath.Dir(w.Config), 0o700))
	w.Env = []string{"FIRST=1"}
	b := w.Backend("b", e2e.Filesystem(), e2e.Obj{"env": e2e.Obj{"A": "${FIRST}"}})
	first := w.Bridged()
	first.WaitListed("tools", "b_stat", true)
	pid := w.Status().PID
	good, err := os.ReadFile(w.Config)
	require.NoError(t, err)
	require.NoError(t, os.Remove(w.Config))
	require.Equal(t, pid, w.Status().PID)
	e2e.Eventually(t, "the notice", func() bool { return strings.Contains(w.Succeeds("status"), "config not reloaded: ") })
	w.Succeeds("restart", "b")
	b.WaitStarts(2)
	w.Env = []string{"GOBLIN_CONFIG="} // it stood where it is looked for
	require.Equal(t, pid, w.Status().PID)

	// One of another environment makes two.
	require.NoError(t, os.WriteFile(w.Config, good, 0o600))
	w.Env = []string{"FIRST=2"}
	second := w.Bridged()
	second.WaitListed("tools", "b_stat", true)
	require.NotEqual(t, pid, w.Status().PID)
	require.NoError(t, os.Remove(w.Config))
	out := w.Run("stop")
	require.Equal(t, e2e.ExitConnect, out.Code)
	require.Contains(t, out.Stderr, "2 hosts serve "+w.Config+", which is not there any more")
	require.NoError(t, os.WriteFile(w.Config, good, 0o600))
	first.Close() // or they start the next ones
	second.Close()
	w.Succeeds("stop")
	require.NoError(t, os.Remove(w.Config))
	require.Contains(t, w.Succeeds("stop"), fmt.Sprintf("Stopped the host (pid %d)", pid))
	require.Equal(t, e2e.ExitConfig, w.Run("status").Code, "nobody serves it")
}

func TestSettingsThatNeedANewHostAreNamed(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("b", e2e.Filesystem())
	c := w.Bridged()
	c.WaitListed("tools", "b_stat", true)
	w.Edit(func() { w.Gateway["page_size"] = 7 })
	e2e.Eventually(t, "the log", func() bool {
		return strings.Contains(w.HostLog(), `from the next start"=gateway.page_size`)
	})
	require.Equal(t, "edited settings count from the next start: gateway.page_size", w.Status().Notice)
	w.Edit(func() { delete(w.Gateway, "page_size") })
	e2e.Eventually(t, "the notice to end", func() bool { return w.Status().Notice == "" })
	require.Equal(t, 1, b.Starts())
}

func TestSIGHUPMakesAHostReadItsConfig(t *testing.T) {
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
	e2e.Eventually(t, "the reload to be over", func() bool { return strings.Contains(w.HostLog(), "Config reloaded") })
	require.NotContains(t, w.HostLog(), "Config read again: nothing is new", "the edit was new")
	web.Signal(syscall.SIGHUP)
	e2e.Eventually(t, "the answer", func() bool { return strings.Contains(w.HostLog(), "Config read again: nothing is new") })
}

func TestSubscriptionsOfUnitsOutliveAnEditOfTheirServer(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("own", e2e.Counting(), e2e.Obj{"isolation": "session", "env": e2e.Obj{"WHICH": "first"}})
	uri := e2e.In("own", "x:1")
	c1, c2 := w.Bridged(), w.Bridged()
	for _, c := range []*e2e.Client{c1, c2} {
		c.CountsTo(1, 1)
		c.Ok("resources/subscribe", e2e.Obj{"uri": uri})
	}
	w.Edit(func() { b.Conf["env"] = e2e.Obj{"WHICH": "second"} })
	b.WaitStarts(3)
	b.WaitReceived("resources/subscribe", 4)
	for _, c := range []*e2e.Client{c1, c2} {
		c.WaitUpdates(1)
		c.Forget()
	}
	for _, p := range b.Live() {
		b.DoAt(p, e2e.Do("notify", e2e.Obj{"method": "notifications/resources/updated", "params": e2e.Obj{"uri": "x:1"}}))
	}
	for _, c := range []*e2e.Client{c1, c2} {
		require.Equal(t, []string{uri}, c.WaitUpdates(1))
	}
}

func TestUnitsAreToldOfRootsOfAnEditedConfig(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Gateway["roots"] = []any{e2e.Obj{"uri": "file:///old"}}
	b := w.Backend("own", e2e.Counting(), e2e.Obj{"isolation": "session"})
	c1, c2 := w.Bridged(), w.Bridged()
	c1.Counts()
	c2.Counts()
	w.Edit(func() { w.Gateway["roots"] = []any{e2e.Obj{"uri": "file:///new"}} })
	b.WaitReceived("notifications/roots/list_changed", 2)
}

func TestSubscriptionsOutliveAnEditOfTheirServersIsolation(t *testing.T) {
	t.Parallel()
	for _, way := range [][]string{{"shared", "session"}, {"session", "shared"}} {
		t.Run("from "+way[0]+" to "+way[1], func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			b := w.Backend("own", e2e.Counting(), e2e.Obj{"isolation": way[0]})
			c := w.Bridged()
			c.Counts()
			uri := e2e.In("own", "x:1")
			c.Ok("resources/subscribe", e2e.Obj{"uri": uri})
			w.Edit(func() { b.Conf["isolation"] = way[1] })
			b.WaitReceived("resources/subscribe", 2)
			c.WaitUpdates(1) // it may have been missed meanwhile
			c.Counts()
			c.Forget()
			b.Updated("x:1")
			require.Equal(t, []string{uri}, c.WaitUpdates(1))
			c.Ok("resources/unsubscribe", e2e.Obj{"uri": uri})
			b.WaitReceived("resources/unsubscribe", 1)
		})
	}
}

func TestSubscriptionsComeBackWithAServerThatWasRemoved(t *testing.T) {
	t.Parallel()
	for _, isolation := range []string{"shared", "session"} {
		t.Run(isolation, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			w.Backend("stays", e2e.Filesystem())
			b := w.Backend("own", e2e.Counting(), e2e.Obj{"isolation": "shared"})
			s := w.Serve()
			kept, left, gone := s.Client(true), s.Client(true), s.Client(true)
			uri := e2e.In("own", "x:1")
			for _, c := range []*e2e.Client{kept, left, gone} {
				c.Counts()
				c.Ok("resources/subscribe", e2e.Obj{"uri": uri})
			}
			const gauge = `mcp_resource_subscriptions_active{server_id="own"}`
			require.Equal(t, "3", s.Metric(gauge))

			w.Edit(func() { w.Drop(b) })
			kept.WaitListed("resources", uri, false)
			left.Ok("resources/unsubscribe", e2e.Obj{"uri": uri})
			require.Less(t, s.Do("DELETE", "/mcp", map[string]string{"Mcp-Session-Id": gone.Web.Id}, "").Status, 300)
			b.WaitGone()
			require.Empty(t, s.Metric(gauge), "no series is left of a server that is not there")

			asked := len(b.Pick("resources/subscribe"))
			w.Edit(func() {
				b.Conf["isolation"] = isolation
				w.Backends = append(w.Backends, b)
			})
			kept.WaitListed("resources", uri, true)
			kept.WaitUpdates(1) // it may have been missed meanwhile
			b.WaitReceived("resources/subscribe", asked+1)
			kept.Forget()
			left.Forget()
			b.Updated("x:1")
			require.Equal(t, []string{uri}, kept.WaitUpdates(1))
			left.Forget()
			require.Empty(t, left.Updates())
			require.Equal(t, "1", s.Metric(gauge))
			require.Len(t, b.Pick("resources/subscribe"), asked+1)
			kept.Ok("resources/unsubscribe", e2e.Obj{"uri": uri})
			b.WaitReceived("resources/unsubscribe", 1)
		})
	}
}
