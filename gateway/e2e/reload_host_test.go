//go:build e2e

package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

func TestADaemonIsFoundWhateverVariablesAnEditNames(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Env = []string{"FIRST=1", "SECOND=2"}
	b := w.Backend("b", e2e.Filesystem(), e2e.Obj{"env": e2e.Obj{"A": "${FIRST}"}})
	other := w.Backend("other", e2e.Filesystem())
	c := w.Bridged()
	c.WaitListed("tools", "b_stat", true)
	daemon := w.Status().PID
	for _, names := range []string{"${FIRST} ${SECOND}", "${SECOND}", "${FIRST}", "none"} {
		starts := b.Starts()
		w.Edit(func() { b.Conf["env"] = e2e.Obj{"A": names} })
		b.WaitStarts(starts + 1)
		require.Equal(t, daemon, w.Status().PID, names)
		late := w.Bridged()
		require.Contains(t, late.Names("tools"), "b_stat")
		late.Close()
	}
	good, err := os.ReadFile(w.Config)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(w.Config, append(good, "x: ${SECOND}\n"...), 0o600))
	e2e.Eventually(t, "the mistake is reported", func() bool {
		out := w.Run("status")
		return strings.Contains(out.Stdout, "config not reloaded: ")
	})
	require.Equal(t, daemon, w.Status().PID)
	c.CallText("other_stat", e2e.Obj{})
	require.Equal(t, 1, other.Starts(), "there is one daemon all the time")
	require.NoError(t, os.WriteFile(w.Config, good, 0o600))
	e2e.Eventually(t, "the daemon is found", func() bool { return w.Run("status").Code == 0 })
	socks, err := filepath.Glob(filepath.Join(w.Dir, "run", "goblin", "*.sock"))
	require.NoError(t, err)
	require.LessOrEqual(t, len(socks), 2, "its old sockets are removed")
}

func TestADaemonWhoseConfigWasRemovedIsFound(t *testing.T) {
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
	w.Env = []string{"GOBLIN_CONFIG="} // it was at the default path
	require.Equal(t, pid, w.Status().PID)

	// Another environment makes two of them.
	require.NoError(t, os.WriteFile(w.Config, good, 0o600))
	w.Env = []string{"FIRST=2"}
	second := w.Bridged()
	second.WaitListed("tools", "b_stat", true)
	require.NotEqual(t, pid, w.Status().PID)
	require.NoError(t, os.Remove(w.Config))
	out := w.Run("stop")
	require.Equal(t, e2e.ExitConnect, out.Code)
	require.Contains(t, out.Stderr, "2 daemons serve "+w.Config+", but the file was removed")
	require.NoError(t, os.WriteFile(w.Config, good, 0o600))
	first.Close() // or they start the next ones
	second.Close()
	w.Succeeds("stop")
	require.NoError(t, os.Remove(w.Config))
	require.Contains(t, w.Succeeds("stop"), fmt.Sprintf("Stopped the daemon (pid %d)", pid))
	require.Equal(t, e2e.ExitConfig, w.Run("status").Code, "no daemon serves it")
}

func TestAConfigThatIsMountedAsALinkKeepsItsDaemon(t *testing.T) {
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
	require.Equal(t, 1, late.Starts(), "there is still one daemon")
}

func TestClientOfAnEditedConfigGoesOnWithTheNextDaemon(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(string) string{
		"settings":               edited,
		"a variable that is new": func(text string) string { return text + "log: {level: \"${LOG_LEVEL}\"}\n" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			w.Env = []string{"LOG_LEVEL=warn"}
			b := w.Backend("b", e2e.Filesystem())
			c := w.Bridged()
			require.Equal(t, "b:stat:{}", c.CallText("b_stat", e2e.Obj{}))
			rewrite(w, change)
			require.NoError(t, e2e.Kill(w.DaemonPID()))
			b.WaitGone()
			e2e.Eventually(t, "the next daemon", func() bool {
				return c.Works(e2e.Obj{"name": "b_stat"})
			})
			require.Equal(t, 2, b.Starts())
			require.Contains(t, w.Succeeds("status", "--json"), `"pid": `+strconv.Itoa(w.DaemonPID()))
		})
	}
}

