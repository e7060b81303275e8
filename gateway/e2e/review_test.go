package e2e

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// rewrite replaces the config file, as an editor does.
func (w *world) rewrite(change func(text string) string) {
	w.t.Helper()
	text, err := os.ReadFile(w.config)
	require.NoError(w.t, err)
	require.NoError(w.t, os.WriteFile(w.config+".new", []byte(change(string(text))), 0o600))
	require.NoError(w.t, os.Rename(w.config+".new", w.config))
}

func edited(text string) string {
	return strings.Replace(text, `"linger":"60s"`, `"linger":"59s","page_size":7`, 1) + "# edited\nlua: {calls: 5}\n"
}

func TestEditedConfigKeepsItsHost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backend("b", filesystem())
	c := w.bridged()
	require.Equal(t, "b:stat:{}", c.callText("b_stat", obj{}))
	pid := w.host()
	w.rewrite(edited)
	require.Contains(t, w.succeeds("status", "--json"), `"pid": `+strconv.Itoa(pid))
	two := w.bridged()
	require.Equal(t, "b:stat:{}", two.callText("b_stat", obj{}))
	require.Equal(t, 1, b.starts())
	require.Len(t, w.sockets(), 1)
	w.succeeds("restart", "b")
	b.waitStarts(2)
	for _, c := range []*client{c, two} {
		c.close()
		require.Zero(t, c.prog.ends(patience))
	}
	require.Contains(t, w.succeeds("stop"), strconv.Itoa(pid))
	b.waitGone()
}

func TestClientOfAnEditedConfigGoesOnWithTheNextHost(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(string) string{
		"settings":               edited,
		"a variable that is new": func(text string) string { return text + "log: {level: \"${LOG_LEVEL}\"}\n" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.env = []string{"LOG_LEVEL=warn"}
			b := w.backend("b", filesystem())
			c := w.bridged()
			require.Equal(t, "b:stat:{}", c.callText("b_stat", obj{}))
			w.rewrite(change)
			require.NoError(t, kill(w.host()))
			b.waitGone()
			eventually(t, "the next host", func() bool {
				return c.request("tools/call", obj{"name": "b_stat"}).Error == nil
			})
			require.Equal(t, 2, b.starts())
			require.Contains(t, w.succeeds("status", "--json"), `"pid": `+strconv.Itoa(w.host()))
		})
	}
}

func TestHostOfABrokenConfigCanBeAskedAndStopped(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backend("b", filesystem())
	c := w.bridged()
	require.Equal(t, "b:stat:{}", c.callText("b_stat", obj{}))
	pid := w.host()
	w.rewrite(func(text string) string { return text + "servers: [\n" })
	require.Contains(t, w.succeeds("status", "--json"), `"pid": `+strconv.Itoa(pid))
	c.close()
	require.Zero(t, c.prog.ends(patience))
	require.Contains(t, w.succeeds("stop"), strconv.Itoa(pid))
	b.waitGone()
	out := w.run("status")
	require.Equal(t, 3, out.code, "without a host, the mistake is what keeps one from starting")
	require.Contains(t, out.stderr, "goblin.yaml:")
}

func TestWhatAServerTellsOfItsSecretsIsHiddenFromAll(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backend("b", obj{"on": obj{"start": actions(do("crash", obj{"code": 5, "text": "cannot log in with s3cr3t-t0ken"}))}})
	b.conf["env"] = obj{"KEY": "s3cr3t-t0ken"}
	w.gateway["startup_wait"] = "100ms"
	c := w.bridged()
	c.list("tools")
	eventually(t, "the log to quote the server", func() bool { return strings.Contains(w.hostLog(), "cannot log in with [hidden]") })
	fault := c.fault("tools/call", obj{"name": "b_x"})
	servers := c.ok("resources/read", obj{"uri": "goblin://servers"})
	require.Contains(t, string(servers), "cannot log in with [hidden]")
	// Now this program cannot read the secrets, so only the host can hide them.
	w.rewrite(func(string) string { return "servers: [" })
	status := w.succeeds("status", "--json")
	require.Contains(t, status, "cannot log in with [hidden]")
	for _, text := range []string{fault.Message, string(servers), status, w.hostLog()} {
		require.NotContains(t, text, "s3cr3t-t0ken")
	}
}

func TestServersThatAreNotToRunAreNotRestarted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.backend("b", filesystem())
	w.backend("off", filesystem(), obj{"disabled": true})
	w.backend("poor", filesystem(), obj{"env": obj{"KEY": "${NOT_SET_ANYWHERE}"}})
	w.bridged().names("tools")
	for server, why := range map[string]string{"off": "disabled", "poor": "NOT_SET_ANYWHERE"} {
		out := w.run("restart", server)
		require.Equal(t, 1, out.code, server)
		require.Empty(t, out.stdout)
		require.Contains(t, out.stderr, `"`+server+`"`)
		require.Contains(t, out.stderr, why)
		require.Equal(t, 1, strings.Count(out.stderr, "\n"), out.stderr)
	}
}

func TestClientBeyondLimitsSessionsIsTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.backend("b", filesystem())
	w.gateway["limits"] = obj{"sessions": 1}
	one := w.bridged()
	require.Equal(t, "b:stat:{}", one.callText("b_stat", obj{}))
	two := w.pipe("stdio")
	e := two.fault("initialize", obj{"protocolVersion": "2025-11-25", "capabilities": obj{}, "clientInfo": obj{"name": "t", "version": "1"}})
	require.Contains(t, e.Message, "limits.sessions")
	require.Equal(t, "CONNECTION_ERROR", e.kind())
	two.close()
	require.Zero(t, two.prog.ends(patience))
	require.Equal(t, "b:stat:{}", one.callText("b_stat", obj{}))
	one.close()
	require.Zero(t, one.prog.ends(patience))
	eventually(t, "room again", func() bool { return w.run("read", "goblin://servers").code == 0 })
}
