package reload

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// rewrite replaces the config file, as an editor does.
func rewrite(w *e2e.World, change func(text string) string) {
	w.T.Helper()
	text, err := os.ReadFile(w.Config)
	require.NoError(w.T, err)
	require.NoError(w.T, os.WriteFile(w.Config+".new", []byte(change(string(text))), 0o600))
	require.NoError(w.T, os.Rename(w.Config+".new", w.Config))
}

func edited(text string) string {
	return strings.Replace(text, `"linger":"60s"`, `"linger":"59s","page_size":7`, 1) + "# edited\nlua: {calls: 5}\n"
}

func TestEditedConfigKeepsItsHost(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("b", e2e.Filesystem())
	c := w.Bridged()
	require.Equal(t, "b:stat:{}", c.CallText("b_stat", e2e.Obj{}))
	pid := w.Host()
	rewrite(w, edited)
	require.Contains(t, w.Succeeds("status", "--json"), `"pid": `+strconv.Itoa(pid))
	two := w.Bridged()
	require.Equal(t, "b:stat:{}", two.CallText("b_stat", e2e.Obj{}))
	require.Equal(t, 1, b.Starts())
	require.Len(t, w.Sockets(), 1)
	w.Succeeds("restart", "b")
	b.WaitStarts(2)
	for _, c := range []*e2e.Client{c, two} {
		c.Close()
		require.Zero(t, c.Prog.Ends(e2e.Patience))
	}
	require.Contains(t, w.Succeeds("stop"), strconv.Itoa(pid))
	b.WaitGone()
}

func TestClientOfAnEditedConfigGoesOnWithTheNextHost(t *testing.T) {
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
			require.NoError(t, e2e.Kill(w.Host()))
			b.WaitGone()
			e2e.Eventually(t, "the next host", func() bool {
				return c.Request("tools/call", e2e.Obj{"name": "b_stat"}).Error == nil
			})
			require.Equal(t, 2, b.Starts())
			require.Contains(t, w.Succeeds("status", "--json"), `"pid": `+strconv.Itoa(w.Host()))
		})
	}
}

func TestHostOfABrokenConfigCanBeAskedAndStopped(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("b", e2e.Filesystem())
	c := w.Bridged()
	require.Equal(t, "b:stat:{}", c.CallText("b_stat", e2e.Obj{}))
	pid := w.Host()
	rewrite(w, func(text string) string { return text + "servers: [\n" })
	require.Contains(t, w.Succeeds("status", "--json"), `"pid": `+strconv.Itoa(pid))
	c.Close()
	require.Zero(t, c.Prog.Ends(e2e.Patience))
	require.Contains(t, w.Succeeds("stop"), strconv.Itoa(pid))
	b.WaitGone()
	out := w.Run("status")
	require.Equal(t, 3, out.Code, "without a host, the mistake is what keeps one from starting")
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
	e2e.Eventually(t, "the log to quote the server", func() bool { return strings.Contains(w.HostLog(), "cannot log in with [hidden]") })
	fault := c.Fault("tools/call", e2e.Obj{"name": "b_x"})
	servers := c.Ok("resources/read", e2e.Obj{"uri": "goblin://servers"})
	require.Contains(t, string(servers), "cannot log in with [hidden]")
	// Now this program cannot read the secrets, so only the host can hide them.
	rewrite(w, func(string) string { return "servers: [" })
	status := w.Succeeds("status", "--json")
	require.Contains(t, status, "cannot log in with [hidden]")
	for _, text := range []string{fault.Message, string(servers), status, w.HostLog()} {
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

func TestClientBeyondLimitsSessionsIsTold(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("b", e2e.Filesystem())
	w.Gateway["limits"] = e2e.Obj{"sessions": 1}
	one := w.Bridged()
	require.Equal(t, "b:stat:{}", one.CallText("b_stat", e2e.Obj{}))
	two := w.Pipe("stdio")
	e := two.Fault("initialize", e2e.Obj{"protocolVersion": "2025-11-25", "capabilities": e2e.Obj{}, "clientInfo": e2e.Obj{"name": "t", "version": "1"}})
	require.Contains(t, e.Message, "limits.sessions")
	require.Equal(t, "CONNECTION_ERROR", e.Kind())
	two.Close()
	require.Zero(t, two.Prog.Ends(e2e.Patience))
	require.Equal(t, "b:stat:{}", one.CallText("b_stat", e2e.Obj{}))
	one.Close()
	require.Zero(t, one.Prog.Ends(e2e.Patience))
	e2e.Eventually(t, "room again", func() bool { return w.Run("read", "goblin://servers").Code == 0 })
}
