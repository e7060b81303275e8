package hosts

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

func TestBridgedClientsShareOneSetOfBackends(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("b", e2e.Filesystem())
	clients := []*e2e.Client{w.Bridged(), w.Bridged(), w.Bridged()}
	for i, c := range clients {
		require.Equal(t, fmt.Sprintf(`b:stat:{"i":%d}`, i), c.CallText("b_stat", e2e.Obj{"i": i}))
	}
	require.Equal(t, 1, b.Starts())
	require.Len(t, w.Sockets(), 1)
}

func TestP15_SocketIsPrivate(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("b", e2e.Filesystem())
	c := w.Bridged()
	c.Names("tools")
	all := w.Sockets()
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
	w := e2e.NewWorld(t)
	b := w.Backend("b", e2e.Filesystem())
	c := w.Bridged()
	c.Names("tools")
	c.Prog.Signal(syscall.SIGKILL)
	<-c.Prog.Exited
	require.NoError(t, e2e.Kill(w.Host()))
	b.WaitGone()
	require.NotEmpty(t, w.Sockets(), "the killed host leaves its socket")
	again := w.Bridged()
	require.Equal(t, "b:stat:{}", again.CallText("b_stat", e2e.Obj{}))
	require.Equal(t, 2, b.Starts())
}

func TestP17_BridgeSurvivesTheDeathOfItsHost(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	script := e2e.Filesystem()
	script["on"] = e2e.Obj{"tools/call move": e2e.Actions(e2e.Do("wait", e2e.Obj{"name": "never"}))}
	b := w.Backend("b", script)
	one, two := w.Bridged(), w.Bridged()
	uri := e2e.In("b", e2e.AppLog)
	one.Ok("resources/subscribe", e2e.Obj{"uri": uri})
	one.Ok("logging/setLevel", e2e.Obj{"level": "error"})
	two.Ok("logging/setLevel", e2e.Obj{"level": "warning"})
	flight := one.Begin("tools/call", e2e.Obj{"name": "b_move"})
	b.WaitEvent("wait", "never")
	require.NoError(t, e2e.Kill(w.Host()))
	e := e2e.ParseError(t, one.End(flight))
	require.Equal(t, -32603, e.Code)

	// The same sessions go on at the next host, which was told of them.
	for _, c := range []*e2e.Client{one, two} {
		c.GoesOn("b_stat")
		require.Equal(t, "b:stat:{}", c.CallText("b_stat", e2e.Obj{}))
	}
	require.Equal(t, 2, b.Starts())
	b.WaitReceived("resources/subscribe", 2)
	b.Updated(e2e.AppLog)
	require.Contains(t, one.WaitUpdates(1), uri)
	two.Ok("ping", nil)
	require.Empty(t, two.Updates())
	b.Wait("the level at the next host", func() bool {
		for _, m := range b.Pick("logging/setLevel") {
			if m.Proc == b.Procs[1] && e2e.Str(m.Msg, "params", "level") == "warning" {
				return true
			}
		}
		return false
	})
	b.WaitLive(1)
}

func TestP18_SixStartsAtOnceGiveOneHost(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("b", e2e.Filesystem())
	w.Hosted = true
	w.Write()
	var clients []*e2e.Client
	for range 6 {
		clients = append(clients, w.Pipe("stdio"))
	}
	var wg sync.WaitGroup
	for _, c := range clients {
		wg.Go(func() {
			c.Begin("initialize", e2e.Obj{"protocolVersion": e2e.Revision, "capabilities": e2e.Obj{}, "clientInfo": e2e.Obj{"name": "e", "version": "1"}})
		})
	}
	wg.Wait()
	for _, c := range clients {
		require.Nil(t, c.End("1").Error)
		c.Notify("notifications/initialized", nil)
		require.Equal(t, "b:stat:{}", c.CallText("b_stat", e2e.Obj{}))
	}
	w.Host() // waits for one, and no more than one
	require.Equal(t, 1, b.Starts())
}

func TestHostOutlivesTheClientThatCausedItAndLingers(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("b", e2e.Filesystem())
	first := w.Bridged()
	first.Names("tools")
	host := w.Host()
	second := w.Bridged()
	first.Prog.Signal(syscall.SIGKILL)
	<-first.Prog.Exited
	require.Equal(t, "b:stat:{}", second.CallText("b_stat", e2e.Obj{}))
	second.Close()
	require.Zero(t, second.Prog.Ends(e2e.Patience))
	require.Equal(t, host, w.Host())
	third := w.Bridged()
	require.Equal(t, "b:stat:{}", third.CallText("b_stat", e2e.Obj{}))
	require.Equal(t, 1, b.Starts())
}

