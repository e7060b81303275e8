package e2e

import (
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// sockets are the sockets that Goblin has made in a world.
func (w *world) sockets() []string {
	var found []string
	_ = filepath.WalkDir(filepath.Join(w.dir, "run"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type()&fs.ModeSocket != 0 {
			found = append(found, path)
		}
		return nil
	})
	return found
}

// host is the process id of the detached host. Others that were started at the
// same time may still be about to find that there is one.
func (w *world) host() int {
	w.t.Helper()
	var hosts []int
	eventually(w.t, "one host", func() bool {
		hosts = nil
		for _, p := range w.processes("") {
			var n int
			_, _ = fmt.Sscan(p, &n)
			if n > 1 && strings.Contains(p, goblin) && !w.isClient(n) {
				hosts = append(hosts, n)
			}
		}
		return len(hosts) == 1
	})
	return hosts[0]
}

func (w *world) isClient(pid int) bool {
	for _, p := range w.programs {
		if p.cmd.Process.Pid == pid {
			return true
		}
	}
	return false
}

func TestBridgedClientsShareOneSetOfBackends(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backend("b", filesystem())
	clients := []*client{w.bridged(), w.bridged(), w.bridged()}
	for i, c := range clients {
		require.Equal(t, fmt.Sprintf(`b:stat:{"i":%d}`, i), c.callText("b_stat", obj{"i": i}))
	}
	require.Equal(t, 1, b.starts())
	require.Len(t, w.sockets(), 1)
}

func TestP15_SocketIsPrivate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.backend("b", filesystem())
	c := w.bridged()
	c.names("tools")
	all := w.sockets()
	require.Len(t, all, 1)
	dir, err := os.Stat(filepath.Dir(all[0]))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), dir.Mode().Perm())
	abstract, err := os.ReadFile("/proc/net/unix")
	require.NoError(t, err)
	for line := range strings.Lines(string(abstract)) {
		require.NotContains(t, line, "@goblin")
	}
}

func TestP16_StaleSocketIsReplaced(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backend("b", filesystem())
	c := w.bridged()
	c.names("tools")
	c.prog.signal(syscall.SIGKILL)
	<-c.prog.exited
	require.NoError(t, kill(w.host()))
	b.waitGone()
	require.NotEmpty(t, w.sockets(), "the killed host leaves its socket")
	again := w.bridged()
	require.Equal(t, "b:stat:{}", again.callText("b_stat", obj{}))
	require.Equal(t, 2, b.starts())
}

func TestP17_BridgeSurvivesTheDeathOfItsHost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	script := filesystem()
	script["on"] = obj{"tools/call move": actions(do("wait", obj{"name": "never"}))}
	b := w.backend("b", script)
	one, two := w.bridged(), w.bridged()
	uri := in("b", appLog)
	one.ok("resources/subscribe", obj{"uri": uri})
	one.ok("logging/setLevel", obj{"level": "error"})
	two.ok("logging/setLevel", obj{"level": "warning"})
	flight := one.begin("tools/call", obj{"name": "b_move"})
	b.waitEvent("wait", "never")
	require.NoError(t, kill(w.host()))
	e := parseError(t, one.end(flight))
	require.Equal(t, -32603, e.Code)

	// The same sessions go on at the next host, which was told of them.
	for _, c := range []*client{one, two} {
		c.goesOn("b_stat")
		require.Equal(t, "b:stat:{}", c.callText("b_stat", obj{}))
	}
	require.Equal(t, 2, b.starts())
	b.waitReceived("resources/subscribe", 2)
	b.updated(appLog)
	require.Contains(t, one.waitUpdates(1), uri)
	two.ok("ping", nil)
	require.Empty(t, two.updates())
	b.wait("the level at the next host", func() bool {
		for _, m := range b.pick("logging/setLevel") {
			if m.proc == b.procs[1] && str(m.Msg, "params", "level") == "warning" {
				return true
			}
		}
		return false
	})
	b.waitLive(1)
}

// goesOn waits until calls are served by the next host: one that is sent before
// its bridge hears of the end of the last host is lost with that.
func (c *client) goesOn(tool string) {
	c.t.Helper()
	eventually(c.t, "the next host", func() bool {
		return c.request("tools/call", obj{"name": tool, "arguments": obj{}}).Error == nil
	})
}

func TestP18_SixStartsAtOnceGiveOneHost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backend("b", filesystem())
	w.hosted = true
	w.write()
	var clients []*client
	for range 6 {
		clients = append(clients, w.pipe("stdio"))
	}
	var wg sync.WaitGroup
	for _, c := range clients {
		wg.Go(func() {
			c.begin("initialize", obj{"protocolVersion": revision, "capabilities": obj{}, "clientInfo": obj{"name": "e", "version": "1"}})
		})
	}
	wg.Wait()
	for _, c := range clients {
		require.Nil(t, c.end("1").Error)
		c.notify("notifications/initialized", nil)
		require.Equal(t, "b:stat:{}", c.callText("b_stat", obj{}))
	}
	w.host() // waits for one, and no more than one
	require.Equal(t, 1, b.starts())
}

