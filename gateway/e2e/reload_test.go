package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// edit changes the config as editors do, by another file in its place.
func (w *world) edit(change func()) {
	w.t.Helper()
	path := w.config
	w.write()
	w.written = false
	change()
	w.config = filepath.Join(w.dir, "edited")
	w.write()
	require.NoError(w.t, os.Rename(w.config, path))
	w.config = path
}

// drop takes a backend out of the config.
func (w *world) drop(b *backend) {
	for i := range w.backends {
		if w.backends[i] == b {
			w.backends = append(w.backends[:i:i], w.backends[i+1:]...)
			w.t.Cleanup(b.close)
			return
		}
	}
}

func TestAnEditedConfigAddsAndRemovesServersWithoutAWordToTheOthers(t *testing.T) {
	t.Parallel()
	for name, connect := range map[string]func(w *world) *client{
		"standalone": (*world).standalone,
		"a host":     (*world).bridged,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			fs := w.backend("filesystem", filesystem())
			old := w.backend("old", obj{"tools": []obj{tool("gone")}, "resources": []obj{resource("x:old")}})
			c := connect(w)
			c.ok("resources/subscribe", obj{"uri": in("filesystem", appLog)})
			c.ok("resources/subscribe", obj{"uri": in("old", "x:old")})
			c.waitListed("tools", "old_gone", true)
			var late *backend
			w.edit(func() {
				late = w.backend("late", obj{"tools": []obj{tool("here")}})
				w.drop(old)
			})
			c.noted("notifications/tools/list_changed", nil)
			c.waitListed("tools", "late_here", true)
			c.waitListed("tools", "old_gone", false)
			old.waitGone()
			e := c.fault("tools/call", obj{"name": "old_gone", "arguments": obj{}})
			require.Equal(t, "TOOL_NOT_FOUND", e.kind())
			c.callText("late_here", obj{})
			late.waitReceived("tools/call", 1)
			require.Equal(t, 1, fs.starts())
			fs.updated(appLog)
			require.Equal(t, []string{in("filesystem", appLog)}, c.waitUpdates(1), "the session and its subscriptions go on")
			require.Equal(t, 1, fs.count("resources/subscribe"))
		})
	}
}

func TestAChangedServerIsReplacedWhileItsCallsEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	fs := w.backend("filesystem", filesystem())
	script := filesystem()
	script["tools"] = []obj{tool("slow"), tool("env")}
	script["on"] = obj{
		"tools/call slow": []obj{{"do": "progress", "n": 1}, {"do": "wait", "name": "slow"}, {"do": "text", "text": "done by the old one"}},
		"tools/call env":  []obj{{"do": "env"}},
	}
	b := w.backend("b", script, obj{"env": obj{"WHICH": "first"}})
	c := w.bridged()
	c.ok("resources/subscribe", obj{"uri": in("b", appLog)})
	require.Contains(t, c.callText("b_env", obj{}), "first")
	slow := c.begin("tools/call", obj{"name": "b_slow", "arguments": obj{}, "_meta": obj{"progressToken": 1}})
	c.noted("notifications/progress", nil)
	first := b.waitStarts(1)

	w.edit(func() { b.conf["env"] = obj{"WHICH": "second"} })
	second := b.waitStarts(2)
	eventually(t, "the new process to answer", func() bool { return strings.Contains(c.callText("b_env", obj{}), "second") })
	b.waitReceived("resources/subscribe", 2)
	c.waitUpdates(1) // there may have been one in between
	require.False(t, first.gone, "its call is under way")
	c.forget()
	b.doAt(first, obj{"do": "notify", "method": "notifications/resources/updated", "params": obj{"uri": appLog}})
	b.doAt(second, obj{"do": "notify", "method": "notifications/resources/updated", "params": obj{"uri": appLog}})
	require.Equal(t, []string{in("b", appLog)}, c.waitUpdates(1), "what the old one says counts no more")

	b.doAt(first, obj{"do": "release", "name": "slow"})
	require.Equal(t, "done by the old one", str(c.end(slow).Result, "content", 0, "text"))
	b.wait("the end of the old process", func() bool { return first.gone })
	require.Equal(t, 2, b.starts())
	require.Equal(t, 1, fs.starts())
	require.Len(t, c.updates(), 1)
}