func TestHostEndsAfterItsLastSession(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Gateway["linger"] = "100ms"
	b := w.Backend("b", e2e.Filesystem())
	c := w.Bridged()
	c.Names("tools")
	c.Close()
	require.Zero(t, c.Prog.Ends(e2e.Patience))
	b.WaitGone()
	e2e.Eventually(t, "the end of the host", func() bool { return len(w.Processes("")) == 0 })
	require.Empty(t, w.Sockets())
}

func TestServeIsTheHostOfItsConfig(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("b", e2e.Filesystem())
	s := w.Serve()
	c := w.Bridged()
	require.Equal(t, "b:stat:{}", c.CallText("b_stat", e2e.Obj{}))
	web := s.Client(false)
	require.Equal(t, "b:stat:{}", web.CallText("b_stat", e2e.Obj{}))
	require.Equal(t, 1, b.Starts())

	second := w.Run("serve", "--listen", fmt.Sprintf("127.0.0.1:%d", e2e.FreePort(t)))
	require.Equal(t, e2e.ExitFailure, second.Code)
	require.Contains(t, second.Stderr, fmt.Sprint(s.Cmd.Process.Pid))
	require.Contains(t, w.Succeeds("status"), fmt.Sprint(s.Cmd.Process.Pid))

	// An update reaches whoever subscribed, over the socket and over HTTP.
	web.Listen()
	for _, client := range []*e2e.Client{c, web} {
		client.Ok("resources/subscribe", e2e.Obj{"uri": e2e.In("b", e2e.AppLog)})
	}
	require.Equal(t, 1, b.Count("resources/subscribe"))
	b.Updated(e2e.AppLog)
	c.WaitUpdates(1)
	web.WaitUpdates(1)
}

func TestStandaloneHasNoSocketAndSharesNothing(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("b", e2e.Filesystem())
	one, two := w.Standalone(), w.Standalone()
	require.Equal(t, "b:stat:{}", one.CallText("b_stat", e2e.Obj{}))
	require.Equal(t, "b:stat:{}", two.CallText("b_stat", e2e.Obj{}))
	require.Equal(t, 2, b.Starts())
	require.Empty(t, w.Sockets())
}

func TestConfigsHaveHostsOfTheirOwn(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("b", e2e.Filesystem())
	one := w.Bridged()
	require.Contains(t, one.Names("tools"), "b_stat")
	other := filepath.Join(w.Dir, "other.yaml")
	text, err := os.ReadFile(w.Config)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(other, text, 0o600))
	t.Cleanup(func() { w.Run("stop", "--config", other) })
	two := w.Pipe("stdio", "--config", other)
	two.Init()
	require.Contains(t, two.Names("tools"), "b_stat")
	require.Equal(t, 2, b.Starts())
	require.Len(t, w.Sockets(), 2)
}

func TestGoblinOnPipesIsGoblinStdio(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("b", e2e.Filesystem())
	w.Hosted = true
	c := w.Pipe()
	c.Init()
	require.Equal(t, "b:stat:{}", c.CallText("b_stat", e2e.Obj{}))
	require.Len(t, w.Sockets(), 1)
}

func TestStatusStopAndRestart(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("b", e2e.Filesystem())
	for _, args := range [][]string{{"status"}, {"stop"}, {"restart", "b"}} {
		out := w.Run(args...)
		if args[0] == "stop" && out.Code == 0 {
			continue // nothing to stop is a kind of success
		}
		require.Equal(t, e2e.ExitConnect, out.Code, "%v: %s", args, out.Stderr)
		require.Equal(t, 1, strings.Count(out.Stderr, "\n"), out.Stderr)
	}
	require.Zero(t, b.Starts())

	c := w.Bridged()
	c.Names("tools")
	status := w.Succeeds("status")
	require.Contains(t, status, fmt.Sprint(w.Host()))
	require.Contains(t, status, "b")
	w.Succeeds("restart", "b")
	b.WaitStarts(2)
	e2e.Eventually(t, "the restarted server", func() bool {
		return c.Request("tools/call", e2e.Obj{"name": "b_stat"}).Error == nil
	})
	out := w.Run("restart", "nobody")
	require.Equal(t, e2e.ExitNotFound, out.Code, out.Stderr)
	require.Contains(t, out.Stderr, "nobody")

	c.Close()
	require.Zero(t, c.Prog.Ends(e2e.Patience))
	w.Succeeds("stop")
	b.WaitGone()
	require.Empty(t, w.Processes(""))
	require.Empty(t, w.Sockets())
}