func TestHostOutlivesTheClientThatCausedItAndLingers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backend("b", filesystem())
	first := w.bridged()
	first.names("tools")
	host := w.host()
	second := w.bridged()
	first.prog.signal(syscall.SIGKILL)
	<-first.prog.exited
	require.Equal(t, "b:stat:{}", second.callText("b_stat", obj{}))
	second.close()
	require.Zero(t, second.prog.ends(patience))
	require.Equal(t, host, w.host())
	third := w.bridged()
	require.Equal(t, "b:stat:{}", third.callText("b_stat", obj{}))
	require.Equal(t, 1, b.starts())
}

func TestHostEndsAfterItsLastSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.gateway["linger"] = "100ms"
	b := w.backend("b", filesystem())
	c := w.bridged()
	c.names("tools")
	c.close()
	require.Zero(t, c.prog.ends(patience))
	b.waitGone()
	eventually(t, "the end of the host", func() bool { return len(w.processes("")) == 0 })
	require.Empty(t, w.sockets())
}

func TestServeIsTheHostOfItsConfig(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backend("b", filesystem())
	s := w.serve()
	c := w.bridged()
	require.Equal(t, "b:stat:{}", c.callText("b_stat", obj{}))
	web := s.client(false)
	require.Equal(t, "b:stat:{}", web.callText("b_stat", obj{}))
	require.Equal(t, 1, b.starts())

	second := w.run("serve", "--listen", fmt.Sprintf("127.0.0.1:%d", freePort(t)))
	require.Equal(t, exitFailure, second.code)
	require.Contains(t, second.stderr, fmt.Sprint(s.cmd.Process.Pid))
	require.Contains(t, w.succeeds("status"), fmt.Sprint(s.cmd.Process.Pid))

	// An update reaches whoever subscribed, over the socket and over HTTP.
	web.listen()
	for _, client := range []*client{c, web} {
		client.ok("resources/subscribe", obj{"uri": in("b", appLog)})
	}
	require.Equal(t, 1, b.count("resources/subscribe"))
	b.updated(appLog)
	c.waitUpdates(1)
	web.waitUpdates(1)
}

func TestStandaloneHasNoSocketAndSharesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backend("b", filesystem())
	one, two := w.standalone(), w.standalone()
	require.Equal(t, "b:stat:{}", one.callText("b_stat", obj{}))
	require.Equal(t, "b:stat:{}", two.callText("b_stat", obj{}))
	require.Equal(t, 2, b.starts())
	require.Empty(t, w.sockets())
}

func TestConfigsHaveHostsOfTheirOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backend("b", filesystem())
	one := w.bridged()
	require.Contains(t, one.names("tools"), "b_stat")
	other := filepath.Join(w.dir, "other.yaml")
	text, err := os.ReadFile(w.config)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(other, text, 0o600))
	t.Cleanup(func() { w.run("stop", "--config", other) })
	two := w.pipe("stdio", "--config", other)
	two.init()
	require.Contains(t, two.names("tools"), "b_stat")
	require.Equal(t, 2, b.starts())
	require.Len(t, w.sockets(), 2)
}

func TestGoblinOnPipesIsGoblinStdio(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.backend("b", filesystem())
	w.hosted = true
	c := w.pipe()
	c.init()
	require.Equal(t, "b:stat:{}", c.callText("b_stat", obj{}))
	require.Len(t, w.sockets(), 1)
}

func TestStatusStopAndRestart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backend("b", filesystem())
	for _, args := range [][]string{{"status"}, {"stop"}, {"restart", "b"}} {
		out := w.run(args...)
		if args[0] == "stop" && out.code == 0 {
			continue // nothing to stop is a kind of success
		}
		require.Equal(t, exitConnect, out.code, "%v: %s", args, out.stderr)
		require.Equal(t, 1, strings.Count(out.stderr, "\n"), out.stderr)
	}
	require.Zero(t, b.starts())

	c := w.bridged()
	c.names("tools")
	status := w.succeeds("status")
	require.Contains(t, status, fmt.Sprint(w.host()))
	require.Contains(t, status, "b")
	w.succeeds("restart", "b")
	b.waitStarts(2)
	eventually(t, "the restarted server", func() bool {
		return c.request("tools/call", obj{"name": "b_stat"}).Error == nil
	})
	out := w.run("restart", "nobody")
	require.Equal(t, exitNotFound, out.code, out.stderr)
	require.Contains(t, out.stderr, "nobody")

	c.close()
	require.Zero(t, c.prog.ends(patience))
	w.succeeds("stop")
	b.waitGone()
	require.Empty(t, w.processes(""))
	require.Empty(t, w.sockets())
}