func TestAServerThatIsWrittenInAnotherWayGoesOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.env = []string{"WHICH=first"}
	b := w.backend("b", filesystem(), obj{"env": obj{"WHICH": "${WHICH}"}})
	c := w.serve().client(true)
	c.waitListed("tools", "b_stat", true)
	w.edit(func() {
		b.conf["env"], b.conf["timeout"] = obj{"WHICH": "first"}, "30000ms"
		w.backend("late", obj{"tools": []obj{tool("here")}})
	})
	c.waitListed("tools", "late_here", true)
	require.Equal(t, 1, b.starts())
}

func TestAServerThatIsDisabledByAnEditLeavesAndComesBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backend("b", filesystem())
	c := w.bridged()
	c.waitListed("tools", "b_stat", true)
	w.edit(func() { b.conf["disabled"] = true })
	c.waitListed("tools", "b_stat", false)
	b.waitGone()
	w.edit(func() { delete(b.conf, "disabled") })
	c.waitListed("tools", "b_stat", true)
	require.Equal(t, 2, b.starts())
}

func TestAConfigWithMistakesChangesNothingAndIsToldOf(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backend("b", filesystem())
	c := w.bridged()
	c.waitListed("tools", "b_stat", true)
	good, err := os.ReadFile(w.config)
	require.NoError(t, err)
	for name, text := range map[string]string{
		"a mistake":  "servers:\n  b:\n    comand: x\n    args: [sentinel-secret]\n",
		"no YAML":    "servers: [",
		"truncated":  "",
		"two":        "servers: {b: {comand: x}}\nlisten: y\n",
		"no servers": "servers: {}\n",
	} {
		require.NoError(t, os.WriteFile(w.config, []byte(text), 0o600))
		eventually(t, name+" to be told", func() bool { return strings.Contains(w.status().Notice, "config not reloaded: ") })
		notice := w.status().Notice
		require.Contains(t, notice, "goblin.yaml")
		if name == "a mistake" {
			require.Contains(t, notice, "goblin.yaml:3: ")
			require.Contains(t, notice, `did you mean "command"?`)
		}
		require.Equal(t, name == "two", strings.HasSuffix(notice, `(and 1 more; "goblin validate" tells all)`), notice)
		require.NotContains(t, notice, "sentinel-secret")
		c.callText("b_stat", obj{})
		require.NoError(t, os.WriteFile(w.config, good, 0o600))
		eventually(t, "the notice to end", func() bool { return w.status().Notice == "" })
	}
	require.Contains(t, w.hostLog(), "goblin.yaml:3: ")
	eventually(t, "the log", func() bool { return strings.Count(w.hostLog(), "Config is what is served again") == 5 })
	require.Equal(t, 1, b.starts(), "the good text is what was served all the time")
}

func TestAConfigThatIsMountedAsALinkKeepsItsHost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mount := filepath.Join(w.dir, "mount")
	for _, version := range []string{"..one", "..two"} { // as Kubernetes does it
		require.NoError(t, os.MkdirAll(filepath.Join(mount, version), 0o700))
	}
	point := func(version string) {
		require.NoError(t, os.Symlink(version, filepath.Join(mount, "..tmp")))
		require.NoError(t, os.Rename(filepath.Join(mount, "..tmp"), filepath.Join(mount, "..data")))
	}
	point("..one")
	w.config = filepath.Join(mount, "goblin.yaml")
	require.NoError(t, os.Symlink(filepath.Join("..data", "goblin.yaml"), w.config))
	b := w.backend("b", filesystem())
	c := w.bridged()
	c.waitListed("tools", "b_stat", true)

	w.written = false
	late := w.backend("late", obj{"tools": []obj{tool("here")}})
	path := w.config
	w.config = filepath.Join(mount, "..two", "goblin.yaml")
	w.write()
	w.config = path
	point("..two")
	c.waitListed("tools", "late_here", true)
	require.Contains(t, w.bridged().names("tools"), "late_here")
	require.Equal(t, 2, w.status().count("socket"))
	require.Equal(t, 1, b.starts())
	require.Equal(t, 1, late.starts(), "there is one host still")
}

