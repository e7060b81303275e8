//go:build faults

package full

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// A client may watch 10,000 resources. The cost of an unsubscribe must not grow with the
// number of subscriptions.
func TestP07_ManySubscriptionsOfClientsThatVanishHoldNothingUp(t *testing.T) {
	t.Parallel()
	const clients, each = 3, 10_000
	w := e2e.NewWorld(t)
	w.Gateway["linger"] = "100ms"
	w.FaultyServer("bad", "cap-lie", false, e2e.Obj{"open_resources": true})
	var all []*e2e.Client
	for range clients {
		c := w.Bridged()
		c.WaitListed("tools", "bad_echo", true)
		all = append(all, c)
	}
	asks := func(method string) (last []string) {
		for _, c := range all {
			id := ""
			for i := range each {
				id = c.Begin(method, e2e.Obj{"uri": fmt.Sprintf("mcp://bad/y:%d", i)})
			}
			last = append(last, id)
		}
		return last
	}
	ids := asks("resources/subscribe")
	for i, c := range all {
		require.Nil(t, c.End(ids[i]).Error)
	}
	asks("resources/unsubscribe")
	for _, c := range all {
		c.Prog.Signal(syscall.SIGKILL)
	}
	require.Eventually(t, func() bool { return len(w.Processes("")) == 0 }, 10*time.Second, 50*time.Millisecond, "the daemon ends")
}
