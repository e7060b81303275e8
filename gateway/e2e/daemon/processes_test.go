//go:build e2e

package daemon

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

func TestP08_TwentyCrashesLeaveNoZombies(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	var all []*e2e.Backend
	for _, name := range []string{"a", "b", "c", "d", "e"} { // concurrently, as the delays of one grow
		all = append(all, w.Backend(name, e2e.Obj{"tools": []e2e.Obj{e2e.Tool("die")}, "on": e2e.Obj{"tools/call die": e2e.Actions(e2e.Do("crash"))}}))
	}
	c := w.Standalone()
	for n := 1; n <= 4; n++ {
		for _, b := range all {
			b.WaitStarts(n)
			e2e.Eventually(t, "the tool", func() bool {
				m := c.Request("tools/call", e2e.Obj{"name": b.Name + "_die"})
				return string(e2e.At(m.Result, "isError")) == "true" && b.Count("tools/call") >= n
			})
		}
	}
	for _, b := range all {
		b.WaitStarts(5)
	}
	require.Empty(t, zombies(c.Prog.Cmd.Process.Pid))
}

func TestP08_ABridgeWaitsForTheDaemonsThatItStarted(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("b", e2e.Filesystem())
	c := w.Bridged()
	require.Equal(t, "b:stat:{}", c.CallText("b_stat", e2e.Obj{}))
	for range 3 {
		require.NoError(t, e2e.Kill(w.DaemonPID()))
		// A call may be in flight when the daemon dies.
		c.CallUntilItWorks("b_stat")
	}
	e2e.Eventually(t, "no zombie", func() bool { return len(zombies(c.Prog.Cmd.Process.Pid)) == 0 })
}

// zombies returns the dead children of a process that it never waited for.
func zombies(parent int) []string {
	var found []string
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		if len(fields) > 1 && fields[0] == "Z" && fields[1] == strconv.Itoa(parent) {
			found = append(found, path)
		}
	}
	return found
}