func TestSocketRefusesStrangersTalk(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("b", e2e.Filesystem())
	c := w.Bridged()
	c.Names("tools")
	socket := w.Sockets()[0]
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
	require.Equal(t, "b:stat:{}", c.CallText("b_stat", e2e.Obj{}))
}

func TestHostsLogIsKeptInAFile(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("b", e2e.Obj{"on": e2e.Obj{"start": e2e.Actions(e2e.Do("crash", e2e.Obj{"code": 5, "text": "the reason of the crash"}))}})
	w.Gateway["startup_wait"] = "100ms"
	c := w.Bridged()
	c.List("tools")
	e2e.Eventually(t, "the log to quote the server", func() bool { return strings.Contains(w.HostLog(), "the reason of the crash") })
	info, err := os.Stat(filepath.Dir(w.Sockets()[0]))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
}

// Two configs may name one address.
func TestHostWithoutItsHTTPAddressSaysSo(t *testing.T) {
	t.Parallel()
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer busy.Close()
	w := e2e.NewWorld(t)
	w.Gateway["listen"] = busy.Addr().String()
	w.Backend("b", e2e.Filesystem())
	c := w.Bridged()
	require.Equal(t, "b:stat:{}", c.CallText("b_stat", e2e.Obj{}))
	notice := "notice   no HTTP at " + busy.Addr().String() + " (gateway.listen): bind: address already in use\n"
	require.Contains(t, w.Succeeds("status"), notice)
	var late *e2e.Backend
	w.Edit(func() { late = w.Backend("late", e2e.Filesystem()) })
	late.WaitStarts(1)
	require.Contains(t, w.Succeeds("status"), notice, "after an edit, too")
}

// A log of weeks is of many hosts.
func TestHostsLogTellsItsBeginningAndItsEnd(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		linger, why string
		end         func(w *e2e.World, c *e2e.Client)
	}{
		"stopped": {"60s", "goblin stop", func(w *e2e.World, c *e2e.Client) { require.Zero(w.T, w.Run("stop").Code) }},
		"left":    {"100ms", "no client for 100ms", func(w *e2e.World, c *e2e.Client) { c.Close() }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			w.Gateway["linger"] = test.linger
			w.Backend("unset", e2e.Shop(), e2e.Obj{"env": e2e.Obj{"K": "${UNSET_FOR_SURE}"}})
			c := w.Bridged()
			log := w.HostLog()
			require.Contains(t, log, "Host started")
			require.Contains(t, log, w.Config)
			require.Contains(t, log, "${UNSET_FOR_SURE} is not set")
			require.NotContains(t, log, "Host ended")
			test.end(w, c)
			e2e.Eventually(t, "the end to be logged", func() bool {
				return strings.Contains(w.HostLog(), fmt.Sprintf("msg=\"Host ended\" why=%q", test.why))
			})
		})
	}
}

func TestHostKeepsNoTerminalAndNoPipeOfItsClient(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("b", e2e.Filesystem())
	w.Hosted = true
	w.Write()
	// A shell pipeline ends only when nobody holds its pipes any more.
	cmd := exec.Command(e2e.Goblin, "stdio")
	cmd.Env, cmd.Dir = w.Environ(), w.Dir
	cmd.Stdin = strings.NewReader(e2e.InitBody + "\n")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), `"serverInfo"`)
	w.Host()
}

func TestBridgeThatFindsNoHostAnswersAndGoesOnLater(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("b", e2e.Filesystem())
	c := w.Bridged()
	require.Equal(t, "b:stat:{}", c.CallText("b_stat", e2e.Obj{}))
	require.NoError(t, os.Rename(w.Config, w.Config+".away")) // no host can start
	require.NoError(t, e2e.Kill(w.Host()))
	b.WaitGone()
	e := c.Fault("tools/call", e2e.Obj{"name": "b_stat"})
	require.Equal(t, -32603, e.Code)
	require.Equal(t, "CONNECTION_ERROR", e.Kind())
	require.NoError(t, os.Rename(w.Config+".away", w.Config))
	e2e.Eventually(t, "the next host", func() bool {
		return c.Request("tools/call", e2e.Obj{"name": "b_stat"}).Error == nil
	})
	require.Equal(t, 2, b.Starts())
}
