package e2e

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A client may watch 10,000 resources; what giving one back costs must not grow
// with what it and others watch.
func TestP07_ManySubscriptionsOfClientsThatVanishHoldNothingUp(t *testing.T) {
	t.Parallel()
	const clients, each = 3, 10_000
	w := newWorld(t)
	w.gateway["linger"] = "100ms"
	w.bad(&fault{mode: "cap-lie", entry: obj{"open_resources": true}}, w.dir+"/bad.log")
	var all []*client
	for range clients {
		c := w.bridged()
		c.waitListed("tools", "bad_echo", true)
		all = append(all, c)
	}
	asks := func(method string) (last []string) {
		for _, c := range all {
			id := ""
			for i := range each {
				id = c.begin(method, obj{"uri": fmt.Sprintf("mcp://bad/y:%d", i)})
			}
			last = append(last, id)
		}
		return last
	}
	ids := asks("resources/subscribe")
	for i, c := range all {
		require.Nil(t, c.end(ids[i]).Error)
	}
	asks("resources/unsubscribe")
	for _, c := range all {
		c.prog.signal(syscall.SIGKILL)
	}
	require.Eventually(t, func() bool { return len(w.processes("")) == 0 }, quickExit, 50*time.Millisecond, "the host ends")
}
