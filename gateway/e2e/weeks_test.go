package e2e

import (
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

func TestStatusNamesTheLog(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.backend("b", filesystem())
	c := w.bridged()
	c.waitListed("tools", "b_stat", true)
	log := w.status().Log
	require.Contains(t, w.succeeds("status"), log)
	text, err := os.ReadFile(log)
	require.NoError(t, err)
	require.Contains(t, string(text), "msg=connected server=b")

	other := newWorld(t)
	other.log = obj{"file": "goblin.log"}
	other.backend("b", filesystem())
	other.bridged().waitListed("tools", "b_stat", true)
	require.Equal(t, "goblin.log", filepath.Base(other.status().Log))
}
