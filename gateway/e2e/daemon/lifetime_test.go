//go:build e2e

package daemon

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

func TestP16_StaleSocketIsReplaced(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("b", e2e.Filesystem())
	c := w.Bridged()
	c.Names("tools")
	c.Prog.Signal(syscall.SIGKILL)
	<-c.Prog.Exited
	require.NoError(t, e2e.Kill(w.DaemonPID()))
	b.WaitGone()
	require.NotEmpty(t, w.Sockets(), "the killed daemon leaves its socket")
	again := w.Bridged()
	require.Equal(t, "b:stat:{}", again.CallText("b_stat", e2e.Obj{}))
	require.Equal(t, 2, b.Starts())
}

func TestP18_SixStartsAtOnceGiveOneDaemon(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("b", e2e.Filesystem())
	w.AllowDaemon = true
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
	w.DaemonPID() // waits for exactly one
	require.Equal(t, 1, b.Starts())
}

func TestDaemonOutlivesTheClientThatCausedItAndLingers(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("b", e2e.Filesystem())
	first := w.Bridged()
	first.Names("tools")
	daemon := w.DaemonPID()
	second := w.Bridged()
	first.Prog.Signal(syscall.SIGKILL)
	<-first.Prog.Exited
	require.Equal(t, "b:stat:{}", second.CallText("b_stat", e2e.Obj{}))
	second.Close()
	require.Zero(t, second.Prog.Ends(e2e.Patience))
	require.Equal(t, daemon, w.DaemonPID())
	third := w.Bridged()
	require.Equal(t, "b:stat:{}", third.CallText("b_stat", e2e.Obj{}))
	require.Equal(t, 1, b.Starts())
}

func TestConfigsHaveDaemonsOfTheirOwn(t *testing.T) {
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

func TestDaemonsLogIsKeptInAFile(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("b", e2e.Obj{"on": e2e.Obj{"start": e2e.Actions(e2e.Do("crash", e2e.Obj{"code": 5, "text": "the reason of the crash"}))}})
	w.Gateway["startup_wait"] = "100ms"
	c := w.Bridged()
	c.List("tools")
	e2e.Eventually(t, "the log to quote the server", func() bool { return strings.Contains(w.DaemonLog(), "the reason of the crash") })
	info, err := os.Stat(filepath.Dir(w.Sockets()[0]))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
}

// Two configs may name one address.
func TestDaemonWithoutItsHTTPAddressSaysSo(t *testing.T) {
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

// A log of weeks contains many daemons.
func TestDaemonsLogTellsItsBeginningAndItsEnd(t *testing.T) {
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
			for _, text := range []string{"daemon started", w.Config, "${UNSET_FOR_SURE} is not set"} {
				e2e.Eventually(t, text, func() bool { return strings.Contains(w.DaemonLog(), text) })
			}
			require.NotContains(t, w.DaemonLog(), "daemon stopped")
			test.end(w, c)
			e2e.Eventually(t, "the end to be logged", func() bool {
				return strings.Contains(w.DaemonLog(), fmt.Sprintf("msg=\"daemon stopped\" why=%q", test.why))
			})
		})
	}
}

func TestDaemonKeepsNoTerminalAndNoPipeOfItsClient(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("b", e2e.Filesystem())
	w.AllowDaemon = true
	w.Write()
	// A shell pipeline ends only when no process holds its pipes.
	cmd := exec.Command(e2e.Goblin, "stdio")
	cmd.Env, cmd.Dir = w.Environ(), w.Dir
	cmd.Stdin = strings.NewReader(e2e.InitBody + "\n")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), `"serverInfo"`)
	w.DaemonPID()
}

func TestBridgeThatFindsNoDaemonAnswersAndGoesOnLater(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("b", e2e.Filesystem())
	c := w.Bridged()
	require.Equal(t, "b:stat:{}", c.CallText("b_stat", e2e.Obj{}))
	require.NoError(t, os.Rename(w.Config, w.Config+".away")) // no daemon can start
	require.NoError(t, e2e.Kill(w.DaemonPID()))
	b.WaitGone()
	e := c.Fails(e2e.Obj{"name": "b_stat"})
	require.Equal(t, "CONNECTION_ERROR", e.Kind())
	require.NoError(t, os.Rename(w.Config+".away", w.Config))
	e2e.Eventually(t, "the next daemon", func() bool {
		return c.Works(e2e.Obj{"name": "b_stat"})
	})
	require.Equal(t, 2, b.Starts())
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

// Clients stop it this way, and show its output as an error.
func TestABridgeEndsOnSIGTERMSilently(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("b", e2e.Filesystem())
	c := w.Bridged()
	require.NotEmpty(t, c.Names("tools"))
	c.Prog.Signal(syscall.SIGTERM)
	require.Zero(t, c.Prog.Ends(e2e.Patience))
	require.Empty(t, c.Prog.Stderr.String())
}
