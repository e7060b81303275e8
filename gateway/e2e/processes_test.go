package e2e

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestP08_TwentyCrashesLeaveNoZombies(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var all []*backend
	for _, name := range []string{"a", "b", "c", "d", "e"} { // side by side, as the delays of one grow
		all = append(all, w.backend(name, obj{"tools": []obj{tool("die")}, "on": obj{"tools/call die": actions(do("crash"))}}))
	}
	c := w.standalone()
	for n := 1; n <= 4; n++ {
		for _, b := range all {
			b.waitStarts(n)
			eventually(t, "the tool", func() bool {
				m := c.request("tools/call", obj{"name": b.name + "_die"})
				return m.Error != nil && b.count("tools/call") >= n
			})
		}
	}
	for _, b := range all {
		b.waitStarts(5)
	}
	require.Empty(t, zombies(c.prog.cmd.Process.Pid))
}

func TestP08_ABridgeWaitsForTheHostsThatItStarted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.backend("b", filesystem())
	c := w.bridged()
	require.Equal(t, "b:stat:{}", c.callText("b_stat", obj{}))
	for range 3 {
		require.NoError(t, kill(w.host()))
		// A call may be under way while the host dies.
		c.goesOn("b_stat")
	}
	eventually(t, "no zombie", func() bool { return len(zombies(c.prog.cmd.Process.Pid)) == 0 })
}

// zombies are the dead children of a process that nobody waited for.
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
