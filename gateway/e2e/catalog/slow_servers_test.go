//go:build e2e

package catalog

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// The times are in the log (-v): nothing is timed that could fail on a busy machine.
func TestTheFirstWholeListOfTwentySlowServersStartsNone(t *testing.T) {
	t.Parallel()
	const servers = 20
	w := e2e.NewWorld(t)
	w.Gateway["start"] = "auto"
	all := make([]*e2e.Backend, servers)
	for n := range all {
		all[n] = w.Backend(fmt.Sprintf("slow%d", n), e2e.Obj{
			"tools": []e2e.Obj{e2e.Tool("tell")},
			"on":    e2e.Obj{"initialize": e2e.Actions(e2e.Do("delay", e2e.Obj{"ms": 2000}))},
		})
	}
	for _, how := range []string{"without", "with"} {
		start := time.Now()
		c := w.Pipe("stdio", "--standalone")
		c.Init()
		greeted := time.Since(start)
		require.Len(t, c.Names("tools"), servers)
		t.Logf("%s the remembered catalog: initialize after %v, the first whole list after %v", how, greeted, time.Since(start))
		c.Close()
		c.Prog.Ends(e2e.Patience)
	}
	for _, b := range all {
		require.Equal(t, 1, b.Starts())
	}
}