func TestSocketRefusesStrangersTalk(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.backend("b", filesystem())
	c := w.bridged()
	c.names("tools")
	socket := w.sockets()[0]
	for _, first := range []string{"GET / HTTP/1.1\r\n\r\n", "\x00\x01\x02", `{"goblin":99,"kind":"mcp"}` + "\n", `{"goblin":1,"kind":"none"}` + "\n", strings.Repeat("x", 1<<20)} {
		conn, err := net.Dial("unix", socket)
		require.NoError(t, err)
		_, _ = conn.Write([]byte(first))
		_ = conn.(*net.UnixConn).CloseWrite()
		buf := make([]byte, 4096)
		for {
			if _, err := conn.Read(buf); err != nil {
				break
			}
		}
		_ = conn.Close()
	}
	require.Equal(t, "b:stat:{}", c.callText("b_stat", obj{}))
}

func TestHostsLogIsKeptInAFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.backend("b", obj{"on": obj{"start": actions(do("crash", obj{"code": 5, "text": "the reason of the crash"}))}})
	w.gateway["startup_wait"] = "100ms"
	c := w.bridged()
	c.list("tools")
	eventually(t, "the log to quote the server", func() bool { return strings.Contains(w.hostLog(), "the reason of the crash") })
	info, err := os.Stat(filepath.Dir(w.sockets()[0]))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
}

// Two configs may name one address.
func TestHostWithoutItsHTTPAddressSaysSo(t *testing.T) {
	t.Parallel()
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer busy.Close()
	w := newWorld(t)
	w.gateway["listen"] = busy.Addr().String()
	w.backend("b", filesystem())
	c := w.bridged()
	require.Equal(t, "b:stat:{}", c.callText("b_stat", obj{}))
	notice := "notice   no HTTP at " + busy.Addr().String() + " (gateway.listen): bind: address already in use\n"
	require.Contains(t, w.succeeds("status"), notice)
	var late *backend
	w.edit(func() { late = w.backend("late", filesystem()) })
	late.waitStarts(1)
	require.Contains(t, w.succeeds("status"), notice, "after an edit, too")
}

// A log of weeks is of many hosts.
func TestHostsLogTellsItsBeginningAndItsEnd(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		linger, why string
		end         func(w *world, c *client)
	}{
		"stopped": {"60s", "goblin stop", func(w *world, c *client) { require.Zero(w.t, w.run("stop").code) }},
		"left":    {"100ms", "no client for 100ms", func(w *world, c *client) { c.close() }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.gateway["linger"] = test.linger
			w.backend("unset", shop(), obj{"env": obj{"K": "${UNSET_FOR_SURE}"}})
			c := w.bridged()
			log := w.hostLog()
			require.Contains(t, log, "Host started")
			require.Contains(t, log, w.config)
			require.Contains(t, log, "${UNSET_FOR_SURE} is not set")
			require.NotContains(t, log, "Host ended")
			test.end(w, c)
			eventually(t, "the end to be logged", func() bool {
				return strings.Contains(w.hostLog(), fmt.Sprintf("msg=\"Host ended\" why=%q", test.why))
			})
		})
	}
}

// hostLog is what detached hosts of a world logged.
func (w *world) hostLog() string {
	var b strings.Builder
	_ = filepath.WalkDir(w.dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && strings.Contains(filepath.Base(path), ".log") {
			if text, err := os.ReadFile(path); err == nil {
				b.Write(text)
			}
		}
		return nil
	})
	return b.String()
}

func TestHostKeepsNoTerminalAndNoPipeOfItsClient(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.backend("b", filesystem())
	w.hosted = true
	w.write()
	// A shell pipeline ends only when nobody holds its pipes any more.
	cmd := exec.Command(goblin, "stdio")
	cmd.Env, cmd.Dir = w.environ(), w.dir
	cmd.Stdin = strings.NewReader(initBody + "\n")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), `"serverInfo"`)
	w.host()
}

func TestBridgeThatFindsNoHostAnswersAndGoesOnLater(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backend("b", filesystem())
	c := w.bridged()
	require.Equal(t, "b:stat:{}", c.callText("b_stat", obj{}))
	require.NoError(t, os.Rename(w.config, w.config+".away")) // no host can start
	require.NoError(t, kill(w.host()))
	b.waitGone()
	e := c.fault("tools/call", obj{"name": "b_stat"})
	require.Equal(t, -32603, e.Code)
	require.Equal(t, "CONNECTION_ERROR", e.kind())
	require.NoError(t, os.Rename(w.config+".away", w.config))
	eventually(t, "the next host", func() bool {
		return c.request("tools/call", obj{"name": "b_stat"}).Error == nil
	})
	require.Equal(t, 2, b.starts())
}