func TestDaemonOfABrokenConfigCanBeAskedAndStopped(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("b", e2e.Filesystem())
	c := w.Bridged()
	require.Equal(t, "b:stat:{}", c.CallText("b_stat", e2e.Obj{}))
	pid := w.DaemonPID()
	rewrite(w, func(text string) string { return text + "servers: [\n" })
	require.Contains(t, w.Succeeds("status", "--json"), `"pid": `+strconv.Itoa(pid))
	c.Close()
	require.Zero(t, c.Prog.Ends(e2e.Patience))
	require.Contains(t, w.Succeeds("stop"), strconv.Itoa(pid))
	b.WaitGone()
	out := w.Run("status")
	require.Equal(t, 3, out.Code, "without a daemon, the mistake prevents a start")
	require.Contains(t, out.Stderr, "goblin.yaml:")
}

func TestWhatAServerTellsOfItsSecretsIsHiddenFromAll(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("b", e2e.Obj{"on": e2e.Obj{"start": e2e.Actions(e2e.Do("crash", e2e.Obj{"code": 5, "text": "cannot log in with s3cr3t-t0ken"}))}})
	b.Conf["env"] = e2e.Obj{"KEY": "s3cr3t-t0ken"}
	w.Gateway["startup_wait"] = "100ms"
	c := w.Bridged()
	c.List("tools")
	e2e.Eventually(t, "the log to quote the server", func() bool { return strings.Contains(w.DaemonLog(), "cannot log in with [hidden]") })
	fault := c.Fault("tools/call", e2e.Obj{"name": "b_x"})
	servers := c.Ok("resources/read", e2e.Obj{"uri": "goblin://servers"})
	require.Contains(t, string(servers), "cannot log in with [hidden]")
	// Now this program cannot read the secrets, so only the daemon can hide them.
	rewrite(w, func(string) string { return "servers: [" })
	status := w.Succeeds("status", "--json")
	require.Contains(t, status, "cannot log in with [hidden]")
	for _, text := range []string{fault.Message, string(servers), status, w.DaemonLog()} {
		require.NotContains(t, text, "s3cr3t-t0ken")
	}
}

func TestServersThatAreNotToRunAreNotRestarted(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("b", e2e.Filesystem())
	w.Backend("off", e2e.Filesystem(), e2e.Obj{"disabled": true})
	w.Backend("poor", e2e.Filesystem(), e2e.Obj{"env": e2e.Obj{"KEY": "${NOT_SET_ANYWHERE}"}})
	w.Bridged().Names("tools")
	for server, why := range map[string]string{"off": "disabled", "poor": "NOT_SET_ANYWHERE"} {
		out := w.Run("restart", server)
		require.Equal(t, 1, out.Code, server)
		require.Empty(t, out.Stdout)
		require.Contains(t, out.Stderr, `"`+server+`"`)
		require.Contains(t, out.Stderr, why)
		require.Equal(t, 1, strings.Count(out.Stderr, "\n"), out.Stderr)
	}
}

func TestStopSaysThatBridgedClientsStartTheNextDaemon(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("b", e2e.Filesystem())
	c := w.Bridged()
	c.WaitListed("tools", "b_stat", true)
	require.Contains(t, w.Succeeds("stop"), "; 1 client starts a new one.")
	b.WaitStarts(2)
	c.Close()
	require.Zero(t, c.Prog.Ends(e2e.Patience))
	e2e.Eventually(t, "a daemon without clients", func() bool { return w.Status().Count("socket") == 0 })
	require.NotContains(t, w.Succeeds("stop"), "next one")
}
