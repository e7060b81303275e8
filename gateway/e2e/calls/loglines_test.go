//go:build e2e

package calls

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

func TestLogLinesOfACallComeBeforeItsResponse(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	note := e2e.Do("notify", e2e.Obj{"method": "notifications/message", "n": 3, "params": e2e.Obj{"level": "info", "data": "line $n"}})
	w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}, "on": e2e.Obj{"tools/call t": e2e.Actions(note)}})
	s := w.Served()
	for name, c := range map[string]*e2e.Client{"socket": w.Join(), "HTTP": s.Client(true)} {
		c.Ok("logging/setLevel", e2e.Obj{"level": "debug"})
		m := c.Request("tools/call", e2e.Obj{"name": "b_t"})
		notes := c.NotesOf("notifications/message")
		require.Len(t, notes, 3, name)
		for i, n := range notes {
			require.Equal(t, fmt.Sprint("line ", i), e2e.Str(n.Params, "data"))
			require.Less(t, n.Seq, m.Seq)
			require.Equal(t, m.Via, n.Via)
		}
		c.Ok("logging/setLevel", e2e.Obj{"level": "emergency"})
	}
}
