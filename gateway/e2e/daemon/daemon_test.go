//go:build e2e

package daemon

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

func TestBridgedClientsShareOneSetOfBackends(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("b", e2e.Filesystem())
	clients := []*e2e.Client{w.Bridged(), w.Bridged()}
	for i, c := range clients {
		require.Equal(t, fmt.Sprintf(`b:stat:{"i":%d}`, i), c.CallText("b_stat", e2e.Obj{"i": i}))
	}
	require.Equal(t, 1, b.Starts())
	require.Len(t, w.Sockets(), 1)
}

func TestP17_BridgeSurvivesTheDeathOfItsDaemon(t *testing.T) {
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
	require.NoError(t, e2e.Kill(w.DaemonPID()))
	e := e2e.ParseFailure(t, one.End(flight))
	require.JSONEq(t, `{"code":"CONNECTION_ERROR","server":"goblin"}`, string(e.Data))
	require.Contains(t, e.Message, "it may have run")

	// The next daemon continues the same sessions, whose state the last one saved.
	for _, c := range []*e2e.Client{one, two} {
		c.CallUntilItWorks("b_stat")
		require.Equal(t, "b:stat:{}", c.CallText("b_stat", e2e.Obj{}))
	}
	require.Equal(t, 2, b.Starts())
	b.WaitReceived("resources/subscribe", 2)
	b.Updated(e2e.AppLog)
	require.Contains(t, one.WaitUpdates(1), uri)
	two.Ok("ping", nil)
	require.Empty(t, two.Updates())
	b.Wait("the level at the next daemon", func() bool {
		for _, m := range b.Pick("logging/setLevel") {
			if m.Proc == b.Procs[1] && e2e.Str(m.Msg, "params", "level") == "warning" {
				return true
			}
		}
		return false
	})
	b.WaitLive(1)
}

func TestDaemonEndsAfterItsLastSession(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Gateway["linger"] = "100ms"
	b := w.Backend("b", e2e.Filesystem())
	c := w.Bridged()
	c.Names("tools")
	c.Close()
	require.Zero(t, c.Prog.Ends(e2e.Patience))
	b.WaitGone()
	e2e.Eventually(t, "the end of the daemon", func() bool { return len(w.Processes("")) == 0 })
	require.Empty(t, w.Sockets())
}

func TestServeIsTheDaemonOfItsConfig(t *testing.T) {
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
	status := w.Succeeds("status")
	require.Contains(t, status, fmt.Sprint(s.Cmd.Process.Pid))
	require.NotContains(t, status, "after its last client")

	// An update reaches every subscriber, over the socket and over HTTP.
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

func TestGoblinOnPipesIsGoblinStdio(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("b", e2e.Filesystem())
	w.AllowDaemon = true
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
			continue // nothing to stop is also a success
		}
		require.Equal(t, e2e.ExitConnect, out.Code, "%v: %s", args, out.Stderr)
		require.Equal(t, 1, strings.Count(out.Stderr, "\n"), out.Stderr)
	}
	require.Zero(t, b.Starts())

	c := w.Bridged()
	c.Names("tools")
	status := w.Succeeds("status")
	require.Contains(t, status, fmt.Sprint(w.DaemonPID()))
	require.Contains(t, status, "\nexits    1m after its last client disconnects\n")
	require.Contains(t, status, "b")
	require.Equal(t, "Restarting \"b\".\n", w.Succeeds("restart", "b"))
	b.WaitStarts(2)
	e2e.Eventually(t, "the restarted server", func() bool {
		return c.Works(e2e.Obj{"name": "b_stat"})
	})
	out := w.Run("restart", "nobody")
	require.Equal(t, e2e.ExitNotFound, out.Code, out.Stderr)
	require.Contains(t, out.Stderr, "nobody")

	daemon := w.DaemonPID()
	c.Close() // or it would start the next daemon
	require.Zero(t, c.Prog.Ends(e2e.Patience))
	e2e.Eventually(t, "the daemon notices the closed connection", func() bool { return w.Status().Count("socket") == 0 })
	require.Equal(t, fmt.Sprintf("Stopped the daemon (pid %d).\n", daemon), w.Succeeds("stop"))
	b.WaitGone()
	require.Empty(t, w.Processes(""))
	require.Empty(t, w.Sockets())
}
