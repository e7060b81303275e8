//go:build e2e

package daemon

import (
	"fmt"
	"net/http"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// A server with a state in each of its processes: with isolation: session every
// unit meets its own.

// stateful adds that server.
func stateful(w *e2e.World) *e2e.Backend {
	w.T.Helper()
	return w.Backend("own", e2e.Counting(), e2e.Obj{"isolation": "session"})
}

// ended waits for the end of one process of the server and looks at the others.
func ended(b *e2e.Backend, pid int) {
	b.T.Helper()
	b.Wait(fmt.Sprintf("the end of process %d", pid), func() bool {
		for _, p := range b.Procs {
			if p.Pid == pid {
				return p.Gone
			}
		}
		return false
	})
}

func TestEveryUnitHasItsOwnState(t *testing.T) {
	t.Parallel()
	type unit struct {
		name    string
		connect func(w *e2e.World) *e2e.Client
		gone    func(c *e2e.Client)
	}
	killed := func(c *e2e.Client) { c.Prog.Signal(syscall.SIGKILL) }
	for _, unit := range e2e.Variants(1,
		unit{"HTTP sessions", func(w *e2e.World) *e2e.Client { return w.Served().Client(true) }, func(c *e2e.Client) {
			got := c.Web.S.Do("DELETE", "/mcp", map[string]string{"Mcp-Session-Id": c.Web.Id}, "")
			require.Less(c.T, got.Status, http.StatusMultipleChoices)
		}},
		unit{"bridges that close", (*e2e.World).Bridged, func(c *e2e.Client) { c.Close() }},
		unit{"bridges that are killed", (*e2e.World).Bridged, killed},
		unit{"stateless bridges that are killed", func(w *e2e.World) *e2e.Client {
			w.AllowDaemon = true
			return w.Pipe("stdio").Stateless()
		}, killed},
	) {
		t.Run(unit.name, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			b := stateful(w)
			c1, c2, c3 := unit.connect(w), unit.connect(w), unit.connect(w)
			pid1, pid2 := c1.CountsTo(1, 3), c2.CountsTo(1, 2)
			pid3 := c3.CountsTo(1, 1)
			require.Len(t, map[int]bool{pid1: true, pid2: true, pid3: true}, 3)
			for _, c := range []*e2e.Client{c1, c2, c3} {
				require.Equal(t, []string{"own_count"}, c.Names("tools"))
				require.Equal(t, []string{"own/p"}, c.Names("prompts"))
				require.Equal(t, []string{e2e.In("own", "x:1")}, c.Names("resources"))
				require.Equal(t, []string{e2e.In("own", "x:///{a}")}, c.Names("templates"))
			}
			unit.gone(c2)
			ended(b, pid2)
			unit.gone(c1) // its lists were the catalog
			ended(b, pid1)
			require.Equal(t, pid3, c3.CountsTo(2, 4))
			require.Equal(t, []string{"own_count"}, c3.Names("tools"))
			c4 := unit.connect(w)
			pid4 := c4.CountsTo(1, 1)
			require.NotContains(t, []int{pid1, pid2, pid3}, pid4, "nobody inherits a state")
		})
	}
}
