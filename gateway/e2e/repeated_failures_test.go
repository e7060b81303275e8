//go:build e2e

package e2e_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// Information for the operator of a daemon that has run for weeks.

func TestAFailureThatRepeatsIsLoggedOnce(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Log = e2e.Obj{"level": "debug"}
	b := w.Backend("b", e2e.Filesystem())
	off := w.Backend("off", e2e.Filesystem())
	off.Conf["command"] = "goblin-no-such-program"
	c := w.Bridged()
	c.WaitListed("tools", "b_stat", true)
	count := func(text string) (n int) {
		for l := range strings.SplitSeq(w.DaemonLog(), "\n") {
			if strings.Contains(l, "server=off") && strings.Contains(l, text) {
				n++
			}
		}
		return n
	}
	e2e.Eventually(t, "several attempts", func() bool { return count(`msg="still not connected"`) >= 3 })
	require.Equal(t, 1, count(`level=WARN msg="not connected"`))

	w.Run("restart", "off")
	e2e.Eventually(t, "requested lines are logged", func() bool { return count(`level=WARN msg="not connected"`) == 2 })
	require.Equal(t, 1, b.Starts())
}

func TestAFailureThatRepeatsForAClientIsLoggedOnce(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Log = e2e.Obj{"level": "debug"}
	b := w.Backend("b", e2e.Filesystem(), e2e.Obj{"isolation": "session"})
	c := w.Bridged()
	require.NotEmpty(t, c.CallText("b_stat", e2e.Obj{}))
	require.NoError(t, os.WriteFile(b.Conf["args"].([]string)[0], []byte("no script"), 0o600))
	other := w.Bridged()
	require.Equal(t, "CONNECTION_ERROR", other.Fails(e2e.Obj{"name": "b_stat"}).Kind())
	count := func(text string) int { return strings.Count(w.DaemonLog(), text) }
	e2e.Eventually(t, "several attempts", func() bool { return count(`msg="still no connection for a client"`) >= 3 })
	require.Equal(t, 1, count(`level=WARN msg="no connection for a client"`))
}

func TestStatusNamesTheLog(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("b", e2e.Filesystem())
	w.Remote("r", "/mcp", e2e.Filesystem())
	c := w.Bridged()
	c.WaitListed("tools", "b_stat", true)
	c.WaitListed("tools", "r_stat", true)
	log := w.Status().Log
	require.Contains(t, w.Succeeds("status"), log)
	text, err := os.ReadFile(log)
	require.NoError(t, err)
	require.Regexp(t, `msg=connected server=b transport=stdio protocol=\S+ pid=\d+\n`, string(text))
	require.Regexp(t, `msg=connected server=r transport=http protocol=\S+\n`, string(text), "it has no process")

	other := e2e.NewWorld(t)
	other.Log = e2e.Obj{"file": "goblin.log"}
	other.Backend("b", e2e.Filesystem())
	other.Bridged().WaitListed("tools", "b_stat", true)
	require.Equal(t, "goblin.log", filepath.Base(other.Status().Log))
}

func TestAnUnknownToolOfAServerThatIsNotUpNamesTheServer(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("b", e2e.Filesystem())
	off := w.Backend("off", e2e.Filesystem())
	off.Conf["command"] = "goblin-no-such-program"
	w.Backend("out", e2e.Filesystem(), e2e.Obj{"disabled": true})
	c := w.Join()
	c.WaitListed("tools", "b_stat", true)
	message := func(method, name string) string {
		var e struct{ Message string }
		require.NoError(t, json.Unmarshal(c.Request(method, e2e.Obj{"name": name}).Error, &e))
		return e.Message
	}
	require.Regexp(t, `^unknown tool "off_stat": server "off" (has failed|is connecting), so its tools are unknown$`, message("tools/call", "off_stat"))
	require.Regexp(t, `^unknown prompt "off/p": server "off" .*, so its prompts are unknown$`, message("prompts/get", "off/p"))
	require.Contains(t, message("tools/call", "out_stat"), `server "out" is disabled`)
	require.Contains(t, message("tools/call", "b_stta"), `did you mean "b_stat"?`)
	require.NotContains(t, message("tools/call", "offer"), "server")
}