func TestAHostIsFoundWhateverVariablesAnEditNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.env = []string{"FIRST=1", "SECOND=2"}
	b := w.backend("b", filesystem(), obj{"env": obj{"A": "${FIRST}"}})
	other := w.backend("other", filesystem())
	c := w.bridged()
	c.waitListed("tools", "b_stat", true)
	host := w.status().PID
	for _, names := range []string{"${FIRST} ${SECOND}", "${SECOND}", "${FIRST}", "none"} {
		starts := b.starts()
		w.edit(func() { b.conf["env"] = obj{"A": names} })
		b.waitStarts(starts + 1)
		require.Equal(t, host, w.status().PID, names)
		late := w.bridged()
		require.Contains(t, late.names("tools"), "b_stat")
		late.close()
	}
	good, err := os.ReadFile(w.config)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(w.config, append(good, "x: ${SECOND}\n"...), 0o600))
	eventually(t, "the mistake to be told", func() bool {
		out := w.run("status")
		return strings.Contains(out.stdout, "config not reloaded: ")
	})
	require.Equal(t, host, w.status().PID)
	c.callText("other_stat", obj{})
	require.Equal(t, 1, other.starts(), "there is one host all the time")
	require.NoError(t, os.WriteFile(w.config, good, 0o600))
	eventually(t, "the host to be found", func() bool { return w.run("status").code == 0 })
	socks, err := filepath.Glob(filepath.Join(w.dir, "run", "goblin", "*.sock"))
	require.NoError(t, err)
	require.LessOrEqual(t, len(socks), 2, "places that it left are free")
}

func TestAHostWhoseConfigWasRemovedIsFound(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a lock file that is locked can neither be written nor read")
	}
	t.Parallel()
	w := newWorld(t)
	w.config = filepath.Join(w.dir, "cfg", "goblin", "config.yaml")
	require.NoError(t, os.MkdirAll(filepath.Dir(w.config), 0o700))
	w.env = []string{"FIRST=1"}
	b := w.backend("b", filesystem(), obj{"env": obj{"A": "${FIRST}"}})
	first := w.bridged()
	first.waitListed("tools", "b_stat", true)
	pid := w.status().PID
	good, err := os.ReadFile(w.config)
	require.NoError(t, err)
	require.NoError(t, os.Remove(w.config))
	require.Equal(t, pid, w.status().PID)
	eventually(t, "the notice", func() bool { return strings.Contains(w.succeeds("status"), "config not reloaded: ") })
	w.succeeds("restart", "b")
	b.waitStarts(2)
	w.env = []string{"GOBLIN_CONFIG="} // it stood where it is looked for
	require.Equal(t, pid, w.status().PID)

	// One of another environment makes two.
	require.NoError(t, os.WriteFile(w.config, good, 0o600))
	w.env = []string{"FIRST=2"}
	second := w.bridged()
	second.waitListed("tools", "b_stat", true)
	require.NotEqual(t, pid, w.status().PID)
	require.NoError(t, os.Remove(w.config))
	out := w.run("stop")
	require.Equal(t, exitConnect, out.code)
	require.Contains(t, out.stderr, "2 hosts serve "+w.config+", which is not there any more")
	require.NoError(t, os.WriteFile(w.config, good, 0o600))
	first.close() // or they start the next ones
	second.close()
	w.succeeds("stop")
	require.NoError(t, os.Remove(w.config))
	require.Contains(t, w.succeeds("stop"), fmt.Sprintf("Stopped the host (pid %d)", pid))
	require.Equal(t, exitConfig, w.run("status").code, "nobody serves it")
}

func TestSettingsThatNeedANewHostAreNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backend("b", filesystem())
	c := w.bridged()
	c.waitListed("tools", "b_stat", true)
	w.edit(func() { w.gateway["page_size"] = 7 })
	eventually(t, "the log", func() bool {
		return strings.Contains(w.hostLog(), `from the next start"=gateway.page_size`)
	})
	require.Equal(t, "edited settings count from the next start: gateway.page_size", w.status().Notice)
	w.edit(func() { delete(w.gateway, "page_size") })
	eventually(t, "the notice to end", func() bool { return w.status().Notice == "" })
	require.Equal(t, 1, b.starts())
}

func TestSIGHUPMakesAHostReadItsConfig(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backend("b", filesystem())
	w.log = obj{"file": "goblin.log"}
	web := w.serve()
	b.waitStarts(1)
	var late *backend
	w.edit(func() { late = w.backend("late", obj{"tools": []obj{tool("here")}}) })
	web.signal(syscall.SIGHUP)
	late.waitStarts(1)
	require.Equal(t, 1, b.starts())
	eventually(t, "the reload to be over", func() bool { return strings.Contains(w.hostLog(), "Config reloaded") })
	require.NotContains(t, w.hostLog(), "Config read again: nothing is new", "the edit was new")
	web.signal(syscall.SIGHUP)
	eventually(t, "the answer", func() bool { return strings.Contains(w.hostLog(), "Config read again: nothing is new") })
}

