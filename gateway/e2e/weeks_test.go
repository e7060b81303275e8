package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What somebody needs who looks after a host that has run for weeks.

func TestAFailureThatRepeatsIsLoggedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.log = obj{"level": "debug"}
	b := w.backend("b", filesystem())
	off := w.backend("off", filesystem())
	off.conf["command"] = "goblin-no-such-program"
	c := w.bridged()
	c.waitListed("tools", "b_stat", true)
	count := func(text string) (n int) {
		for l := range strings.SplitSeq(w.hostLog(), "\n") {
			if strings.Contains(l, "server=off") && strings.Contains(l, text) {
				n++
			}
		}
		return n
	}
	eventually(t, "several attempts", func() bool { return count(`msg="still not connected"`) >= 3 })
	require.Equal(t, 1, count(`level=WARN msg="not connected"`))

	w.run("restart", "off")
	eventually(t, "what somebody asked for to be told", func() bool { return count(`level=WARN msg="not connected"`) == 2 })
	require.Equal(t, 1, b.starts())
}

func TestAFailureThatRepeatsForAClientIsLoggedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.log = obj{"level": "debug"}
	b := w.backend("b", filesystem(), obj{"isolation": "session"})
	c := w.bridged()
	require.NotEmpty(t, c.callText("b_stat", obj{}))
	require.NoError(t, os.WriteFile(b.conf["args"].([]string)[0], []byte("no script"), 0o600))
	other := w.bridged()
	require.Equal(t, "CONNECTION_ERROR", other.fault("tools/call", obj{"name": "b_stat"}).kind())
	count := func(text string) int { return strings.Count(w.hostLog(), text) }
	eventually(t, "several attempts", func() bool { return count(`msg="still no connection for a client"`) >= 3 })
	require.Equal(t, 1, count(`level=WARN msg="no connection for a client"`))
}

func TestStatusNamesTheLog(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.backend("b", filesystem())
	w.remote("r", "/mcp", filesystem())
	c := w.bridged()
	c.waitListed("tools", "b_stat", true)
	c.waitListed("tools", "r_stat", true)
	log := w.status().Log
	require.Contains(t, w.succeeds("status"), log)
	text, err := os.ReadFile(log)
	require.NoError(t, err)
	require.Regexp(t, `msg=connected server=b transport=stdio protocol=\S+ pid=\d+\n`, string(text))
	require.Regexp(t, `msg=connected server=r transport=http protocol=\S+\n`, string(text), "it has no process")

	other := newWorld(t)
	other.log = obj{"file": "goblin.log"}
	other.backend("b", filesystem())
	other.bridged().waitListed("tools", "b_stat", true)
	require.Equal(t, "goblin.log", filepath.Base(other.status().Log))
}

func TestStopSaysThatBridgedClientsStartTheNextHost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backend("b", filesystem())
	c := w.bridged()
	c.waitListed("tools", "b_stat", true)
	require.Contains(t, w.succeeds("stop"), "; 1 client starts the next one.")
	b.waitStarts(2)
	c.close()
	require.Zero(t, c.prog.ends(patience))
	eventually(t, "a host without clients", func() bool { return w.status().count("socket") == 0 })
	require.NotContains(t, w.succeeds("stop"), "next one")
}

func TestAnUnknownToolOfAServerThatIsNotUpNamesTheServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.backend("b", filesystem())
	off := w.backend("off", filesystem())
	off.conf["command"] = "goblin-no-such-program"
	w.backend("out", filesystem(), obj{"disabled": true})
	c := w.bridged()
	c.waitListed("tools", "b_stat", true)
	message := func(method, name string) string {
		var e struct{ Message string }
		require.NoError(t, json.Unmarshal(c.request(method, obj{"name": name}).Error, &e))
		return e.Message
	}
	require.Regexp(t, `^unknown tool "off_stat": server "off" is (failed|connecting), so its tools are not known$`, message("tools/call", "off_stat"))
	require.Regexp(t, `^unknown prompt "off/p": server "off" is .*, so its prompts are not known$`, message("prompts/get", "off/p"))
	require.Contains(t, message("tools/call", "out_stat"), `server "out" is disabled`)
	require.Contains(t, message("tools/call", "b_stta"), `did you mean "b_stat"?`)
	require.NotContains(t, message("tools/call", "offer"), "server")
}