func TestSubscriptionsOfUnitsOutliveAnEditOfTheirServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backend("own", counting(), obj{"isolation": "session", "env": obj{"WHICH": "first"}})
	uri := in("own", "x:1")
	c1, c2 := w.bridged(), w.bridged()
	for _, c := range []*client{c1, c2} {
		c.countsTo(1, 1)
		c.ok("resources/subscribe", obj{"uri": uri})
	}
	w.edit(func() { b.conf["env"] = obj{"WHICH": "second"} })
	b.waitStarts(3)
	b.waitReceived("resources/subscribe", 4)
	for _, c := range []*client{c1, c2} {
		c.waitUpdates(1)
		c.forget()
	}
	for _, p := range b.live() {
		b.doAt(p, do("notify", obj{"method": "notifications/resources/updated", "params": obj{"uri": "x:1"}}))
	}
	for _, c := range []*client{c1, c2} {
		require.Equal(t, []string{uri}, c.waitUpdates(1))
	}
}

func TestUnitsAreToldOfRootsOfAnEditedConfig(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.gateway["roots"] = []any{obj{"uri": "file:///old"}}
	b := w.backend("own", counting(), obj{"isolation": "session"})
	c1, c2 := w.bridged(), w.bridged()
	c1.counts()
	c2.counts()
	w.edit(func() { w.gateway["roots"] = []any{obj{"uri": "file:///new"}} })
	b.waitReceived("notifications/roots/list_changed", 2)
}

func TestSubscriptionsOutliveAnEditOfTheirServersIsolation(t *testing.T) {
	t.Parallel()
	for _, way := range [][]string{{"shared", "session"}, {"session", "shared"}} {
		t.Run("from "+way[0]+" to "+way[1], func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			b := w.backend("own", counting(), obj{"isolation": way[0]})
			c := w.bridged()
			c.counts()
			uri := in("own", "x:1")
			c.ok("resources/subscribe", obj{"uri": uri})
			w.edit(func() { b.conf["isolation"] = way[1] })
			b.waitReceived("resources/subscribe", 2)
			c.waitUpdates(1) // it may have been missed meanwhile
			c.counts()
			c.forget()
			b.updated("x:1")
			require.Equal(t, []string{uri}, c.waitUpdates(1))
			c.ok("resources/unsubscribe", obj{"uri": uri})
			b.waitReceived("resources/unsubscribe", 1)
		})
	}
}

func TestSubscriptionsComeBackWithAServerThatWasRemoved(t *testing.T) {
	t.Parallel()
	for _, isolation := range []string{"shared", "session"} {
		t.Run(isolation, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.backend("stays", filesystem())
			b := w.backend("own", counting(), obj{"isolation": "shared"})
			s := w.serve()
			kept, left, gone := s.client(true), s.client(true), s.client(true)
			uri := in("own", "x:1")
			for _, c := range []*client{kept, left, gone} {
				c.counts()
				c.ok("resources/subscribe", obj{"uri": uri})
			}
			const gauge = `mcp_resource_subscriptions_active{server_id="own"}`
			require.Equal(t, "3", s.metric(gauge))

			w.edit(func() { w.drop(b) })
			kept.waitListed("resources", uri, false)
			left.ok("resources/unsubscribe", obj{"uri": uri})
			require.Less(t, s.do("DELETE", "/mcp", map[string]string{"Mcp-Session-Id": gone.web.id}, "").status, 300)
			b.waitGone()
			require.Empty(t, s.metric(gauge), "no series is left of a server that is not there")

			asked := len(b.pick("resources/subscribe"))
			w.edit(func() {
				b.conf["isolation"] = isolation
				w.backends = append(w.backends, b)
			})
			kept.waitListed("resources", uri, true)
			kept.waitUpdates(1) // it may have been missed meanwhile
			b.waitReceived("resources/subscribe", asked+1)
			kept.forget()
			left.forget()
			b.updated("x:1")
			require.Equal(t, []string{uri}, kept.waitUpdates(1))
			left.forget()
			require.Empty(t, left.updates())
			require.Equal(t, "1", s.metric(gauge))
			require.Len(t, b.pick("resources/subscribe"), asked+1)
			kept.ok("resources/unsubscribe", obj{"uri": uri})
			b.waitReceived("resources/unsubscribe", 1)
		})
	}
}
